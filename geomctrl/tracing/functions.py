"""Tables of the functions of numpy and math that can be traced, with their arguments and implementations.

An entry of NUMPY is a Python function whose parameters are the supported arguments; any other is refused by name. An
entry of NATIVE is a numpy function that only moves entries, or uses only their operators, and therefore works on arrays
of symbols; its text lists the supported arguments. Elementwise functions are in `arrays`, those of math in
`patched_numpy`. A function in no table is refused.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from . import arrays, linear_algebra
from .choices import (
    argmax,
    argmin,
    choose,
    clip,
    compress,
    count_nonzero,
    digitize,
    each,
    entries,
    interp,
    isclose,
    isin,
    nan_to_num,
    nonzero,
    piecewise,
    place,
    put,
    putmask,
    refused,
    searchsorted,
    select,
    symbolic,
    take_along_axis,
    unravel_index,
    where_,
)
from .dtypes import dtype_of, refuse_common, result_type
from .norms import matrix_rank, norm, slogdet, vector_norm
from .operators import rounded
from .ordering import argsort, median, quantile, sort
from .reductions import REDUCTIONS
from .requirements import require
from .selected import refresh
from .symbols import (
    UntraceableError,
    as_python,
    both,
    caller,
    is_finite,
    is_symbol,
    relation,
)


def _all(conditions: Any) -> Any:
    return functools.reduce(both, entries(conditions).ravel().tolist(), True)


def sinc(x: Any) -> Any:
    y = np.pi * symbolic(x)
    y = symbolic(where_(np.equal(y, 0.0), np.finfo(float).eps, y))
    return np.divide(symbolic(np.sin(y)), y)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y = np.moveaxis(entries(y), axis, -1)
    d = symbolic(dx if x is None else np.diff(entries(x)))
    return symbolic(d * (y[..., 1:] + y[..., :-1]) / 2.0).sum(axis=-1)


def gradient(f: Any, *spacing: Any, axis: Any = None) -> Any:
    f, h = symbolic(f), spacing[0] if spacing else 1.0
    if (f.ndim != 1 and axis is None) or np.ndim(axis) or len(spacing) > 1 or np.ndim(h):
        refused("np.gradient can be traced only along one axis with uniform spacing")
    f = np.moveaxis(f, axis or 0, 0)
    inner = (f[2:] - f[:-2]) / (2.0 * h)
    return np.moveaxis(np.concatenate([(f[1:2] - f[:1]) / h, inner, (f[-1:] - f[-2:-1]) / h]), 0, axis or 0)


def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2.0 * np.pi) -> Any:
    p = np.moveaxis(symbolic(p), axis, -1)
    steps, half = symbolic(np.diff(p)), period / 2.0
    turned = np.mod(steps + half, period) - half
    turned = where_(np.logical_and(symbolic(turned) == -half, steps > 0), half, turned)
    correction = symbolic(turned) - steps
    limit = half if discont is None else max(discont, half)
    correction = symbolic(where_(np.abs(steps) < limit, 0.0, correction))
    return np.moveaxis(np.concatenate([p[..., :1], p[..., 1:] + np.cumsum(correction, axis=-1)], axis=-1), -1, axis)


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, *, axis: int = 0) -> Any:
    start, stop = symbolic(start), symbolic(stop)
    step = np.divide(symbolic(stop - start), float(max(num - bool(endpoint), 1)))
    rows = [start + float(k) * symbolic(step) for k in range(num)]
    if endpoint and num > 1:
        rows[-1] = stop + np.zeros(np.shape(start))
    return np.stack([symbolic(x) for x in rows], axis)


def _cumulated(x: Any, axis: Any) -> Any:
    if axis is None and np.ndim(x) != 1:
        raise ValueError("For arrays which have more than one dimension ``axis`` argument is required.")
    return NUMPY[np.cumsum](x, axis)


def _with_result(function: Callable[..., Any]) -> Callable[..., Any]:
    """A numpy function that raises, or computes differently, if the result of this one is not finite."""

    @functools.wraps(function)
    def result(*args: Any, **kwargs: Any) -> Any:
        value = function(*args, **kwargs)
        for x in entries(value).ravel().tolist():
            require(is_finite(x))
        return value

    return result


_OF_SYMMETRIC = _with_result(linear_algebra.symmetric_eigenvalues)
JOIN = "join the parts with np.concatenate"


def pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Any:
    if arrays.has_symbols(constant_values):
        raise UntraceableError(f"np.pad with values that depend on the state can not be traced{caller()}: {JOIN}")
    if mode not in ("constant", "edge", "reflect", "symmetric", "wrap"):
        raise UntraceableError(f"np.pad with mode={mode!r} can not be traced{caller()}: {JOIN}")
    array, options = entries(array), {}
    if mode == "constant":
        options["constant_values"] = np.asarray(constant_values).astype(dtype_of(array))
    return _code(np.pad)(array, pad_width, mode, **options)


def polyfit(x: Any, y: Any, deg: int) -> Any:
    """The coefficients are linear in y."""
    if arrays.has_symbols(x) and any(map(is_symbol, entries(x).ravel().tolist())):
        refused("np.polyfit can be traced only for constant x")
    x, y = np.asarray(entries(x), float), entries(y)
    for number in y.ravel().tolist():
        require(is_finite(number))
    return np.dot(np.polyfit(x, np.eye(len(x)), deg), y)


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    for x in (to_end, to_begin):
        if x is not None and not np.can_cast(_dtype(x), _dtype(ary), "same_kind"):
            raise TypeError(f"np.ediff1d: expected ends of type {_dtype(ary)}, got {_dtype(x)}")
    return _code(np.ediff1d)(entries(ary), to_end, to_begin)


def _dtype(x: Any) -> np.dtype:
    """The type of the numeric array that numpy would make of x."""
    x = entries(x) if arrays.holds_any(x) else np.asarray(x)
    return dtype_of(x) if x.dtype == object else x.dtype


def matrix_power(a: Any, n: int) -> Any:
    return _code(np.linalg.matrix_power)(NUMPY[np.linalg.inv](a) if n < 0 else entries(a), abs(n))


NUMPY: dict[Any, Callable[..., Any]] = {
    np.where: where_,
    np.clip: clip,
    np.select: select,
    np.interp: interp,
    np.nan_to_num: nan_to_num,
    np.isclose: isclose,
    np.allclose: lambda a, b, rtol=1e-5, atol=1e-8: _all(isclose(a, b, rtol, atol)),
    np.array_equal: lambda a1, a2: (
        np.shape(a1) == np.shape(a2) and _all(each(lambda x, y: relation("eq", x, y), a1, a2))
    ),
    np.nonzero: nonzero,
    np.flatnonzero: lambda a: nonzero(entries(a).ravel())[0],
    np.argwhere: lambda a: np.transpose(nonzero(a)),
    np.piecewise: piecewise,
    np.argmax: argmax,
    np.argmin: argmin,
    np.searchsorted: searchsorted,
    np.digitize: digitize,
    np.count_nonzero: count_nonzero,
    **REDUCTIONS,
    np.sort: sort,
    np.argsort: argsort,
    np.copyto: lambda dst, src: dst.__setitem__(..., src),
    np.place: place,
    np.putmask: putmask,
    np.put: put,
    np.choose: choose,
    np.compress: compress,
    np.extract: lambda condition, arr: compress(np.ravel(condition), np.ravel(arr)),
    np.isin: isin,
    np.take_along_axis: take_along_axis,
    np.unravel_index: unravel_index,
    np.isposinf: lambda x: each(lambda y: relation("eq", y, math.inf), x),
    np.isneginf: lambda x: each(lambda y: relation("eq", y, -math.inf), x),
    np.logspace: lambda start, stop, num=50, endpoint=True, base=10.0: np.power(
        base, symbolic(linspace(start, stop, num, endpoint))
    ),
    np.median: median,
    np.quantile: quantile,
    np.percentile: lambda a, q, axis=None, method="linear": quantile(a, np.true_divide(q, 100.0), axis, method),
    np.sinc: sinc,
    np.result_type: result_type,
    np.cumsum: lambda a, axis=None: np.add.accumulate(
        entries(a).ravel() if axis is None else entries(a), axis=0 if axis is None else axis
    ),
    np.cumprod: lambda a, axis=None: np.multiply.accumulate(
        entries(a).ravel() if axis is None else entries(a), axis=0 if axis is None else axis
    ),
    np.zeros_like: lambda a, shape=None: np.zeros(np.shape(a) if shape is None else shape).astype(object),
    np.ones_like: lambda a, shape=None: np.ones(np.shape(a) if shape is None else shape).astype(object),
    np.empty_like: lambda a, shape=None: np.zeros(np.shape(a) if shape is None else shape).astype(object),
    np.full_like: lambda a, fill_value, shape=None: each(
        lambda x, _: x, fill_value, np.zeros(np.shape(a) if shape is None else shape)
    ),
    np.gradient: gradient,
    np.unwrap: unwrap,
    np.linspace: linspace,
    np.round: lambda a, decimals=0: np.frompyfunc(lambda x: rounded(x, decimals), 1, 1)(entries(a)),
    np.fix: lambda x: np.trunc(entries(x).view(arrays.SymbolArray)),
    np.real: lambda val: entries(val),
    np.imag: lambda val: np.zeros(np.shape(val)).astype(object),
    np.pad: pad,
    np.ediff1d: ediff1d,
    np.polyfit: polyfit,
    np.real_if_close: lambda a: entries(a),
    np.linalg.matrix_power: matrix_power,
    np.linalg.solve: _with_result(linear_algebra.solve),
    np.linalg.inv: _with_result(linear_algebra.inverse),
    np.linalg.pinv: _with_result(linear_algebra.pseudo_inverse),
    np.linalg.cholesky: _with_result(linear_algebra.cholesky),
    np.linalg.lstsq: lambda a, b, rcond=None: linear_algebra.least_squares(a, b, rcond),
    np.linalg.svd: linear_algebra.svd,
    np.linalg.cond: linear_algebra.condition_number,
    np.linalg.eigvalsh: _OF_SYMMETRIC,
    np.linalg.det: _with_result(linear_algebra.determinant),
    np.linalg.norm: norm,
    np.linalg.slogdet: slogdet,
    np.linalg.matrix_rank: matrix_rank,
    np.linalg.eigh: lambda a, UPLO="L": (_OF_SYMMETRIC(a if UPLO == "L" else np.transpose(a)), linear_algebra.VECTORS),
}
NUMPY |= {np.around: NUMPY[np.round], np.amax: NUMPY[np.max], np.amin: NUMPY[np.min]}
for _name, _meaning in {"vector_norm": vector_norm, "matrix_norm": lambda x, /, *, ord="fro": norm(x, ord)}.items():
    if hasattr(np.linalg, _name):  # from numpy 2 on
        NUMPY[getattr(np.linalg, _name)] = _meaning
if hasattr(np, "cumulative_sum"):
    NUMPY[np.cumulative_sum] = lambda x, /, *, axis=None: _cumulated(x, axis)
NUMPY[getattr(np, "trapezoid" if hasattr(np, "trapezoid") else "trapz")] = trapezoid


NATIVE = """
shape(a) size(a) ndim(a) ravel(a) copy(a) transpose(a,axes=None) atleast_1d(*arys) atleast_2d(*arys) atleast_3d(*arys)
reshape(a,/,shape=None,order="C",*,newshape=None) squeeze(a,axis=None) expand_dims(a,axis) swapaxes(a,axis1,axis2)
moveaxis(a,source,destination) flip(m,axis=None) fliplr(m) flipud(m) rot90(m,k=1,axes=(0,1)) triu(m,k=0) tril(m,k=0)
stack(arrays,axis=0) concatenate(arrays,/,axis=0) vstack(tup) hstack(tup) dstack(tup) column_stack(tup) block(arrays)
append(arr,values,axis=None) broadcast_to(array,shape) broadcast_arrays(*args) tile(A,reps) repeat(a,repeats,axis=None)
roll(a,shift,axis=None) diag(v,k=0) diagonal(a,offset=0,axis1=0,axis2=1) trace(a,offset=0,axis1=0,axis2=1)
split(ary,indices_or_sections,axis=0) array_split(ary,indices_or_sections,axis=0) hsplit(ary,indices_or_sections)
vsplit(ary,indices_or_sections) insert(arr,obj,values,axis=None) delete(arr,obj,axis=None) take(a,indices,axis=None)
fill_diagonal(a,val) inner(a,b,/) outer(a,b) dot(a,b) vdot(a,b,/) kron(a,b) tensordot(a,b,axes=2)
cross(a,b,axisa=-1,axisb=-1,axisc=-1,axis=None) diff(a,n=1,axis=-1) convolve(a,v,mode="full")
correlate(a,v,mode="valid") polyval(p,x) meshgrid(*xi,indexing="xy") einsum(*operands,optimize=False)
iscomplexobj(x) isrealobj(x) resize(a,new_shape)
diagflat(v,k=0) apply_along_axis(func1d,axis,arr,*args) apply_over_axes(func,a,axes)
rollaxis(a,axis,start=0) vander(x,N=None,increasing=False) linalg.multi_dot(arrays)
"""


OF_PYTHON = {
    np.allclose,
    np.array_equal,
    np.iscomplexobj,
    np.isrealobj,
    np.shape,
    np.ndim,
    np.size,
}  # their results are of Python's types
SUMS = {np.dot, np.inner, np.vdot, np.tensordot, np.trace, np.convolve, np.correlate}

OF_COMMON_TYPE = {
    *SUMS,
    np.stack,
    np.concatenate,
    np.vstack,
    np.hstack,
    np.dstack,
    np.column_stack,
    np.block,
    np.append,
}
OF_COMMON_TYPE |= {np.insert, np.outer, np.kron, np.cross, np.einsum, np.polyval}


class Row:
    """A traceable function: its arguments and its implementation."""

    def __init__(self, function: Any, name: str, signature: inspect.Signature, meaning: Callable[..., Any]):
        self.function, self.name, self.signature, self.meaning = function, name, signature, meaning

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        keywords = {key: x for key, x in kwargs.items() if not self._has_no_effect(key, x)}
        try:
            self.signature.bind(*args, **keywords)
        except TypeError as error:
            raise UntraceableError(f"only {self.name}{self.signature} can be traced{caller()}: {error}") from None
        if self.function in OF_COMMON_TYPE:
            refuse_common(x for x in args if type(x) is not int)  # an int is an axis or a place
        result = self.meaning(*args, **keywords)
        if self.function is np.fill_diagonal:
            refresh(args[0])
        return arrays.sum_from_zero(result) if _starts_at_zero(self.function, args) else result

    def _has_no_effect(self, key: str, x: Any) -> bool:
        """Whether a keyword has no effect, such as `out=None` or a dtype of double."""
        if key == "casting":
            return x == "same_kind"
        if x is None and key in self.signature.parameters:  # np.sort(x, axis=None) sorts all entries
            return self.signature.parameters[key].default is None
        return x is None or x is np._NoValue or (key == "dtype" and x in (float, np.float64))

    def result(self, x: Any) -> Any:
        """Convert a result to numpy's types, if numpy's function does not return Python's."""
        if self.function in OF_PYTHON:
            return as_python(x)
        several = isinstance(x, tuple)  # of np.where(condition)
        return arrays.wrapped(symbolic(x) if self.function in (np.where, np.select, np.choose) and not several else x)


