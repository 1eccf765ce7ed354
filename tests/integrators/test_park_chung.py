"""Park and Chung 2005, section VI: the published digits, through `rollout` and through `integrate`."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from geomctrl import models
from geomctrl.integrators.driver import integrate
from geomctrl.lie.groups import Product, Rn
from geomctrl.mechanism.configuration import ConfigurationGroup
from geomctrl.motion.rollout import rollout

_spec = importlib.util.spec_from_file_location(
    "park_chung_2005", Path(__file__).parents[2] / "experiments/park_chung_2005.py"
)
paper = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(paper)

ROBOT = models.three_spheres()


def published(name, h):
    return [paper.PUBLISHED[quantity][name, h] for quantity in paper.QUANTITIES]


def assert_five_digits(ours, expected):
    assert [f"{x:.4E}" for x in ours] == [f"{x:.4E}" for x in expected]


def test_initial_states_have_the_published_energy_and_momentum():
    np.testing.assert_allclose(
        paper.conserved(ROBOT, ROBOT.neutral(), paper.FIRST_RUN), [16.96, 0, 24, 0, 33.6, 0, 51.2], rtol=0, atol=1e-13
    )
    np.testing.assert_allclose(
        paper.conserved(ROBOT, ROBOT.neutral(), paper.SECOND_RUN),
        [61.27, -3, 45, -9, 63.2, 33.6, 94.8],
        rtol=0,
        atol=1e-13,
    )


@pytest.mark.parametrize("h", [1.0, 0.1])
@pytest.mark.parametrize("name", paper.METHODS)
def test_tables_vi_to_viii(name, h):
    assert_five_digits(paper.final_drift(name, h), published(name, h))


@pytest.mark.parametrize("name", [m for m in paper.METHODS if m[-1] in "23"])
def test_tables_vi_to_viii_at_a_hundredth(name):
    assert_five_digits(paper.final_drift(name, 0.01), published(name, 0.01))


def field(t, y):
    return np.concatenate((y[14:], ROBOT.forward_dynamics(y[:14], y[14:], np.zeros(8))))


@pytest.mark.parametrize("h", [1.0, 0.1])
@pytest.mark.parametrize("name", paper.METHODS)
def test_tables_vi_to_viii_on_the_product_group(name, h):
    """The general integrator, another implementation than the compiled one."""
    y0 = np.concatenate((ROBOT.neutral(), paper.FIRST_RUN))
    y = integrate(field, y0, (0, 1), h, name, Product(ConfigurationGroup(ROBOT), Rn(8))).y[-1]
    change = paper.conserved(ROBOT, y[:14], y[14:]) - paper.conserved(ROBOT, y0[:14], y0[14:])
    assert_five_digits(paper.drift(change), published(name, h))


@pytest.mark.parametrize("method", ["MK4", "MK8"])
def test_reference_solution_of_the_first_run(method):
    end = rollout(ROBOT, ROBOT.neutral(), paper.FIRST_RUN, None, 1.0, 1e-3, method, every=1000)
    np.testing.assert_allclose(end.q[-1, 12:], [0.3896269701353, 0.40611722798413], rtol=0, atol=1e-12)
    np.testing.assert_allclose(end.v[-1, 6:], [0.36894145915132, 0.41805245279553], rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        end.q[-1, 3:12:4], [0.16139500226897, 0.04211047593185, -0.14284776693887], rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("name", paper.LONG_ENERGY)
def test_second_run_drifts_as_recorded(name):
    """Kinetic energy after 200 s at h = 0.05, recorded with the corrected tables."""
    expected = paper.LONG_ENERGY[name]
    _, change = paper.long_drift(name)
    digits = 4 if abs(expected) > 1e-2 else 3  # as many as were recorded
    assert f"{change[-1, 0]:.{digits - 1}e}" == f"{expected:.{digits - 1}e}"


@pytest.mark.parametrize("name", paper.METHODS)
def test_vector_operations_are_no_more_than_published(name):
    ours, theirs = paper.vector_operations(name), paper.TABLE_X[name]
    assert ours[0] == theirs[0]  # forward dynamics
    assert ours[4:] == theirs[4:]  # exponentials, products, dexp^-1
    assert sum(ours[1:4]) <= sum(theirs[1:4])
    if name.startswith("CG"):
        assert ours == theirs


def test_operations_are_counted_where_they_happen():
    tally, paper.Tally.counts = paper.Tally, paper.Counter()
    x, y = tally(3.0), tally(2.0)
    assert -(2.0 * x - y / 4.0 + x * y + 1.0 / y) == -12.0
    assert paper.Tally.counts == {"mult": 2, "add": 3, "div": 2}
    assert paper.CountingMath().sqrt(tally(4.0)) == 2.0
    assert paper.Tally.counts["sqrt"] == 1


def test_counted_operations_of_a_step():
    """Table V: the same code for each exponential and each joint, so counts go with their numbers."""
    counts = paper.counted_operations()
    for joints in (2, 20):
        one_exponential = counts["CG3", joints]["mult"] / 6
        assert counts["CG4", joints]["mult"] == 15 * one_exponential
        assert counts["CF2", joints] == counts["CG2", joints]
    for name, (*_, dexpinv) in paper.TABLE_X.items():
        assert counts[name, 2]["div"] == dexpinv  # one in each, and no root or sine anywhere
        assert counts[name, 2].keys() <= {"add", "mult", "div"}
