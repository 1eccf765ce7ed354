"""Surroundings of a robot (a floor, boxes, the robot itself), and its distances from them with gradients.

Let x_a, x_b be the nearest points of two capsules on bodies a and b, and n the direction from x_b to x_a. The rate of
the distance is n . (velocity of x_a - velocity of x_b), because moving a nearest point along its capsule does not
change the distance to first order. The velocity of a point x of a body is v + w x for its spatial twist (w, v) = J
qdot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import exactly, flag, instance, listed, number, path_of, shown
from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.files import read_toml
from geomctrl.mechanism import capsules as distances
from geomctrl.mechanism.capsules import Capsule, capsule, check_capsule, link_capsules
from geomctrl.robot import Robot

KEYS = ("floor", "clearance", "self_collision", "radius", "keep_out", "capsule")


@dataclass(frozen=True, eq=False)
class Surroundings:
    """A floor z >= `floor` [m] in the world's axes (None: no floor), boxes to keep out of, and the robot itself.

    keep_out: boxes (x0, y0, z0, x1, y1, z1) between two corners [m], along the world's axes. clearance: required
    distance [m] of the links' surfaces from all of these, and from links that are not on the same joint. The robot is
    represented by its `capsules` (default: `link_capsules` of `radius`; for a URDF
    `models.io.urdf_geometry.collision_capsules`), see `geomctrl.mechanism.capsules`. These pairs are not checked: links
    on the same joint, links that are too near in every posture, and pairs whose distance no motion changes. Raises
    ArgumentError.
    """

    floor: float | None = 0.0
    keep_out: Sequence[ArrayLike] = ()
    self_collision: bool = True
    clearance: float = 0.02
    capsules: Sequence[Capsule] | None = None
    radius: float | None = None

    def __post_init__(self):
        put = object.__setattr__
        if self.floor is not None:
            put(self, "floor", number("floor", self.floor))
        put(self, "keep_out", tuple(_box(x) for x in listed("keep_out", self.keep_out)))
        flag("self_collision", self.self_collision)
        put(self, "clearance", number("clearance", self.clearance, "a length >= 0", lambda x: x >= 0.0))
        if self.radius is not None:
            put(self, "radius", number("radius", self.radius, "a length > 0", lambda x: x > 0.0))
        if self.capsules is not None:
            capsules = tuple(listed("capsules", self.capsules))
            if not capsules or not all(isinstance(c, Capsule) for c in capsules):
                raise ArgumentError(f"capsules: expected Capsules, one at least, got {shown(self.capsules)}")
            put(self, "capsules", capsules)

    def of(self, robot: Robot) -> tuple[Capsule, ...]:
        """The robot's capsules. Raises ArgumentError if a capsule is not on one of its bodies."""
        instance("robot", robot, Robot, "a geomctrl.Robot")
        if self.capsules is None:
            return link_capsules(robot, self.radius)
        return tuple(check_capsule("capsules", c, robot) for c in self.capsules)


def _box(x: Any) -> np.ndarray:
    box = exactly("keep_out", x, (6,))
    if (box[:3] >= box[3:]).any():
        raise ArgumentError(f"keep_out: expected x0 < x1, y0 < y1, z0 < z1, got {box.tolist()}")
    return box


