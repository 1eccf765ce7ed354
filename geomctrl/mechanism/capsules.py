"""Capsules on bodies: what a robot takes up of space, coarsely, for checks of distances."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import number, vector
from geomctrl.errors import ArgumentError

from .mechanism import WORLD, Mechanism, require_robot

THICKNESS = 0.05  # of the chain's length
SAME = 1e-6  # m: ends nearer than this are one


class Capsule(NamedTuple):
    """All points within `radius` [m] of the segment from `start` to `end` [m], in the frame of body number `body`
    (-1: the world)."""

    body: int
    start: np.ndarray
    end: np.ndarray
    radius: float


def default_radius(robot: Mechanism) -> float:
    """5 % of the longest way from the base along joints' origins [m].

    That is 6 cm for a Panda, whose links franka_description covers with capsules of 4 to 6 cm, and 10 cm for a UR10,
    whose joint housings measure 9 to 10 cm. Thicker robots, tools and cables need their own.
    """
    steps = np.linalg.norm(robot.placements[:, :3, 3], axis=1)
    way: list[float] = []
    for parent, step in zip(robot.parents, steps):
        way.append(float(step) + (way[parent] if parent >= 0 else 0.0))
    return THICKNESS * max(way) if max(way) > 0.0 else THICKNESS


def link_capsules(robot: Mechanism, radius: float | None = None) -> tuple[Capsule, ...]:
    """A capsule for every link, from its joint (`joint_point`) to the joints that it carries.

    A link that carries none ends at the frames fixed to it (flange, tool), at its origin where its joint is not there,
    or twice as far as its centre of mass; where all of these coincide it is a ball. The base, from the world's origin
    to the first joints, is one that does not move. radius [m]: default `default_radius`. Raises ArgumentError.
    """
    require_robot("robot", robot)
    if radius is not None:
        radius = number("radius", radius, "a length > 0", lambda x: x > 0.0)
    thick = default_radius(robot) if radius is None else radius
    made = []
    for body in range(-1, robot.nbodies):
        start = joint_point(robot, body) if body >= 0 else np.zeros(3)
        ends = [joint_in_parent(robot, i) for i, parent in enumerate(robot.parents) if parent == body]
        if not ends:
            ends = [f.placement[:3, 3] for f in robot.frames if f.body == body and f.name != WORLD]
            ends = _away(start, [*ends, np.zeros(3)]) or [_beyond_its_centre(robot.parameters[body])]
        long = _away(start, ends) or ([start] if body >= 0 else [])
        made += [Capsule(body, start, np.array(p, float), thick) for p in long]
    return tuple(made)


def joint_point(robot: Mechanism, body: int) -> np.ndarray:
    """The point of a body's joint axis that is nearest to the body's origin, in its frame [m].

    It is the origin, but for frames that are not on their joint's axis, as standard Denavit-Hartenberg ones; and where
    there is no axis of a rotation.
    """
    S = robot.joints[body].S
    if S.shape[1] != 1 or not S[:3].any():
        return np.zeros(3)
    return np.cross(S[:3, 0], S[3:, 0]) / (S[:3, 0] @ S[:3, 0])


def joint_in_parent(robot: Mechanism, body: int) -> np.ndarray:
    """`joint_point` in the parent's frame, where the joint does not move it."""
    T = robot.placements[body]
    return T[:3, :3] @ joint_point(robot, body) + T[:3, 3]


def capsule(robot: Mechanism, frame: str, start: ArrayLike, end: ArrayLike, radius: float) -> Capsule:
    """A capsule [m] given in a frame of the robot: a body, a merged link, "world". Raises ArgumentError."""
    require_robot("robot", robot)
    where = robot.frame(frame)
    R, p = where.placement[:3, :3], where.placement[:3, 3]
    start, end = (p + R @ vector(name, x, 3) for name, x in (("start", start), ("end", end)))
    return Capsule(where.body, start, end, number("radius", radius, "a length > 0", lambda x: x > 0.0))


def check_capsule(name: str, x: object, robot: Mechanism) -> Capsule:
    """x as a Capsule on a body of the robot. Raises ArgumentError, naming the argument `name`."""
    if not isinstance(x, Capsule) or not isinstance(x.body, (int, np.integer)) or not -1 <= x.body < robot.nbodies:
        raise ArgumentError(f"{name}: expected Capsules on bodies -1 to {robot.nbodies - 1}, got {x!r:.80}")
    start, end = vector(f"{name}: start", x.start, 3), vector(f"{name}: end", x.end, 3)
    return Capsule(int(x.body), start, end, number(f"{name}: radius", x.radius, "a length > 0", lambda r: r > 0.0))


def _away(start: np.ndarray, points: list[np.ndarray]) -> list[np.ndarray]:
    """The points that are not at the start, each once."""
    out: list[np.ndarray] = []
    for p in points:
        if np.linalg.norm(p - start) > SAME and all(np.linalg.norm(p - x) > SAME for x in out):
            out.append(p)
    return out


def _beyond_its_centre(parameters: np.ndarray) -> np.ndarray:
    m, h = parameters[0], parameters[1:4]
    return 2.0 * h / m if m > 1e-9 else np.zeros(3)
