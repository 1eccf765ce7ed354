"""Python's operators on symbols, and refusals of conversions to text, keys, integers and bytes.

The package itself computes with the functions of `symbols`; the operators serve user code. Where Python floats raise,
as for a division by zero, they require that this does not happen.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .entries import refuse_loops, refuse_narrow, refuse_scipy
from .graph import CLASSES
from .requirements import require
from .symbols import (
    FLOAT,
    INT,
    INT64,
    NUMPY,
    PYTHON,
    WHOLE,
    Condition,
    ConditionalKind,
    Symbol,
    add,
    as_python,
    as_whole,
    binary,
    both,
    certain,
    combined,
    compare,
    differ,
    div,
    invert,
    is_finite,
    is_number,
    is_symbol,
    kind_of,
    kinds_in,
    may_raise,
    mul,
    neg,
    relation,
    sub,
    unary,
    where,
    with_kind,
)
from .untraceable import INSTEAD_OF_LEAKS, LEAKS, UnknownValueError, UntraceableError, asker, caller

POWERS = 4  # powers up to this are products, which are as accurate as the C library's


def power(a: Any, n: int) -> Any:
    """a^n for an integer n."""
    if is_symbol(a) and not a.graph.finite and n not in (-1, *range(POWERS + 1)):
        return binary("pow", a, n)
    if n < 0:
        return div(1.0, power(a, -n))
    result, square = 1.0, a
    while n:
        if n & 1:
            result = mul(result, square)
        n >>= 1
        square = mul(square, square) if n else square
    return result


def raised(a: Any, b: Any) -> Any:
    """a ** b of two numbers."""
    if is_symbol(b) or not is_symbol(a):
        return binary("pow", a, b)
    if abs(b) <= 64 and b == int(b):
        return power(a, int(b))
    if b == 0.5:
        root = unary("sqrt", add(a, 0.0))  # because the power of -0.0 is 0.0
        return root if a.graph.finite else where(compare("eq", a, -math.inf), math.inf, root)
    return binary("pow", a, b)


def truncated(x: Any) -> Any:
    """x without its fractional part."""
    return binary("copysign", unary("floor", unary("abs", x)), x)


def modulo(a: Any, b: Any) -> Any:
    """a % b as in Python and numpy, with the sign of b; exact, unlike a - b floor(a / b)."""
    r = binary("fmod", a, b)
    turned = where(differ(relation("lt", b, 0.0), relation("lt", r, 0.0)), add(r, b), r)
    return where(relation("eq", r, 0.0), binary("copysign", 0.0, b), turned)


def floor_divided(a: Any, b: Any) -> Any:
    """a // b as in Python and numpy, from the exact remainder."""
    r = binary("fmod", a, b)
    quotient = div(sub(a, r), b)
    turned = both(differ(relation("lt", b, 0.0), relation("lt", r, 0.0)), invert(relation("eq", r, 0.0)))
    quotient = where(turned, sub(quotient, 1.0), quotient)
    whole = unary("floor", quotient)
    whole = where(relation("lt", 0.5, sub(quotient, whole)), add(whole, 1.0), whole)
    whole = where(relation("eq", quotient, 0.0), binary("copysign", 0.0, div(a, b)), whole)
    return where(relation("eq", b, 0.0), div(a, b), whole)


def rounded(x: Any, digits: int = 0) -> Any:
    """x rounded to a number of decimals as in numpy."""
    if not digits:
        return unary("rint", x)
    scale = 10.0 ** abs(digits)
    return div(unary("rint", mul(x, scale)), scale) if digits > 0 else mul(unary("rint", div(x, scale)), scale)


def _nonzero(a: Any, b: Any) -> None:
    require(invert(relation("eq", b, 0.0)))


def _real_and_finite(a: Any, b: Any) -> None:
    """Python's own power raises on overflow and is complex for a negative base."""
    if is_symbol(b) or b not in (0, 1):
        require(is_finite(raised(a, b)))


LARGEST_INT = 2.0**53 - 1.0  # results up to this are exact: 2^53 may be 2^53 + 1 rounded


def _of_both(a: int, b: int) -> int:
    """The kind of a sum, difference, product, remainder or integer quotient."""
    if a in PYTHON and b in PYTHON:
        return INT if a is b is INT else FLOAT
    return INT64 if a in WHOLE and b in WHOLE else NUMPY


def _of_quotient(a: int, b: int) -> int:
    return FLOAT if a in PYTHON and b in PYTHON else NUMPY


def _power_rule(exponent: Any) -> Callable[[int, int], int]:
    def rule(a: int, b: int) -> int:
        if a not in WHOLE or b not in WHOLE:
            return _of_quotient(a, b)
        if is_symbol(exponent) or exponent > POWERS or (exponent < 0 and a is INT64):
            raise UntraceableError(f"a power of integers can not be traced{caller()}: write float(x) ** n")
        return _of_both(a, b) if exponent >= 0 else FLOAT

    return rule


