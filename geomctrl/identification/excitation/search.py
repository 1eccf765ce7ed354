"""Search for an exciting trajectory: BFGS under logarithmic barriers with decreasing weight, from the best of many
random motions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, count, instance
from geomctrl.control.sweeping.executors import cores, processes
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import ExcitationError
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.robot import Robot

from .clearance import Surroundings, clearances_of
from .excite import Excitation, compared, keeps_clearance, margins
from .problem import FELT_CLEARANCE, MotionLimits, Problem
from .trajectory import Trajectory

POSTURES = 4000  # random postures
KEPT_SHARE = 0.25  # of the feasible postures, those with most slack
MAX_REPAIRED = 8  # least infeasible postures that are repaired if none is feasible
FACTOR_STEP, MIN_FACTOR = 0.85, 0.02  # factor of each step, and smallest factor, relative to the joints' limits
START_SIZE = 0.95  # of the largest size within the limits, at which barriers would be infinite


def slacks(problem: Problem, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(N, .) each, negative for infeasible postures: slack of the limits relative to half the range, of torques
    relative to the effort limits, and of clearances [m]."""
    limits = problem.limits
    half = 0.5 * (limits.upper - limits.lower)
    still = np.zeros_like(q)
    tau = problem.model.torque(problem.pi, q, still, still)
    positions = np.minimum(q - limits.lower, limits.upper - q) / half
    return positions, 1.0 - np.abs(tau) / limits.effort, problem._clear(q)[0]


def postures(problem: Problem, q0: ArrayLike | None) -> np.ndarray:
    """(K, nv) feasible postures without collisions, those with most slack first; only q0 if it is given."""
    limits, nv = problem.limits, problem.robot.nv
    if q0 is not None:
        q0 = checked("q0", q0, ())
        if q0.shape != (nv,) or (q0 <= limits.lower).any() or (q0 >= limits.upper).any():
            raise ArgumentError(f"q0: expected a configuration strictly within the limits, got {q0}")
        if _least_slack(problem, q0[None])[0] <= 0.0:
            raise ExcitationError(f"no motion within the limits about q0: {shortfall(problem, q0)}")
        return q0[None]
    rng = np.random.default_rng(0)
    width = limits.upper - limits.lower
    tried = rng.uniform(limits.lower + 0.05 * width, limits.upper - 0.05 * width, size=(POSTURES, nv))
    tried = np.concatenate((0.5 * (limits.lower + limits.upper)[None], tried))
    slack = _least_slack(problem, tried)
    if (slack > 0.0).sum() < 10:
        nearest = tried[np.argsort(-slack)[:MAX_REPAIRED]]
        tried = np.concatenate((tried, [_repaired(problem, q) for q in nearest]))
        slack = _least_slack(problem, tried)
    order = np.argsort(-slack, kind="stable")
    good = order[slack[order] > 0.0]
    if not len(good):
        raise ExcitationError(
            f"no motion within the limits: of {len(tried)} postures none can be held; the nearest, q ="
            f" {np.round(tried[order[0]], 3).tolist()}: {shortfall(problem, tried[order[0]])}"
        )
    return tried[good[: max(1, int(KEPT_SHARE * len(good)))]]


def _least_slack(problem: Problem, q: np.ndarray) -> np.ndarray:
    """(N,) the least slack of any kind; clearances beyond the range of the barrier count alike."""
    positions, torques, clear = slacks(problem, q)
    clear = np.minimum(clear / FELT_CLEARANCE, 1.0).min(axis=1, initial=1.0)
    return np.minimum(np.minimum(positions.min(axis=1), torques.min(axis=1)), clear)


