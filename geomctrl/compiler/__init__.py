"""The equations of `kernels` as code for one robot: structures, catalogue, budget, loops, entries from Python."""

from geomctrl.tracing.untraceable import skip_frames_of

skip_frames_of("geomctrl.compiler", "geomctrl.lie", "geomctrl.mechanism", "geomctrl.terms", "geomctrl.papers")
