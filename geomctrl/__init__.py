"""geomctrl: a controls engineer's rigid-body dynamics on Lie groups."""

import importlib
from typing import TYPE_CHECKING

from . import (
    articulated,
    configuration,
    control,
    derivatives,
    dynamics,
    errors,
    factored,
    geometry,
    groups,
    higher_order,
    inertia,
    integrators,
    kinematics,
    monitors,
    rates,
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

if TYPE_CHECKING:
    from . import (
        closed_forms,
        closures,
        constrained,
        constraints,
        controllers,
        generalized_alpha,
        identification,
        interop,
        models,
        representations,
        rollout,
        structure_preserving,
        testing,
    )

# imported at first use: what they need takes longer to import than geomctrl itself, or few sessions use them
LATE = {
    *("closed_forms", "closures", "constrained", "constraints", "controllers", "generalized_alpha", "identification"),
    *("interop", "models"),
    *("representations", "rollout", "structure_preserving", "testing"),
}


def __getattr__(name: str):
    if name in LATE:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
    "articulated",
    "closed_forms",
    "closures",
    "configuration",
    "constrained",
    "constraints",
    "control",
    "controllers",
    "derivatives",
    "dynamics",
    "errors",
    "factored",
    "generalized_alpha",
    "geometry",
    "groups",
    "higher_order",
    "identification",
    "inertia",
    "integrators",
    "interop",
    "kinematics",
    "models",
    "monitors",
    "rates",
    "references",
    "regressor",
    "representations",
    "rollout",
    "se3",
    "simulate",
    "so3",
    "structure_preserving",
    "testing",
]
