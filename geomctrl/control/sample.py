"""`Sample` and `State`: the closed loop at the beginning of a step, as monitors and measures see it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from .contracts import Command, Desired, desired_at
from .plant import Plant


class State(NamedTuple):
    """The state of a closed loop: robot, controller, plant and work."""

    q: np.ndarray
    v: np.ndarray
    z: Any  # of the controller, None without one
    x: Any  # of friction, actuators and plant subclass, None without one
    work: float  # energy supplied since the start [J]
    y: np.ndarray  # all of the above as one element of the loop's group


class Sample(NamedTuple):
    """The closed loop at the beginning of a step, read-only.

    Attributes
    ----------
    t : float
        Time [s].
    state : State
        q, v, z, x and work, which are also attributes of the sample, and `y`, all of them as one array.
    command : Command
        The last return value of the controller. Its `tau` and `signals` are also attributes of the sample.
    plant : Plant
        The plant at this time.
    applied : array (nv,)
        Joint torques that the actuators produce from the command [N m, N].
    changed : bool
        Whether the true robot changed at this sample.
    reference : Reference or None
        The controller's reference; `desired` is its value at t.
    measured : mapping of str to array
        Outputs of the plant's sensors. All other attributes are true values.

    Examples
    --------
    >>> import geomctrl as gc
    >>> class Power(gc.measures.Measure):
    ...     name, description, units = "power", "largest joint power", "W"
    ...
    ...     def start(self, plant, controller):
    ...         self.largest = 0.0
    ...
    ...     def add(self, sample):  # receives a Sample
    ...         self.largest = max(self.largest, abs(sample.v @ sample.applied))
    ...
    ...     def value(self):
    ...         return float(self.largest)
    >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.0, 0.0], kp=50.0, kd=10.0)
    >>> run = gc.simulate(law.robot, law, [0.1, 0.0], [0.0, 0.0], t_end=0.01, dt=1e-3)
    >>> Power()(run) > 0.0
    True
    """

    t: float
    state: State
    command: Command
    plant: Plant
    applied: Any = None
    changed: bool = False
    reference: Any = None
    measured: Mapping[str, Any] = MappingProxyType({})

    @property
    def q(self) -> np.ndarray:
        return self.state.q

    @property
    def v(self) -> np.ndarray:
        return self.state.v

    @property
    def z(self) -> Any:
        return self.state.z

    @property
    def x(self) -> Any:
        return self.state.x

    @property
    def work(self) -> float:
        return self.state.work

    @property
    def tau(self) -> np.ndarray:
        return self.command.tau

    @property
    def signals(self) -> Mapping[str, Any]:
        return self.command.signals

    @property
    def desired(self) -> Desired | None:
        """The desired motion at t, evaluated once for law, monitors and record; None without a reference."""
        return None if self.reference is None else desired_at(self.reference, self.t)
