"""Standard output: whether it can animate, consoles for plain text, and text without control characters."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

# would end a line, move the cursor, or reorder the text around it (U+202E), in a terminal, a page or C code
UNWRITABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Return the text of a file with escape sequences of Python in place of control characters, except line ends and
    tabs: terminals execute some of them.
    """
    return UNWRITABLE.sub(lambda x: x[0] if x[0] in "\n\t" else x[0].encode("unicode_escape").decode(), text)


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
    """Return a console that prints strings as they are: names of joints and files may look like rich's markup or emoji.

    Control characters in them become visible. Colours are passed as styles or as `rich.text.Text`.
    """
    from rich.console import Console

    class PlainConsole(Console):
        def render_str(self, text: str, **kwargs: Any) -> Any:
            return super().render_str(printable(text), **kwargs)

    return PlainConsole(highlight=False, markup=False, emoji=False, **options)
