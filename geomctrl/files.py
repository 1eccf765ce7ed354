"""Write files atomically, and read regular files, archives of arrays, TOML files and numbers of text files safely."""

from __future__ import annotations

import contextlib
import errno
import glob
import math
import os
import re
import stat
import tomllib
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from .errors import ArgumentError, GeomctrlError, WriteError

if TYPE_CHECKING:
    import numpy as np

try:
    import fcntl
except ImportError:  # Windows, where an open file can not be replaced
    fcntl = None

NUMBER = re.compile(r"[+-]?((\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan)", re.ASCII | re.IGNORECASE)


def decimal(text: str) -> float:
    """Return the number of an entry of a text file: a decimal, an infinity or nan. Raises ValueError.

    Python's `float` also accepts underscores and digits of other scripts, which other programs do not read.
    """
    if not NUMBER.fullmatch(text):
        raise ValueError(f"no number: {text!r}")
    return float(text)


@contextlib.contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """Context manager: an open file that replaces `path` once everything is written; its folder is created.

    If writing fails, the previous file stays and no other file is left behind. Temporary files of processes that were
    killed are removed. Raises WriteError, which is an OSError, with the name of the file, also if the disk is full, and
    for folders, devices and pipes.
    """
    temporary = path.parent / f"{path.name}.{uuid.uuid4().hex}.tmp"
    try:
        require_regular(path)  # replacing a device would break it for every program
        path.parent.mkdir(parents=True, exist_ok=True)
        _clear_away(path)
        with _made(temporary) as file:
            yield file
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):  # the folder may be a file
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
            failure = WriteError(f"path: can not write {path}: {reason}")
            failure.errno, failure.strerror, failure.filename = error.errno, reason, str(path)
            raise failure from error
        raise


def require_regular(path: Path) -> None:
    """Raise OSError for folders, devices and pipes. Reading a device may never end."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))


def write_text(path: Path, text: str) -> Path:
    with whole(path) as file:
        file.write(text.encode())
    return path


def write_each(writers: Iterable[Callable[[], Path | list[Path]]]) -> list[Path]:
    """Call each function that writes a file; one that fails does not stop the others.

    Returns the paths that were written. Raises WriteError with the file and the reason of each failure.
    """
    written: list[Path] = []
    problems: list[str] = []
    for write in writers:
        try:
            paths = write()
        except WriteError as error:
            written += error.written
            problems.append(str(error))
        except GeomctrlError as error:
            problems.append(str(error))
        except OSError as error:
            problems.append(f"{error.filename}: {error.strerror or error}" if error.filename else str(error))
        else:
            written += [paths] if isinstance(paths, Path) else paths
    if problems:
        raise WriteError(f"not written: {'; '.join(dict.fromkeys(problems))}", written)
    return written


def read_regular(path: Path, refusal: Callable[[os.stat_result], str] = lambda status: "") -> bytes:
    """Return the content of a regular file. Links are not followed, and pipes and devices are refused.

    refusal: function of the open file's status that returns why its content must not be read, or an empty string.
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
    """Create a new file and lock it, to show that it is being written. The lock ends with the process."""
    while True:
        file = open(path, "xb")  # noqa: SIM115 - the caller closes it
        _lock(file, wait=True)  # a process that found the file before it was locked is about to remove it
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()


def _lock(file: BinaryIO, wait: bool = False) -> bool:
    """Lock the file; False if another process holds the lock."""
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return True
    except OSError:  # another process holds it, or the file system does not support locks
        return False


def _clear_away(path: Path) -> None:
    """Remove temporary files of `path` whose writers have ended."""
    for name in glob.iglob(f"{glob.escape(str(path))}.{'[0-9a-f]' * 32}.tmp"):
        with contextlib.suppress(OSError), open(name, "rb", opener=_open_unfollowed) as file:
            if _lock(file):
                os.unlink(name)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an npz file by name, without executing anything that it contains.

    Raises OSError, or ValueError for a file that is damaged or something else, or whose arrays exceed the memory.
    """
    import numpy as np  # here: the command line starts without it

    require_regular(path)
    try:
        with open(path, "rb") as file:
            if isinstance(archive := np.load(file, allow_pickle=False), np.ndarray):
                raise ValueError("one array without a name: expected an npz archive")
            if (size := sum(member.file_size for member in archive.zip.infolist())) > memory_size():
                raise ValueError(f"its arrays take {size / 2**30:.3g} GiB, more than this machine's memory")
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError):
        raise
    except Exception as error:  # MemoryError, and what zipfile, zlib and the parser of numpy's headers raise
        raise ValueError(f"{error!s:.200}") from error
    if any(not isinstance(x, np.ndarray) for x in arrays.values()):
        raise ValueError("a member is not an array")
    return arrays


def memory_size() -> float:
    """Bytes of memory of this machine, infinite where the system does not say."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return math.inf


def read_toml(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file, in order. Raises ArgumentError with the file and the line."""
    try:
        require_regular(path)
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ArgumentError(f"{path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"{path}: not a TOML file: {error}") from None
