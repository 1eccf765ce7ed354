"""Object code on disk: one file per compiled function, named by everything it depends on (see `caches`)."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path

from geomctrl import caches

from . import host

ENTRY_NAMES = {"one": ["f_one"], "many": ["f_many", "f_work"]}  # symbols in the object code


@functools.cache
def version() -> str:
    """A hash of the sources that determine the generated code; object code is stored under it."""
    digest, package = hashlib.sha256(), Path(__file__).parents[1]
    for path in sorted((*package.glob("*.py"), *package.glob("backends/*.py"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def kept(key: str, make: Callable[[], bytes]) -> bytes:
    """The object code with this key: from disk, or created and stored."""
    name = caches.file_name((key, host.description()), ".o")
    code = caches.read(_folders(), name, bytes)
    if code is None:
        code = make()
        caches.write(_folders(), name, code)
    return code


@functools.cache
def _folders() -> tuple[Path, ...]:
    return caches.folders(Path(__file__).parent)
