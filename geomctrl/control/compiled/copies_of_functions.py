"""Symbolic copies of functions, methods and partial functions: closure cells, default arguments and attributes."""

from __future__ import annotations

import functools
import types
from typing import Any

from geomctrl.tracing.code_identity import MISSING, identity, in_cell, is_own_function
from geomctrl.tracing.object_kinds import PRINTED
from geomctrl.tracing.rebinding import rebind


def copy_of_function(copies: Any, x: types.FunctionType, path: str) -> Any:
    """A copy of a user's function; a function without data is not copied. Functions with one cell share its copy."""
    copies._roots.append((x, path))
    if not is_own_function(x) or not (x.__closure__ or x.__defaults__ or x.__kwdefaults__ or x.__dict__):
        return copies._opaque(x, path)
    copies._copied_functions.append(x)
    new = {
        name: (cell, _empty_copy(copies, cell))
        for name, cell in zip(x.__code__.co_freevars, x.__closure__ or ())
        if id(cell) not in copies._copies
    }
    numbers, cells = zip(*(copies._copies[id(cell)] for cell in x.__closure__)) if x.__closure__ else ((), ())
    clone = copies._begin(x, rebind(x, closure=cells), identity(x.__code__), numbers)
    clone.__defaults__ = copies.of(x.__defaults__, f"{path}.__defaults__")
    clone.__kwdefaults__ = copies.of(x.__kwdefaults__, f"{path}.__kwdefaults__")
    for name, (cell, empty) in new.items():
        _fill(copies, empty, cell, f"{path}.{name}")
    _copy_attributes(copies, clone, x, path)
    return clone


def copy_of_cell(copies: Any, x: types.CellType, path: str) -> types.CellType:
    """A copy of a closure cell that is itself an attribute."""
    return _fill(copies, _empty_copy(copies, x), x, path)


def _empty_copy(copies: Any, x: types.CellType) -> types.CellType:
    return copies._begin(x, types.CellType(), in_cell(x) is MISSING)


def _fill(copies: Any, clone: types.CellType, x: types.CellType, path: str) -> types.CellType:
    if (contents := in_cell(x)) is not MISSING:
        clone.cell_contents = copies.of(contents, path)
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


def copy_of_named(copies: Any, x: Any, path: str) -> Any:
    """A class, module or built-in function, which `ExternalState` follows instead of a copy."""
    if any(x is y for y in PRINTED):
        return copies._unknown(x, path)
    copies._roots.append((x, path.lstrip(".")))
    return copies._opaque(x, path)


def _copy_attributes(copies: Any, clone: Any, x: Any, path: str) -> None:
    copies.signature.append(tuple(x.__dict__))
    for name, value in x.__dict__.items():
        clone.__dict__[name] = copies.of(value, f"{path}.__dict__[{name!r}]")
    copies._done(clone.__dict__, f"{path}.__dict__")
