"""The dynamically consistent inverse and its null space against their definitions, and a traced frame inertia."""

import numpy as np
import pytest
from oracles import assert_close

import geomctrl as gc
from geomctrl import models, operational_space, testing
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.kernels import mass_matrix_inverse as kernels
from geomctrl.terms.kinematics import representation_number

ARM = models.panda()
TOOL = ARM.body_names[-1]
RNG = np.random.default_rng(0)
Q = ARM.random_configuration(RNG)


@pytest.mark.parametrize("rows", [slice(0, 6), slice(3, 6)], ids=["pose", "position"])
def test_of_all_right_inverses_it_has_the_least_kinetic_energy(rows):
    J, M = ARM.jacobian(Q, TOOL, "hybrid")[rows], ARM.mass_matrix(Q)
    Jbar, N = (
        operational_space.dynamically_consistent_inverse(ARM, Q, J),
        operational_space.null_space_projector(ARM, Q, J),
    )
    m = len(J)
    assert_close(J @ Jbar, np.eye(m), 1e-11)
    assert_close(J @ N, np.zeros_like(J), 1.0, 1e-11)
    assert_close(N @ N, N, 1e-10)
    assert_close(M @ N, N.T @ M, 1e-10)
    x = RNG.normal(size=m)
    weighted = np.linalg.cholesky(M).T  # |weighted v|^2 = v . M v: the minimum-norm solution in that metric
    least = np.linalg.solve(weighted, np.linalg.pinv(J @ np.linalg.inv(weighted)) @ x)
    assert_close(Jbar @ x, least, 1e-9)


def test_torques_in_the_null_space_do_not_accelerate_the_task():
    J = ARM.jacobian(Q, TOOL)
    N, tau = operational_space.null_space_projector(ARM, Q, J), RNG.normal(size=ARM.nv)
    held = ARM.gravity_force(Q)
    a = ARM.forward_dynamics(Q, 0 * tau, held + N.T @ tau)
    assert np.abs(a).max() > 0.1
    assert_close(J @ a, np.zeros(6), 1.0, 1e-9 * np.abs(a).max())


def test_many_states_and_words():
    q = np.array([[ARM.random_configuration(RNG) for _ in range(2)]])
    J = ARM.jacobian(q, TOOL)[..., 3:, :]
    N = operational_space.null_space_projector(ARM, q, J)
    assert N.shape == (1, 2, 7, 7)
    assert_close(N[0, 1], operational_space.null_space_projector(ARM, q[0, 1], J[0, 1]), 1e-12)
    with pytest.raises(ArgumentError, match="J: expected the leading axes of q"):
        operational_space.null_space_projector(ARM, Q, J)
    with pytest.raises(ArgumentError, match="J: expected shape"):
        operational_space.null_space_projector(ARM, Q, np.eye(3))
    with pytest.raises(ModelError, match="full row rank"):
        operational_space.null_space_projector(ARM, Q, np.ones((2, 7)))


class Khatib:
    """A law with operational inertia and projector, which can be traced."""

    robot = ARM

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        J = self.robot.jacobian(q, TOOL)
        F = operational_space.inertia(self.robot, q, TOOL).dot(J.dot(v))
        return gc.Command(J.T.dot(F) + operational_space.null_space_projector(self.robot, q, J).T.dot(v))


def test_they_trace():
    law, v = gc.compile(Khatib()), RNG.normal(size=7)
    assert_close(law(0.0, Q, v, None).tau, Khatib()(0.0, Q, v, None).tau, 1e-8)


TREE = testing.random_robot(np.random.default_rng(5), ["free", "spherical", "revolute", "cylindrical"], [-1, 0, 1, 2])


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("representation", ["body", "spatial", "hybrid", "mixed"])
@pytest.mark.parametrize("robot", [ARM, TREE], ids=["arm", "tree"])
def test_a_frame_s_inertia_is_the_inverse_of_its_mobility(robot, representation):
    """Against dense M and Jacobians; compiled, and in numba's loops as for large robots."""
    robot = robot.with_armature(
        np.where([joint.dof == 1 for joint in robot.joints for _ in range(joint.dof)], 0.1, 0.0)
    )
    q, name = robot.random_configuration(RNG), robot.body_names[-1]
    J = robot.jacobian(q, name, representation)
    G = J @ np.linalg.solve(robot.mass_matrix(q), J.T)
    assert_close(operational_space.mobility(robot, q, name, representation), G, 1e-11)
    assert_close(operational_space.inertia(robot, q, name, representation), np.linalg.inv(G), 1e-8)
    at, form = robot.frame(name), representation_number(representation)
    looped, failed = kernels.operational_inertia.many(robot._model, q[None], at.body, at.placement[:3].flatten(), form)
    assert failed == -1
    assert_close(looped[0], np.linalg.inv(G), 1e-8)
    many = operational_space.inertia(robot, np.stack((q, q)), name, representation)
    assert_close(many[1], np.linalg.inv(G), 1e-8)


def test_why_a_frame_has_no_inertia_is_said():
    with pytest.raises(ModelError, match="can not move in all six directions"):
        operational_space.inertia(models.two_link(), [0.1, 0.2], "tip")
    with pytest.raises(ModelError, match="can not move in all six directions"):
        operational_space.inertia(ARM, Q, "world")
    stretched = np.zeros(6)
    with pytest.raises(ModelError, match="can not move in all six directions"):
        operational_space.inertia(models.ur10(), stretched, models.ur10().body_names[-1])
