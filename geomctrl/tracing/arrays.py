"""`SymbolArray`: arrays of symbols on which numpy works, so that a controller's own numpy code runs unchanged.

A `SymbolArray` holds symbols and numbers. Numpy's elementwise functions, products, sums, reshaping and stacking work as
on any array. Operations that need the numbers raise `UntraceableError` with file and line. `patched_numpy` replaces
other functions while a law is traced.
"""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import Any

import numpy as np

from .dtypes import CAST, FITS, dtype_of, in_known_order, is_float, is_truth, is_whole, known_dtype, of_one_dtype
from .elementwise import BINARY, TERNARY, UNARY
from .entries import as_entry, as_number, refuse_narrow
from .graph import called_by_user
from .indices import known_index, possible_keys
from .operators import exact, leak, number_of
from .requirements import on_symbols as on_symbols
from .requirements import require
from .selected import Selected
from .symbols import (
    INT64,
    Condition,
    Symbol,
    UntraceableError,
    add,
    as_numpy,
    as_python,
    caller,
    invert,
    is_symbol,
    kind_of,
    relation,
    truth,
    where,
    with_kind,
)

from .untraceable_attribute import Unavailable


class TracedArray(np.ndarray):
    """An array whose operators and methods take lists of symbols; for user code its class is np.ndarray."""

    __class__ = property(lambda self: np.ndarray if called_by_user() else type(self))  # pyright: ignore

    def __contains__(self, x):
        return bool(np.any(self == x))

    def __getitem__(self, key) -> Any:
        if _is_mask(key):
            return Selected(self, key)
        if (keys := possible_keys(key, self.shape)) is not None:
            return _selected(self, key, [(condition, super(TracedArray, self).__getitem__(k)) for condition, k in keys])
        if isinstance(key, SymbolArray) and key.size and dtype_of(key).kind == "i":
            rows = [elements(self[i]) for i in key.ravel().tolist()]
            return entered(np.stack(rows).reshape(key.shape + self.shape[1:]))
        return _numpy_number(super().__getitem__(known_index(key)))

    def dot(self, b, out=None):
        return np.dot(self, b, out=out)

    def searchsorted(self, v, side="left", sorter=None):
        return np.searchsorted(self, v, side, **({} if sorter is None else {"sorter": sorter}))  # pyright: ignore


class SymbolArray(TracedArray):
    """An array of symbols, conditions and numbers (dtype object)."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return ufunc_on_symbols(ufunc, method, inputs, kwargs)

    def __array_function__(self, func, types, args, kwargs):
        return row_of(func, plain(args), plain(kwargs))

    def __float__(self):
        return float(self.item())

    def item(self, *args):
        return _python_kind(super().item(*args))

    def tolist(self):
        return _python_kind(super().tolist())

    def __pow__(self, exponent):
        simple = {0.5: np.sqrt, 2: np.square, -1: np.reciprocal, 1: np.positive}  # numpy uses these for such powers
        is_simple = isinstance(exponent, (int, float)) and exponent in simple
        return simple[exponent](self) if is_simple else np.power(self, exponent)

    def fill(self, value):
        self[...] = value

    @property
    def flat(self) -> Any:  # reads and writes like other views of the entries
        return self.reshape(-1)

    @flat.setter
    def flat(self, value) -> None:
        raise UntraceableError(f"x.flat = y can not be traced{caller()}: write x[...] = y")

    def __iter__(self):
        return map(_numpy_number, super().__iter__())

    def __setitem__(self, key, value):
        if (selection := vars(self).get("selection")) is not None:
            return _write_selected(self, key, value, *selection)
        if (keys := possible_keys(key, self.shape)) is not None:
            value = _stored(value, self)
            for condition, k in keys:
                chosen = np.frompyfunc(lambda x, y, c=condition: as_entry(where(c, x, y)), 2, 1)
                super().__setitem__(k, chosen(elements(value), elements(super().__getitem__(k))))
            return None
        if not _is_mask(key):
            return super().__setitem__(known_index(key), _stored(value, self))
        value = _stored(value.of(self, key) if isinstance(value, Selected) else value, self)
        if np.ndim(value) and np.shape(value) != self.shape:
            raise UntraceableError(f"a condition selects where an array is written{caller()}: use np.where")
        chosen = np.frompyfunc(where, 3, 1)(*map(elements, (key, value, self)))
        return super().__setitem__(..., entered(np.asarray(chosen, object)))

    def astype(self, dtype, *args, **kwargs):
        return wrapped(np.frompyfunc(CAST[known_dtype(dtype)], 1, 1)(self.view(np.ndarray)))

    def argmax(self, axis=None):
        return np.argmax(self, axis=axis)

    def argmin(self, axis=None):
        return np.argmin(self, axis=axis)

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

    def copy(self, order="C"):  # remains a SymbolArray where numpy would return a plain array
        return self.view(np.ndarray).copy(order).view(SymbolArray)


def _selected(array: np.ndarray, key: Any, values: list[tuple[Any, Any]]) -> Any:
    """The entry or part of an array that an integer symbol selects. A part is a copy that writes into the array."""
    dtype, (_, first), *others = dtype_of(array), *values
    part = elements(first)
    for condition, x in others:
        part = np.frompyfunc(lambda x, y, c=condition: where(c, x, y), 2, 1)(elements(x), elements(part))
    typed = np.frompyfunc(lambda x: with_kind(as_numpy(x), INT64) if dtype.kind == "i" else as_numpy(x), 1, 1)
    part = typed(elements(part))
    if not isinstance(part, np.ndarray):
        return _numpy_number(part)
    part = entered(part)
    part.selection = array, key
    part.flags.writeable = False  # parts of it are not connected with the array
    return part


def _write_selected(part: Any, key: Any, value: Any, array: np.ndarray, place: Any) -> None:
    now = part.copy()
    now[key] = value
    array[place] = now
    part.flags.writeable = True
    part.view(np.ndarray)[...] = now
    part.flags.writeable = False


def _numpy_number(x: Any) -> Any:
    """An entry of an array as a number: Python numbers are converted to numpy's types."""
    kind = type(x)
    return (
        np.float64(x)
        if kind is float
        else np.int64(x)
        if kind is int
        else np.bool_(x)
        if kind is bool
        else as_number(x)
    )