def shortfall(problem: Problem, q: np.ndarray) -> str:
    """The limits that a posture (nv,) violates and by how much, the worst first."""
    positions, torques, clear = (x[0] for x in slacks(problem, q[None]))
    names, causes = problem.robot.dof_names, []
    limit = problem.limits.effort
    for k in np.flatnonzero(torques <= 0.0):
        holds = (1.0 - torques[k]) * limit[k]
        causes.append(
            (-torques[k], f"joint {names[k]!r} takes {holds:.4g} N m to hold still, allowed are {limit[k]:.4g}")
        )
    for k in np.flatnonzero(positions <= 0.0):
        causes.append((-positions[k], f"joint {names[k]!r} is outside its range"))
    if problem.clearances is not None:
        least, pair_names = problem.clearances.surroundings.clearance, problem.clearances.names
        causes += [
            (
                -clear[k] / FELT_CLEARANCE,
                f"{pair_names[k]}: {100 * (clear[k] + least):.1f} cm, asked for {100 * least:.1f} cm",
            )
            for k in np.flatnonzero(clear <= 0.0)
        ]
    causes.sort(key=lambda x: -x[0])
    return "; ".join(text for _, text in causes[:4]) + ("; ..." if len(causes) > 4 else "")


def _repaired(problem: Problem, q: np.ndarray) -> np.ndarray:
    """The posture, moved to reduce its violations: L-BFGS on their squares with finite differences."""
    from scipy.optimize import minimize

    limits, step = problem.limits, 1e-6
    width = limits.upper - limits.lower

    def missing(x: np.ndarray) -> np.ndarray:
        positions, torques, clear = slacks(problem, x)
        parts = (0.02 - positions, 0.02 - torques, 0.02 - clear / FELT_CLEARANCE)
        return np.sum([(np.maximum(p, 0.0) ** 2).sum(axis=1) for p in parts], axis=0)

    def graded(x: np.ndarray) -> tuple[float, np.ndarray]:
        around = missing(np.concatenate((x[None], x + step * np.eye(len(x)), x - step * np.eye(len(x)))))
        return float(around[0]), (around[1 : len(x) + 1] - around[len(x) + 1 :]) / (2.0 * step)

    bounds = list(zip(limits.lower + 1e-3 * width, limits.upper - 1e-3 * width))
    return minimize(graded, q, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 200}).x


