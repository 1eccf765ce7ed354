"""Explicit integration on Lie groups: tableaus of methods, single steps, fixed and adaptive integration, events."""

from .driver import integrate, steps
from .explicit import step
from .solution import Event
from .step_control import Adaptive
from .tableaus import Tableau, methods

__all__ = [
    "Adaptive",
    "Event",
    "Tableau",
    "integrate",
    "methods",
    "step",
    "steps",
]
