"""Copies of Python functions that look up their names elsewhere: other globals, other closure cells."""

from __future__ import annotations

from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any


def rebind(
    function: Callable[..., Any], scope: dict[str, Any] | None = None, closure: tuple[CellType, ...] | None = None
) -> FunctionType:
    """Copy a Python function with other globals, other closure cells, or both; the function itself is not changed.

    Parameters
    ----------
    function : function
        A plain Python function.
    scope : dict, optional
        The globals of the copy; they may be filled later. The default is the function's own globals.
    closure : tuple of cells, optional
        One cell for each name in `function.__code__.co_freevars`, see `empty_cells`; they may be filled later.
        The default is the function's own cells.

    Returns
    -------
    FunctionType
        A function with the same code, defaults, names and attributes.
    """
    scope = function.__globals__ if scope is None else scope
    closure = function.__closure__ if closure is None else closure or None
    copy = FunctionType(function.__code__, scope, function.__name__, function.__defaults__, closure)
    copy.__kwdefaults__ = None if function.__kwdefaults__ is None else dict(function.__kwdefaults__)
    copy.__module__, copy.__qualname__, copy.__doc__ = function.__module__, function.__qualname__, function.__doc__
    copy.__dict__.update(function.__dict__)
    return copy


def empty_cells(function: Callable[..., Any]) -> tuple[CellType, ...]:
    """Return one empty closure cell for each free variable of a function."""
    return tuple(CellType() for _ in function.__code__.co_freevars)


def without_data(function: FunctionType) -> FunctionType:
    """A copy of a function without defaults and contents of its closure, which tells what its code names."""
    return FunctionType(function.__code__, function.__globals__, closure=empty_cells(function) or None)
