"""Symbolic copies of functions: their closures, default arguments and attributes; of methods and partial functions."""

from __future__ import annotations

import functools
import types
from typing import Any

from geomctrl.tracing.code_identity import identity, is_own_function
from geomctrl.tracing.rebinding import empty_cells, rebind


def copy_of_function(copies: Any, x: types.FunctionType, path: str) -> Any:
    """A copy of a user's function; a function without data is not copied."""
    copies._roots.append((x, path))
    if not is_own_function(x) or not (x.__closure__ or x.__defaults__ or x.__kwdefaults__ or x.__dict__):
        return copies._opaque(x, path)
    copies._copied_functions.append(x)
    cells = empty_cells(x)
    clone = copies._begin(x, rebind(x, closure=cells), identity(x.__code__))
    clone.__defaults__ = copies.of(x.__defaults__, f"{path}.__defaults__")
    clone.__kwdefaults__ = copies.of(x.__kwdefaults__, f"{path}.__kwdefaults__")
    for name, cell, original in zip(x.__code__.co_freevars, cells, x.__closure__ or ()):
        try:
            cell.cell_contents = copies.of(original.cell_contents, f"{path}.{name}")
        except ValueError:  # empty cell
            continue
    _copy_attributes(copies, clone, x, path)
    return copies._done(clone, path)


def copy_of_method(copies: Any, x: types.MethodType, path: str) -> Any:
    """The method of a copy of its object."""
    copies._roots.append((x.__func__, path))
    return types.MethodType(x.__func__, copies.of(x.__self__, path))


def copy_of_partial(copies: Any, x: functools.partial, path: str) -> Any:
    """A partial function with copies of its function and arguments."""
    function, args = (copies.of(getattr(x, name), f"{path}.{name}") for name in ("func", "args"))
    options = {name: copies.of(value, f"{path}.keywords[{name!r}]") for name, value in x.keywords.items()}
    clone = copies._begin(x, functools.partial(function, *args, **options), tuple(options))
    copies._done(clone.keywords, f"{path}.keywords")
    _copy_attributes(copies, clone, x, path)
    return clone


def _copy_attributes(copies: Any, clone: Any, x: Any, path: str) -> None:
    copies.signature.append(tuple(x.__dict__))
    for name, value in x.__dict__.items():
        clone.__dict__[name] = copies.of(value, f"{path}.__dict__[{name!r}]")
    copies._done(clone.__dict__, f"{path}.__dict__")
