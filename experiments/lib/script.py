"""Command line of a script: the parameters of its `main` are the options, its docstring is the help page."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

Quick = Annotated[bool, Parameter(help="less work, rougher results")]
Out = Annotated[Path, Parameter(help="where figures go")]


def run_script(main: Callable[..., Any]) -> None:
    """Run `main` with the options of this process."""
    help_page, plain = inspect.getdoc(inspect.getmodule(main)), Parameter(negative=())
    app = App(help=help_page, help_format="plaintext", version_flags=(), default_parameter=plain)
    app.default(main)
    app(sys.argv[1:])
