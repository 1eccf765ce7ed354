"""`SimulationOptions`: integration method, stored samples, end of a run and compilation of a closed loop."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from geomctrl.arguments import choice, count, flag, shown
from geomctrl.errors import ArgumentError
from geomctrl.integrators.step_control import Adaptive
from geomctrl.integrators.tableaus import Tableau, method
from geomctrl.other_names import OF_SIMULATION_OPTIONS, named_arguments

DEVICE = re.compile(r"cpu|cuda(?::(\d{1,4}))?")
PRECISIONS = "double", "float"
ONLY_LOOPS = "as only the loops of simulate_many and sweep run on a GPU"
MIN_FLOAT_RTOL = 1e-6  # of an adaptive method with floats: below it, their rounding looks like truncation


class Gpu(NamedTuple):
    """Number of a GPU, and the precision of loops there."""

    number: int
    precision: str


@named_arguments(OF_SIMULATION_OPTIONS)
@dataclass(frozen=True)
class SimulationOptions:
    """Options that `simulate`, `simulate_many` and `sweep` share.

    Parameters
    ----------
    method : str, Tableau or Adaptive
        Integration method, one of those in `integrators`. Default "MK4". An adaptive method ("MK54", or
        `integrators.Adaptive` with tolerances) chooses its own steps between samples. It controls the error of q, v,
        the controller's state and the work.
    every : int
        Store every n-th sample and the last one. Monitors and measures see all samples. Default 1.
    strict : bool
        If True, a confirmed violation of a monitor ends the run, and `simulate` raises SimulationError. Default False.
    compiled : "auto" or bool
        "auto" (default) compiles a loop if it can be traced and is long enough for compilation to pay. If a long loop
        can not be traced, it runs in Python and the reason is printed once. True raises UntraceableError in that case,
        with file and line. False always runs in Python. The results differ by rounding only.
    device : str
        Where `simulate_many` and `sweep` compute: "cpu" (default), "cuda" (an NVIDIA GPU, with the extra `cuda`) or
        "cuda:1" for the second GPU. On a GPU every loop is a thread. Loops that are no more than two of a kind, that
        are short or can not be traced are computed on the CPU with a RuntimeWarning, and so are those that fail on the
        GPU. Results differ by rounding only.
        Experimental: tested on the CPU with a stand-in for CUDA's driver, not yet on a GPU. `simulate` always uses
        the CPU.
    precision : {"double", "float"}
        Of loops on a GPU, default "double". With "float" the law, the plant and the rates of the integrator are
        computed in single precision. Time, random numbers, sensors, monitors, measures and all sums are doubles. A loop
        in which a monitor exceeds its limit is repeated on the CPU, in double precision, as are all other loops that
        the CPU computes.

    Raises
    ------
    ArgumentError
        If a number or a choice is invalid.
    NameNotFoundError
        If there is no method of this name.

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
    device: str = "cpu"
    precision: str = "double"

    def __post_init__(self):
        if not isinstance(self.method, Adaptive):
            method(self.method)
        object.__setattr__(self, "every", count("every", self.every, 1, expected="a positive integer"))
        object.__setattr__(self, "strict", flag("strict", self.strict))
        if not isinstance(self.compiled, bool) and not (isinstance(self.compiled, str) and self.compiled == "auto"):
            raise ArgumentError(f'compiled: expected "auto", True or False, got {shown(self.compiled)}')
        if self.gpu is not None and self.compiled is False:
            raise ArgumentError(f'compiled: expected "auto" or True with device={self.device!r}, got False')
        if choice("precision", self.precision, PRECISIONS) == "float":
            if self.gpu is None:
                raise ArgumentError("precision: expected 'double' with device='cpu', got 'float'")
            if isinstance(self.method, Adaptive) and self.method.rtol < MIN_FLOAT_RTOL:
                least = f"with rtol = {self.method.rtol:g} (floats need at least {MIN_FLOAT_RTOL:g})"
                raise ArgumentError(f"precision: expected 'double' {least}, got 'float'")

    @property
    def gpu(self) -> Gpu | None:
        """The GPU; None for the CPU."""
        named = DEVICE.fullmatch(self.device) if isinstance(self.device, str) else None
        if named is None:
            raise ArgumentError(f"device: expected 'cpu', 'cuda' or 'cuda:1', got {shown(self.device)}")
        return None if self.device == "cpu" else Gpu(int(named[1] or 0), self.precision)
