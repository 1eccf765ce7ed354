"""Actuators with memories that are renewed at the steps of a run: transport delay, rate limits in steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import number, per_coordinate

from .actuator import Actuator, require_sizes


class Sampled(Actuator):
    """A link whose output is made at each step of a run, and held to the next; the first links of a chain only.

    `delay` [s] is how much later it acts; its output before the run is zero. Beyond the contract of `Actuator`, whose
    `torque` passes on what it is given: `memory(inputs)` is what it remembers at first, (m,) numbers, and
    `made(u, memory, period)` returns (output (inputs,), the memory until the next step), traced as sensors are.
    A run with one needs `control_dt`.
    """

    delay = 0.0

    def torque(self, t, u, w, x):
        return u

    def memory(self, inputs: int) -> np.ndarray:
        """What the link remembers before the run (m,)."""
        return np.zeros(0)

    def made(self, u: Any, memory: Any, period: float) -> tuple[Any, Any]:
        """(the output (inputs,) of a step, the memory (m,) until the next)."""
        return u, memory


class TransportDelay(Sampled):
    """What it is commanded, `delay` [s] later; zero before the first command has arrived.

    A delay that is no multiple of the run's dt is interpolated between two steps, which is said once. Raises
    ArgumentError for a negative one.
    """

    def __init__(self, delay: float):
        self.delay = number("delay", delay, "seconds >= 0", lambda x: x >= 0.0)


class RateLimit(Sampled):
    """A command that changes by no more than rate dt in a step, from zero on; rate [N m/s, N/s] a number or one each.

    As a digital drive does it. `Lag(time_constant, rate)` is that of a drive that acts all the time.
    """

    def __init__(self, rate: ArrayLike):
        self.rate = per_coordinate("rate", rate, "a positive slope", lambda x: x > 0.0)

    def inputs(self, outputs: int) -> int:
        return require_sizes(outputs, rate=np.asarray(self.rate))

    def memory(self, inputs: int) -> np.ndarray:
        return np.zeros(inputs)

    def made(self, u: Any, memory: Any, period: float) -> tuple[Any, Any]:
        max_step = np.asarray(self.rate) * period
        u = memory + np.clip(u - memory, -max_step, max_step)
        return u, u
