"""What the log hardly shows: joints that stood still, base parameters whose interval is wider than themselves."""

from __future__ import annotations

import numpy as np

from geomctrl.identification.doubts import Doubt
from geomctrl.identification.estimators.conditioning import natural_scale

from .evidence import Evidence

TURNED, SLID = 0.1, 0.01  # rad, m: a joint that moved less hardly moved
VAGUE = 0.3  # standard deviation in terms of the parameter, or of what is usual for such a robot if that is more
USUAL = 0.1  # of the robot's mean mass, times lengths: what counts as usual
MANY = 0.25  # of the base parameters vague: the log is poor, not just silent about a few
NAMED = 6


def excited(evidence: Evidence) -> list[Doubt]:
    return [*_still(evidence), *_vague(evidence)]


def _still(evidence: Evidence) -> list[Doubt]:
    """Joints that hardly moved."""
    robot, q = evidence.model.robot, evidence.rows.q
    if robot.nq != robot.nv:
        return []
    reach = np.ptp(q, axis=0)
    still = [
        f"{name!r} moved {x:.2g} {'rad' if turns else 'm'}"
        for name, x, turns in zip(evidence.names, reach, robot.turning)
        if x < (TURNED if turns else SLID)
    ]
    if not still:
        return []
    advice = "Move it over more of its range (`geomctrl excite` designs such motions); its parameters are the prior's"
    return [Doubt("excitation", f"hardly moved: {', '.join(still)}", advice)]


def _vague(evidence: Evidence) -> list[Doubt]:
    """Base parameters that the log determines badly."""
    if "excitation" in evidence.notes:
        seen = f"least squares without prior: {evidence.notes['excitation']}"
        advice = "Take a richer trajectory; what is named here comes from the prior alone"
        return [Doubt("excitation", seen, advice)]
    reference, model = evidence.reference, evidence.model
    if reference is None or reference.std is None:
        return []
    A, b = reference.training.system(reference.weights)
    usual = USUAL * natural_scale(model, A, b)[model.base.columns]
    usual = np.where(model.base.columns < model.inertial, usual, 0.0)
    size = np.maximum(np.abs(reference.values), usual)
    relative = reference.std / np.maximum(size, 1e-300)
    inertial = model.base.columns < model.inertial
    vague = np.flatnonzero((relative > VAGUE) & inertial)
    if len(vague) <= MANY * max(int(inertial.sum()), 1):
        return []
    order = vague[np.argsort(-relative[vague])][:NAMED]
    which = "; ".join(f"{model.base_names[k][:60]} {reference.values[k]:.2g} +- {reference.std[k]:.2g}" for k in order)
    seen = (
        f"{len(vague)} of {int(inertial.sum())} inertial base parameters are not determined (standard deviation above"
        f" {100 * VAGUE:.0f} % of what is usual), condition number {reference.condition:.3g}; the worst: {which}"
    )
    advice = "Take a longer or richer trajectory (`geomctrl excite`); the prior fills in what is not determined"
    return [Doubt("excitation", seen, advice)]
