"""Python files that a command is given."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

from geomctrl.errors import ArgumentError


def names_in(argument: str, path: Path, run_name: str) -> dict[str, Any]:
    """The names that a file sets. It runs as a script does, with its folder first among those to import from, but is
    not `__main__`. Raises ArgumentError, naming the argument, where it is no file; whatever the file raises.
    """
    if not path.is_file():
        raise ArgumentError(f"{argument}: no such file: {str(path)!r}")
    try:
        compile(path.read_bytes(), str(path), "exec")  # runpy would run archives as well
    except (SyntaxError, ValueError) as error:
        raise ArgumentError(f"{argument}: expected a Python file, got {str(path)!r}: {error}") from None
    sys.path.insert(0, str(path.resolve().parent))
    return runpy.run_path(str(path), run_name=run_name)
