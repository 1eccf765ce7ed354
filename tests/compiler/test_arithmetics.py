"""Kernels with other numbers than floats, which show properties of the equations that rounding hides."""

import cmath
import math
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest

from geomctrl import models
from geomctrl.compiler.arithmetic import Arithmetic, Sizes, evaluated
from geomctrl.compiler.kernel_traces import structure
from geomctrl.kernels import articulated_bodies, composite_bodies, newton_euler
from geomctrl.testing import random_robot

ARMS = [models.panda(), random_robot(np.random.default_rng(5), ["helical", "revolute", "prismatic"], [-1, 0, 0])]
# placements are rotated by quarter turns, which are exact with any number of digits
SQUARE = [models.panda(), models.scara()]


def on_numbers(robot, algorithm, arithmetic, *inputs, number=float, **options):
    pattern = structure(robot._model)
    model = [number(x) if np.isnan(known) else known for x, known in zip(robot._model, pattern)]
    rows = [np.array([*x, None])[:-1] for x in (model, *inputs)]
    rows += [np.empty(0, object)] * (1 + len(algorithm.inputs) - len(rows))
    good, outputs = evaluated(algorithm, Sizes(pattern), rows[0], [*rows[1:], *options.values()], arithmetic)
    assert good
    return outputs


def digits():
    """mpmath's numbers with the current number of digits."""
    return Arithmetic(mpmath.mp, zero=mpmath.mpf(0))


@pytest.mark.parametrize("robot", ARMS, ids=lambda r: r.name)
def test_complex_steps_are_derivatives(robot):
    """Im M(q + i h v) / h is Mdot, without cancellation."""
    q, v = robot.random_configuration(np.random.default_rng(0)), np.random.default_rng(1).normal(size=robot.nv)
    (M,) = on_numbers(robot, composite_bodies.mass_matrix, Arithmetic(cmath, zero=0j), q + 1e-100j * v)
    Mdot = M.astype(complex).imag * 1e100
    np.testing.assert_allclose(Mdot, robot.terms(q, v).Mdot, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("robot", SQUARE, ids=lambda r: r.name)
def test_fifty_digits_are_what_floats_round(robot):
    """Inverse dynamics after forward dynamics is the identity to 45 digits; with floats it is off by their rounding."""
    rng = np.random.default_rng(2)
    q = robot.random_configuration(rng)
    v, tau = rng.normal(size=(2, robot.nv))
    with mpmath.workdps(50):
        many = [[mpmath.mpf(x) for x in y] for y in (q, v, tau)]
        exact = {"number": mpmath.mpf}  # sums of masses are exact too
        (a,) = on_numbers(robot, articulated_bodies.forward_dynamics, digits(), *many, **exact)
        (back,) = on_numbers(robot, newton_euler.inverse_dynamics, digits(), many[0], many[1], a, **exact)
        assert max(abs(x - y) for x, y in zip(back, many[2])) < mpmath.mpf(10) ** -44
    np.testing.assert_allclose(robot.forward_dynamics(q, v, tau), a.astype(float), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("form", [0, 1, 3], ids=["ploen", "christoffel", "adjoint"])
@pytest.mark.parametrize("robot", SQUARE, ids=lambda r: r.name)
def test_skew_symmetry_to_thirty_digits(robot, form):
    """C + C^T is the difference quotient of M along v, for all forms: Mdot - 2C is skew."""
    rng = np.random.default_rng(3)
    with mpmath.workdps(60):
        q, v = (np.array([mpmath.mpf(x) for x in y], object)
                for y in (robot.random_configuration(rng), rng.normal(size=robot.nv)))  # fmt: skip
        h = mpmath.mpf(10) ** -18
        exact = {"number": mpmath.mpf}  # sums of masses are exact too
        mass_matrix = composite_bodies.mass_matrix
        (after,), (before,) = (on_numbers(robot, mass_matrix, digits(), q + s * v, **exact) for s in (h, -h))
        _, _, C, _ = on_numbers(robot, composite_bodies.terms, digits(), q, v, form=form, **exact)
        assert max(abs(x) for x in ((after - before) / (2 * h) - C - C.T).ravel()) < mpmath.mpf(10) ** -30


@dataclass(frozen=True)
class Dual:
    """Dual numbers x + x' e with e^2 = 0 over the fractions; a float is converted to its exact fraction."""

    x: Fraction
    rate: Fraction = Fraction(0)

    def __add__(self, other):
        other = dual(other)
        return Dual(self.x + other.x, self.rate + other.rate)

    def __mul__(self, other):
        other = dual(other)
        return Dual(self.x * other.x, self.x * other.rate + self.rate * other.x)

    def __truediv__(self, other):
        other = dual(other)
        return Dual(self.x / other.x, (self.rate * other.x - self.x * other.rate) / other.x**2)

    def __neg__(self):
        return Dual(-self.x, -self.rate)

    def __sub__(self, other):
        return self + -dual(other)

    def __rsub__(self, other):
        return -self + other

    def __rtruediv__(self, other):
        return dual(other) / self

    __radd__, __rmul__ = __add__, __mul__


def dual(x):
    return x if isinstance(x, Dual) else Dual(Fraction(x))


@pytest.mark.parametrize("form", [0, 1, 3], ids=["ploen", "christoffel", "adjoint"])
def test_skew_symmetry_is_exact_on_rational_circles(form):
    """q = 2 atan(t): sines and cosines of rational t are rational, and C + C^T is the exact rate of M along v."""
    circle = SimpleNamespace(sin=lambda t: 2 * t / (1 + t * t), cos=lambda t: (1 - t * t) / (1 + t * t))
    robot, exact = models.panda(), Arithmetic(circle, zero=dual(0))
    t, v = ([Fraction(int(k), 7) for k in row] for row in np.random.default_rng(4).integers(-9, 9, (2, 7)))
    moving = [Dual(x, rate * (1 + x * x) / 2) for x, rate in zip(t, v)]
    (M,) = on_numbers(robot, composite_bodies.mass_matrix, exact, moving, number=dual)
    still = [[dual(x) for x in y] for y in (t, v)]
    _, _, C, _ = on_numbers(robot, composite_bodies.terms, exact, *still, number=dual, form=form)
    assert [x.rate for x in M.ravel()] == [x.x for x in (C + C.T).ravel()]
    at = np.array([2.0 * math.atan(x) for x in t])
    created = np.array([[float(x.x) for x in row] for row in C])
    forms = {0: "ploen", 1: "christoffel", 3: "adjoint"}
    np.testing.assert_allclose(created, robot.terms(at, np.array(v, float), forms[form]).C, rtol=1e-11, atol=1e-13)


def test_intervals_enclose():
    """Boxes of configurations give boxes of torques that contain every sample, and shrink with the box."""
    robot, rng = models.panda(), np.random.default_rng(5)
    q, radius = robot.random_configuration(rng), 0.01
    widths = []
    for r in (radius, radius / 10):
        box = [mpmath.iv.mpf([x - r, x + r]) for x in q]
        (g,) = on_numbers(robot, newton_euler.gravity_force, Arithmetic(mpmath.iv, zero=mpmath.iv.mpf(0)), box)
        samples = robot.gravity_force(q + r * rng.uniform(-1.0, 1.0, (500, 7)))
        low, high = np.array([[float(x.a), float(x.b)] for x in map(mpmath.iv.mpf, g)]).T
        assert (low <= samples.min(axis=0)).all()
        assert (samples.max(axis=0) <= high).all()
        widths.append(high - low)
    assert (widths[1] < 0.2 * widths[0] + 1e-12).all()
