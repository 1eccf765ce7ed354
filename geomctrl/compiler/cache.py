"""Object code on disk, next to numba's: each file names what it holds, is written whole, and is checked when read.

A file's name is a hash of all that the code depends on, so that nothing in the folder can be stale: another version of
a kernel, robot structure, processor or LLVM is another file. Its first bytes are a hash of the rest; a damaged file is
set aside, said once, and made again. A folder that can not be written costs nothing but time.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import warnings
from collections.abc import Callable
from pathlib import Path

from geomctrl.files import whole

from . import host

SIZE = hashlib.sha256().digest_size


def kept(key: str, make: Callable[[], bytes]) -> bytes:
    """The object code with this key: from disk, or made and kept there."""
    name = hashlib.sha256(f"{key}\n{host.description()}".encode()).hexdigest()[:40] + ".o"
    folders = _folders()
    for folder in folders:
        code = _read(folder / name)
        if code is not None:
            return code
    code = make()
    for folder in folders:
        if _write(folder / name, code):
            break
    return code


@functools.cache
def _folders() -> tuple[Path, ...]:
    """Where to look and to write, in this order: the package's own, the user's."""
    chosen = os.environ.get("GEOMCTRL_CACHE")
    if chosen is not None:
        return (Path(chosen),)
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "geomctrl"
    return Path(__file__).parent / "__pycache__", user


def _read(path: Path) -> bytes | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    code = content[SIZE:]
    if code and hashlib.sha256(code).digest() == content[:SIZE]:
        return code
    with contextlib.suppress(OSError):
        os.replace(path, path.with_suffix(".damaged"))
    warnings.warn(f"{path}: damaged; what it held is compiled again", RuntimeWarning, stacklevel=2)
    return None


def _write(path: Path, code: bytes) -> bool:
    try:
        with whole(path) as file:
            file.write(hashlib.sha256(code).digest() + code)
    except OSError:
        return False
    return True
