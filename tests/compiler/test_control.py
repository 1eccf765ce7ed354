"""What a control loop calls: for every robot the compiled functions are the kernels run by plain Python."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from traced_cases import TREES, flat

from geomctrl import models
from geomctrl.compiler.arithmetic import Arithmetic, evaluated
from geomctrl.compiler.catalogue import CONTROL
from geomctrl.compiler.code import Code


def case(robot, name, seed=0):
    """(sizes of the options that are arrays, the arguments of one call)."""
    rng, code = np.random.default_rng(seed), Code(robot._model)
    sizes = {
        "product_motion": {"X": (3, robot.nv), "s": (3, 3)},
        "sinusoid_motion": {"harmonics": (3, 2, robot.nv)},
    }.get(name, {})
    states = [
        robot.random_configuration(rng) if x.shape == ("nq",) else rng.uniform(0.2, 1.5, code.sizes.of(x))
        for x in CONTROL[name].algorithm.inputs
    ]
    return sizes, [*states, *(rng.normal(size=int(np.prod(shape))) for shape in sizes.values())]


def as_tuple(found):
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("robot", TREES, ids=lambda r: r.name)
@pytest.mark.parametrize("name", CONTROL)
def test_compiled_functions_are_the_kernels(robot, name):
    sizes, arguments = case(robot, name)
    code, (algorithm, fixed) = Code(robot._model), CONTROL[name]
    shapes = [None] * (len(arguments) - len(sizes)) + list(sizes.values())
    arrays = [x if shape is None else x.reshape(shape) for x, shape in zip(arguments, shapes)]
    good, expected = evaluated(algorithm, code.sizes, robot._model, [*arrays, *fixed.values()], Arithmetic(math))
    found = code.one(algorithm, **fixed, **sizes)(*arguments)
    assert good
    expected = flat(y.astype(float) for y in expected)
    scale = 1.0 if name.startswith("skewness") else np.abs(expected).max()  # a residual: itself rounding
    np.testing.assert_allclose(flat(as_tuple(found)), expected, rtol=1e-10, atol=1e-13 * scale)


@pytest.mark.parametrize("name", ["product_motion", "sinusoid_motion", "plant_rate"])
def test_the_loops_take_the_same_arguments(name):
    robot = models.three_spheres()
    sizes, arguments = case(robot, name)
    code, options = Code(robot._model), CONTROL[name].options | sizes
    found = (code.sized(name, **sizes) if sizes else getattr(code, name))(*arguments)
    np.testing.assert_allclose(
        flat(as_tuple(code.loops(CONTROL[name].algorithm, **options)(*arguments))), flat(as_tuple(found)), rtol=1e-11
    )
    if sizes:
        assert code.loops(CONTROL[name].algorithm, **options)(*arguments[:-1], np.nan * arguments[-1]) is None
    assert code.sized("sinusoid_motion", harmonics=(3, 1, 9)) is code.sized("sinusoid_motion", harmonics=(3, 1, 9))


def test_what_is_traced_imports_no_numba():
    """Terms of a robot, single states and batches, and whole control loops."""
    text = """
import sys
import numpy as np
import geomctrl as gc
r = gc.models.panda()
q = v = a = 0.1 * np.ones(7)
r.inverse_dynamics(q, v, a), r.terms(q, v), r.forward_dynamics(q, v, a), r.regressor(q, v, a, v), r.energy(q, v)
r.mass_matrix(np.zeros((20, 7))), r.integrate(q, v), r.random_configuration(np.random.default_rng(0))
K = 20.0 * np.diag(r.mass_matrix(q))
for motion in (gc.references.Sinusoids(r, q, 0.1, 0.5), gc.references.Quintic(r, q, 2.0 * q, 1.0)):
    laws = gc.controllers.SlotineLi(r, motion, K=K), gc.controllers.Passivity(r, motion, K=K)
    for law in (*laws, gc.controllers.ComputedTorque(r, motion), gc.controllers.PDGravity(r, q)):
        plant = gc.Plant(r, gc.Friction(0.1, 0.1))
        gc.simulate(plant, law, *motion(0.0)[:2], 0.003, 0.001).tracking_rms()
print("numba" in sys.modules)
"""
    environment = {**os.environ, "GEOMCTRL_COMPILER": "on"}
    assert subprocess.check_output([sys.executable, "-c", text], text=True, env=environment).split() == ["False"]
