"""`Actuator`: the base class of everything between command and joint torque."""

from __future__ import annotations

from typing import Any

import numpy as np

from geomctrl.control.subclass_checks import require_arguments, require_together
from geomctrl.described import ReadableRepr
from geomctrl.errors import ArgumentError

SIGNATURES = {
    "inputs": "outputs",
    "start": "w",
    "torque": "t, u, w, x",
    "state_rate": "t, u, w, x",
    "speed": "w, x",
    "stored_energy": "x",
    "storage_power": "t, u, w, x",
}


class Actuator(ReadableRepr):
    """Base class of actuators: one link of the chain from command to joint torque, with inputs u and outputs tau.

    A `Plant` takes a list of actuators, ordered from the command to the joints. The outputs of one are the inputs of
    the next, and the outputs of the last are the joint torques (nv,). Power is conserved through the speeds: a
    lossless link has u . (speed at its input) = tau . w, where w (outputs,) is the speed conjugate to its outputs. At
    the last link w is the joint velocity v [rad/s for N m, m/s for N]. A subclass follows these rules:

    1. `torque(t, u, w, x)` returns tau (outputs,) for inputs u (inputs,), speeds w (outputs,) and the actuator's state
       x (None without state). It has no side effects and modifies no argument, as integrators call it at their stages.
    2. `inputs(outputs)` returns the number of inputs for a number of outputs, by default the same number. It raises
       ArgumentError if the actuator can not have that many outputs.
    3. For a continuous state on R^n override both `start(w)`, the initial state (n,) at speed w, and
       `state_rate(t, u, w, x)`, its time derivative.
    4. `speed(w, x)` returns the speed conjugate to the inputs (inputs,), which earlier links see; default w. A link
       that multiplies torque by B multiplies speed by B^T. A link with its own rotor returns the rotor's speed.
    5. To store energy override both `stored_energy(x)` [J] and `storage_power(t, u, w, x)` [W], the power into the
       store: input power minus the power delivered to the joints and the losses. The energy balance of a run checks
       one against the other.
    6. Memory that changes at samples only (a delay, backlash, a discrete rate limit) is not a state x. Use a
       subclass of `Sampled` for it.

    Creating a subclass that overrides only one method of a pair raises ArgumentError. To be compiled, methods use
    Python, numpy and math on numbers and arrays, as a control law does.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> class LossyGear(gc.actuators.Actuator):
    ...     def torque(self, t, u, w, x):
    ...         return 0.9 * u
    >>> plant = gc.Plant(gc.models.cart_pole(), actuators=LossyGear())
    >>> plant.actuators[0].torque(0.0, 10.0, 0.0, None)
    9.0
    >>> spring = gc.actuators.SeriesElasticity(1e4, rotor=0.1)
    >>> x, u, w = spring.start(np.zeros(1)), np.ones(1), np.zeros(1)
    >>> spring.inputs(1), spring.speed(w, x), spring.stored_energy(x), spring.storage_power(0.0, u, w, x)
    (1, array([0.]), 0.0, 0.0)
    """

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        require_together(cls, "start", "state_rate", why="the initial value of a state and its time derivative")
        require_together(cls, "stored_energy", "storage_power", why="an energy and the power that flows into it")
        for name, arguments in SIGNATURES.items():
            require_arguments(cls, name, arguments)

    def inputs(self, outputs: int) -> int:
        """Return the number of inputs (rule 2).

        Parameters
        ----------
        outputs : int
            Number of outputs.

        Returns
        -------
        int
        """
        return outputs

    def start(self, w: np.ndarray) -> np.ndarray | None:
        """Initial state (n,) at speed w; None without state (rule 3)."""
        return None

    def torque(self, t: float, u: np.ndarray, w: np.ndarray, x: np.ndarray | None) -> np.ndarray:
        """Return the outputs (rule 1).

        Parameters
        ----------
        t : float
            Time [s].
        u : array (inputs,)
            Inputs of the actuator.
        w : array (outputs,)
            Speeds of the outputs [rad/s, m/s].
        x : array (n,) or None
            State of the actuator.

        Returns
        -------
        array (outputs,)
            Torques for joints [N m, N], or the inputs of the next actuator.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> drive = gc.actuators.CurrentDrive(torque_constant=0.1, gear_ratio=50.0)
        >>> drive.torque(0.0, np.array([2.0]), np.zeros(1), None)  # 2 A
        array([10.])
        """
        raise NotImplementedError(f"{type(self).__name__}.torque")

    def state_rate(self, t: float, u: np.ndarray, w: np.ndarray, x: Any) -> np.ndarray:
        """Return the time derivative of the actuator's state (rule 3).

        Parameters
        ----------
        t : float
            Time [s].
        u : array (inputs,)
            Inputs of the actuator.
        w : array (outputs,)
            Speeds of the outputs [rad/s, m/s].
        x : array (n,) or None
            State of the actuator.

        Returns
        -------
        array (n,)

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> lag = gc.actuators.Lag(0.01)
        >>> lag.state_rate(0.0, np.array([1.0]), np.zeros(1), np.zeros(1))
        array([100.])
        """
        raise NotImplementedError(f"{type(self).__name__}.state_rate")

    def speed(self, w: np.ndarray, x: np.ndarray | None) -> np.ndarray:
        """Return the speeds conjugate to the inputs (rule 4).

        Parameters
        ----------
        w : array (outputs,)
            Speeds of the outputs [rad/s, m/s].
        x : array (n,) or None
            State of the actuator.

        Returns
        -------
        array (inputs,)
        """
        return w

    def stored_energy(self, x: Any) -> float:
        """Return the energy stored in the actuator (rule 5).

        Parameters
        ----------
        x : array (n,) or None
            State of the actuator.

        Returns
        -------
        float
            [J].
        """
        return 0.0

    def storage_power(self, t: float, u: np.ndarray, w: np.ndarray, x: Any) -> float:
        """Return the power into the stored energy (rule 5).

        Parameters
        ----------
        t : float
            Time [s].
        u : array (inputs,)
            Inputs of the actuator.
        w : array (outputs,)
            Speeds of the outputs [rad/s, m/s].
        x : array (n,) or None
            State of the actuator.

        Returns
        -------
        float
            [W].
        """
        return 0.0


def require_sizes(outputs: int, **numbers: np.ndarray) -> int:
    """Return `outputs` if every number has shape () or (outputs,); raise ArgumentError otherwise."""
    for name, x in numbers.items():
        if x.shape not in ((), (outputs,)):
            raise ArgumentError(f"{name}: expected a number or ({outputs},) numbers, got shape {x.shape}")
    return outputs
