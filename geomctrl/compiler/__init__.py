"""Compilation of `kernels` for one robot: structure, catalogue of functions, closed loops, and calls from Python."""

from geomctrl.tracing.untraceable import skip_frames_of

skip_frames_of("geomctrl.compiler", "geomctrl.lie", "geomctrl.mechanism", "geomctrl.terms", "geomctrl.papers")
