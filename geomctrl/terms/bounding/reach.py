"""Reach of bodies: bounds of first moments about joint axes that hold at every configuration.

A velocity coordinate k of body b moves the points x of all bodies in its subtree with h w + w x (x - p) for unit rate,
where w is its axis through p and h its pitch, or with a constant v if it does not rotate. The bounds need the distances
of these bodies from the axis. Each joint j between them has points x_j that its rotation does not move, for a revolute
joint all points of its axis. With masses m_i of bodies and M_j of the subtree of j, the first moment

    sum_i m_i (c_i - p) = sum_i ( m_i c_i + sum_children j M_j x_j - M_i x_i )

is a sum of vectors that are constant in one body each. The triangle inequality bounds it for any choice of the x_j on
their axes; weighted least squares finds a good choice. As long as the joints in between rotate about the same direction
as k, or slide, only the components normal to this direction count. A joint that slides by at most d from the middle of
its range adds M_j d.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from geomctrl.errors import ArgumentError
from geomctrl.mechanism import inertia
from geomctrl.mechanism.mechanism import Mechanism

PARALLEL = 1e-12  # sine of the angle below which directions count as parallel
MARGIN = 1e-11  # relative to the sizes of the summed vectors: far above rounding and the effect of PARALLEL
ITERATIONS = 12


class Field(NamedTuple):
    """A velocity coordinate in its body's frame: w (or zero), a point of the axis, pitch, and v where w is zero."""

    body: int
    w: np.ndarray
    point: np.ndarray
    pitch: float
    v: np.ndarray

    @property
    def turning(self) -> float:
        """|w|."""
        return float(np.linalg.norm(self.w))


class Link(NamedTuple):
    """Position of a body in its parent in the middle of the joint's sliding range: R y + p for a point y of the body.

    point + free s, for any s: points that a rotation of the joint does not move, in the body's frame. slide: half of
    the sliding range. direction: axis of rotation; zero if the joint does not rotate, None for several axes.
    """

    R: np.ndarray
    p: np.ndarray
    point: np.ndarray
    free: np.ndarray
    slide: np.ndarray
    direction: np.ndarray | None


def fields_of(robot: Mechanism) -> list[Field]:
    """Return the fields of all velocity coordinates."""
    out = []
    for i, joint in enumerate(robot.joints):
        for S in joint.S.T:
            w, v = S[:3], S[3:]
            turning = w @ w
            if turning == 0.0:
                out.append(Field(i, np.zeros(3), np.zeros(3), 0.0, v))
            else:
                out.append(Field(i, w, np.cross(w, v) / turning, float(w @ v / turning), np.zeros(3)))
    return out


def _link(robot: Mechanism, i: int, lower: np.ndarray, upper: np.ndarray) -> Link:
    """Return the link of joint i, whose parent is not the world."""
    joint, M = robot.joints[i], robot.placements[i]
    R, p = M[:3, :3], M[:3, 3]
    if joint.kind == "spherical":
        w, v = joint.S[:3], joint.S[3:]
        return Link(R, p, np.linalg.lstsq(_hats(w), -v.T.ravel(), rcond=None)[0], np.zeros((3, 0)), np.zeros(3), None)
    if joint.dof > 1:
        raise ArgumentError(
            f"robot: joint {joint.name!r} is {joint.kind} and not the robot's first: how far it slides has no bound;"
            " model it as a chain of joints with one degree of freedom, which have ranges"
        )
    w, v = joint.S[:3, 0], joint.S[3:, 0]
    per_unit = v if not w.any() else (w @ v) * w if joint.kind == "helical" else np.zeros(3)
    low, high = lower[robot.v_slices[i]][0], upper[robot.v_slices[i]][0]
    if per_unit.any() and not np.isfinite([low, high]).all():
        raise ArgumentError(
            f"box: joint {joint.name!r} is {joint.kind} and has no finite range, [{low:.6g}, {high:.6g}]: how far it"
            " slides has no bound; give one in box=(lower, upper) or as the joint's limits"
        )
    middle, half = (0.5 * (low + high), 0.5 * (high - low)) if per_unit.any() else (0.0, 0.0)
    free = w[:, None] if w.any() else np.eye(3)
    return Link(R, p + R @ (middle * per_unit), np.cross(w, v), free, half * per_unit, w)


def _hats(w: np.ndarray) -> np.ndarray:
    """Return the matrix of x -> w_c x x for columns w_c, one below the other; it is -v_c for points at rest."""
    return np.vstack([np.cross(c, np.eye(3)).T for c in w.T])


