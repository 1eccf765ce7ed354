"""Identify a simulated Panda with known parameters from an optimised trajectory with noise: are they recovered?

Torques carry white noise of 2 % of each joint's range of torques, positions the noise of a 1e-5 rad encoder; the log is
sampled at 500 Hz, and identified from positions and torques alone, as a real one: low-pass, derivatives, least
squares. A base parameter is recovered if its 95 % confidence interval holds the truth.
"""

from __future__ import annotations

import numpy as np

from geomctrl import models
from geomctrl.identification import Dataset, Estimate, RegressorModel, fit
from geomctrl.identification.excitation import Excitation, MotionSearch, optimize

RATE, CUTOFF, DURATION = 500.0, 20.0, 10.0  # Hz, Hz, s
ENCODER, TORQUE = 1e-5, 0.02  # rad, of each joint's torque range
VISCOUS, COULOMB = np.array([4, 4, 3, 3, 1.5, 1, 1.0]), np.array([1.5, 1.5, 1, 1, 0.5, 0.4, 0.4])


def simulated_log(model: RegressorModel, x: np.ndarray, trajectory, seed: int, periods: int = 2) -> Dataset:
    """The log of a robot with parameters x that follows the trajectory exactly."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(periods * trajectory.duration * RATE)) / RATE
    q, v, a = trajectory.at(t % trajectory.duration)
    tau = model.torque(x, q, v, a)
    tau = tau + rng.normal(size=tau.shape) * TORQUE * np.ptp(tau, axis=0)
    return Dataset(t, q + ENCODER * rng.normal(size=q.shape), tau, label="synthetic Panda")


def truth(model: RegressorModel) -> np.ndarray:
    x = model.prior
    x[model.by_kind["viscous"]], x[model.by_kind["coulomb"]] = VISCOUS, COULOMB
    return x


def recover(seed: int = 0, iterations: int = 60) -> tuple[Excitation, Estimate, np.ndarray]:
    """(excitation, estimate, normalised errors (estimate - truth) / std of the base parameters)."""
    robot = models.panda()
    model = RegressorModel(robot, smoothing=0.02)
    search = MotionSearch(iterations=iterations, seed=seed)
    excitation = optimize(model, DURATION, terms=5, objective="log_det", search=search)
    log = simulated_log(model, truth(model), excitation.trajectory, seed)
    data = log.filtered(CUTOFF, alike=True, decimate=5)
    estimate = fit(model, data, "wls")
    error = estimate.values - model.base.projection @ truth(model)
    return excitation, estimate, error / estimate.std


def main() -> None:
    excitation, estimate, z = recover()
    model = estimate.model
    print(excitation.text())
    print(
        f"\n{model.base.size} base parameters, {model.base.size - 3 * 7} of them inertial; relative torque"
        f" error {100 * estimate.relative_error():.2f} %"
    )
    print(f"{'base parameter':62}{'truth':>10}{'found':>10}{'std':>10}{'error/std':>10}")
    for name, true, value, std, k in zip(
        model.base_names, model.base.projection @ truth(model), estimate.values, estimate.std, z
    ):
        print(f"{name[:61]:62}{true:10.5f}{value:10.5f}{std:10.2g}{k:10.2f}")
    inside = np.abs(z) < 1.96
    print(
        f"\n{inside.sum()} of {len(z)} within their 95 % intervals; rms of error / std"
        f" {np.sqrt(np.mean(z**2)):.2f} (1 if the intervals are right)"
    )
    seeds = [recover(seed, 30)[2] for seed in range(1, 6)]
    print(
        f"five other seeds: {100 * np.mean(np.abs(np.concatenate(seeds)) < 1.96):.1f} % within, rms"
        f" {np.sqrt(np.mean(np.concatenate(seeds) ** 2)):.2f}"
    )


if __name__ == "__main__":
    main()