def _is_whole(kind: Any) -> Any:
    """Whether a number of that kind is an integer; a condition if it depends on one."""
    return (
        where(kind.condition, _is_whole(kind.yes), _is_whole(kind.no))
        if type(kind) is ConditionalKind
        else kind in WHOLE
    )


def exact(x: Any, kind: Any) -> Any:
    """A result with its kind; integers are required to be exact as floating-point numbers."""
    x = with_kind(x, kind)
    if kind in (NUMPY, FLOAT):
        return x
    if is_symbol(x) and not x.graph.finite and not kinds_in(kind).isdisjoint(WHOLE):
        small = relation("le", unary("abs", x), LARGEST_INT)
        require(_either(invert(_is_whole(kind)), small))
    return x


def _operator(operation: Any, rule: Any, partial: Any = None, swapped: bool = False) -> Any:
    """A method of Symbol. partial: the condition under which Python floats do not raise."""

    def method(self: Symbol, other: Any) -> Any:
        if not is_number(other):
            if isinstance(other, complex):
                raise UntraceableError(f"complex numbers can not be traced{caller()}: write np.cos, np.sin, np.arctan2")
            return NotImplemented
        refuse_loops(self, other)
        refuse_narrow(self, other)
        a, b = (other, self) if swapped else (self, other)
        kind = combined(rule if partial is not _real_and_finite else _power_rule(b), kind_of(a), kind_of(b))
        a, b = float(a) if type(a) is bool else a, float(b) if type(b) is bool else b
        if partial is not None and not self.graph.finite and not kinds_in(kind) <= {NUMPY}:  # kernels check first
            partial(a, b)
        if kind not in (NUMPY, FLOAT) and INT64 in kinds_in(kind):  # numpy raises if an int does not fit into 64 bits
            for x in (a, b):
                exact(x, kind_of(x))
        result = exact(operation(a, b), kind)
        return CLASSES[kind](result) if type(result) is float and kind in (NUMPY, INT64) else result

    return method


def _relation(op: str, swapped: bool = False) -> Any:
    def method(self: Symbol, other: Any) -> Any:
        if not is_number(other):
            return NotImplemented
        refuse_loops(self, other)
        refuse_narrow(self, other)
        if sys._getframe(1).f_globals.get("__name__", "").startswith("numpy."):
            raise UntraceableError(f"an array is combined with a list{caller()}: convert the list with np.array")
        condition = compare(op, other, self) if swapped else compare(op, self, other)
        condition.kind = _kind_of_relation(self, other)
        return condition

    return method


def _kind_of_relation(a: Any, b: Any) -> Any:
    return combined(lambda x, y: FLOAT if x in PYTHON and y in PYTHON else NUMPY, kind_of(a), kind_of(b))


def _whole(op: str, x: Symbol) -> Any:
    """A Python integer, which nan and infinity can not be converted to."""
    if not x.graph.finite:
        require(is_finite(x))
    return as_whole(unary(op, x))


OPERATIONS = {  # operation, the kind of its result, the condition for Python numbers
    "add": (add, _of_both, None),
    "sub": (sub, _of_both, None),
    "mul": (mul, _of_both, None),
    "truediv": (div, _of_quotient, _nonzero),
    "mod": (modulo, _of_both, _nonzero),
    "floordiv": (floor_divided, _of_both, _nonzero),
    "pow": (raised, _of_quotient, _real_and_finite),
}
for _name, _operation in OPERATIONS.items():
    setattr(Symbol, f"__{_name}__", _operator(*_operation))
    setattr(Symbol, f"__r{_name}__", _operator(*_operation, swapped=True))
for _name, _op, _swapped in (("lt", "lt", 0), ("le", "le", 0), ("gt", "lt", 1), ("ge", "le", 1), ("eq", "eq", 0)):
    setattr(Symbol, f"__{_name}__", _relation(_op, bool(_swapped)))


def _not_equal(self: Symbol, other: Any) -> Any:
    if not is_number(other):
        return NotImplemented
    refuse_loops(self, other)
    condition = invert(compare("eq", self, other))
    condition.kind = _kind_of_relation(self, other)
    return condition


def _of_one(operation: Any) -> Any:
    return lambda self: with_kind(operation(refuse_loops(self)), self.kind)


def _round(self: Symbol, digits: Any = None) -> Any:
    if digits is None:
        return _whole("rint", self)
    if certain(self.kind) is FLOAT:
        raise UntraceableError(f"round(x, {digits!r:.20}) of a float can not be traced{caller()}: write np.round(x, n)")
    return rounded(self, digits) if certain(self.kind) is NUMPY else self


def whole_number(x: Any, kind: int = INT) -> Any:
    """int(x) of a symbol or condition; nan and infinity have none."""
    x = number_of(x)
    if _is_whole(x.kind) is True:
        return with_kind(x, kind)
    require(is_finite(x))
    return exact(truncated(x), kind)


