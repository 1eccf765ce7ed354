"""Object code on disk: one file per compiled function, named by everything it depends on (see `caches`)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from geomctrl import caches

from . import host

ENTRY_NAMES = {"one": ["f_one"], "many": ["f_many", "f_work"]}  # symbols in the object code


@functools.cache
def version() -> str:
    """A hash of the modules that determine the generated code; object code is stored under it."""
    return caches.package_digest(__name__.rpartition(".backends")[0], __package__ or "")


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