def load_surroundings(path: str | Path, robot: Robot) -> Surroundings:
    """Read surroundings from a TOML file, lengths in metres; missing entries have their defaults.

    floor = -0.01 (false: none), clearance, radius, self_collision; keep_out = [[x0, y0, z0, x1, y1, z1], ...]; and to
    replace a link's capsules, or add one to a frame, tables [[capsule]] with frame = "a body or frame", start and
    end = [x, y, z] in it, radius. Raises ArgumentError, NameNotFoundError.
    """
    instance("robot", robot, Robot, "a geomctrl.Robot")
    path = path_of("path", path)
    table = read_toml(path)
    try:
        for key in table:
            if key not in KEYS:
                raise ArgumentError(f"{key}: no such key; known: {', '.join(KEYS)}")
        options = {key: table[key] for key in KEYS[1:5] if key in table}
        if "floor" in table:
            options["floor"] = None if table["floor"] is False else table["floor"]
        capsules = [_capsule(x, robot) for x in listed("capsule", table.get("capsule", []))]
        if capsules:
            replaced = {c.body for c in capsules}
            rest = (c for c in link_capsules(robot, options.get("radius")) if c.body not in replaced)
            options["capsules"] = (*rest, *capsules)
        return Surroundings(**options)
    except GeomctrlError as error:
        raise type(error)(f"{path}: {error}") from None


def _capsule(table: Any, robot: Robot) -> Capsule:
    keys = ("frame", "start", "end", "radius")
    if not isinstance(table, dict) or set(table) != set(keys):
        raise ArgumentError(f"capsule: expected the keys {', '.join(keys)}, got {shown(table)}")
    return capsule(robot, table["frame"], table["start"], table["end"], table["radius"])


# --- distances -------------------------------------------------------------------------------------------------------


RANDOM_POSTURES = 300  # random postures
MIN_CHANGE = 1e-9  # m: a distance that changes less is fixed
FLOOR, BOXES, SELF = "floor", "keep-out boxes", "itself"


class Rows(NamedTuple):
    """Numbers of the checked pairs: ends of capsules over the floor; capsules, boxes; capsules, capsules."""

    floor: np.ndarray
    boxes: np.ndarray  # (., 2)
    pairs: np.ndarray  # (., 2)


