"""Simulated logs with known parameters, and common mistakes in logs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomctrl import Robot, models
from geomctrl.identification import Dataset, RegressorModel
from geomctrl.mechanism import inertia


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Conditions of a simulated log. All sizes are relative to each joint's root mean square unless a unit is given.

    seconds, rate [Hz], band [Hz]: highest frequency of the five sines of each joint; period [s]: the motion repeats;
    noise of torques; bits of encoders; velocities: noise of measured ones, None: the log has none; friction: viscous
    and Coulomb each. Effects that the model lacks: stribeck (relative to Coulomb friction), geometry [m] (displacement
    of joints, rms of each coordinate), tilt [deg] of the base, warming: share by which friction falls from the start to
    the end. symmetric: the last body is symmetric about its axis up to a thousandth.
    """

    seconds: float = 20.0
    rate: float = 250.0
    band: float = 0.5
    period: float | None = None
    noise: float = 0.01
    bits: int = 16
    velocities: float | None = None
    friction: float = 0.1
    stribeck: float = 0.0
    geometry: float = 0.0
    tilt: float = 0.0
    warming: float = 0.0
    symmetric: bool = False


def simulated(
    name: str, seed: int = 0, model: RegressorModel | None = None, **conditions: Any
) -> tuple[Dataset, RegressorModel]:
    """(log, model) under `Conditions`; the bodies are 0.7 to 1.3 times those of the model."""
    c, rng = Conditions(**conditions), np.random.default_rng(seed)
    robot = models.load(name)
    robot = _with_symmetric_end(robot) if c.symmetric else robot
    model = model or RegressorModel(robot, smoothing=0.02)
    n, t = robot.nv, np.arange(int(c.seconds * c.rate)) / c.rate
    q, v, a = motion(robot, rng, t, c.band, c.period)
    x = model.prior
    x[: model.inertial] *= rng.uniform(0.7, 1.3)
    size = np.sqrt(np.mean(model.torque(x, q, v, a) ** 2, 0))
    x[model.by_kind["viscous"]] = (c.friction * size / np.sqrt(np.mean(v**2, 0)))[model.acts["viscous"]]
    x[model.by_kind["coulomb"]] = c.friction * size[model.acts["coulomb"]]
    real = RegressorModel(_moved(robot, c, rng), **model.options) if c.geometry or c.tilt else model
    tau = real.torque(x, q, v, a)
    rubs = x.copy()
    rubs[np.isin(model.kinds, ("viscous", "coulomb"), invert=True)] = 0.0
    tau -= c.warming * (t / t[-1])[:, None] * (model.torque(rubs, q, v, a) - model.torque(0.0 * x, q, v, a))
    slow = 0.1 * np.sqrt(np.mean(v**2, 0))
    tau += c.stribeck * c.friction * size * np.tanh(v / 0.02) * np.exp(-((v / slow) ** 2))
    tau += c.noise * size * rng.normal(size=(len(t), n))
    step = 2.0 * np.pi / 2**c.bits
    measured = None
    if c.velocities is not None:
        measured = v + c.velocities * np.sqrt(np.mean(v**2, 0)) * rng.normal(size=v.shape)
    return Dataset(t, np.round(q / step) * step, tau, v=measured, label=f"simulated {name}"), model


def motion(
    robot: Robot, rng: np.random.Generator, t: np.ndarray, band: float, period: float | None
) -> tuple[np.ndarray, ...]:
    """(q, v, a): five sines for each joint within its limits; multiples of one over the period, if there is one."""
    n = robot.nv
    low, high = (np.where(np.isfinite(x), x, s * np.pi) for x, s in ((robot.limits.lower, -1), (robot.limits.upper, 1)))
    f, phase = rng.uniform(0.05, band, (n, 5)), rng.uniform(0.0, 2.0 * np.pi, (n, 5))
    f = f if period is None else np.maximum(np.round(f * period), 1.0) / period
    A = rng.uniform(0.3, 1.0, (n, 5))
    A *= (0.6 * np.minimum(0.5 * (high - low), 2.0) / A.sum(1))[:, None]
    w, angle = 2.0 * np.pi * f, 2.0 * np.pi * t[:, None, None] * f + phase
    q = 0.5 * (low + high) + (A * np.sin(angle)).sum(-1)
    return q, (A * w * np.cos(angle)).sum(-1), -(A * w**2 * np.sin(angle)).sum(-1)


