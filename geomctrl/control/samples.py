"""`Samples`: the stored samples of a closed loop, and how far compiled code differs from Python on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .contracts import Desired


class Rounding(NamedTuple):
    """Of a precision: difference of numbers that agree, and displacement of states; see `compiled.comparison`."""

    agreement: float  # with the rounding of solved linear systems: a Panda's accelerations in floats differ by 2e-5
    perturbation: float


ROUNDING = {"double": Rounding(1e-9, 1e-13), "float": Rounding(1e-3, 2.0**-24)}


class ComparisonResult(NamedTuple):
    """Comparison of compiled code with Python: number of samples, and the largest difference of any number.

    The difference is relative to the largest number of its array if that exceeds 1 (SI units). device, precision: of
    the compiled code, as in `SimulationOptions`.
    """

    samples: int
    difference: float
    device: str = "cpu"
    precision: str = "double"

    def and_then(self, later: ComparisonResult) -> ComparisonResult:
        ends = zip(self[2:], later[2:])
        where = (first if first == last else f"{first}, then {last}" for first, last in ends)
        return ComparisonResult(self.samples + later.samples, max(self.difference, later.difference), *where)

    def __str__(self) -> str:
        where = "" if self.device == "cpu" else f"on {self.device} in {self.precision} precision; "
        return f"{where}compared with Python at {self.samples} samples, largest difference {self.difference:.0e}"


@dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """The stored samples of a closed loop, one per row, with the attributes described in `Run`."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    z: np.ndarray | None = None
    x: np.ndarray | None = None
    applied: np.ndarray = None  # pyright: ignore[reportAssignmentType]  # default tau
    desired: Desired | None = None
    signals: dict[str, np.ndarray] = field(default_factory=dict)
    measured: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self):
        if self.applied is None:
            object.__setattr__(self, "applied", self.tau)
