"""M x and C^T x without the matrices: against the matrices, the rate of the momentum, and Pinocchio."""

import numpy as np
import pytest
from hypothesis import given, settings
from oracles import assert_close, cases, derivative, pinocchio, properties, random_motion, rate_scale

import geomctrl as gc
from geomctrl import derivatives, models, testing
from geomctrl.errors import ArgumentError
from geomctrl.papers import factored

FORMS = ("ploen", "christoffel", "adjoint")
MOTORS = testing.random_robot(np.random.default_rng(2), ["free", "revolute", "spherical"], [-1, 0, 1])


@settings(properties, max_examples=8)
@given(cases(floating_base=None, max_bodies=4))
def test_products_are_those_of_the_matrices(case):
    robot, q, v, x, _ = case
    scale = rate_scale(robot, q, v) * np.abs(x).max()
    M = factored.mass_matrix(robot, q)
    assert_close(robot.mass_matrix_product(q, x), M @ x, 1e-11, np.abs(M).max() * np.abs(x).max())
    for form in FORMS:
        C = robot.coriolis_matrix(q, v, form)
        assert_close(derivatives.coriolis_transpose_product(robot, q, v, x, form), C.T @ x, 1e-11, scale)


def test_motors_are_felt_by_m_alone():
    arm = models.puma560()
    assert arm.armature.any()
    q, v, x, _ = random_motion(arm)
    assert_close(arm.mass_matrix_product(q, x), arm.mass_matrix(q) @ x, 1e-13)
    bare = arm.with_armature(np.zeros(arm.nv))
    assert_close(
        derivatives.coriolis_transpose_product(arm, q, v, x),
        derivatives.coriolis_transpose_product(bare, q, v, x),
        1e-13,
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["panda", "quadruped"])
def test_the_rate_of_the_momentum_is_that_of_the_observer(name, form):
    """d/dt of M v along the motion is C v + C^T v, by the complex step on the dense form, which uses neither
    product.
    """
    robot = models.load(name)
    q, v, *_ = random_motion(robot, 1)
    rate = derivative(lambda x: factored.mass_matrix(robot, x) @ v, robot, q, v)
    Cv = robot.inverse_dynamics(q, v, np.zeros(robot.nv)) - robot.gravity_force(q)
    assert_close(Cv + derivatives.coriolis_transpose_product(robot, q, v, form=form), rate, 1e-9, np.abs(Cv).max())


def test_products_are_pinocchios():
    pin = pytest.importorskip("pinocchio")

    robot = models.panda()
    model, (q, v, x, _) = pinocchio(robot.with_gravity((0.0, 0.0, 0.0))).model, random_motion(robot, 3)
    C = pin.computeCoriolisMatrix(model, model.createData(), q, v)
    assert_close(derivatives.coriolis_transpose_product(robot, q, v, x, "christoffel"), C.T @ x, 1e-11)
    assert_close(robot.mass_matrix_product(q, x), pin.rnea(model, model.createData(), q, 0.0 * v, x), 1e-11)


def test_many_states_at_once_and_words_for_others():
    robot, rng = models.panda(), np.random.default_rng(0)
    q, v, x = (rng.normal(size=(2, 3, robot.nv)) for _ in range(3))
    y = derivatives.coriolis_transpose_product(robot, q, v, x)
    Mx = robot.mass_matrix_product(q, x)
    assert y.shape == Mx.shape == (2, 3, robot.nv)
    for b in np.ndindex(2, 3):
        assert_close(y[b], derivatives.coriolis_transpose_product(robot, q[b], v[b], x[b]), 1e-12)
        assert_close(Mx[b], robot.mass_matrix_product(q[b], x[b]), 1e-12)
    with pytest.raises(ArgumentError, match="x: expected"):
        robot.mass_matrix_product(q[0, 0], x[0, 0, :3])
    with pytest.raises(ArgumentError, match="form"):
        derivatives.coriolis_transpose_product(robot, q[0, 0], v[0, 0], form="other")  # pyright: ignore[reportArgumentType]


def test_they_trace():
    class Law:
        robot = MOTORS

        def start(self):
            return None

        def __call__(self, t, q, v, z):
            return gc.Command(
                self.robot.mass_matrix_product(q, v) + derivatives.coriolis_transpose_product(self.robot, q, v)
            )

    law, (q, v, *_) = gc.compile(Law()), random_motion(MOTORS)
    assert_close(law(0.0, q, v, None).tau, Law()(0.0, q, v, None).tau, 1e-12)
