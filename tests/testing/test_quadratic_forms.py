"""Decisions by quadratic forms against their values at many points."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.testing.certificates.deciding import about_zero, largest
from geomctrl.testing.certificates.equations import equations
from geomctrl.testing.certificates.level_sets import least_on_boundary
from geomctrl.testing.certificates.quadratic import Bounds, Boxes, Form, moved
from geomctrl.testing.certificates.task import Task, prove
from geomctrl.tracing.symbols import Symbol, add, mul, unary

RAYS = np.random.default_rng(9).normal(size=(200, 3))
RADII = np.concatenate([np.geomspace(1e-6, 1.0, 40), np.linspace(1.0, 3.0, 200), np.geomspace(3.0, 1e3, 30)])


def points(ball):
    """Directions all around, starting from the surface of the ball if there is one."""
    x = RAYS / np.linalg.norm(RAYS, axis=1, keepdims=True)
    x = x if ball is None else x * ball
    radii = RADII if ball is None else RADII[RADII >= 1.0]
    return (x[:, None] * radii[:, None]).reshape(-1, 3)


@pytest.mark.parametrize("with_ball", [False, True])
@pytest.mark.parametrize("kind", ["no linear term", "linear terms", "indefinite"])
def test_what_a_form_decides_about_zero_holds_at_all_points(kind, with_ball):
    """F = top + slope . |x| - x . N x is below the allowed value where the margin is positive; with twice the slope
    it often is not.
    """
    rng, decided, sharp = np.random.default_rng(5), 0, 0
    for _ in range(60):
        L = rng.normal(size=(3, 3))
        N = L @ L.T + 0.2 * np.eye(3) if kind != "indefinite" else 0.5 * (L + L.T)
        slope = np.zeros(3) if kind == "no linear term" else rng.uniform(0.0, 1.0, 3)
        top = 0.0 if kind == "no linear term" else rng.uniform(-0.2, 0.5)
        ball = rng.uniform(0.3, 2.0, 3) if with_ball else None
        allowed = 0.0 if kind == "no linear term" else rng.uniform(0.0, 3.0)
        scale = rng.uniform(0.5, 2.0, 3)
        one = np.array([np.inf])
        form = Form(np.array([top]), slope[None], np.zeros((1, 3)), N[None], one, scale)
        margin = about_zero(form, scale, ball, allowed)[0]
        x = points(ball)
        F = top + np.abs(x) @ slope - np.einsum("bi,ij,bj->b", x, N, x)
        if margin > 0.0:
            decided += 1
            assert F.max() < allowed
            sharp += (F + np.abs(x) @ slope).max() > allowed
    assert decided > 5 if kind != "indefinite" else decided < 30
    if kind == "linear terms":
        assert sharp > 0


@pytest.mark.parametrize("with_ball", [False, True])
def test_terms_that_are_too_large_are_not_decided(with_ball):
    ball = np.ones(3) if with_ball else None
    for top, slope, allowed in ((0.5, 0.0, 0.4), (0.0, 10.0, 0.4), (2.0, 1.0, 0.0)):
        parts = np.array([top]), np.full((1, 3), slope), np.zeros((1, 3)), 0.1 * np.eye(3)[None]
        form = Form(*parts, np.array([np.inf]), np.ones(3))
        assert about_zero(form, np.ones(3), ball, allowed)[0] <= 0.0


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_a_term_that_vanishes_for_the_model_only_is_bounded_for_other_robots(share):
    """F = (p - p_model) q1 - q1^2 reaches share |p_model| |q1| - q1^2."""
    arm = models.two_link()
    e = equations(controllers.PDGravity(arm, [0.0, 0.0]), gc.Plant(arm), np.zeros(2))
    k = int(np.argmax(np.abs(e.model)))
    q1 = Symbol(e.graph, e.x[0])
    F = add(mul(Symbol(e.graph, e.errors[k]), q1), mul(mul(q1, q1), -1.0))
    half, width = np.full((1, 4), 1.0), share * np.abs(e.model)[None]
    boxes = Boxes(-half, half, e.model[None] - width, e.model[None] + width)
    bounds = Bounds(e, F, np.ones(4))
    assert bounds.is_flat(boxes) == (share == 0.0)
    form, error = bounds.form(boxes), width[0, k]
    assert form.slope[0, 0] == pytest.approx(error, rel=1e-9, abs=0.0)
    assert largest(form, boxes)[0] >= min(error**2 / 4.0, error - 1.0 if error > 2.0 else np.inf)


def test_a_cubic_term_is_bounded_on_the_whole_box():
    """F = 4 q1^3 - q1^2 - v1^2 is 3 at q1 = 1; the bound by the form is above it at all points."""
    arm = models.two_link()
    e = equations(controllers.PDGravity(arm, [0.0, 0.0]), gc.Plant(arm), np.zeros(2))
    q1, v1 = (Symbol(e.graph, e.x[k]) for k in (0, 2))
    F = add(mul(mul(q1, q1), add(mul(q1, 4.0), -1.0)), mul(mul(v1, v1), -1.0))
    half = np.full((1, 4), 1.0)
    boxes = Boxes(-half, half, e.model[None], e.model[None])
    form = Bounds(e, F, np.ones(4)).form(boxes)
    x = np.random.default_rng(1).uniform(-1.0, 1.0, (500, 4))
    x[0] = 1.0, 0.0, 0.0, 0.0
    exact = 4.0 * x[:, 0] ** 3 - x[:, 0] ** 2 - x[:, 2] ** 2
    upper = form.top[0] + np.abs(x) @ np.abs(form.slope[0]) - np.einsum("bi,ij,bj->b", x, form.N[0], x)
    assert (exact <= upper + 1e-12).all()
    assert largest(form, boxes)[0] >= 3.0


def test_shifted_intervals_hold_the_exact_sums():
    rng = np.random.default_rng(4)
    by, lo = rng.normal(size=(2, 400)) * 10.0 ** rng.integers(-3, 4, (2, 400))
    hi = lo + rng.uniform(0.0, 1.0, 400)
    low, high = moved(by, lo, hi)
    exact = [(Fraction(a) + Fraction(s), Fraction(b) + Fraction(s)) for s, a, b in zip(by, lo, hi)]
    assert all(Fraction(a) <= x and y <= Fraction(b) for a, b, (x, y) in zip(low, high, exact))
    assert (np.abs(low - (lo + by)) <= 3e-16 * np.abs(lo + by)).all()
    assert [x.item() for x in moved(np.array([0.5]), np.array([0.25]), np.array([0.25]))] == [0.75, 0.75]


# --- branch and bound ------------------------------------------------------------------------------------------------


def task(more, half=(1.0, 2.0, 1.0, 2.0), wave=1.5):
    """F = more - q1^2 - v1^2 - q2^2 - v2^2 + wave sin(3 q1) v1 on a box about 0; the claim is F < 0."""
    arm = models.two_link()
    e = equations(controllers.PDGravity(arm, [0.0, 0.0]), gc.Plant(arm), np.zeros(2))
    x = [Symbol(e.graph, k) for k in e.x]
    F = add(more, mul(mul(unary("sin", mul(x[0], 3.0)), x[2]), wave))
    for y in x:
        F = add(F, mul(mul(y, y), -1.0))
    hi = np.array([half])
    return Task(Bounds(e, F, np.ones(4)), Boxes(-hi, hi, e.model[None], e.model[None]), None)


@pytest.mark.parametrize(("radius", "proved"), [(0.45, False), (0.69, False), (0.73, True)])
def test_only_the_ball_is_left_out(radius, proved):
    """1/2 - |x|^2 is positive within 0.7071 of zero."""
    asked = task(0.5, wave=0.0)
    out = prove(replace(asked, ball=np.full(4, radius)), 20_000, 60.0)
    assert out.proved == proved


def values(x, more):
    return more + 1.5 * np.sin(3.0 * x[:, 0]) * x[:, 2] - (x**2).sum(1)


def test_leaves_cover_the_box_and_f_is_below_zero_on_each():
    asked = task(-1.0)
    out = prove(asked, 20_000, 30.0)
    assert out.proved
    lo, hi, _ = out.leaves
    leaves = Boxes.of(lo, hi, 4)
    volume = (asked.box.hi - asked.box.lo).prod()
    assert len(leaves) > 1
    assert (leaves.hi - leaves.lo).prod(1).sum() == pytest.approx(volume, rel=1e-9)
    x = np.random.default_rng(0).uniform(asked.box.lo, asked.box.hi, (300, 4))
    inside = (leaves.lo <= x[:, None]) & (x[:, None] <= leaves.hi)
    assert inside.all(2).any(1).all()
    assert values(x, -1.0).max() < 0.0


def test_a_little_above_zero_is_not_proved():
    """At the maximum F is 5e-4 above zero; lowered by this it is proved."""
    grid = np.stack(np.meshgrid(np.linspace(-1, 1, 401), np.linspace(-1, 1, 401)), -1).reshape(-1, 2)
    x = np.zeros((len(grid), 4))
    x[:, [0, 2]] = grid
    largest = values(x, 0.0).max()
    half = (1.0, 0.01, 1.0, 0.01)
    assert not prove(task(5e-4 - largest, half), 20_000, 10.0).proved
    assert prove(task(-5e-3 - largest, half), 20_000, 10.0).proved


def test_the_smallest_value_on_the_boundary_is_bounded_from_below():
    """V = 2 - F with F = -|x|^2 + 1.5 sin(3 q1) v1, on a grid of the faces of the box."""
    asked = task(-2.0)
    q, v = np.linspace(-1.0, 1.0, 401)[:, None], np.linspace(-1.0, 1.0, 401)
    W = q**2 + v**2 - 1.5 * np.sin(3.0 * q) * v
    least = 2.0 + min(W[[0, -1]].min(), W[:, [0, -1]].min(), W.min() + 4.0)  # on q1 = +-1, v1 = +-1, q2 or v2 = +-2
    assert 0.97 * least < least_on_boundary(asked.bounds, asked.box) <= least
