"""That a motion keeps its limits and clearances at every time, not at samples only.

Positions, velocities, accelerations, jerks: between two samples h apart a function stays within the greater of both
plus h^2 / 8 times a bound of its second derivative, and bounds of all derivatives are known (`Trajectory.bounds`).

Clearances: no distance changes faster than L = `sweeps` times joint speeds, so that between samples with d_0 and d_1 it
is not below (d_0 + d_1 - L h) / 2; intervals where that is not enough are halved.

Torques have no such bound here: they are looked at on the same fine grid, and have `torque_margin`.
"""

from __future__ import annotations

import numpy as np

from geomctrl.identification.model.regressor_model import RegressorModel

from .clearance import Clearances, sweeps
from .limits import Limits
from .trajectory import Trajectory

FINE = 2001  # samples
HALVINGS = 14
MOST = 200_000  # intervals


def margins(model: RegressorModel, limits: Limits, trajectory: Trajectory) -> dict[str, np.ndarray]:
    """By name (position, velocity, acceleration, jerk, torque), what is left of each joint's limit (nv,), as a fraction
    of it (of half the range), negative outside."""
    t = np.linspace(0.0, trajectory.duration, FINE)
    q, v, a = trajectory.at(t)
    beyond = (t[1] - t[0]) ** 2 / 8.0
    low, high = q.min(axis=0) - beyond * trajectory.bounds(2), q.max(axis=0) + beyond * trajectory.bounds(2)
    half = 0.5 * (limits.upper - limits.lower)
    tau = model.torque(model.prior, q, v, a)
    out = {
        "position": np.minimum(low - limits.lower, limits.upper - high) / half,
        "velocity": 1.0 - (np.abs(v).max(axis=0) + beyond * trajectory.bounds(3)) / limits.velocity,
        "acceleration": 1.0 - (np.abs(a).max(axis=0) + beyond * trajectory.bounds(4)) / limits.acceleration,
        "torque": 1.0 - np.abs(tau).max(axis=0) / limits.effort,
    }
    if np.isfinite(limits.jerk).any():
        jerk = np.abs(trajectory.derivative(3, t)).max(axis=0) + beyond * trajectory.bounds(5)
        out["jerk"] = 1.0 - jerk / limits.jerk
    return out


def keeps_clear(clearances: Clearances, limits: Limits, trajectory: Trajectory) -> bool:
    """Whether every distance is the clearance asked for or more at every time: True is a proof, within rounding."""
    least = clearances.surroundings.clearance
    L = sweeps(clearances, limits.lower, limits.upper)  # (C, nv)
    faster = 0.5 * trajectory.bounds(2)
    t = np.linspace(0.0, trajectory.duration, FINE)
    q, v, _ = trajectory.at(t)
    d = clearances.values(q)
    t0, t1, d0, d1, v0, v1 = t[:-1], t[1:], d[:-1], d[1:], np.abs(v[:-1]), np.abs(v[1:])
    for _ in range(HALVINGS):
        if min(d0.min(initial=np.inf), d1.min(initial=np.inf)) < least:
            return False
        h = (t1 - t0)[:, None]
        low = 0.5 * (d0 + d1 - h * ((np.maximum(v0, v1) + h * faster) @ L.T))
        open_ = (low < least).any(axis=1)
        if not open_.any():
            return True
        if open_.sum() > MOST:
            return False
        t0, t1, d0, d1, v0, v1 = (x[open_] for x in (t0, t1, d0, d1, v0, v1))
        middle = 0.5 * (t0 + t1)
        q, v, _ = trajectory.at(middle)
        d, v = clearances.values(q), np.abs(v)
        t0, t1 = np.concatenate((t0, middle)), np.concatenate((middle, t1))
        d0, d1, v0, v1 = (np.concatenate(x) for x in ((d0, d), (d, d1), (v0, v), (v, v1)))
    return False


def nearest(clearances: Clearances, trajectory: Trajectory) -> dict[str, tuple[str, float]]:
    """By kind (floor, keep-out boxes, itself), what comes nearest and how near [m], on a fine grid."""
    d = clearances.values(trajectory.at(np.linspace(0.0, trajectory.duration, FINE))[0]).min(axis=0)
    names, kinds = clearances.names, np.array(clearances.kinds)
    out = {}
    for kind in dict.fromkeys(kinds.tolist()):
        at = np.flatnonzero(kinds == kind)
        least = int(at[np.argmin(d[at])])
        out[kind] = names[least], float(d[least])
    return out
