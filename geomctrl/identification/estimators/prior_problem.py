"""Cross-validation problem of a prior: a log's folds, an estimator's bounds, and a prior if the model has none.

Without usable bodies in the model, the prior has bodies of uniform density between the joints, with masses from the
log. Each link consists of capsules from its own joint's origin to those of the joints that it carries, or of a ball if
it carries none. All have one radius: a quarter of the mean distance between joints, because arms are about as wide as
half their length. Mass is volume times beta^depth, because links get lighter outward, or heavier with a payload. beta,
out of a few values, and the total mass are those that explain the log best, by least squares together with all
parameters that are not inertial. So two numbers of the prior come from the log, which determines 30 to 80; the folds of
a cross-validation share them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomctrl.identification.model.compressed import Compressed
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.mechanism import inertia
from geomctrl.robot import Robot

from .barrier import BOUND_MARGIN, Bounds, Interior, Quadratic
from .estimate import Estimator
from .folds import Folds
from .least_squares import prior_of
from .semidefinite import BodyBounds, Scaled, in_natural_units

SLENDERNESS = 0.25  # ratio of radius to length
TAPERS = (1.5, 1.0, 0.7, 0.5, 0.35)  # beta
PLACEHOLDER_TOLERANCE = 1e-9  # relative difference up to which bodies are copies of one placeholder


def usable(bodies: np.ndarray) -> np.ndarray:
    """(n,) bool: which bodies (n, 10) are neither impossible nor placeholders, three or more that are all equal."""
    bodies = np.asarray(bodies, float)
    good = np.array(inertia.is_physical(bodies, strict=True)) & (bodies[:, 0] > 0.0)
    if len(bodies) >= 3 and np.abs(bodies - bodies[0]).max() <= PLACEHOLDER_TOLERANCE * np.abs(bodies[0]).max():
        good[:] = False
    return good


def shapes(robot: Robot) -> np.ndarray:
    """(nbodies, 10): capsules between joints, scaled to a mean mass of 1 kg."""
    ends = [[robot.placements[j][:3, 3] for j in range(robot.nbodies) if robot.parents[j] == i]
            for i in range(robot.nbodies)]  # fmt: skip
    lengths = np.linalg.norm([x for e in ends for x in e] or np.zeros((1, 3)), axis=1)
    apart = lengths > 1e-6
    radius = SLENDERNESS * max(float(lengths[apart].mean()) if apart.any() else 0.2, 0.05)
    bodies = np.array([sum(_capsule(x, radius) for x in (e or [np.zeros(3)])) for e in ends])
    return bodies / bodies[:, 0].mean()


def bodies_for(scaled: Scaled, bodies: np.ndarray, replace: np.ndarray) -> np.ndarray:
    """(nbodies, 10): `bodies`, replaced where `replace` (nbodies,) by capsules whose mass comes from the log."""
    robot, unit = scaled.model.robot, shapes(scaled.model.robot)
    depth = np.zeros(robot.nbodies)
    for i, p in enumerate(robot.parents):
        depth[i] = depth[p] + 1.0 if p >= 0 else 0.0
    best, out = np.inf, np.array(bodies, float)
    for taper in TAPERS:
        tapered = unit * (taper**depth)[:, None]
        mass, error = _mass(scaled, np.where(replace[:, None], tapered, 0.0), np.where(replace[:, None], 0.0, bodies))
        if error < best * (1.0 - 1e-9):
            best, out = error, np.where(replace[:, None], mass * tapered, bodies)
    return out


def _mass(scaled: Scaled, unit: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """(factor of the `unit` bodies, the remaining error), with `others` fixed and all else free."""
    from scipy.optimize import lsq_linear

    model, A = scaled.model, scaled.A / scaled.scale
    own = np.arange(model.inertial, model.size)
    b = scaled.b - A[:, : model.inertial] @ others.ravel()
    columns = np.column_stack((A[:, : model.inertial] @ unit.ravel(), A[:, own] * scaled.scale[own]))
    low = np.where(np.isin(own, model.positive), 0.0, -np.inf)
    typical = scaled.mass * unit[:, 0].sum() / max(np.count_nonzero(unit[:, 0]), 1) ** 2
    smooth = 1e-4 * np.eye(len(own) + 1)  # regularises columns that the log can not separate
    smooth[0, 0] = 0.0
    solution = lsq_linear(
        np.vstack((columns, smooth)), np.append(b, np.zeros(len(smooth))), bounds=(np.append(1e-9, low), np.inf)
    )
    mass = float(solution.x[0])
    return (mass if mass > 1e-6 else max(typical, 1e-3)), float(solution.cost)


def _capsule(end: np.ndarray, radius: float) -> np.ndarray:
    """Parameters (10,) of a capsule of density 1 from the origin to `end`: a cylinder with a half ball at each end."""
    length = float(np.linalg.norm(end))
    cylinder, ball = np.pi * radius**2 * length, 4.0 / 3.0 * np.pi * radius**3
    if length == 0.0:
        return inertia.from_pseudo(_second(ball, end, radius**2 / 5.0 * np.eye(3)))
    axis = end / length
    along, beyond = np.outer(axis, axis), 3.0 / 8.0 * radius * axis  # offset of the half ball's centre of mass
    P = _second(cylinder, 0.5 * end, length**2 / 12.0 * along + radius**2 / 4.0 * (np.eye(3) - along))
    half = radius**2 / 5.0 * np.eye(3) - np.outer(beyond, beyond)
    return inertia.from_pseudo(P + _second(0.5 * ball, -beyond, half) + _second(0.5 * ball, end + beyond, half))


def _second(mass: float, centre: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """The pseudo-inertia of a mass with this covariance about its centre."""
    P = np.empty((4, 4))
    P[:3, :3] = mass * (covariance + np.outer(centre, centre))
    P[:3, 3] = P[3, :3] = mass * centre
    P[3, 3] = mass
    return P


# --- estimates from folds --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Prior:
    """x0 (size,), and the names of bodies that were replaced by geometric ones."""

    x: np.ndarray
    replaced: tuple[str, ...] = ()


def prior_for(model: RegressorModel, folds: Folds, options: Mapping[str, Any]) -> Prior:
    """The requested prior, with bodies of uniform density in place of unusable ones."""
    x = prior_of(model, options.get("prior"))
    nominal = x[: model.inertial].reshape(-1, 10)
    bad = ~usable(nominal)
    limits = BodyBounds.of_options(model.robot, options)
    bad[limits.fixed] = False
    if not bad.any():
        return Prior(x)
    bodies = bodies_for(in_natural_units(model, folds.whole, None, x), nominal, bad)
    high = np.where(np.isfinite(limits.high), 0.5 * (limits.low + limits.high), np.inf)
    inside = np.clip(bodies[:, 0], limits.low, high)
    bodies = np.where(bad[:, None], bodies * (inside / bodies[:, 0])[:, None], bodies)
    names = tuple(name for name, b in zip(model.robot.body_names, bad) if b)
    return Prior(np.concatenate((bodies.ravel(), x[model.inertial :])), names)


def uses_barrier(estimator: Estimator) -> bool:
    """Whether it minimises the objective of `consistent`, which `barrier` solves."""
    return estimator.physical and {"regularization", "entropic", "margin"} <= set(estimator.options)


class FoldProblem:
    """Estimates from all folds but one, at any weight of the prior; w (nv,): weights of joints."""

    def __init__(self, model: RegressorModel, folds: Folds, prior: Prior, w: np.ndarray, options: Mapping[str, Any],
                 estimator: Estimator):  # fmt: skip
        self.model, self.folds, self.prior, self.options, self.estimator = model, folds, prior, options, estimator
        self.near: dict[int, np.ndarray] = {}
        self.weights, self.ours = w, uses_barrier(estimator)
        if not self.ours:
            return
        self.scaled = in_natural_units(model, folds.whole, w, prior.x)
        self.y0 = prior.x / self.scaled.scale
        self.logs = [self._quadratic(c.system(w)) for c in folds.rest]
        self.whole = Quadratic.of(self.scaled.A, self.scaled.b)
        limits, signs = BodyBounds.of_options(model.robot, options), options.get("friction_signs", True)
        margin = options.get("margin", 1e-6)
        bounds, start = _bounds(self.scaled, limits, signs), _start(self.scaled, limits, signs, margin)
        inside = bounds.d - bounds.C @ start > 0.0  # leaves out bounds that the start violates
        bounds = Bounds(bounds.C[inside], bounds.d[inside], bounds.bodies, bounds.free, bounds.total)
        self.interior = Interior(self.y0, model.robot.nbodies, bounds, margin)
        self.start = start

    def residuals(self, regularization: float, entropic: float) -> np.ndarray:
        """(folds, nv): squared residuals of every fold, predicted from the others."""
        return np.array(
            [
                held.residuals(self._solved(k, rest, regularization, entropic)) ** 2
                for k, (rest, held) in enumerate(zip(self.folds.rest, self.folds.held))
            ]
        )

    def estimate(self, regularization: float, entropic: float) -> np.ndarray:
        """x (size,) from all folds."""
        return self._solved(-1, self.folds.whole, regularization, entropic)

    def _quadratic(self, system: tuple[np.ndarray, np.ndarray]) -> Quadratic:
        A, b = system
        size = np.linalg.norm(b)
        return Quadratic.of(A * self.scaled.scale / size, b / size)

    def _solved(self, k: int, data: Compressed, regularization: float, entropic: float) -> np.ndarray:
        if not self.ours:
            values = {self.estimator.prior_weight: regularization, "weights": self.weights, "entropic": entropic}
            values |= {"prior": self.prior.x} if self.prior.replaced else {}
            options = {**self.options, **{n: v for n, v in values.items() if n in self.estimator.options}}
            return self.estimator.function(self.model, data, **options).x
        log = self.whole if k < 0 else self.logs[k]
        warm = {"first": 1e-6} if k in self.near else {}
        y, self.near[k] = self.interior.solve(log, regularization, entropic, self.near.get(k, self.start), **warm)
        return self.scaled.scale * y


def at_the_edge(bodies: np.ndarray, limit: float) -> np.ndarray:
    """(n,) bool of bodies (n, 10): smallest principal moment, or eigenvalue of the pseudo-inertia, below `limit` of the
    next."""
    moments = np.linalg.eigvalsh(inertia.com_tensor(bodies))
    eigenvalues = np.linalg.eigvalsh(inertia.pseudo(bodies))
    return (moments[:, 0] < limit * moments[:, 1]) | (eigenvalues[:, 0] < limit * eigenvalues[:, 1])


def _bounds(scaled: Scaled, limits: BodyBounds, signs: bool) -> Bounds:
    bodies, free = limits.free, np.ones(scaled.model.size, bool)
    free[: scaled.model.inertial] = np.repeat(bodies, 10)
    C, d = limits.linear(scaled, signs, BOUND_MARGIN)
    return Bounds(C, d, bodies, free, None if limits.total is None else limits.total / scaled.mass)


def _start(scaled: Scaled, limits: BodyBounds, signs: bool, margin: float) -> np.ndarray:
    """y (size,) near the prior and within the bounds: bodies made heavier or lighter, and moved."""
    model = scaled.model
    y = scaled.prior / scaled.scale
    low, high = limits.low / scaled.mass, limits.high / scaled.mass
    for i, (box_low, box_high) in enumerate(limits.boxes / scaled.length):
        if i in limits.fixed:
            continue
        P = inertia.pseudo(y[10 * i : 10 * i + 10])
        P += 2.0 * margin * np.eye(4)
        room = 0.01 * (high[i] - low[i]) if np.isfinite(high[i]) else 0.01 * low[i]
        P *= np.clip(P[3, 3], low[i] + room, high[i] - room) / P[3, 3]
        com = P[:3, 3] / P[3, 3]
        inner = 0.01 * np.minimum(box_high - box_low, 1.0)
        T = np.eye(4)
        T[:3, 3] = np.clip(com, box_low + inner, box_high - inner) - com
        y[10 * i : 10 * i + 10] = inertia.from_pseudo(T @ P @ T.T)
    if signs:
        y[model.positive] = np.maximum(y[model.positive], 1e-3)
    return y
