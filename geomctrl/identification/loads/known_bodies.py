"""A robot whose parameters are known, friction included: of an estimate, of a file robot.json, or as its model says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomctrl.arguments import instance
from geomctrl.errors import ArgumentError
from geomctrl.identification.estimators import Estimate
from geomctrl.identification.model.columns import Curve
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.robot import Robot

SYMBOLS = {"fv": "viscous", "fc": "coulomb", "fo": "offset", "Ir": "rotor", "ks": "springs"}
FRICTION = ("viscous", "coulomb", "offset")


@dataclass(frozen=True, eq=False)
class Known:
    """Parameters x (size,) of a model, and in words where they are from."""

    model: RegressorModel
    x: np.ndarray
    source: str


def known(robot: Robot, identified: Estimate | Mapping[str, Any] | None, model: RegressorModel | None = None) -> Known:
    """identified: an Estimate of this robot; what `load_extra` reads of its robot.json; None: the robot's own inertias,
    damping, friction and armatures, in `model`. Its model has viscous and Coulomb friction and offsets, at least of 0.
    Raises ArgumentError.
    """
    found = _known(robot, identified, model)
    model = found.model.with_options(**{kind: True for kind in FRICTION if not len(found.model.acts[kind])})
    x = np.zeros(model.size)
    x[[model.names.index(name) for name in found.model.names]] = found.x
    return Known(model, x, found.source)


def _known(robot: Robot, identified: Any, model: RegressorModel | None) -> Known:
    if identified is None:
        model = RegressorModel(robot) if model is None else model
        return Known(model, model.prior, "as its model says")
    if model is not None:
        raise ArgumentError("model: the one of `identified` is used; give one of the two")
    if isinstance(identified, Estimate):
        if identified.model.robot.joint_names != robot.joint_names:
            raise ArgumentError(f"identified: expected an estimate of {robot.name!r}, got {identified!r:.80}")
        return Known(identified.model, identified.x, f"identified by {identified.method!r}")
    extra = instance("identified", identified, Mapping, "an Estimate, what load_extra reads of a robot.json, or None")
    return _of_extra(robot, extra)


def _of_extra(robot: Robot, extra: Mapping[str, Any]) -> Known:
    values = extra.get("identified")
    if not isinstance(values, Mapping):
        raise ArgumentError(
            "identified: expected what geomctrl identify keeps in robot.json, with friction under 'identified', got"
            f" {', '.join(map(repr, extra)) or 'nothing'}"
        )
    acts: dict[str, Any] = {kind: [] for kind in SYMBOLS.values()}
    for name in values:
        match = re.fullmatch(r"(fv|fc|fo|Ir|ks)(\d+)", name)
        if match:
            acts[SYMBOLS[match[1]]].append(int(match[2]) - 1)
    curves = [Curve(**c) for c in extra.get("curves", ())]
    transmission = extra.get("transmission")
    if transmission is not None and np.array_equal(transmission, np.eye(robot.nv)):
        transmission = None  # actuators are then called after joints
    model = RegressorModel(
        robot, **acts, curves=curves, transmission=transmission, smoothing=extra.get("smoothing", 0.01)
    )
    own = [name for name in values if name not in model.names[model.inertial :]]
    if own:
        raise ArgumentError(
            f"identified: {own[0]!r} is a column of one's own, whose torque robot.json does not hold: give the estimate"
        )
    x = model.prior
    x[model.inertial :] = [values[name] for name in model.names[model.inertial :]]
    return Known(model, x, f"identified by {extra.get('method')!r} from {extra.get('log')!r}")
