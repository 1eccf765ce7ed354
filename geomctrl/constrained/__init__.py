"""Constrained systems: bodies in maximal coordinates with joints as constraints, and loop closures on a robot.

`integrate_index1` integrates their index-1 equations by the explicit methods of `integrators`, `integrate_index3` those
of index 3 by generalized-alpha.
"""

from .generalized_alpha import integrate_index3
from .joints import ConstrainedBody, Constraint
from .loops import ClosedLoops
from .maximal import ConstrainedSystem
from .projection import integrate_index1
from .stabilisation import GGL, Baumgarte

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