@dataclass(frozen=True, eq=False)
class Clearances:
    """Signed distances (N, C) between surfaces [m]: of capsule ends above the floor, of capsules from boxes, and of
    capsules from each other."""

    robot: Robot
    capsules: tuple[Capsule, ...]
    surroundings: Surroundings
    rows: Rows
    always: tuple[str, ...]  # pairs that are too near in every posture tried; they are not checked

    @property
    def size(self) -> int:
        return sum(len(x) for x in self.rows)

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, rows in zip((FLOOR, BOXES, SELF), self.rows) for _ in rows]

    @property
    def names(self) -> list[str]:
        """A description of each of the C distances."""
        bodies = ["the base" if c.body < 0 else repr(self.robot.body_names[c.body]) for c in self.capsules]
        ends = [*bodies, *bodies]
        return [
            *(f"{ends[i]} over the floor" for i in self.rows.floor),
            *(f"{bodies[i]} off keep-out box {j + 1}" for i, j in self.rows.boxes),
            *(f"{bodies[i]} off {bodies[j]}" for i, j in self.rows.pairs),
        ]

    def values(self, q: np.ndarray) -> np.ndarray:
        """(N, C) at configurations (N, nq)."""
        return self._distances(self.ends(q))[0]

    def with_gradient(self, q: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """(distances (N, C), a function that takes G (N, C) to sum_c G_c d(distance_c)/dq (N, nv))."""
        values, where, n = self._distances(self.ends(q))
        sides = self._bodies()

        def pulled(G: np.ndarray) -> np.ndarray:
            forces = np.zeros((len(q), self.robot.nbodies + 1, 6))  # wrenches on bodies about the origin; the base last
            for x, bodies, sign in zip(where, sides, (1.0, -1.0)):
                f = (sign * G)[..., None] * n
                wrench = np.concatenate((np.cross(x, f), f), axis=-1)
                chosen = np.eye(self.robot.nbodies + 1)[bodies]  # (C, nb + 1)
                forces += np.einsum("ncd,cb->nbd", wrench, chosen, optimize=True)
            out = np.zeros((len(q), self.robot.nv))
            for body in set(np.concatenate(sides).tolist()) - {-1}:
                J = self.robot.jacobian(q, self.robot.body_names[body], "spatial")
                out += np.einsum("nd,ndk->nk", forces[:, body], J)
            return out

        return values, pulled

    def ends(self, q: np.ndarray) -> np.ndarray:
        """(2, N, capsules, 3): starts and ends in the world."""
        out = np.empty((2, len(q), len(self.capsules), 3))
        poses = {b: self.robot.pose(q, self.robot.body_names[b]) for b in {c.body for c in self.capsules} - {-1}}
        for k, c in enumerate(self.capsules):
            for i, x in enumerate((c.start, c.end)):
                out[i, :, k] = x if c.body < 0 else poses[c.body][:, :3, :3] @ x + poses[c.body][:, :3, 3]
        return out

    def _bodies(self) -> tuple[np.ndarray, np.ndarray]:
        """The bodies (C,) on the two sides of every distance; -1 for fixed objects."""
        bodies = np.array([c.body for c in self.capsules], int)
        first = np.concatenate(
            (np.tile(bodies, 2)[self.rows.floor], bodies[self.rows.boxes[:, 0]], bodies[self.rows.pairs[:, 0]])
        )
        still = np.full(len(self.rows.floor) + len(self.rows.boxes), -1)
        return first, np.concatenate((still, bodies[self.rows.pairs[:, 1]]))

    def _distances(self, ends: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], np.ndarray]:
        """(values (N, C), the nearest points of both sides (N, C, 3) each, direction from second to first)."""
        radii = np.array([c.radius for c in self.capsules])
        all_ends = np.concatenate((ends[0], ends[1]), axis=1)  # (N, 2 capsules, 3)
        d, X, Y, n = [], [], [], []
        over = all_ends[:, self.rows.floor]
        floor = 0.0 if self.surroundings.floor is None else self.surroundings.floor
        d.append(over[..., 2] - np.tile(radii, 2)[self.rows.floor] - floor)
        X.append(over)
        Y.append(over)
        n.append(np.broadcast_to([0.0, 0.0, 1.0], over.shape))
        i, j = self.rows.boxes.T
        p0, p1 = ends[0][:, i], ends[1][:, i]
        boxes = np.array(self.surroundings.keep_out).reshape(-1, 6)[j]
        if len(i):
            distance, s, direction_to_box = distances.segment_to_box(p0, p1, boxes[:, :3], boxes[:, 3:])
            d.append(distance - radii[i])
            X.append(distances.at(p0, p1, s))
            Y.append(X[-1])
            n.append(direction_to_box)
        i, j = self.rows.pairs.T
        if len(i):
            distance, s, t = distances.segments(ends[0][:, i], ends[1][:, i], ends[0][:, j], ends[1][:, j])
            d.append(distance - radii[i] - radii[j])
            X.append(distances.at(ends[0][:, i], ends[1][:, i], s))
            Y.append(distances.at(ends[0][:, j], ends[1][:, j], t))
            n.append((X[-1] - Y[-1]) / np.maximum(distance, 1e-12)[..., None])
        values = np.concatenate(d, axis=1)
        x, y, direction = (np.concatenate(parts, axis=1) for parts in (X, Y, n))
        return values, (x, y), direction


def by_kind(clearances: Clearances, q: np.ndarray) -> dict[str, np.ndarray]:
    """The least distance (N,) of each kind."""
    d, kinds = clearances.values(q), np.array(clearances.kinds)
    return {kind: d[:, kinds == kind].min(axis=1) for kind in dict.fromkeys(kinds.tolist())}


def unchecked(robot: Robot) -> Clearances:
    """The robot's capsules, without surroundings."""
    around = Surroundings(floor=None, self_collision=False)
    return clearances_of(robot, around, np.zeros(robot.nv), np.zeros(robot.nv))


