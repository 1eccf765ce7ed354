"""Torques in other units: one joint's against the others', and all against the masses of the model given.

One joint: tau_k = s Y_k x with s free, all parameters x fitted again by Gauss-Newton. Inertial parameters are shared
with the other joints' torques, so that s is determined where joint k feels more than its own friction and inertia.
All: tau = s (Y_inertial x0) + friction and offsets, with x0 the model's own bodies.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from geomctrl.identification.compressed import triangle
from geomctrl.identification.doubts import Doubt
from geomctrl.identification.model import RegressorModel

from .evidence import LEAST, Evidence, FreeFit, Mistake, Rows, free_fit, least_squares

SURE, LIKELY = 0.5, 0.3  # gain in the log residuals summed over joints, as for trials
FAR, APART = np.log(1.3), 4.0  # least |log s|, and how many standard deviations
AS_GOOD = 0.1  # of the best gain: joints within are not told apart
ITERATIONS, STEP, FARTHEST = 12, 0.7, np.log(1e5)  # Gauss-Newton's, its largest step in log s, where it gives up
WRONG, STRANGE = 20.0, 5.0  # factor between the log's torques and those of the model's bodies
CHANCE = 10.0  # twice the gain times independent rows is chi squared of one degree of freedom where there is no scale


class Scale(NamedTuple):
    """`factor` s of one joint's torques, the standard deviation of log s, and the gain in the log residuals."""

    gain: float
    factor: float
    deviation: float


NO_SCALE = Scale(0.0, 1.0, np.inf)


def best_scale(evidence: Evidence, rows: Rows, fit: FreeFit) -> Mistake | None:
    """The joint whose scale explains most, if it explains much more than the log as it is."""
    model, joints = evidence.model, np.arange(evidence.model.robot.nv)
    if len(joints) < 2:
        return None
    blocks = _blocks(model, rows)
    found = [_one_joint(blocks, rows, fit, k, evidence.inflation) for k in joints]
    gains = np.array([scale.gain for scale in found])
    k = int(np.argmax(gains))
    if gains[k] < max(LIKELY, CHANCE * evidence.inflation / len(rows.t)):
        return None
    alike = [evidence.names[j] for j in np.flatnonzero(gains > (1.0 - AS_GOOD) * gains[k]) if j != k]
    right = rows.with_torques(np.diag(np.where(joints == k, 1.0 / found[k].factor, 1.0)))
    after = free_fit(model, right.factors(model))
    return Mistake(float(gains[k]), _doubt(evidence.names[k], alike, *found[k]), right, after)


def _blocks(model: RegressorModel, rows: Rows) -> list[np.ndarray]:
    """Per joint the triangle of [Y_k of the base parameters, what the known armature takes, measured torque]."""
    Y = model.regressor(rows.q, rows.v, rows.a)[..., model.base.columns]
    A = np.concatenate((Y, (rows.a * model.known_armature)[..., None], rows.tau[..., None]), -1)
    return [triangle(np.asfortranarray(A[rows.used[:, k], k])) for k in range(model.robot.nv)]


def _one_joint(blocks: list[np.ndarray], rows: Rows, fit: FreeFit, k: int, inflation: float) -> Scale:
    """How many times the torques of joint k are those of the model; NO_SCALE where it is near 1 or not determined."""
    if not fit.weights[k]:
        return NO_SCALE
    counts, norms = np.maximum(rows.used.sum(0), 1), np.array([np.linalg.norm(block[:, -1]) for block in blocks])
    x, g, w, step, deviation, residuals = fit.values, 0.0, fit.weights, np.inf, np.inf, fit.residuals
    for _ in range(ITERATIONS):
        A = np.vstack([wj * _linear(block, x, g, j == k) for j, (block, wj) in enumerate(zip(blocks, w))])
        change, half = least_squares(A[:, :-1], A[:, -1])
        step, deviation = float(change[-1]), float(np.linalg.norm(half[-1])) * np.sqrt(inflation)
        size = min(1.0, STEP / max(abs(step), 1e-12))
        x, g = x + size * change[:-1], g + size * step
        residuals = np.array([np.linalg.norm(_linear(block, x, g, j == k)[:, -1]) for j, block in enumerate(blocks)])
        w = np.where(w > 0.0, np.sqrt(counts) / np.maximum(residuals, LEAST * norms + 1e-300), 0.0)
        if abs(step) < 1e-3 or abs(g) > FARTHEST:
            break
    live = w > 0.0
    gain = float(np.log(fit.residuals[live] / np.maximum(residuals[live], 1e-300)).sum())
    told = abs(step) < 1e-2 and 0.0 < deviation and abs(g) > max(FAR, APART * deviation)
    return Scale(gain, float(np.exp(g)), deviation) if told else NO_SCALE


def _linear(block: np.ndarray, x: np.ndarray, g: float, free: bool) -> np.ndarray:
    """[d/dx, d/dg, what is left] of tau = e^g (Y x + known) at x and g; g is 0 where it is not free."""
    s = np.exp(g) if free else 1.0
    own = s * (block[:, :-2] @ x + block[:, -2])
    return np.column_stack((s * block[:, :-2], own * free, block[:, -1] - own))


def _doubt(name: str, alike: list[str], gain: float, s: float, deviation: float) -> Doubt:
    who = f"the torques of {name!r} are {s:.3g} times what the other joints' make of the same bodies"
    seen = f"{who} (log {np.log(s):.2f} +- {deviation:.2f})"
    if alike:
        seen += f"; or those of {', '.join(map(repr, alike))} the other way round: the log does not tell which"
    advice = (
        "Look at its unit and gear ratio (--unit tau=mN m, --gears), or give the drive's gain if it is a current"
        " (--column i=..., --current-gains)"
    )
    return Doubt("scale", seen, advice, gain >= SURE)


def against_masses(evidence: Evidence, rows: Rows, fit: FreeFit) -> list[Doubt]:
    """Where the model has masses: the factor by which all torques are off."""
    model = evidence.model
    bodies = model.robot.parameters
    if not (bodies[:, 0] > 0.0).any():
        return []
    Y, torques = model.regressor(rows.q, rows.v, rows.a), rows.torques(model)
    own = Y[..., : model.inertial] @ bodies.ravel()
    weights = rows.used / np.maximum(np.sqrt(np.mean(torques**2, axis=0)).max(), 1e-300)
    A = np.concatenate((own[..., None], Y[..., model.inertial :]), -1) * weights[..., None]
    A, b = A.reshape(-1, A.shape[-1]), (torques * weights).ravel()
    if np.linalg.norm(A[:, 0]) < 1e-9:
        return []
    values, half = least_squares(A, b)
    s, left = float(values[0]), float(np.linalg.norm(b - A @ values) / np.linalg.norm(b))
    deviation = float(np.linalg.norm(half[0])) * left * np.linalg.norm(b) / np.sqrt(len(b)) * evidence.inflation**0.5
    if s < APART * deviation or abs(np.log(s)) < np.log(STRANGE):
        return []
    seen = f"all torques are {s:.3g} times what the model's own bodies take, of {bodies[:, 0].sum():.4g} kg together"
    advice = (
        "Look at the torques' unit: N mm, motor side (--gears), currents (--column i=..., --current-gains); or the"
        " model's masses are a guess"
    )
    return [Doubt("scale", seen, advice, abs(np.log(s)) > np.log(WRONG))]
