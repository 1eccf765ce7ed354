"""Arrays of symbols that numpy computes with, so that a controller's own Python and numpy run on them unchanged.

A `SymbolArray` holds symbols and numbers. Numpy's elementwise functions, products, sums, shapes and joins work on it as
on any array; what has to know the numbers raises `UntraceableError` with the file and line that asks. `patched_numpy`
has what takes the place of other functions while a law runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from . import linear_algebra
from .symbols import (
    Condition,
    Symbol,
    UntraceableError,
    binary,
    both,
    caller,
    compare,
    div,
    invert,
    is_symbol,
    mul,
    remainder,
    unary,
    where,
)


class SymbolArray(np.ndarray):
    """An array of symbols, conditions and numbers (dtype object)."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return ufunc_on_symbols(ufunc, method, inputs, kwargs)

    def __array_function__(self, func, types, args, kwargs):
        own = OWN.get(func)
        try:
            return wrapped((own or func)(*plain(args), **plain(kwargs)))
        except UntraceableError:
            raise
        except (TypeError, AttributeError, np.linalg.LinAlgError) as error:
            raise UntraceableError(f"np.{func.__name__} does not trace{caller()} ({error})") from None

    def __float__(self):
        return float(self.item())

    def __reduce__(self):
        raise UntraceableError(f"an array of symbols is stored{caller()}: its numbers are not known")

    def __setitem__(self, key, value):
        if not isinstance(key, SymbolArray):
            return super().__setitem__(key, value)
        if np.ndim(value):
            raise UntraceableError(f"entries where a condition holds are set to an array{caller()}: use np.where")
        return super().__setitem__(..., _where(key, value, self))

    def astype(self, dtype, *args, **kwargs):
        if np.dtype(dtype) not in (np.float64, object):
            raise UntraceableError(f"an array of symbols as {np.dtype(dtype)} does not trace{caller()}")
        return self.copy()

    def copy(self, order="C"):  # also where numpy would make a plain array of it
        return self.view(np.ndarray).copy(order).view(SymbolArray)


def symbol_array(symbols: Any, shape: tuple[int, ...]) -> SymbolArray:
    out = np.empty(len(symbols), object)
    out[:] = symbols
    return out.reshape(shape).view(SymbolArray)


def has_symbols(x: Any) -> bool:
    """Whether an argument may hold symbols: a symbol, or an array that is none of numbers."""
    return x.dtype.hasobject if isinstance(x, np.ndarray) else isinstance(x, (Symbol, Condition))


def holds_symbols(x: Any) -> bool:
    """Whether there are symbols in x, which takes a look at all of it: an array of objects may hold anything."""
    return has_symbols(x) and (not isinstance(x, np.ndarray) or type(x) is SymbolArray or any(map(is_symbol, x.flat)))


def wrapped(result: Any) -> Any:
    if isinstance(result, np.ndarray) and result.dtype == object:
        return result.view(SymbolArray)
    if isinstance(result, (tuple, list)) and not hasattr(result, "_fields"):
        return type(result)(wrapped(x) for x in result)
    return result


def plain(x: Any) -> Any:
    """x as numpy's own objects: plain arrays; symbols within lists stay what they are, arrays of one become them."""
    if isinstance(x, SymbolArray):
        return x.view(np.ndarray)
    if isinstance(x, dict):
        return {key: plain(value) for key, value in x.items()}
    if isinstance(x, (tuple, list)):
        inner = [y.item() if isinstance(y, SymbolArray) and not y.ndim else plain(y) for y in x]
        return tuple(inner) if isinstance(x, tuple) else inner
    return x


def _operand(x: Any) -> Any:
    """An operand of an elementwise function: a symbol as an array of one, arrays of numbers with Python's own."""
    if isinstance(x, (Symbol, Condition)):
        out = np.empty((), object)
        out[()] = x
        return out
    x = plain(x)
    return x.astype(object) if isinstance(x, np.ndarray) and x.dtype != object else x


# --- elementwise -------------------------------------------------------------------------------------------------


def _condition(op: str, a: Any, b: Any) -> Any:
    if not is_symbol(a) and not is_symbol(b):
        return {"lt": a < b, "le": a <= b, "eq": a == b}[op]
    return compare(op, a, b)


def _sign(x: Any) -> Any:
    return where(_condition("lt", 0.0, x), 1.0, where(_condition("lt", x, 0.0), -1.0, 0.0))


