"""Files that are written whole or not at all; TOML files."""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import stat
import tomllib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from .errors import ArgumentError

try:
    import fcntl
except ImportError:  # Windows, which does not let go of a file that is open
    fcntl = None


@contextlib.contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """An open file that takes its place at `path` when all is written; its folder is made.

    What was there stays where writing fails, and nothing else is left behind; what a process has left that was killed
    while it wrote is cleared away. Raises OSError with the name of the file, `path`, also where the disk is full.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _clear_away(path)
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with _made(temporary) as file:
            yield file
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(temporary)):
            raise type(error)(error.errno, error.strerror or str(error), str(path)) from error
        raise


def write_text(path: Path, text: str) -> Path:
    with whole(path) as file:
        file.write(text.encode())
    return path


def read_regular(path: Path, refusal: Callable[[os.stat_result], str] = lambda status: "") -> bytes:
    """The content of a regular file. Links are not followed, and pipes and devices are not waited for.

    refusal: called with the open file's status, returns the reason why its content must not be read, if there is one.
    Raises OSError.
    """
    with open(path, "rb", opener=_open_unfollowed) as file:
        status = os.fstat(file.fileno())
        why = refusal(status) if stat.S_ISREG(status.st_mode) else "not a regular file"
        if why:
            raise OSError(errno.EINVAL, why, str(path))
        return file.read()


def _open_unfollowed(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _made(path: Path) -> BinaryIO:
    """A new file, and a sign that somebody writes it: a lock, which ends with the process at the latest."""
    while True:
        file = open(path, "xb")  # noqa: SIM115 - closed by who writes it
        _lock(file)
        if os.fstat(file.fileno()).st_nlink:  # nobody has cleared it away in between
            return file
        file.close()


def _lock(file: BinaryIO) -> bool:
    """Whether nobody else had the lock."""
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:  # somebody has, or the file system knows no locks
        return False


def _clear_away(path: Path) -> None:
    """Temporary files of `path` that nobody writes any more."""
    for name in glob.iglob(f"{glob.escape(str(path))}.{'[0-9a-f]' * 32}.tmp"):
        with contextlib.suppress(OSError), open(name, "rb", opener=_open_unfollowed) as file:
            if _lock(file):
                os.unlink(name)


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file, in its order. Raises ArgumentError with the file and the line."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ArgumentError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ArgumentError(f"{path}: not a TOML file: {error}") from None
