"""Explicit integration on Lie groups: methods as tableaus, one step, one driver for fixed and adaptive, events."""

from .driver import integrate, steps
from .explicit import step
from .solution import Event
from .step_control import Adaptive
from .tableaus import Tableau, method, methods

__all__ = [
    "Adaptive",
    "Event",
    "Tableau",
    "integrate",
    "method",
    "methods",
    "step",
    "steps",
]