def _power(a: Any, b: Any) -> Any:
    if is_symbol(b):
        raise UntraceableError(
            f"a power whose exponent is a symbol does not trace{caller()}: write np.exp(b * np.log(a))"
        )
    return a**b


def _hyperbolic(sign: float) -> Callable[[Any], Any]:
    return lambda x: 0.5 * (unary("exp", x) + sign * unary("exp", -x))


def _finite(x: Any) -> Any:
    return _condition("lt", unary("abs", x), math.inf)


def _named(op: str) -> Callable[[Any], Any]:
    return lambda x: unary(op, x)


UNARY: dict[str, Callable[[Any], Any]] = {
    **{name: _named(name) for name in ("sin", "cos", "tan", "exp", "log", "tanh", "sqrt", "floor")},
    "ceil": lambda x: -unary("floor", -x),
    "trunc": lambda x: where(_condition("lt", x, 0.0), -unary("floor", -x), unary("floor", x)),
    **{name: _named(op) for name, op in (("arcsin", "asin"), ("arccos", "acos"), ("absolute", "abs"), ("fabs", "abs"))},
    "arctan": lambda x: binary("atan2", x, 1.0),
    "sinh": _hyperbolic(-1.0),
    "cosh": _hyperbolic(1.0),
    "square": lambda x: mul(x, x),
    "reciprocal": lambda x: div(1.0, x),
    "sign": _sign,
    "conjugate": lambda x: x,
    "deg2rad": lambda x: mul(x, np.pi / 180.0),
    "radians": lambda x: mul(x, np.pi / 180.0),
    "rad2deg": lambda x: mul(x, 180.0 / np.pi),
    "degrees": lambda x: mul(x, 180.0 / np.pi),
    "isfinite": _finite,
    "isnan": lambda x: invert(_condition("eq", x, x)),
    "logical_not": invert,
    "invert": invert,
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "maximum": lambda a, b: binary("max", a, b),
    "minimum": lambda a, b: binary("min", a, b),
    "arctan2": lambda a, b: binary("atan2", a, b),
    "hypot": lambda a, b: unary("sqrt", a * a + b * b),
    "floor_divide": lambda a, b: unary("floor", div(a, b)),
    "remainder": remainder,
    "power": _power,
    "float_power": _power,
    "less": lambda a, b: _condition("lt", a, b),
    "less_equal": lambda a, b: _condition("le", a, b),
    "greater": lambda a, b: _condition("lt", b, a),
    "greater_equal": lambda a, b: _condition("le", b, a),
    "equal": lambda a, b: _condition("eq", a, b),
    "not_equal": lambda a, b: invert(_condition("eq", a, b)),
    "logical_and": both,
    "bitwise_and": both,
    "logical_or": lambda a, b: invert(both(invert(a), invert(b))),
    "bitwise_or": lambda a, b: invert(both(invert(a), invert(b))),
}
NATIVE = {"add", "subtract", "multiply", "divide", "negative", "positive", "matmul", "vecdot", "matvec", "vecmat"}
TERNARY: dict[str, Callable[[Any, Any, Any], Any]] = {
    "clip": lambda x, low, high: binary("min", binary("max", x, low), high),
}


def ufunc_on_symbols(ufunc: np.ufunc, method: str, inputs: tuple, kwargs: dict[str, Any]) -> Any:
    name, out = ufunc.__name__, kwargs.pop("out", None)
    if kwargs.get("dtype") in (float, np.float64):
        del kwargs["dtype"]
    operands = [_operand(x) for x in inputs]
    if name in NATIVE:
        function: Any = ufunc
    else:
        python = UNARY.get(name) or BINARY.get(name) or TERNARY.get(name)
        if python is None or (method not in ("__call__", "reduce", "outer")):
            raise UntraceableError(f"np.{name} of symbols does not trace{caller()}")
        function = np.frompyfunc(python, ufunc.nin, 1, identity=ufunc.identity)
    result = wrapped(getattr(function, method)(*operands, **kwargs))
    if out is None:
        return result
    target = out[0]
    if not isinstance(target, np.ndarray) or target.dtype != object:
        raise UntraceableError(
            f"symbols are written into an array of numbers{caller()}: make it in the law, or write x = x + y for x += y"
        )
    target[...] = result
    return target


# --- functions ---------------------------------------------------------------------------------------------------


def _beside_an_array(self, ufunc, method, *inputs, **kwargs):
    return ufunc_on_symbols(ufunc, method, inputs, kwargs)


Symbol.__array_ufunc__ = Condition.__array_ufunc__ = _beside_an_array


