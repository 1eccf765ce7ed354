"""What is compiled for a robot, by name: an algorithm of `kernels` and the options that are fixed in it.

Forms are Ploen's where the name does not say another.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from geomctrl.kernels import (
    articulated_bodies,
    composite_bodies,
    energies,
    laws,
    newton_euler,
    plant,
    references,
    regressor,
    tracking,
)
from geomctrl.kernels.algorithms import Algorithm
from geomctrl.kernels.rigid_body import CHRISTOFFEL, PLOEN


class Function(NamedTuple):
    algorithm: Algorithm
    options: dict[str, Any] = {}  # noqa: RUF012 (nobody writes on it)


CATALOGUE = {
    "inverse_dynamics": Function(newton_euler.inverse_dynamics),
    "inverse_dynamics_reference": Function(newton_euler.inverse_dynamics_reference, {"form": PLOEN}),
    "inverse_dynamics_reference_christoffel": Function(newton_euler.inverse_dynamics_reference, {"form": CHRISTOFFEL}),
    "gravity_force": Function(newton_euler.gravity_force),
    "mass_matrix": Function(composite_bodies.mass_matrix),
    "terms": Function(composite_bodies.terms, {"form": PLOEN}),
    "terms_christoffel": Function(composite_bodies.terms, {"form": CHRISTOFFEL}),
    "forward_dynamics": Function(articulated_bodies.forward_dynamics),
    "regressor": Function(regressor.regressor, {"form": PLOEN}),
    "regressor_christoffel": Function(regressor.regressor, {"form": CHRISTOFFEL}),
    "mechanical_state": Function(energies.mechanical_state),
}
# what closing a loop needs besides; not offered as C
CONTROL = {
    "tracking_error": Function(tracking.tracking_error),
    "sliding": Function(tracking.sliding),
    "adaptive_law": Function(laws.adaptive_law, {"form": PLOEN}),
    "adaptive_law_christoffel": Function(laws.adaptive_law, {"form": CHRISTOFFEL}),
    "plant_rate": Function(plant.plant_rate),
    "skewness": Function(composite_bodies.skewness, {"form": PLOEN}),
    "skewness_christoffel": Function(composite_bodies.skewness, {"form": CHRISTOFFEL}),
    "product_motion": Function(references.product_motion),
    "sinusoid_motion": Function(references.sinusoid_motion),
}
FUNCTIONS = CATALOGUE | CONTROL
