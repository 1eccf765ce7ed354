"""Motions that show what a robot's joints do."""

from __future__ import annotations

import numpy as np

from geomctrl.mechanism.configuration import integrate, neutral, single_coordinates
from geomctrl.mechanism.mechanism import Mechanism

TURN, SLIDE = 0.8, 0.2  # rad, m: how far a joint without limits goes, to either side
EDGE = 0.05  # of a range
WIDE_TURN, WIDE_SLIDE = np.pi, 0.5  # rad, m: how far sliders go from zero where there is no limit
PERIOD, MAX_SECONDS = 1.5, 40.0  # s: of one coordinate, of all
STEP = 1 / 30  # s


def rest(robot: Mechanism) -> np.ndarray:
    """A configuration (nq,) to look at: neutral, or in the middle of a range where that is not well within."""
    q, lower, upper = neutral(robot).copy(), robot.limits.lower, robot.limits.upper
    for q_at, v_at in zip(*single_coordinates(robot)):
        low, high = lower[v_at], upper[v_at]
        edge = EDGE * (high - low) if np.isfinite(high - low) else 0.0
        inside = low + edge <= q[q_at] <= high - edge
        q[q_at] = q[q_at] if inside else 0.5 * (low + high) if np.isfinite(high - low) else np.clip(q[q_at], low, high)
    return q


def tour(robot: Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """(t (n,), q (n, nq)): from `rest`, one coordinate after the other goes to both sides and back, within its limits
    and a radian or two decimetres at most.
    """
    q0, period = rest(robot), min(PERIOD, MAX_SECONDS / robot.nv)
    room = np.where(robot.is_rotational, TURN, SLIDE)
    down, up = room.copy(), room.copy()
    for q_at, v_at in zip(*single_coordinates(robot)):
        down[v_at] = min(room[v_at], q0[q_at] - robot.limits.lower[v_at])
        up[v_at] = min(room[v_at], robot.limits.upper[v_at] - q0[q_at])
    t = np.arange(0.0, robot.nv * period + 0.5 * STEP, STEP)
    k = np.minimum((t / period).astype(int), robot.nv - 1)
    s = np.sin(2 * np.pi * (t / period - k))
    moved = np.zeros((len(t), robot.nv))
    moved[np.arange(len(t)), k] = np.where(s > 0.0, up[k], down[k]) * s
    return t, integrate(robot, np.broadcast_to(q0, (len(t), robot.nq)), moved)


def span(lower: float, upper: float, turns: bool) -> tuple[float, float]:
    """From where to where a slider goes: its limits, else about zero, or as far from the one limit."""
    wide = WIDE_TURN if turns else WIDE_SLIDE
    low = lower if np.isfinite(lower) else min(-wide, upper - 2.0 * wide)
    return low, upper if np.isfinite(upper) else max(wide, low + 2.0 * wide)
