"""What was found of bodies, friction, rotors and springs, row by row, for the report's text and its page."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomctrl.identification.estimators import Estimate
from geomctrl.mechanism import inertia

from .identifiability import Exchange, alone, undecided

KINDS = {
    "viscous": ("viscous friction", "N m s/rad"),
    "coulomb": ("Coulomb friction", "N m"),
    "offset": ("torque offset", "N m"),
    "rotor": ("rotor inertia", "kg m^2"),
    "stiffness": ("spring", "N m/rad"),
    "preload": ("spring's torque at zero", "N m"),
    "fs": ("sigmoid friction", "N m"),
    "fb": ("Stribeck friction", "N m"),
}
BY_PRIOR = "told apart by the prior only, see the base parameters"
OPEN = "not told apart by this log, see what it leaves open"


@dataclass(frozen=True)
class NonInertialParameter:
    """A parameter beside the inertial ones. `place`: whether the exported robot holds it, in words; `interval`: 95 %,
    where it is a base parameter by itself and its estimator, or least squares, has one; `remark`: BY_PRIOR, OPEN, or
    nothing.
    """

    name: str
    what: str
    owner: str
    value: float
    unit: str
    place: str
    interval: tuple[float, float] | None
    remark: str


@dataclass(frozen=True, eq=False)
class BodyFound:
    """A body's mass [kg], centre of mass [m] in its frame, principal moments about it [kg m^2], least first; why no
    body can be so, or None."""

    name: str
    mass: float
    com: np.ndarray
    moments: np.ndarray
    violation: str | None


def non_inertial_parameters(
    estimate: Estimate, reference: Estimate | None, left_open: list[Exchange]
) -> list[NonInertialParameter]:
    """Rows of all parameters after the inertial ones. reference: the estimate whose intervals are shown."""
    m, held = estimate.model, estimate.held_by_robot
    by_itself, unknown = alone(m.base), undecided(estimate, left_open)
    box = None if reference is None else reference.intervals()
    row_of = {int(k): row for row, k in enumerate(m.base.columns)}
    rows = []
    for k in range(m.inertial, m.size):
        kind = m.kinds[k] if m.kinds[k] != "curve" else m.names[k][:2]
        quantity, unit = KINDS.get(kind, ("column of your own", ""))
        place = f"yes, as {held[kind]}" if kind in held else "no"
        place = f"as a {held[kind]} of 0: it is negative" if kind in held and estimate.x[k] < 0.0 else place
        interval = None
        if k in by_itself and box is not None:
            interval = float(box[row_of[k], 0]), float(box[row_of[k], 1])
        remark = BY_PRIOR if k not in by_itself else OPEN if k in unknown else ""
        owner = "" if kind == "user" else m.owners[k]
        rows.append(
            NonInertialParameter(m.names[k], quantity, owner, float(estimate.x[k]), unit, place, interval, remark)
        )
    return rows


def bodies(estimate: Estimate) -> list[tuple[BodyFound, BodyFound]]:
    """(as identified, as the model given has it) of every body."""
    m = estimate.model
    identified = estimate.x[: m.inertial].reshape(-1, 10)
    why = estimate.verdicts
    return [
        (_body(name, a, why[name]), _body(name, b, inertia.violation(b)))
        for name, a, b in zip(m.robot.body_names, identified, m.robot.parameters)
    ]


def _body(name: str, pi: np.ndarray, violation: str | None) -> BodyFound:
    mass = float(pi[0])
    if mass <= 0.0:  # it has no centre
        return BodyFound(name, mass, np.full(3, np.nan), np.full(3, np.nan), violation)
    return BodyFound(name, mass, inertia.com(pi), np.linalg.eigvalsh(inertia.com_tensor(pi)), violation)
