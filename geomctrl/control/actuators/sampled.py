"""`Sampled`, `TransportDelay` and `RateLimit`: actuators that are updated at the steps of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import number, per_coordinate

from .actuator import Actuator, require_sizes


class Sampled(Actuator):
    """Base class of actuators whose output is computed at each step of a run and constant until the next.

    They come first in the list of actuators, and a run with one needs `control_dt`. `delay` [s] postpones the output,
    which is zero before the run. A subclass follows the rules of `Actuator`, where `torque` returns its input, and
    overrides:

    1. `memory(inputs)`, the initial memory (m,).
    2. `output(u, memory, period)`, which returns the output (inputs,) and the next memory. It is compiled like a
       sensor.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> class Average(gc.actuators.Sampled):  # of the last two commands
    ...     def memory(self, inputs):
    ...         return np.zeros(inputs)
    ...
    ...     def output(self, u, memory, period):
    ...         return (u + memory) / 2.0, u
    >>> plant = gc.Plant(gc.models.two_link(), actuators=Average())
    >>> law = lambda t, q, v, z: gc.Command(np.array([1.0, 0.0]))
    >>> run = gc.simulate(plant, law, [0.0, 0.0], [0.0, 0.0], t_end=0.003, dt=1e-3, control_dt=1e-3, monitors=[])
    >>> run.applied[:, 0]
    array([0.5, 1. , 1. , 1. ])
    """

    delay = 0.0

    def torque(self, t, u, w, x):
        return u

    def memory(self, inputs: int) -> np.ndarray:
        """Return the initial memory.

        Parameters
        ----------
        inputs : int
            Number of inputs.

        Returns
        -------
        array (m,)
        """
        return np.zeros(0)

    def output(self, u: Any, memory: Any, period: float) -> tuple[Any, Any]:
        """Compute the output of a step.

        Parameters
        ----------
        u : array (inputs,)
            Inputs.
        memory : array (m,)
            Memory from the step before.
        period : float
            Length of the step [s].

        Returns
        -------
        output : array (inputs,)
        memory : array (m,)
            For the next step.
        """
        return u, memory


class TransportDelay(Sampled):
    """Delay the command; the output is zero until the first command arrives.

    Parameters
    ----------
    delay : float
        [s], >= 0. A delay that is no multiple of the run's dt is interpolated between two steps, which is reported
        once.

    Raises
    ------
    ArgumentError
        For a negative delay.

    Examples
    --------
    >>> import geomctrl as gc
    >>> plant = gc.Plant(gc.models.two_link(), actuators=gc.actuators.TransportDelay(0.002))
    >>> plant.sampled_actuators
    (TransportDelay(delay=0.002),)
    """

    def __init__(self, delay: float):
        self.delay = number("delay", delay, "seconds >= 0", lambda x: x >= 0.0)


class RateLimit(Sampled):
    """Limit the change of the command per step, as a digital drive does; the output starts from zero.

    Parameters
    ----------
    rate : float or array_like, shape (inputs,)
        Largest change in a step of length dt, divided by dt [N m/s, N/s].

    Raises
    ------
    ArgumentError
        If `rate` is not positive.

    See Also
    --------
    Lag : the counterpart in continuous time, with its argument `rate`.

    Examples
    --------
    >>> import geomctrl as gc
    >>> import numpy as np
    >>> limit = gc.actuators.RateLimit(100.0)  # N m/s
    >>> limit.output(np.array([5.0]), limit.memory(1), 0.001)[0]
    array([0.1])
    """

    def __init__(self, rate: ArrayLike):
        self.rate = per_coordinate("rate", rate, "a positive slope", lambda x: x > 0.0)

    def inputs(self, outputs: int) -> int:
        return require_sizes(outputs, rate=np.asarray(self.rate))

    def memory(self, inputs: int) -> np.ndarray:
        return np.zeros(inputs)

    def output(self, u: Any, memory: Any, period: float) -> tuple[Any, Any]:
        max_step = np.asarray(self.rate) * period
        u = memory + np.clip(u - memory, -max_step, max_step)
        return u, u
