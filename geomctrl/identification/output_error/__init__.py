"""Identification by simulating the closed loop: DIDIM, closed-loop output error, the loops they run."""

from .cloe import cloe
from .controller_loop import ControllerLoop
from .didim import didim
from .front import closed_loop_fit
from .loop import ServoLoop
from .references import SampledReference
from .result import OutputErrorFit

__all__ = ["ControllerLoop", "OutputErrorFit", "SampledReference", "ServoLoop", "cloe", "closed_loop_fit", "didim"]
