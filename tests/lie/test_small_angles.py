"""Accuracy of exp, log, dexp and dexp_inv and of their coefficients at small and large angles, against mpmath.

Errors are in units of eps = 2^-52 times the size of the result, plus the effect of a relative change of the angle by
eps: near a zero or a pole (alpha at pi, gamma at 2 pi) no algorithm on floating-point angles is more accurate.
"""

import mpmath as mp
import numpy as np
import pytest

from geomctrl import se3, so3
from geomctrl.kernels import exponentials

EPS = 2.0**-52
PI = np.pi
SWITCH = np.sqrt(exponentials.SWITCH)
AROUND_SWITCH = [SWITCH - 1e-2, SWITCH - 1e-9, np.nextafter(SWITCH, 0), SWITCH, np.nextafter(SWITCH, 9), SWITCH + 1e-2]
AROUND_PI = [PI - 1e-3, PI - 1e-9, PI, PI + 1e-9]
UP_TO_PI = [1e-300, 1e-160, 1e-9, 1e-4, 1e-2, 0.1, 0.5, 1.0, 2.0, 3.0]
BEYOND_PI = [4.0, 2 * PI - 1e-3, 2 * PI + 1e-3, 7.0, 30.0]
ANGLES = [0.0, *UP_TO_PI, *AROUND_PI, *AROUND_SWITCH, *BEYOND_PI]


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(100):
        yield


# --- coefficients --------------------------------------------------------------------------------------------------


def half_angle(t):
    s, c = mp.sin(t / 2) / (t / 2), mp.cos(t / 2)
    return s * c, s * s, c / s


COEFFICIENTS = {
    "alpha": lambda t: half_angle(t)[0],
    "beta/2": lambda t: half_angle(t)[1] / 2,
    "(1-alpha)/t^2": lambda t: (1 - half_angle(t)[0]) / t**2,
    "(alpha-beta)/t^2": lambda t: (half_angle(t)[0] - half_angle(t)[1]) / t**2,
    "last of (21)": lambda t: (half_angle(t)[1] / 2 - 3 * (1 - half_angle(t)[0]) / t**2) / t**2,
    "(1-gamma)/t^2": lambda t: (1 - half_angle(t)[2]) / t**2,
    "last of (24)": lambda t: (1 / half_angle(t)[1] + half_angle(t)[2] - 2) / t**4,
}


def coefficients(u):
    return *exponentials.dexp_coefficients(u), *exponentials.dexp_inv_coefficients(u)


@pytest.mark.parametrize(("index", "name"), list(enumerate(COEFFICIENTS)))
def test_every_coefficient_is_accurate_to_two_ulp(index, name):
    exact = COEFFICIENTS[name]
    grid = [*np.linspace(0.05, 3.5, 25), *np.linspace(3.5, 20.0, 15)]
    for t in [*ANGLES[3:], *grid]:
        u = float(t) ** 2
        T = mp.sqrt(mp.mpf(u))
        value = exact(T)
        slope = (exact(T * (1 + mp.mpf(10) ** -30)) - value) * mp.mpf(10) ** 30
        error = abs(coefficients(u)[index] - value) / (abs(value) + abs(slope)) / EPS
        assert error < 2.0, (name, t, float(error))


def test_coefficients_at_zero_are_their_limits():
    assert np.allclose(coefficients(0.0), [1, 1 / 2, 1 / 6, -1 / 12, -1 / 60, 1 / 12, 1 / 360], rtol=4 * EPS, atol=0)


def test_poles_are_finite_and_nan_passes():
    assert all(np.isfinite(coefficients((k * PI) ** 2)).all() for k in (2, 4, 6))
    assert abs(coefficients((2 * PI) ** 2)[5]) > 1e12
    assert np.isnan(coefficients(np.nan)).all()


def test_series_of_the_pole_free_part():
    exact = [2 * (mp.zeta(2 * k) - 1) / (2 * mp.pi) ** (2 * k) for k in range(1, len(exponentials.G1) + 1)]
    assert all(abs(c / e - 1) < EPS for c, e in zip(exponentials.G1, exact))


# --- exp, log, dexp, dexp_inv --------------------------------------------------------------------------------------


def screws(t, n=3):
    """Twists with rotations by t, about axes that include a coordinate axis and a nearly aligned one."""
    rng = np.random.default_rng(1)
    axes = [np.array([0.0, 0.0, 1.0]), np.array([1.0, 1e-9, -1e-5]), *rng.normal(size=(n - 2, 3))]
    return [np.concatenate((t * a / np.linalg.norm(a), rng.normal(size=3))) for a in axes]


