"""Traces agree with the kernels for robots of all joint types, with the robot's numbers as inputs."""

import numpy as np
import pytest
from evaluation import evaluate
from traced_cases import ALGORITHMS, KINDS, TREES, by_loops, inputs_of, options_of

from geomctrl import models
from geomctrl.compiler.kernel_traces import structure, trace
from geomctrl.kernels import articulated_bodies, composite_bodies, newton_euler
from geomctrl.kernels.algorithms import algorithm
from geomctrl.testing import random_robot
from geomctrl.tracing.symbols import UntraceableError

FRAMES = ("pose", "jacobian", "jacobian_rate")  # of a body that small trees do not contain


@pytest.mark.quick(58)
@pytest.mark.parametrize("robot", TREES, ids=lambda r: r.name)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_trace_is_the_kernel(robot, name, kernels):
    kernel, options = ALGORITHMS[name]
    states = inputs_of(robot, kernel)
    traced = trace(kernel, structure(robot._model), options)
    arrays = [robot._model, *(x.ravel() for x in (*states, *options_of(robot, kernel).values()))]
    result = np.array(evaluate(traced.graph, traced.outputs, arrays))
    expected = by_loops(robot, kernel, states, options)
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-13 * np.abs(expected).max())
    if traced.flag is not None:
        assert evaluate(traced.graph, [traced.flag], arrays) == [True]


@pytest.mark.slow
def test_random_structures():
    """Trace one of the algorithms for each of five hundred random trees, and compare with numba's loops."""
    rng = np.random.default_rng(11)
    light = [name for name in ALGORITHMS if name not in FRAMES and "inverse" not in name and "derivatives" not in name]
    for k in range(500):
        n = int(rng.integers(1, 7))
        kinds = [str(kind) for kind in rng.choice(KINDS, n)]
        robot = random_robot(rng, kinds, [int(rng.integers(-1, i)) if i else -1 for i in range(n)])
        names = light if robot.nv > 8 else [name for name in ALGORITHMS if name not in FRAMES]
        name = names[k % len(names)]
        kernel, options = ALGORITHMS[name]
        states = inputs_of(robot, kernel, k)
        traced = trace(kernel, structure(robot._model), options)
        arrays = [robot._model, *(x.ravel() for x in (*states, *options_of(robot, kernel).values()))]
        result = np.array(evaluate(traced.graph, traced.outputs, arrays))
        expected = by_loops(robot, kernel, states, options)
        label = f"{name} of {kinds}, parents {robot.parents}"
        np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-12 * np.abs(expected).max(), err_msg=label)


def test_a_robots_numbers_are_inputs():
    """One trace serves the robot with another load."""
    robot = models.panda()
    loaded = robot.with_payload(3.0, (0.01, 0.02, 0.1), 0.02 * np.eye(3))
    np.testing.assert_array_equal(structure(robot._model), structure(loaded._model))
    traced = trace(newton_euler.inverse_dynamics, structure(robot._model), {})
    states = inputs_of(robot, newton_euler.inverse_dynamics)
    result = evaluate(traced.graph, traced.outputs, [loaded._model, *states])
    np.testing.assert_allclose(result, loaded.inverse_dynamics(*states), rtol=1e-12, atol=1e-12)


def test_zeros_cost_nothing():
    """A planar arm has no operations on zeros: M of two links is 3 numbers of a few operations each."""
    traced = trace(composite_bodies.mass_matrix, structure(models.two_link()._model), {})
    assert traced.operations < 60
    panda = structure(models.panda()._model)
    assert trace(newton_euler.inverse_dynamics, panda, {}).operations < 1000
    assert np.isnan(panda).sum() < 0.25 * panda.size


def test_a_mass_matrix_that_is_not_positive_is_flagged():
    robot = models.two_link()
    negative = robot.with_parameters(robot.parameters * [[1.0], [-1.0]], physical=False)
    traced = trace(articulated_bodies.forward_dynamics, structure(robot._model), {})
    states = inputs_of(robot, articulated_bodies.forward_dynamics)
    assert evaluate(traced.graph, [traced.flag], [robot._model, *states]) == [True]
    assert evaluate(traced.graph, [traced.flag], [negative._model, *states]) == [False]


@algorithm("q -> out[1]")
def branching(model, q, out):
    if q[0] > 0.0:
        out[0] = 1.0


def test_a_kernel_that_branches_is_refused_with_its_line():
    with pytest.raises(UntraceableError, match=r"branch depends on a symbol, in .*test_tracing.py, line \d+"):
        trace(branching, structure(models.two_link()._model), {})
