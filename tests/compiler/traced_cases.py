"""Robots and algorithms that the compiler's tests run, and what numba's loops compute for them."""

import numpy as np

from geomctrl import models
from geomctrl.kernels import articulated_bodies, composite_bodies, energies, frames, newton_euler, regressor, tracking
from geomctrl.testing import random_robot

KINDS = ["free", "revolute", "prismatic", "helical", "cylindrical", "planar", "spherical"]
TREES = [
    models.panda(),
    models.three_spheres(),
    models.scara(),
    random_robot(np.random.default_rng(1), KINDS, [-1, 0, 0, 2, 1, 3, 4]),
    random_robot(np.random.default_rng(2), KINDS[::-1], [-1, -1, 0, 1, 3, 3, 2]),
]
ALGORITHMS = {
    "inverse_dynamics": (newton_euler.inverse_dynamics, {}),
    "inverse_dynamics_reference": (newton_euler.inverse_dynamics_reference, {"form": 1}),
    "mass_matrix": (composite_bodies.mass_matrix, {}),
    "terms": (composite_bodies.terms, {"form": 0}),
    "forward_dynamics": (articulated_bodies.forward_dynamics, {}),
    "regressor": (regressor.regressor, {"form": 0}),
    "energies": (energies.mechanical_state, {}),
    "tracking_error": (tracking.tracking_error, {}),
    "jacobian": (frames.jacobian, {"i": 2, "placement": 12, "form": 2}),
}


def inputs_of(robot, algorithm, seed=0):
    """Random values of the inputs that are not optional, by name."""
    rng = np.random.default_rng(seed)
    shapes = {("nq",): lambda: robot.random_configuration(rng), ("nv",): lambda: rng.normal(size=robot.nv)}
    return [shapes[x.shape]() for x in algorithm.inputs if not x.optional]


def by_loops(robot, algorithm, states, options):
    """What numba's loops compute for one state."""
    placement = np.eye(4)[:3].ravel().copy()
    values = [placement if name == "placement" else options[name] for name, _ in algorithm.options]
    rows = [x[None] for x in states]
    none = [np.empty((0, 0))] * sum(x.optional for x in algorithm.inputs)
    out = algorithm.many(robot._model, *rows, *none, *values)
    out = out[0] if algorithm.may_fail else out
    return flat(y[0] for y in (out if isinstance(out, tuple) else (out,)))


def flat(outputs):
    return np.concatenate([y.ravel() for y in outputs])


def dynamic_states(robot, n, seed=0, kind=np.float64):
    """n random q, v and a."""
    rng = np.random.default_rng(seed)
    q = np.array([robot.random_configuration(rng) for _ in range(n)])
    return [x.astype(kind) for x in (q, *rng.normal(size=(2, n, robot.nv)))]
