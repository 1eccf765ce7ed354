"""Where text goes: what may be done to standard output, and text that is kept."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


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


def transcript(width: int = 110) -> tuple[Console, Callable[[], str]]:
    """(a console that keeps what it is given, what that is): plain text, wherever this runs.

    In notebooks rich would show it, and write colours for what they have started, as FORCE_COLOR is set there.
    """
    kept = io.StringIO()
    return plain_console(file=kept, width=width, force_terminal=False, force_jupyter=False), kept.getvalue


def plain_console(**options: Any) -> Console:
    """A console that prints strings as they are: names of joints and files hold what rich takes for markup or emoji.

    Colours are given as styles or as `rich.text.Text`.
    """
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, **options)
