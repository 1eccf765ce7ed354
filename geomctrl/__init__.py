"""geomctrl: a controls engineer's rigid-body dynamics on Lie groups."""

from . import (
    configuration,
    control,
    dynamics,
    errors,
    factored,
    groups,
    inertia,
    integrators,
    kinematics,
    monitors,
    references,
    regressor,
    se3,
    so3,
)
from .control import Command, Controller, Desired, Lyapunov, Reference
from .dynamics import Terms
from .errors import GeomctrlError
from .plant import Friction, Plant
from .robot import Body, Frame, Joint, Robot
from .run import Run
from .simulate import simulate

__all__ = [
    "Body",
    "Command",
    "Controller",
    "Desired",
    "Frame",
    "Friction",
    "GeomctrlError",
    "Joint",
    "Lyapunov",
    "Plant",
    "Reference",
    "Robot",
    "Run",
    "Terms",
    "configuration",
    "control",
    "dynamics",
    "errors",
    "factored",
    "groups",
    "inertia",
    "integrators",
    "kinematics",
    "monitors",
    "references",
    "regressor",
    "se3",
    "simulate",
    "so3",
]
