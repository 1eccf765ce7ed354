"""How closed loops are integrated, stored, ended and computed: the options that all ways to simulate share."""

from __future__ import annotations

from dataclasses import dataclass

from geomctrl.arguments import count, flag
from geomctrl.errors import ArgumentError
from geomctrl.integrators.step_control import Adaptive
from geomctrl.integrators.tableaus import Tableau, method


@dataclass(frozen=True)
class SimulationOptions:
    """How `simulate`, `simulate_many` and `sweep` integrate, store, end and compute a closed loop.

    Parameters
    ----------
    method : str, Tableau or Adaptive
        A method of `integrators`. An adaptive one ("MK54", or `integrators.Adaptive` with tolerances) takes steps of
        its own from sample to sample; the error of a step is that of q, v, the controller's state and the work.
    every : int
        Store each every-th sample, and the last. Monitors and measures see every one.
    strict : bool
        End the run where a monitor's violation is confirmed. `simulate` then raises SimulationError.
    compiled : "auto" or bool
        "auto" runs what traces in compiled code, where the run is long enough for that to pay, and says once why a
        long one runs in Python. True raises UntraceableError then, with file and line; False is Python. The results
        differ by rounding.

    Raises
    ------
    ArgumentError, NameNotFoundError
        For a method, a number or a choice that does not exist.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.5, 0.2])
    >>> options = gc.SimulationOptions(method="MK54", every=10)
    >>> run = gc.simulate(law.robot, law, np.zeros(2), np.zeros(2), t_end=0.1, dt=1e-3, options=options)
    >>> len(run.t)
    11
    """

    method: str | Tableau | Adaptive = "MK4"
    every: int = 1
    strict: bool = False
    compiled: bool | str = "auto"

    def __post_init__(self):
        if not isinstance(self.method, Adaptive):
            method(self.method)
        object.__setattr__(self, "every", count("every", self.every, 1, expected="a positive integer"))
        object.__setattr__(self, "strict", flag("strict", self.strict))
        if not isinstance(self.compiled, bool) and not (isinstance(self.compiled, str) and self.compiled == "auto"):
            raise ArgumentError(f'compiled: expected "auto", True or False, got {self.compiled!r:.40}')
