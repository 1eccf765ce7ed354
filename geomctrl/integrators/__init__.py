"""Explicit integration on Lie groups: methods as tableaus, one step, one driver for fixed and adaptive, events."""

from .driver import integrate, steps
from .explicit import rk_step, step
from .solution import DenseOutput, Event, Solution
from .step_control import Adaptive
from .tableaus import Tableau, method, methods

__all__ = [
    "Adaptive",
    "DenseOutput",
    "Event",
    "Solution",
    "Tableau",
    "integrate",
    "method",
    "methods",
    "rk_step",
    "step",
    "steps",
]
