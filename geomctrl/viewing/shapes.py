"""Shapes of bodies generated from a robot's tree: capsules from joint to joint, ellipsoids otherwise."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from geomctrl.mechanism.capsules import joint_in_parent, joint_point
from geomctrl.mechanism.inertia import SYMMETRIC
from geomctrl.mechanism.mechanism import Mechanism

DENSITY = 1500.0  # kg/m^3: between hollow castings and solid motors
MIN_RADIUS, MAX_RADIUS = 0.012, 0.05  # limits of the radii, relative to the robot's reach
CAPSULE_VERTICES, CAPSULE_RINGS = 16, 5  # vertices around a capsule, rings at each of its ends


class Mesh(NamedTuple):
    """Triangles fixed to a body (-1: the world): vertices (n, 3) [m] in its frame, faces (m, 3); "link" or "joint".

    colour: red, green, blue from 0 to 255, None for the default of its part; opacity from 0 to 1.
    """

    body: int
    part: str
    vertices: np.ndarray
    faces: np.ndarray
    colour: tuple[int, ...] | None = None
    opacity: float = 1.0


def capsules(robot: Mechanism) -> list[Mesh]:
    """Generate shapes of a robot's links and joints.

    A link is a capsule from the body's joint to each joint that it carries; at the end of a chain to its named frames,
    or through its centre of mass. Its thickness is that of a rod with its mass. A body without extent is the ellipsoid
    of uniform density with its inertia.
    """
    size, meshes = reach(robot), []
    for body in range(robot.nbodies):
        start, ends = joint_point(robot, body), _ends(robot, body, size)
        mass = float(robot.parameters[body, 0])
        if not ends and body not in robot.parents:
            meshes.append(Mesh(body, "link", *_ellipsoid(robot.parameters[body], size)))
        for end in ends:
            length = float(np.linalg.norm(end - start))
            radius = np.sqrt(mass / len(ends) / (np.pi * DENSITY * max(length, MIN_RADIUS * size)))
            meshes.append(
                Mesh(body, "link", *capsule(start, end, float(np.clip(radius, MIN_RADIUS * size, MAX_RADIUS * size))))
            )
        joint = robot.joints[body]
        if joint.S.shape[1] == 1:
            axis = joint.S[:3, 0] if joint.S[:3].any() else joint.S[3:, 0]
            half = 0.045 * size * axis / np.linalg.norm(axis)
            meshes.append(Mesh(body, "joint", *capsule(start - half, start + half, 0.02 * size)))
        on = joint_in_parent(robot, body)
        if robot.parents[body] < 0 and joint.S.shape[1] < 6 and np.linalg.norm(on) > 1e-6:
            meshes.append(Mesh(-1, "link", *capsule(np.zeros(3), on, MAX_RADIUS * size)))
    return meshes


def reach(robot: Mechanism) -> float:
    """The longest path from the base along joint origins to centres of mass and named frames [m], at least 1 cm."""
    along = np.zeros(robot.nbodies)
    longest = 0.0
    for i, p in enumerate(robot.parents):
        along[i] = np.linalg.norm(robot.placements[i][:3, 3]) + (along[p] if p >= 0 else 0.0)
        tips = [_centre(robot, i), *(f.placement[:3, 3] for f in robot.frames if f.body == i)]
        longest = max(longest, along[i] + max(float(np.linalg.norm(x)) for x in tips))
    return max(longest, float(np.sqrt(max(robot.parameters[:, 4:].max(), 0.0) / robot.parameters[:, 0].max())), 0.01)


def _ends(robot: Mechanism, body: int, size: float) -> list[np.ndarray]:
    """End points of the capsules that begin at the body's joint."""
    start = joint_point(robot, body)
    children = [joint_in_parent(robot, i) for i, p in enumerate(robot.parents) if p == body]
    ends = [x for x in children if np.linalg.norm(x - start) > 1e-3 * size]
    if children:
        return ends
    frames = [f.placement[:3, 3] for f in robot.frames if f.body == body]
    ends = [x for x in [*frames, *[np.zeros(3)] * bool(start.any())] if np.linalg.norm(x - start) > 0.02 * size]
    tip = 2.0 * _centre(robot, body)
    return ends[:8] or [tip] * bool(np.linalg.norm(tip) > 0.02 * size)


def _centre(robot: Mechanism, body: int) -> np.ndarray:
    mass = robot.parameters[body, 0]
    return robot.parameters[body, 1:4] / mass if mass > 0.0 else np.zeros(3)


def capsule(a: np.ndarray, b: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """(vertices, faces) of the surface at distance `radius` from the segment from a to b."""
    z = b - a
    length = float(np.linalg.norm(z))
    z = z / length if length > 0.0 else np.array([0.0, 0.0, 1.0])
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    tilt = np.linspace(-np.pi / 2, np.pi / 2, 2 * CAPSULE_RINGS)
    around = np.linspace(0.0, 2 * np.pi, CAPSULE_VERTICES, endpoint=False)
    ring = np.cos(around)[:, None] * x + np.sin(around)[:, None] * np.cross(z, x)
    centres = np.where(np.arange(2 * CAPSULE_RINGS)[:, None] < CAPSULE_RINGS, a, b)
    vertices = (
        centres[:, None] + radius * (np.cos(tilt)[:, None, None] * ring + np.sin(tilt)[:, None, None] * z)
    ).reshape(-1, 3)
    return vertices, _grid(2 * CAPSULE_RINGS, CAPSULE_VERTICES)


def _ellipsoid(parameters: np.ndarray, size: float) -> tuple[np.ndarray, np.ndarray]:
    """The ellipsoid of uniform density with the body's inertia about its centre of mass."""
    mass, h = parameters[0], parameters[1:4]
    c = h / mass if mass > 0.0 else np.zeros(3)
    inertia = parameters[4:][SYMMETRIC] - mass * (c @ c * np.eye(3) - np.outer(c, c))
    spread = 0.5 * np.trace(inertia) * np.eye(3) - inertia  # int r r^T dm
    moments, axes = np.linalg.eigh(spread)
    semi = np.sqrt(5.0 * np.maximum(moments, 0.0) / mass) if mass > 0.0 else np.zeros(3)
    ball, faces = capsule(np.zeros(3), np.zeros(3), 1.0)
    return c + (ball * np.maximum(semi, MIN_RADIUS * size)) @ axes.T, faces


def _grid(rows: int, columns: int) -> np.ndarray:
    """Triangles of a closed tube with rows x columns vertices."""
    k = np.arange((rows - 1) * columns)
    right = k - k % columns + (k + 1) % columns
    return np.concatenate([np.stack([k, right, k + columns], 1), np.stack([right, right + columns, k + columns], 1)])


def arrow() -> tuple[np.ndarray, np.ndarray]:
    """(vertices, faces) of an arrow from the origin along z, of length 1."""
    profile = [(0.0, 0.0), (0.025, 0.0), (0.025, 0.75), (0.07, 0.75), (0.0, 1.0)]  # radius, height
    around = np.linspace(0.0, 2 * np.pi, CAPSULE_VERTICES, endpoint=False)
    ring = np.stack([np.cos(around), np.sin(around), 0.0 * around], axis=1)
    return np.concatenate([r * ring + [0.0, 0.0, z] for r, z in profile]), _grid(len(profile), CAPSULE_VERTICES)
