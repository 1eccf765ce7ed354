"""What a friction model is."""

from __future__ import annotations

from typing import Any

import numpy as np

from geomctrl.arguments import count, number, per_coordinate
from geomctrl.control.subclass_checks import overrides, require_arguments, require_together
from geomctrl.described import Described
from geomctrl.errors import ArgumentError
from geomctrl.tracing.numbers import scalar

SIGNATURES = {
    "torque": "v, load, x",
    "start": "v",
    "state_rate": "v, load, x",
    "stored_energy": "x",
    "dissipation": "v, load, x",
    "columns": "v, load",
    "parameters": "nv",
    "check": "nv",
}


class FrictionModel(Described):
    """The friction of a plant's joints. The implementer's contract:

    `Plant(friction=...)` subtracts `torque` from the torques at the joints. v (nv,) are the joint velocities [rad/s,
    m/s], load (nv,) the torques that the actuators transmit to the joints [N m, N], and x (n,) is the model's own
    state, None without one.

    1. `torque(v, load, x)` returns the friction torques (nv,), positive where they oppose a positive velocity. It has
       no side effects and writes on none of its arguments: an integrator calls it at its stages.
    2. A model with a continuous state on R^n overrides two: `start(v)`, the state (n,) with which it begins at
       velocities v, and `state_rate(v, load, x)`, its rate. The state is a part of the plant's: see `Plant`.
    3. A model that stores energy overrides two: `stored_energy(x)` [J] and `dissipation(v, load, x)` [W], the power
       that becomes heat: v . torque = rate of stored energy + dissipation. The energy monitor of a run checks the one
       against the other. Without a store, the dissipation is v . torque.
    4. A model that is linear in its parameters overrides two: `columns(v, load)` (..., nv, p) and `parameters(nv)`
       (p,) with torque = columns @ parameters. Both velocities and loads may have leading batch axes. Adaptive
       controllers and `identification.friction_columns` use them.
    5. `check(nv)` raises ArgumentError unless the model fits nv velocity coordinates. The default accepts a model whose
       public attributes are numbers, or arrays (nv,).
    6. To be compiled, methods use Python, numpy and math on numbers and arrays, as a controller's law does.
       Attributes are set by `__init__` and never change.

    The class of a model is checked when it is created: methods that belong together, and their arguments.
    """

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        require_together(cls, "start", "state_rate", why="a state's beginning and its rate")
        require_together(cls, "stored_energy", "dissipation", why="an energy and what is lost of it")
        require_together(cls, "columns", "parameters", why="torque = columns @ parameters")
        for name, arguments in SIGNATURES.items():
            require_arguments(cls, name, arguments)

    def torque(self, v: np.ndarray, load: Any = None, x: Any = None) -> np.ndarray:
        """The friction torques (nv,), positive where they oppose a positive velocity; rule 1."""
        raise NotImplementedError(f"{type(self).__name__}.torque")

    def start(self, v: np.ndarray) -> np.ndarray | None:
        """The model's own state (n,) where the joints move at v, None without one; rule 2."""
        return None

    def state_rate(self, v: np.ndarray, load: Any, x: Any) -> np.ndarray:
        """The rate (n,) of the model's own state; rule 2."""
        raise NotImplementedError(f"{type(self).__name__}.state_rate")

    def stored_energy(self, x: Any) -> float:
        """What the model stores [J]; rule 3."""
        return 0.0

    def dissipation(self, v: np.ndarray, load: Any = None, x: Any = None) -> float:
        """The power that becomes heat [W]; rule 3."""
        return self.power(v, load, x)

    def columns(self, v: np.ndarray, load: Any = None) -> np.ndarray:
        """The matrix (..., nv, p) that gives the torque of parameters (p,); rule 4."""
        raise ArgumentError(f"friction: {type(self).__name__} is not linear in its parameters")

    def parameters(self, nv: int) -> np.ndarray:
        """The parameters (p,) of a model that is linear in them; rule 4."""
        raise ArgumentError(f"friction: {type(self).__name__} is not linear in its parameters")

    def check(self, nv: int) -> None:
        """Raise ArgumentError unless the model fits nv velocity coordinates; rule 5."""
        count("nv", nv)
        for name, x in vars(self).items():
            if not name.startswith("_") and isinstance(x, np.ndarray) and x.shape not in ((), (nv,)):
                raise ArgumentError(f"friction: {name}: expected a number or ({nv},) numbers, got shape {x.shape}")

    # --- what follows from the methods above -----------------------------------------------------------------------

    def power(self, v: np.ndarray, load: Any = None, x: Any = None) -> float:
        """The power that friction takes from the joints, v . torque [W]."""
        return scalar((v * self.torque(v, load, x)).sum())

    @property
    def stores_energy(self) -> bool:
        """Whether it stores energy."""
        return overrides(type(self), FrictionModel, "stored_energy")

    @property
    def is_linear(self) -> bool:
        """Whether its torque is columns @ parameters."""
        return overrides(type(self), FrictionModel, "columns")


def check_coefficients(model: Any, *names: str) -> None:
    """Raise ArgumentError unless these attributes of a frozen model are >= 0, a number or (nv,), and its `smoothing`
    is positive; set them as floats."""
    for name in names:
        x = per_coordinate(name, getattr(model, name), "a friction coefficient >= 0", lambda x: x >= 0.0)
        object.__setattr__(model, name, x)
    smoothing = number("smoothing", model.smoothing, "a positive speed", lambda x: x > 0.0)
    object.__setattr__(model, "smoothing", smoothing)


def stacked(model: FrictionModel, nv: int, *names: str) -> np.ndarray:
    """These attributes of a model, (nv,) each, one behind the other."""
    model.check(nv)
    return np.concatenate([np.broadcast_to(getattr(model, name), nv) for name in names])


def diagonal(x: Any) -> np.ndarray:
    """(..., n, n) with x (..., n) on the diagonals."""
    return np.diag(x) if np.ndim(x) == 1 else x[..., None] * np.eye(np.shape(x)[-1])


def friction_of_law(friction: Any, nv: int, *, linear: bool = False) -> FrictionModel | None:
    """The friction that a controller compensates, or adapts if `linear`; raises ArgumentError for anything else."""
    if friction is None:
        return None
    if not isinstance(friction, FrictionModel):
        raise ArgumentError(f"friction: expected a geomctrl.Friction or None, got {friction!r:.60}")
    friction.check(nv)
    if friction.start(np.zeros(nv)) is not None:
        raise ArgumentError(
            f"friction: expected a model without a state, as a controller has none for it, got {friction!r:.60}"
        )
    if linear and not friction.is_linear:
        raise ArgumentError(f"friction: expected a model that is linear in its parameters, got {friction!r:.60}")
    if linear:
        try:
            friction.columns(np.zeros(nv))
        except TypeError:
            raise ArgumentError(
                f"friction: expected a model that does not depend on the load, got {friction!r:.60}"
            ) from None
    return friction
