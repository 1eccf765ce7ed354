"""Any controller of the library as the loop of a log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from geomctrl.control.compiled.law_slopes import law_slopes
from geomctrl.control.contracts import Command, Controller, Desired, started, wants_measurements
from geomctrl.errors import ArgumentError, SimulationError
from geomctrl.robot import Robot

from .loop import LoopSlopes, Running, check_times
from .references import along


@dataclass(frozen=True, eq=False)
class ControllerLoop:
    """A `Controller` that is sampled every `period` seconds, its commands acting `delay` seconds later.

    It is told the simulated q and v, and its state is a vector or None. Its own numbers are known: what is estimated is
    the robot and the delay. Fits by sensitivities ask for derivatives of the law, which needs one that can be compiled
    (`gc.compile`). torque: logs hold what was "commanded" or "applied".
    """

    controller: Controller
    period: float
    delay: float = 0.0
    torque: str = "commanded"

    def __post_init__(self):
        if not isinstance(self.controller, Controller) or isinstance(self.controller, type):
            raise ArgumentError(f"controller: expected a geomctrl.Controller, got {self.controller!r:.60}")
        if getattr(self.controller, "group", None) is not None:
            raise ArgumentError("controller: expected one whose state is a vector or None, got one on a group")
        if wants_measurements(self.controller):
            raise ArgumentError("controller: expected one of q and v, got one that wants measurements")
        check_times(self)

    @property
    def gains(self) -> dict[str, np.ndarray]:
        """None."""
        return {}

    def changed(self, **changes: Any) -> ControllerLoop:
        """The same loop but for these fields."""
        return replace(self, **changes)

    def desired(self, t: np.ndarray, n: int) -> Desired | None:
        """The controller's reference at times (N,), where it has one."""
        reference = getattr(self.controller, "reference", None)
        return None if reference is None else along(reference, t, n)

    def running(self, robot: Robot, t: np.ndarray) -> Running:
        """The loop at samples t (N,), for fits."""
        return _Law(self, robot, t)


class _Law:
    def __init__(self, loop: ControllerLoop, robot: Robot, t: np.ndarray):
        self.loop, self.robot, self.t = loop, robot, t
        self.law, self.n = loop.controller, robot.nv
        z0 = started(self.law, robot)
        self.stateless = z0 is None
        self.states = 0 if z0 is None else np.size(z0)
        if z0 is not None and np.ndim(z0) != 1:
            raise ArgumentError(f"controller: expected a state that is a vector, got shape {np.shape(z0)}")
        self._slopes: Any = None

    def start(self, q0, v0):
        z0 = started(self.law, self.robot, q0, v0)
        return np.zeros(0) if z0 is None else np.asarray(z0, float), np.zeros((self.states, 2 * self.n))

    def command(self, k, q, v, z):
        given = self.law(float(self.t[k]), q, v, None if self.stateless else z)
        if not isinstance(given, Command) or np.shape(given.tau) != (self.n,):
            raise SimulationError(f"controller: expected a Command of {self.n} torques, got {given!r:.80}")
        after = z if given.z_next is None else given.z_next
        return given.tau, after if given.z_rate is None else after + self.loop.period * given.z_rate

    def slopes(self, first, q, v, z, gains):
        if self._slopes is None:
            self._slopes = law_slopes(self.law, self.robot)
        N, n, m = len(q), self.n, self.states
        command, state = np.zeros((N, n, 2 * n + m)), np.zeros((N, m, 2 * n + m))
        for k in range(N):
            found = self._slopes(float(self.t[first + k]), q[k], v[k], None if self.stateless else z[k])
            command[k] = found["tau"]
            if m:
                state[k] = found.get("z_next", np.eye(m, 2 * n + m, 2 * n))
                state[k] += self.loop.period * found.get("z_rate", 0.0)
        return LoopSlopes(command, state, np.zeros((N, n, 0)), np.zeros((N, m, 0)))
