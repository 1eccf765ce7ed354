"""geomctrl: a controls engineer's rigid-body dynamics on Lie groups."""

from . import configuration, dynamics, errors, groups, inertia, kinematics, regressor, se3, so3
from .dynamics import Terms
from .errors import GeomctrlError
from .robot import Body, Frame, Joint, Robot

__all__ = [
    "Body",
    "Frame",
    "GeomctrlError",
    "Joint",
    "Robot",
    "Terms",
    "configuration",
    "dynamics",
    "errors",
    "groups",
    "inertia",
    "kinematics",
    "regressor",
    "se3",
    "so3",
]
