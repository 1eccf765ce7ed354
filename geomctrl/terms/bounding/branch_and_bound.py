"""Branch and bound over boxes of configurations, for robots of few joints with one degree of freedom.

Every quantity is a convex function f of an array A(q) that is linear in what it measures (M, the tensor of C, dg/dq, g),
with f(A + R) <= f(A) + |R|. In a box with middle c and half sides d, Taylor's theorem gives

    f(A(q)) <= max over the corners s of f(A(c) + sum_k s_k d_k dA/dq_k(c)) + 1/2 sum_kl d_k d_l sup |d^2 A/dq_k dq_l|,

as a convex function is largest at corners; the last suprema are those of `closed_form`, for all configurations. Boxes
whose bound is near enough to the best value found are done, the others are halved. The error falls with the square of
the sides. A and dA/dq are the library's own, in double precision, and for the tensor of C, which it has no derivative of, central
differences with the third derivatives' suprema; ROUNDING covers what rounding does to them.

The norm of a tensor, sup |T(x, y, z)| over unit vectors, is at most that of its unfoldings, and at most the largest
norm of the matrices T(p) over the corners p of a polytope that contains the unit ball.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.terms import derivatives, dynamics

from .closed_form import ClosedForm, norm_of_bounds, trilinear_norm_of_bounds
from .domain import Domain
from .quantities import coriolis_tensor, gravity_derivative, trilinear_norm

JOINTS = 3  # at most
BATCH = 1024  # boxes at once
STEP = 2.0**-12  # rad or m, of central differences, whose error is bounded like all else
ROUNDING = 1e-11  # of the closed form's bound: ten thousand times the error of A(c) in double precision


class Outcome(NamedTuple):
    """The proved bound, the best value found with its q, how many boxes were looked at, and whether all are done."""

    bound: float
    found: float
    q: np.ndarray
    boxes: int
    finished: bool


class Quantity:
    """What is bounded from above: f(A(q)). slopes (nv,), bends (nv, nv): sup |dA/dq_k|, sup |d^2A/dq_k dq_l|;
    unknown (nv,): by how much the derivatives that `at` gives may be off."""

    def __init__(
        self,
        at: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
        above: Callable[[np.ndarray, np.ndarray], np.ndarray],
        below: Callable[[np.ndarray], np.ndarray],
        slopes: np.ndarray,
        bends: np.ndarray,
        size: float,
        unknown: np.ndarray | None = None,
    ):
        self.at, self.above, self.below = at, above, below
        self.slopes, self.bends, self.rounding = slopes, bends, ROUNDING * size
        self.unknown = np.zeros_like(slopes) if unknown is None else unknown

    def over(self, middles: np.ndarray, halves: np.ndarray, active: list[int], enough: float):
        """(bounds over the boxes, values at their middles), bounds being sharp only above `enough`."""
        A, dA = self.at(middles)
        rest = np.ones(len(self.slopes), bool)
        rest[active] = False
        beyond = halves @ (self.slopes * rest) + halves @ self.unknown + self.rounding
        inside = halves * ~rest
        beyond += 0.5 * np.einsum("bk,bl,kl->b", inside, inside, self.bends)
        corners = np.array(list(itertools.product((-1.0, 1.0), repeat=len(active)))).reshape(-1, len(active))
        steps = dA[..., active] * halves[:, active].reshape(len(halves), *[1] * (A.ndim - 1), len(active))
        at_corners = A[:, None] + np.moveaxis(np.tensordot(steps, corners, (-1, 1)), -1, 1)
        flat = at_corners.reshape(-1, *A.shape[1:])
        sharp = np.repeat(enough - beyond, len(corners))
        bounds = self.above(flat, sharp).reshape(len(A), len(corners)).max(axis=1)
        return bounds + beyond, self.below(A)


def searched(
    quantity: Quantity,
    domain: Domain,
    best: float,
    where: np.ndarray,
    tolerance: float,
    most: int,
    until: float,
    progress: Callable[[float], object],
) -> Outcome:
    """A bound of f(A(q)) over the domain, within tolerance |best| of the best value found if the budget is enough."""
    low, high = domain.sides
    whole = 0.5 * (high - low)
    active = [k for k in range(len(low)) if quantity.slopes[k] * whole[k] > 1e-3 * tolerance * abs(best)]
    middles, halves, bounds = 0.5 * (low + high)[None], whole[None], np.array([np.inf])
    bound, count, volume = -np.inf, 0, 1.0
    sharpness = np.sqrt(np.diagonal(quantity.bends)) + 1e-9 * quantity.slopes
    while len(middles) and count < most and time.monotonic() < until:
        order = np.argsort(-bounds)
        now, later = order[:BATCH], order[BATCH:]
        enough = best + tolerance * abs(best)
        above, values = quantity.over(middles[now], halves[now], active, enough)
        count += len(now)
        above = np.minimum(above, bounds[now])
        if values[k := int(values.argmax())] > best:
            best, where = float(values[k]), middles[now[k]]
        done = above <= best + tolerance * abs(best)
        bound = max(bound, float(above[done].max(initial=-np.inf)))
        volume -= float(np.prod(halves[now[done]][:, active] / whole[active], axis=1).sum())
        progress(1.0 - max(volume, 0.0))
        split = now[~done]
        if not active:
            return Outcome(max(bound, float(above.max())), best, where, count, not len(split))
        m, h, b = _halved(middles[split], halves[split], above[~done], active, sharpness)
        middles = np.concatenate((middles[later], m))
        halves, bounds = np.concatenate((halves[later], h)), np.concatenate((bounds[later], b))
    finished = len(middles) == 0
    return Outcome(max(bound, float(bounds.max(initial=-np.inf)), best), best, where, count, finished)


def _halved(middles: np.ndarray, halves: np.ndarray, bounds: np.ndarray, active: list[int], sharpness: np.ndarray):
    """Each box in two, across the side that matters most."""
    k = np.asarray(active)[np.argmax(halves[:, active] * sharpness[active], axis=1)]
    rows = np.arange(len(k))
    halves = halves.copy()
    halves[rows, k] *= 0.5
    step = np.zeros_like(middles)
    step[rows, k] = halves[rows, k]
    return np.concatenate((middles - step, middles + step)), np.tile(halves, (2, 1)), np.tile(bounds, 2)


# --- the quantities ------------------------------------------------------------------------------------------------


class Quantities:
    """The quantities of a robot whose joints have one degree of freedom, with the suprema of its closed form."""

    def __init__(self, robot: Mechanism, closed: ClosedForm):
        self.robot, self.closed, n = robot, closed, robot.nv
        self.moved = [robot.parents[f.body] >= 0 for f in closed.reach.fields]  # M and C know no other coordinates
        self.pairs = [(k, l) for k in range(n) for l in range(n)]

    def _suprema(self, norm, entries, moved: bool) -> tuple[np.ndarray, np.ndarray]:
        n = self.robot.nv
        known = [not moved or m for m in self.moved]
        slopes = np.array([norm(entries(k)) if known[k] else 0.0 for k in range(n)])
        bends = [norm(entries(k, l)) if known[k] and known[l] else 0.0 for k, l in self.pairs]
        return slopes, np.array(bends).reshape(n, n)

    @cached_property
    def _mass_matrix(self):
        def at(q: np.ndarray):
            return dynamics.mass_matrix(self.robot, q), derivatives.mass_matrix_derivative(self.robot, q)

        return at, self._suprema(norm_of_bounds, self.closed.mass_matrix, True)

    def least_eigenvalue(self) -> Quantity:
        """Of M, with its sign turned."""
        at, suprema = self._mass_matrix
        return Quantity(at, lambda A, _: -np.linalg.eigvalsh(A)[:, 0], lambda A: -np.linalg.eigvalsh(A)[:, 0], *suprema, self.closed.m2())

    def greatest_eigenvalue(self) -> Quantity:
        at, suprema = self._mass_matrix
        return Quantity(at, lambda A, _: np.linalg.eigvalsh(A)[:, -1], lambda A: np.linalg.eigvalsh(A)[:, -1], *suprema, self.closed.m2())

    def gravity_stiffness(self) -> Quantity:
        def at(q: np.ndarray):
            rest = np.zeros_like(q)
            return gravity_derivative(self.robot, q), derivatives.inverse_dynamics_second_derivatives(
                self.robot, q, rest, rest
            ).dqdq

        suprema = self._suprema(norm_of_bounds, self.closed.gravity_derivative, False)
        return Quantity(at, lambda A, _: _norm(A), _norm, *suprema, self.closed.k_g())

    def gravity_norm(self) -> Quantity:
        def at(q: np.ndarray):
            return dynamics.gravity_force(self.robot, q), gravity_derivative(self.robot, q)

        n, entries = self.robot.nv, self.closed.gravity_derivative
        slopes = np.linalg.norm(entries(), axis=0)
        bends = np.array([[np.linalg.norm(entries(l)[:, k]) for l in range(n)] for k in range(n)])
        return Quantity(at, lambda A, _: np.linalg.norm(A, axis=1), lambda A: np.linalg.norm(A, axis=1), slopes, bends, self.closed.g())

    def coriolis(self, form: dynamics.Form) -> Quantity:
        n, closed = self.robot.nv, self.closed
        size = closed.k_C(form)

        def at(q: np.ndarray):
            T, dT = coriolis_tensor(self.robot, q, form), np.zeros((len(q), n, n, n, n))
            for k in np.flatnonzero(self.moved):
                step = np.zeros(n)
                step[k] = STEP
                there, back = (coriolis_tensor(self.robot, q + x, form) for x in (step, -step))
                dT[..., k] = (there - back) / (2.0 * STEP)
            return T, dT

        def entries(*derived: int) -> np.ndarray:
            return closed.christoffel(*derived) + closed.skew_part(form, *derived)

        slopes, bends = self._suprema(trilinear_norm_of_bounds, entries, True)
        third = [trilinear_norm_of_bounds(entries(k, k, k)) if moved else 0.0 for k, moved in enumerate(self.moved)]
        unknown = STEP**2 / 6.0 * np.array(third) + ROUNDING * size * np.array(self.moved)
        return Quantity(at, _trilinear_above, lambda A: trilinear_norm(A)[0], slopes, bends, size, unknown)


def _norm(A: np.ndarray) -> np.ndarray:
    return np.linalg.norm(A, 2, axis=(-2, -1))


def _trilinear_above(T: np.ndarray, enough: np.ndarray) -> np.ndarray:
    """Bounds of the norms of T (batch, n, n, n); the polytope's where the unfoldings do not say at most `enough`."""
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
    """Corners (count, n) of a polytope that contains the unit ball, one of each pair of opposite ones."""
    if n == 1:
        return np.ones((1, 1))
    if n == 2:
        angles = np.pi * np.arange(48) / 48
        return np.stack((np.cos(angles), np.sin(angles)), axis=1) / np.cos(np.pi / 96)
    return _sphere(9)


def _sphere(cuts: int) -> np.ndarray:
    """For n = 3: a cube's grid thrown on the sphere, and moved out until the planes of its hull miss the ball."""
    from scipy.spatial import ConvexHull

    side = np.tan(np.linspace(-np.pi / 4, np.pi / 4, cuts))
    points = [np.roll((sign, a, b), axis) for axis in range(3) for sign in (-1.0, 1.0) for a in side for b in side]
    points = np.unique(np.round(np.array(points) / np.linalg.norm(points, axis=1)[:, None], 12), axis=0)
    hull = ConvexHull(points)
    nearest = -hull.equations[:, 3].max()  # distance of the nearest plane from the middle
    upper = points[(points @ (1.0, 1e-3, 1e-6)) > 0.0]
    return upper / (nearest * (1.0 - 1e-9))
