"""Run the command line with `python -m geomctrl`, for example if the script `geomctrl` is not on the path."""

import sys

from geomctrl.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
