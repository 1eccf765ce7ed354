"""Simulated logs whose truth is known, and what people do to logs by mistake."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from geomctrl import models
from geomctrl.identification import Dataset, Filtering, Reading, RegressorModel, Validation, identify

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments"))  # `lib.logs` where this is not run by pytest
RATE = 250.0
AS_IT_IS = Reading(check_units=False)


def simulated(name, seed=0, seconds=20.0, noise=0.01, bits=16, band=0.5, model=None):
    """(log, model): sines below `band` [Hz], friction a tenth of the torques, encoders of 2^bits steps, torque noise in
    terms of each joint's torque. The bodies are 0.7 to 1.3 times those of the model.
    """
    robot, rng = models.load(name), np.random.default_rng(seed)
    model = model or RegressorModel(robot, smoothing=0.02)
    n, t = robot.nv, np.arange(int(seconds * RATE)) / RATE
    low, high = (np.where(np.isfinite(x), x, s * np.pi) for x, s in ((robot.limits.lower, -1), (robot.limits.upper, 1)))
    f, phase = rng.uniform(0.05, band, (n, 5)), rng.uniform(0.0, 2.0 * np.pi, (n, 5))
    A = rng.uniform(0.3, 1.0, (n, 5))
    A *= (0.6 * np.minimum(0.5 * (high - low), 2.0) / A.sum(1))[:, None]
    w, angle = 2.0 * np.pi * f, 2.0 * np.pi * t[:, None, None] * f + phase
    q = 0.5 * (low + high) + (A * np.sin(angle)).sum(-1)
    v, a = (A * w * np.cos(angle)).sum(-1), -(A * w**2 * np.sin(angle)).sum(-1)
    x = model.prior
    x[: model.inertial] *= rng.uniform(0.7, 1.3)
    size = np.sqrt(np.mean(model.torque(x, q, v, a) ** 2, 0))
    x[model.indices("viscous")] = (0.1 * size / np.sqrt(np.mean(v**2, 0)))[model.acts["viscous"]]
    x[model.indices("coulomb")] = 0.1 * size[model.acts["coulomb"]]
    tau = model.torque(x, q, v, a) + noise * size * rng.normal(size=q.shape)
    step = 2.0 * np.pi / 2**bits
    return Dataset(t, np.round(q / step) * step, tau, label=f"simulated {name}"), model


def scaled(log, k, q=1.0, tau=1.0):
    """With position (and measured velocity) and torque of joint k times these."""
    f, g = np.ones(log.nv), np.ones(log.nv)
    f[k], g[k] = q, tau
    return replace(log, q=log.q * f, v=None if log.v is None else log.v * f, tau=log.tau * g)


def swapped(log, i, j, q=True, tau=True):
    order = np.arange(log.nv)
    order[[i, j]] = j, i
    v = None if log.v is None else (log.v[:, order] if q else log.v)
    return replace(log, q=log.q[:, order] if q else log.q, v=v, tau=log.tau[:, order] if tau else log.tau)


def coupled(log, i, j, c=1.0):
    """As logged at motors of which j turns with joint i as well: by the same power joint i's motor feels less."""
    q, tau, v = log.q.copy(), log.tau.copy(), None if log.v is None else log.v.copy()
    q[:, j] += c * q[:, i]
    tau[:, i] -= c * tau[:, j]
    if v is not None:
        v[:, j] += c * v[:, i]
    return replace(log, q=q, v=v, tau=tau)


def judged(log, model, method="ols", filtering=None, validation=None, **options):
    """The verdict, of units that are taken as they are."""
    return identify(
        model.robot, log, model=model, method=method, options=options, filtering=filtering or Filtering(),
        reading=AS_IT_IS, validation=validation or Validation(None),
    ).verdict  # fmt: skip


def first(verdict, kind):
    """What the first doubt of a kind says; the test fails where there is none."""
    found = [doubt for doubt in verdict.doubts if doubt.kind == kind]
    assert found, verdict.text()
    return found[0]


MISTAKES = ("sign", "swap", "scale", "coupling")


def accused(verdict):
    """The mistakes that a verdict names, and whatever else it calls fatal."""
    return [str(doubt) for doubt in verdict.doubts if doubt.fatal or doubt.kind in MISTAKES]
