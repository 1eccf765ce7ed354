"""What is checked while a loop runs: the properties the stability proofs rely on.

A monitor measures one number a step, which should not exceed its limit. What is beyond is an accusation; it is
confirmed from the stored samples before a `Run` says VIOLATED. What can be neither confirmed nor cleared is UNRESOLVED.
"""

from geomctrl.control.sample import Sample

from .chosen import default_monitors
from .energy import EnergyBalance
from .group import GroupResidual
from .holding import Holding
from .limits import JointLimits
from .lyapunov import LyapunovDecrease
from .monitor import HELD, NOT_MEASURED, UNRESOLVED, VIOLATED, Finding, Monitor
from .replay import Replay
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
    "Replay",
    "Sample",
    "Skew",
    "default_monitors",
]
