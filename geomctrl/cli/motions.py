"""Desired motions for any robot: random, within joint limits and half the velocity limits, starting at rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from geomctrl.control import references
from geomctrl.control.contracts import Reference
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.mechanism.configuration import single_coordinates
from geomctrl.robot import Robot

FASTEST_JOINT = 4.0  # rad/s or m/s, used if a model has no velocity limit or a higher one


def middle(robot: Robot) -> np.ndarray:
    """The configuration (nq,) in the middle of the joint ranges; near zero without a range, identity poses."""
    q = robot.neutral()
    limits = robot.limits
    for k, i in zip(*single_coordinates(robot)):
        low, high = limits.lower[i], limits.upper[i]
        q[k] = 0.5 * (low + high) if np.isfinite([low, high]).all() else np.clip(0.0, low, high)
    return q


def amplitudes(robot: Robot) -> np.ndarray:
    """Amplitudes (nv,) of motion about the middle: half of a joint's range, at most 0.6 rad or 0.2 m."""
    x = np.where(robot.is_rotational, 0.6, 0.2)
    half = 0.5 * (robot.limits.upper - robot.limits.lower)
    return np.where(np.isfinite(half), np.minimum(x, 0.5 * half), x)


@dataclass(frozen=True, eq=False)
class Draw:
    """The random numbers from which all kinds of motions are generated."""

    robot: Robot
    seconds: float
    q0: np.ndarray  # (nq,)
    reach: np.ndarray  # (nv,)
    waypoints: np.ndarray  # (6, nv), from q0
    side: np.ndarray  # (nv,): +-reach
    frequencies: np.ndarray  # (2, nv) [Hz]
    shares: np.ndarray  # (2, nv), adding up to 1
    phases: np.ndarray  # (2, nv)

    @classmethod
    def make(cls, robot: Robot, seconds: float, seed: int) -> Draw:
        rng, reach, n = np.random.default_rng(seed), amplitudes(robot), robot.nv
        waypoints = rng.uniform(-1.0, 1.0, (6, n)) * reach
        waypoints[0] = 0.0
        side = np.where(rng.random(n) < 0.5, -1.0, 1.0) * reach
        frequencies = np.stack((rng.uniform(0.1, 0.25, n), rng.uniform(0.3, 0.5, n)))
        share = rng.uniform(0.5, 0.8, n)
        phases = np.stack((np.zeros(n), rng.uniform(0.0, 0.5 * np.pi, n)))
        shares = np.stack((share, 1.0 - share))
        return cls(robot, seconds, middle(robot), reach, waypoints, side, frequencies, shares, phases)


def sinusoids(draw: Draw, scale: float) -> Reference:
    """Two harmonics of 0.1 to 0.5 Hz for each joint."""
    amplitude = scale * draw.reach * draw.shares
    return references.Sinusoids(draw.robot, draw.q0, amplitude, draw.frequencies, draw.phases, 1.0)


def quintic(draw: Draw, scale: float) -> Reference:
    """Point-to-point motion in 0.6 of the time."""
    start, end = (draw.robot.integrate(draw.q0, sign * scale * draw.side) for sign in (-1.0, 1.0))
    return references.Quintic(draw.robot, start, end, 0.6 * draw.seconds, 0.1 * draw.seconds)


def spline(draw: Draw, scale: float) -> Reference:
    """A spline through six random waypoints."""
    points = np.array([draw.robot.integrate(draw.q0, scale * x) for x in draw.waypoints])
    return references.Spline(draw.robot, np.linspace(0.0, draw.seconds, len(points)).tolist(), points)


REFERENCES: dict[str, Callable[[Draw, float], Reference]] = {
    "sinusoids": sinusoids,
    "quintic": quintic,
    "spline": spline,
}


def make_reference(name: str, robot: Robot, seconds: float, seed: int = 0) -> Reference:
    """Return the motion with this name in `REFERENCES` for `seconds`, as large as the limits allow.

    Raises NameNotFoundError for an unknown name, ArgumentError if no motion of this kind is within the limits.
    """
    if name not in REFERENCES:
        raise NameNotFoundError(f"reference: expected one of {', '.join(REFERENCES)}, got {name!r}")
    draw, scale = Draw.make(robot, seconds, seed), 1.0
    for _ in range(20):
        motion = REFERENCES[name](draw, scale)
        excess = _excess(robot, motion, seconds)
        if excess <= 1.0:
            return motion
        scale /= min(1.05 * excess, 2.0)
    raise ArgumentError(f"reference: no {name!r} was found within the limits of robot {robot.name!r} in {seconds:g} s")


def _excess(robot: Robot, motion: Reference, seconds: float) -> float:
    """Ratio by which a motion exceeds half the velocity limits, or 2 if it exceeds joint limits; at most 1 is
    allowed.
    """
    samples = [motion(t) for t in np.linspace(0.0, seconds, 400)]
    speed = np.abs([d.v for d in samples]).max(axis=0)
    worst = float((2.0 * speed / np.clip(robot.limits.velocity, 1e-9, FASTEST_JOINT)).max())
    places, dofs = single_coordinates(robot)
    q = np.array([d.q[places] for d in samples])
    beyond = (q < robot.limits.lower[dofs]).any() or (q > robot.limits.upper[dofs]).any()
    return max(worst, 2.0) if beyond else worst
