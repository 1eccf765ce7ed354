"""Robots and algorithms of the compiler's tests, with reference results from numba's loops."""

import numpy as np

from geomctrl import models
from geomctrl.compiler.arithmetic import Sizes
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
)
from geomctrl.testing import random_robot

KINDS = ["free", "revolute", "prismatic", "helical", "cylindrical", "planar", "spherical"]
TREES = [
    models.panda(),
    models.three_spheres(),
    models.scara(),
    # each kind of joint is in one of these trees; a function of all seven kinds would take seconds to compile
    random_robot(np.random.default_rng(1), KINDS[:4], [-1, 0, 0, 2]),
    random_robot(np.random.default_rng(2), [*KINDS[4:], "revolute"], [-1, -1, 0, 2], driven=True),
]
ALGORITHMS = {
    "inverse_dynamics": (newton_euler.inverse_dynamics, {}),
    "inverse_dynamics_reference": (newton_euler.inverse_dynamics_reference, {"form": 1}),
    "mass_matrix": (composite_bodies.mass_matrix, {}),
    "terms": (composite_bodies.terms, {"form": 0}),
    "forward_dynamics": (articulated_bodies.forward_dynamics, {}),
    "articulated bodies": (articulated_bodies.forward_dynamics_articulated, {}),
    "regressor": (regressor.regressor, {"form": 0}),
    "energies": (momenta.mechanical_state, {}),
    "mass_matrix_inverse": (mass_matrix_inverse.mass_matrix_inverse, {}),
    "inverse_dynamics_derivatives": (derivatives.inverse_dynamics_derivatives, {}),
    "forward_dynamics_derivatives": (derivatives.forward_dynamics_derivatives, {}),
    "products": (regressor.products, {"form": 1}),
    "tracking_error": (configuration.tracking_error, {}),
    "sliding": (configuration.sliding, {}),
    "error_gradient": (configuration.error_gradient, {}),
    "moved": (configuration.moved, {}),
    "difference": (configuration.difference, {}),
    "inverse_dynamics_rates": (higher_derivatives.inverse_dynamics_rates, {"orders": 3}),
    "adaptive_law": (plant.adaptive_law, {"form": 0}),
    "plant_rate": (plant.plant_rate, {"coulomb": 1}),
    "pose": (frames.pose, {"i": 2}),
    "jacobian": (frames.jacobian, {"i": 2, "form": 2}),
    "jacobian_rate": (frames.jacobian_rate, {"i": 2, "form": 1}),
}


def inputs_of(robot, algorithm, seed=0):
    """Random values of the required inputs, in order."""
    rng, sizes = np.random.default_rng(seed), Sizes(robot._model, {"orders": 3})
    return [
        robot.random_configuration(rng) if x.shape == ("nq",) else rng.normal(size=sizes.shape(x))
        for x in algorithm.inputs
        if not x.optional
    ]


def options_of(robot, algorithm):
    """Values of the options that are arrays, by name."""
    rng, sizes = np.random.default_rng(0), Sizes(robot._model)
    placement = robot.placements[0][:3].ravel().copy()
    created = {x.name: rng.uniform(0.5, 2.0, sizes.shape(x)) for x in algorithm.options if x.is_array}
    return created | {name: placement for name in created if name == "placement"}


def by_loops(robot, algorithm, states, options):
    """Return the results of numba's loops for one state, or of the Python functions with the fixture `kernels`."""
    options = options | options_of(robot, algorithm)
    rows = [x[None] for x in states]
    none = [np.empty((0, 0))] * sum(x.optional for x in algorithm.inputs)
    out = algorithm.many(robot._model, *rows, *none, *(options[x.name] for x in algorithm.options))
    out = out[0] if algorithm.may_fail else out
    return flat(y[0] for y in (out if isinstance(out, tuple) else (out,)))


def flat(outputs):
    return np.concatenate([y.ravel() for y in outputs])


def dynamic_states(robot, n, seed=0, kind=np.float64):
    """Return n random q, v and a."""
    rng = np.random.default_rng(seed)
    q = np.array([robot.random_configuration(rng) for _ in range(n)])
    return [x.astype(kind) for x in (q, *rng.normal(size=(2, n, robot.nv)))]
