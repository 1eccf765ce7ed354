"""Equations of motion in the forms that the papers print, for readers of the papers and for tests.

Controllers use the methods of `Robot`. The functions here compute the same terms by other formulas, or quantities that
only the papers need: curvature, sensitivities, accelerations of any order, other representations of twists.
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
