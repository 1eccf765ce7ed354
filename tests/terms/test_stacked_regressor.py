"""The joint-by-joint regressor of many states against the regressor of each, and its zeros."""

import numpy as np
import pytest

from geomctrl import models
from geomctrl.errors import ArgumentError
from geomctrl.terms.regressor import stacked_regressor, subtree_bodies


@pytest.mark.parametrize("name", models.names())
@pytest.mark.parametrize("count", [1, 16, 37])
def test_blocks_are_the_regressors_non_zero_columns(name, count):
    robot, rng = models.load(name), np.random.default_rng(count)
    q = np.array([robot.random_configuration(rng) for _ in range(count)])
    v, a = rng.normal(size=(2, count, robot.nv))
    Y = robot.regressor(q, v, a)
    for k, (block, bodies) in enumerate(zip(stacked_regressor(robot, q, v, a), subtree_bodies(robot))):
        columns = (10 * bodies[:, None] + np.arange(10)).ravel()
        np.testing.assert_allclose(block.T, Y[:, k, columns], atol=1e-12 * np.abs(Y).max())
        assert not np.delete(Y[:, k], columns, axis=1).any()


def test_coordinates_beyond_the_fast_sine_are_right_too():
    robot = models.panda()
    q = np.full((20, 7), 1e9)
    v = np.ones((20, 7))
    for k, block in enumerate(stacked_regressor(robot, q, v, v)):
        np.testing.assert_allclose(block.T, robot.regressor(q, v, v)[:, k, 10 * k :], atol=1e-9)


def test_bad_states_are_refused():
    robot = models.panda()
    with pytest.raises(ArgumentError, match="v"):
        stacked_regressor(robot, np.zeros((3, 7)), np.zeros((3, 6)), np.zeros((3, 7)))
    with pytest.raises(ArgumentError, match="finite"):
        stacked_regressor(robot, np.full((3, 7), np.nan), np.zeros((3, 7)), np.zeros((3, 7)))