def clearances_of(robot: Robot, surroundings: Surroundings, lower: np.ndarray, upper: np.ndarray) -> Clearances:
    """The checked pairs of a robot that moves between these positions (nv,): all but those that no motion changes,
    links on the same joint, and links that are nearer than required in all of TRIED random postures."""
    capsules = surroundings.of(robot)
    moving = [k for k, c in enumerate(capsules) if c.body >= 0]
    count = len(capsules)
    over = [k + side * count for side in (0, 1) for k in moving] if surroundings.floor is not None else []
    boxes = [(k, j) for k in moving for j in range(len(surroundings.keep_out))]
    pairs = []
    if surroundings.self_collision:
        pairs = [(i, j) for i, j in combinations(range(count), 2) if not _joined(robot, capsules[i], capsules[j])]
    rows = Rows(np.array(over, int), np.array(boxes, int).reshape(-1, 2), np.array(pairs, int).reshape(-1, 2))
    every = Clearances(robot, capsules, surroundings, rows, ())
    q = np.random.default_rng(0).uniform(lower, upper, size=(RANDOM_POSTURES, robot.nv))
    d = every.values(q)
    least, greatest = d.min(axis=0, initial=np.inf), d.max(axis=0, initial=-np.inf)
    still = greatest - least < MIN_CHANGE
    near = greatest < surroundings.clearance
    skip = still | (near & (np.array(every.kinds) == SELF))
    names = [name for name, left_out in zip(every.names, skip & near) if left_out]
    cuts = np.cumsum([len(x) for x in rows])[:-1]
    kept = Rows(*(x[~out] for x, out in zip(rows, np.split(skip, cuts))))
    return Clearances(robot, capsules, surroundings, kept, tuple(dict.fromkeys(names)))


def _joined(robot: Robot, a: Capsule, b: Capsule) -> bool:
    """Whether two capsules belong to one body, to neighbours on a joint, or both to the world."""
    above = {body: robot.parents[body] for body in (a.body, b.body) if body >= 0}
    return a.body == b.body or above.get(a.body) == b.body or above.get(b.body) == a.body


def sweeps(clearances: Clearances, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """(C, nv): upper bounds of the rate of each distance per joint speed, at positions between these.

    A point that is never farther than rho from a joint's axis moves at most at rho times its speed [m/rad]; for
    prismatic joints at the speed itself [m/m]. Distances between two bodies depend only on the joints between them.
    """
    robot = clearances.robot
    A = robot.coupling.matrix
    travel = np.abs(A) @ np.maximum(np.abs(lower), np.abs(upper))  # of prismatic joints
    still = robot.coupling.tree_configuration(np.zeros(robot.nv))
    travel = travel + np.abs(still)
    reach = np.array([_reach(robot, c, travel) for c in clearances.capsules])  # (capsules, tree's joints)
    first = np.concatenate((np.tile(reach, (2, 1))[clearances.rows.floor], reach[clearances.rows.boxes[:, 0]])).reshape(
        -1, reach.shape[1]
    )
    i, j = clearances.rows.pairs.T
    between = np.where((reach[i] > 0.0) & (reach[j] > 0.0), 0.0, reach[i] + reach[j])
    return np.concatenate((first, between)) @ np.abs(A)


def _reach(robot: Robot, c: Capsule, travel: np.ndarray) -> np.ndarray:
    """For each joint the largest distance of the capsule's segment from its axis; 0 if it does not move the capsule."""
    out = np.zeros(robot.nbodies)
    body, reach = c.body, max(np.linalg.norm(c.start), np.linalg.norm(c.end))
    while body >= 0:
        joint = robot.joints[body]
        if joint.kind == "prismatic":
            out[body] = 1.0
            reach += travel[body]
        else:
            offset = float(np.linalg.norm(np.cross(joint.S[:3, 0], joint.S[3:, 0])))  # of the axis from the origin
            out[body] = reach + offset
            reach += 2.0 * offset
        reach += float(np.linalg.norm(robot.placements[body][:3, 3]))
        body = robot.parents[body]
    return out
