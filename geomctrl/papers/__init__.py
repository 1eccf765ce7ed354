"""Forms of the equations of motion as the papers print them: to read, to check and to compare, not to control with.

A robot's own terms are methods of `Robot`; each function here says the same in another way, or what only the papers ask
for: curvature, sensitivities, accelerations of any order, other representations of twists, one body alone.
"""

from . import articulated_bodies as articulated_bodies
from . import closed_forms as closed_forms
from . import curvature as curvature
from . import factored as factored
from . import higher_order_kinematics as higher_order_kinematics
from . import one_body as one_body
from . import representations as representations
from . import sensitivities as sensitivities

__all__ = [
    "articulated_bodies",
    "closed_forms",
    "curvature",
    "factored",
    "higher_order_kinematics",
    "one_body",
    "representations",
    "sensitivities",
]
