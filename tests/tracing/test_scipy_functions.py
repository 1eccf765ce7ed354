"""Functions of scipy on symbols, and least squares of numpy: their values, and no result where they raise."""

import warnings

import numpy as np
import pytest
import scipy
import scipy.linalg as sla
from compiled_functions import in_numpy, outputs
from scipy import interpolate, linalg, optimize, signal
from scipy.linalg import cho_factor, cho_solve, expm, sqrtm
from scipy.linalg import solve as solved

from geomctrl.tracing import trace
from geomctrl.tracing.functions import NUMPY
from geomctrl.tracing.scipy_functions import SCIPY
from geomctrl.tracing.untraceable import UntraceableError

RNG = np.random.default_rng(3)
A = np.array([[2.0, 0.3, -0.4], [0.1, 1.5, 0.2], [-0.6, 0.0, 3.0]])
TALL, KNOTS = RNG.normal(size=(5, 3)), np.linspace(0.0, 1.0, 6)
B, D = [0.2, 0.3, 0.1], np.array([1.0, -0.9, 0.2])
SECTIONS = signal.butter(4, 0.3, output="sos")
SPLINE = interpolate.splrep(KNOTS, np.sin(5.0 * KNOTS))


def spd(x):
    B = x.reshape(3, 3) + A
    return B @ B.T + 0.1 * np.eye(3)


def tall(x):
    return TALL * np.append(x[:4], 2.0)[:, None] + np.concatenate([np.eye(3), np.zeros((2, 3))])


def residuals(least_squares, a, b):
    x, residual, rank, _ = least_squares(a, b)
    return np.concatenate([np.ravel(x), np.ravel(residual), [rank * x.ravel()[0]]])


def from_numpy(a, b):
    return np.linalg.lstsq(a, b, rcond=None)


CASES = {
    "solve": lambda x: solved(x.reshape(3, 3) + 3.0 * A, x[:3]),
    "solve by package": lambda x: scipy.linalg.solve(A, x.reshape(3, 3)),
    "solve symmetric": lambda x: sla.solve(spd(x) + np.triu(A, 1), x[:3], assume_a="sym", lower=True),
    "solve positive": lambda x: sla.solve(spd(x) + np.tril(A, -1), x[:3], assume_a="pos", check_finite=False),
    "solve transposed": lambda x: sla.solve(x.reshape(3, 3) + 3.0 * A, x[6:], transposed=True),
    "inv": lambda x: linalg.inv(x.reshape(3, 3) + 3.0 * A),
    "det": lambda x: [linalg.det(x.reshape(3, 3))],
    "pinv": lambda x: linalg.pinv(tall(x)),
    "norm": lambda x: [linalg.norm(x), linalg.norm(x.reshape(3, 3), "fro"), linalg.norm(x, 1)],
    "svdvals": lambda x: linalg.svdvals(tall(x)),
    "cholesky": lambda x: [*linalg.cholesky(spd(x)), *linalg.cholesky(spd(x), lower=True)],
    "cho_factor": lambda x: cho_factor(spd(x) + A)[0],
    "cho_solve": lambda x: [cho_solve(cho_factor(spd(x), low), x[:3]) for low in (False, True)],
    "solve_triangular": lambda x: [
        linalg.solve_triangular(x.reshape(3, 3) + 3.0 * A, x[:3], trans=trans, lower=low, unit_diagonal=unit)
        for trans, low, unit in ((0, False, False), (1, True, False), ("T", False, True))
    ],
    "block_diag": lambda x: sla.block_diag(x[:4].reshape(2, 2), x[4:6], x[6]),
    "splev": lambda x: [interpolate.splev(x, SPLINE), interpolate.splev(x, SPLINE, der=1)],
    "lfilter": lambda x: [signal.lfilter(B, [2.0, -0.8, 0.1], x), signal.lfilter([0.5], [1.0], x) * x[0]],
    "lfilter with memory": lambda x: np.concatenate(
        [np.ravel(y) for y in signal.lfilter([0.2, 0.1], D, x[:6].reshape(2, 3), axis=0, zi=x[3:].reshape(2, 3))]
    ),
    "sosfilt": lambda x: np.append(signal.sosfilt(SECTIONS, x), signal.sosfilt(SECTIONS, x.reshape(3, 3), axis=0)),
    "sosfilt with memory": lambda x: np.concatenate(
        [np.ravel(y) for y in signal.sosfilt(SECTIONS, x[:4].reshape(2, 2), zi=np.resize(x, (2, 2, 2)))]
    ),
    "lstsq": lambda x: residuals(linalg.lstsq, tall(x), x[:5]),
    "lstsq wide": lambda x: residuals(linalg.lstsq, tall(x).T, x[:3]),
    "lstsq of numpy": lambda x: residuals(from_numpy, tall(x), x[:5]),
    "lstsq of several": lambda x: residuals(from_numpy, tall(x), np.outer(x[:5], [1.0, 2.0])),
    "lstsq square": lambda x: residuals(from_numpy, x.reshape(3, 3) + 3.0 * A, x[:3]),
    "svd": lambda x: np.linalg.svd(tall(x) @ A, compute_uv=False),
    "svd wide": lambda x: np.linalg.svd(x[:8].reshape(2, 4), full_matrices=False, compute_uv=False),
    "cond": lambda x: [np.linalg.cond(tall(x)), np.linalg.cond(spd(x), 2)],
    "constants": lambda x: expm(-A) @ [x[0], x[1], 1.0] + sqrtm(spd(np.zeros(9))) @ x[:3],
    "constants of the law": lambda x: expm(np.array([[0.0, 1.0], [-2.0, -0.3]])) @ [x[0], x[1]],
}  # fmt: skip


