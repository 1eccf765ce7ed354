"""Run the command line with `python -m geomctrl.cli`."""

import sys

from .main import main

sys.exit(main())
