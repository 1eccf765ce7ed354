"""Simulated logs with known parameters: noise that is correlated in time, models with wrong bodies."""

import numpy as np
from scipy.signal import lfilter

from geomctrl import inertia
from geomctrl.identification import Dataset, RegressorModel

RATE = 100.0


def simulated(robot, *, seconds=14.0, noise=0.02, correlation=0.9, seed=0, highest=0.6):
    """(model, its true parameters, log): five sines a joint up to `highest` [Hz], torques with noise of the first order
    of this relative size, correlated by `correlation` from sample to sample.
    """
    model, rng = RegressorModel(robot, smoothing=0.05), np.random.default_rng(seed + 100)
    x = model.prior
    x[model.positive] = rng.uniform(0.3, 3.0, len(model.positive))
    x[model.by_kind["offset"]] = 0.1 * rng.normal(size=robot.nv)
    t = np.arange(round(seconds * RATE)) / RATE
    w = 2.0 * np.pi * rng.uniform(0.05, highest, (5, robot.nv))
    A, phase = rng.uniform(0.1, 0.5, (5, robot.nv)), rng.uniform(0.0, 6.28, (5, robot.nv))
    s = t[:, None, None] * w + phase
    q, v, a = (A * np.sin(s)).sum(1), (A * w * np.cos(s)).sum(1), -(A * w**2 * np.sin(s)).sum(1)
    tau = model.torque(x, q, v, a)
    white = rng.normal(size=(len(t) + 500, robot.nv))
    shaped = lfilter([np.sqrt(1.0 - correlation**2)], [1.0, -correlation], white, axis=0)[500:]
    rms = np.sqrt(np.mean(tau**2, axis=0))
    return model, x, Dataset(t, q, tau + noise * np.maximum(rms, 0.1 * rms.max()) * shaped, v=v, a=a)


def off(robot, seed=0, by=0.25):
    """The robot with bodies as in a drawing: masses and extents wrong by up to `by`, centres of mass by 3 cm."""
    rng, bodies = np.random.default_rng(seed), []
    for pi in robot.parameters:
        com = inertia.com(pi)
        size = np.diag(np.append(np.sqrt(rng.uniform(1.0 - by, 1.0 + by, 3)), 1.0))
        back, forth = np.eye(4), np.eye(4)
        back[:3, 3], forth[:3, 3] = -com, com + rng.uniform(-0.03, 0.03, 3)
        P = rng.uniform(1.0 - by, 1.0 + by) * inertia.pseudo(pi)
        T = forth @ size @ back
        bodies.append(inertia.from_pseudo(T @ P @ T.T))
    return robot.with_parameters(np.array(bodies))
