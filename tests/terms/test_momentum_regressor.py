"""The regressors of the generalised momentum p = M v and of its rate, against M, C and Mdot."""

import functools

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import models, testing
from geomctrl.terms import regressor

RNG = np.random.default_rng(11)
TREE = testing.random_robot(RNG, ["free", "spherical", "revolute", "cylindrical"], [-1, 0, 0, 2])
ROBOTS = {
    "panda": models.panda(),
    "puma560": models.puma560(),  # with armature
    "planar and helical": testing.random_robot(RNG, ["planar", "helical", "prismatic"], [-1, 0, 1]),
    "tree": TREE,
}


def armature(robot):
    bare = robot.with_armature(0.0)
    q = robot.neutral()
    return np.diag(robot.mass_matrix(q) - bare.mass_matrix(q))


@pytest.mark.parametrize("robot", ROBOTS.values(), ids=ROBOTS)
def test_momentum_is_linear_in_the_parameters(robot):
    for _ in range(3):
        q, v = robot.random_configuration(RNG), RNG.normal(size=robot.nv)
        p = regressor.momentum_regressor(robot, q, v) @ robot.parameters.ravel() + armature(robot) * v
        np.testing.assert_allclose(p, robot.mass_matrix(q) @ v, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("robot", ROBOTS.values(), ids=ROBOTS)
def test_its_rate_is_the_transposed_coriolis_force_less_gravity(robot):
    """p' = M a + Mdot v, and Mdot = C + C^T for every C that keeps Mdot - 2C skew."""
    for form in ("ploen", "adjoint"):
        q, v, tau = robot.random_configuration(RNG), RNG.normal(size=robot.nv), RNG.normal(size=robot.nv)
        terms = robot.terms(q, v, form=form)
        rate = regressor.momentum_rate_regressor(robot, q, v) @ robot.parameters.ravel()
        np.testing.assert_allclose(rate, terms.C.T @ v - terms.g, rtol=1e-10, atol=1e-10)
        a = robot.forward_dynamics(q, v, tau)
        np.testing.assert_allclose(rate + tau, terms.M @ a + terms.Mdot @ v, rtol=1e-8, atol=1e-8)


def test_batches_and_wrong_arguments():
    robot = ROBOTS["panda"]
    q, v = RNG.normal(size=(2, 3, 7)), RNG.normal(size=(2, 3, 7))
    for function in (regressor.momentum_regressor, regressor.momentum_rate_regressor):
        term = functools.partial(function, robot)
        result = term(q, v)
        assert result.shape == (2, 3, 7, 70)
        np.testing.assert_allclose(result[1, 2], term(q[1, 2], v[1, 2]), rtol=1e-12, atol=1e-12)
        with pytest.raises(gc.errors.ArgumentError, match=r"q: expected shape \(..., 7\)"):
            term(q[0, 0, :6], v[0, 0])
        with pytest.raises(gc.errors.ArgumentError, match="v: expected finite"):
            term(q[0, 0], np.full(7, np.nan))
