"""Branch and bound over boxes of configurations, for robots of few joints with one degree of freedom.

Every quantity is a convex function f of an array A(q), which is linear in M, in the tensor of C, in dg/dq or in g, with
f(A + R) <= f(A) + |R|. In a box with middle c and half sides d, Taylor's theorem gives

    f(A(q)) <= max over the corners s of f(A(c) + sum_k s_k d_k dA/dq_k(c)) + 1/2 sum_kl d_k d_l sup |d^2 A/dq_k dq_l|,

because a convex function is largest at corners. The last suprema come from `closed_form` and hold for all
configurations. Boxes with a bound near enough to the best value found are finished, the others are halved. The error
decreases with the square of the sides. A and dA/dq are computed by the library in double precision. For the tensor of
C they are central differences, with suprema of the third derivatives as bound of their error. ROUNDING covers rounding
errors.

The norm of a tensor, sup |T(x, y, z)| over unit vectors, is at most that of its unfoldings, and at most the largest
norm of the matrices T(p) over the corners p of a polytope that contains the unit ball.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.terms import derivatives
from geomctrl.terms.bounding.quantities import Domain, Measure, gravity_derivative
from geomctrl.tracing.branch_and_bound import Decision, Divisible

from .closed_form import ClosedForm, norm_of_bounds, trilinear_norm_of_bounds

JOINTS = 3  # maximum number of joints
BATCH = 1024  # boxes evaluated together
DIFFERENCE_STEP = 2.0**-12  # rad or m, step of central differences, whose error is bounded as well
ROUNDING = 1e-11  # relative to the bound in closed form: ten thousand times the error of A(c) in double precision


class Quantity(NamedTuple):
    """A quantity f(A(q)) to be bounded from above.

    derivative: dA/dq (batch, ..., nv). above(A, enough): bounds of f, which are sharp only above `enough`. slopes (nv,)
    and bends (nv, nv): sup |dA/dq_k| and sup |d^2A/dq_k dq_l|. off (nv,): largest error of dA/dq_k. rounding: largest
    error of f.
    """

    robot: Mechanism
    measure: Measure
    derivative: Callable[[np.ndarray], np.ndarray]
    above: Callable[[np.ndarray, np.ndarray], np.ndarray]
    slopes: np.ndarray
    bends: np.ndarray
    off: np.ndarray
    rounding: float

    def over(self, middles: np.ndarray, halves: np.ndarray, active: list[int], enough: float):
        """Return (bounds over the boxes, values at their middles); bounds are sharp only above `enough`."""
        A, dA = self.measure.array(self.robot, middles), self.derivative(middles)
        rest = np.ones(len(self.slopes), bool)
        rest[active] = False
        beyond = halves @ (self.slopes * rest) + halves @ self.off + self.rounding
        inside = halves * ~rest
        beyond += 0.5 * np.einsum("bk,bl,kl->b", inside, inside, self.bends)
        corners = np.array(list(itertools.product((-1.0, 1.0), repeat=len(active)))).reshape(-1, len(active))
        steps = dA[..., active] * halves[:, active].reshape(len(halves), *[1] * (A.ndim - 1), len(active))
        at_corners = A[:, None] + np.moveaxis(np.tensordot(steps, corners, (-1, 1)), -1, 1)
        flat = at_corners.reshape(-1, *A.shape[1:])
        sharp = np.repeat(enough - beyond, len(corners))
        bounds = self.above(flat, sharp).reshape(len(A), len(corners)).max(axis=1)
        return bounds + beyond, self.measure.support(A)[0]


class Budget(NamedTuple):
    """Required sharpness of a bound, relative to the best value found or absolute, and largest cost."""

    tolerance: float
    absolute: float
    boxes: int
    seconds: float
    progress: Callable[[float], Any]

    def slack(self, best: float) -> float:
        return max(self.tolerance * abs(best), self.absolute)


class BoundClaim(Divisible):
    """The claim that f(A(q)) is at most the best value found, `best` at `where`, plus the required sharpness."""

    chunk, best_first = BATCH, True

    def __init__(self, quantity: Quantity, domain: Domain, best: float, where: np.ndarray, budget: Budget):
        self.quantity, self.best, self.where, self.budget = quantity, best, where, budget
        low, high = domain.sides
        self.starts, effect = (low[None], high[None]), quantity.slopes * 0.5 * (high - low)
        self.active = [k for k in range(len(low)) if effect[k] > 1e-3 * budget.slack(best)]
        self.sharpness = np.sqrt(np.diagonal(quantity.bends)) + 1e-9 * quantity.slopes

    def split(self, lo: np.ndarray, hi: np.ndarray, count: int) -> Decision:
        middles, halves, active = 0.5 * (lo + hi), 0.5 * (hi - lo), self.active
        above, values = self.quantity.over(middles, halves, active, self.best + self.budget.slack(self.best))
        if values[k := int(values.argmax())] > self.best:
            self.best, self.where = float(values[k]), middles[k]
        sides = np.full(len(lo), -1)
        if active:  # across the side with the largest effect
            sides = np.asarray(active)[np.argmax(halves[:, active] * self.sharpness[active], axis=1)]
        return Decision(above <= self.best + self.budget.slack(self.best), sides, bound=above)


# --- the quantities ------------------------------------------------------------------------------------------------


def quantity_of(name: str, robot: Mechanism, measure: Measure, closed: ClosedForm) -> Quantity:
    """Return the quantity of this constant, for a robot with one degree of freedom per joint and its closed form."""
    n = robot.nv
    entries, norm = _entries(name, closed), trilinear_norm_of_bounds if name == "k_C" else norm_of_bounds
    # M and C do not depend on the first coordinate
    is_nonzero = [name in ("k_g", "g") or robot.parents[field.body] >= 0 for field in closed.reach.fields]
    slopes = np.array([norm(entries(k)) if is_nonzero[k] else 0.0 for k in range(n)])
    bends = np.array(
        [[norm(entries(k, l)) if is_nonzero[k] and is_nonzero[l] else 0.0 for k in range(n)] for l in range(n)]
    )
    size = norm(entries())
    off = np.zeros(n)
    if name == "k_C":
        third = np.array([norm(entries(k, k, k)) if is_nonzero[k] else 0.0 for k in range(n)])
        off = DIFFERENCE_STEP**2 / 6.0 * third + ROUNDING * size * np.array(is_nonzero)
    derivative = {
        "m1": lambda q: derivatives.mass_matrix_derivative(robot, q),
        "m2": lambda q: derivatives.mass_matrix_derivative(robot, q),
        "k_C": partial(_central_differences, robot, measure, is_nonzero),
        "k_g": lambda q: derivatives.inverse_dynamics_second_derivatives(robot, q, 0.0 * q, 0.0 * q).dqdq,
        "g": lambda q: gravity_derivative(robot, q),
    }[name]
    above = _trilinear_above if name == "k_C" else lambda A, _: measure.support(A)[0]
    return Quantity(robot, measure, derivative, above, slopes, bends, off, ROUNDING * size)


def _entries(name: str, closed: ClosedForm) -> Callable[..., np.ndarray]:
    """Return the function that bounds the entries of A and of its derivatives."""
    if name == "k_C":
        return closed.coriolis
    if name == "g":
        return lambda *derived: closed.gravity(*derived)[:, None]
    return closed.gravity_derivative if name == "k_g" else closed.mass_matrix


def _central_differences(robot: Mechanism, measure: Measure, is_nonzero: list[bool], q: np.ndarray) -> np.ndarray:
    """Return dA/dq_k (batch, ..., nv), zero for coordinates on which A does not depend."""
    there = []
    for k, step in enumerate(DIFFERENCE_STEP * np.eye(robot.nv)):
        sides = [measure.array(robot, q + s * step) for s in (1.0, -1.0)] if is_nonzero[k] else [np.zeros(1)] * 2
        there.append(np.broadcast_to((sides[0] - sides[1]) / (2.0 * DIFFERENCE_STEP), (len(q), *[robot.nv] * 3)))
    return np.stack(there, axis=-1)


def _norm(A: np.ndarray) -> np.ndarray:
    return np.linalg.norm(A, 2, axis=(-2, -1))


def _trilinear_above(T: np.ndarray, enough: np.ndarray) -> np.ndarray:
    """Return bounds of the norms of T (batch, n, n, n): by unfoldings, or by the polytope above `enough`."""
    n = T.shape[-1]
    unfolded = [np.moveaxis(T, axis, 1).reshape(len(T), n, n * n) for axis in (1, 2, 3)]
    bounds = np.min([_norm(x) for x in unfolded], axis=0)
    open_ = np.flatnonzero(bounds > enough)
    corners = _polytope(n)
    for part in np.array_split(open_, max(1, len(open_) * len(corners) // 100_000)):
        matrices = np.tensordot(T[part], corners, (1, 1))  # (batch, n, n, corners)
        bounds[part] = np.minimum(bounds[part], _norm(np.moveaxis(matrices, -1, 1)).max(axis=1, initial=0.0))
    return bounds


@lru_cache
def _polytope(n: int) -> np.ndarray:
    """Return corners (count, n) of a polytope that contains the unit ball, one of each opposite pair."""
    if n == 1:
        return np.ones((1, 1))
    if n == 2:
        angles = np.pi * np.arange(48) / 48
        return np.stack((np.cos(angles), np.sin(angles)), axis=1) / np.cos(np.pi / 96)
    return _sphere(9)


def _sphere(cuts: int) -> np.ndarray:
    """Return `_polytope(3)`: a grid on a cube, projected to the sphere and scaled until its hull contains the ball."""
    from scipy.spatial import ConvexHull

    side = np.tan(np.linspace(-np.pi / 4, np.pi / 4, cuts))
    points = [np.roll((sign, a, b), axis) for axis in range(3) for sign in (-1.0, 1.0) for a in side for b in side]
    points = np.unique(np.round(np.array(points) / np.linalg.norm(points, axis=1)[:, None], 12), axis=0)
    hull = ConvexHull(points)
    nearest = -hull.equations[:, 3].max()  # distance of the nearest plane from the middle
    upper = points[(points @ (1.0, 1e-3, 1e-6)) > 0.0]
    return upper / (nearest * (1.0 - 1e-9))
