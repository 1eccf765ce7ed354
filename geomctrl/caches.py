"""Cache of compiled code on disk: files are written atomically, verified before use, and never required.

The name of a file contains a hash of everything that its code depends on, so no file can be stale: another version of a
kernel, robot structure, processor or compiler uses another file. Its first bytes are a hash of its name and content. A
file that fails this check, or can not be loaded, is set aside with one warning and compiled again. If no folder is
writable, there is one warning per process, and only time is lost.

The files contain machine code and pickles, so reading a file means executing it. A folder or file is therefore used
only if no other user than this one, root and the owner of this package can have written it. Links and special files are
never opened.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import importlib
import importlib.util
import os
import pkgutil
import re
import stat
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType
from typing import TypeVar

from .files import read_regular, whole

T = TypeVar("T")
FORMAT = 2  # version of the file format, a part of the file names
SIZE = hashlib.sha256().digest_size
MAX_BYTES = 1 << 28  # of a file: the largest functions have some megabytes
MAX_UNFINISHED_AGE = 3600.0  # s: older unfinished files belong to processes that were killed
TEMPORARY = re.compile(r".*\.(o|nbc|trace)\.[0-9a-f]+\.tmp")  # unfinished files of `files.whole`, of this cache alone

_unusable_reported = False


def folders(source: Path) -> tuple[Path, ...]:
    """Folders to read from and write to, in this order: only GEOMCTRL_CACHE if it is set, else next to the source, then
    the user's cache folder.
    """
    chosen = os.environ.get("GEOMCTRL_CACHE")
    if chosen:
        return (Path(chosen),)
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    here = source / "__pycache__"
    if not os.path.isabs(user):  # "~" stays if there is no home folder
        return (here,)
    if getattr(sys, "frozen", False):  # an application in one file unpacks its source to a folder that it removes
        return (Path(user) / "geomctrl",)
    return here, Path(user) / "geomctrl"


def package_digest(*packages: str) -> str:
    """A hash of the modules in these packages, without subpackages: of their files, or of their code if there are none.

    Zip archives and frozen applications have no files. Where the code can not be read either, every process has another
    hash, so versions never share a file.
    """
    digest = hashlib.sha256()
    for package in packages:
        files = sorted(Path(str(importlib.import_module(package).__file__)).parent.glob("*.py"))
        for content in map(Path.read_bytes, files) if files else _module_codes(package):
            digest.update(content)
    return digest.hexdigest()


def _module_codes(package: str) -> Iterator[bytes]:
    below = pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}.")
    for name in (package, *sorted(x.name for x in below if not x.ispkg)):
        spec = importlib.util.find_spec(name)
        code = getattr(spec and spec.loader, "get_code", lambda name: None)(name)
        yield os.urandom(32) if code is None else repr([name, _content(code)]).encode()


def _content(x: object) -> object:
    """What code does, without paths, and with sets in one order."""
    if isinstance(x, CodeType):
        names = x.co_names, x.co_varnames, x.co_freevars, x.co_cellvars
        return x.co_name, x.co_flags, x.co_code, x.co_exceptiontable, names, [_content(c) for c in x.co_consts]
    return sorted(map(repr, x)) if isinstance(x, frozenset) else x


def file_name(key: object, ending: str) -> str:
    """Name of the file for code that depends on `key`, a tuple of strings and numbers."""
    return hashlib.sha256(repr((FORMAT, key)).encode()).hexdigest()[:40] + ending


def _checksum(name: str, code: bytes) -> bytes:
    digest = hashlib.sha256(name.encode())
    digest.update(code)
    return digest.digest()


def read(places: Iterable[Path], name: str, load: Callable[[bytes], T]) -> T | None:
    """Return `load` of the content from the first folder with a valid file; damaged files are set aside."""
    loaded, damaged = None, []
    places = list(places)
    refused = list(map(_untrusted, places))
    for folder in (x for x, why in zip(places, refused) if not why):
        path = folder / name
        try:
            content = read_regular(path, _file_reason)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.EINVAL, errno.EISDIR):  # not a regular file, or another user's
                continue
            content = b""
        code = content[SIZE:]
        if code and _checksum(name, code) == content[:SIZE]:
            with contextlib.suppress(Exception):  # whatever the damage is, the code is compiled again
                loaded = load(code)
        if loaded is not None:
            break
        damaged.append(path)
    moved = [_set_aside(path) for path in damaged]
    for path, is_moved in zip(damaged, moved):
        if is_moved or loaded is None:  # no warning for a file that can not be moved if another folder has a good one
            warnings.warn(f"{path}: damaged; its code is compiled again", RuntimeWarning, stacklevel=2)
    if all(refused):
        _warn_unusable([f"{folder} ({why})" for folder, why in zip(places, refused)])
    return loaded


def _untrusted(folder: Path) -> str:
    """Why code in this folder must not be run, or an empty string. A folder that does not exist may be created."""
    try:
        link = os.lstat(folder)
        if stat.S_ISLNK(link.st_mode) and link.st_uid not in _owners():
            return "a link of another user"
        return _reason(os.stat(folder))
    except OSError as error:
        return "a link to itself" if error.errno == errno.ELOOP else ""


def _file_reason(status: os.stat_result) -> str:
    return "too large" if status.st_size > MAX_BYTES else _reason(status)


def _reason(status: os.stat_result) -> str:
    """Why a file or folder with this status must not be trusted, or an empty string."""
    if os.name == "nt":  # owners and modes have no meaning there; user folders are closed to other users
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
    """Write `code` to the first folder that accepts it."""
    refusals = []
    for folder in places:
        if why := _untrusted(folder):
            refusals.append(f"{folder} ({why})")
            continue
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with whole(folder / name) as file:
                if os.name != "nt":
                    os.fchmod(file.fileno(), 0o644)  # independent of the umask: group-writable files are not read
                file.write(_checksum(name, code) + code)
        except OSError as error:
            refusals.append(f"{folder} ({error.strerror or error})")
        else:
            return _remove_abandoned(folder)
    return _warn_unusable(refusals)


def keep_newest(places: Iterable[Path], pattern: str, count: int) -> None:
    """Remove all but the newest files that match the pattern, in each folder."""
    for folder in (x for x in places if not _untrusted(x)):
        with contextlib.suppress(OSError):
            for path in sorted(folder.glob(pattern), key=os.path.getmtime)[:-count]:
                path.unlink(missing_ok=True)


@functools.cache  # once per process: a folder may hold very many files
def _remove_abandoned(folder: Path) -> None:
    for path in folder.glob("*.tmp"):
        with contextlib.suppress(OSError):
            if TEMPORARY.fullmatch(path.name) and time.time() - path.lstat().st_mtime > MAX_UNFINISHED_AGE:
                path.unlink()


def _warn_unusable(refusals: list[str]) -> None:
    global _unusable_reported
    if _unusable_reported:
        return
    _unusable_reported = True  # before the warning, which may be turned into an exception
    warnings.warn(
        f"compiled code can not be cached and is compiled by every process: no usable folder: {', '.join(refusals)};"
        " set GEOMCTRL_CACHE to a folder that only you can write to",
        RuntimeWarning,
        stacklevel=3,
    )
