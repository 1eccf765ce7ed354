"""Forms of the equations of motion as the papers print them: to read, to check and to compare, not to control with.

A robot's own terms are methods of `Robot`; each function here says the same in another way, or what only the papers ask
for: curvature, sensitivities, accelerations of any order, other representations of twists, one body alone.
"""

import importlib
from typing import TYPE_CHECKING, Any

from . import articulated_bodies as articulated_bodies
from . import closed_forms as closed_forms
from . import curvature as curvature
from . import factored as factored
from . import higher_order_kinematics as higher_order_kinematics
from . import one_body as one_body
from . import representations as representations
from . import sensitivities as sensitivities

if TYPE_CHECKING:  # it imports scipy
    from . import constrained as constrained

__all__ = [
    "articulated_bodies",
    "closed_forms",
    "constrained",
    "curvature",
    "factored",
    "higher_order_kinematics",
    "one_body",
    "representations",
    "sensitivities",
]


def __getattr__(name: str) -> Any:
    if name == "constrained":
        return importlib.import_module(f"{__name__}.constrained")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
