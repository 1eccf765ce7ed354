"""Symbolic copies of robots: which numbers become symbols, and the signature of the remaining structure."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from geomctrl.compiler.code import Code
from geomctrl.compiler.kernel_traces import structure
from geomctrl.kernels import tree
from geomctrl.mechanism.joint import Joint
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.tracing.code_identity import UNCHANGING
from geomctrl.tracing.numbers import entered, has_symbols

MAX_CACHED = 256


def inertial_parameters(robot: Any) -> list[Any]:
    """Symbols for the parameters of a robot's clone in its terms, ten per body."""
    return tree.body_records(robot._model)[:, tree.J : tree.S].ravel().tolist()


def armatures(robot: Any) -> list[Any]:
    """Symbols (or zeros) for the armatures of a robot's clone in its terms."""
    return tree.body_records(robot._model)[:, tree.ARMATURE].tolist()


_known: dict[int, tuple[Any, bytes]] = {}


def constants(x: Any) -> bytes:
    """The signature of a robot, its joints or its frames; robots of one model share the latter two."""
    return _remembered(x, pickle.dumps)


def joint_constants(joints: tuple[Joint, ...]) -> bytes:
    """The properties of joints except their armatures, which are numbers of the model array."""
    return _remembered(joints, lambda x: pickle.dumps([{**vars(j), "armature": j.armature != 0.0} for j in x]))


def _remembered(x: Any, word_of: Callable[[Any], bytes]) -> bytes:
    entry = _known.get(id(x))
    if entry is None or entry[0] is not x:
        if len(_known) > MAX_CACHED:
            _known.clear()
        entry = _known[id(x)] = x, word_of(x)
    return entry[1]


def with_armature(joint: Joint, armature: Any) -> Joint:
    """The joint with a symbol as armature, if it has one."""
    if not has_symbols(armature):
        return joint
    clone = object.__new__(type(joint))
    clone.__dict__.update(vars(joint), armature=armature)
    return clone


def copy_of_robot(copies: Any, x: Mechanism, path: str) -> Mechanism:
    """A robot whose model array, parameters and placements are symbols; its structure is part of the signature."""
    if copies.constant:
        return copies._begin(x, x, constants(x))
    pattern = structure(x._model)
    clone = object.__new__(type(x)) if copies.load else x
    parts = (
        joint_constants(x.joints),
        constants(x.frames),
        x.gravity.tobytes(),
        x.parents,
        x.body_names,
        constants(x.couplings),
    )
    copies._begin(x, clone, pattern.tobytes(), *parts)
    own = dict(vars(x)) if clone is x else clone.__dict__
    own.update(vars(x))
    open_places = np.isnan(pattern)
    numbers = copies._numbers(x._model[open_places])
    for name in ("parameters", "placements"):
        numbers_of_links = copies._numbers(getattr(x, name))
        own[name] = entered(numbers_of_links) if copies.load else numbers_of_links
    for name in sorted(vars(x).keys() - UNCHANGING[Mechanism]):  # attributes of a subclass
        copies.signature.append(name)
        own[name] = copies.of(getattr(x, name), f"{path}.{name}")
    copies.kinds[type(x)] = None
    if copies.load is None:
        return clone
    model = pattern.astype(object)
    model[open_places] = numbers
    own["_model"], own["_code"] = model, Code(model, pattern)
    own["joints"] = tuple(map(with_armature, x.joints, tree.body_records(model)[:, tree.ARMATURE]))
    return clone
