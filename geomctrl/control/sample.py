"""The closed loop at the beginning of a step, as monitors and measures see it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from .contracts import Command, Desired, desired_at
from .plant import Plant


class State(NamedTuple):
    """The state of a closed loop: of the robot, the controller, the plant's own parts, and the work."""

    q: np.ndarray
    v: np.ndarray
    z: Any  # of the controller, None without one
    x: Any  # of the plant, None without one
    work: float  # energy fed in since the start [J]
    y: np.ndarray  # all of these as one element of the loop's group


class Sample(NamedTuple):
    """The closed loop at the beginning of a step: what a monitor sees, to be read only.

    Attributes
    ----------
    t : float
        The time [s].
    state : State
        q, v, z, x and work, which are attributes of the sample too, and `y`, the same as one array.
    command : Command
        What the controller has returned last; its `tau` and `signals` are attributes of the sample too.
    plant : Plant
        As it is now.
    applied : array (nv,)
        The joint torques that the plant's actuators make of the command.
    changed : bool
        Whether the true robot changed at this sample.
    reference : Reference or None
        The controller's; `desired` is its value at t.
    measured : dict
        By the plant's sensors. All else here is the truth.
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