def exact_exp(X):
    A, T, term = mp.matrix(se3.hat(X).tolist()), mp.eye(4), mp.eye(4)
    for k in range(1, 200):
        term = term * A / k
        T += term
        if mp.mnorm(term, 1) < mp.mpf(10) ** -80:
            break
    return T


def exact_dexp(X):
    A, D, term = mp.matrix(se3.ad(X).tolist()), mp.eye(6), mp.eye(6)
    for k in range(1, 250):
        term = term * A / (k + 1)
        D += term
        if mp.mnorm(term, 1) < mp.mpf(10) ** -80:
            break
    return D


def difference(a, exact):
    return np.array((mp.matrix(a.tolist()) - exact).tolist(), dtype=float)


@pytest.mark.parametrize("t", ANGLES)
def test_exp_is_accurate_to_four_ulp(t):
    for X in screws(t):
        T = se3.exp(X)
        error = np.abs(difference(T, exact_exp(X)))
        scale = np.full((3, 3), max(1.0, t) * min(1.0, t))  # off the diagonal R is as small as w
        np.fill_diagonal(scale, max(1.0, t))
        assert (error[:3, :3] <= 4 * EPS * scale).all()
        assert (error[:3, 3] <= 4 * EPS * max(1.0, t) * np.linalg.norm(X[3:])).all()
        assert np.array_equal(T[3], [0, 0, 0, 1])
        assert np.array_equal(T[:3, :3], so3.exp(X[:3]))
        assert np.abs(T[:3, :3].T @ T[:3, :3] - np.eye(3)).max() < 4 * EPS * max(1.0, t)


@pytest.mark.parametrize("t", [0.0, *UP_TO_PI, PI - 1e-3, PI - 1e-9])
def test_log_is_accurate_to_four_ulp(t):
    for X in screws(t):
        T = np.array(exact_exp(X).tolist(), dtype=float)
        error = np.abs(se3.log(T) - X)
        assert (error[:3] <= 4 * EPS * t).all()
        assert (error[3:] <= 8 * EPS * np.linalg.norm(X[3:])).all()
        assert np.array_equal(so3.log(T[:3, :3]), se3.log(T)[:3])


@pytest.mark.parametrize("t", ANGLES)
def test_dexp_and_its_inverse_are_accurate_to_eight_ulp(t):
    for X in screws(t):
        exact, size = exact_dexp(X), max(1.0, t)
        inverse = exact**-1
        condition = float(mp.mnorm(inverse, 1)) ** 2  # the effect of a change of dexp by one ulp on its inverse
        assert np.abs(difference(se3.dexp(X), exact)).max() <= 8 * EPS * size
        assert np.abs(difference(se3.dexp_inv(X), inverse)).max() <= 8 * EPS * size * condition
        assert np.array_equal(so3.dexp(X[:3]), se3.dexp(X)[:3, :3])
        assert np.array_equal(so3.dexp_inv(X[:3]), se3.dexp_inv(X)[:3, :3])


@pytest.mark.parametrize("axis", [[1, 0, 0], [0, 1, 0], [0, 0, 1], [-3, 4, 0], [0, -1, 1], [-1, -1, -1], [2, -3, 6]])
def test_log_of_a_half_turn_has_its_largest_component_positive(axis):
    n = np.array(axis) / np.linalg.norm(axis)
    R = 2.0 * np.outer(n, n) - np.eye(3)
    w = so3.log(R)
    assert w[np.abs(w).argmax()] > 0.0
    assert np.abs(np.linalg.norm(w) - PI) < 4 * EPS
    assert np.abs(so3.exp(w) - R).max() < 4 * EPS


def test_mueller_terze_10_in_powers_of_ad():
    for t in (1e-6, 1e-3, 1.0, 3.0, 5.0):
        X = screws(t)[2]
        g1, g2 = exponentials.dexp_inv_coefficients(float(X[:3] @ X[:3]))
        A = se3.ad(X)
        powers = np.eye(6) - A / 2 + (g1 - X[:3] @ X[:3] * g2 / 2) * A @ A - g2 / 2 * A @ A @ A @ A
        assert np.abs(powers - se3.dexp_inv(X)).max() < 1e-13
