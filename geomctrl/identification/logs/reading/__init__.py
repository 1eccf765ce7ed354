"""Log files and arrays by name to the fields of a `Dataset`: formats, names, units, from motors to joints.

A format is a file here and a row of `formats.FORMATS`; all of them make a `Recording`, numbers by name. `naming` says
which of them are t, q, v, a, tau, or currents, and of which joint; `fields` makes SI units and joint coordinates of
them.
"""

from .fields import fields
from .formats import FORMATS, recorded, with_wrenches
from .options import ANGULAR, DEGREE, LINEAR, RPM, FileOptions, JointMapping, Reading, option
from .recording import Recording, booleans, real

__all__ = [
    "ANGULAR",
    "DEGREE",
    "FORMATS",
    "LINEAR",
    "RPM",
    "FileOptions",
    "JointMapping",
    "Reading",
    "Recording",
    "booleans",
    "fields",
    "option",
    "real",
    "recorded",
    "with_wrenches",
]
