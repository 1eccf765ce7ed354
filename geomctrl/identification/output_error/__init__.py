"""Identification by simulating the closed loop: DIDIM, closed-loop output error, the loops they run."""

from __future__ import annotations

from inspect import signature
from typing import Any

from geomctrl.arguments import choice
from geomctrl.errors import ArgumentError

from .cloe import cloe
from .didim import didim
from .loop import ControllerLoop, SampledReference, ServoLoop
from .result import OutputErrorFit

__all__ = ["ControllerLoop", "OutputErrorFit", "SampledReference", "ServoLoop", "cloe", "closed_loop_fit", "didim"]

METHODS = {"didim": didim, "cloe": cloe}


def closed_loop_fit(start: Any, logs: Any, loop: Any, method: str = "didim", **options: Any) -> OutputErrorFit:
    """Parameters of a robot, and of its loop, by simulating the closed loop: no derivative of a measured position.

    start: an `Estimate` (the inverse-dynamics fit), a `RegressorModel` or a robot. logs: a Dataset or several, not
    filtered. loop: a `ServoLoop` or `ControllerLoop`, or one a log. method: "didim", the robot alone, its loop being
    known, in a few simulations; "cloe", gains and delay too, by exact derivatives of the simulation. options: of the
    function of that name.
    """
    choice("method", method, METHODS)
    names = list(signature(METHODS[method]).parameters)[3:]
    for name in options:
        if name not in names:
            raise ArgumentError(f"options: {method} has no option {name!r}; known: {', '.join(names)}")
    return METHODS[method](start, logs, loop, **options)