class Reach:
    """Bounds for full turns of rotating joints, and for sliding joints within [lower, upper] (nv,)."""

    def __init__(self, robot: Mechanism, lower: np.ndarray, upper: np.ndarray):
        self.robot, self.fields = robot, fields_of(robot)
        self.links = {i: _link(robot, i, lower, upper) for i, p in enumerate(robot.parents) if p >= 0}
        self.children = [[j for j, p in enumerate(robot.parents) if p == i] for i in range(robot.nbodies)]
        self.subtrees = [[i] for i in range(robot.nbodies)]
        for i in range(robot.nbodies - 1, -1, -1):
            if robot.parents[i] >= 0:
                self.subtrees[robot.parents[i]] += self.subtrees[i]
        self.paths: list[list[int]] = []  # of every body: its own coordinates and those of its ancestors
        for i, p in enumerate(robot.parents):
            own = robot.v_slices[i]
            self.paths.append([*(self.paths[p] if p >= 0 else []), *range(own.start, own.stop)])

    def moment(self, k: int, masses: np.ndarray, firsts: np.ndarray) -> float:
        """Bound |h w M + w x sum_i (first_i - m_i p)| over the bodies that coordinate k moves, with total mass M.

        first_i = m_i c_i is in body i's frame. If k does not rotate, the bound is that of |v| M.
        """
        field, M = self.fields[k], float(sum(masses[i] for i in self.subtrees[self.fields[k].body]))
        if field.turning == 0.0:
            return float(np.linalg.norm(field.v)) * M * (1.0 + MARGIN)
        distance = self._across(field, masses, firsts)
        return field.turning * float(np.hypot(field.pitch * M, distance)) * (1.0 + MARGIN)

    def _across(self, field: Field, masses: np.ndarray, firsts: np.ndarray) -> float:
        """Bound |w x sum_i (first_i - m_i p)| for unit w."""
        carried = masses.copy()
        for i in sorted(self.subtrees[field.body], reverse=True):
            if i != field.body:
                carried[self.robot.parents[i]] += carried[i]
        bodies = [i for i in sorted(self.subtrees[field.body]) if carried[i] != 0.0 or firsts[i].any()]
        columns, first_column = 0, {}
        for i in bodies:
            first_column[i] = columns
            columns += self.links[i].free.shape[1] if i != field.body else 0
        A, b, size, slides = np.zeros((len(bodies), 3, columns)), np.zeros((len(bodies), 3)), 0.0, 0.0
        # the axis in each body's frame; None if a joint in between changes it
        directions: dict[int, np.ndarray | None] = {field.body: field.w / field.turning}
        for row, i in enumerate(bodies):
            out = field.point if i == field.body else self.links[i].point
            b[row] = firsts[i] - carried[i] * out
            size += np.linalg.norm(firsts[i]) + carried[i] * np.linalg.norm(out)
            if i != field.body:
                part = slice(first_column[i], first_column[i] + self.links[i].free.shape[1])
                A[row, :, part] = -carried[i] * self.links[i].free
            a = directions[i]
            P = np.eye(3) if a is None else np.eye(3) - np.outer(a, a)
            for j in self.children[i]:
                if j not in first_column:
                    continue
                link = self.links[j]
                b[row] += carried[j] * (link.R @ link.point + link.p)
                size += carried[j] * (np.linalg.norm(link.point) + np.linalg.norm(link.p))
                A[row, :, first_column[j] : first_column[j] + link.free.shape[1]] += carried[j] * link.R @ link.free
                slides += carried[j] * np.linalg.norm(P @ link.R @ link.slide)
                directions[j] = _still(a, link)
            A[row], b[row] = P @ A[row], P @ b[row]
        return _sum_of_norms(A, b, size) + slides * (1.0 + MARGIN)

    @cached_property
    def speeds(self) -> np.ndarray:
        """r (nbodies, nv): bounds of the speed of body i's centre of mass for unit rate of coordinate k, or 0."""
        return self.speeds_of(np.nan_to_num(inertia.com(self.robot.parameters)))

    def speeds_of(self, points: np.ndarray) -> np.ndarray:
        """Return `speeds` for other points (nbodies, 3), in body frames."""
        r = np.zeros((self.robot.nbodies, self.robot.nv))
        for i, path in enumerate(self.paths):
            masses, firsts = np.zeros(self.robot.nbodies), np.zeros((self.robot.nbodies, 3))
            masses[i], firsts[i] = 1.0, points[i]
            for k in path:
                r[i, k] = self.moment(k, masses, firsts)
        return r

    @cached_property
    def rates(self) -> np.ndarray:
        """|w| (nv,): angular speed of bodies for unit rate of a coordinate."""
        return np.array([f.turning for f in self.fields])


def _still(a: np.ndarray | None, link: Link) -> np.ndarray | None:
    """Return the direction a of the parent's frame in the child's frame; None if the joint changes it."""
    if a is None or link.direction is None:
        return None
    inside = link.R.T @ a
    return inside if np.linalg.norm(np.cross(inside, link.direction)) <= PARALLEL else None


def _sum_of_norms(A: np.ndarray, b: np.ndarray, size: float) -> float:
    """Bound the minimum over s of sum_i |A_i s + b_i|, by least squares with repeated weights 1 / |A_i s + b_i|."""
    if A.shape[2] == 0 or not A.any():
        return float(np.linalg.norm(b, axis=1).sum()) + MARGIN * size
    weights, best, small = np.ones(len(b)), np.inf, 1e-9 * (size + float(np.abs(A).max()))
    for _ in range(ITERATIONS):
        W = np.repeat(np.sqrt(weights), 3)
        s = np.linalg.lstsq(A.reshape(-1, A.shape[2]) * W[:, None], -b.ravel() * W, rcond=1e-12)[0]
        lengths = np.linalg.norm(A @ s + b, axis=1)
        best = min(best, float(lengths.sum()) + MARGIN * (size + float(np.abs(A).sum() * np.abs(s).max(initial=0.0))))
        weights = 1.0 / (lengths + small)
    return best
