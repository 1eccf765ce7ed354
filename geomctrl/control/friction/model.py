"""`FrictionModel`: the base class of joint friction models."""

from __future__ import annotations

from typing import Any

import numpy as np

from geomctrl.arguments import count, is_a, number, per_coordinate, shown
from geomctrl.control.subclass_checks import overrides, require_arguments, require_together
from geomctrl.described import ReadableRepr
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


class FrictionModel(ReadableRepr):
    """Base class of joint friction models. `Plant(friction=...)` subtracts `torque` from the torques at the joints.

    v (nv,) are the joint velocities [rad/s, m/s], load (nv,) the torques that the actuators transmit to the joints
    [N m, N], and x (n,) is the state of the model, None without one. A subclass follows these rules:

    1. `torque(v, load, x)` returns the friction torques (nv,), positive if they oppose a positive velocity. It has no
       side effects and modifies no argument, because an integrator calls it at its stages.
    2. For a continuous state on R^n override both `start(v)`, the initial state (n,) at velocities v, and
       `state_rate(v, load, x)`, its time derivative. The state is part of the plant's: see `Plant`.
    3. To store energy override both `stored_energy(x)` [J] and `dissipation(v, load, x)` [W], the power that becomes
       heat: v . torque = rate of stored energy + dissipation. The energy monitor of a run checks one against the other.
       Without stored energy the dissipation is v . torque.
    4. If the model is linear in its parameters override both `columns(v, load)` (..., nv, p) and `parameters(nv)` (p,)
       with torque = columns @ parameters. Velocities and loads may have leading batch axes. Adaptive controllers and
       `identification.RegressorModel(columns=)` use them.
    5. `check(nv)` raises ArgumentError unless the model fits nv velocity coordinates. The default accepts a model whose
       public attributes are numbers or arrays (nv,).
    6. To be compiled, methods use Python, numpy and math on numbers and arrays, as a control law does. Attributes are
       set in `__init__` and never change.

    Creating a subclass that overrides only one method of a pair, or changes arguments, raises ArgumentError.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> class Quadratic(gc.friction.FrictionModel):
    ...     def __init__(self, drag):
    ...         self.drag = drag  # N m s^2/rad^2
    ...
    ...     def torque(self, v, load=None, x=None):
    ...         return self.drag * v * np.abs(v)
    >>> plant = gc.Plant(gc.models.two_link(), friction=Quadratic(0.1))
    >>> plant.friction.torque(np.array([2.0, -1.0]))
    array([ 0.4, -0.1])
    """

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        require_together(cls, "start", "state_rate", why="the initial value of a state and its time derivative")
        require_together(cls, "stored_energy", "dissipation", why="an energy and its loss")
        require_together(cls, "columns", "parameters", why="torque = columns @ parameters")
        for name, arguments in SIGNATURES.items():
            require_arguments(cls, name, arguments)

    def torque(self, v: np.ndarray, load: Any = None, x: Any = None) -> np.ndarray:
        """Return the friction torques (rule 1).

        Parameters
        ----------
        v : array (nv,)
            Joint velocities [rad/s, m/s].
        load : array (nv,), optional
            Torques that the actuators transmit to the joints [N m, N].
        x : array (n,), optional
            State of the model.

        Returns
        -------
        array (nv,)
            [N m, N], positive if they oppose a positive velocity.
        """
        raise NotImplementedError(f"{type(self).__name__}.torque")

    def start(self, v: np.ndarray) -> np.ndarray | None:
        """Return the initial state (rule 2).

        Parameters
        ----------
        v : array (nv,)
            Joint velocities [rad/s, m/s].

        Returns
        -------
        array (n,) or None
            None for a model without a state.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> bristles = gc.friction.Dahl(stiffness=100.0, coulomb=2.0)
        >>> bristles.start(np.zeros(2))
        array([0., 0.])
        """
        return None

    def state_rate(self, v: np.ndarray, load: Any, x: Any) -> np.ndarray:
        """Return the time derivative of the state (rule 2).

        Parameters
        ----------
        v : array (nv,)
            Joint velocities [rad/s, m/s].
        load : array (nv,), optional
            Torques that the actuators transmit to the joints [N m, N].
        x : array (n,), optional
            State of the model.

        Returns
        -------
        array (n,)

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> bristles = gc.friction.Dahl(stiffness=100.0, coulomb=2.0)
        >>> bristles.state_rate(np.array([0.1]), None, np.zeros(1))
        array([0.1])
        """
        raise NotImplementedError(f"{type(self).__name__}.state_rate")

    def stored_energy(self, x: Any) -> float:
        """Return the stored energy (rule 3).

        Parameters
        ----------
        x : array (n,)
            State of the model.

        Returns
        -------
        float
            [J].

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> bristles = gc.friction.Dahl(stiffness=100.0, coulomb=2.0)
        >>> bristles.stored_energy(np.array([0.01]))
        0.005
        """
        return 0.0

    def dissipation(self, v: np.ndarray, load: Any = None, x: Any = None) -> float:
        """Return the power that becomes heat (rule 3).

        Parameters
        ----------
        v : array (nv,)
            Joint velocities [rad/s, m/s].
        load : array (nv,), optional
            Torques that the actuators transmit to the joints [N m, N].
        x : array (n,), optional
            State of the model.

        Returns
        -------
        float
            [W].

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> gc.Friction(viscous=0.5).dissipation(np.array([2.0]))
        2.0
        """
        return self.power(v, load, x)

    def columns(self, v: np.ndarray, load: Any = None) -> np.ndarray:
        """Return the matrix that maps the parameters to the torques, of a model that is linear in them (rule 4).

        Parameters
        ----------
        v : array (..., nv)
            Joint velocities [rad/s, m/s].
        load : array (..., nv), optional
            Torques that the actuators transmit to the joints [N m, N].

        Returns
        -------
        array (..., nv, p)
            torque = columns @ parameters.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> friction, v = gc.Friction(viscous=0.5, coulomb=2.0), np.array([1.0, -1.0])
        >>> bool(np.allclose(friction.columns(v) @ friction.parameters(2), friction.torque(v)))
        True
        """
        raise ArgumentError(f"friction: {type(self).__name__} is not linear in its parameters")

    def parameters(self, nv: int) -> np.ndarray:
        """Return the parameters of a model that is linear in them (rule 4).

        Parameters
        ----------
        nv : int
            Number of velocity coordinates.

        Returns
        -------
        array (p,)

        Examples
        --------
        >>> import geomctrl as gc
        >>> gc.Friction(viscous=0.5, coulomb=2.0).parameters(2)  # viscous, then Coulomb coefficients
        array([0.5, 0.5, 2. , 2. ])
        """
        raise ArgumentError(f"friction: {type(self).__name__} is not linear in its parameters")

    def check(self, nv: int) -> None:
        """Check that the model fits a robot (rule 5).

        Parameters
        ----------
        nv : int
            Number of velocity coordinates of the robot.

        Raises
        ------
        ArgumentError
            If it does not.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> friction = gc.Friction(viscous=0.5)
        >>> friction.check(7)  # one coefficient fits any number of joints
        """
        count("nv", nv)
        for name, x in vars(self).items():
            if not name.startswith("_") and isinstance(x, np.ndarray) and x.shape not in ((), (nv,)):
                raise ArgumentError(f"friction: {name}: expected a number or ({nv},) numbers, got shape {x.shape}")

    def power(self, v: np.ndarray, load: Any = None, x: Any = None) -> float:
        """Return the power that friction takes from the joints, v . torque.

        Parameters
        ----------
        v : array (nv,)
            Joint velocities [rad/s, m/s].
        load : array (nv,), optional
            Torques that the actuators transmit to the joints [N m, N].
        x : array (n,), optional
            State of the model.

        Returns
        -------
        float
            [W].

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> friction = gc.Friction(viscous=0.5)
        >>> friction.power(np.array([2.0]))
        2.0
        """
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
    """Validate attributes of a frozen model and store them as floats: >= 0, a number or (nv,).

    `smoothing`, if the model has it, must be positive. Raises ArgumentError."""
    for name in names:
        x = per_coordinate(name, getattr(model, name), "a friction coefficient >= 0", lambda x: x >= 0.0)
        object.__setattr__(model, name, x)
    if hasattr(model, "smoothing"):
        smoothing = number("smoothing", model.smoothing, "a positive speed", lambda x: x > 0.0)
        object.__setattr__(model, "smoothing", smoothing)