@pytest.mark.quick(26)
@pytest.mark.parametrize("name", CASES)
def test_functions_are_scipys(name):
    rows = RNG.uniform(-1.0, 1.0, (12, 9))
    found, good = outputs(lambda x: np.ravel(CASES[name](x)), rows)
    assert good.all()
    expected = in_numpy(CASES[name], rows)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


def test_every_function_of_the_table_is_tested():
    names = {path.rpartition(".")[2] for path in SCIPY}
    elsewhere = {"toeplitz", "logsumexp", "savgol_filter", "detrend", "filtfilt"}  # in test_masks_and_nan.py
    assert names - elsewhere <= {*CASES}


RAISING = {
    "singular": (lambda x: solved(x.reshape(2, 2), [1.0, 2.0]), [[1.0, 2.0, 2.0, 4.0], [0.0] * 4]),
    "indefinite": (lambda x: cho_factor(x.reshape(2, 2))[0].ravel(), [[1.0, 2.0, 2.0, 1.0], [-1.0, 0.0, 0.0, 1.0]]),
    "not positive": (lambda x: sla.solve(x.reshape(2, 2), [1.0, 1.0], assume_a="pos"), [[0.0, 1.0, 1.0, 0.0]]),
    "triangle": (lambda x: linalg.solve_triangular(x.reshape(2, 2), [1.0, 1.0]), [[1.0, 2.0, 0.0, 0.0]]),
}


@pytest.mark.parametrize("name", RAISING)
def test_where_scipy_raises_there_is_no_result(name):
    f, rows = RAISING[name]
    assert not outputs(f, np.array(rows))[1].any()
    call = trace(f, 4).to_llvm()
    for x in np.array(rows):
        with pytest.raises(np.linalg.LinAlgError):
            call(x)


