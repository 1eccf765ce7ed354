"""Compiled code on disk: written whole, checked before anything reads it, never needed.

A file's name holds a hash of all that the code in it depends on, so that nothing in a folder can be stale: another
version of a kernel, robot structure, processor or compiler is another file. Its first bytes are a hash of its name and
of the rest. What does not pass, or can not be loaded although it does, is set aside, said once, and made again. Where
no folder can be written, that is said once in a process and costs nothing but time.

The files are machine code and pickles: to read one is to run it. A folder or a file is therefore used only if nobody
but this user, root and the owner of this package could have written it. Links and special files are never opened.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import stat
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from .files import read_regular, whole

T = TypeVar("T")
FORMAT = 2  # of the files: a part of their names
SIZE = hashlib.sha256().digest_size
ABANDONED = 3600.0  # s: older unfinished files are of writers that were killed
TEMPORARY = re.compile(r".*\.(o|nbc)\.[0-9a-f]+\.tmp")  # unfinished files of `files.whole`, of this cache alone

_unusable_said = False


def folders(source: Path) -> tuple[Path, ...]:
    """Where to look and to write, in this order: GEOMCTRL_CACHE alone where it is set, else next to the source, the
    user's own.
    """
    chosen = os.environ.get("GEOMCTRL_CACHE")
    if chosen:
        return (Path(chosen),)
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    here = source / "__pycache__"
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
    loaded, damaged = None, []
    places = list(places)
    refused = list(map(_untrusted, places))
    for folder in (x for x, why in zip(places, refused) if not why):
        path = folder / name
        try:
            content = read_regular(path, _reason)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.EINVAL, errno.EISDIR):  # no regular file, or another user's
                continue
            content = b""
        code = content[SIZE:]
        if code and _checksum(name, code) == content[:SIZE]:
            with contextlib.suppress(Exception):  # whatever is wrong with what it holds, to make it again is the remedy
                loaded = load(code)
        if loaded is not None:
            break
        damaged.append(path)
    moved = [_set_aside(path) for path in damaged]
    for path, is_moved in zip(damaged, moved):
        if is_moved or loaded is None:  # what can not be moved is found again and again: silent where another is good
            warnings.warn(f"{path}: damaged; what it held is compiled again", RuntimeWarning, stacklevel=2)
    if all(refused):
        _say_unusable([f"{folder} ({why})" for folder, why in zip(places, refused)])
    return loaded


def _untrusted(folder: Path) -> str:
    """The reason why code in this folder must not be run, or an empty string. What does not exist may be made."""
    try:
        link = os.lstat(folder)
        if stat.S_ISLNK(link.st_mode) and link.st_uid not in _owners():
            return "a link of another user"
        return _reason(os.stat(folder))
    except OSError:
        return ""


def _reason(status: os.stat_result) -> str:
    """The reason why a file or folder with this status must not be trusted, or an empty string."""
    if os.name == "nt":  # owners and modes say nothing there; the user's own folders are closed to others
        return ""
    if status.st_uid not in _owners():
        return "belongs to another user"
    return "other users can write to it" if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) else ""


def _owners() -> set[int]:
    """Users who can run code in this process anyway: root, this user, and the owner of this package's source."""
    return {0, os.geteuid(), os.stat(__file__).st_uid} if os.path.exists(__file__) else {0, os.geteuid()}


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
        if why := _untrusted(folder):
            refusals.append(f"{folder} ({why})")
            continue
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with whole(folder / name) as file:
                if os.name != "nt":
                    os.fchmod(file.fileno(), 0o644)  # whatever the umask: what a group can write is not read
                file.write(_checksum(name, code) + code)
        except OSError as error:
            refusals.append(f"{folder} ({error.strerror or error})")
        else:
            return _remove_abandoned(folder)
    return _say_unusable(refusals)


def keep_newest(places: Iterable[Path], pattern: str, count: int) -> None:
    """Of the files that match the pattern, remove all but the newest of each folder."""
    for folder in (x for x in places if not _untrusted(x)):
        with contextlib.suppress(OSError):
            for path in sorted(folder.glob(pattern), key=os.path.getmtime)[:-count]:
                path.unlink(missing_ok=True)


def _remove_abandoned(folder: Path) -> None:
    for path in folder.glob("*.tmp"):
        with contextlib.suppress(OSError):
            if TEMPORARY.fullmatch(path.name) and time.time() - path.lstat().st_mtime > ABANDONED:
                path.unlink()


def _say_unusable(refusals: list[str]) -> None:
    global _unusable_said
    if _unusable_said:
        return
    _unusable_said = True  # first: the warning may be an error
    warnings.warn(
        f"compiled code is not kept, and made again by every process: no folder takes it: {', '.join(refusals)};"
        " set GEOMCTRL_CACHE to a folder that you, and nobody else, can write to",
        RuntimeWarning,
        stacklevel=3,
    )
