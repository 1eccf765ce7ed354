"""Whether a log fits a robot, and reasons to believe that it is not in SI units, in words."""

from __future__ import annotations

import numpy as np

from geomctrl.arguments import flag, instance
from geomctrl.identification.errors import DataError
from geomctrl.robot import Robot

from .reading import DEGREE, RPM
from .samples import Samples

LAG = 0.1  # s: robots hardly turn around within, and move by more than an encoder's step
ON_GRID = 0.01  # of a step: how near to its multiples torques in steps are


def check(data: Samples, robot: Robot, units: bool = True) -> None:
    """Raises DataError unless the log fits the robot: joint counts and, if asked, plausible units (saying why not)."""
    instance("robot", robot, Robot, "a geomctrl.Robot")
    flag("units", units)
    if data.nv != robot.nv or data.q.shape[1] != robot.nq:
        raise DataError(
            f"{data.label}: expected {robot.nv} joints (nq = {robot.nq}) as robot {robot.name!r} has, got tau of "
            f"{data.nv} and q of {data.q.shape[1]}; a JointMapping or `keys` can select and couple columns"
        )
    if units:
        findings = suspicious_units(data, robot)
        if findings:
            raise DataError(
                f"{data.label}: wrong units suspected: {'; '.join(findings)}. Say what they are by"
                " units={'q': 'deg', ...} (identify: --unit q=deg), or that they are right by check_units=False"
                " (--no-check-units)"
            )


def suspicious_units(data: Samples, robot: Robot | None = None) -> list[str]:
    """Reasons to believe that an array is not in SI units, in words; empty if there are none."""
    findings = []
    one_dof = data.q.shape[1] == data.nv
    s = data.stretches()[0]
    t = data.t[s]
    if len(t) > 10 and one_dof and data.v is not None:
        findings += _velocity_scale(data, s)
    if len(t) > 10 and np.median(np.diff(t)) > 0.9:
        findings.append(f"the sampling interval is {np.median(np.diff(t)):.4g} s (t in milliseconds or nanoseconds?)")
    if robot is not None and one_dof:
        findings += _beyond_limits(data, robot) + _torque_scale(data, robot)
    return findings


def _velocity_scale(data, s):
    """Compare measured velocities with the positions of a stretch: the displacements over LAG seconds, which encoders'
    noise hardly changes, as it does rates.
    """
    t, v = data.t[s], data.v[s]
    gone = np.concatenate((np.zeros((1, data.nv)), np.cumsum(0.5 * np.diff(t)[:, None] * (v[1:] + v[:-1]), axis=0)))
    lag = min(max(1, round(LAG / float(np.median(np.diff(t))))), len(t) // 2)
    whole = t[lag:] - t[:-lag] < 1.5 * lag * np.median(np.diff(t))  # not over holes
    displacement, integrated = (x[lag:][whole] - x[:-lag][whole] for x in (data.q[s], gone))
    power = np.sum(integrated * integrated, 0)
    moving = power > 1e-6 * power.max() if power.max() > 0.0 else np.zeros(data.nv, bool)
    if not moving.any():
        return []
    displacement, integrated = displacement[:, moving], integrated[:, moving]
    ratio = np.sum(displacement * integrated, 0) / power[moving]
    fit = np.sqrt(np.sum((displacement - ratio * integrated) ** 2, 0) / np.sum(displacement**2, 0).clip(1e-300))
    off = ((np.abs(np.log(np.abs(ratio).clip(1e-12))) > np.log(1.5)) | (ratio < 0.0)) & (fit < 0.5)
    if not off.any():
        return []
    k = int(np.argmax(off))
    joint = data.names[int(np.flatnonzero(moving)[k])]
    causes = {57.29578: "q in degrees or v not", 1 / 57.29578: "v in degrees a second", RPM: "v in rpm",
             1e-3: "t in ms", 1e-9: "t in ns", 1e-6: "t in us", -1.0: "v with the other sign"}  # fmt: skip
    hint = next((word for value, word in causes.items() if np.isclose(ratio[k], value, rtol=0.05)), "a gear ratio?")
    return [f"dq/dt is {ratio[k]:.4g} times v of {joint} ({hint})"]


def _beyond_limits(data, robot):
    turning, largest = robot.is_rotational, np.abs(data.q).max(0)
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


def torque_steps(data: Samples) -> np.ndarray:
    """(nv,): the step in which each joint's torques were recorded, 0 where there is none."""
    out = np.zeros(data.nv)
    for k, tau in enumerate(np.asarray(data.tau).T):
        levels = np.unique(tau)
        if 1 < len(levels) < 0.2 * len(tau):
            between = np.diff(levels)
            step = float(between[between > 1e-6 * np.ptp(levels)].min())
            multiples = (levels - levels[0]) / step
            out[k] = step if (np.abs(multiples - np.round(multiples)) < ON_GRID).mean() > 0.95 else 0.0
    return out


def coarseness(data: Samples) -> np.ndarray:
    """(nv,): the root mean square error of torques in steps, relative to how much each joint's torques vary."""
    return torque_steps(data) / np.sqrt(12.0) / np.maximum(np.asarray(data.tau).std(axis=0), 1e-300)
