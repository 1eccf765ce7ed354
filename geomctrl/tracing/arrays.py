"""Arrays of symbols that numpy computes with, so that a controller's own Python and numpy run on them unchanged.

A `SymbolArray` holds symbols and numbers. Numpy's elementwise functions, products, sums, shapes and joins work on it as
on any array; what has to know the numbers raises `UntraceableError` with the file and line that asks. `patched_numpy`
has what takes the place of other functions while a law runs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .elementwise import BINARY, TERNARY, UNARY
from .operators import leak, refuse_narrow
from .requirements import on_symbols as on_symbols
from .requirements import require
from .requirements import requirements as requirements
from .symbols import Condition, Symbol, UntraceableError, as_python, caller, is_symbol, truth, where


class SymbolArray(np.ndarray):
    """An array of symbols, conditions and numbers (dtype object)."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return ufunc_on_symbols(ufunc, method, inputs, kwargs)

    def __array_function__(self, func, types, args, kwargs):
        return _row(func, plain(args), plain(kwargs))

    def __float__(self):
        return float(self.item())

    def item(self, *args):
        return as_python(super().item(*args))

    def tolist(self):
        return _python_kind(super().tolist())

    def __contains__(self, x):
        return bool(np.any(self == x))

    def __pow__(self, exponent):
        simple = {0.5: np.sqrt, 2: np.square, -1: np.reciprocal, 1: np.positive}  # what numpy does for them
        is_simple = isinstance(exponent, (int, float)) and exponent in simple
        return simple[exponent](self) if is_simple else np.power(self, exponent)

    def fill(self, value):
        self[...] = value

    def __getitem__(self, key) -> Any:
        try:
            return super().__getitem__(key)
        except IndexError:
            _refuse_symbols_in(key)
            raise

    def __setitem__(self, key, value):
        if not isinstance(key, SymbolArray):
            try:
                return super().__setitem__(key, value)
            except IndexError:
                _refuse_symbols_in(key)
                raise
        if np.ndim(value):
            raise UntraceableError(f"entries where a condition holds are set to an array{caller()}: use np.where")
        return super().__setitem__(..., np.frompyfunc(where, 3, 1)(_elements(key), _elements(value), _elements(self)))

    def astype(self, dtype, *args, **kwargs):
        if np.dtype(dtype) not in (np.float64, object):
            raise UntraceableError(f"an array of symbols as {np.dtype(dtype)} does not trace{caller()}")
        return self.copy()

    def dot(self, b):
        return np.dot(self, b)

    def round(self, decimals=0):
        return np.round(self, decimals)

    def mean(self, axis=None, keepdims=False):
        return np.mean(self, axis=axis, keepdims=keepdims)

    def var(self, axis=None, ddof=0, keepdims=False):
        return np.var(self, axis=axis, ddof=ddof, keepdims=keepdims)

    def std(self, axis=None, ddof=0, keepdims=False):
        return np.std(self, axis=axis, ddof=ddof, keepdims=keepdims)

    def all(self, axis=None, keepdims=False):
        return np.all(self, axis=axis, keepdims=keepdims)

    def any(self, axis=None, keepdims=False):
        return np.any(self, axis=axis, keepdims=keepdims)

    def cumsum(self, axis=None):
        return np.cumsum(self, axis=axis)

    def cumprod(self, axis=None):
        return np.cumprod(self, axis=axis)

    def copy(self, order="C"):  # also where numpy would make a plain array of it
        return self.view(np.ndarray).copy(order).view(SymbolArray)


REFUSED = {
    **dict.fromkeys(("argmax", "argmin", "sort", "argsort", "partition", "argpartition", "searchsorted"), "is ordered"),
    **dict.fromkeys(("nonzero", "choose", "compress", "put", "setfield", "getfield", "byteswap"), "is asked where"),
    **dict.fromkeys(("tobytes", "tofile", "dump", "dumps", "__bytes__", "__buffer__"), "is used as bytes"),
    **dict.fromkeys(("__str__", "__repr__", "__format__"), "is written as text"),
    **dict.fromkeys(("__int__", "__index__"), "is used as a whole number"),
    **dict.fromkeys(("__reduce__", "__reduce_ex__", "__getstate__"), "is stored"),
    "__complex__": "is used as a complex number",
}
for _name, _how in REFUSED.items():
    setattr(SymbolArray, _name, leak("an array of symbols", _how))