def stacked(model: FrictionModel, nv: int, *names: str) -> np.ndarray:
    """These attributes of a model as (nv,) each, concatenated."""
    model.check(nv)
    return np.concatenate([np.broadcast_to(getattr(model, name), nv) for name in names])


def diagonal(x: Any) -> np.ndarray:
    """(..., n, n) with x (..., n) on the diagonals."""
    return np.diag(x) if np.ndim(x) == 1 else x[..., None] * np.eye(np.shape(x)[-1])


def friction_of_law(friction: Any, nv: int, *, linear: bool = False) -> FrictionModel | None:
    """The friction that a controller compensates, or adapts if `linear`; raises ArgumentError for anything else."""
    if friction is None:
        return None
    if not is_a(friction, FrictionModel):
        raise ArgumentError(
            f"friction: expected a geomctrl.Friction or another FrictionModel, or None, got {shown(friction)}"
        )
    friction.check(nv)
    if friction.start(np.zeros(nv)) is not None:
        raise ArgumentError(
            f"friction: expected a model without a state, which a controller can not provide, got {shown(friction)}"
        )
    if linear and not friction.is_linear:
        raise ArgumentError(f"friction: expected a model that is linear in its parameters, got {shown(friction)}")
    if linear and needs_load(friction, nv):
        raise ArgumentError(f"friction: expected a model that does not depend on the load, got {shown(friction)}")
    return friction


def needs_load(friction: FrictionModel, nv: int) -> bool:
    """Whether the columns of a linear model depend on the load."""
    try:
        friction.columns(np.zeros(nv))
    except TypeError:
        return True
    return False
