"""Tracing: run numpy functions with symbols and turn the recorded operations into machine code, C or enclosures.

This package does not depend on robots. Users call `trace(f, *shapes)`; README.md in this folder says which functions
can be traced. Names are imported on first use, because the code generator is large.
"""

import importlib
from typing import Any

from . import functions as functions
from . import operators as operators
from . import ufuncs as ufuncs

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
