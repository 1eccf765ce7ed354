"""Numbers that may be symbols: the one module of tracing for code that runs on both.

Controllers, monitors, groups and terms compute with floats in Python and with symbols while they are traced. Most of
that code makes no difference. The rest asks here and knows neither symbols nor graphs; an import contract keeps it so.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import SymbolArray, elements, has_symbols, holds_symbols
from .requirements import on_symbols, require
from .symbols import Condition, Symbol, where

__all__ = ["ARRAYS", "has_symbols", "holds", "holds_symbols", "on_symbols", "possible", "scalar", "where"]

ARRAYS = (np.ndarray, SymbolArray)  # types of arrays that kernels take; they would read what lies under a mask


def scalar(x: Any) -> Any:
    """A number as Python's own float; a symbol, or an array of one, as the symbol."""
    if type(x) is SymbolArray:
        x = x.item()
    return x if type(x) is Symbol else float(x)


def possible(condition: Any) -> bool:
    """Whether a condition may hold: it does, or it is not known yet. What is done then must change nothing where it
    does not hold."""
    return isinstance(condition, Condition) or bool(condition)


def holds(condition: Any) -> bool:
    """Whether a condition holds everywhere; what is not known yet is required, and taken to hold."""
    if not has_symbols(condition):
        return bool(np.all(condition))
    for x in elements(condition).ravel().tolist():
        require(x)
    return True