def _divmod(self: Any, other: Any) -> Any:
    return (self // other, self % other) if is_number(other) else NotImplemented


def number_of(x: Any) -> Any:
    """A condition as the number 0 or 1."""
    return with_kind(where(x, 1.0, 0.0), kind_of(x)) if type(x) is Condition else x


def _of_truths(name: str, logical: Any) -> Any:
    """An operator of a condition and a number; for two numpy bools + is or, and * is and."""

    def method(self: Condition, other: Any) -> Any:
        refuse_loops(self, other)
        refuse_narrow(self, other)
        if isinstance(other, (Condition, bool, np.bool_)):
            if INT64 in (certain(kind_of(self)), certain(kind_of(other))) and name != "truediv":
                if logical is None:
                    raise TypeError(f"numpy has no {name} of two bools")
                return logical(self, other)
        elif not is_number(other):
            return NotImplemented
        return getattr(number_of(self), f"__{name}__")(number_of(other))

    return method


_METHODS = {
    "__ne__": _not_equal,
    "__neg__": _of_one(neg),
    "__pos__": lambda self: self,
    "__abs__": _of_one(lambda x: unary("abs", x)),
    "__round__": _round,
    "__floor__": lambda self: _whole("floor", self),
    "__ceil__": lambda self: as_whole(sub(0.0, _whole("floor", neg(self)))),
    "__trunc__": whole_number,
    "__divmod__": _divmod,
    "__rdivmod__": lambda self, other: (other // self, other % self) if is_number(other) else NotImplemented,
}
for _name, _method in _METHODS.items():
    setattr(Symbol, _name, _method)


def _of_two(operation: Any) -> Any:
    """An operator of two conditions; with an array numpy's broadcasting applies."""

    def method(self: Condition, other: Any) -> Any:
        if isinstance(other, np.ndarray) and other.dtype.hasobject:
            return NotImplemented
        refuse_loops(self, other)
        result = operation(self, other)
        return as_python(result) if may_raise(self, other) else result

    return method


def _not(self: Condition) -> Any:
    refuse_loops(self)
    if self.kind is not NUMPY:
        raise UntraceableError(f"~ of a Python bool is an integer{caller()}: write np.logical_not")
    return invert(self)


def _truth(self: Condition) -> bool:
    refuse_loops(self)
    if (ask := asker.get()) is None:
        raise UntraceableError(f"a branch depends on a symbol{caller()}: choose with np.where(condition, a, b)")
    return ask(self)


def _either(a: Any, b: Any) -> Any:
    return invert(both(invert(a), invert(b)))


_OF_CONDITIONS = {
    **{f"__{r}{x}__": _of_truths(r + x, {"add": _either, "mul": both}.get(x)) for r in ("", "r") for x in OPERATIONS},
    **dict.fromkeys(("__and__", "__rand__"), _of_two(both)),
    **dict.fromkeys(("__or__", "__ror__"), _of_two(_either)),
    **dict.fromkeys(("__xor__", "__rxor__", "__ne__"), _of_two(differ)),
    "__eq__": _of_two(lambda a, b: invert(differ(a, b))),
    "__invert__": _not,
    "__bool__": _truth,
}
for _name, _method in _OF_CONDITIONS.items():
    setattr(Condition, _name, _method)


_OF_NUMBERS = {"__bool__": lambda self: bool(invert(compare("eq", refuse_loops(self), 0.0))), "item": as_python}
for _name, _method in _OF_NUMBERS.items():
    setattr(Symbol, _name, _method)
Condition.item = as_python  # pyright: ignore[reportAttributeAccessIssue]


def leak(owner: str, how: str) -> Any:
    """A method that raises UnknownValueError."""
    more = f"; {INSTEAD_OF_LEAKS[how]}" if how in INSTEAD_OF_LEAKS else ""

    def refused(self: Any, *_: Any, **__: Any) -> Any:
        raise UnknownValueError(f"{owner} {how}{caller()}: its value is unknown while the code is traced{more}")

    return refused


_BITS = dict.fromkeys(
    ("__and__", "__or__", "__xor__", "__lshift__", "__rshift__", "__invert__"), "has no bits: write x // 2**n"
)
_INDEX = {"__index__": "is used as an index: write `a if condition else b` or np.where"}
for _kind, _what, _more in ((Symbol, "a symbol", _BITS), (Condition, "a condition", _INDEX)):
    for _name, _how in (LEAKS | _more).items():
        setattr(_kind, _name, leak(_what, _how))


def _no_number(self: Any) -> Any:
    refuse_scipy()
    if self.in_array:
        raise UntraceableError(
            f"an array that depends on the state is written into an array of numbers{caller()}: create the latter with"
            " np.array in the law"
        )
    raise UnknownValueError(
        f"a symbol is used as a number{caller()}: its value is unknown while the code is traced; functions of numpy and"
        " math can be traced, float() and int() unless code of the module that uses them tests `is`: write isinstance()"
    )


Symbol.__float__ = Condition.__float__ = _no_number  # pyright: ignore[reportAttributeAccessIssue]
