"""Explicit integration on Lie groups: tableaus of methods, single steps, fixed and adaptive integration, events."""

from typing import TYPE_CHECKING

from geomctrl.other_names import unknown_names

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

if not TYPE_CHECKING:  # type checkers report unknown names themselves
    __getattr__ = unknown_names(__name__, __all__)
