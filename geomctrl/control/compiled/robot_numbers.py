"""What a robot's twin is made of: which of its numbers are symbols, and what its structure says in words."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from geomctrl.compiler.kernel_traces import structure
from geomctrl.kernels import tree
from geomctrl.mechanism.joint import Joint
from geomctrl.tracing.symbols import is_symbol

MOST_KNOWN = 256


def inertial_parameters(robot: Any) -> list[Any]:
    """The symbols that the terms of a twin of a robot know as its parameters, ten a body, one body after the other."""
    rows = robot._model[: robot.nbodies * tree.WIDTH].reshape(-1, tree.WIDTH)
    return rows[:, tree.J : tree.S].ravel().tolist()


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
