"""Check the log: its recorded signals before filters, and parameters that its motion hardly excites.

Insufficient excitation shows as joints at rest, torques that never change, torques that the log does not predict, and
the parameters behind them.

A wide interval of a base parameter means little, because many parameters hardly affect any torque. The check is
therefore how well least squares predict the torques of other motions of the same range and speed: positions, velocities
and accelerations of each joint, shuffled at random. The standard deviation there, relative to the joint's torque, is
the error that a controller or simulation will see. Parameters are named if it is large, and noted otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from geomctrl.identification.estimators.conditioning import natural_scale
from geomctrl.identification.findings import Finding, listing
from geomctrl.identification.logs import Dataset
from geomctrl.identification.logs.dataset import coarseness, torque_steps

from .evidence import MAX_COARSENESS, Evidence, FreeFit
from .rows import Rows

LOST_SIGMA = 6.0  # robust standard deviations by which a step of the motion differs from its neighbours
MIN_LOST_SAMPLES = 3  # lost samples that chance does not explain
MIN_LOST_SECONDS = 0.01  # s: smallest total time of lost samples that matters
MAX_VELOCITY_LAG = 0.004  # s: smallest lag of measured velocities behind positions that matters
LAG_WINDOW = 2.0  # s: displacements from positions and from velocities are compared over this time
MAX_VELOCITY_ERROR = 0.3  # of the way that a joint goes: difference from the integral of its velocities
LAG_SIGMA = 5.0  # standard deviations


def recorded(evidence: Evidence) -> list[Finding]:
    """Findings on the log's signals by themselves."""
    log = evidence.raw
    if log is None:
        return []
    single = log.q.shape[1] == log.nv
    return [
        *_resolution(evidence, log),
        *(_lost_samples(log) if single else []),
        *late_velocities(evidence),
        *(_other_velocities(evidence, log) if single else []),
    ]


# --- torques in steps --------------------------------------------------------------------------------------------


def _resolution(evidence: Evidence, log: Dataset) -> list[Finding]:
    step, error = torque_steps(log), coarseness(log)
    which = [
        f"{evidence.names[k]!r} in steps of {step[k]:.3g}, an error of {100 * error[k]:.2g} % of its torques"
        for k in np.flatnonzero(error > MAX_COARSENESS)
    ]
    advice = (
        "Log torques or currents with more digits; until then the prior determines parameters of these joints alone"
    )
    return listing("resolution", "torques were recorded too coarsely", which, advice)


# --- samples lost ------------------------------------------------------------------------------------------------


def _lost_samples(log: Dataset) -> list[Finding]:
    """Samples where the steps of all joints are the same multiple of the steps before and after: lost samples."""
    q = np.asarray(log.q)
    times_by_kind: dict[str, list[float]] = {"lost": [], "repeated": []}
    for s in log.stretches:
        if s.stop - s.start < 50:
            continue
        step = np.diff(q[s], axis=0)
        usual = (-step[:-4] + 4.0 * step[1:-3] + 4.0 * step[3:-1] - step[4:]) / 6.0
        before, after, step = step[1:-3], step[3:-1], step[2:-2]
        off = step - usual
        counts = np.where(step != 0.0, np.abs(step), np.inf).min(axis=0)  # encoder counts, if there are steps
        noise = np.maximum(1.4826 * np.median(np.abs(off), axis=0), np.where(np.isfinite(counts), counts, 1.0))
        along = ((step / noise) * (usual / noise)).sum(1) / np.maximum(((usual / noise) ** 2).sum(1), 1e-300)
        clear = np.abs(along - 1.0) * np.linalg.norm(usual / noise, axis=1)
        left = np.linalg.norm((step - along[:, None] * usual) / noise, axis=1) / np.sqrt(log.nv)
        size = np.maximum(((usual / noise) ** 2).sum(1), 1e-300)
        neighbours = [(x * usual / noise**2).sum(1) / size for x in (before, after)]
        steady = np.max(np.abs(np.array(neighbours) - 1.0), axis=0) < 0.25  # excludes late readings
        whole = (np.abs(along - np.round(along)) < 0.25) & steady
        times = np.asarray(log.t)[s][2:-3]
        for name, factor in (("lost", np.round(along) >= 2.0), ("repeated", np.round(along) == 0.0)):
            times_by_kind[name] += times[(clear > LOST_SIGMA) & whole & factor & (left < LOST_SIGMA)].tolist()
    out = []
    for name, times in times_by_kind.items():
        if len(times) >= MIN_LOST_SAMPLES and len(times) / log.rate >= MIN_LOST_SECONDS:
            movement = "twice as far as before and after" if name == "lost" else "nowhere, unlike before and after"
            seen = (
                f"{len(times)} samples seem {name}, and the time stamps do not show it: all joints go {movement},"
                f" first at {times[0]:.4g} s"
            )
            advice = "Log the time of each sample; stamps created afterwards shift the samples after a gap"
            out.append(Finding("samples", seen, advice))
    return out


