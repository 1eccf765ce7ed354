"""`CombinedFriction`: the sum of friction models, and the interpretation of `Plant(friction=...)`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from geomctrl.arguments import checked, is_a, listed, shown
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot

from .coulomb import Friction
from .model import FrictionModel


class CombinedFriction(FrictionModel):
    """The sum of friction models, whose state concatenates theirs. `Plant(friction=[...])` creates it.

    models: FrictionModels, at least one; nv: number of velocity coordinates.
    """

    def __init__(self, models: Sequence[FrictionModel], nv: int):
        self.models = tuple(listed("models", models))
        if not self.models or not all(is_a(model, FrictionModel) for model in self.models):
            raise ArgumentError(f"models: expected FrictionModels, at least one, got {shown(models)}")
        self.check(nv)
        ends = np.cumsum([0, *(state_size(model, nv) for model in self.models)]).tolist()
        self._parts = tuple((a, b) if b > a else None for a, b in pairwise(ends))

    def _states(self, x: Any) -> list[Any]:
        return [None if part is None else x[slice(*part)] for part in self._parts]

    def torque(self, v, load=None, x=None):
        return sum(model.torque(v, load, own) for model, own in zip(self.models, self._states(x)))

    def start(self, v):
        states = [np.asarray(x) for model in self.models if (x := model.start(v)) is not None]
        return np.concatenate(states) if states else None

    def state_rate(self, v, load, x):
        rates = [model.state_rate(v, load, own) for model, own in zip(self.models, self._states(x)) if own is not None]
        return np.concatenate(rates)

    def stored_energy(self, x):
        return sum(model.stored_energy(own) for model, own in zip(self.models, self._states(x)) if model.stores_energy)

    def dissipation(self, v, load=None, x=None):
        return sum(model.dissipation(v, load, own) for model, own in zip(self.models, self._states(x)))

    def columns(self, v, load=None):
        return np.concatenate([model.columns(v, load) for model in self.models], axis=-1)

    def parameters(self, nv):
        return np.concatenate([model.parameters(nv) for model in self.models])

    def check(self, nv):
        for model in self.models:
            model.check(nv)

    @property
    def stores_energy(self) -> bool:
        return any(model.stores_energy for model in self.models)

    @property
    def is_linear(self) -> bool:
        return all(model.is_linear for model in self.models)


def state_size(friction: FrictionModel | None, nv: int) -> int:
    """The number of states of a model. Raises ArgumentError if a method returns an array of the wrong shape."""
    if friction is None:
        return 0
    name, zero = f"friction: {type(friction).__name__}", np.zeros(nv)
    start = friction.start(zero)
    x = None if start is None else checked(f"{name}.start(v)", start, ())
    if x is not None and (x.ndim != 1 or not x.size):
        raise ArgumentError(f"{name}.start(v): expected a vector, got shape {x.shape}")
    with np.errstate(all="ignore"):  # only the shapes matter; a formula may divide by the zero velocity
        results = {"torque": (friction.torque(zero, zero, x), (nv,))}
        if x is not None:
            results["state_rate"] = friction.state_rate(zero, zero, x), x.shape
    for method, (result, shape) in results.items():
        if np.shape(result) != shape:
            raise ArgumentError(f"{name}.{method}(v, load, x): expected shape {shape}, got {np.shape(result)}")
    return 0 if x is None else len(x)


def friction_of(friction: Any, robot: Robot) -> FrictionModel | None:
    """The friction model of `Plant(friction=...)` for this robot. Raises ArgumentError."""
    if friction is None:
        return None
    if isinstance(friction, str) and friction == "model":
        exists = robot.damping.any() or robot.friction.any()
        return Friction(robot.damping, robot.friction) if exists else None
    if not is_a(friction, FrictionModel):
        if isinstance(friction, str):
            models = []
        else:
            try:
                models = listed("friction", friction)
            except ArgumentError:
                models = []
        if not models or not all(isinstance(model, FrictionModel) for model in models):
            raise ArgumentError(
                "friction: expected a geomctrl.Friction or another FrictionModel, a list of them, 'model' or None, got"
                f" {shown(friction)}"
            )
        friction = models[0] if len(models) == 1 else CombinedFriction(models, robot.nv)
    friction.check(robot.nv)
    return friction
