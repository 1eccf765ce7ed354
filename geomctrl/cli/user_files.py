"""Load Python files of the user: controllers, closed loops, studies."""

from __future__ import annotations

import inspect
import runpy
import sys
from collections.abc import Callable, Collection
from functools import cache
from pathlib import Path
from typing import Any

from geomctrl.errors import ArgumentError, NameNotFoundError


def arguments_of(file: Path, function: Callable[..., Any], without: Collection[str], argument: str) -> dict[str, Any]:
    """Return the arguments of `function` that a file defines by name, except those in `without`.

    Raises ArgumentError if one is missing, and whatever the file raises. argument: the command's name for the file.
    """
    names = _run(argument, file, "__study__")
    parameters = inspect.signature(function).parameters.values()
    missing = [p.name for p in parameters if p.default is p.empty and p.name not in names]
    if missing:
        raise ArgumentError(f"{argument}: expected {', '.join(missing)} in {str(file)!r}, which does not define it")
    return {p.name: names[p.name] for p in parameters if p.name in names and p.name not in without}


def law_class(name: str) -> type[Any]:
    """Return the class of a bundled controller, or, for "my.py:Law", one in a file. Raises GeomctrlError."""
    from geomctrl import controllers

    path, colon, own = name.rpartition(":")
    if colon and path.endswith(".py"):
        return _law_in(Path(path).resolve(), own)
    bundled = controllers.classes(tuned=True)
    if name not in bundled:
        raise NameNotFoundError(f"controller: expected one of {', '.join(bundled)}, or FILE.py:CLASS, got {name!r}")
    return bundled[name]


@cache
def _law_in(path: Path, name: str) -> type[Any]:
    names = _run("controller", path, "__controller__")
    law = names.get(name)
    if not isinstance(law, type):
        classes = [k for k, x in names.items() if isinstance(x, type) and x.__module__ == "__controller__"]
        raise NameNotFoundError(f"controller: {path.name} has no class {name!r}; it has {', '.join(classes) or 'none'}")
    if not hasattr(law, "tuned"):
        try:
            inspect.signature(law).bind(None, None)
        except TypeError:
            raise ArgumentError(
                f"controller: expected {name} to have a classmethod tuned(tuning), or to be constructed as"
                f" {name}(robot, reference), got {name}{inspect.signature(law)}"
            ) from None
    return law


def _run(argument: str, path: Path, run_name: str) -> dict[str, Any]:
    """Return the names that a file defines.

    The file runs like a script, with its folder first in the import path, but not as `__main__`. Raises ArgumentError,
    naming the argument, if the file does not exist, and whatever the file raises.
    """
    if not path.is_file():
        raise ArgumentError(f"{argument}: no such file: {str(path)!r}")
    if path.suffix != ".py":  # some files of data are Python code that fails
        raise ArgumentError(f"{argument}: expected a Python file, FILE.py, got {str(path)!r}")
    try:
        compile(path.read_bytes(), str(path), "exec")  # because runpy would also run archives
    except (SyntaxError, ValueError) as error:
        raise ArgumentError(f"{argument}: expected a Python file, got {str(path)!r}: {error}") from None
    sys.path.insert(0, str(path.resolve().parent))
    return runpy.run_path(str(path), run_name=run_name)
