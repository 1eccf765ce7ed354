"""Capsules on bodies, and distances of line segments to planes, points, segments and boxes, in closed form.

Capsules approximate the space that a robot occupies. A capsule is the set of points nearer to a segment than a radius,
so distances of capsules are distances of segments minus radii. For gradients, each function also returns the nearest
points, as parameters from 0 (start) to 1 (end) of the segments, or the direction. Arrays may have leading axes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import number, shown, vector, without_overflow_warnings
from geomctrl.errors import ArgumentError

from .mechanism import WORLD, Mechanism, require_robot

TINY = 1e-300


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("...i,...i->...", a, b)


def at(p0: np.ndarray, p1: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Return the point (..., 3) at parameter s (...) of the segment from p0 to p1."""
    return p0 + s[..., None] * (p1 - p0)


def point_on_segment(x: np.ndarray, p0: np.ndarray, p1: np.ndarray) -> np.ndarray:
    """Return the parameter (...) of the segment's point nearest to x; 0 for a segment of length 0."""
    d = p1 - p0
    return np.clip(dot(x - p0, d) / np.maximum(dot(d, d), TINY), 0.0, 1.0)


def segments(
    p0: np.ndarray, p1: np.ndarray, q0: np.ndarray, q1: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (distance (...), parameter on p, parameter on q) of two segments (..., 3).

    The nearest points are either inside both segments, on the common normal, or one of them is an end. The function
    takes the least of these five distances, so it stays accurate for nearly parallel segments.
    """
    d, e, r = p1 - p0, q1 - q0, p0 - q0
    a, b, c, f, g = dot(d, d), dot(d, e), dot(e, e), dot(d, r), dot(e, r)
    det = a * c - b * b
    s = np.clip((b * g - c * f) / np.where(det > 1e-12 * a * c, det, np.inf), 0.0, 1.0)
    t = np.clip((b * s + g) / np.maximum(c, TINY), 0.0, 1.0)
    zero, one = np.zeros_like(s), np.ones_like(s)
    S = np.stack((s, zero, one, point_on_segment(q0, p0, p1), point_on_segment(q1, p0, p1)))
    T = np.stack((t, point_on_segment(p0, q0, q1), point_on_segment(p1, q0, q1), zero, one))
    gap = at(p0, p1, S) - at(q0, q1, T)
    squares = dot(gap, gap)
    best = np.argmin(squares, axis=0)[None]
    s, t, square = (np.take_along_axis(x, best, 0)[0] for x in (S, T, squares))
    return np.sqrt(square), s, t


def segment_to_box(
    p0: np.ndarray, p1: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (signed distance (...), parameter on the segment, direction (..., 3) out of the box) of segments to boxes.

    Boxes are parallel to the axes, between the corners `lower` and `upper`. Half the slope of the squared distance on
    the segment is the sum over axes of direction times excess over the box. It is piecewise linear and not decreasing,
    so its root lies between two of its at most eight kinks and is found by interpolation. For a segment that cuts the
    box the distance is minus the penetration depth: the shortest translation that separates them, along an axis or
    along the cross product of an axis with the segment.
    """
    p0, p1, lower, upper = np.broadcast_arrays(p0, p1, lower, upper)
    d = p1 - p0
    divisor = np.where(d == 0.0, 1.0, d)
    kinks = np.concatenate(((lower - p0) / divisor, (upper - p0) / divisor), axis=-1)
    kinks = np.where(np.concatenate((d, d), axis=-1) == 0.0, 0.0, np.clip(kinks, 0.0, 1.0))
    ends = np.zeros((*d.shape[:-1], 1))
    kinks = np.sort(np.concatenate((ends, kinks, ends + 1.0), axis=-1), axis=-1)
    x = p0[..., None, :] + kinks[..., None] * d[..., None, :]
    excess = x - np.clip(x, lower[..., None, :], upper[..., None, :])
    slope = np.einsum("...ki,...i->...k", excess, d)  # (..., 8), not decreasing
    k = np.clip((slope < 0.0).sum(axis=-1), 1, 7)[..., None]
    (s0, s1), (g0, g1) = ([np.take_along_axis(y, k + i, -1)[..., 0] for i in (-1, 0)] for y in (kinks, slope))
    share = np.where(g1 > g0, -g0 / np.where(g1 > g0, g1 - g0, 1.0), 0.0)
    s = s0 + np.clip(share, 0.0, 1.0) * (s1 - s0)
    x = at(p0, p1, s)
    gap = x - np.clip(x, lower, upper)
    distance = np.sqrt(dot(gap, gap))
    direction = gap / np.maximum(distance, TINY)[..., None]
    inside = np.asarray(distance <= 1e-12)
    if inside.any():
        distance, s, direction = np.array(distance), np.array(s), np.array(direction)
        depth, outward, end = _exit_of_box(p0[inside], p1[inside], lower[inside], upper[inside])
        distance[inside], direction[inside], s[inside] = -depth, outward, end
    return distance, s, direction


def _exit_of_box(p0, p1, lower, upper):
    """Return (depth (n,), direction (n, 3), parameter of the end that leaves last) of segments that cut boxes."""
    d = p1 - p0
    across = np.cross(d[:, None], np.eye(3))  # (n, 3, 3)
    length = np.linalg.norm(across, axis=-1, keepdims=True)
    across = np.where(length > 1e-9, across / np.maximum(length, TINY), np.eye(3))
    axes = np.concatenate((np.broadcast_to(np.eye(3), across.shape), across), axis=1)
    axes = np.concatenate((axes, -axes), axis=1)  # (n, 12, 3)
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    reach = np.einsum("nai,ni->na", np.abs(axes), half)
    ends = np.stack([np.einsum("nai,ni->na", axes, p - middle) for p in (p0, p1)])
    depth = reach - ends.min(axis=0)
    best = np.argmin(depth, axis=1)
    rows = np.arange(len(d))
    return depth[rows, best], axes[rows, best], (ends[1] < ends[0])[rows, best].astype(float)


THICKNESS = 0.05  # of the chain's length
SAME_POINT_DISTANCE = 1e-6  # m; nearer points count as one


class Capsule(NamedTuple):
    """All points within `radius` [m] of the segment from `start` to `end` [m], in the frame of body number `body`
    (-1: the world)."""

    body: int
    start: np.ndarray
    end: np.ndarray
    radius: float


@without_overflow_warnings
def default_radius(robot: Mechanism) -> float:
    """Return 5 % of the length of the longest chain of joint origins from the base [m].

    That is 6 cm for a Panda, whose links franka_description covers with capsules of 4 to 6 cm, and 10 cm for a UR10,
    whose joint housings measure 9 to 10 cm. Thicker robots, tools and cables need a larger radius.
    """
    steps = np.linalg.norm(robot.placements[:, :3, 3], axis=1)
    lengths: list[float] = []
    for parent, step in zip(robot.parents, steps):
        lengths.append(float(step) + (lengths[parent] if parent >= 0 else 0.0))
    return THICKNESS * max(lengths) if max(lengths) > 0.0 else THICKNESS


def link_capsules(robot: Mechanism, radius: float | None = None) -> tuple[Capsule, ...]:
    """Return capsules for every link, from its joint (`joint_point`) to the joints of its children.

    A link without children ends at the frames fixed to it (flange, tool), at its origin if its joint is elsewhere, or
    at twice the distance of its centre of mass; if all of these coincide, it is a ball. Capsules from the world's
    origin to the first joints represent the base. radius [m]: default `default_radius`. Raises ArgumentError.
    """
    require_robot("robot", robot)
    if radius is not None:
        radius = number("radius", radius, "a length > 0", lambda x: x > 0.0)
    thick = default_radius(robot) if radius is None else radius
    capsules = []
    for body in range(-1, robot.nbodies):
        start = joint_point(robot, body) if body >= 0 else np.zeros(3)
        ends = [joint_in_parent(robot, i) for i, parent in enumerate(robot.parents) if parent == body]
        if not ends:
            ends = [f.placement[:3, 3] for f in robot.frames if f.body == body and f.name != WORLD]
            m, h = robot.parameters[body, 0], robot.parameters[body, 1:4]
            ends = _away(start, [*ends, np.zeros(3)]) or [2.0 * h / m if m > 1e-9 else np.zeros(3)]
        long = _away(start, ends) or ([start] if body >= 0 else [])
        capsules += [Capsule(body, start, np.array(p, float), thick) for p in long]
    return tuple(capsules)


def joint_point(robot: Mechanism, body: int) -> np.ndarray:
    """Return the point of a body's joint axis that is nearest to the body's origin, in its frame [m].

    It differs from the origin for frames that are not on their joint's axis, such as standard Denavit-Hartenberg ones.
    For joints without an axis of rotation it is the origin.
    """
    S = robot.joints[body].S
    if S.shape[1] != 1 or not S[:3].any():
        return np.zeros(3)
    return np.cross(S[:3, 0], S[3:, 0]) / (S[:3, 0] @ S[:3, 0])


def joint_in_parent(robot: Mechanism, body: int) -> np.ndarray:
    """Return `joint_point` in the parent's frame, in which the point is fixed."""
    T = robot.placements[body]
    return T[:3, :3] @ joint_point(robot, body) + T[:3, 3]


def capsule(robot: Mechanism, frame: str, start: ArrayLike, end: ArrayLike, radius: float) -> Capsule:
    """Return the capsule with ends [m] given in a frame: a body, a merged link or "world". Raises ArgumentError."""
    require_robot("robot", robot)
    where = robot.frame(frame)
    R, p = where.placement[:3, :3], where.placement[:3, 3]
    start, end = (p + R @ vector(name, x, 3) for name, x in (("start", start), ("end", end)))
    return Capsule(where.body, start, end, number("radius", radius, "a length > 0", lambda x: x > 0.0))


def check_capsule(name: str, x: object, robot: Mechanism) -> Capsule:
    """Return x as a Capsule on a body of the robot. Raises ArgumentError, naming the argument `name`."""
    if not isinstance(x, Capsule) or not isinstance(x.body, (int, np.integer)) or not -1 <= x.body < robot.nbodies:
        raise ArgumentError(f"{name}: expected Capsules on bodies -1 to {robot.nbodies - 1}, got {shown(x)}")
    start, end = vector(f"{name}: start", x.start, 3), vector(f"{name}: end", x.end, 3)
    return Capsule(int(x.body), start, end, number(f"{name}: radius", x.radius, "a length > 0", lambda r: r > 0.0))


def _away(start: np.ndarray, points: list[np.ndarray]) -> list[np.ndarray]:
    """Return the points that differ from the start, without repetitions."""
    out: list[np.ndarray] = []
    for p in points:
        if np.linalg.norm(p - start) > SAME_POINT_DISTANCE and all(
            np.linalg.norm(p - x) > SAME_POINT_DISTANCE for x in out
        ):
            out.append(p)
    return out