def _starts_at_zero(function: Any, args: tuple) -> bool:
    """Whether numpy adds products to 0.0, which is then not -0.0; products of single numbers are only multiplied."""
    if function is np.einsum:
        return len(args) > 2
    single = function in (np.dot, np.inner, np.tensordot) and [*map(np.size, args[:2])] == [1, 1]
    return function in SUMS and any(map(np.ndim, args)) and not single


def signature_of(meaning: Callable[..., Any]) -> inspect.Signature:
    """The parameters of an implementation without their types, for messages."""
    signature = inspect.signature(meaning)
    parameters = [x.replace(annotation=x.empty) for x in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=signature.empty)


def _rows() -> dict[Any, Row]:
    rows = {f: Row(f, arrays.name_of(f), signature_of(meaning), meaning) for f, meaning in NUMPY.items()}
    for text in NATIVE.split():
        name, parameters = text[:-1].split("(", 1)
        function = operator.attrgetter(name)(np)
        rows[function] = Row(
            function, arrays.name_of(function), inspect.signature(eval(f"lambda {parameters}: None")), _code(function)
        )
    return rows


def _code(function: Any) -> Any:
    """The inner function of numpy, which does not dispatch on its arguments again."""
    return getattr(function, "_implementation", function)


arrays.ROWS.update(_rows())
