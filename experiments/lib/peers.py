"""The JAX libraries of `make peers`, which have a folder of their own because adam needs an older JAX."""

import contextlib
import importlib
import sys
from pathlib import Path

FOLDER = Path(sys.prefix) / "peers"


def use_peers() -> bool:
    """Import JAX, frax, adam and MJX from the folder, if it exists; call this before JAX is imported."""
    if not FOLDER.is_dir():
        return False
    sys.path.insert(0, str(FOLDER))
    with contextlib.suppress(ImportError):  # MJX is a part of the package mujoco, whose other parts are elsewhere
        importlib.import_module("mujoco").__path__.append(str(FOLDER / "mujoco"))
    return True
