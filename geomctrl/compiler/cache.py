"""The compiler's object code on disk: one file for what is compiled, named by all that it depends on (see `caches`)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from geomctrl import caches

from . import host


def kept(key: str, make: Callable[[], bytes]) -> bytes:
    """The object code with this key: from disk, or made and kept there."""
    name = caches.file_name((key, host.description()), ".o")
    code = caches.read(_folders(), name, bytes)
    if code is None:
        code = make()
        caches.write(_folders(), name, code)
    return code


@functools.cache
def _folders() -> tuple[Path, ...]:
    return caches.folders(Path(__file__).parent)
