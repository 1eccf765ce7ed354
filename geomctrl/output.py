"""Standard output: whether it can animate, and consoles for plain text."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def moves() -> bool:
    """Whether progress bars may move there: only on an interactive terminal.

    Files and notebook cells keep everything that is written, so a bar would fill thousands of lines.
    """
    return sys.stdout is not None and sys.stdout.isatty() and not runs_in_notebook()


def runs_in_notebook() -> bool:
    """Whether a notebook started this process, as `!geomctrl ...` does, which provides a terminal.

    jupyter_client sets the first of these variables, ipykernel the second, whatever started the kernel.
    """
    return "JPY_PARENT_PID" in os.environ or "matplotlib_inline" in os.environ.get("MPLBACKEND", "")


def transcript(width: int = 110) -> tuple[Console, Callable[[], str]]:
    """Return a console that records its output, and a function that returns the output: plain text on every system.

    In notebooks rich would display it, and FORCE_COLOR, which is set there, would add colours.
    """
    kept = io.StringIO()
    return plain_console(file=kept, width=width, force_terminal=False, force_jupyter=False), kept.getvalue


def plain_console(**options: Any) -> Console:
    """Return a console that prints strings unchanged: names of joints and files may look like rich's markup or emoji.

    Colours are passed as styles or as `rich.text.Text`.
    """
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, **options)
