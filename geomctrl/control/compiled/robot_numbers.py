"""What a robot's twin is made of: which of its numbers are symbols, and what its structure says in words."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from geomctrl.compiler.symbols import is_symbol
from geomctrl.compiler.tracing import structure
from geomctrl.kernels import tree
from geomctrl.mechanism.joint import Joint
from geomctrl.mechanism.mechanism import Mechanism

MOST_KNOWN = 256


class RobotNumbers(NamedTuple):
    """Where the numbers of a robot are: from `first` on those of its model array at `places`, then its `parameters`."""

    robot: Mechanism
    first: int
    places: np.ndarray

    @property
    def parameters(self) -> list[list[int]]:
        """For each of its inertial parameters, body by body, the numbers that hold it."""
        found, (n, _), start = [], self.robot.parameters.shape, self.first + len(self.places)
        at = {int(place): self.first + k for k, place in enumerate(self.places)}
        for body in range(n):
            for k in range(10):
                place = at.get(body * tree.WIDTH + tree.J + k)
                found.append([*([] if place is None else [place]), start + 10 * body + k])
        return found


_patterns: dict[bytes, np.ndarray] = {}


def pattern_of(model: np.ndarray) -> np.ndarray:
    """The model's `structure`, remembered: robots that differ in their inertias have the same."""
    rest = model.copy()
    bodies = tree.body_records(rest)
    bodies[:, tree.J : tree.S] = 0.0
    bodies[:, tree.ARMATURE] = bodies[:, tree.ARMATURE] != 0.0
    key = rest.tobytes()
    if key not in _patterns:
        if len(_patterns) > MOST_KNOWN:
            _patterns.clear()
        _patterns[key] = structure(model)
    return _patterns[key]


_known: dict[int, tuple[Any, bytes]] = {}


def constants(x: Any) -> bytes:
    """What a robot, its joints or its frames say, as one word; robots of one model share the latter two."""
    return _remembered(x, pickle.dumps)


def joint_constants(joints: tuple[Joint, ...]) -> bytes:
    """What joints say but for their armatures, which are numbers of the model array."""
    return _remembered(joints, lambda x: pickle.dumps([{**vars(j), "armature": j.armature != 0.0} for j in x]))


def _remembered(x: Any, word_of: Callable[[Any], bytes]) -> bytes:
    known = _known.get(id(x))
    if known is None or known[0] is not x:
        if len(_known) > MOST_KNOWN:
            _known.clear()
        known = _known[id(x)] = x, word_of(x)
    return known[1]


def with_armature(joint: Joint, armature: Any) -> Joint:
    """The joint with a symbol for its armature, if it has one."""
    if not is_symbol(armature):
        return joint
    twin = object.__new__(type(joint))
    twin.__dict__.update(vars(joint), armature=armature)
    return twin
