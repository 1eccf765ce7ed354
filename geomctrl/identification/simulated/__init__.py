"""Identification by simulating the closed loop: DIDIM, closed-loop output error, the loops they run."""

from .cloe import cloe
from .controller_loop import ControllerLoop
from .didim import didim
from .front import output_error
from .loop import ServoLoop
from .references import SampledReference
from .result import OutputErrorFit

__all__ = ["ControllerLoop", "OutputErrorFit", "SampledReference", "ServoLoop", "cloe", "didim", "output_error"]
