"""`PlantState`: the methods that a subclass of `Plant` with a state or an energy store of its own overrides."""

from __future__ import annotations

from typing import Any

import numpy as np


class PlantState:
    """Base class of `Plant`, without a state and without stored energy."""

    def start(self, q0: np.ndarray, v0: np.ndarray) -> np.ndarray | None:
        """Return the initial state of a subclass (rule 2).

        Parameters
        ----------
        q0, v0 : ndarray, shape (nq,), (nv,)
            Initial configuration and velocity of the robot.

        Returns
        -------
        ndarray, shape (n,), or None
            None without a state.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> gc.Plant(gc.models.two_link()).start(np.zeros(2), np.zeros(2)) is None  # `state_rate` has one with a state
        True
        """
        return None

    def state_rate(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, x: Any) -> Any:
        """Return the time derivative of a subclass's state (rule 2).

        Parameters
        ----------
        t : float
            Time [s].
        q, v, tau : ndarray, shape (nq,), (nv,), (nv,)
            State, and torques [N m or N] of the actuators.
        x : ndarray, shape (n,), or None
            State of the subclass.

        Returns
        -------
        ndarray, shape (n,), or None
            None without a state.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> class Filtered(gc.Plant):  # torques follow the command with a time constant of 10 ms
        ...     def start(self, q0, v0):
        ...         return np.zeros(2)
        ...
        ...     def state_rate(self, t, q, v, tau, x):
        ...         return (tau - x) / 0.01
        ...
        ...     def net_torque(self, t, q, v, tau, x):
        ...         return super().net_torque(t, q, v, x, x)
        >>> Filtered(gc.models.two_link()).state_rate(0.0, np.zeros(2), np.zeros(2), np.ones(2), np.zeros(2))
        array([100., 100.])
        """
        return None

    def stored_energy(self, q: np.ndarray, x: Any) -> float:
        """Return the energy that a subclass stores in its state or in a potential of q (rule 3).

        Parameters
        ----------
        q : ndarray, shape (nq,)
            Configuration [rad, m].
        x : ndarray, shape (n,), or None
            State of a subclass.

        Returns
        -------
        float
            [J].

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> class Spring(gc.Plant):  # 10 N m/rad at joint 1
        ...     def net_torque(self, t, q, v, tau, x):
        ...         return tau - np.array([10.0 * q[0], 0.0])
        ...
        ...     def stored_energy(self, q, x):
        ...         return 5.0 * q[0] ** 2
        ...
        ...     def storage_power(self, t, q, v, tau, x):
        ...         return 10.0 * q[0] * v[0]
        >>> plant, law = Spring(gc.models.two_link()), lambda t, q, v, z: gc.Command(-v)
        >>> gc.simulate(plant, law, [0.1, 0.0], [0.0, 0.0], t_end=0.1, dt=1e-3).monitors["energy"].verdict
        'held'
        """
        return 0.0

    def storage_power(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, x: Any) -> float:
        """Return the power into the energy that a subclass stores (rule 3).

        Parameters
        ----------
        t : float
            Time [s].
        q, v, tau : ndarray, shape (nq,), (nv,), (nv,)
            State, and torques [N m or N] of the actuators.
        x : ndarray, shape (n,), or None
            State of the subclass.

        Returns
        -------
        float
            [W].

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> gc.Plant(gc.models.two_link()).storage_power(0.0, np.zeros(2), np.ones(2), np.zeros(2), None)
        0.0
        """
        return 0.0
