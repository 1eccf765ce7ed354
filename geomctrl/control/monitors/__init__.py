"""Monitors: checks, at every sample of a run, of the properties that stability proofs rely on.

A monitor measures one value per sample, which should not exceed its limit. A value beyond the limit is a suspected
violation. Before a `Run` reports VIOLATED, it is confirmed with the stored samples; if it can be neither confirmed nor
refuted, the verdict is UNRESOLVED.
"""

from typing import TYPE_CHECKING

from geomctrl.control.sample import Sample
from geomctrl.other_names import unknown_names

from .chosen import default_monitors
from .energy import EnergyBalance
from .group import GroupResidual
from .holding import Holding
from .limits import JointLimits
from .lyapunov import LyapunovDecrease
from .monitor import HELD, NOT_MEASURED, UNRESOLVED, VIOLATED, Finding, Monitor
from .skew import Skew

__all__ = [
    "HELD",
    "NOT_MEASURED",
    "UNRESOLVED",
    "VIOLATED",
    "EnergyBalance",
    "Finding",
    "GroupResidual",
    "Holding",
    "JointLimits",
    "LyapunovDecrease",
    "Monitor",
    "Sample",
    "Skew",
    "default_monitors",
]

if not TYPE_CHECKING:  # type checkers report unknown names themselves
    __getattr__ = unknown_names(__name__, __all__)