RAISES_FOR_SOME = {
    np.linalg.inv: np.linalg.inv,
    np.linalg.solve: lambda a: np.linalg.solve(a, np.ones(len(a))),
    np.linalg.pinv: np.linalg.pinv,
    np.linalg.cholesky: np.linalg.cholesky,
    np.linalg.lstsq: lambda a: np.linalg.lstsq(a, np.ones(len(a)), rcond=None)[0],
    np.linalg.svd: lambda a: np.linalg.svd(a, compute_uv=False),
    np.linalg.cond: np.linalg.cond,
    np.linalg.eigvalsh: np.linalg.eigvalsh,
    np.linalg.det: np.linalg.det,
    np.linalg.norm: lambda a: [np.linalg.norm(a), np.linalg.norm(a, 2), np.linalg.norm(a, -2)],
    np.linalg.eigh: lambda a: np.linalg.eigh(a)[0],
    np.linalg.slogdet: lambda a: np.array(np.linalg.slogdet(a)),
    np.linalg.matrix_rank: lambda a: np.linalg.matrix_rank(a) * 1.0,
    **{f: f for f in (getattr(np.linalg, name, None) for name in ("vector_norm", "matrix_norm")) if f},
    np.linalg.matrix_power: lambda a: np.linalg.matrix_power(a, -1) + np.linalg.matrix_power(a, -2),
    linalg.inv: lambda a: linalg.inv(a),
    linalg.det: lambda a: linalg.det(a),
    linalg.pinv: lambda a: linalg.pinv(a),
    linalg.norm: lambda a: linalg.norm(a),
    linalg.svdvals: lambda a: linalg.svdvals(a),
    linalg.solve: lambda a: linalg.solve(a, np.ones(len(a))),
    linalg.lstsq: lambda a: linalg.lstsq(a, np.ones(len(a)))[0],
    linalg.cholesky: lambda a: linalg.cholesky(a),
    linalg.cho_factor: lambda a: linalg.cho_factor(a)[0],
    linalg.cho_solve: lambda a: linalg.cho_solve((a, True), np.ones(len(a))),
    linalg.solve_triangular: lambda a: linalg.solve_triangular(a, np.ones(len(a))),
    linalg.block_diag: lambda a: linalg.block_diag(a, a),
    linalg.toeplitz: lambda a: linalg.toeplitz(a[0]),
}


def unusual(n):
    """Matrices with n rows that are singular, also in floating point, indefinite or not finite."""
    powers = 2.0 ** np.random.default_rng(5).integers(-3, 4, (2, 4, n))
    singular = [np.outer(u, w) for u, w in zip(*powers)] + [np.outer(u, u) for u in powers[0]] if n > 1 else []
    broken = [np.where(np.eye(n) == 1.0, x, 0.5) for x in (np.nan, np.inf)]
    return np.array([np.zeros((n, n)), -np.eye(n), *singular, *broken]).reshape(-1, n * n)


def raises(f, x):
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an ill-conditioned matrix
            f(x)
    except (np.linalg.LinAlgError, ValueError):
        return True
    return False


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("function", RAISES_FOR_SOME, ids=lambda f: f"{f.__module__}.{f.__name__}")
def test_where_a_function_of_a_matrix_raises_there_is_no_result(function, n):
    f = lambda x: np.ravel(RAISES_FOR_SOME[function](x.reshape(n, n)))  # noqa: E731
    rows = unusual(n)
    without = np.array([raises(f, x) for x in rows])
    assert not outputs(f, rows)[1][without].any()


def test_every_function_of_a_matrix_is_tested():
    of_numpy = {f for f in NUMPY if f.__module__ == "numpy.linalg"}
    of_scipy = {getattr(linalg, path.rpartition(".")[2]) for path in SCIPY if path.startswith("scipy.linalg.")}
    assert of_numpy | of_scipy == {*RAISES_FOR_SOME}


def test_ranks_below_full_are_computed_by_numpy():
    """x has the smallest norm; with a rank that rounding decides numpy's own result is returned."""
    f = lambda x: np.linalg.lstsq(x.reshape(3, 2), np.ones(3), rcond=None)[0]  # noqa: E731
    rows = np.array([[1.0, 2.0, 2.0, 4.0, 3.0, 6.0], [0.0] * 6, [1.0, 0.0, 1.0, 1e-9, 1.0, 0.0]])
    assert not outputs(f, rows)[1].any()
    call = trace(f, 6).to_llvm()
    np.testing.assert_array_equal(call(rows), [f(x) for x in rows])


