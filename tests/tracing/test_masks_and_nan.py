"""Sums under masks, nan functions, writing by masks, norms and np.vectorize, traced, have numpy's values and types."""

import math
import warnings

import numpy as np
import pytest
import scipy.linalg
import scipy.signal
import scipy.special
from compiled_functions import require_same, traced, values

from geomctrl.tracing.untraceable import UntraceableError

NUMBERS = [0.0, -0.0, 0.3, -0.7, 1.0, 1.0, 2.5, -3.0, 1e12, math.inf, -math.inf, math.nan]
clipped = np.vectorize(lambda x: max(-1.0, min(1.0, x)))
cut = np.vectorize(lambda x: 0 if x < 0 else x)  # integers if the first entry is negative
cut_floats = np.vectorize(lambda x: 0 if x < 0 else x, otypes=[float])
quotient = np.vectorize(lambda a, b: a / b if b > 0 else -a)
kind = np.vectorize(lambda x: 1.0 if isinstance(x, np.float64) else 2.0)


def whole(x):
    return np.clip(np.nan_to_num(x), -3, 3).astype(int)


def written(f, x):
    y = x.copy()
    f(y)
    return y


def square(x):
    return x.reshape(2, 2)


CASES = {  # // 2 shows whether numbers are integers
    "nansum": lambda x: [np.nansum(x), *np.nansum(square(x), axis=0), np.nansum(whole(x)) // 2, np.nansum(x > 0) // 2],
    "nanprod": lambda x: [np.nanprod(x), *np.nancumsum(x), *np.nancumsum(square(x), axis=1).ravel()],
    "nanmax": lambda x: [np.nanmax(x), *np.nanmin(square(x), axis=1, keepdims=True).ravel(), np.nanmax(whole(x)) // 2],
    "nanmean": lambda x: [np.nanmean(x), *np.nanmean(square(x), axis=0)],
    "nanvar": lambda x: [np.nanstd(x), np.nanvar(x, ddof=1), *np.nanvar(square(x), axis=1, ddof=1)],
    "nanargmax": lambda x: [np.nanargmax(x), *np.nanargmin(square(x), axis=1)],
    "sum where": lambda x: [
        np.sum(x, where=x > 0), x.sum(where=[True, False, True, True]), np.sum(whole(x), where=x > 0) // 2,
        *np.sum(square(x), axis=0, where=square(x) > 0),
    ],
    "sum from": lambda x: [
        np.sum(x, initial=1.0), x.sum(initial=-0.5), np.sum(x[:0], initial=2.0), np.sum(whole(x), initial=3) // 2,
    ],
    "largest from": lambda x: [
        np.max(x, initial=0.0), x.min(initial=0.5), np.max(x, initial=0.0, where=x < 1),
        np.max(whole(x), initial=1) // 2,
    ],
    "cov": lambda x: np.cov(x[:3], [1.0, 2.0, -1.0]),
    "cov of one": lambda x: [np.cov(x), *np.cov(square(x), bias=True).ravel()],
    "corrcoef": lambda x: np.corrcoef(x[:3], x[1:]),
    "place": lambda x: written(lambda y: np.place(y, y > 0.5, [0.5]), x),
    "putmask": lambda x: written(lambda y: np.putmask(y, y > 0.5, [7.0, 8.0, 9.0]), x),
    "put": lambda x: written(lambda y: np.put(y, [0, -1, 0], [x[1], 5.0, x[2]]), x),
    "put in a view": lambda x: written(lambda y: np.put(y[1:], [0, 2], x[0]), x),
    "put in a matrix": lambda x: written(lambda y: np.put(y, [1, 2], [3.0]), square(x)),
    "choose": lambda x: [*np.choose(whole(x), [x, 2 * x, 3 * x]), *np.choose(x > 0, [1, 2]) // 2],
    "compress": lambda x: [
        *np.compress([True, False, True], x), *np.compress([False, True], square(x), axis=1).ravel(),
    ],
    "extract": lambda x: [np.extract(x > 0, x).sum(), *np.extract([[True, False], [True, True]], square(x))],
    "isin": lambda x: [*np.isin(x, [1.0, -3.0, 0.0]) * 1.0, *np.isin(x[:2], x[2:]) * 1.0, *np.isin(x > 0, [1]) * 2],
    "take_along_axis": lambda x: [
        *np.take_along_axis(x, whole(x) % 4, 0), *np.take_along_axis(square(x), square(whole(x) % 2), axis=0).ravel(),
        *np.take_along_axis(square(x), whole(x) % 4, None),
    ],
    "take beyond the end": lambda x: np.take_along_axis(x[:2], whole(x[:2]), 0),
    "unravel_index": lambda x: np.array(np.unravel_index(whole(x), (2, 2))) // 1,
    "infinities": lambda x: np.isposinf(x) + 2.0 * np.isneginf(x),
    "logspace": lambda x: np.logspace(0.0, np.clip(x[0], -3, 3), 5),
    "norms": lambda x: [np.linalg.norm(x, p) for p in (3, 0.5, 0, -1, -np.inf, np.inf)],
    "norms along axes": lambda x: np.concatenate([np.linalg.norm(square(x), p, axis=1) for p in (3, 0, np.inf)]),
    "norms of matrices": lambda x: [np.linalg.norm(square(x), p) for p in (1, -1, np.inf, -np.inf, "fro")],
    "modf": lambda x: [*np.concatenate(np.modf(x)), *math.modf(x[0])],
    "where= of a quotient": lambda x: np.divide(x[:2], x[2:], out=np.zeros(2), where=x[2:] != 0),
    "where= in place": lambda x: written(lambda y: np.sqrt(y, out=y, where=y > 0), x),
    "sort in place": lambda x: [*written(lambda y: y.sort(), x), *written(lambda y: y[1:].sort(), x)],
    "sort along axes": lambda x: [*np.sort(square(x), axis=0).ravel(), *np.sort(square(x), axis=None)],
    "concatenate all": lambda x: np.concatenate([square(x), square(x).T], axis=None),
    "selected": lambda x: [x[x > 0].sum(), x[x > 0].mean(), np.mean(x[x < 0.5]), x[x > 0].size, (x[x > 0] ** 2).sum()],
    "largest selected": lambda x: [x[x > 0].max(), np.max(x[x > -1]), np.min(x[x > -1])],
    "selected conditions": lambda x: [
        1.0 * np.any(x[x > -1]), 1.0 * (x[x > -1] > 0.5).all(), whole(x)[x > 0].sum() // 2,
    ],
    "vectorize": lambda x: [*clipped(x), *cut_floats(x), *quotient(x[:2], x[2:]), *quotient(1.0, x), clipped(x[0])],
    "vectorize to integers": lambda x: cut(x) // 2,
    "vectorize gets Python's numbers": lambda x: [*kind(x), kind(x[0]), *kind([x[0], 1.0])],
    "expit": lambda x: [*scipy.special.expit(x), *scipy.special.expit(300.0 * x)],
    "logsumexp": lambda x: [scipy.special.logsumexp(x), *scipy.special.logsumexp(square(x), axis=0)],
    "toeplitz": lambda x: [*scipy.linalg.toeplitz(x).ravel(), *scipy.linalg.toeplitz(x[:3], x).ravel()],
    "constants of linear algebra": lambda x: np.linalg.pinv([[2.0, 1.0], [0.0, 1.0]]) @ x[:2],
}  # fmt: skip


def rows():
    rng = np.random.default_rng(0)
    parts = rng.choice(NUMBERS, size=(150, 4)), rng.normal(size=(50, 4)), rng.integers(-2, 3, (50, 4)) * 1.0
    return np.concatenate(parts)


@pytest.mark.quick(44)
@pytest.mark.parametrize("name", CASES)
def test_values_of_numpy(name):
    """Where numpy raises there is no result; sums that cancel may differ by the rounding of their terms."""
    x, f = rows(), lambda x: np.ravel(np.asarray(CASES[name](x)) * 1.0)
    found, good = values(traced(f, 4), x)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = np.array([f(y.copy()) for y in x[good]])
    assert good.sum() > 40
    size = np.abs(np.nan_to_num(expected, posinf=0.0, neginf=0.0)).max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        near = np.abs(found[good] - expected) <= 1e-14 * size
    require_same(name, x[good], np.where(near, expected, found[good]), expected, signs=False)


LINEAR = {
    "savgol_filter": lambda x: scipy.signal.savgol_filter(x, 3, 1, mode="nearest", deriv=1),
    "detrend": lambda x: scipy.signal.detrend(x),
    "filtfilt": lambda x: scipy.signal.filtfilt([0.2, 0.3], [1.0, -0.5], np.tile(x, 4)),
    "polyfit": lambda x: np.polyfit([0.0, 1.0, 2.0, 3.0], x, 1),
    "norms by singular values": lambda x: [np.linalg.norm(square(x), 2), np.linalg.norm(square(x), -2)],
    "slogdet": lambda x: np.array(np.linalg.slogdet(square(x))),
    "matrix_rank": lambda x: [np.linalg.matrix_rank(square(x)) * 1.0],
    "eigh": lambda x: [*np.linalg.eigh(square(x))[0], *np.linalg.eigh(square(x), "U")[0]],
}


@pytest.mark.parametrize("name", LINEAR)
def test_signals_and_matrices(name):
    x, f = np.random.default_rng(1).normal(size=(30, 4)), LINEAR[name]
    x[0] = 1.0
    found, good = values(traced(lambda x: np.asarray(f(x)), 4), x)
    assert good[1:].all()
    np.testing.assert_allclose(found[good], [np.ravel(f(y)) for y in x[good]], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: [np.sum(whole(x), initial=0.5)], "initial value is a float"),
        (lambda x: [np.sum(x, where=x)], "not an array of bools"),
        (lambda x: [np.max(x, where=x > 0)], "needs an initial value"),
        (lambda x: np.divide(x, 2.0, where=x > 0), "add out="),
        (lambda x: np.multiply(x, 0.5, out=np.zeros(4, int), where=x > 0), "written into an array of numbers"),
        (lambda x: written(lambda y: np.put(y, [0], [x[1]]), whole(x)), "a float is written into an array of int64"),
        (lambda x: np.stack([x, x], axis=None).ravel(), "np.stack"),
        (lambda x: [x.sum(dtype=np.float32)], r"only np\.sum\(a, axis=None, keepdims=False"),
    ],
)
def test_what_is_refused(f, message):
    with pytest.raises(UntraceableError, match=f"{message}.*|.*line .*{message}") as error:
        traced(f, 4)
    assert "test_masks_and_nan.py, line" in str(error.value)
