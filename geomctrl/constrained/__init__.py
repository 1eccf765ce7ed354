"""Constrained systems: bodies in maximal coordinates with joints as constraints, and loop closures on a robot."""

from .equations import GGL, Baumgarte, integrate
from .joints import ConstrainedBody, Constraint
from .loops import ClosedLoops
from .maximal import ConstrainedSystem

__all__ = ["GGL", "Baumgarte", "ClosedLoops", "ConstrainedBody", "ConstrainedSystem", "Constraint", "integrate"]
