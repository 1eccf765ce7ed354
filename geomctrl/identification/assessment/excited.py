"""What the log hardly shows: joints that stood still, torques that never change, torques that it does not foretell, and
parameters behind them.

That a base parameter's interval is wide says little: many hardly matter to any torque. So what is asked is how well
least squares know the torques of other motions that are as far and as fast: each joint's positions, velocities and
accelerations of the log, put together anew by chance. The standard deviation there, in terms of the joint's torque, is
what a controller or a simulation with the result meets; parameters are named where it is large, and noted where not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from geomctrl.identification.estimators.conditioning import natural_scale
from geomctrl.identification.findings import Finding

from .evidence import Evidence, FreeFit
from .rows import Rows

TURNED, SLID = 0.1, 0.01  # rad, m: a joint that moved less hardly moved
VAGUE = 0.3  # standard deviation in terms of the parameter, or of what is usual for such a robot if that is more
USUAL = 0.1  # of the robot's mean mass, times lengths: what counts as usual
UNKNOWN = 0.15  # standard deviation of a joint's torques in other motions, in terms of them
MANY = 0.25  # of the base parameters vague: worth a note
NAMED, NOTED = 6, 2  # of vague parameters, in a doubt and in a note


def excited(evidence: Evidence, rows: Rows, fit: FreeFit) -> list[Finding]:
    return [*_still(evidence), *_silent(evidence), *_undetermined(evidence, rows, fit)]


def foretold(evidence: Evidence, rows: Rows, fit: FreeFit) -> np.ndarray:
    """(nv,): standard deviation of each joint's torques in other motions, in terms of these torques."""
    model, rng = evidence.model, np.random.default_rng(0)
    single = model.robot.nq == model.robot.nv
    q = _shuffled(rng, rows.q) if single else rng.permutation(rows.q)
    Y = model.regressor(q, _shuffled(rng, rows.v), _shuffled(rng, rows.a))[..., model.base.columns]
    variance = np.einsum("nki,ij,nkj->k", Y, fit.covariance, Y)
    size = np.einsum("nk->k", (Y @ fit.values) ** 2)
    return np.sqrt(variance / np.maximum(size, 1e-300)) * (fit.weights > 0.0)


def _shuffled(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Each column by itself."""
    return np.stack([rng.permutation(column) for column in x.T], -1)


def _reach(evidence: Evidence) -> np.ndarray:
    """(nv,): how far each joint moved, in terms of what is hardly; where positions are poses, by the way it went."""
    robot, rows = evidence.model.robot, evidence.rows
    single = robot.nq == robot.nv
    moved = np.ptp(rows.q, axis=0) if single else np.abs(rows.v).mean(axis=0) * (rows.t[-1] - rows.t[0])
    return moved / np.where(robot.is_rotational, TURNED, SLID)


def _still(evidence: Evidence) -> list[Finding]:
    """Joints that hardly moved."""
    robot, q = evidence.model.robot, evidence.rows.q
    if robot.nq != robot.nv:
        return []
    still = [
        f"{name!r} moved {x:.2g} {'rad' if turns else 'm'}"
        for name, x, turns, part in zip(evidence.names, np.ptp(q, axis=0), robot.is_rotational, _reach(evidence))
        if part < 1.0
    ]
    if not still:
        return []
    advice = (
        "Move it over more of its range (`geomctrl excite` designs such motions); what only its own motion shows is the"
        " prior's"
    )
    return [Finding("excitation", f"hardly moved: {', '.join(still)}", advice)]


def _silent(evidence: Evidence) -> list[Finding]:
    """Joints that moved while their torque never changed: no sensor's, but the fit takes it for one."""
    data = evidence.training
    largest = np.where(data.used, data.tau, -np.inf).max(axis=0)
    same = data.used.any(axis=0) & ~evidence.changes & (_reach(evidence) >= 1.0)
    if not same.any():
        return []
    which = ", ".join(
        f"{name!r} is {x:.4g} {'N m' if turns else 'N'}"
        for name, x, turns, out in zip(evidence.names, largest, evidence.model.robot.is_rotational, same)
        if out
    )
    advice = (
        "Is the drive's torque logged, in that column? Where it is not known leave the joint out of the fit: in Python"
        " by the mask of the Dataset"
    )
    return [Finding("silent", f"the torque is the same in every row although the joint moves: {which}", advice, True)]


def _undetermined(evidence: Evidence, rows: Rows, fit: FreeFit) -> list[Finding]:
    """Torques that the log does not foretell."""
    if "excitation" in evidence.notes:
        seen = f"least squares without prior: {evidence.notes['excitation']}"
        advice = "Take a richer trajectory; what is named here comes from the prior alone"
        return [Finding("excitation", seen, advice)]
    unknown = foretold(evidence, rows, fit)
    bad = np.flatnonzero(unknown > UNKNOWN)
    if not len(bad):
        return []
    which = ", ".join(f"{evidence.names[k]!r} +- {100 * unknown[k]:.2g} %" for k in bad)
    seen = f"torques of other motions as far and as fast are not known well (standard deviation): {which}"
    parameters = _vague(evidence, NAMED)
    advice = "Take a longer or richer trajectory (`geomctrl excite`); the prior fills in what is not determined"
    return [Finding("excitation", f"{seen}; {parameters}" if parameters else seen, advice)]


def vague(evidence: Evidence, findings: Sequence[Finding]) -> list[str]:
    """A note on base parameters that are badly known where no doubt names them."""
    found = "" if any(finding.kind == "excitation" for finding in findings) else _vague(evidence, NOTED)
    return [f"{found}. Torques of such motions are known nevertheless"] if found else []


def _vague(evidence: Evidence, most: int) -> str:
    """Base parameters that the log determines badly, if there are many."""
    reference, model = evidence.reference, evidence.model
    if reference is None or reference.std is None:
        return ""
    A, b = reference.training.system(reference.weights)
    usual = USUAL * natural_scale(model, A, b)[model.base.columns]
    inertial = model.base.columns < model.inertial
    size = np.maximum(np.abs(reference.values), np.where(inertial, usual, 0.0))
    relative = reference.std / np.maximum(size, 1e-300)
    which = np.flatnonzero((relative > VAGUE) & inertial)
    if len(which) <= MANY * max(int(inertial.sum()), 1):
        return ""
    order = which[np.argsort(-relative[which])][:most]
    named = "; ".join(f"{model.base_names[k][:60]} {reference.values[k]:.2g} +- {reference.std[k]:.2g}" for k in order)
    return (
        f"{len(which)} of {int(inertial.sum())} inertial base parameters are not determined by themselves (standard"
        f" deviation above {100 * VAGUE:.0f} % of what is usual), condition number {reference.condition:.3g}; the"
        f" worst: {named}"
    )
