"""What is compiled for a robot, by name: an algorithm of `kernels` and the options that are fixed in it.

Forms are Ploen's where the name does not say another.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from geomctrl.kernels import articulated_bodies, composite_bodies, energies, newton_euler, regressor
from geomctrl.kernels.algorithms import Algorithm
from geomctrl.kernels.rigid_body import CHRISTOFFEL, PLOEN


class Terms(NamedTuple):
    """M, Mdot, C (..., nv, nv) and g (..., nv) at one state."""

    M: np.ndarray
    Mdot: np.ndarray
    C: np.ndarray
    g: np.ndarray


class Function(NamedTuple):
    """`result`: what several outputs come as."""

    algorithm: Algorithm
    options: dict[str, Any] = {}  # noqa: RUF012 (nobody writes on it)
    result: type = tuple


CATALOGUE = {
    "inverse_dynamics": Function(newton_euler.inverse_dynamics),
    "inverse_dynamics_reference": Function(newton_euler.inverse_dynamics_reference, {"form": PLOEN}),
    "inverse_dynamics_reference_christoffel": Function(newton_euler.inverse_dynamics_reference, {"form": CHRISTOFFEL}),
    "gravity_force": Function(newton_euler.gravity_force),
    "mass_matrix": Function(composite_bodies.mass_matrix),
    "terms": Function(composite_bodies.terms, {"form": PLOEN}, Terms),
    "terms_christoffel": Function(composite_bodies.terms, {"form": CHRISTOFFEL}, Terms),
    "forward_dynamics": Function(articulated_bodies.forward_dynamics),
    "regressor": Function(regressor.regressor, {"form": PLOEN}),
    "regressor_christoffel": Function(regressor.regressor, {"form": CHRISTOFFEL}),
    "mechanical_state": Function(energies.mechanical_state),
}