SymbolArray.ravel, SymbolArray.flatten = map(in_known_order, ("ravel", "flatten"))  # pyright: ignore
REFUSED = {
    **dict.fromkeys(("sort", "argsort", "partition", "argpartition"), "is ordered"),
    **dict.fromkeys(("nonzero", "choose", "compress", "put", "setfield", "getfield", "byteswap"), "needs values"),
    **dict.fromkeys(("tobytes", "tofile", "dump", "dumps", "__bytes__", "__buffer__"), "is used as bytes"),
    **dict.fromkeys(("__str__", "__repr__", "__format__"), "is written as text"),
    **dict.fromkeys(("__int__", "__index__"), "is used as an integer"),
    **dict.fromkeys(("__reduce__", "__reduce_ex__", "__getstate__"), "is stored"),
    "__complex__": "is used as a complex number",
}
for _name, _how in REFUSED.items():
    setattr(SymbolArray, _name, leak("an array of symbols", _how))


def _python_kind(x: Any) -> Any:
    if isinstance(x, list):
        return [_python_kind(y) for y in x]
    return x.item() if isinstance(x, np.generic) else as_python(x)


def row_of(func: Any, args: Any, kwargs: Any) -> Any:
    """Call the implementation of a numpy function in the table of `functions`."""
    row = ROWS.get(func)
    if row is None:
        raise UntraceableError(f"{name_of(func)} can not be traced{caller()}")
    try:
        with np.errstate(all="ignore"):
            return row.result(row(*args, **kwargs))
    except UntraceableError:
        raise
    except (TypeError, AttributeError, np.linalg.LinAlgError) as error:
        raise UntraceableError(f"{name_of(func)} can not be traced{caller()} ({error})") from None


def name_of(function: Any) -> str:
    """The name by which users call a numpy function."""
    return f"{function.__module__}.{function.__name__}".replace("numpy", "np").replace("._core", "")


ROWS: dict[Any, Any] = {}  # filled by `functions`


def symbol_array(symbols: Any, shape: tuple[int, ...]) -> SymbolArray:
    return entered(np.fromiter(map(as_numpy, symbols), object, len(symbols)).reshape(shape))


def entered(x: Any) -> SymbolArray:
    """A plain array of symbols and numbers as a SymbolArray."""
    out = np.empty(x.shape, object)
    out.ravel()[:] = [as_entry(y) for y in x.view(np.ndarray).ravel().tolist()]
    return out.view(SymbolArray)


def _is_mask(key: Any) -> bool:
    return isinstance(key, SymbolArray) and dtype_of(key).kind == "b" and key.size > 0


def has_symbols(x: Any) -> bool:
    """Whether an argument may hold symbols: a symbol, or an array that is not numeric."""
    return x.dtype.hasobject if isinstance(x, np.ndarray) else isinstance(x, (Symbol, Condition))


