"""Reasons to believe that a log is not in SI units, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from geomctrl.robot import Robot

from .reading import DEGREE, RPM

if TYPE_CHECKING:
    from .dataset import Dataset


def suspicious_units(data: Dataset, robot: Robot | None = None) -> list[str]:
    """Reasons to believe that an array is not in SI units, in words; empty if there are none."""
    doubts = []
    one_dof = data.q.shape[1] == data.nv
    s = data.stretches()[0]
    t, q = data.t[s], data.q[s]
    if len(t) > 10 and one_dof and data.v is not None:
        rate, v = np.gradient(q, t, axis=0), data.v[s]
        power = np.sum(v * v, 0)
        moving = power > 1e-6 * power.max() if power.max() > 0.0 else np.zeros(data.nv, bool)
        if moving.any():
            ratio = np.sum(rate[:, moving] * v[:, moving], 0) / power[moving]
            fit = np.sqrt(
                np.sum((rate[:, moving] - ratio * v[:, moving]) ** 2, 0) / np.sum(rate[:, moving] ** 2, 0).clip(1e-300)
            )
            off = (np.abs(np.log(np.abs(ratio).clip(1e-12))) > np.log(1.5)) | (ratio < 0.0)
            if (off & (fit < 0.5)).any():
                k = int(np.argmax(off & (fit < 0.5)))
                joint = data.names[int(np.flatnonzero(moving)[k])]
                known = {57.29578: "q in degrees or v not", 1 / 57.29578: "v in degrees a second", RPM: "v in rpm",
                         1e-3: "t in ms", 1e-9: "t in ns", 1e-6: "t in us", -1.0: "v with the other sign"}  # fmt: skip
                hint = next(
                    (word for value, word in known.items() if np.isclose(ratio[k], value, rtol=0.05)), "a gear ratio?"
                )
                doubts.append(f"dq/dt is {ratio[k]:.4g} times v of {joint} ({hint})")
    if len(t) > 10 and np.median(np.diff(t)) > 0.9:
        doubts.append(f"the sampling interval is {np.median(np.diff(t)):.4g} s (t in milliseconds or nanoseconds?)")
    if robot is not None and one_dof:
        doubts += _beyond_limits(data, robot) + _torque_scale(data, robot)
    return doubts


def _beyond_limits(data, robot):
    turning, largest = robot.turning, np.abs(data.q).max(0)
    limit = np.maximum(np.abs(robot.limits.lower), np.abs(robot.limits.upper))
    limit = np.where(np.isfinite(limit) | ~turning, limit, 4.0 * np.pi)
    reach = limit + np.where(turning, 1.0, 0.1 * limit)
    bad = largest > np.where(turning, np.maximum(3.0 * reach, 15.0), 3.0 * reach)
    if not bad.any():
        return []
    k = int(np.argmax(bad))
    unit, other, factor = ("rad", "degrees", DEGREE) if turning[k] else ("m", "millimetres", 1e-3)
    fits = f"in {other} it would fit" if largest[k] * factor <= reach[k] else "a motor-side angle?"
    return [f"q of {data.names[k]} reaches {largest[k]:.4g} {unit} where {limit[k]:.4g} is the limit; {fits}"]


def _torque_scale(data, robot):
    """Compare with what the robot model needs to hold itself up, where it has masses and torques are not filtered
    out.
    """
    if not robot.parameters[:, 0].any() or len(data) < 10:
        return []
    some = np.linspace(0, len(data) - 1, min(len(data), 400)).astype(int)
    gravity = np.sqrt(np.mean(robot.gravity_force(data.q[some]) ** 2))
    measured = np.sqrt(np.mean(data.tau[some] ** 2))
    if gravity < 1e-9:
        return []
    if measured < 0.02 * gravity:
        hint = "motor-side torques, currents or kN m?"
    elif measured > 200.0 * gravity:
        hint = "N mm, or a load the model lacks?"
    else:
        return []
    return [f"torques are {measured:.3g} N m rms where gravity alone takes {gravity:.3g} ({hint})"]