def _python_kind(x: Any) -> Any:
    return [_python_kind(y) for y in x] if isinstance(x, list) else as_python(x)


def _row(func: Any, args: Any, kwargs: Any) -> Any:
    """numpy's function by its row in the table of `functions`."""
    row = ROWS.get(func)
    if row is None:
        raise UntraceableError(f"np.{func.__name__} does not trace{caller()}")
    try:
        with np.errstate(all="ignore"):
            return wrapped(row(*args, **kwargs))
    except UntraceableError:
        raise
    except (TypeError, AttributeError, np.linalg.LinAlgError) as error:
        raise UntraceableError(f"np.{func.__name__} does not trace{caller()} ({error})") from None


ROWS: dict[Any, Callable[..., Any]] = {}  # filled by `functions`


def symbol_array(symbols: Any, shape: tuple[int, ...]) -> SymbolArray:
    out = np.empty(len(symbols), object)
    out[:] = [Symbol(x.graph, x.index) if type(x) is Symbol else x for x in symbols]  # numpy's numbers
    return out.reshape(shape).view(SymbolArray)


def _refuse_symbols_in(index: Any) -> None:
    for x in index if isinstance(index, tuple) else (index,):
        if isinstance(x, Symbol):
            operator.index(x)  # names the line  # pyright: ignore[reportArgumentType]


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
    return np.asarray(x).astype(object) if isinstance(x, np.ndarray) and x.dtype != object else x


# --- elementwise -------------------------------------------------------------------------------------------------


NATIVE = {"matmul", "vecdot", "matvec", "vecmat"}  # numpy's own, of the products and sums of symbols
KEYWORDS = {"__call__": set(), "outer": set(), "reduce": {"axis", "keepdims"}, "accumulate": {"axis"}}


def _says_nothing(key: str, x: Any) -> bool:
    """Whether a keyword says what holds without it: that numbers are doubles, that all entries count.

    `axis=None` does not: without it, `reduce` goes along the first axis.
    """
    if key == "axis":
        return x is np._NoValue
    if key == "dtype":
        return x is None or x in (float, np.float64, object, bool)
    return x is None or x is np._NoValue or (x is True and key in ("where", "subok")) or x in ("same_kind", "K")


def ufunc_on_symbols(ufunc: np.ufunc, method: str, inputs: tuple, kwargs: dict[str, Any]) -> Any:
    name, out = ufunc.__name__, kwargs.pop("out", None)
    kwargs = {key: x for key, x in kwargs.items() if not _says_nothing(key, x)}
    unknown = sorted(set(kwargs) - KEYWORDS.get(method, set()))
    if unknown or method not in KEYWORDS:
        feature = f"{unknown[0]}=" if unknown else f"its {method}"
        raise UntraceableError(f"np.{name} with {feature} does not trace{caller()}")
    for x, y in (inputs, inputs[::-1]) if len(inputs) == 2 else ():
        if type(x) is Symbol:
            refuse_narrow(x, y)
    operands = [_operand(x) for x in inputs]
    if name.startswith("logical_"):
        operands = [_operand(np.frompyfunc(truth, 1, 1)(x)) for x in operands]
    elif name == "invert" or name.startswith("bitwise_"):
        for x in operands:
            if not all(isinstance(y, (Condition, bool, np.bool_)) for y in np.ravel(np.asarray(x, object)).tolist()):
                raise UntraceableError(f"np.{name} traces for conditions only{caller()}")
    if name in NATIVE:
        function: Any = ufunc
    else:
        python = UNARY.get(name) or BINARY.get(name) or TERNARY.get(name)
        if python is None:
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


def _without_an_array(self, func, types, args, kwargs):
    """numpy's function of lone symbols and conditions."""
    if SymbolArray in types:
        return NotImplemented
    return _row(func, args, kwargs)


Symbol.__array_function__ = Condition.__array_function__ = _without_an_array


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


def holds(condition: Any) -> bool:
    """Whether a condition holds everywhere; what is not known yet is required, and taken to hold."""
    if not has_symbols(condition):
        return bool(np.all(condition))
    for x in _elements(condition).ravel().tolist():
        require(x)
    return True