def _elements(x: Any) -> np.ndarray:
    """x as a plain array of Python's numbers and symbols."""
    return _operand(x) if has_symbols(x) else np.asarray(plain(x)).astype(object)


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None or y is None:
        raise UntraceableError(f"np.where of a condition alone asks where it holds{caller()}: give both values")
    return np.frompyfunc(where, 3, 1)(_elements(condition), _elements(x), _elements(y))


def _clip(a: Any, a_min: Any = None, a_max: Any = None, **_: Any) -> Any:
    for op, bound in (("max", a_min), ("min", a_max)):
        if bound is not None:
            a = np.frompyfunc(lambda x, y, op=op: binary(op, x, y), 2, 1)(_elements(a), _elements(bound))
    return a


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    if ord not in (None, 2, "fro") or (ord == 2 and axis is None and np.ndim(x) > 1):
        raise UntraceableError(f"np.linalg.norm with ord={ord!r:.20} does not trace{caller()}")
    return np.sqrt(wrapped(np.square(wrapped(_elements(x)))).sum(axis=axis, keepdims=keepdims))


def _with_result(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numpy that raises where what this one computes is not finite."""

    def result(*args: Any) -> Any:
        found = function(*args)
        for x in found.ravel().tolist():
            require(_finite(x))
        return found

    return result


def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        default = _where(condition, choice, default)
    return default


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """numpy's piecewise linear interpolation, piece by piece."""
    if period is not None:
        raise UntraceableError(f"np.interp with a period does not trace{caller()}")
    x, xp, fp = wrapped(_elements(x)), _elements(xp).ravel(), _elements(fp).ravel()
    value = fp[0] if left is None else left
    for k in range(len(xp) - 1):
        piece = fp[k] + (x - xp[k]) * div(fp[k + 1] - fp[k], xp[k + 1] - xp[k])
        value = _where(x >= xp[k], piece, value)
    value = _where(x >= xp[-1], fp[-1], value)
    return value if right is None else _where(x > xp[-1], right, value)


OWN: dict[Any, Callable[..., Any]] = {
    np.select: _select,
    np.interp: _interp,
    np.where: _where,
    np.clip: _clip,
    np.linalg.solve: _with_result(linear_algebra.solve),
    np.linalg.inv: _with_result(linear_algebra.inverse),
    np.linalg.cholesky: _with_result(linear_algebra.cholesky),
    np.linalg.det: linear_algebra.determinant,
    np.linalg.norm: _norm,
    np.array_equal: lambda a, b: _refuse("np.array_equal"),
    np.allclose: lambda a, b, *args, **kwargs: _refuse("np.allclose"),
}


def _without_an_array(self, func, types, args, kwargs):
    """numpy's function of lone symbols and conditions."""
    if SymbolArray in types:
        return NotImplemented
    return wrapped((OWN.get(func) or func._implementation)(*args, **kwargs))


Symbol.__array_function__ = Condition.__array_function__ = _without_an_array


def _refuse(name: str) -> Any:
    raise UntraceableError(f"{name} asks for the truth of symbols{caller()}: compare, and choose with np.where")


# --- numbers that may be symbols ---------------------------------------------------------------------------------


def scalar(x: Any) -> Any:
    """A number as Python's own float; a symbol, or an array of one, as the symbol."""
    if type(x) is SymbolArray:
        x = x.item()
    return x if type(x) is Symbol else float(x)


def possible(condition: Any) -> bool:
    """Whether a condition may hold: it does, or it is not known yet. What is done then must change nothing where it
    does not hold."""
    return isinstance(condition, Condition) or bool(condition)


# --- what must hold for there to be a result ---------------------------------------------------------------------

_required: ContextVar[list | None] = ContextVar("required", default=None)


def on_symbols() -> bool:
    """Whether a law runs on symbols now, with what numpy makes for it."""
    return _required.get() is not None


def require(condition: Any) -> None:
    """There is a result only where this holds; known to the innermost `requirements`."""
    if condition is not True and (found := _required.get()) is not None:
        found.append(condition)


def holds(condition: Any) -> bool:
    """Whether a condition holds everywhere; what is not known yet is required, and taken to hold."""
    if not has_symbols(condition):
        return bool(np.all(condition))
    for x in _elements(condition).ravel().tolist():
        require(x)
    return True


@contextmanager
def requirements() -> Iterator[list]:
    """The conditions that what is computed inside has asked for."""
    found: list = []
    token = _required.set(found)
    try:
        yield found
    finally:
        _required.reset(token)
