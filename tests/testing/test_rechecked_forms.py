"""Quadratic forms confirmed by python-flint against hand-written functions with known sign changes."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.testing.certificates import recheck
from geomctrl.testing.certificates.equations import equations
from geomctrl.testing.certificates.quadratic import Bounds, Boxes
from geomctrl.testing.certificates.task import Task
from geomctrl.tracing.proofs.ball_arithmetic import Arithmetic
from geomctrl.tracing.symbols import Symbol, add, mul, unary

pytest.importorskip("flint")
ARM = models.two_link()
E = equations(controllers.PDGravity(ARM, [0.0, 0.0]), gc.Plant(ARM), np.zeros(2))
X = [Symbol(E.graph, k) for k in E.x]
LARGEST = int(np.argmax(np.abs(E.model)))  # of the parameters


def squares(*factors):
    F = 0.0
    for x, w in zip(X, factors):
        F = add(F, mul(mul(x, x), w))
    return F


def confirmed(F, allowed=0.0, ball=None, error=0.0, half=0.9):
    """Whether F < allowed on |x| < half outside the ball is confirmed, with one parameter that is off by at most an
    error.
    """
    hi, width = np.broadcast_to(half, (1, 4)).copy(), np.zeros((1, len(E.model)))
    width[0, LARGEST] = error
    box = Boxes(-hi, hi, E.model[None] - width, E.model[None] + width)
    task = Task(Bounds(E, F, np.ones(4)), box, None if ball is None else np.full(4, ball), allowed)
    try:
        recheck.check(recheck.arrays(task, *box.ends), "F")
    except testing.CheckError as error:
        reason = str(error)
    else:
        return True
    assert "not shown on the box" in reason
    return False


@pytest.mark.parametrize("kind", ["quadratic", "cubic", "no polynomial"])
@pytest.mark.parametrize(("radius", "stands"), [(0.5, False), (0.75, False), (0.86, True)])
def test_a_bowl_is_confirmed_outside_the_ball_where_it_is_negative(kind, radius, stands):
    """1 - 1.5 |x|^2 has its zeros at 0.8165, 1 - 3 (cosh x - 1) - 1.5 (y^2 + ...) on the axis of x at 0.7954."""
    F = add(1.0, squares(-1.5, -1.5, -1.5, -1.5))
    if kind == "cubic":
        F = add(F, mul(mul(mul(X[0], X[1]), X[2]), 0.01))
    if kind == "no polynomial":
        F = add(add(1.0, squares(0.0, -1.5, -1.5, -1.5)), mul(add(unary("cosh", X[0]), -1.0), -3.0))
    assert confirmed(F, ball=radius) == stands


@pytest.mark.parametrize(("radius", "stands"), [(0.5, False), (0.8, False), (0.83, True)])
def test_nothing_but_the_ball_is_left_out(radius, stands):
    """1 - 1.5 |x|^2 about one axis, up to 0.9, where few boxes are checked: its zeros are at 0.8165."""
    assert confirmed(add(1.0, squares(-1.5, -1.5, -1.5, -1.5)), ball=radius, half=[0.9, 0.01, 0.01, 0.01]) == stands


@pytest.mark.parametrize(("share", "stands"), [(0.5, False), (0.95, False), (1.05, True)])
def test_a_slope_of_either_sign_is_counted(share, stands):
    """(p - p_model) q1 - |x|^2 reaches error^2 / 4."""
    error = 0.8
    F = add(mul(Symbol(E.graph, E.errors[LARGEST]), X[0]), squares(-1.0, -1.0, -1.0, -1.0))
    assert confirmed(F, allowed=share * error**2 / 4.0, error=error) == stands


@pytest.mark.parametrize(("allowed", "stands"), [(0.15, False), (0.19, False), (0.23, True)])
def test_what_pays_for_a_slope_is_taken_from_the_squares(allowed, stands):
    """(p - p_model + 1 / 2) q1 - |x|^2 reaches (error + 1 / 2)^2 / 4 = 0.2025."""
    F = add(mul(add(Symbol(E.graph, E.errors[LARGEST]), 0.5), X[0]), squares(-1.0, -1.0, -1.0, -1.0))
    assert confirmed(F, allowed=allowed, error=0.4) == stands


@pytest.mark.parametrize(("allowed", "stands"), [(-0.02, False), (0.1, False), (0.14, False), (0.2, True)])
def test_a_slope_is_paid_for_outside_a_ball_too(allowed, stands):
    """(p - p_model) q1 - |x|^2 where |x| >= 1/2: at most error / 2 - 1 / 4."""
    F = add(mul(Symbol(E.graph, E.errors[LARGEST]), X[0]), squares(-1.0, -1.0, -1.0, -1.0))
    assert confirmed(F, allowed=allowed, ball=0.5, error=0.8) == stands


def test_boxes_start_from_the_domain_or_from_all_ends_of_monotone_sides():
    """Two monotone sides, of which this is the last: their ends make four boxes, and three are not enough."""
    domain = np.array([[-1.0, 0.0, 2.0], [1.0, 3.0, 5.0]])
    ends = [[-1.0, p, r] for p in (0.0, 3.0) for r in (2.0, 5.0)]
    lo = np.array(ends)
    hi = lo + np.array([2.0, 0.0, 0.0])
    monotone = np.array([1, 2])
    assert recheck.starts_at_all_ends(domain, domain[:1], domain[1:], monotone)
    assert recheck.starts_at_all_ends(domain, lo, hi, monotone)
    for k in range(4):
        assert not recheck.starts_at_all_ends(domain, np.delete(lo, k, 0), np.delete(hi, k, 0), monotone)
    for step in 0.1 * np.eye(3):
        assert not recheck.starts_at_all_ends(domain, lo, hi - step, monotone)
    assert not recheck.starts_at_all_ends(domain, lo, hi, np.array([1]))
    assert not recheck.starts_at_all_ends(domain, domain[:1] + 0.1, domain[1:], monotone)


def test_positive_definite_is_as_sylvester_says():
    """All leading determinants are positive, tested with integers and zeros."""
    rng = np.random.default_rng(0)
    answers = []
    for _ in range(300):
        n = int(rng.integers(1, 4))
        A = rng.integers(-1, 3, (n, n))
        A = np.tril(A) + np.tril(A, -1).T
        leading = [round(np.linalg.det(A[:k, :k])) for k in range(1, n + 1)]
        answers.append(recheck.positive_definite([[Fraction(int(x)) for x in row] for row in A]))
        assert answers[-1] == all(x > 0 for x in leading), A
    assert 50 < sum(answers) < 250


@pytest.mark.parametrize(("weight", "stands"), [(0.19, True), (0.21, False)])
def test_an_indefinite_form_is_lifted_by_what_that_costs(weight, stands):
    """-0.17 + weight q1^2 - q2^2 - ... on |q1| < 0.9: at the face it is weight 0.81 - 0.17."""
    F = add(-0.17, squares(weight, -1.0, -1.0, -1.0))
    assert confirmed(F) == stands


class Sides:
    """M between two matrices."""

    def __init__(self, lo, hi):
        self.arithmetic = Arithmetic()
        self.entries = [(Fraction(a), Fraction(b)) for a, b in zip(np.ravel(lo).tolist(), np.ravel(hi).tolist())]

    def inverse(self):
        one = SimpleNamespace(arb=self.arithmetic.arb, code=self)
        with self.arithmetic.precision():
            return recheck.Inequality._inverse(one, self.entries, 2)


def test_inverses_hold_those_of_all_corners_and_of_no_narrower_bounds(monkeypatch):
    middle, width = np.array([[2.0, 0.3], [0.3, 1.0]]), 0.05
    sides = Sides(middle - width, middle + width)
    bounds = np.array([[float(a), float(b)] for a, b in sides.inverse()]).reshape(2, 2, 2)
    for signs in np.ndindex(2, 2, 2, 2):
        M = middle + width * (2.0 * np.reshape(signs, (2, 2)) - 1.0)
        inverse = np.linalg.inv(M)
        assert (bounds[..., 0] <= inverse).all()
        assert (inverse <= bounds[..., 1]).all()
    C = np.linalg.inv(middle)[None]
    off = 0.5 * (bounds[..., 1] - bounds[..., 0])[None]
    for share in (0.0, 0.7):
        monkeypatch.setattr(recheck, "inverse", lambda lo, hi, share=share: (C - share * off, C + share * off))
        assert sides.inverse() == [None] * 4
    indefinite = Sides([[1.0, 2.0], [2.0, 1.0]], [[1.0, 2.0], [2.0, 1.0]])
    exact = np.linalg.inv([[1.0, 2.0], [2.0, 1.0]])[None]
    monkeypatch.setattr(recheck, "inverse", lambda lo, hi: (exact - 1e-3, exact + 1e-3))
    assert indefinite.inverse() == [None] * 4
