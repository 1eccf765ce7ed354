"""The four systems of Mueller and Terze 2013, section 5: bodies in maximal coordinates on ball joints.

The paper gives no masses for the bars: they are boxes of aluminium (2700 kg/m^3) here, jointed at their ends;
docs/reference/formulas.md lists what else was completed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from geomctrl import inertia, so3
from geomctrl.lie.groups import SE3, SO3xR3
from geomctrl.papers.constrained.joints import ConstrainedBody, Constraint
from geomctrl.papers.constrained.maximal import ConstrainedSystem

GROUPS = {"SE(3)": SE3(), "SO(3)xR3": SO3xR3()}
BOX = (0.2, 0.1, 0.05)  # m, the bars of section 5.2
DENSITY = 2700.0  # kg/m^3
GRAVITY = (0.0, 0.0, -9.81)
HALF = 0.1  # m, from a bar's centre to its ends


class Case(NamedTuple):
    title: str
    system: ConstrainedSystem
    y0: np.ndarray


def place(R, p) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, p
    return T


def bar(name: str, pose, sides=BOX) -> ConstrainedBody:
    """A box of aluminium; its frame is at the centre of mass."""
    m = DENSITY * np.prod(sides)
    a2, b2, c2 = np.square(sides)
    return ConstrainedBody(name, inertia.from_com(m, (0, 0, 0), m / 12.0 * np.diag([b2 + c2, a2 + c2, a2 + b2])), pose)


def heavy_top(group, **options) -> Case:
    """Section 5.1: m = 21.6 kg, the pivot at r_0 = (0.5, 0, 0) m from it to the centre of mass, no gravity."""
    r0, w = np.array([0.5, 0.0, 0.0]), np.array([0.0, 20.0, 10.0]) * np.pi
    top = ConstrainedBody("top", inertia.from_com(21.6, (0, 0, 0), np.diag([0.36, 0.306, 0.09])), place(np.eye(3), r0))
    pivot = Constraint("spherical", "pivot", ("world", "top"), point=(0, 0, 0), point_b=-r0)
    system = ConstrainedSystem([top], [pivot], group=group, gravity=(0, 0, 0), **options)
    return Case("heavy top", system, system.state(None, [[*w, *np.cross(w, r0)]]))


def double_pendulum(group, **options) -> Case:
    """Section 5.2: two bars along x, ball joints at the ends (43)."""
    bodies = [bar("bar 1", place(np.eye(3), (HALF, 0, 0))), bar("bar 2", place(np.eye(3), (3 * HALF, 0, 0)))]
    joints = [
        Constraint("spherical", "joint 1", ("world", "bar 1"), point=(0, 0, 0), point_b=(-HALF, 0, 0)),
        Constraint("spherical", "joint 2", ("bar 1", "bar 2"), point=(HALF, 0, 0), point_b=(-HALF, 0, 0)),
    ]
    system = ConstrainedSystem(bodies, joints, group=group, gravity=GRAVITY, **options)
    w1, w2 = np.array([10.0, 0.0, 0.0]), np.array([10.0, 10.0, 20.0]) * np.pi
    v1 = np.cross(w1, (HALF, 0, 0))
    v2 = v1 + np.cross(w1, (HALF, 0, 0)) + np.cross(w2, (HALF, 0, 0))
    return Case("pendulum", system, system.state(None, [[*w1, *v1], [*w2, *v2]]))


def floating_pair(group, **options) -> Case:
    """Section 5.3: the same bars, joint 1 and gravity removed; the first one's centre starts at rest."""
    bodies = [bar("bar 1", place(np.eye(3), (HALF, 0, 0))), bar("bar 2", place(np.eye(3), (3 * HALF, 0, 0)))]
    joint = Constraint("spherical", "joint", ("bar 1", "bar 2"), point=(HALF, 0, 0), point_b=(-HALF, 0, 0))
    system = ConstrainedSystem(bodies, [joint], group=group, gravity=(0, 0, 0), **options)
    w1, w2 = np.array([0.0, 0.0, -10.0]), np.array([1.0, -1.0, 2.0 * np.pi])
    v2 = np.cross(w1, (HALF, 0, 0)) + np.cross(w2, (HALF, 0, 0))
    return Case("floating pair", system, system.state(None, [[*w1, 0, 0, 0], [*w2, *v2]]))


def three_bar(group, **options) -> Case:
    """Section 5.4: two bars and the ground in a triangle; it swings about its base while the bars spin."""
    apex = np.array([HALF, 0.0, -HALF * np.sqrt(3.0)])
    pivots = np.zeros(3), np.array([2.0 * HALF, 0.0, 0.0])
    directions = [apex / (2.0 * HALF), (pivots[1] - apex) / (2.0 * HALF)]  # along x of the bars
    turns = [so3.exp([0.0, np.arctan2(-d[2], d[0]), 0.0]) for d in directions]
    centres = [0.5 * apex, 0.5 * (apex + pivots[1])]
    bodies = [bar(f"bar {k + 1}", place(turns[k], centres[k])) for k in (0, 1)]
    joints = [
        Constraint("spherical", "joint 1", ("world", "bar 1"), point=pivots[0], point_b=(-HALF, 0, 0)),
        Constraint("spherical", "joint 2", ("bar 1", "bar 2"), point=(HALF, 0, 0), point_b=(-HALF, 0, 0)),
        Constraint("spherical", "joint 3", ("world", "bar 2"), point=pivots[1], point_b=(HALF, 0, 0)),
    ]
    system = ConstrainedSystem(bodies, joints, group=group, gravity=GRAVITY, **options)
    swing, velocities = np.array([2.0, 0.0, 0.0]), []
    for R, p, d, spin in zip(turns, centres, directions, (10.0, 5.0)):
        velocities.append([*(R.T @ (swing + spin * d)), *(R.T @ np.cross(swing, p))])
    return Case("three-bar", system, system.state(None, velocities))


CASES = {"heavy top": heavy_top, "pendulum": double_pendulum, "floating pair": floating_pair, "three-bar": three_bar}
