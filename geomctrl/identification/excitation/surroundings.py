"""What a motion is to stay clear of: a floor, boxes, the robot itself; how a user says so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import exactly, flag, instance, listed, number, path_of
from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.files import read_toml
from geomctrl.mechanism.capsules import Capsule, capsule, check_capsule, link_capsules
from geomctrl.robot import Robot

KEYS = ("floor", "clearance", "self_collision", "radius", "keep_out", "capsule")


@dataclass(frozen=True, eq=False)
class Surroundings:
    """A floor z >= `floor` [m] in the world's axes (None: none), boxes to keep out of, and the robot itself.

    keep_out: boxes (x0, y0, z0, x1, y1, z1) between two corners [m], along the world's axes. clearance: how far the
    robot stays off all of it [m]. The robot is its `capsules` (`link_capsules` of `radius` unless given,
    `models.collision_capsules` of a URDF): see `geomctrl.mechanism.capsules`. Links on the same joint are not checked
    against each other, nor those that are too near in every posture, nor what no motion changes. Raises ArgumentError.
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
                raise ArgumentError(f"capsules: expected Capsules, one at least, got {self.capsules!r:.80}")
            put(self, "capsules", capsules)

    def of(self, robot: Robot) -> tuple[Capsule, ...]:
        """The robot's capsules. Raises ArgumentError for ones that are not on its bodies."""
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
    """Surroundings from a TOML file, lengths in metres; what it leaves out has its default.

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
        given = [_capsule(x, robot) for x in listed("capsule", table.get("capsule", []))]
        if given:
            replaced = {c.body for c in given}
            rest = (c for c in link_capsules(robot, options.get("radius")) if c.body not in replaced)
            options["capsules"] = (*rest, *given)
        return Surroundings(**options)
    except GeomctrlError as error:
        raise type(error)(f"{path}: {error}") from None


def _capsule(table: Any, robot: Robot) -> Capsule:
    keys = ("frame", "start", "end", "radius")
    if not isinstance(table, dict) or set(table) != set(keys):
        raise ArgumentError(f"capsule: expected the keys {', '.join(keys)}, got {table!r:.80}")
    return capsule(robot, table["frame"], table["start"], table["end"], table["radius"])
