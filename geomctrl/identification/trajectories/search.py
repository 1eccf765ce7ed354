"""The search for an exciting trajectory: BFGS under logarithmic barriers, which are lowered in turn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import count, instance
from geomctrl.identification.model import RegressorModel
from geomctrl.robot import Robot

from .problem import Problem, limits_of
from .trajectory import Trajectory

BARRIERS = (1e-1, 1e-2, 1e-3)
SHORTENED = 30  # times that a step is shortened at most


@dataclass(frozen=True, eq=False)
class Excitation:
    """An optimised trajectory beside the random one it started from.

    `condition`, `log_det` (mean log of the information's eigenvalues, columns in SI units, a row's average), and the
    same of the random start, within the same limits; `cost`: per iteration; `margin`: the smallest distance from a
    limit, as a fraction of it.
    """

    trajectory: Trajectory
    random: Trajectory
    condition: float
    log_det: float
    random_condition: float
    random_log_det: float
    cost: np.ndarray
    margin: float

    def text(self) -> str:
        return (
            f"{self.trajectory.kind} trajectory of {self.trajectory.duration:g} s, {len(self.cost) - 1} iterations\n"
            f"{'':24}{'condition':>12}{'mean log det':>14}\n"
            f"{'random, same limits':24}{self.random_condition:12.4g}{self.random_log_det:14.3f}\n"
            f"{'optimised':24}{self.condition:12.4g}{self.log_det:14.3f}\n"
            f"closest to a limit: {100 * self.margin:.1f} % of it left"
        )


def optimize(
    model: RegressorModel | Robot,
    duration: float = 10.0,
    *,
    kind: str = "fourier",
    terms: int = 5,
    objective: str = "condition",
    q0: ArrayLike | None = None,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    velocity: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
    effort: ArrayLike | None = None,
    samples: int = 120,
    iterations: int = 120,
    seed: int = 0,
) -> Excitation:
    """A trajectory that excites the model's base parameters.

    kind="fourier": `terms` harmonics of 1 / duration; "spline": `terms` free quintic control points a joint.
    objective: "condition" or "log_det". Limits default to the robot's (position pi where it has none); acceleration
    [rad/s^2] to velocity / 0.25 s. q0: about which configuration to start, default the middle of the ranges. seed: of
    the random start. Raises ArgumentError for limits that are missing, ExcitationError if no start within the limits is
    found.
    """
    instance("model", model, (RegressorModel, Robot), "a RegressorModel or a Robot")
    iterations = count("iterations", iterations, 1)
    seed = count("seed", seed)
    if not isinstance(model, RegressorModel):
        model = RegressorModel(model, viscous=False, coulomb=False, offset=False)
    limits = limits_of(model.robot, lower, upper, velocity, acceleration, effort)
    problem = Problem(model, limits, duration, kind, terms, objective, samples)
    z = problem.start(np.random.default_rng(seed), q0)
    first, costs = problem.trajectory(z), []
    for barrier in BARRIERS:
        z, more = _descend(problem, z, barrier, max(1, iterations // len(BARRIERS)))
        costs += more
    costs.append(problem.value(z))
    best = problem.shrunk(z)
    after, before = problem.measures(best), problem.measures(first)
    return Excitation(best, first, *after, *before, cost=np.array(costs), margin=problem.margin(best))


def _descend(problem: Problem, z: np.ndarray, barrier: float, iterations: int) -> tuple[np.ndarray, list[float]]:
    """(z, costs before each step) after quasi-Newton steps (BFGS) that stay within the limits."""
    f, g = problem.cost(z, barrier)
    H = np.eye(len(z)) * (0.05 * np.linalg.norm(z) / max(np.linalg.norm(g), 1e-300))
    costs = []
    for _ in range(iterations):
        costs.append(problem.value(z))
        step = -H @ g
        slope = float(g @ step)
        if slope >= 0.0:
            H = np.eye(len(z)) * 1e-3
            step, slope = -H @ g, -float(g @ H @ g)
        length = 1.0
        for _ in range(SHORTENED):
            trial = problem.cost(z + length * step, barrier)
            if trial[0] <= f + 1e-4 * length * slope:
                break
            length *= 0.4
        else:
            break
        s, y = length * step, trial[1] - g
        z, f, g = z + s, trial[0], trial[1]
        sy = float(s @ y)
        if sy > 1e-12:
            rho, Hy = 1.0 / sy, H @ y
            H += (1.0 + rho * float(y @ Hy)) * rho * np.outer(s, s) - rho * (np.outer(Hy, s) + np.outer(s, Hy))
        if -slope < 1e-9:
            break
    return z, costs