def holds_symbols(x: Any) -> bool:
    """Whether x contains symbols; arrays of objects are searched."""
    return has_symbols(x) and (not isinstance(x, np.ndarray) or type(x) is SymbolArray or any(map(is_symbol, x.flat)))


def wrapped(result: Any) -> Any:
    """The result of a numpy function with entries of one numpy kind."""
    if type(result) is Unavailable:
        return result
    if isinstance(result, np.ndarray) and result.dtype == object:
        entries = np.ndarray.ravel(result).view(np.ndarray).tolist()
        own = [as_entry(x) for x in of_one_dtype([as_numpy(x) for x in entries])]
        others = [(k, y) for k, (x, y) in enumerate(zip(entries, own)) if x is not y]
        result = result.copy() if others and not result.flags.writeable else result
        for k, y in others:
            np.ndarray.flat.__get__(result)[k] = y
        return result.view(SymbolArray)
    if isinstance(result, (tuple, list)) and not hasattr(result, "_fields"):
        return type(result)(wrapped(x) for x in result)
    return as_numpy(_numpy_number(result))


def _stored(value: Any, array: np.ndarray) -> Any:
    """A value converted for storage in an array."""
    symbols = has_symbols(value)
    if not symbols and not (isinstance(value, SEQUENCES) and holds_any(value)) and is_float(array):
        return value
    dtype = dtype_of(array)
    cast = np.frompyfunc(lambda x: as_entry(CAST[dtype](x)), 1, 1)
    if dtype != np.float64 and np.size(array) and not all(map(FITS[dtype], elements(value).ravel().tolist())):
        raise UntraceableError(f"a float is written into an array of {dtype}{caller()}: create it with dtype=float")
    return cast(elements(value))


SEQUENCES = (tuple, list, deque)  # that numpy converts to arrays


def holds_any(x: Any) -> bool:
    return any(map(holds_any, x)) if isinstance(x, SEQUENCES) else has_symbols(x)


def plain(x: Any) -> Any:
    """x as plain numpy arrays; symbols in lists remain, arrays of one symbol become that symbol."""
    if isinstance(x, TracedArray):
        return x.view(np.ndarray)
    if isinstance(x, dict):
        return {key: plain(value) for key, value in x.items()}
    if isinstance(x, SEQUENCES):
        inner = [y.item() if isinstance(y, SymbolArray) and not y.ndim else plain(y) for y in x]
        return tuple(inner) if isinstance(x, tuple) else inner
    return x


def _operand(x: Any) -> Any:
    """An operand of an elementwise function: a symbol becomes an array of one, numbers become Python numbers."""
    if isinstance(x, (Symbol, Condition)):
        out = np.empty((), object)
        out[()] = x
        return out
    x = plain(x)
    return np.asarray(x).astype(object) if isinstance(x, np.ndarray) and x.dtype != object else x


NATIVE = {"matmul", "vecdot", "matvec", "vecmat"}  # numpy computes these from products and sums of symbols
KEYWORDS = {"__call__": set(), "outer": set(), "reduce": {"axis", "keepdims"}, "accumulate": {"axis"}}


OF_WHOLE = {"add", "subtract", "multiply", "negative", "positive", "absolute", "square", "sign", "maximum", "minimum"}
OF_WHOLE |= {"fmax", "fmin", "clip", "floor_divide", "remainder", "floor", "ceil", "trunc"}
FLOATING = {*UNARY, "divide", "arctan2", "hypot", "copysign", "float_power", "heaviside", "less", "less_equal", "equal"}
FLOATING |= {"greater", "greater_equal", "not_equal", "logical_and", "logical_or", "logical_xor", *NATIVE}
FLOATING -= {*OF_WHOLE, "reciprocal", "conjugate", "invert"}


def _kind_of_operand(x: Any) -> str:
    return dtype_of(x).kind if isinstance(x, np.ndarray) else "i" if is_whole(x) else "b" if is_truth(x) else "f"


def _has_no_effect(key: str, x: Any) -> bool:
    """Whether a keyword has no effect, such as a dtype of double or a mask that selects all entries.

    `axis=None` has an effect: without it, `reduce` works along the first axis.
    """
    if key == "axis":
        return x is np._NoValue
    if key == "dtype":
        return x is None or x in (float, np.float64, object, bool)
    return x is None or x is np._NoValue or (x is True and key in ("where", "subok")) or x in ("same_kind", "K")


