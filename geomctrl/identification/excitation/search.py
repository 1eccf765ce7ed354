"""The search for an exciting trajectory: BFGS under logarithmic barriers, which are lowered in turn, from the best of
many random motions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import count, instance
from geomctrl.control.sweeping.executors import check_executor, cores, processes
from geomctrl.identification.errors import ExcitationError
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.robot import Robot

from .clearance import clearances_of
from .excite import Excitation, compared
from .guarantee import keeps_clear, margins
from .limits import limits_of
from .problem import Problem
from .starts import postures, random_motion
from .surroundings import Surroundings
from .trajectory import Trajectory

BARRIERS = (1e-1, 1e-2, 1e-3)
SHORTENED = 30  # times that a step is shortened at most
DRAWN, DRAWINGS = 0.985, 400  # how a motion is drawn together until it keeps its limits between samples too
TRIES = 20  # postures, about which a random motion is to fit
SHARED = 2  # starts from which on processes share the work
EACH = 8  # random motions that are worth a process


def optimize(
    model: RegressorModel | Robot,
    duration: float = 10.0,
    *,
    kind: str = "fourier",
    terms: int = 5,
    objective: str = "condition",
    scaling: str = "length",
    q0: ArrayLike | None = None,
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
    velocity: ArrayLike | None = None,
    acceleration: ArrayLike | None = None,
    effort: ArrayLike | None = None,
    jerk: ArrayLike | None = None,
    torque_margin: float = 0.2,
    surroundings: Surroundings | None = Surroundings(),  # noqa: B008 - frozen
    noise: ArrayLike | None = None,
    rate: float = 100.0,
    starts: int = 1,
    compare: int = 20,
    samples: int = 120,
    iterations: int = 120,
    seed: int = 0,
    executor: Any = None,
) -> Excitation:
    """A trajectory that excites the model's base parameters, within limits and clear of what is around.

    kind="fourier": `terms` harmonics of 1 / duration; "spline": `terms` free quintic control points a joint. Either
    begins and ends at rest in the same posture, with zero acceleration, so that it can be repeated.
    objective: "condition" or "log_det"; scaling: "length" or "prior"; see `criterion`. noise (nv,): standard deviation
    of torque samples, default 1 % of the effort limits (1 N m where there is none), and rate [Hz]: how many independent
    ones there are a second; for the criteria and for `Excitation.deviations`.
    Limits default to the robot's (position pi where it has none); acceleration [rad/s^2] to velocity / 0.25 s; jerk to
    none. torque_margin: part of the effort limits that is kept back, as the model's torques are not the robot's.
    surroundings: floor, boxes, the robot itself; None: nothing is around. q0: the posture about which to move, default
    roomy ones among random postures.
    compare: how many random motions about such postures, as large as they may be, are looked at (`Excitation.random`);
    the best `starts` of them are optimised, by processes of this machine where there are several, or on `executor`,
    anything with `submit`. seed: of the random motions.

    Raises ArgumentError for limits that are missing, ExcitationError if no posture can be held clear, saying what
    stands in the way and by how much. What is returned keeps all limits, see `guarantee`.
    """
    instance("model", model, (RegressorModel, Robot), "a RegressorModel or a Robot")
    iterations, seed = count("iterations", iterations, 1), count("seed", seed)
    starts, compare = count("starts", starts, 1), count("compare", compare, 1)
    check_executor(executor)
    if not isinstance(model, RegressorModel):
        model = RegressorModel(model, viscous=False, coulomb=False, offset=False)
    limits = limits_of(model.robot, lower, upper, velocity, acceleration, effort, jerk, torque_margin)
    if surroundings is not None:
        instance("surroundings", surroundings, Surroundings, "Surroundings or None")
    clear = None if surroundings is None else clearances_of(model.robot, surroundings, limits.lower, limits.upper)
    problem = Problem(
        model, limits, duration, kind, terms, objective, samples,
        clearances=clear, noise=noise, scaling=scaling, rate=rate,
    )  # fmt: skip
    centres = postures(problem, q0)
    with _workers(starts, compare, executor) as run:
        seeds = [(seed, k) for k in range(max(compare, starts))]
        parts = list(run(partial(_explored, problem, centres), _shares(seeds)))
        found = [x for part, _ in parts for x in part]
        if not found:
            raise next(why for _, why in parts if why is not None)
        found.sort(key=lambda x: x[0])
        best = [(z, centre) for _, z, centre, _, _ in found[:starts]]
        results = list(run(partial(_improved, problem, iterations), best))
    trajectory, _, costs = min(results, key=lambda x: x[1])
    random = np.array([(condition, log_det) for *_, condition, log_det in found])
    return compared(problem, trajectory, problem.trajectory(found[0][1]), random, costs)


def _shares(seeds: list) -> list[list]:
    """Some for every worker, a few times over, so that none waits long for another."""
    n = max(1, -(-len(seeds) // (4 * cores())))
    return [seeds[i : i + n] for i in range(0, len(seeds), n)]


@contextmanager
def _workers(starts: int, compare: int, executor: Any) -> Iterator[Any]:
    """A `map` in this process, in new ones or on an executor."""
    if executor is not None:
        yield partial(_mapped, executor)
    elif starts < SHARED or cores() < 2:
        yield map
    else:
        with processes(min(cores(), max(starts, compare // EACH))) as pool:
            yield partial(_mapped, pool)


def _mapped(executor: Any, function: Any, items: list) -> list:
    return [future.result() for future in [executor.submit(function, x) for x in items]]


Random = tuple[float, np.ndarray, np.ndarray, float, float]


def _explored(
    problem: Problem, centres: np.ndarray, seeds: list[tuple[int, int]]
) -> tuple[list[Random], ExcitationError | None]:
    """(criterion, z, centre, condition, mean log det) of a random motion a seed, and why the last one that fits about
    none of the postures tried does not."""
    out: list[Random] = []
    why = None
    for key in seeds:
        rng = np.random.default_rng(key)
        for _ in range(TRIES):
            centre = centres[int(rng.integers(len(centres)))]
            try:
                z = random_motion(problem, centre, rng)
            except ExcitationError as error:
                why = error
            else:
                out.append((problem.value(z), z, centre, *problem.measured(problem.trajectory(z))))
                break
    return out, why


def _improved(
    problem: Problem, iterations: int, start: tuple[np.ndarray, np.ndarray]
) -> tuple[Trajectory, float, np.ndarray]:
    """(trajectory, its criterion, criterion at every iteration) from a random motion and its centre."""
    z, centre = start
    costs: list[float] = []
    for barrier in BARRIERS:
        z, more = _descend(problem, z, barrier, max(1, iterations // len(BARRIERS)))
        costs += more
    z = _drawn_together(problem, z, centre)
    costs.append(problem.value(z))
    return problem.trajectory(z), costs[-1], np.array(costs)


def _drawn_together(problem: Problem, z: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """The motion, drawn towards a posture that can be held until it keeps all limits between the samples too.

    In the end nothing but the posture is left, so that this ends.
    """
    still = problem.constant(centre)
    for _ in range(DRAWINGS):
        trajectory = problem.trajectory(z)
        if all(x.min() >= 0.0 for x in margins(problem.model, problem.limits, trajectory).values()) and (
            problem.clearances is None or keeps_clear(problem.clearances, problem.limits, trajectory)
        ):
            return z
        z = still + DRAWN * (z - still)
    raise ExcitationError("the motion leaves its limits between the samples: raise `samples`")


def _descend(problem: Problem, z: np.ndarray, barrier: float, iterations: int) -> tuple[np.ndarray, list[float]]:
    """(z, criterion before each step) after quasi-Newton steps (BFGS) that stay within the limits."""
    f, g, criterion = problem.cost(z, barrier)
    if not np.isfinite(f):  # on a limit to rounding
        return z, []
    H = np.eye(len(z)) * (0.05 * np.linalg.norm(z) / max(np.linalg.norm(g), 1e-300))
    costs = []
    for _ in range(iterations):
        costs.append(criterion)
        step = -H @ g
        slope = float(g @ step)
        if slope >= 0.0:
            H = np.eye(len(z)) * 1e-3
            step, slope = -H @ g, -float(g @ H @ g)
        length = 1.0
        for _ in range(SHORTENED):
            trial = problem.cost(z + length * step, barrier)
            if trial.total <= f + 1e-4 * length * slope:
                break
            length *= 0.4
        else:
            break
        s, y = length * step, trial.gradient - g
        z, (f, g, criterion) = z + s, trial
        sy = float(s @ y)
        if sy > 1e-12:
            rho, Hy = 1.0 / sy, H @ y
            H += (1.0 + rho * float(y @ Hy)) * rho * np.outer(s, s) - rho * (np.outer(Hy, s) + np.outer(s, Hy))
        if -slope < 1e-9:
            break
    return z, costs
