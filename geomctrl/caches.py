"""Compiled code on disk: written whole, checked before anything reads it, never needed.

A file's name holds a hash of all that the code in it depends on, so that nothing in a folder can be stale: another
version of a kernel, robot structure, processor or compiler is another file. Its first bytes are a hash of its name and
of the rest. What does not pass, or can not be loaded although it does, is set aside, said once, and made again. Where
no folder can be written, that is said once in a process and costs nothing but time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from .files import whole

T = TypeVar("T")
FORMAT = 2  # of the files: a part of their names
SIZE = hashlib.sha256().digest_size
ABANDONED = 3600.0  # s: older unfinished files are of writers that were killed

_unwritable_said = False


def folders(beside: Path) -> tuple[Path, ...]:
    """Where to look and to write, in this order: GEOMCTRL_CACHE alone where it is set, else next to the source, the
    user's own.
    """
    chosen = os.environ.get("GEOMCTRL_CACHE")
    if chosen:
        return (Path(chosen),)
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    here = beside / "__pycache__"
    return (here, Path(user) / "geomctrl") if os.path.isabs(user) else (here,)  # "~" stays where nobody has a home


def file_name(key: object, ending: str) -> str:
    """The name of the file with the code that depends on what `key`, a tuple of strings and numbers, says."""
    return hashlib.sha256(repr((FORMAT, key)).encode()).hexdigest()[:40] + ending


def _checksum(name: str, code: bytes) -> bytes:
    digest = hashlib.sha256(name.encode())
    digest.update(code)
    return digest.digest()


def read(places: Iterable[Path], name: str, load: Callable[[bytes], T]) -> T | None:
    """What `load` makes of the file's content, where one of the folders has it, whole; what is damaged is set aside."""
    found, damaged = None, []
    for folder in places:
        path = folder / name
        try:
            content = path.read_bytes()
        except OSError:
            continue
        code = content[SIZE:]
        if code and _checksum(name, code) == content[:SIZE]:
            with contextlib.suppress(Exception):  # whatever is wrong with what it holds, to make it again is the remedy
                found = load(code)
        if found is not None:
            break
        damaged.append(path)
    moved = [_set_aside(path) for path in damaged]
    for path, is_moved in zip(damaged, moved):
        if is_moved or found is None:  # what can not be moved is found again and again: silent where another is good
            warnings.warn(f"{path}: damaged; what it held is compiled again", RuntimeWarning, stacklevel=2)
    return found


def _set_aside(path: Path) -> bool:
    try:
        os.replace(path, path.with_suffix(".damaged"))
    except OSError:
        return False
    return True


def write(places: Iterable[Path], name: str, code: bytes) -> None:
    """Keep `code` in the first of the folders that takes it."""
    refusals = []
    for folder in places:
        try:
            with whole(folder / name) as file:
                file.write(_checksum(name, code) + code)
        except OSError as error:
            refusals.append(f"{folder} ({error.strerror or error})")
        else:
            return _remove_abandoned(folder)
    return _say_unwritable(refusals)


def keep_newest(places: Iterable[Path], pattern: str, count: int) -> None:
    """Of the files that match the pattern, remove all but the newest of each folder."""
    for folder in places:
        with contextlib.suppress(OSError):
            for path in sorted(folder.glob(pattern), key=os.path.getmtime)[:-count]:
                path.unlink(missing_ok=True)


def _remove_abandoned(folder: Path) -> None:
    for path in folder.glob("*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > ABANDONED:
                path.unlink()


def _say_unwritable(refusals: list[str]) -> None:
    global _unwritable_said
    if _unwritable_said:
        return
    _unwritable_said = True  # first: the warning may be an error
    warnings.warn(
        f"compiled code is not kept, and made again by every process: no folder takes it: {', '.join(refusals)};"
        " set GEOMCTRL_CACHE to one that can be written",
        RuntimeWarning,
        stacklevel=3,
    )