def ufunc_on_symbols(ufunc: np.ufunc, method: str, inputs: tuple, kwargs: dict[str, Any]) -> Any:
    name, out = ufunc.__name__, kwargs.pop("out", None)
    if name == "divmod" and method == "__call__" and out is None and not kwargs:
        return np.floor_divide(*inputs), np.remainder(*inputs)
    kwargs = {key: x for key, x in kwargs.items() if not _has_no_effect(key, x)}
    unknown = sorted(set(kwargs) - KEYWORDS.get(method, set()))
    if unknown or method not in KEYWORDS:
        feature = f"{unknown[0]}=" if unknown else f"its {method}"
        raise UntraceableError(f"np.{name} with {feature} can not be traced{caller()}")
    for x, y in (inputs, inputs[::-1]) if len(inputs) == 2 else ():
        for one in x.view(np.ndarray).ravel()[:1].tolist() if type(x) is SymbolArray else [x]:
            if type(one) in (Symbol, Condition):
                refuse_narrow(one, y)
    operands = [_operand(x) for x in inputs]
    if name.startswith("logical_"):
        operands = [_operand(np.frompyfunc(truth, 1, 1)(x)) for x in operands]
    elif name == "invert" or name.startswith("bitwise_"):
        for x in operands:
            if not all(isinstance(y, (Condition, bool, np.bool_)) for y in np.ravel(np.asarray(x, object)).tolist()):
                raise UntraceableError(f"np.{name} can be traced for boolean arguments only{caller()}")
    if name in NATIVE:
        function: Any = ufunc
    else:
        python = UNARY.get(name) or BINARY.get(name) or TERNARY.get(name)
        if python is None:
            raise UntraceableError(f"np.{name} of symbols can not be traced{caller()}")
        function = np.frompyfunc(python, ufunc.nin, 1, identity=ufunc.identity)
    if method in ("reduce", "accumulate") and name in ("add", "multiply"):  # numpy reduces booleans as integers
        operands = [_operand(np.frompyfunc(number_of, 1, 1)(operands[0])), *operands[1:]]
    kinds = set() if name in FLOATING else {*map(_kind_of_operand, operands)}
    if name in OF_WHOLE and kinds == {"b", "i"}:  # numpy converts truths beside integers to integers
        operands, kinds = [_operand(np.frompyfunc(_as_whole, 1, 1)(x)) for x in operands], {"i"}
    whole = kinds == {"i"}
    if whole and name not in OF_WHOLE:
        raise UntraceableError(f"np.{name} of integers can not be traced{caller()}: use floats, as in 1.0 * x")
    result = getattr(function, method)(*operands, **kwargs)
    if name in NATIVE or (name == "add" and method == "reduce"):
        result = sum_from_zero(result)
    if whole:
        for x in chain.from_iterable(elements(y).ravel().tolist() for y in operands):
            exact(x, kind_of(x))  # numpy raises if a Python int does not fit into 64 bits
        for x in elements(operands[1]).ravel().tolist() if name in ("floor_divide", "remainder") else ():
            require(invert(relation("eq", x, 0)))
        result = np.frompyfunc(lambda x: exact(x, INT64), 1, 1)(_operand(result))
    result = wrapped(result)
    if out is None:
        return result
    target = out[0]
    if not isinstance(target, np.ndarray) or target.dtype != object:
        raise UntraceableError(
            f"symbols are written into an array of numbers{caller()}: create the array in the law, or write x = x + y"
        )
    target[...] = result
    return target


def _as_whole(x: Any) -> Any:
    return int(x) if isinstance(x, (bool, np.bool_)) else number_of(x)


def sum_from_zero(x: Any) -> Any:
    """The result of sums, which numpy starts at 0.0: they are never -0.0."""
    return np.frompyfunc(_plus_zero, 1, 1)(_operand(x))


def _plus_zero(x: Any) -> Any:
    if is_symbol(x):
        return x if is_whole(x) else with_kind(add(x, 0.0), x.kind)
    return x + 0.0 if isinstance(x, float) else x


def elements(x: Any) -> np.ndarray:
    """x as a plain array of Python numbers and symbols."""
    return _operand(x) if has_symbols(x) else np.asarray(plain(x)).astype(object)


def _beside_an_array(self, ufunc, method, *inputs, **kwargs):
    return ufunc_on_symbols(ufunc, method, inputs, kwargs)


Symbol.__array_ufunc__ = Condition.__array_ufunc__ = _beside_an_array


def _without_an_array(self, func, types, args, kwargs):
    """A numpy function applied to single symbols and conditions."""
    if SymbolArray in types:
        return NotImplemented
    return row_of(func, args, kwargs)


Symbol.__array_function__ = Condition.__array_function__ = _without_an_array
