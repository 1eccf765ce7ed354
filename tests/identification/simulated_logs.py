"""Simulated logs with known parameters: bundled robots on Fourier series, friction, encoders, torque noise."""

from dataclasses import dataclass

import numpy as np

from geomctrl import Robot, models
from geomctrl.identification import Dataset, RegressorModel


@dataclass(frozen=True, eq=False)
class Simulated:
    """A log, its nominal robot, and the motion and torques without noise (N, nv) at its samples."""

    log: Dataset
    robot: Robot
    model: RegressorModel
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray

    def parts(self, fraction=0.7):
        """Return the first part of the log, and (q, v, a, tau) of some samples of the rest."""
        n = len(self.log)
        cut = int(fraction * n)
        some = slice(cut, n, max(1, int(self.log.rate / 50.0)))
        return self.log.select(np.arange(n) < cut), (self.q[some], self.v[some], self.a[some], self.tau[some])

    def true_error(self, x, rest):
        """Return |tau - tau_hat| / |tau| on motion and torques without noise."""
        q, v, a, tau = rest
        return float(np.linalg.norm(self.model.torque(x, q, v, a) - tau) / np.linalg.norm(tau))


def fourier(rng, nv, lowest, harmonics, amplitude):
    """Return motion(t) -> q, v, a (N, nv), smooth, of `harmonics` multiples of `lowest` [Hz]."""
    k = np.arange(1, harmonics + 1)[:, None]
    c = rng.normal(size=(harmonics, nv)) / k
    c *= amplitude / np.abs(c).sum(axis=0)
    phase, w = rng.uniform(0.0, 2.0 * np.pi, c.shape), 2.0 * np.pi * lowest * k

    def motion(t):
        angle = t[:, None, None] * w + phase
        return (c * np.sin(angle)).sum(1), (c * w * np.cos(angle)).sum(1), -(c * w**2 * np.sin(angle)).sum(1)

    return motion


def simulated(
    name="panda",
    *,
    rate=1000.0,
    bits=14,
    lowest=0.1,
    harmonics=5,
    amplitude=1.0,
    seconds=20.0,
    noise=0.005,
    measured=None,
    stribeck=0.03,
    keep=None,
    seed=0,
):
    """lowest [Hz] and harmonics of the motion; noise: of torques, relative to each joint's, within 62.5 Hz; measured:
    noise of measured velocities, relative to the greatest, None for none in the log; stribeck: of the torque's size,
    which models here lack; keep(rng, n) -> (n,) booleans: samples that were not lost.
    """
    rng = np.random.default_rng(seed)
    robot = models.load(name)
    model = RegressorModel(robot, smoothing=0.01)
    x = model.prior
    x[: model.inertial] *= np.repeat(rng.uniform(0.7, 1.4, robot.nbodies), 10)  # the true robot differs from its model
    t = np.arange(int(seconds * rate)) / rate
    q, v, a = fourier(rng, robot.nv, lowest, harmonics, amplitude)(t)
    size = np.sqrt(np.mean(model.torque(x, q, v, a) ** 2, axis=0)).clip(0.5)
    fastest = np.abs(v).max(axis=0)
    x[model.by_kind["viscous"]] = 0.1 * size / fastest
    x[model.by_kind["coulomb"]], x[model.by_kind["offset"]] = 0.1 * size, 0.01 * size
    tau = model.torque(x, q, v, a)
    tau = tau + stribeck * size * np.tanh(v / 0.01) * np.exp(-((v / (0.1 * fastest)) ** 2))
    spread = noise * np.sqrt(np.mean(tau**2, axis=0)) * np.sqrt(rate / 125.0)
    step = 2.0 * np.pi / 2**bits
    inputs = {"t": t, "q": np.round(q / step) * step, "tau": tau + spread * rng.normal(size=tau.shape)}
    if measured is not None:
        inputs["v"] = v + measured * fastest * rng.normal(size=v.shape)
    kept = np.ones(len(t), bool) if keep is None else keep(rng, len(t))
    log = Dataset(**{key: y[kept] for key, y in inputs.items()}, label="simulated")
    return Simulated(log, robot, model, q[kept], v[kept], a[kept], tau[kept])


def short_holes(rng, n):
    """Ten gaps of 6 to 24 samples, and three of 60 to 150."""
    kept = np.ones(n, bool)
    for count, low, high in ((10, 6, 25), (3, 60, 151)):
        for start in rng.choice(np.arange(1000, n - 1000), count, replace=False):
            kept[start : start + rng.integers(low, high)] = False
    return kept


def seven_joints_at_one_kilohertz(**changes):
    """Motion below 0.6 Hz repeated every 13 s, quantised encoders, measured velocities, short gaps."""
    options = {"lowest": 1.0 / 13.0, "harmonics": 7, "amplitude": 1.2, "seconds": 39.0, "measured": 0.01,
               "noise": 0.02, "keep": short_holes}  # fmt: skip
    return simulated("panda", **{**options, **changes})
