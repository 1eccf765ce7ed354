"""scipy's modules, functions and objects while user code runs with symbols: a table, and refusal of everything else.

User code reaches scipy by names of modules and functions. They are replaced in this thread, so that calls with symbols
use the table, and all others scipy. Interpolation objects are in `tables`, rotations in `rotations`.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from . import arrays, linear_algebra
from .arrays import SEQUENCES, SymbolArray, has_symbols, row_of, sum_from_zero
from .choices import entries
from .constant_arrays import ConstantArray, visible
from .dtypes import dtype_of
from .functions import NUMPY, Row, signature_of
from .requirements import on_symbols, require
from .rotations import SymbolicRotation, of_scipy, rotation_class
from .symbols import Condition, UntraceableError, add, caller, div, is_finite, is_symbol, neg, relation, unary, where
from .tables import splev
from .ufuncs import OF_SCIPY

CALLABLES = (FunctionType, MethodType, functools.partial)
MEMBERS = (FunctionType, BuiltinFunctionType, ModuleType, type, type(np.sum))


def replacement_in_scipy(x: Any, owner: int) -> Any:
    """What user code gets in place of a function, class or module of scipy in the thread `owner`; None for x itself."""
    if not issubclass(type(x), MEMBERS) or not f"{_module(x)}.".startswith("scipy."):
        return None
    if isinstance(x, ModuleType):
        return _Scipy(x, owner)
    if isinstance(x, type):
        return SymbolicRotation if x is rotation_class() else None
    return _Function(x, owner)


def _module(x: Any) -> str:
    return x.__name__ if isinstance(x, ModuleType) else getattr(x, "__module__", None) or ""


class _Scipy(ModuleType):
    """A module of scipy whose members are replaced."""

    def __init__(self, module: ModuleType, owner: int):
        super().__init__(module.__name__)
        self.__dict__.update(_module=module, _owner=owner)

    def __getattr__(self, name: str) -> Any:
        x = getattr(self._module, name)
        replacement = replacement_in_scipy(x, self._owner)
        return x if replacement is None or threading.get_ident() != self._owner else replacement


class _Function:
    """A function of scipy: by the table for symbols, else its own result."""

    def __init__(self, function: Any, owner: int):
        functools.update_wrapper(self, function)
        self._function, self._owner = function, owner

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() != self._owner or not on_symbols():
            return self._function(*args, **kwargs)
        values = (*args, *kwargs.values())
        if any(isinstance(x, CALLABLES) for x in values):
            raise UntraceableError(
                f"{public_name(self._function)} calls other functions and can not be traced{caller()}: write its steps"
                " as a loop of constant length, or compute the result before the run"
            )
        if any(map(depends, values)):
            _fill_table()
            if self._function not in arrays.ROWS:
                raise UntraceableError(
                    f"{public_name(self._function)} can not be traced{caller()}: compute it from constants before the"
                    " run, or write it with functions of numpy"
                )
            return row_of(self._function, arrays.plain(args), arrays.plain(kwargs))
        result = self._function(*map(constant, args), **{key: constant(x) for key, x in kwargs.items()})
        return of_scipy(result) if type(result) is rotation_class() else visible(result)


def public_name(function: Any) -> str:
    """The name by which users call a function of scipy."""
    parts = [x for x in function.__module__.split(".") if x[0] != "_"]
    return ".".join([*parts, function.__name__])


def depends(x: Any) -> bool:
    """Whether an argument holds symbols."""
    if isinstance(x, dict):
        return any(map(depends, x.values()))
    if isinstance(x, SEQUENCES):
        return any(map(depends, x))
    if isinstance(x, np.ndarray) and x.dtype == object:
        return any(is_symbol(y) or isinstance(y, Condition) for y in entries(x).ravel().tolist())
    return has_symbols(x)


def constant(x: Any) -> Any:
    """An argument that holds no symbols, as scipy gets it outside of a trace."""
    if isinstance(x, SymbolArray):
        return np.array(x.view(np.ndarray).tolist(), dtype_of(x)).reshape(x.shape)
    if isinstance(x, ConstantArray):
        return x.view(np.ndarray)
    if isinstance(x, SEQUENCES):
        return type(x)(map(constant, x)) if not hasattr(x, "_fields") else x
    return x


# --- the table -----------------------------------------------------------------------------------------------------


def _symmetric(a: Any, lower: bool) -> np.ndarray:
    """The symmetric matrix of one triangle, which is all that LAPACK reads."""
    a = np.array(entries(a))
    for i in range(len(a)):
        for j in range(i):
            a[(j, i) if lower else (i, j)] = a[(i, j) if lower else (j, i)]
    return a


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that raises if an argument or the result is not finite."""

    @functools.wraps(function)
    def result(*args: Any, **kwargs: Any) -> Any:
        for x in _symbols_in((args, tuple(kwargs.values()))):
            require(is_finite(x))
        value = function(*args, **kwargs)
        for x in _symbols_in(value):
            require(is_finite(x))
        return value

    return result


