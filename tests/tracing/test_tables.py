"""scipy's splines and tables on symbols agree with scipy: inside, at knots, outside and for nan."""

import itertools

import numpy as np
import pytest
from compiled_functions import in_numpy, outputs, require_same
from scipy import interpolate
from scipy.interpolate import (
    Akima1DInterpolator,
    BSpline,
    CubicSpline,
    InterpolatedUnivariateSpline,
    PchipInterpolator,
    PPoly,
    UnivariateSpline,
    interp1d,
    make_interp_spline,
    splprep,
)

from geomctrl.tracing.untraceable import UntraceableError

X = np.array([-1.0, -0.2, 0.0, 0.7, 2.0, 2.5])
Y = np.random.default_rng(4).normal(size=(6, 3))
ROWS = np.array([*X, *np.linspace(-1.7, 3.3, 41), -1e-300, np.nan, np.nextafter(0.7, 0.0), -5.0, 7.0])[:, None]
TABLES = {
    "cubic": (CubicSpline(X, Y), {}),
    "slope": (CubicSpline(X, Y), {"nu": 1}),
    "third slope": (CubicSpline(X, Y[:, 0]), {"nu": 3}),
    "clamped, not extrapolated": (CubicSpline(X, Y, bc_type="clamped", extrapolate=False), {}),
    "periodic": (CubicSpline(X, np.r_[Y[:-1], Y[:1]], bc_type="periodic"), {}),
    "pchip": (PchipInterpolator(X, Y[:, 1]), {}),
    "akima": (Akima1DInterpolator(X, Y), {"extrapolate": True}),
    "polynomials": (PPoly(np.random.default_rng(1).normal(size=(4, 5)), X), {"extrapolate": False}),
    "linear, extrapolated": (interp1d(X, Y[:, 0], fill_value="extrapolate"), {}),
    "linear, held": (interp1d(X, Y[:, 0], fill_value=(3.0, -4.0), bounds_error=False), {}),
    "rows, held": (interp1d(X, Y, axis=0, fill_value=(Y[0], Y[-1]), bounds_error=False), {}),
    "matrices": (interp1d(X, Y.reshape(6, 3, 1) * [1.0, 2.0], axis=0, fill_value=np.eye(3, 2), bounds_error=False), {}),
    "cubic rows": (interp1d(X, Y, axis=0, kind="cubic", fill_value="extrapolate"), {}),
    "quadratic": (interp1d(X, Y[:, 1], kind="quadratic", bounds_error=False), {}),
    "B-spline": (make_interp_spline(X, Y, k=5), {}),
    "slope of a B-spline": (make_interp_spline(X, Y, k=3), {"nu": 1}),
    "derivative of a B-spline": (make_interp_spline(X, Y, k=4).derivative(2), {"extrapolate": False}),
    "clamped B-spline": (make_interp_spline(X, Y[:, 0], k=3, bc_type="clamped"), {"nu": 4}),
    "periodic B-spline": (make_interp_spline(X, np.r_[Y[:-1], Y[:1]], k=3, bc_type="periodic"), {}),
    "repeated knots": (BSpline([0.0, 0.0, 0.0, 0.7, 0.7, 2.0, 2.0, 2.0], [1.0, -1.0, 2.0, 0.5, 0.3], 2), {}),
    "piecewise constant": (BSpline(X, Y[:5, 0], 0), {}),
    "fitted": (UnivariateSpline(X, Y[:, 2], s=0.3), {}),
    "slope of a fitted one": (InterpolatedUnivariateSpline(X, Y[:, 2]), {"nu": 1}),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_scipys(name):
    table, keywords = TABLES[name]

    def f(x):
        return np.concatenate([np.ravel(table(x[0], **keywords)), np.ravel(table(x, **keywords))])

    found, good = outputs(f, ROWS)
    expected = in_numpy(f, ROWS)
    assert good.all()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13 * (1.0 + np.nanmax(np.abs(expected))))


def test_outside_its_bounds_a_table_that_raises_has_no_result():
    table = interp1d(X, Y[:, 0])
    found, good = outputs(lambda x: table(x), ROWS)
    inside = (ROWS[:, 0] >= X[0]) & (ROWS[:, 0] <= X[-1])
    np.testing.assert_array_equal(good | np.isnan(ROWS[:, 0]), inside | np.isnan(ROWS[:, 0]))
    require_same("interp1d", ROWS[inside], found[inside], table(ROWS[inside]), ulps=64.0, signs=False)


@pytest.mark.parametrize(
    "table",
    [
        *(interp1d(X, Y[:, 0], kind="nearest"), CubicSpline(X, Y.T, axis=1), make_interp_spline(X, Y.T, axis=1)),
        *(UnivariateSpline(X, Y[:, 0], ext="zeros"), interpolate.RegularGridInterpolator([X], Y, method="nearest")),
    ],
)
def test_other_tables_are_refused(table):
    with pytest.raises(UntraceableError, match=r"test_tables\.py, line"):
        outputs(lambda x: np.ravel(table(x[0])), ROWS[:2])


def test_curves_of_splprep_and_columns_of_a_table():
    (knots, coefficients, k), _ = splprep(Y.T, u=X, s=0)
    columns = interp1d(X, Y.T)  # along the last axis

    def f(x):
        return np.concatenate([*map(np.ravel, interpolate.splev(x[0], (knots, coefficients, k), 1)), columns(x[0])])

    rows = ROWS[(ROWS[:, 0] >= X[0]) & (ROWS[:, 0] <= X[-1])]
    np.testing.assert_allclose(outputs(f, rows)[0], in_numpy(f, rows), rtol=1e-11, atol=1e-11)


GRID = ([-1.0, 0.0, 0.7], [0.0, 0.5, 1.0, 3.0])
MAP = np.random.default_rng(9).normal(size=(3, 4, 2))


@pytest.mark.parametrize("options", [{}, {"bounds_error": False}, {"bounds_error": False, "fill_value": None}])
def test_tables_of_two_variables(options):
    table = interpolate.RegularGridInterpolator(GRID, MAP, **options)

    def f(x):
        return np.concatenate([table(x).ravel(), table((x[0], [x[1], 0.2])).ravel(), table([[0.1, x[1]], x]).ravel()])

    sides = [*GRID[0], -0.3, 0.2, -1.5, 0.8, np.nan], [*GRID[1], 0.2, 2.9, -0.1, 3.1, np.nan]
    rows = np.array(list(itertools.product(*sides)))
    inside = (rows >= [-1.0, 0.0]).all(axis=1) & (rows <= [0.7, 3.0]).all(axis=1)
    found, good = outputs(f, rows)
    np.testing.assert_array_equal(good, True if options else inside)
    expected = in_numpy(f, rows[good])
    np.testing.assert_allclose(found[good], expected, rtol=1e-13, atol=1e-13)


def test_scipy_is_what_it_was():
    call = PPoly.__call__
    outputs(lambda x: TABLES["cubic"][0](x[0]), ROWS[:2])
    assert PPoly.__call__ is call
    assert "__call__" not in vars(PPoly)
