"""Satellite, quadrotor, cart and pole: their textbook equations."""

import numpy as np
import pytest
from oracles import assert_close

import geomctrl as gc
from geomctrl import models, so3


def test_satellite_obeys_eulers_equation():
    robot, rng = models.satellite(), np.random.default_rng(0)
    q, (v, tau) = robot.random_configuration(rng), rng.normal(size=(2, 3))
    J = np.diag((900.0, 800.0, 600.0))
    assert_close(J @ robot.forward_dynamics(q, v, tau), tau - np.cross(v, J @ v), 1e-12)


def test_wheels_turn_the_satellite_and_leave_its_momentum_in_the_world():
    robot = models.satellite(wheels=True)

    class Spin:
        def __call__(self, t, q, v, z):
            return gc.Command(np.array([0.0, 0.0, 0.0, 0.2, -0.1, 0.15]))

    v0 = np.array([0.01, -0.02, 0.015, 10.0, -20.0, 5.0])
    run = gc.simulate(robot, Spin(), robot.neutral(), v0, 20.0, 0.05)
    h = np.array([so3_of(q) @ robot.mass_matrix(q)[:3] @ v for q, v in zip(run.q, run.v)])
    assert np.abs(run.v[-1, :3] - v0[:3]).min() > 1e-3
    assert_close(h, np.broadcast_to(h[0], h.shape), 1e-9)
    wheel = robot.parameters[1]
    # ratio of momentum to speed, from its data sheet
    assert wheel[4] == pytest.approx(100.0 / (6000.0 * 2.0 * np.pi / 60.0))


def so3_of(q):
    return q[:12].reshape(3, 4)[:, :3]


def wrenches_of_unit_thrusts(robot):
    """(6, 4), as the docstring of the model and the page about quadrotors compute it."""
    x, y, z = np.array([robot.pose(robot.neutral(), f"rotor{k}")[:3, 3] for k in (1, 2, 3, 4)]).T
    assert not z.any()
    zero = np.zeros(4)
    return np.array([y, -x, 8.004e-3 * np.array([1, -1, 1, -1]), zero, zero, zero + 1.0])


def test_quadrotor_hovers():
    robot = models.quadrotor()
    hover = wrenches_of_unit_thrusts(robot) @ np.full(4, 4.34 * 9.81 / 4.0)
    R = so3.exp(np.array([0.0, 0.0, 0.7]))
    q = np.hstack((R, np.ones((3, 1)))).ravel()
    assert_close(robot.forward_dynamics(q, np.zeros(6), hover), np.zeros(6), 1e-12, 1.0)


def test_thrusts_are_the_papers_turned_to_z_up():
    """f = sum of thrusts, M = [[0, -d, 0, d], [d, 0, -d, 0], [-c, c, -c, c]] thrusts with z down (CDC 2010, (1))."""
    d, c = 0.315, 8.004e-3
    paper = np.array([[0.0, -d, 0.0, d], [d, 0.0, -d, 0.0], [-c, c, -c, c]])
    assert_close(wrenches_of_unit_thrusts(models.quadrotor())[:3], np.diag((1.0, -1.0, -1.0)) @ paper, 1e-15)


def test_cart_pole_closed_form():
    robot, rng = models.cart_pole(), np.random.default_rng(0)
    for q, v in rng.normal(size=(5, 2, 2)):
        b, J = 0.1 * 0.5, 0.1 / 3.0
        terms = robot.terms(q, v)
        assert_close(terms.M, [[1.1, b * np.cos(q[1])], [b * np.cos(q[1]), J]], 1e-14)
        assert_close(terms.C @ v, [-b * np.sin(q[1]) * v[1] ** 2, 0.0], 1e-13, 1.0)
        assert_close(terms.g, [0.0, -b * 9.81 * np.sin(q[1])], 1e-13, 1.0)
        assert_close(robot.pose(q, "tip")[:3, 3], [q[0] + np.sin(q[1]), 0.0, np.cos(q[1])], 1e-14, 1.0)
