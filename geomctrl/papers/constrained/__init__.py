"""Constrained systems: bodies in maximal coordinates with joints as constraints, and loop closures on a robot.

`integrate_index1` integrates their index-1 equations by the explicit methods of `integrators`, `integrate_index3` those
of index 3 by generalized-alpha.
"""

from .equations import GGL, Baumgarte
from .integration import integrate_index1, integrate_index3
from .joints import ConstrainedBody, Constraint
from .loops import ClosedLoops
from .maximal import ConstrainedSystem

__all__ = [
    "GGL",
    "Baumgarte",
    "ClosedLoops",
    "ConstrainedBody",
    "ConstrainedSystem",
    "Constraint",
    "integrate_index1",
    "integrate_index3",
]