def _symbols_in(x: Any) -> Iterator[Any]:
    if isinstance(x, SEQUENCES):
        for y in x:
            yield from _symbols_in(y)
    elif has_symbols(x):
        yield from filter(is_symbol, entries(x).ravel().tolist())


def _factor(a: Any, lower: bool) -> np.ndarray:
    L = linear_algebra.cholesky(_symmetric(a, lower))
    return L if lower else L.T


def _substituted(T: np.ndarray, b: Any, lower: bool) -> np.ndarray:
    """x with T x = b for a triangular matrix T, whose other triangle is not read."""
    B = np.array(entries(b))
    X = B.reshape(len(T), -1).copy()
    n = len(T)
    for i in range(n) if lower else reversed(range(n)):
        for j in range(i) if lower else range(i + 1, n):
            X[i] = X[i] - T[i, j] * X[j]
        X[i] = X[i] / T[i, i]
    return X.reshape(B.shape)


def solve(a, b, lower=False, overwrite_a=False, overwrite_b=False, check_finite=True, assume_a="gen", transposed=False):
    del overwrite_a, overwrite_b, check_finite
    if assume_a in ("pos", "positive definite"):
        return cho_solve((_factor(a, lower), lower), b)
    if assume_a in ("sym", "symmetric", "her", "hermitian"):
        a = _symmetric(a, lower)
    elif assume_a not in ("gen", "general", None):
        raise TypeError(f"assume_a={assume_a!r}: write 'gen', 'sym' or 'pos'")
    return linear_algebra.solve(np.transpose(a) if transposed else a, b)


def cho_factor(a, lower=False, overwrite_a=False, check_finite=True):
    del overwrite_a, check_finite
    factor, c = _factor(a, lower), np.array(entries(a))
    inside = np.tri(len(c), dtype=bool) if lower else np.tri(len(c), dtype=bool).T
    c[inside] = factor[inside]  # LAPACK leaves the other triangle as it was
    return c, lower


def cho_solve(c_and_lower, b, overwrite_b=False, check_finite=True):
    del overwrite_b, check_finite
    c, lower = c_and_lower
    c = entries(c)
    L = c if lower else c.T
    return _substituted(L.T, _substituted(L, b, True), False)


def cholesky(a, lower=False, overwrite_a=False, check_finite=True):
    del overwrite_a, check_finite
    return _factor(a, lower)


def solve_triangular(a, b, trans=0, lower=False, unit_diagonal=False, overwrite_b=False, check_finite=True):
    del overwrite_b, check_finite
    T = np.array(entries(a))
    if unit_diagonal:
        T[np.eye(len(T), dtype=bool)] = 1.0
    return _substituted(T.T if trans in (1, "T") else T, b, bool(lower) != (trans in (1, "T")))


def block_diag(*arrs):
    blocks = [np.atleast_2d(entries(x)) for x in arrs]
    out = np.zeros(tuple(np.sum([x.shape for x in blocks], axis=0))).astype(object)
    row = column = 0
    for x in blocks:
        out[row : row + x.shape[0], column : column + x.shape[1]] = x
        row, column = row + x.shape[0], column + x.shape[1]
    return out


def toeplitz(c, r=None):
    c = np.ravel(entries(c))
    r = c if r is None else np.ravel(entries(r))
    values = [*c[::-1].tolist(), *r[1:].tolist()]
    return np.array([values[len(c) - 1 - k :][: len(r)] for k in range(len(c))], object)


def logsumexp(a, axis=None):
    a = entries(a).view(SymbolArray)
    largest = np.max(a, axis=axis, keepdims=True)
    total = np.log(np.sum(np.exp(a - largest), axis=axis, keepdims=True)) + largest
    return np.squeeze(total, axis)


