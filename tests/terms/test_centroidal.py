"""Centre of mass and centroidal momentum: body by body, against Pinocchio, and the rate by differences."""

import numpy as np
import pinocchio as pin
import pytest
from oracles import assert_close

import geomctrl as gc
from geomctrl import inertia, models, testing
from geomctrl.errors import ArgumentError

KINDS = ["free", "revolute", "prismatic", "helical", "spherical", "planar"]
TREE = testing.random_robot(np.random.default_rng(3), KINDS, [-1, 0, 0, 2, 1, 3])
FOREST = testing.random_robot(np.random.default_rng(5), ["revolute", "spherical", "revolute"], [-1, -1, 1])
ROBOTS = [models.panda(), models.quadruped(), TREE, FOREST]


def state(robot, seed=0):
    rng = np.random.default_rng(seed)
    return robot.random_configuration(rng), rng.normal(size=robot.nv)


def center_body_by_body(robot, q):
    moments = [
        pi[0] * (robot.pose(q, name) @ [*inertia.com(pi), 1.0])[:3]
        for name, pi in zip(robot.body_names, robot.parameters)
        if pi[0]
    ]
    return np.sum(moments, axis=0) / robot.parameters[:, 0].sum()


def momentum_body_by_body(robot, q, v):
    """sum_i (R I_c w + m (c_i - c) x c_i', m c_i') from each body's Jacobian."""
    c, total = center_body_by_body(robot, q), np.zeros(6)
    for name, pi in zip(robot.body_names, robot.parameters):
        if not pi[0]:
            continue
        T, V = robot.pose(q, name), robot.jacobian(q, name) @ v
        own, R = inertia.com(pi), T[:3, :3]
        p = pi[0] * R @ (V[3:] + np.cross(V[:3], own))
        arm = T[:3, 3] + R @ own - c
        total += np.concatenate((R @ inertia.com_tensor(pi) @ V[:3] + np.cross(arm, p), p))
    return total


@pytest.mark.usefixtures("kernels")
@pytest.mark.quick(2)
@pytest.mark.parametrize("robot", ROBOTS, ids=lambda r: r.name)
def test_sums_over_bodies(robot):
    q, v = state(robot)
    assert_close(robot.center_of_mass(q), center_body_by_body(robot, q), 1e-12)
    assert_close(robot.centroidal_momentum_matrix(q) @ v, momentum_body_by_body(robot, q, v), 1e-11)
    spatial, c = robot.momentum(q, v), robot.center_of_mass(q)
    expected = np.concatenate((spatial[:3] - np.cross(c, spatial[3:]), spatial[3:]))
    assert_close(robot.centroidal_momentum_matrix(q) @ v, expected, 1e-11)


@pytest.mark.parametrize("robot", ROBOTS, ids=lambda r: r.name)
def test_rate_is_the_derivative_along_the_motion(robot):
    q, v = state(robot, 1)
    h = 1e-5
    ends = [robot.centroidal_momentum_matrix(robot.integrate(q, t * v)) for t in (h, -h)]
    rate = robot.centroidal_momentum_matrix_rate(q, v)
    assert_close(rate, (ends[0] - ends[1]) / (2 * h), 1e-7, np.abs(rate).max())
    com = [robot.center_of_mass(robot.integrate(q, t * v)) for t in (h, -h)]
    mass = robot.parameters[:, 0].sum()
    assert_close(robot.centroidal_momentum_matrix(q)[3:] @ v, mass * (com[0] - com[1]) / (2 * h), 1e-7, 10.0)


def test_angular_momentum_of_a_falling_body_stays():
    """Without contact and torque the weight alone changes the centroidal momentum."""
    robot = models.quadruped()
    q, v = state(robot, 2)
    a = robot.forward_dynamics(q, v, np.zeros(robot.nv))
    rate = robot.centroidal_momentum_matrix(q) @ a + robot.centroidal_momentum_matrix_rate(q, v) @ v
    weight = robot.parameters[:, 0].sum() * np.asarray(robot.gravity)
    assert_close(rate, np.concatenate((np.zeros(3), weight)), 1e-8, 1e3)


def test_pinocchio_agrees(tmp_path):
    robot = models.panda()
    q, v = state(robot, 4)
    model = pin.buildModelFromUrdf(str(models.save(robot, tmp_path / "panda.urdf")))
    data = model.createData()
    assert_close(robot.center_of_mass(q), pin.centerOfMass(model, data, q), 1e-12)
    A = pin.ccrba(model, data, q, v).copy()
    dA = pin.dccrba(model, data, q, v).copy()
    order = [3, 4, 5, 0, 1, 2]  # Pinocchio has the linear part first
    assert_close(robot.centroidal_momentum_matrix(q), A[order], 1e-11)
    assert_close(robot.centroidal_momentum_matrix_rate(q, v), dA[order], 1e-11)


def test_batches_are_row_by_row():
    rng = np.random.default_rng(0)
    q = np.array([[TREE.random_configuration(rng) for _ in range(3)] for _ in range(2)])
    v = rng.normal(size=(2, 3, TREE.nv))
    assert_close(TREE.center_of_mass(q)[1, 2], TREE.center_of_mass(q[1, 2]), 1e-13)
    assert_close(TREE.centroidal_momentum_matrix(q)[1, 2], TREE.centroidal_momentum_matrix(q[1, 2]), 1e-13)
    rates = TREE.centroidal_momentum_matrix_rate(q, v)
    assert_close(rates[0, 1], TREE.centroidal_momentum_matrix_rate(q[0, 1], v[0, 1]), 1e-13)


def test_joints_that_follow_others(kernels):
    free = models.two_link()
    names = free.joint_names
    coupling = gc.Coupling(names[1], {names[0]: -0.5}, offset=0.2)
    robot = gc.Robot(
        free.name, free.body_names, free.parents, free.joints, free.placements, free.parameters, free.gravity,
        free.frames, couplings=(coupling,),
    )  # fmt: skip
    q, v = np.array([0.3]), np.array([1.1])
    x, A = robot.coupling.tree_configuration(q), robot.coupling.matrix
    assert_close(robot.center_of_mass(q), free.center_of_mass(x), 1e-14)
    assert_close(robot.centroidal_momentum_matrix(q), free.centroidal_momentum_matrix(x) @ A, 1e-14)
    rate = free.centroidal_momentum_matrix_rate(x, A @ v) @ A
    assert_close(robot.centroidal_momentum_matrix_rate(q, v), rate, 1e-14)


def test_bad_arguments_and_robots_without_mass_are_refused():
    robot = models.two_link()
    for call in (robot.center_of_mass, robot.centroidal_momentum_matrix):
        with pytest.raises(ArgumentError, match="q: "):
            call(np.zeros(3))
        with pytest.raises(ArgumentError, match="q: "):
            call([np.nan, 0.0])
        with pytest.raises(ArgumentError, match="q: "):
            call(3)
    massless = robot.with_armature(1.0).with_parameters(np.zeros((robot.nbodies, 10)))
    with pytest.raises(ArgumentError, match="positive total mass"):
        massless.center_of_mass(robot.neutral())
    with pytest.raises(ArgumentError, match="positive total mass"):
        massless.centroidal_momentum_matrix(robot.neutral())