# --- velocities that lag -----------------------------------------------------------------------------------------


def late_velocities(evidence: Evidence) -> list[Finding]:
    """Measured velocities that lag positions: q - int v dt then correlates with v, v(t) = dq/dt(t - lag)."""
    log = evidence.raw
    if log is None or log.v is None or log.q.shape[1] != log.nv:
        return []
    v, lags, weights = np.asarray(log.v), [], []
    length = max(16, round(LAG_WINDOW * log.rate))
    for s in log.stretches:
        gone = np.cumsum(np.diff(np.asarray(log.t)[s])[:, None] * 0.5 * (v[s][1:] + v[s][:-1]), axis=0)
        more = np.asarray(log.q)[s][1:] - gone
        for start in range(0, len(more) - length + 1, length):
            part = slice(start, start + length)
            line = np.linalg.qr(np.vander(np.arange(length) / length, 2))[0]
            x, y = (z - line @ (line.T @ z) for z in (v[s][1:][part], more[part]))
            power = (x**2).sum(0)
            lags.append((x * y).sum(0) / np.maximum(power, 1e-300))
            weights.append(power)
    if len(lags) < 3:
        return []
    lag, weight = np.array(lags), np.array(weights)
    weight = weight / np.maximum(weight.sum(0), 1e-300)
    joint = (weight * lag).sum(0)
    spread = np.sqrt((weight**2 * (lag - joint) ** 2).sum(0))
    late = np.flatnonzero(np.abs(joint) > np.maximum(MAX_VELOCITY_LAG, LAG_SIGMA * spread))
    which = [f"{evidence.names[k]!r} {1e3 * joint[k]:.2g} ms" for k in late]
    advice = "Leave the velocities out (--column without v), or log velocities of the same times as the positions"
    return listing("delay", "measured velocities lag the positions", which, advice)


def _other_velocities(evidence: Evidence, log: Dataset) -> list[Finding]:
    """Measured velocities whose integral is not the way that the joint's position goes."""
    if log.v is None:
        return []
    s = log.longest_stretch
    v, q = log.v[s], log.q[s]
    gone = np.cumsum(np.diff(log.t[s])[:, None] * 0.5 * (v[1:] + v[:-1]), axis=0)
    line = np.linalg.qr(np.vander(np.linspace(0.0, 1.0, len(gone)), 2))[0]  # offsets of velocities drift
    gone, way = (x - line @ (line.T @ x) for x in (gone, q[1:]))
    left, size = np.linalg.norm(way - gone, axis=0), np.linalg.norm(way, axis=0)
    moved = np.ptp(q, axis=0) > np.where(evidence.model.robot.is_rotational, MIN_TURN, MIN_SLIDE)
    which = [
        f"integrated, {evidence.names[k]!r} is {100 * left[k] / size[k]:.0f} % off its way"
        for k in np.flatnonzero(moved & (left > MAX_VELOCITY_ERROR * size))
    ]
    advice = "Look at the order, units and signs of the velocities' columns, or leave them out (--column without v)"
    return listing("velocity", "measured velocities are not the derivatives of the positions", which, advice)


# --- excitation ------------------------------------------------------------------------------------------------------


MIN_TURN, MIN_SLIDE = 0.1, 0.01  # rad, m: a joint that moved less hardly moved
MAX_RELATIVE_STD = 0.3  # of the parameter, or of a typical value for the robot if that is larger
USUAL_SHARE = 0.1  # of the robot's mean mass, times lengths: a typical value
MAX_TORQUE_STD = 0.15  # standard deviation of a joint's torques in other motions, relative to them
MAX_VAGUE_SHARE = 0.25  # share of badly determined base parameters from which a note says so
MAX_NAMED, MAX_NOTED = 6, 2  # badly determined parameters that a finding and a note name


def excited(evidence: Evidence, rows: Rows, fit: FreeFit) -> list[Finding]:
    return [*_unmoved_joints(evidence), *_constant_torques(evidence), *_undetermined(evidence, rows, fit)]


def predicted_deviation(evidence: Evidence, rows: Rows, fit: FreeFit) -> np.ndarray:
    """(nv,): standard deviation of each joint's torques in other motions, relative to these torques."""
    model, rng = evidence.model, np.random.default_rng(0)
    single = model.robot.nq == model.robot.nv
    q = _shuffled(rng, rows.q) if single else rng.permutation(rows.q)
    Y = model.regressor(q, _shuffled(rng, rows.v), _shuffled(rng, rows.a))[..., model.base.columns]
    variance = np.einsum("nki,ij,nkj->k", Y, fit.covariance, Y)
    size = np.einsum("nk->k", (Y @ fit.values) ** 2)
    return np.sqrt(variance / np.maximum(size, 1e-300)) * (fit.weights > 0.0)


