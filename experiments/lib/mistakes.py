"""Simulated logs whose truth is known, and what people do to logs by mistake."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from geomctrl import Robot, models
from geomctrl.identification import Dataset, RegressorModel


def simulated(
    name: str, seed: int = 0, seconds: float = 20.0, noise: float = 0.01, bits: int = 16, band: float = 0.5,
    model: RegressorModel | None = None, rate: float = 250.0, friction: float = 0.1, stribeck: float = 0.0,
    geometry: float = 0.0,
) -> tuple[Dataset, RegressorModel]:  # fmt: skip
    """(log, model): sines below `band` [Hz], viscous and Coulomb friction each `friction` of the torques, encoders of
    2^bits steps, torque noise in terms of each joint's torque. The bodies are 0.7 to 1.3 times those of the model.

    What the model lacks: `stribeck`, more friction below a tenth of the speed, in terms of Coulomb's; `geometry` [m],
    by how much joints are elsewhere (rms a coordinate).
    """
    robot, rng = models.load(name), np.random.default_rng(seed)
    model = model or RegressorModel(robot, smoothing=0.02)
    n, t = robot.nv, np.arange(int(seconds * rate)) / rate
    q, v, a = _motion(robot, rng, t, band)
    x = model.prior
    x[: model.inertial] *= rng.uniform(0.7, 1.3)
    size = np.sqrt(np.mean(model.torque(x, q, v, a) ** 2, 0))
    x[model.indices("viscous")] = (friction * size / np.sqrt(np.mean(v**2, 0)))[model.acts["viscous"]]
    x[model.indices("coulomb")] = friction * size[model.acts["coulomb"]]
    real = RegressorModel(_moved(robot, geometry, rng), **model.options) if geometry else model
    tau = real.torque(x, q, v, a)
    slow = 0.1 * np.sqrt(np.mean(v**2, 0))
    tau += stribeck * friction * size * np.tanh(v / 0.02) * np.exp(-((v / slow) ** 2))
    tau += noise * size * rng.normal(size=(len(t), n))
    step = 2.0 * np.pi / 2**bits
    return Dataset(t, np.round(q / step) * step, tau, label=f"simulated {name}"), model


def _motion(robot: Robot, rng: np.random.Generator, t: np.ndarray, band: float) -> tuple[np.ndarray, ...]:
    """(q, v, a): five sines a joint within its limits."""
    n = robot.nv
    low, high = (np.where(np.isfinite(x), x, s * np.pi) for x, s in ((robot.limits.lower, -1), (robot.limits.upper, 1)))
    f, phase = rng.uniform(0.05, band, (n, 5)), rng.uniform(0.0, 2.0 * np.pi, (n, 5))
    A = rng.uniform(0.3, 1.0, (n, 5))
    A *= (0.6 * np.minimum(0.5 * (high - low), 2.0) / A.sum(1))[:, None]
    w, angle = 2.0 * np.pi * f, 2.0 * np.pi * t[:, None, None] * f + phase
    q = 0.5 * (low + high) + (A * np.sin(angle)).sum(-1)
    return q, (A * w * np.cos(angle)).sum(-1), -(A * w**2 * np.sin(angle)).sum(-1)


def _moved(robot: Robot, deviation: float, rng: np.random.Generator) -> Robot:
    placements = np.array(robot.placements)
    placements[:, :3, 3] += deviation * rng.normal(size=(len(placements), 3))
    return replace(robot, placements=placements)


def scaled(log: Dataset, k: int, q: float = 1.0, tau: float = 1.0) -> Dataset:
    """With position (and its derivatives) and torque of joint k times these."""
    f, g = np.ones(log.nv), np.ones(log.nv)
    f[k], g[k] = q, tau
    return _mapped(log, np.diag(f), np.diag(g))


def swapped(log: Dataset, i: int, j: int, q: bool = True, tau: bool = True) -> Dataset:
    P = np.eye(log.nv)
    P[[i, j]] = P[[j, i]]
    return _mapped(log, P if q else np.eye(log.nv), P if tau else np.eye(log.nv))


def coupled(log: Dataset, i: int, j: int, c: float = 1.0) -> Dataset:
    """As logged at motors of which j turns with joint i as well: by the same power joint i's motor feels less."""
    T, S = np.eye(log.nv), np.eye(log.nv)
    T[j, i], S[i, j] = c, -c
    return _mapped(log, T, S)


def _mapped(log: Dataset, T: np.ndarray, S: np.ndarray) -> Dataset:
    v, a = (None if x is None else np.asarray(x) @ T.T for x in (log.v, log.a))
    return replace(log, q=np.asarray(log.q) @ T.T, v=v, a=a, tau=np.asarray(log.tau) @ S.T)
