"""Torques in other units: one joint's against the others', and all against the masses of the model given.

A joint: tau_k = s Y_k x with s free, all parameters x fitted again by Gauss-Newton. Inertial parameters are shared
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
ITERATIONS, STEP, FARTHEST = 20, 1.0, np.log(1e5)  # Gauss-Newton's, its largest step in log s, where it gives up
WRONG, STRANGE = 100.0, 5.0  # factor between the log's torques and those of the model's bodies
CHANCE = 10.0  # twice the gain times independent rows is chi squared of one degree of freedom where there is no scale


class Scale(NamedTuple):
    """`factor` s of one joint's torques, the standard deviation of log s, and the gain in the log residuals."""

    gain: float
    factor: float
    deviation: float


NO_SCALE = Scale(0.0, 1.0, np.inf)


def best_scale(evidence: Evidence, rows: Rows, fit: FreeFit) -> Mistake | None:
    """The joint, or the joints from one on to the last (small drives), whose scale explains most, if it explains much
    more than the log as it is."""
    model, n = evidence.model, evidence.model.robot.nv
    if n < 2:
        return None
    blocks = _blocks(model, rows)
    groups = [(k,) for k in range(n)] + [tuple(range(k, n)) for k in range(2, n - 1)]
    found = [_scale_of(group, blocks, rows, fit, evidence.inflation) for group in groups]
    gains = np.array([scale.gain for scale in found])
    best = int(np.argmax(gains))
    if gains[best] < max(LIKELY, CHANCE * evidence.inflation / len(rows.t)):
        return None
    alike = [k for k in np.flatnonzero(gains[:n] > (1.0 - AS_GOOD) * gains[best]) if k not in groups[best]]
    right = rows.with_torques(np.diag(np.where(np.isin(np.arange(n), groups[best]), 1.0 / found[best].factor, 1.0)))
    after = free_fit(model, right.factors(model))
    who, others = (", ".join(repr(evidence.names[k]) for k in x) for x in (groups[best], alike))
    return Mistake(float(gains[best]), _doubt(who, others, *found[best]), right, after)


def _blocks(model: RegressorModel, rows: Rows) -> list[np.ndarray]:
    """Per joint the triangle of [Y_k of the base parameters, what the known armature takes, measured torque]."""
    Y = model.regressor(rows.q, rows.v, rows.a)[..., model.base.columns]
    A = np.concatenate((Y, (rows.a * model.known_armature)[..., None], rows.tau[..., None]), -1)
    return [triangle(np.asfortranarray(A[rows.used[:, k], k])) for k in range(model.robot.nv)]


def _scale_of(group: tuple[int, ...], blocks: list[np.ndarray], rows: Rows, fit: FreeFit, inflation: float) -> Scale:
    """How many times the torques of some joints are those of the model; NO_SCALE: near 1, or not determined."""
    if not fit.weights[list(group)].all():
        return NO_SCALE
    counts, norms = np.maximum(rows.used.sum(0), 1), np.array([np.linalg.norm(block[:, -1]) for block in blocks])
    x, g, w, step, deviation, residuals = fit.values, 0.0, fit.weights, np.inf, np.inf, fit.residuals
    for _ in range(ITERATIONS):
        A = np.vstack([wj * _linear(block, x, g, j in group) for j, (block, wj) in enumerate(zip(blocks, w))])
        change, half = least_squares(A[:, :-1], A[:, -1])
        step, deviation = float(change[-1]), float(np.linalg.norm(half[-1])) * np.sqrt(inflation)
        size = min(1.0, STEP / max(abs(step), 1e-12))
        x, g = x + size * change[:-1], g + size * step
        residuals = np.array(
            [np.linalg.norm(_linear(block, x, g, j in group)[:, -1]) for j, block in enumerate(blocks)]
        )
        w = np.where(w > 0.0, np.sqrt(counts) / np.maximum(residuals, LEAST * norms + 1e-300), 0.0)
        if abs(step) < 1e-3 or abs(g) > FARTHEST:
            break
    live = w > 0.0
    gain = float(np.log(fit.residuals[live] / np.maximum(residuals[live], 1e-300)).sum())
    told = abs(step) < 1e-2 and deviation > 0.0 and abs(g) > max(FAR, APART * deviation)
    return Scale(gain, float(np.exp(g)), deviation) if told else NO_SCALE


def _linear(block: np.ndarray, x: np.ndarray, g: float, free: bool) -> np.ndarray:
    """[d/dx, d/dg, what is left] of tau = e^g (Y x + known) at x and g; g is 0 where it is not free."""
    s = np.exp(g) if free else 1.0
    own = s * (block[:, :-2] @ x + block[:, -2])
    return np.column_stack((s * block[:, :-2], own * free, block[:, -1] - own))


def _doubt(names: str, others: str, gain: float, s: float, deviation: float) -> Doubt:
    who = f"the torques of {names} are {s:.3g} times what the other joints' make of the same bodies"
    seen = f"{who} (log {np.log(s):.2f} +- {deviation:.2f})"
    if others:
        seen += f"; or those of {others} the other way round: the log does not tell which"
    advice = (
        "Look at its unit and gear ratio (--unit tau=mN m, --gears), or give the drive's gain if it is a current"
        " (--column i=..., --current-gains)"
    )
    return Doubt("scale", seen, advice, bool(gain >= SURE))


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
    return [Doubt("scale", seen, advice, bool(abs(np.log(s)) > np.log(WRONG)))]