def _shuffled(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Each column shuffled independently."""
    return np.stack([rng.permutation(column) for column in x.T], -1)


def _reach(evidence: Evidence) -> np.ndarray:
    """(nv,): range of each joint, relative to a minimum; for poses the integral of the speed."""
    robot, rows = evidence.model.robot, evidence.rows
    single = robot.nq == robot.nv
    moved = np.ptp(rows.q, axis=0) if single else np.abs(rows.v).mean(axis=0) * (rows.t[-1] - rows.t[0])
    return moved / np.where(robot.is_rotational, MIN_TURN, MIN_SLIDE)


def _unmoved_joints(evidence: Evidence) -> list[Finding]:
    """Findings on joints that hardly moved."""
    robot, q = evidence.model.robot, evidence.rows.q
    if robot.nq != robot.nv:
        return []
    still = [
        f"{name!r} moved {x:.2g} {'rad' if turns else 'm'}"
        for name, x, turns, part in zip(evidence.names, np.ptp(q, axis=0), robot.is_rotational, _reach(evidence))
        if part < 1.0
    ]
    advice = (
        "Move it over more of its range (`geomctrl excite` designs such motions); the prior determines parameters that"
        " only its own motion shows"
    )
    return listing("excitation", "hardly moved", still, advice)


def _constant_torques(evidence: Evidence) -> list[Finding]:
    """Joints that moved while their torque never changed: no sensor does this, but the fit would use it."""
    data = evidence.training
    largest = np.where(data.used, data.tau, -np.inf).max(axis=0)
    same = data.used.any(axis=0) & ~evidence.changes & (_reach(evidence) >= 1.0)
    which = [
        f"{name!r} is {x:.4g} {'N m' if turns else 'N'}"
        for name, x, turns, out in zip(evidence.names, largest, evidence.model.robot.is_rotational, same)
        if out
    ]
    advice = (
        "Check that this column holds the drive's torque. If the torque is unknown, leave the joint out of the fit, in"
        " Python by the mask of the Dataset"
    )
    return listing("silent", "the torque is the same in every sample although the joint moves", which, advice, True)


def _undetermined(evidence: Evidence, rows: Rows, fit: FreeFit) -> list[Finding]:
    """Findings on torques that the log does not predict."""
    if "excitation" in evidence.notes:
        seen = f"least squares without prior: {evidence.notes['excitation']}"
        advice = "Use a richer trajectory; the prior alone determines the named parameters"
        return [Finding("excitation", seen, advice)]
    unknown = predicted_deviation(evidence, rows, fit)
    bad = np.flatnonzero(unknown > MAX_TORQUE_STD)
    if not len(bad):
        return []
    which = ", ".join(f"{evidence.names[k]!r} +- {100 * unknown[k]:.2g} %" for k in bad)
    seen = f"torques of other motions of this range and speed are uncertain (standard deviation): {which}"
    parameters = _vague(evidence, MAX_NAMED)
    advice = "Use a longer or richer trajectory (`geomctrl excite`); the prior determines the rest"
    return [Finding("excitation", f"{seen}; {parameters}" if parameters else seen, advice)]


def uncertain_parameters(evidence: Evidence, findings: Sequence[Finding]) -> list[str]:
    """A note on base parameters that are badly determined, unless a finding names them."""
    sentence = "" if any(finding.kind == "excitation" for finding in findings) else _vague(evidence, MAX_NOTED)
    return [f"{sentence}. Torques of similar motions are nevertheless determined"] if sentence else []


def _vague(evidence: Evidence, max_named: int) -> str:
    """Base parameters that the log determines badly, if there are many."""
    reference, model = evidence.reference, evidence.model
    if reference is None or reference.std is None:
        return ""
    A, b = reference.training.system(reference.weights)
    usual = USUAL_SHARE * natural_scale(model, A, b)[model.base.columns]
    inertial = model.base.columns < model.inertial
    size = np.maximum(np.abs(reference.values), np.where(inertial, usual, 0.0))
    relative = reference.std / np.maximum(size, 1e-300)
    which = np.flatnonzero((relative > MAX_RELATIVE_STD) & inertial)
    if len(which) <= MAX_VAGUE_SHARE * max(int(inertial.sum()), 1):
        return ""
    order = which[np.argsort(-relative[which])][:max_named]
    named = "; ".join(f"{model.base_names[k][:60]} {reference.values[k]:.2g} +- {reference.std[k]:.2g}" for k in order)
    return (
        f"{len(which)} of {int(inertial.sum())} inertial base parameters are not determined by themselves (standard"
        f" deviation above {100 * MAX_RELATIVE_STD:.0f} % of a typical value), condition number"
        f" {reference.condition:.3g}; the worst: {named}"
    )
