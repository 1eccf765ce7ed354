"""Functions for control loops: for every robot compiled code agrees with the kernels in plain Python."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from traced_cases import TREES, flat

from geomctrl import models
from geomctrl.compiler.arithmetic import Arithmetic, Sizes, evaluated
from geomctrl.compiler.code import Code
from geomctrl.kernels.configuration import product_motion, sinusoid_motion
from geomctrl.kernels.skewness import skewness

CASES = [(skewness, 0), (skewness, 1), (product_motion, 1), (product_motion, 3), (sinusoid_motion, 2)]


def arguments(robot, algorithm, options):
    """The results of one call."""
    rng, sizes = np.random.default_rng(0), Sizes(Code(robot._model).pattern, options)
    return [
        robot.random_configuration(rng) if x.shape == ("nq",) else rng.uniform(0.2, 1.5, sizes.of(x))
        for x in algorithm.inputs
    ]


def numbers_of(found):
    return flat(found if isinstance(found, tuple) else (found,)).astype(float)


@pytest.mark.quick(9)
@pytest.mark.parametrize("robot", TREES, ids=lambda r: r.name)
@pytest.mark.parametrize(("algorithm", "number"), CASES)
def test_compiled_functions_are_the_kernels(robot, algorithm, number):
    options = {algorithm.options[0].name: number}
    code, given = Code(robot._model), arguments(robot, algorithm, options)
    good, expected = evaluated(algorithm, code.sizes, robot._model, [*given, number], Arithmetic(math))
    found, expected = numbers_of(code.one(algorithm, **options)(*given)), numbers_of(tuple(expected))
    # the residual itself has the size of rounding errors
    scale = 1.0 if algorithm is skewness else np.abs(expected).max()
    assert good
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13 * scale)


@pytest.mark.parametrize(("algorithm", "number"), CASES[2:])
def test_the_loops_take_the_same_arguments(algorithm, number):
    robot, options = models.three_spheres(), {algorithm.options[0].name: number}
    code, given = Code(robot._model), arguments(robot, algorithm, options)
    loops = code.loops(algorithm, **options)
    np.testing.assert_allclose(numbers_of(loops(*given)), numbers_of(code.at(algorithm, number)(*given)), rtol=1e-11)
    assert loops(*given[:-1], np.nan * given[-1]) is None
    assert loops(*given[:-1], np.append(given[-1], 1.0)) is None


def test_what_is_traced_imports_no_numba():
    """Terms of a robot, single states and batches, and whole control loops."""
    text = """
import sys
import numpy as np
import geomctrl as gc
r = gc.models.two_link()
q = v = a = 0.1 * np.ones(2)
r.inverse_dynamics(q, v, a), r.terms(q, v), r.forward_dynamics(q, v, a), r.regressor(q, v, a, v), r.energy(q, v)
r.mass_matrix(np.zeros((20, 2))), r.integrate(q, v), r.random_configuration(np.random.default_rng(0))
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
