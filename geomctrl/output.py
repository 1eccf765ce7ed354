"""Standard output: what may be done to it."""

from __future__ import annotations

import os
import sys


def moves() -> bool:
    """Whether a bar may move there: on a terminal that somebody watches.

    Files keep all that is written, and so do the cells of notebooks, where a bar would be thousands of lines.
    """
    return sys.stdout is not None and sys.stdout.isatty() and not of_a_notebook()


def of_a_notebook() -> bool:
    """Whether a notebook has started this process, as `!geomctrl ...` does, which is given a terminal.

    Of the variables jupyter_client sets the first, ipykernel the second, whoever has started the kernel.
    """
    return "JPY_PARENT_PID" in os.environ or "matplotlib_inline" in os.environ.get("MPLBACKEND", "")
