"""A library of its own that knows no robot: numpy functions run on symbols, and what becomes of their operations.

`trace(f, *shapes)` is what users write; README.md in this folder says what traces and what that means. It is loaded
when it is asked for, as the machine code's library is large.
"""

import importlib
from typing import Any

from . import functions as functions
from . import operators as operators

NAMES = {
    "CompiledFunction": "function",
    "TracedFunction": "function",
    "UntraceableError": "untraceable",
    "trace": "function",
}

__all__ = sorted(NAMES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{NAMES[name]}"), name)
