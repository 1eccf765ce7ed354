"""What `choosing` tries weights on: a log's folds in natural units, the prior, the bounds that an estimator has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomctrl.arguments import number
from geomctrl.identification.model.compressed import Compressed
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.mechanism import inertia

from .barrier import SLACK, Bounds, Interior, Quadratic
from .estimator import Estimator
from .folds import Folds
from .geometric import bodies_for, usable
from .least_squares import prior_of
from .physical import LARGEST, Scaled, in_natural_units
from .semidefinite import boxes, ellipsoids, fixed_bodies, mass_bounds, require_total


@dataclass(frozen=True, eq=False)
class Prior:
    """x0 (size,), and the names of bodies that had to be replaced by geometric ones."""

    x: np.ndarray
    replaced: tuple[str, ...] = ()


def prior_for(model: RegressorModel, folds: Folds, options: Mapping[str, Any]) -> Prior:
    """The prior that was asked for, with geometric bodies where it has none to use."""
    x = prior_of(model, options.get("prior"))
    nominal = x[: model.inertial].reshape(-1, 10)
    bad = ~usable(nominal)
    bad[fixed_bodies(model.robot, options.get("fixed", ()))] = False
    if not bad.any():
        return Prior(x)
    bodies = bodies_for(in_natural_units(model, folds.whole, None, x), nominal, bad)
    low, high = mass_bounds(model.robot, options.get("mass_min"), options.get("mass_max"))
    inside = np.clip(bodies[:, 0], low, np.where(np.isfinite(high), 0.5 * (low + high), np.inf))
    bodies = np.where(bad[:, None], bodies * (inside / bodies[:, 0])[:, None], bodies)
    names = tuple(name for name, b in zip(model.robot.body_names, bad) if b)
    return Prior(np.concatenate((bodies.ravel(), x[model.inertial :])), names)


def is_ours(estimator: Estimator) -> bool:
    """Whether it minimises the objective of `consistent`, which `barrier` solves."""
    return estimator.physical and {"regularization", "entropic", "margin"} <= set(estimator.options)


class FoldProblem:
    """Estimates from all folds but one, at any weight of the prior; w (nv,): weights of joints."""

    def __init__(self, model: RegressorModel, folds: Folds, prior: Prior, w: np.ndarray, options: Mapping[str, Any],
                 estimator: Estimator):  # fmt: skip
        self.model, self.folds, self.prior, self.options, self.estimator = model, folds, prior, options, estimator
        self.near: dict[int, np.ndarray] = {}
        self.weights, self.ours = w, is_ours(estimator)
        if not self.ours:
            return
        self.scaled = in_natural_units(model, folds.whole, w, prior.x)
        self.y0 = prior.x / self.scaled.scale
        self.logs = [self._quadratic(c.system(w)) for c in folds.rest]
        self.whole = Quadratic.of(self.scaled.A, self.scaled.b)
        bounds, start = _bounds(self.scaled, options), _start(self.scaled, options)
        inside = bounds.d - bounds.C @ start > 0.0  # a bound that no start was found for does not decide over weights
        bounds = Bounds(bounds.C[inside], bounds.d[inside], bounds.bodies, bounds.free, bounds.total)
        self.interior = Interior(self.y0, model.robot.nbodies, bounds, options.get("margin", 1e-6))
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
    """(n,) bool of bodies (n, 10): least principal moment below `limit` of the next, or so the pseudo-inertia's
    eigenvalues."""
    moments = np.linalg.eigvalsh(inertia.com_tensor(bodies))
    eigenvalues = np.linalg.eigvalsh(inertia.pseudo(bodies))
    return (moments[:, 0] < limit * moments[:, 1]) | (eigenvalues[:, 0] < limit * eigenvalues[:, 1])


def _bounds(scaled: Scaled, options: Mapping[str, Any]) -> Bounds:
    model = scaled.model
    n, unit = model.robot.nbodies, np.eye(model.size)
    low, high = mass_bounds(model.robot, options.get("mass_min"), options.get("mass_max"))
    total = options.get("total_mass")
    total = None if total is None else number("total_mass", total, "a number >= 0", lambda x: x >= 0.0)
    fixed = fixed_bodies(model.robot, options.get("fixed", ()))
    if not fixed:  # whose masses are the prior's
        require_total(low, high, total)
    low, high = low / scaled.mass, high / scaled.mass
    rows, d = [], []
    if options.get("friction_signs", True):
        rows, d = list(-unit[model.positive]), [0.0] * len(model.positive)
    for i, (box_low, box_high) in enumerate(_boxes(scaled, options)):
        if i in fixed:
            continue
        mass = unit[10 * i]
        if high[i] < LARGEST:
            rows, d = [*rows, mass], [*d, high[i] + SLACK]
        if low[i] > 0.0:
            rows, d = [*rows, -mass], [*d, SLACK - low[i]]
        for k in range(3):
            if box_high[k] < LARGEST:
                rows, d = [*rows, unit[10 * i + 1 + k] - box_high[k] * mass], [*d, SLACK]
            if box_low[k] > -LARGEST:
                rows, d = [*rows, box_low[k] * mass - unit[10 * i + 1 + k]], [*d, SLACK]
    bodies, free = np.ones(n, bool), np.ones(model.size, bool)
    bodies[fixed] = False
    free[: model.inertial] = np.repeat(bodies, 10)
    C = np.array(rows).reshape(len(rows), model.size)
    return Bounds(C, np.array(d), bodies, free, None if total is None else total / scaled.mass)


def _boxes(scaled: Scaled, options: Mapping[str, Any]) -> np.ndarray:
    """(nbodies, 2, 3): bounds of centres of mass in natural units, those of ellipsoids the boxes about them."""
    robot = scaled.model.robot
    out = np.array(boxes(robot, options.get("com_box")))
    for box, entry in zip(out, ellipsoids(robot, options.get("com_ellipsoid"))):
        if entry is not None:
            centre, radii = entry
            box[:] = np.maximum(box[0], centre - radii), np.minimum(box[1], centre + radii)
    return out / scaled.length


def _start(scaled: Scaled, options: Mapping[str, Any]) -> np.ndarray:
    """y (size,) near the prior and within the bounds: bodies made heavier or lighter, and moved."""
    model, margin = scaled.model, options.get("margin", 1e-6)
    y = scaled.prior / scaled.scale
    low, high = (x / scaled.mass for x in mass_bounds(model.robot, options.get("mass_min"), options.get("mass_max")))
    fixed = fixed_bodies(model.robot, options.get("fixed", ()))
    for i, (box_low, box_high) in enumerate(_boxes(scaled, options)):
        if i in fixed:
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
    if options.get("friction_signs", True):
        y[model.positive] = np.maximum(y[model.positive], 1e-3)
    return y
