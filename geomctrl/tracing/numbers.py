"""Numbers that may be symbols: the only module of tracing that code for both numbers and symbols imports.

Controllers, monitors, groups and terms compute with floats in Python and with symbols while they are traced. Most of
their code is the same for both. The rest uses this module and does not depend on symbols or graphs, which an import
contract enforces.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import SymbolArray, elements, entered, has_symbols, holds_symbols
from .requirements import on_symbols, require
from .symbols import Condition, Symbol, where

__all__ = ["ARRAYS", "entered", "has_symbols", "holds", "holds_symbols", "on_symbols", "possible", "scalar", "where"]

ARRAYS = (np.ndarray, SymbolArray)  # exact types of arrays that kernels accept; a masked array would lose its mask


def scalar(x: Any) -> Any:
    """A number as a Python float; a symbol, or an array of one symbol, as the symbol."""
    if type(x) is SymbolArray:
        x = x.item()
    return x if type(x) is Symbol else float(x)


def possible(condition: Any) -> bool:
    """Whether a condition may hold: it does, or it is symbolic.

    The guarded code must have no effect where a symbolic condition is false.
    """
    return isinstance(condition, Condition) or bool(condition)


def holds(condition: Any) -> bool:
    """Whether a condition holds everywhere; a symbolic one is required, and assumed to hold."""
    if not has_symbols(condition):
        return bool(np.all(condition))
    for x in elements(condition).ravel().tolist():
        require(x)
    return True
