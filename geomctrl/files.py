"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from .errors import ArgumentError


def path_of(name: str, x: object) -> Path:
    """x as a path; raises ArgumentError, naming the argument `name`, for what is none."""
    if not isinstance(x, (str, os.PathLike)) or not str(x) or "\0" in str(x):
        raise ArgumentError(f"{name}: expected a path, got {x!r:.80}")
    return Path(x)


@contextlib.contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """An open file that takes its place at `path` when all is written; its folder is made.

    What was there stays where writing fails, and nothing else is left behind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> Path:
    with whole(path) as file:
        file.write(text.encode())
    return path