def test_condition_numbers_near_singular_are_computed_by_numpy():
    """Their digits are those of rounding."""
    f = lambda x: np.linalg.cond(x.reshape(2, 2))  # noqa: E731
    rows = np.array([[1.0, 2.0, 2.0, 4.0], [1.0, 2.0, 2.0, 4.0 + 1e-9], [0.0] * 4, [1.0, 0.0, 0.0, 2.0]])
    assert outputs(lambda x: [f(x)], rows)[1].tolist() == [False, False, False, True]
    np.testing.assert_array_equal(trace(f, 4).to_llvm()(rows), [f(x) for x in rows])


def test_singular_values_of_every_size():
    for m, n in ((1, 1), (1, 4), (2, 2), (6, 6), (6, 7), (4, 3)):
        scales = 10.0 ** np.vstack([np.zeros(m * n), RNG.uniform(-4, 4, (5, m * n))])
        special = np.eye(m, n), np.outer(np.arange(m) + 1.0, np.ones(n)), np.zeros((m, n))
        rows = np.vstack([RNG.normal(size=(6, m * n)) * scales, *(x.ravel() for x in special)])

        def f(x, m=m, n=n):
            return np.linalg.svd(x.reshape(m, n), compute_uv=False)

        found, good = outputs(f, rows)
        expected = in_numpy(f, rows)
        assert good.sum() >= 5  # rotations of rows of very different sizes may not converge
        largest = expected.max(axis=1, keepdims=True)
        assert np.all(np.abs(found - expected)[good] <= 1e-13 * largest[good])


@pytest.mark.parametrize("name", ["normal", "graded"])
@pytest.mark.slow
def test_singular_values_of_many_matrices(name):
    rows = RNG.normal(size=(2000, 42))
    rows = rows * 10.0 ** RNG.uniform(-6, 6, rows.shape) if name == "graded" else rows

    def f(x):
        return np.linalg.svd(x.reshape(6, 7), compute_uv=False)

    found, good = outputs(f, rows)
    expected = in_numpy(f, rows)
    assert good.mean() > 0.9
    assert np.all(np.abs(found - expected)[good] <= 1e-13 * expected.max(axis=1, keepdims=True)[good])


REFUSED = {
    "sqrtm": (lambda x: sqrtm(spd(x)), r"scipy\.linalg\.sqrtm can not be traced"),
    "expm": (lambda x: scipy.linalg.expm(spd(x)), r"scipy\.linalg\.expm can not be traced"),
    "keyword": (lambda x: linalg.inv(spd(x), assume_a="gen"), r"only scipy\.linalg\.inv"),
    "structure": (lambda x: linalg.solve(spd(x), x[:3], assume_a="tridiagonal"), "assume_a='tridiagonal'"),
    "callback": (lambda x: optimize.brentq(lambda y: y**3 - 2.0, 0.0, 2.0) * x, "calls other functions"),
    "signs": (lambda x: np.linalg.svd(spd(x))[0], "signs are arbitrary"),
    "cut-off": (lambda x: np.linalg.lstsq(tall(x), x[:5], rcond=1e-3)[0], "rcond=None"),
    "values": (lambda x: np.linalg.lstsq(tall(x), x[:5], rcond=None)[3], "compute_uv=False"),
    "other cond": (lambda x: [np.linalg.cond(spd(x), 1)], "p=None"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_names_the_line(name):
    f, message = REFUSED[name]
    with pytest.raises(UntraceableError, match=message) as raised:
        outputs(lambda x: np.ravel(f(x)), np.ones((1, 9)))
    assert "test_scipy_functions.py, line" in str(raised.value)


def test_later_code_has_scipys_functions():
    assert type(expm) is type(solved) is type(spd)
    assert scipy.linalg.solve is linalg.solve is solved
