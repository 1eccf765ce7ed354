"""What a parser is given: a path, or the text itself."""

import os
from collections.abc import Iterable
from pathlib import Path

from geomctrl.errors import ArgumentError

__all__ = ["locate"]


def locate(source: str | Path, package_dirs: Iterable[str | Path] = ()) -> str | Path:
    """The text if `source` is XML, else the path of a file that is there; package://name/... is looked up."""
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        return source.lstrip("\ufeff \t\r\n")
    if not isinstance(source, (str, Path)):
        raise ArgumentError(f"source: expected a path or a string of XML, got {type(source).__name__}")
    if str(source).startswith("package://"):
        dirs = [Path(d) for d in package_dirs]
        found = [d / str(source).removeprefix("package://") for d in dirs]
        found = [path for path in found if path.is_file()]
        if not found:
            raise ArgumentError(f"source: {source!r} is in none of package_dirs {[str(d) for d in dirs]}")
        return found[0]
    try:
        there = Path(source).is_file()
    except (OSError, ValueError):  # too long or a null byte: no path at all
        there = False
    if not there:
        raise ArgumentError(f"source: no such file: {str(source)[:200]!r}")
    if not os.access(source, os.R_OK):
        raise ArgumentError(f"source: no permission to read {str(source)!r}")
    return Path(source)
