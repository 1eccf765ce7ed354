"""`SymbolArray`: arrays of symbols on which numpy works, so that a controller's own numpy code runs unchanged.

A `SymbolArray` holds symbols and numbers. Numpy's elementwise functions, products, sums, reshaping and stacking work as
on any array. Operations that need the numbers raise `UntraceableError` with file and line. `patched_numpy` replaces
other functions while a law is traced.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from .dtypes import CAST, FITS, dtype_of, in_known_order, is_float, is_whole, known_dtype, of_one_dtype
from .entries import as_entry, as_number
from .graph import called_by_user
from .indices import known_index, possible_keys
from .operators import leak
from .requirements import on_symbols as on_symbols
from .selected import Selected, connect, refresh
from .symbols import (
    INT64,
    Condition,
    Symbol,
    UntraceableError,
    add,
    as_numpy,
    as_python,
    caller,
    is_symbol,
    where,
    with_kind,
)
from .untraceable import LISTED
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
            return _selected(self, key, keys)
        if isinstance(key, SymbolArray) and key.size and dtype_of(key).kind == "i":
            rows = [elements(self[i]) for i in key.ravel().tolist()]
            return entered(np.stack(rows).reshape(key.shape + self.shape[1:]))
        return _numpy_number(super().__getitem__(known_index(key)))

    def dot(self, b, out=None):
        return np.dot(self, b, out=out)

    def searchsorted(self, v, side="left", sorter=None):
        return np.searchsorted(self, v, side, **({} if sorter is None else {"sorter": sorter}))  # pyright: ignore


class SymbolArray(TracedArray):
    """An array of symbols, conditions and numbers (dtype object); `ufuncs` defines numpy's elementwise functions.

    selection: the array and the key, if this is a part that an integer symbol selects.
    """

    selection: tuple[np.ndarray, Any]

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

    def view(self, *args, **kwargs):
        kinds = (*args, *kwargs.values())
        if all(isinstance(x, type) and issubclass(x, np.ndarray) for x in kinds):
            return super().view(*args, **kwargs)
        if len(kinds) == 1 and np.dtype(kinds[0]) == dtype_of(self):
            return super().view()
        raise UntraceableError(f"the memory of an array of symbols is viewed as another type{caller()}: write x.astype")

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
            array, place = selection
            part = self.copy()
            part[key] = value
            array[place] = part
            return
        self._write(key, value)
        refresh(self)

    def _write(self, key: Any, value: Any) -> None:
        if (keys := possible_keys(key, self.shape)) is not None:
            value = _stored(value, self)
            for condition, k in keys:
                chosen = np.frompyfunc(lambda x, y, c=condition: as_entry(where(c, x, y)), 2, 1)
                super().__setitem__(k, chosen(elements(value), elements(super().__getitem__(k))))
            return
        if not _is_mask(key):
            super().__setitem__(known_index(key), _stored(value, self))
            return
        value = _stored(value.of(self, key) if isinstance(value, Selected) else value, self)
        if np.ndim(value) and np.shape(value) != self.shape:
            raise UntraceableError(f"a condition selects where an array is written{caller()}: use np.where")
        chosen = np.frompyfunc(where, 3, 1)(*map(elements, (key, value, self)))
        super().__setitem__(..., entered(np.asarray(chosen, object)))

    def astype(self, dtype, *args, **kwargs):
        if np.dtype(dtype) == object and called_by_user():
            raise UntraceableError(f"an array of symbols is converted to objects{caller()}: write x.astype(float)")
        return wrapped(np.frompyfunc(CAST[known_dtype(dtype)], 1, 1)(self.view(np.ndarray)))

    def argmax(self, axis=None):
        return np.argmax(self, axis=axis)

    def nonzero(self):
        return np.nonzero(self)

    def argmin(self, axis=None):
        return np.argmin(self, axis=axis)

    def argsort(self, axis=-1, kind=None, *, stable=None):
        return np.argsort(self, axis, kind, **({} if stable is None else {"stable": stable}))

    def sort(self, axis=-1, kind=None):
        self[...] = np.sort(self, axis, kind)

    def round(self, decimals=0):
        return np.round(self, decimals)

    def sum(self, axis=None, dtype=None, out=None, keepdims=False, **options):
        return np.sum(self, axis=axis, dtype=dtype, out=out, keepdims=keepdims, **options)

    def max(self, axis=None, out=None, keepdims=False, **options):
        return np.max(self, axis=axis, out=out, keepdims=keepdims, **options)

    def min(self, axis=None, out=None, keepdims=False, **options):
        return np.min(self, axis=axis, out=out, keepdims=keepdims, **options)

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


def _selected(array: np.ndarray, key: Any, keys: list[tuple[Any, Any]]) -> Any:
    """The entry or part of an array that an integer symbol selects. A part follows the array, and writes into it."""

    def entries() -> Any:
        integer, (_, first), *others = dtype_of(array).kind == "i", *keys
        part = elements(np.ndarray.__getitem__(array, first))
        for condition, k in others:
            choose = np.frompyfunc(lambda x, y, c=condition: where(c, x, y), 2, 1)
            part = choose(elements(np.ndarray.__getitem__(array, k)), elements(part))
        typed = np.frompyfunc(lambda x: as_entry(with_kind(as_numpy(x), INT64) if integer else as_numpy(x)), 1, 1)
        return typed(elements(part))

    part = entries()
    if not isinstance(part, np.ndarray):
        return _numpy_number(part)
    part = entered(part)
    part.selection = array, key
    connect(part, array, entries)
    return part


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
    **dict.fromkeys(("partition", "argpartition"), "is ordered in place: write x.sort()"),
    **dict.fromkeys(("choose", "compress", "put", "setfield", "getfield", "byteswap"), "needs values"),
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


OF_VECTORS = "signs and order of eigenvectors are arbitrary; np.linalg.eigvalsh has the eigenvalues, and np.linalg.inv,"
OF_VECTORS += " solve and cholesky replace most other uses"
INSTEAD = {
    "np.linalg.eig": OF_VECTORS,
    "np.linalg.eigvals": "write np.linalg.eigvalsh for a symmetric matrix",
    "np.unique": "the number of different values is unknown; compare with np.isclose, or sort with np.sort",
    "np.partition": "write np.sort",
    "np.linalg.qr": "the signs of its factors are arbitrary; write np.linalg.solve, lstsq or cholesky",
}


def row_of(func: Any, args: Any, kwargs: Any) -> Any:
    """Call the implementation of a numpy function in the table of `functions`."""
    row = ROWS.get(func)
    if row is None:
        raise UntraceableError(f"{name_of(func)} can not be traced{caller()}: {INSTEAD.get(name_of(func), LISTED)}")
    try:
        with np.errstate(all="ignore"):
            return row.result(row(*args, **kwargs))
    except UntraceableError:
        raise
    except (TypeError, AttributeError, np.linalg.LinAlgError) as error:
        raise UntraceableError(f"{name_of(func)} can not be traced{caller()} ({error}): {LISTED}") from None


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
    kind = type(x)  # `isinstance` asks the object, which may be a dead weak proxy
    return x.dtype.hasobject if issubclass(kind, np.ndarray) else issubclass(kind, (Symbol, Condition))


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


def operand(x: Any) -> Any:
    """An operand of an elementwise function: a symbol becomes an array of one, numbers become Python numbers."""
    if isinstance(x, (Symbol, Condition)):
        out = np.empty((), object)
        out[()] = x
        return out
    x = plain(x)
    return np.asarray(x).astype(object) if isinstance(x, np.ndarray) and x.dtype != object else x


def sum_from_zero(x: Any) -> Any:
    """The result of sums, which numpy starts at 0.0: they are never -0.0."""
    return np.frompyfunc(_plus_zero, 1, 1)(operand(x))


def _plus_zero(x: Any) -> Any:
    if is_symbol(x):
        return x if is_whole(x) else with_kind(add(x, 0.0), x.kind)
    return x + 0.0 if isinstance(x, float) else x


def elements(x: Any) -> np.ndarray:
    """x as a plain array of Python numbers and symbols."""
    return operand(x) if has_symbols(x) else np.asarray(plain(x)).astype(object)


def _without_an_array(self, func, types, args, kwargs):
    """A numpy function applied to single symbols and conditions."""
    if SymbolArray in types:
        return NotImplemented
    return row_of(func, args, kwargs)


Symbol.__array_function__ = Condition.__array_function__ = _without_an_array
