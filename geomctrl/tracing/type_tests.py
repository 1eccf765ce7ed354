"""Tests of types in a user's code: a symbol says that it is the number which Python has in its place.

To a user's code `isinstance(x, float)`, `type(x)`, `x.__class__`, `x.dtype` and `x.shape` are those of the float, the
int, the bool or the number of numpy that a symbol stands for. Libraries see arrays of objects: compiled code of theirs
would read the memory of an array that calls itself one of floats.
"""

from __future__ import annotations

import dis
import functools
import threading
import types
from typing import Any

import numpy as np

from .arrays import SymbolArray
from .graph import UNCERTAIN, asked_by_user, python_type
from .symbols import Condition, Symbol, UntraceableError

COMPUTED = {"COMPARE_OP", "CONTAINS_OP", "LOAD_FAST", "LOAD_FAST_BORROW", "CALL", "CALL_FUNCTION", "UNARY_NOT"}


def _of_numpy(name: str, value: Any) -> property:
    """An attribute of numpy's numbers that Python's do not have."""

    def attribute(self: Any) -> Any:
        if not asked_by_user() and self.python == UNCERTAIN:  # np.shape(x) is the same for either
            return value(self)
        if not issubclass(python_type(self), np.generic):
            raise AttributeError(f"{python_type(self).__name__!r} object has no attribute {name!r}")
        return value(self)

    return property(attribute)


for _kind in (Symbol, Condition):
    for _name, _value in {
        "dtype": lambda x: np.dtype(python_type(x)),
        "shape": lambda x: (),
        "ndim": lambda x: 0,
        "size": lambda x: 1,
    }.items():
        setattr(_kind, _name, _of_numpy(_name, _value))


def _dtype(self: SymbolArray) -> np.dtype:
    own = np.ndarray.dtype.__get__(self)
    if own != np.dtype(object) or not asked_by_user():
        return own
    conditions = [isinstance(x, (Condition, bool, np.bool_)) for x in np.ndarray.tolist(np.ndarray.ravel(self))]
    return np.dtype(bool if conditions and all(conditions) else float)


SymbolArray.dtype = property(_dtype)  # pyright: ignore[reportAttributeAccessIssue]


class _TypeOfType(type):
    owner: int

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and type(args[0]) in (Symbol, Condition) and threading.get_ident() == cls.owner:
            return python_type(args[0])
        return type(*args, **kwargs)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, type)

    def __subclasscheck__(cls, x: type) -> bool:
        return issubclass(x, type)


def type_for(owner: int) -> Any:
    """What stands in the place of `type` in a user's modules, for calls from the thread `owner`."""
    return _TypeOfType("type", (), {"owner": owner})


@functools.lru_cache(maxsize=10_000)
def identity_with_truth(code: types.CodeType) -> str:
    """Where code asks whether something computed `is True` or `is False`; "" where it does not.

    A comparison of symbols is neither, and Python does not ask an object what it is identical to.
    """
    before: list[dis.Instruction] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("CACHE", "RESUME", "EXTENDED_ARG", "NOP"):
            continue
        truth = len(before) == 2 and isinstance(before[1].argval, bool) and before[0].opname in COMPUTED
        if instruction.opname == "IS_OP" and truth:
            line = instruction.positions.lineno if instruction.positions else code.co_firstlineno
            return f"`is {before[1].argval}` in {code.co_filename}, line {line}"
        before = [*before[-1:], instruction]
    inner = (identity_with_truth(x) for x in code.co_consts if isinstance(x, types.CodeType))
    return next(filter(None, inner), "")


def refuse_identity_with_truth(code: types.CodeType) -> None:
    """Raise UntraceableError where code asks whether something computed is identical to True or False."""
    place = identity_with_truth(code)
    if place:
        raise UntraceableError(
            f"{place}: a comparison of symbols is neither True nor False; ask `if x:` or `if not x:`"
        )
