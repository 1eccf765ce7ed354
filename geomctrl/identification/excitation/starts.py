"""Where a search begins: postures that can be held, and random motions about them, as large as they may be."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import ExcitationError

from .problem import FELT, Problem

POSTURES = 4000  # random ones that are looked at
KEPT = 0.25  # of those that can be held, the roomiest
REPAIRED = 8  # of the nearest misses where none can
SHRINK, SMALLEST = 0.85, 0.02  # of what the joints' own limits allow
LARGE = 0.95  # of the greatest size within the limits: a start is not on its limits, where barriers are infinite


def rooms(problem: Problem, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(N, .) each, negative where a posture can not be held: room to the limits, as part of half the range; of torques,
    as part of the effort limits; of clearances [m]."""
    limits = problem.limits
    half = 0.5 * (limits.upper - limits.lower)
    still = np.zeros_like(q)
    tau = problem.model.torque(problem.pi, q, still, still)
    positions = np.minimum(q - limits.lower, limits.upper - q) / half
    return positions, 1.0 - np.abs(tau) / limits.effort, problem._clear(q)[0]


def postures(problem: Problem, q0: ArrayLike | None) -> np.ndarray:
    """(K, nv) postures that can be held clear of everything, those with most room first; only q0 where it is given.

    Raises ArgumentError for a q0 outside the limits, ExcitationError where there is none, with what stands in the way.
    """
    limits, nv = problem.limits, problem.robot.nv
    if q0 is not None:
        q0 = checked("q0", q0, ())
        if q0.shape != (nv,) or (q0 <= limits.lower).any() or (q0 >= limits.upper).any():
            raise ArgumentError(f"q0: expected a configuration strictly within the limits, got {q0}")
        if _room(problem, q0[None])[0] <= 0.0:
            raise ExcitationError(f"no motion within the limits about q0: {shortfall(problem, q0)}")
        return q0[None]
    rng = np.random.default_rng(0)
    width = limits.upper - limits.lower
    tried = rng.uniform(limits.lower + 0.05 * width, limits.upper - 0.05 * width, size=(POSTURES, nv))
    tried = np.concatenate((0.5 * (limits.lower + limits.upper)[None], tried))
    room = _room(problem, tried)
    if (room > 0.0).sum() < 10:
        nearest = tried[np.argsort(-room)[:REPAIRED]]
        tried = np.concatenate((tried, [_repaired(problem, q) for q in nearest]))
        room = _room(problem, tried)
    order = np.argsort(-room, kind="stable")
    good = order[room[order] > 0.0]
    if not len(good):
        raise ExcitationError(
            f"no motion within the limits: of {len(tried)} postures none can be held; the nearest, q ="
            f" {np.round(tried[order[0]], 3).tolist()}: {shortfall(problem, tried[order[0]])}"
        )
    return tried[good[: max(1, int(KEPT * len(good)))]]


def _room(problem: Problem, q: np.ndarray) -> np.ndarray:
    """(N,) the least room of any kind, where clearances beyond what a barrier feels count alike."""
    positions, torques, clear = rooms(problem, q)
    clear = np.minimum(clear / FELT, 1.0).min(axis=1, initial=1.0)
    return np.minimum(np.minimum(positions.min(axis=1), torques.min(axis=1)), clear)


def shortfall(problem: Problem, q: np.ndarray) -> str:
    """What a posture (nv,) misses, in words, the worst first."""
    positions, torques, clear = (x[0] for x in rooms(problem, q[None]))
    names, found = problem.robot.dof_names, []
    limit = problem.limits.effort
    for k in np.flatnonzero(torques <= 0.0):
        holds = (1.0 - torques[k]) * limit[k]
        found.append(
            (-torques[k], f"joint {names[k]!r} takes {holds:.4g} N m to hold still, allowed are {limit[k]:.4g}")
        )
    for k in np.flatnonzero(positions <= 0.0):
        found.append((-positions[k], f"joint {names[k]!r} is outside its range"))
    if problem.clearances is not None:
        least, said = problem.clearances.surroundings.clearance, problem.clearances.names
        found += [
            (-clear[k] / FELT, f"{said[k]}: {100 * (clear[k] + least):.1f} cm, asked for {100 * least:.1f} cm")
            for k in np.flatnonzero(clear <= 0.0)
        ]
    found.sort(key=lambda x: -x[0])
    return "; ".join(text for _, text in found[:4]) + ("; ..." if len(found) > 4 else "")