def _with_symmetric_end(robot: Robot) -> Robot:
    """The robot with a last body that is nearly symmetric about its joint's axis."""
    axis = robot.joints[-1].S[:3, 0]
    if not axis.any():  # slides
        return robot
    axis = axis / np.linalg.norm(axis)
    bodies = np.array(robot.parameters)
    mass, along = bodies[-1, 0], float(axis @ inertia.com(bodies[-1]))
    off = np.cross(axis, np.roll(axis, 1))
    size = 0.05**2 * mass
    tensor = size * (np.eye(3) + 0.5 * np.outer(axis, axis) + 1e-3 * np.outer(off, off))
    bodies[-1] = inertia.from_com(mass, along * axis + 1e-4 * off, tensor)
    return robot.with_parameters(bodies)


def _moved(robot: Robot, c: Conditions, rng: np.random.Generator) -> Robot:
    """The robot with slightly displaced joints, on a base that is tilted about a horizontal axis."""
    placements = np.array(robot.placements)
    placements[:, :3, 3] += c.geometry * rng.normal(size=(len(placements), 3))
    g, angle = np.asarray(robot.gravity, float), np.deg2rad(c.tilt)
    side = np.cross(g, rng.normal(size=3))
    side *= np.linalg.norm(g) / max(float(np.linalg.norm(side)), 1e-300)
    return replace(robot, placements=placements, gravity=np.cos(angle) * g + np.sin(angle) * side)


def scaled(log: Dataset, k: int, q: float = 1.0, tau: float = 1.0) -> Dataset:
    """The log with position (and its derivatives) and torque of joint k multiplied by these factors."""
    f, g = np.ones(log.nv), np.ones(log.nv)
    f[k], g[k] = q, tau
    return _mapped(log, np.diag(f), np.diag(g))


def swapped(log: Dataset, i: int, j: int, q: bool = True, tau: bool = True) -> Dataset:
    P = np.eye(log.nv)
    P[[i, j]] = P[[j, i]]
    return _mapped(log, P if q else np.eye(log.nv), P if tau else np.eye(log.nv))


def coupled(log: Dataset, i: int, j: int, c: float = 1.0) -> Dataset:
    """The log of motors where motor j also turns with joint i. Power is equal, so motor i has less torque."""
    T, S = np.eye(log.nv), np.eye(log.nv)
    T[j, i], S[i, j] = c, -c
    return _mapped(log, T, S)


def _mapped(log: Dataset, T: np.ndarray, S: np.ndarray) -> Dataset:
    v, a = (None if x is None else np.asarray(x) @ T.T for x in (log.v, log.a))
    return replace(log, q=np.asarray(log.q) @ T.T, v=v, a=a, tau=np.asarray(log.tau) @ S.T)


def delayed(log: Dataset, seconds: float, signal: str = "tau") -> Dataset:
    """The log with torques, or velocities, delayed by `seconds`."""
    x = np.asarray(getattr(log, signal))
    late = np.stack([np.interp(log.t - seconds, log.t, column) for column in x.T], -1)
    return replace(log, **{signal: late})


def quantised(log: Dataset, step: float) -> Dataset:
    """The log with torques rounded to steps [N m]."""
    return replace(log, tau=step * np.round(np.asarray(log.tau) / step))


def with_lost_samples(log: Dataset, count: int, rng: np.random.Generator) -> Dataset:
    """The log without some samples, on time stamps that do not show it."""
    kept = np.ones(len(log), bool)
    kept[rng.choice(np.arange(20, len(log) - 20), count, replace=False)] = False
    rows = {k: None if getattr(log, k) is None else np.asarray(getattr(log, k))[kept] for k in ("q", "v", "tau")}
    return Dataset(np.arange(kept.sum()) / log.rate, **rows, label=log.label)
