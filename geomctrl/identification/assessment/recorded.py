"""What the signals show before any model: samples lost, torques in coarse steps, measured velocities that lag.

All of the log as it was recorded, before filters, where the report has it.
"""

from __future__ import annotations

import numpy as np

from geomctrl.identification.findings import Finding
from geomctrl.identification.logs import Dataset
from geomctrl.identification.logs.plausibility import coarseness, torque_steps

from .evidence import COARSE, Evidence

LONELY = 6.0  # robust standard deviations by which a step of the motion is off its neighbours'
LOST = 3  # such samples that are no chance
SHIFT = 0.01  # s: time that they stand for, all together, that matters
LAG = 0.004  # s: of measured velocities behind positions, that matters
WINDOW = 2.0  # s: in which ways by positions and by velocities are compared
SURE = 5.0  # standard deviations


def recorded(evidence: Evidence) -> list[Finding]:
    """Doubts about the log's signals by themselves."""
    log = evidence.raw
    if log is None:
        return []
    single = log.q.shape[1] == log.nv
    return [
        *_resolution(evidence, log),
        *(_lost(log) if single else []),
        *late_velocities(evidence),
    ]


# --- torques in steps --------------------------------------------------------------------------------------------


def _resolution(evidence: Evidence, log: Dataset) -> list[Finding]:
    step, error = torque_steps(log), coarseness(log)
    bad = np.flatnonzero(error > COARSE)
    if not len(bad):
        return []
    which = ", ".join(
        f"{evidence.names[k]!r} in steps of {step[k]:.3g}, an error of {100 * error[k]:.2g} % of its torques"
        for k in bad
    )
    advice = "Log torques or currents with more digits; until then what these joints alone tell is the prior's"
    return [Finding("resolution", f"torques were recorded too coarsely: {which}", advice)]


# --- samples lost ------------------------------------------------------------------------------------------------


def _lost(log: Dataset) -> list[Finding]:
    """Steps of all joints that are, at one time, a whole multiple of what the steps before and after make of them."""
    q = np.asarray(log.q)
    found: dict[str, list[float]] = {"lost": [], "repeated": []}
    for s in log.stretches():
        if s.stop - s.start < 50:
            continue
        step = np.diff(q[s], axis=0)
        usual = (-step[:-4] + 4.0 * step[1:-3] + 4.0 * step[3:-1] - step[4:]) / 6.0
        before, after, step = step[1:-3], step[3:-1], step[2:-2]
        off = step - usual
        counts = np.where(step != 0.0, np.abs(step), np.inf).min(axis=0)  # an encoder's, where it has some
        noise = np.maximum(1.4826 * np.median(np.abs(off), axis=0), np.where(np.isfinite(counts), counts, 1.0))
        along = ((step / noise) * (usual / noise)).sum(1) / np.maximum(((usual / noise) ** 2).sum(1), 1e-300)
        clear = np.abs(along - 1.0) * np.linalg.norm(usual / noise, axis=1)
        left = np.linalg.norm((step - along[:, None] * usual) / noise, axis=1) / np.sqrt(log.nv)
        size = np.maximum(((usual / noise) ** 2).sum(1), 1e-300)
        beside = [(x * usual / noise**2).sum(1) / size for x in (before, after)]
        steady = np.max(np.abs(np.array(beside) - 1.0), axis=0) < 0.25  # no late reading, which catches up at once
        whole = (np.abs(along - np.round(along)) < 0.25) & steady
        times = np.asarray(log.t)[s][2:-3]
        for name, factor in (("lost", np.round(along) >= 2.0), ("repeated", np.round(along) == 0.0)):
            found[name] += times[(clear > LONELY) & whole & factor & (left < LONELY)].tolist()
    out = []
    for name, times in found.items():
        if len(times) >= LOST and len(times) / log.rate >= SHIFT:
            way = "twice as far as before and after" if name == "lost" else "nowhere, unlike before and after"
            seen = (
                f"{len(times)} samples seem {name}, and the time stamps do not show it: all joints go {way}, first at"
                f" {times[0]:.4g} s"
            )
            advice = "Log the time at which each sample was taken; stamps made afterwards shift what follows a hole"
            out.append(Finding("samples", seen, advice))
    return out


# --- velocities that lag -----------------------------------------------------------------------------------------


def late_velocities(evidence: Evidence) -> list[Finding]:
    """Measured velocities that lag positions: q - int v dt goes with v then, v(t) = dq/dt(t - lag)."""
    log = evidence.raw
    if log is None or log.v is None or log.q.shape[1] != log.nv:
        return []
    v, lags, weights = np.asarray(log.v), [], []
    length = max(16, round(WINDOW * log.rate))
    for s in log.stretches():
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
    late = np.flatnonzero(np.abs(joint) > np.maximum(LAG, SURE * spread))
    if not len(late):
        return []
    which = ", ".join(f"{evidence.names[k]!r} {1e3 * joint[k]:.2g} ms" for k in late)
    advice = "Leave the velocities out (--column without v), or log those of the time at which positions were taken"
    return [Finding("delay", f"measured velocities lag the positions: {which}", advice)]