def lfilter(b, a, x, axis=-1, zi=None):
    """The filter in transposed direct form II along an axis."""
    b, a = (np.atleast_1d(np.asarray(entries(y))) for y in (b, a))
    n = max(len(b), len(a))
    b, a = (np.append(y, np.zeros(n - len(y))) / a[0] for y in (b, a))
    signal = np.moveaxis(entries(x), axis, 0)
    memory = np.zeros((n - 1, *signal.shape[1:])) if zi is None else np.moveaxis(entries(zi), axis, 0)
    memory, filtered = list(memory), []
    for sample in signal:
        y = b[0] * sample + (memory[0] if memory else 0.0)
        following = [*memory[1:], np.zeros(np.shape(sample))]
        memory = [b[k + 1] * sample - a[k + 1] * y + following[k] for k in range(n - 1)]
        filtered.append(y)
    result = np.moveaxis(np.array(filtered, object), 0, axis)
    return result if zi is None else (result, np.moveaxis(np.array(memory, object), 0, axis))


def sosfilt(sos, x, axis=-1, zi=None):
    """The filters of the sections, one after the other."""
    sos = entries(sos)
    if sos.ndim != 2 or sos.shape[1] != 6 or any(is_symbol(y) or y != 1.0 for y in sos[:, 3].tolist()):
        raise ValueError("sos array must be shape (n_sections, 6) with sos[:, 3] == 1")
    memory = []
    for k, section in enumerate(sos):
        x = lfilter(section[:3], section[3:], x, axis, None if zi is None else entries(zi)[k])
        if zi is not None:
            x, last = x
            memory.append(last)
    return x if zi is None else (x, np.array(memory, object))


def _linear(name: str, position: int) -> Callable[..., Any]:
    """A function that is linear in one signal: the sum of its results for the entries, for constant other arguments."""

    def meaning(*args, **kwargs):
        module, _, own = name.rpartition(".")
        function, signal = getattr(sys.modules[module], own), entries(args[position])
        if signal.ndim != 1 or any(map(depends, [*args[:position], *args[position + 1 :], *kwargs.values()])):
            raise TypeError("only one signal can depend on the state")
        results = [function(*args[:position], row, *args[position + 1 :], **kwargs) for row in np.eye(len(signal))]
        return sum_from_zero(sum(x * y for x, y in zip(signal.tolist(), results)))

    return meaning


def _expit(x: Any) -> Any:
    e = unary("exp", neg(unary("abs", x)))
    return div(where(relation("lt", x, 0.0), e, 1.0), add(1.0, e))


SCIPY: dict[str, Callable[..., Any]] = {
    "scipy.linalg.solve": solve,
    "scipy.linalg.inv": lambda a, overwrite_a=False, check_finite=True: linear_algebra.inverse(a),
    "scipy.linalg.det": lambda a, overwrite_a=False, check_finite=True: linear_algebra.determinant(a),
    "scipy.linalg.pinv": lambda a: linear_algebra.pseudo_inverse(a),
    "scipy.linalg.lstsq": lambda a, b: linear_algebra.least_squares(a, b, None, True),
    "scipy.linalg.norm": lambda a, ord=None, axis=None, keepdims=False: NUMPY[np.linalg.norm](a, ord, axis, keepdims),
    "scipy.linalg.svdvals": lambda a: linear_algebra.singular_values(a),
    "scipy.linalg.cholesky": cholesky,
    "scipy.linalg.cho_factor": cho_factor,
    "scipy.linalg.cho_solve": cho_solve,
    "scipy.linalg.solve_triangular": solve_triangular,
    "scipy.linalg.block_diag": block_diag,
    "scipy.linalg.toeplitz": toeplitz,
    "scipy.special.logsumexp": logsumexp,
    "scipy.interpolate.splev": splev,
    "scipy.signal.lfilter": lfilter,
    "scipy.signal.sosfilt": sosfilt,
    "scipy.signal.savgol_filter": lambda x, window_length, polyorder, deriv=0, delta=1.0, mode="interp": _LINEAR[0](
        x, window_length, polyorder, deriv, delta, mode=mode
    ),
    "scipy.signal.detrend": lambda data, type="linear": _LINEAR[1](data, type=type),
    "scipy.signal.filtfilt": lambda b, a, x: _LINEAR[2](b, a, x),
}
_LINEAR = [_linear(f"scipy.signal.{name}", k) for name, k in (("savgol_filter", 0), ("detrend", 0), ("filtfilt", 2))]
UNCHECKED = ("block_diag", "toeplitz", "splev", "lfilter", "sosfilt")


OF_SCIPY["expit"] = _expit


def _fill_table() -> None:
    """Add the entries of modules that have been imported by now."""
    for path, meaning in SCIPY.items():
        module, _, name = path.rpartition(".")
        function = getattr(sys.modules.get(module), name, None)
        if function is not None and function not in arrays.ROWS:
            checked = meaning if name in UNCHECKED else _checked(meaning)
            arrays.ROWS[function] = Row(function, path, signature_of(meaning), checked)