def random_motion(problem: Problem, centre: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """z of a random motion about a posture, START_SIZE of the largest size within all limits at the samples."""
    limits = problem.limits
    move = rng.normal(size=(problem.robot.nv, problem.B.shape[2]))
    move -= np.outer((problem.B[0] @ move.T).mean(axis=0), problem.still)
    q, v, a, j = problem.B @ move.T
    scale = np.minimum(limits.velocity / np.abs(v).max(0), limits.acceleration / np.abs(a).max(0))
    scale = np.minimum(scale, limits.jerk / np.abs(j).max(0))
    scale = np.minimum(scale, (limits.upper - centre) / np.maximum(q.max(0), 1e-300))
    scale = START_SIZE * np.minimum(scale, (centre - limits.lower) / np.maximum(-q.min(0), 1e-300))
    return shrunk_until(problem, problem.constant(centre), (scale[:, None] * move).ravel())


def shrunk_until(problem: Problem, still: np.ndarray, motion: np.ndarray) -> np.ndarray:
    """still + s motion, s = 1, SHRINK, SHRINK^2, ...: the first that keeps torques and clearances at the samples with a
    small margin. Raises ExcitationError, naming the violated limits, if s falls below SMALLEST."""
    limits, size = problem.limits, 1.0
    while True:
        q, v, a = problem.states(still + size * motion)
        torques = np.abs(problem.model.torque(problem.pi, q, v, a)).max(axis=0) / limits.effort
        clear = problem._clear(q)[0].min(axis=0)
        if torques.max() < START_SIZE and clear.min(initial=1.0) > 0.0:
            return still + size * motion
        if size < MIN_FACTOR:
            break
        size *= FACTOR_STEP
    k = int(np.argmax(torques))
    if torques[k] >= START_SIZE:
        obstacle = f"joint {problem.robot.dof_names[k]!r} takes {100 * torques[k]:.0f} % of the torque allowed"
    else:
        assert problem.clearances is not None
        k = int(np.argmin(clear))
        obstacle = f"{problem.clearances.names[k]} is {-100 * clear[k]:.1f} cm nearer than asked for"
    raise ExcitationError(
        f"no motion within the limits: even at {100 * MIN_FACTOR:.0f} % of what joints' ranges and speeds allow,"
        f" {obstacle}"
    )


# --- the search ------------------------------------------------------------------------------------------------------


BARRIERS = (1e-1, 1e-2, 1e-3)
MAX_SHORTENINGS = 30  # largest number of times that a step is shortened
CONTRACTION, MAX_CONTRACTIONS = 0.985, 400  # of a motion that violates limits between samples
MAX_TRIES = 20  # postures about which a random motion is tried
MIN_PARALLEL_STARTS = 2  # smallest number of starts for several processes
MOTIONS_PER_PROCESS = 8  # random motions for each process


@dataclass(frozen=True)
class MotionSearch:
    """How much work the search for a motion takes.

    Parameters
    ----------
    compare : int, default 20
        Random motions of maximum size about postures with large slack (`Excitation.random_conditions`).
    starts : int, default 1
        The best of them, which are optimised, in several processes of this machine if possible.
    samples : int, default 120
        Times at which motions are evaluated, at least 20.
    iterations : int, default 120
        Of each optimisation.
    seed : int, default 0
        Of the random motions.

    Examples
    --------
    >>> from geomctrl.identification.excitation import MotionSearch
    >>> MotionSearch(starts=4).compare
    20
    """

    compare: int = 20
    starts: int = 1
    samples: int = 120
    iterations: int = 120
    seed: int = 0

    def __post_init__(self):
        for name, least in (("compare", 1), ("starts", 1), ("samples", 20), ("iterations", 1), ("seed", 0)):
            count(name, getattr(self, name), least)


def optimize(
    model: RegressorModel | Robot,
    duration: float = 10.0,
    *,
    terms: int = 5,
    objective: str = "condition",
    q0: ArrayLike | None = None,
    limits: MotionLimits = MotionLimits(),  # noqa: B008 - frozen
    surroundings: Surroundings | None = Surroundings(),  # noqa: B008 - frozen
    noise: ArrayLike | None = None,
    rate: float = 100.0,
    search: MotionSearch = MotionSearch(),
) -> Excitation:
    """Return a trajectory that excites the model's base parameters within limits and without collisions.

    It has `terms` harmonics of 1 / duration, and begins and ends at rest in the same posture, with zero acceleration,
    so that it can be repeated.

    Parameters
    ----------
    model : RegressorModel or Robot
        A robot stands for its model without friction.
    duration : float, default 10
        [s].
    terms : int, default 5
        Harmonics.
    objective : {"condition", "log_det"}
        See `problem`.
    q0 : array_like (nv,), optional
        The posture at the centre; default random postures with large slack.
    limits : MotionLimits
        Default: the robot's.
    surroundings : Surroundings, optional
        Floor, boxes, the robot itself; None: no collisions are checked.
    noise : float or array_like (nv,), optional
        Standard deviation of torque samples; default 1 % of the effort limits (1 N m without them).
    rate : float, default 100
        Independent samples per second [Hz], for the criteria and for `Excitation.deviations`.
    search : MotionSearch
        How many motions are tried, and how long.

    Returns
    -------
    Excitation
        It keeps all limits, see `excite`.

    Raises
    ------
    ArgumentError
        For missing limits.
    ExcitationError
        If there is no feasible posture; the message names the obstacles and the violations.
    """
    instance("model", model, (RegressorModel, Robot), "a RegressorModel or a Robot")
    instance("limits", limits, MotionLimits, "MotionLimits")
    instance("search", search, MotionSearch, "a MotionSearch")
    if not isinstance(model, RegressorModel):
        model = RegressorModel(model, viscous=False, coulomb=False, offset=False)
    joint_limits = limits.of(model.robot)
    if surroundings is not None:
        instance("surroundings", surroundings, Surroundings, "Surroundings or None")
    clear = (
        None
        if surroundings is None
        else clearances_of(model.robot, surroundings, joint_limits.lower, joint_limits.upper)
    )
    problem = Problem(
        model, joint_limits, duration, terms, objective, search.samples,
        clearances=clear, noise=noise, rate=rate,
    )  # fmt: skip
    centres = postures(problem, q0)
    with _workers(search.starts, search.compare) as run:
        seeds = [(search.seed, k) for k in range(max(search.compare, search.starts))]
        parts = list(run(partial(_explored, problem, centres), _shares(seeds)))
        optimum = [x for part, _ in parts for x in part]
        if not optimum:
            raise next(why for _, why in parts if why is not None)
        optimum.sort(key=lambda x: x[0])
        best = [(z, centre) for _, z, centre, _, _ in optimum[: search.starts]]
        results = list(run(partial(_improved, problem, search.iterations), best))
    trajectory, _, costs = min(results, key=lambda x: x[1])
    random = np.array([(condition, log_det) for *_, condition, log_det in optimum])
    return compared(problem, trajectory, problem.trajectory(optimum[0][1]), random, costs)


def _shares(seeds: list) -> list[list]:
    """Shares of work, several for each worker, so that none waits long for another."""
    n = max(1, -(-len(seeds) // (4 * cores())))
    return [seeds[i : i + n] for i in range(0, len(seeds), n)]


@contextmanager
def _workers(starts: int, compare: int) -> Iterator[Any]:
    """A `map` in this process, or in new ones."""
    if starts < MIN_PARALLEL_STARTS or cores() < 2:
        yield map
    else:
        with processes(min(cores(), max(starts, compare // MOTIONS_PER_PROCESS))) as pool:
            yield pool.map


Random = tuple[float, np.ndarray, np.ndarray, float, float]


def _explored(
    problem: Problem, centres: np.ndarray, seeds: list[tuple[int, int]]
) -> tuple[list[Random], ExcitationError | None]:
    """(criterion, z, centre, condition, mean log det) of a random motion for each seed, and the reason why the last one
    fits about none of the postures tried."""
    out: list[Random] = []
    why = None
    for key in seeds:
        rng = np.random.default_rng(key)
        for _ in range(MAX_TRIES):
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
    """(trajectory, its criterion, criterion at every iteration), optimised from a random motion and its centre."""
    z, centre = start
    costs: list[float] = []
    for barrier in BARRIERS:
        z, more = _descend(problem, z, barrier, max(1, iterations // len(BARRIERS)))
        costs += more
    z = _contracted(problem, z, centre)
    costs.append(problem.value(z))
    return problem.trajectory(z), costs[-1], np.array(costs)


def _contracted(problem: Problem, z: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """The motion, contracted towards a feasible posture until it keeps all limits between the samples too."""
    still = problem.constant(centre)
    for _ in range(MAX_CONTRACTIONS):
        trajectory = problem.trajectory(z)
        if all(x.min() >= 0.0 for x in margins(problem.model, problem.limits, trajectory).values()) and (
            problem.clearances is None or keeps_clearance(problem.clearances, problem.limits, trajectory)
        ):
            return z
        z = still + CONTRACTION * (z - still)
    raise ExcitationError("the motion leaves its limits between the samples: raise `samples`")


def _descend(problem: Problem, z: np.ndarray, barrier: float, iterations: int) -> tuple[np.ndarray, list[float]]:
    """(z, criterion before each step) after quasi-Newton steps (BFGS) that stay within the limits."""
    f, g, criterion = problem.cost(z, barrier)
    if not np.isfinite(f):  # on a limit, up to rounding
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
        for _ in range(MAX_SHORTENINGS):
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
