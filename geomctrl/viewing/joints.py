"""Motions that demonstrate a robot's joints."""

from __future__ import annotations

import numpy as np

from geomctrl.mechanism.configuration import integrate, neutral, single_coordinates
from geomctrl.mechanism.mechanism import Mechanism

TURN, SLIDE = 0.8, 0.2  # rad, m: range of a joint without limits, to either side
AXIS_MARGIN = 0.05  # margin, relative to the range
WIDE_TURN, WIDE_SLIDE = np.pi, 0.5  # rad, m: range of sliders about zero if there is no limit
PERIOD, MAX_SECONDS = 1.5, 40.0  # s: of one coordinate, of all coordinates
FRAME_PERIOD = 1 / 30  # s


def rest(robot: Mechanism) -> np.ndarray:
    """A configuration (nq,) to show: neutral, or the middle of a range that does not contain zero with a margin."""
    q, lower, upper = neutral(robot).copy(), robot.limits.lower, robot.limits.upper
    for q_at, v_at in zip(*single_coordinates(robot)):
        low, high = lower[v_at], upper[v_at]
        edge = AXIS_MARGIN * (high - low) if np.isfinite(high - low) else 0.0
        inside = low + edge <= q[q_at] <= high - edge
        q[q_at] = q[q_at] if inside else 0.5 * (low + high) if np.isfinite(high - low) else np.clip(q[q_at], low, high)
    return q


def joint_tour(robot: Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """Return (t (n,), q (n, nq)): from `rest`, one coordinate after another moves to both sides and back.

    It stays within the limits, and within 0.8 rad or 0.2 m if there are none.
    """
    q0, period = rest(robot), min(PERIOD, MAX_SECONDS / robot.nv)
    room = np.where(robot.is_rotational, TURN, SLIDE)
    down, up = room.copy(), room.copy()
    for q_at, v_at in zip(*single_coordinates(robot)):
        down[v_at] = min(room[v_at], q0[q_at] - robot.limits.lower[v_at])
        up[v_at] = min(room[v_at], robot.limits.upper[v_at] - q0[q_at])
    t = np.arange(0.0, robot.nv * period + 0.5 * FRAME_PERIOD, FRAME_PERIOD)
    k = np.minimum((t / period).astype(int), robot.nv - 1)
    s = np.sin(2 * np.pi * (t / period - k))
    moved = np.zeros((len(t), robot.nv))
    moved[np.arange(len(t)), k] = np.where(s > 0.0, up[k], down[k]) * s
    return t, integrate(robot, np.broadcast_to(q0, (len(t), robot.nq)), moved)


def span(lower: float, upper: float, turns: bool) -> tuple[float, float]:
    """Range of a slider: the limits, otherwise a range about zero, or on one side of the only limit."""
    wide = WIDE_TURN if turns else WIDE_SLIDE
    low = lower if np.isfinite(lower) else min(-wide, upper - 2.0 * wide)
    return low, upper if np.isfinite(upper) else max(wide, low + 2.0 * wide)
