"""A prior for robots whose model has none: bodies of uniform density between the joints, their mass from the log.

Each link is capsules from its own joint's origin to those of the joints it carries, a ball where it carries none, all
of one radius: a quarter of the mean distance between joints, as arms are built (about as wide as half their length).
Mass goes with volume times beta^depth, as links get lighter outward, or heavier where a payload is; beta, of a few, and
the mass of it all are those that explain the log best, by least squares together with all that is no inertia. So two
numbers of the prior are from the log, which determines 30 to 80; folds of a cross-validation share them.
"""

from __future__ import annotations

import numpy as np

from geomctrl.mechanism import inertia
from geomctrl.robot import Robot

from .physical import Scaled

SLENDERNESS = 0.25  # radius by length
TAPERS = (1.5, 1.0, 0.7, 0.5, 0.35)  # beta
ALIKE = 1e-9  # relative difference of bodies that are one placeholder, copied


def usable(bodies: np.ndarray) -> np.ndarray:
    """(n,) bool: which bodies (n, 10) say something about mass and size.

    Not those that can not exist (no mass, no extent), nor placeholders: three bodies or more that are all the same.
    """
    bodies = np.asarray(bodies, float)
    good = np.array(inertia.is_physical(bodies, strict=True)) & (bodies[:, 0] > 0.0)
    if len(bodies) >= 3 and np.abs(bodies - bodies[0]).max() <= ALIKE * np.abs(bodies[0]).max():
        good[:] = False
    return good


def shapes(robot: Robot) -> np.ndarray:
    """(nbodies, 10): capsules between joints, their mass such that a robot's mean is 1 kg."""
    ends = [[robot.placements[j][:3, 3] for j in range(robot.nbodies) if robot.parents[j] == i]
            for i in range(robot.nbodies)]  # fmt: skip
    lengths = np.linalg.norm([x for e in ends for x in e] or np.zeros((1, 3)), axis=1)
    apart = lengths > 1e-6
    radius = SLENDERNESS * max(float(lengths[apart].mean()) if apart.any() else 0.2, 0.05)
    bodies = np.array([sum(_capsule(x, radius) for x in (e or [np.zeros(3)])) for e in ends])
    return bodies / bodies[:, 0].mean()


def bodies_for(scaled: Scaled, bodies: np.ndarray, replace: np.ndarray) -> np.ndarray:
    """(nbodies, 10): `bodies` where not `replace` (nbodies,), else capsules whose mass the log sets."""
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
    """(how often `unit` bodies, the error that is left), with `others` beside and all else free."""
    from scipy.optimize import lsq_linear

    model, A = scaled.model, scaled.A / scaled.scale
    own = np.arange(model.inertial, model.size)
    b = scaled.b - A[:, : model.inertial] @ others.ravel()
    columns = np.column_stack((A[:, : model.inertial] @ unit.ravel(), A[:, own] * scaled.scale[own]))
    low = np.where(np.isin(own, model.positive), 0.0, -np.inf)
    typical = scaled.mass * unit[:, 0].sum() / max(np.count_nonzero(unit[:, 0]), 1) ** 2
    smooth = 1e-4 * np.eye(len(own) + 1)  # columns that the log does not tell apart
    smooth[0, 0] = 0.0
    solution = lsq_linear(
        np.vstack((columns, smooth)), np.append(b, np.zeros(len(smooth))), bounds=(np.append(1e-9, low), np.inf)
    )
    mass = float(solution.x[0])
    return (mass if mass > 1e-6 else max(typical, 1e-3)), float(solution.cost)


def _capsule(end: np.ndarray, radius: float) -> np.ndarray:
    """Parameters (10,) of a capsule of density 1 from the origin to `end`: a cylinder, half a ball at either end."""
    length = float(np.linalg.norm(end))
    cylinder, ball = np.pi * radius**2 * length, 4.0 / 3.0 * np.pi * radius**3
    if length == 0.0:
        return inertia.from_pseudo(_second(ball, end, radius**2 / 5.0 * np.eye(3)))
    axis = end / length
    along, beyond = np.outer(axis, axis), 3.0 / 8.0 * radius * axis  # where the half ball's centre of mass is
    P = _second(cylinder, 0.5 * end, length**2 / 12.0 * along + radius**2 / 4.0 * (np.eye(3) - along))
    half = radius**2 / 5.0 * np.eye(3) - np.outer(beyond, beyond)
    return inertia.from_pseudo(P + _second(0.5 * ball, -beyond, half) + _second(0.5 * ball, end + beyond, half))


def _second(mass: float, centre: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """The pseudo-inertia of a mass spread with this covariance about its centre."""
    P = np.empty((4, 4))
    P[:3, :3] = mass * (covariance + np.outer(centre, centre))
    P[:3, 3] = P[3, :3] = mass * centre
    P[3, 3] = mass
    return P
