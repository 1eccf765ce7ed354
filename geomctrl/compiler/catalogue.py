"""The functions that are compiled for a robot, by name: an algorithm of `kernels` with fixed options.

The Coriolis matrix has Ploen's form unless the name says otherwise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from geomctrl.kernels import (
    articulated_bodies,
    composite_bodies,
    configuration,
    derivatives,
    frames,
    higher_derivatives,
    mass_matrix_inverse,
    momenta,
    newton_euler,
    plant,
    regressor,
    skewness,
)
from geomctrl.kernels.algorithms import Algorithm
from geomctrl.kernels.newton_euler import CHRISTOFFEL, PLOEN


class Terms(NamedTuple):
    """M, Mdot, C (..., nv, nv) and g (..., nv) at one state."""

    M: np.ndarray
    Mdot: np.ndarray
    C: np.ndarray
    g: np.ndarray


class InverseDynamicsDerivatives(NamedTuple):
    """dtau/dq, dtau/dv and dtau/da = M at one motion, (..., nv, nv) each."""

    dq: np.ndarray
    dv: np.ndarray
    da: np.ndarray


class ForwardDynamicsDerivatives(NamedTuple):
    """da/dq, da/dv and da/dtau = M^-1 (..., nv, nv), and the acceleration a (..., nv) itself."""

    dq: np.ndarray
    dv: np.ndarray
    dtau: np.ndarray
    a: np.ndarray


class Function(NamedTuple):
    """`result`: type of several outputs. optional: the optional inputs that are passed."""

    algorithm: Algorithm
    options: dict[str, int] = {}  # noqa: RUF012 (it is never modified)
    result: type = tuple
    optional: tuple[str, ...] = ()


CATALOGUE = {
    "inverse_dynamics": Function(newton_euler.inverse_dynamics),
    "inverse_dynamics_reference": Function(newton_euler.inverse_dynamics_reference, {"form": PLOEN}),
    "inverse_dynamics_reference_christoffel": Function(newton_euler.inverse_dynamics_reference, {"form": CHRISTOFFEL}),
    "inverse_dynamics_external": Function(
        newton_euler.inverse_dynamics_reference, {"form": PLOEN}, optional=("f_ext",)
    ),
    "gravity_force": Function(newton_euler.gravity_force),
    "mass_matrix": Function(composite_bodies.mass_matrix),
    "terms": Function(composite_bodies.terms, {"form": PLOEN}, Terms),
    "terms_christoffel": Function(composite_bodies.terms, {"form": CHRISTOFFEL}, Terms),
    "forward_dynamics": Function(articulated_bodies.forward_dynamics),
    "forward_dynamics_external": Function(articulated_bodies.forward_dynamics, optional=("f_ext",)),
    "mass_matrix_inverse": Function(mass_matrix_inverse.mass_matrix_inverse),
    "inverse_dynamics_derivatives": Function(
        derivatives.inverse_dynamics_derivatives, result=InverseDynamicsDerivatives
    ),
    "forward_dynamics_derivatives": Function(
        derivatives.forward_dynamics_derivatives, result=ForwardDynamicsDerivatives
    ),
    "regressor": Function(regressor.regressor, {"form": PLOEN}),
    "regressor_christoffel": Function(regressor.regressor, {"form": CHRISTOFFEL}),
    "regressor_products": Function(regressor.products, {"form": PLOEN}),
    "mechanical_state": Function(momenta.mechanical_state),
}
# functions that the public functions may compile: these, and algorithms with a frame's or a controller's numbers among
# their options (`Code.index`)
AVAILABLE_ALGORITHMS = {function.algorithm for function in CATALOGUE.values()} | {
    *(frames.pose, frames.jacobian, frames.jacobian_rate, frames.body_wrenches, plant.contact_wrenches),
    *(configuration.tracking_error, configuration.sliding, plant.adaptive_law, plant.plant_rate, skewness.skewness),
    *(skewness.skewness_of, skewness.mass_matrix_in_motion),
    *(momenta.center_of_mass, momenta.centroidal_momentum),
    *(configuration.product_motion, configuration.sinusoid_motion, configuration.error_gradient),
    *(regressor.momentum_regressor, regressor.momentum_rate_regressor),
    *(higher_derivatives.inverse_dynamics_rates, configuration.moved, configuration.difference),
    *(mass_matrix_inverse.operational_mobility, mass_matrix_inverse.operational_inertia),
    *(composite_bodies.mass_matrix_product, composite_bodies.coriolis_transpose_product),
}