def _repaired(problem: Problem, q: np.ndarray) -> np.ndarray:
    """The posture, moved so that it misses less: L-BFGS on squares of what is missing, differences taken at once."""
    from scipy.optimize import minimize

    limits, step = problem.limits, 1e-6
    width = limits.upper - limits.lower

    def missing(x: np.ndarray) -> np.ndarray:
        positions, torques, clear = rooms(problem, x)
        parts = (0.02 - positions, 0.02 - torques, 0.02 - clear / FELT)
        return np.sum([(np.maximum(p, 0.0) ** 2).sum(axis=1) for p in parts], axis=0)

    def graded(x: np.ndarray) -> tuple[float, np.ndarray]:
        around = missing(np.concatenate((x[None], x + step * np.eye(len(x)), x - step * np.eye(len(x)))))
        return float(around[0]), (around[1 : len(x) + 1] - around[len(x) + 1 :]) / (2.0 * step)

    bounds = list(zip(limits.lower + 1e-3 * width, limits.upper - 1e-3 * width))
    return minimize(graded, q, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 200}).x


def random_motion(problem: Problem, centre: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """z of a random motion about a posture, LARGE of the greatest size within all limits at the samples.

    Every joint is as large as its own limits allow, then all shrink together until torques and clearances hold too.
    Raises ExcitationError where they never do.
    """
    limits = problem.limits
    move = rng.normal(size=(problem.robot.nv, problem.B.shape[2]))
    move -= np.outer((problem.B[0] @ move.T).mean(axis=0), problem.still)
    q, v, a, j = problem.B @ move.T
    scale = np.minimum(limits.velocity / np.abs(v).max(0), limits.acceleration / np.abs(a).max(0))
    scale = np.minimum(scale, limits.jerk / np.abs(j).max(0))
    scale = np.minimum(scale, (limits.upper - centre) / np.maximum(q.max(0), 1e-300))
    scale = LARGE * np.minimum(scale, (centre - limits.lower) / np.maximum(-q.min(0), 1e-300))
    return shrunk_until(problem, problem.constant(centre), (scale[:, None] * move).ravel())


def shrunk_until(problem: Problem, still: np.ndarray, motion: np.ndarray) -> np.ndarray:
    """still + s motion, s = 1, SHRINK, SHRINK^2, ...: the first that keeps torques and clearances at the samples, with
    a little to spare. Raises ExcitationError, with what is in the way, where s is below SMALLEST."""
    limits, size = problem.limits, 1.0
    while True:
        q, v, a = problem.states(still + size * motion)
        torques = np.abs(problem.model.torque(problem.pi, q, v, a)).max(axis=0) / limits.effort
        clear = problem._clear(q)[0].min(axis=0)
        if torques.max() < LARGE and clear.min(initial=1.0) > 0.0:
            return still + size * motion
        if size < SMALLEST:
            break
        size *= SHRINK
    k = int(np.argmax(torques))
    if torques[k] >= LARGE:
        what = f"joint {problem.robot.dof_names[k]!r} takes {100 * torques[k]:.0f} % of the torque allowed"
    else:
        assert problem.clearances is not None
        k = int(np.argmin(clear))
        what = f"{problem.clearances.names[k]} is {-100 * clear[k]:.1f} cm nearer than asked for"
    raise ExcitationError(
        f"no motion within the limits: even at {100 * SMALLEST:.0f} % of what joints' ranges and speeds allow, {what}"
    )
