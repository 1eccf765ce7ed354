"""Which parameters any motion determines, which this log determines, and which only the prior separates.

Three causes can make a parameter x_k undetermined:

    the robot    torques depend on x_k only as a part of a sum, for every motion: e_k is no combination of the rows of
                 the base projection, which are [I D] up to the columns' order. A parameter that is determined is
                 therefore alone in its row.
    the motion   the log does not excite a direction of the base parameters: singular values at the rounding error
                 (`conditioning.regressor_condition`)
    the noise    the log excites it, but not above its noise. The unit of a parameter is the value that alone causes as
                 much torque (2-norm over the log) as was measured on a joint, for the joint where it is smallest; rows
                 are divided by the noise. A step along the singular vector v_j, of length 1 in those units, then
                 changes the torques by s_j standard deviations of the noise. If s_j <= 1, parameters that cause as much
                 torque as a joint needs can be exchanged without a visible change of the log.

The last criterion depends neither on units nor on assumed magnitudes. A parameter that passes it may still have a wide
interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomctrl.identification.estimators import Estimate
from geomctrl.identification.estimators.conditioning import MIN_COLUMN_LENGTH, MIN_NAMED_PART, weak_directions
from geomctrl.mechanism import inertia
from geomctrl.terms.base_parameters import BaseParameters

ZERO = 1e-9  # of a row's largest coefficient: `combinations` leaves out smaller ones too
MIN_RELATIVE_NOISE = 1e-9  # smallest noise of a joint relative to its torque: computed logs have none


@dataclass(frozen=True, eq=False)
class OpenCombination:
    """A combination of base parameters that a log leaves open. `change`: what can be exchanged; `seen`: the effect, in
    standard deviations of the noise, of a change as large as a joint's torques, at most 1, 0 without an effect;
    `parts` (nb,): of the change, in the units of the module's text, length 1.
    """

    change: str
    seen: float
    parts: np.ndarray


def alone(base: BaseParameters) -> set[int]:
    """Numbers of the parameters that are alone in a row of the projection: motion can separate them from all others."""
    P = np.abs(base.projection)
    counts = P / P.max(axis=1, keepdims=True) > ZERO
    return {int(np.argmax(row)) for row in counts if row.sum() == 1}


def exchanges(estimate: Estimate, correlation: np.ndarray | None = None) -> list[OpenCombination]:
    """The changes of base parameters that the training log leaves open, the least visible first; see the module's text.

    correlation (nv,): factor by which correlated residuals inflate variances, if the estimate does not have it.
    """
    names, nb = estimate.model.base_names, estimate.base.size
    symbols = [name if " " not in name else f"({name})" for name in names]
    A, dead = _whitened(estimate, correlation)
    out = [OpenCombination(f"{names[k]}: the log does not excite it", 0.0, np.eye(nb)[k]) for k in np.flatnonzero(dead)]
    unit = _units(estimate)
    live = np.flatnonzero(~dead & (unit > 0.0))  # excludes torques that are always zero
    if not len(live):
        return out
    for seen, change, direction in weak_directions(A[:, live], unit[live], [symbols[k] for k in live], 1.0)[1][::-1]:
        parts = np.zeros(nb)
        parts[live] = direction
        out.append(OpenCombination(change, seen, parts))
    return out


def undecided(estimate: Estimate, exchanges_found: list[OpenCombination]) -> set[int]:
    """Numbers of the parameters that stand alone but whose value the log leaves open: they take part in an exchange."""
    columns = estimate.base.columns
    taking_part = {int(k) for exchange in exchanges_found for k in columns[np.abs(exchange.parts) > MIN_NAMED_PART]}
    return taking_part & alone(estimate.base)


def _whitened(estimate: Estimate, correlation: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """(factor of the base regressor, each joint's rows divided by its noise; mask of zero columns)."""
    c = estimate.training
    noise = np.maximum(estimate.noise, MIN_RELATIVE_NOISE * c.norms / np.sqrt(np.maximum(c.counts, 1)))
    inflation = estimate.correlation if estimate.correlation is not None else correlation
    if inflation is not None:
        noise = noise * np.sqrt(np.maximum(inflation, 1.0))
    A = c.system(np.divide(1.0, noise, out=np.zeros_like(noise), where=noise > 0.0))[0][:, estimate.base.columns]
    length = np.linalg.norm(A, axis=0)
    A = np.vstack((A, np.zeros((max(0, A.shape[1] - len(A)), A.shape[1]))))
    return A, length <= MIN_COLUMN_LENGTH * length.max(initial=0.0)


def _units(estimate: Estimate) -> np.ndarray:
    """(nb,): of each base parameter the least value that explains all torque of a joint; 0 for zero columns."""
    c, size = estimate.training, np.full(estimate.model.size, np.inf)
    for columns, R, torque in zip(estimate.model.active, c.factors, c.norms):
        length = np.linalg.norm(R[:, :-1], axis=0)
        felt = length > MIN_COLUMN_LENGTH * length.max(initial=0.0)
        size[columns[felt]] = np.minimum(size[columns[felt]], torque / length[felt])
    return np.where(np.isfinite(size), size, 0.0)[estimate.base.columns]


# --- rows of bodies, friction, rotors and springs --------------------------------------------------------------------


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
BY_PRIOR = "separated by the prior only, see the base parameters"
OPEN = "not determined by this log, see what it leaves open"


@dataclass(frozen=True)
class NonInertialParameter:
    """A parameter other than the inertial ones. `place`: whether the exported robot holds it, as text; `interval`: 95
    %, if it is a base parameter by itself and its estimator, or least squares, has one; `remark`: BY_PRIOR, OPEN, or
    empty.
    """

    name: str
    quantity: str
    owner: str
    value: float
    unit: str
    place: str
    interval: tuple[float, float] | None
    remark: str


@dataclass(frozen=True, eq=False)
class BodyProperties:
    """A body's mass [kg], centre of mass [m] in its frame, principal moments about it [kg m^2], in increasing order;
    why no rigid body can have them, or None."""

    name: str
    mass: float
    com: np.ndarray
    moments: np.ndarray
    violation: str | None


def non_inertial_parameters(
    estimate: Estimate, reference: Estimate | None, left_open: list[OpenCombination]
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


def bodies(estimate: Estimate) -> list[tuple[BodyProperties, BodyProperties]]:
    """(as identified, as in the given model) for every body."""
    m = estimate.model
    identified = estimate.x[: m.inertial].reshape(-1, 10)
    why = estimate.verdicts
    return [
        (_body(name, a, why[name]), _body(name, b, inertia.violation(b)))
        for name, a, b in zip(m.robot.body_names, identified, m.robot.parameters)
    ]


def _body(name: str, pi: np.ndarray, violation: str | None) -> BodyProperties:
    mass = float(pi[0])
    if mass <= 0.0:  # it has no centre
        return BodyProperties(name, mass, np.full(3, np.nan), np.full(3, np.nan), violation)
    return BodyProperties(name, mass, inertia.com(pi), np.linalg.eigvalsh(inertia.com_tensor(pi)), violation)
