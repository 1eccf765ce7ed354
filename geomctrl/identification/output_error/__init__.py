"""Identification by simulating the closed loop: DIDIM, closed-loop output error, the loops they run."""

from .cloe import cloe
from .didim import didim
from .front import closed_loop_fit
from .loop import ControllerLoop, SampledReference, ServoLoop
from .result import OutputErrorFit

__all__ = ["ControllerLoop", "OutputErrorFit", "SampledReference", "ServoLoop", "cloe", "closed_loop_fit", "didim"]
