"""Equations of motion in the forms that the papers print, for readers of the papers and for tests.

Controllers use the methods of `Robot`. The functions here compute the same terms by other formulas, or quantities that
only the papers need: curvature, sensitivities, accelerations of any order, other representations of twists.
"""

import importlib
import inspect
from typing import TYPE_CHECKING, Any

from geomctrl.arguments import without_overflow_warnings

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

# The equations are written as in the papers, and any of their products may overflow.
for _module in (
    articulated_bodies,
    closed_forms,
    curvature,
    factored,
    higher_order_kinematics,
    one_body,
    representations,
    sensitivities,
):
    for _name in _module.__all__:
        if inspect.isfunction(_function := getattr(_module, _name)):
            setattr(_module, _name, without_overflow_warnings(_function))

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
