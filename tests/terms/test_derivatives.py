"""Derivatives against Pinocchio (for joints it supports), the complex step through the closed form, and identities."""

import functools

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from oracles import (
    PINOCCHIO_KINDS,
    STEP,
    assert_close,
    cases,
    derivative,
    force_scale,
    moved,
    pinocchio,
    properties,
    rate_scale,
)

import geomctrl as gc
from geomctrl import derivatives, models, operational_space, se3, testing
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.mechanism.configuration import ConfigurationGroup
from geomctrl.papers import articulated_bodies, factored, sensitivities
from geomctrl.papers import higher_order_kinematics as higher

KINDS_OF_ALL = ["free", "revolute", "planar", "helical", "spherical", "cylindrical", "prismatic"]
TREE = [-1, 0, 1, 1, 3, -1, 5]


def tree(seed=0):
    return testing.random_robot(np.random.default_rng(seed), KINDS_OF_ALL, TREE)


def motion(robot, seed=0, n=3):
    rng = np.random.default_rng(seed)
    return robot.random_configuration(rng), *rng.normal(size=(n, robot.nv))


def difference(function, h=2e-3):
    """d/dt function(t) at 0, by differences of order six."""
    k, weights = np.arange(1, 4), np.array([45.0, -9.0, 1.0]) / (60.0 * h)
    return sum(w * (function(i * h) - function(-i * h)) for i, w in zip(k, weights))


def by_columns(function, n):
    return np.stack([function(e) for e in np.eye(n)], axis=-1)


def complex_step(robot, q, v, a):
    """dtau/dq and dtau/dv through the closed form, all columns in one batch."""
    n, E = robot.nv, np.eye(robot.nv)
    still = [np.tile(x, (n, 1)) for x in (q, v, a)]
    turned = np.stack([moved(robot, q, e) for e in E])
    dq = factored.inverse_dynamics(robot, turned, *still[1:]).imag / STEP
    dv = factored.inverse_dynamics(robot, still[0], still[1] + 1j * STEP * E, still[2]).imag / STEP
    return dq.T, dv.T


def inverse_scale(robot, q):
    return np.linalg.norm(np.linalg.inv(robot.mass_matrix(q)), 2)


# --- inverse dynamics --------------------------------------------------------------------------------------------


@properties
@given(cases(floating_base=None))
def test_inverse_dynamics_derivatives_equal_the_complex_step(case):
    robot, q, v, a, _ = case
    d, scale = robot.inverse_dynamics_derivatives(q, v, a), force_scale(robot, q, v, a)
    dq, dv = complex_step(robot, q, v, a)
    assert_close(d.dq, dq, 1e-12, scale)
    assert_close(d.dv, dv, 1e-12, rate_scale(robot, q, v))
    assert_close(d.da, robot.mass_matrix(q), 1e-13)


def their_derivatives(robot, function, q, v, a):
    """Return (d/dq, d/dv) by Pinocchio in our order; its tangent space is ours up to the order of coordinates."""
    theirs = pinocchio(robot)
    out = function(theirs.model, theirs.data, theirs.q(q), theirs.v(v), theirs.v(a))
    return [theirs.ours(np.array(x).copy(), 2) for x in out[:2]]


@properties
@given(cases(kinds=PINOCCHIO_KINDS, floating_base=None))
def test_derivatives_equal_pinocchios(case):
    robot, q, v, a, _ = case
    scale, ours = force_scale(robot, q, v, a), robot.inverse_dynamics_derivatives(q, v, a)
    dq, dv = their_derivatives(robot, pin.computeRNEADerivatives, q, v, a)
    assert_close(ours.dq, dq, 1e-11, scale)
    assert_close(ours.dv, dv, 1e-11, rate_scale(robot, q, v))
    tau = robot.inverse_dynamics(q, v, a)
    ours = robot.forward_dynamics_derivatives(q, v, tau)
    dq, dv = their_derivatives(robot, pin.computeABADerivatives, q, v, tau)
    inverse = inverse_scale(robot, q)
    assert_close(ours.dq, dq, 1e-9, scale * inverse)
    assert_close(ours.dv, dv, 1e-9, rate_scale(robot, q, v) * inverse)
    assert_close(ours.a, a, 1e-10, scale * inverse)


@pytest.mark.parametrize("name", models.names())
def test_derivatives_of_bundled_robots(name):
    robot = models.load(name)
    q, v, a = motion(robot, 1, 2)
    ours, (dq, dv) = robot.inverse_dynamics_derivatives(q, v, a), complex_step(robot, q, v, a)
    assert_close(ours.dq, dq, 1e-12, force_scale(robot, q, v, a))
    assert_close(ours.dv, dv, 1e-12, rate_scale(robot, q, v))


def test_wrenches_fixed_to_bodies_turn_along():
    robot = tree()
    q, v, a = motion(robot, 2, 2)
    f_ext = np.random.default_rng(5).normal(size=(robot.nbodies, 6)) * 10
    scale = force_scale(robot, q, v, a)
    d = robot.inverse_dynamics_derivatives(q, v, a, f_ext)
    dq = by_columns(
        lambda e: difference(lambda t: robot.inverse_dynamics(robot.integrate(q, t * e), v, a, f_ext=f_ext)), robot.nv
    )
    assert_close(d.dq, dq, 1e-9, scale)
    tau = robot.inverse_dynamics(q, v, a, f_ext=f_ext)
    d = robot.forward_dynamics_derivatives(q, v, tau, f_ext)
    dq = by_columns(
        lambda e: difference(lambda t: robot.forward_dynamics(robot.integrate(q, t * e), v, tau, f_ext)), robot.nv
    )
    assert_close(d.dq, dq, 1e-8, scale * inverse_scale(robot, q))
    assert_close(d.a, a, 1e-10, scale * inverse_scale(robot, q))


@properties
@given(cases(floating_base=None))
def test_gravity_gradient_of_a_free_joint_is_that_of_turning_gravity(case):
    """At rest dtau/dv vanishes and dtau/dq is symmetric where coordinates commute."""
    robot, q, v, _, _ = case
    zero = 0.0 * v
    d = robot.inverse_dynamics_derivatives(q, zero, zero)
    scale = force_scale(robot, q, zero, zero)
    assert_close(d.dv, np.zeros_like(d.dv), 1.0, 1e-13 * scale)
    single = [k for joint, s in zip(robot.joints, robot.v_slices) if joint.dof == 1 for k in range(s.start, s.stop)]
    block = d.dq[np.ix_(single, single)]  # the Hessian of the potential energy
    assert_close(block, block.T, 1e-12, scale)


# --- forward dynamics --------------------------------------------------------------------------------------------


@properties
@given(cases(floating_base=None))
def test_forward_dynamics_derivatives_undo_those_of_inverse_dynamics(case):
    robot, q, v, a, _ = case
    tau = robot.inverse_dynamics(q, v, a)
    forward = robot.forward_dynamics_derivatives(q, v, tau)
    inverse = robot.inverse_dynamics_derivatives(q, v, forward.a)
    scale = force_scale(robot, q, v, a) * np.linalg.cond(inverse.da)
    assert_close(inverse.da @ forward.dq, -inverse.dq, 1e-11, scale)
    assert_close(inverse.da @ forward.dv, -inverse.dv, 1e-11, scale)
    assert_close(inverse.da @ forward.dtau, np.eye(robot.nv), 1e-11, np.linalg.cond(inverse.da))


def test_forward_dynamics_derivatives_by_differences():
    robot = tree(3)
    q, v, tau = motion(robot, 3, 2)
    d, n = robot.forward_dynamics_derivatives(q, v, tau), robot.nv
    dq = by_columns(lambda e: difference(lambda t: robot.forward_dynamics(robot.integrate(q, t * e), v, tau)), n)
    dv = by_columns(lambda e: difference(lambda t: robot.forward_dynamics(q, v + t * e, tau)), n)
    assert_close(d.dq, dq, 1e-8)
    assert_close(d.dv, dv, 1e-8)
    assert_close(d.a, robot.forward_dynamics(q, v, tau), 1e-13)


# --- the mass matrix and its inverse -----------------------------------------------------------------------------


@properties
@given(cases(floating_base=None))
def test_inverse_of_the_mass_matrix(case):
    robot, q, v, a, _ = case
    M, inverse = robot.mass_matrix(q), robot.mass_matrix_inverse(q)
    condition = np.linalg.cond(M)
    assert_close(M @ inverse, np.eye(robot.nv), 1e-13, condition)
    assert (inverse == inverse.T).all()
    assert_close(robot.mass_matrix_solve(q, M @ v), v, 1e-13, condition * np.abs(v).max() + 1e-300)
    columns = np.stack((v, a, v - a), axis=-1)
    assert_close(robot.mass_matrix_solve(q, M @ columns), columns, 1e-12, condition * np.abs(columns).max() + 1e-300)


@pytest.mark.parametrize("n", [1, 15, 16, 17, 33])
def test_inverse_for_all_numbers_of_columns(n):
    robot = testing.random_robot(np.random.default_rng(n), ["revolute"] * n)
    q = motion(robot, n)[0]
    M = robot.mass_matrix(q)
    assert_close(M @ robot.mass_matrix_inverse(q), np.eye(n), 1e-12, np.linalg.cond(M))


@properties
@given(cases(floating_base=None))
def test_mass_matrix_derivative_is_its_rate_along_each_coordinate(case):
    robot, q, v, _, _ = case
    dM = derivatives.mass_matrix_derivative(robot, q)
    rates = by_columns(lambda e: robot.mass_matrix_rate(q, e), robot.nv)
    scale = np.abs(robot.mass_matrix(q)).max()
    assert_close(dM, rates, 1e-13, scale)
    expected = derivative(lambda x: factored.mass_matrix(robot, x), robot, q, v)
    assert_close(dM @ v, expected, 1e-12, scale * (np.abs(v).sum() + 1e-300))
    inverse = robot.mass_matrix_inverse(q)
    dI = sensitivities.mass_matrix_inverse_derivative(robot, q)
    rate = -inverse @ robot.mass_matrix_rate(q, v) @ inverse
    assert_close(dI @ v, rate, 1e-10, np.abs(inverse).max() ** 2 * scale)


# --- second derivatives ------------------------------------------------------------------------------------------


@properties
@given(cases(floating_base=None, max_bodies=5))
def test_second_derivatives_along_a_direction_by_differences(case):
    robot, q, v, a, x = case
    y, z = v[::-1], a[::-1]
    ours = np.concatenate(sensitivities.inverse_dynamics_derivatives_along(robot, q, v, a, x, y, z))

    def first(t):
        return np.concatenate(robot.inverse_dynamics_derivatives(robot.integrate(q, t * x), v + t * y, a + t * z))

    scale = force_scale(robot, q, v, a) + force_scale(robot, q, y, z)
    assert_close(ours, difference(first, 1e-3), 1e-8, scale * (1.0 + np.abs(x).max()) ** 7)


@properties
@given(cases(floating_base=None, max_bodies=5))
def test_second_derivatives_contract_to_those_along_a_direction(case):
    robot, q, v, a, x = case
    y, z = v[::-1], a[::-1]
    second, along = (
        derivatives.inverse_dynamics_second_derivatives(robot, q, v, a),
        sensitivities.inverse_dynamics_derivatives_along(robot, q, v, a, x, y, z),
    )
    scale = (force_scale(robot, q, v, a) + force_scale(robot, q, y, z)) * (1.0 + np.abs(x).sum() + np.abs(y).sum())
    dqda = second.dadq.swapaxes(-1, -2)  # d/da_k of dtau_i/dq_j is dM_ik/dq_j
    dqdv = second.dvdq.swapaxes(-1, -2)
    assert_close(along.dq, second.dqdq @ x + dqdv @ y + dqda @ z, 1e-11, scale)
    assert_close(along.dv, second.dvdq @ x + second.dvdv @ y, 1e-11, scale)
    assert_close(along.da, second.dadq @ x, 1e-11, scale)
    assert_close(second.dadq, derivatives.mass_matrix_derivative(robot, q), 1e-12, np.abs(robot.mass_matrix(q)).max())


@properties
@given(cases(floating_base=None, max_bodies=5))
def test_second_derivatives_by_velocity_are_the_christoffel_symbols(case):
    """d2tau_i/dv_j dv_k = C_i.(e_j) e_k + C_i.(e_k) e_j, and tau is quadratic in v."""
    robot, q, v, a, _ = case
    dvdv = derivatives.inverse_dynamics_second_derivatives(robot, q, v, a).dvdv
    scale = np.abs(robot.mass_matrix(q)).max()
    assert_close(dvdv, dvdv.swapaxes(-1, -2), 1e-12, scale)
    C = by_columns(lambda e: robot.coriolis_matrix(q, e, "christoffel"), robot.nv)  # C[i, k, j] = C(e_j)_ik
    assert_close(dvdv, C + C.swapaxes(-1, -2), 1e-12, scale)
    bias = robot.inverse_dynamics(q, v, 0 * v) - robot.gravity_force(q)
    assert_close(0.5 * (dvdv @ v) @ v, bias, 1e-11, force_scale(robot, q, v, a))


def test_second_derivatives_commute_up_to_the_bracket():
    """[d_j, d_k] tau = sum_m c_jk^m d_m tau, c the structure constants of one joint; none between joints."""
    robot = tree(4)
    q, v, a = motion(robot, 4, 2)
    first, second = (
        robot.inverse_dynamics_derivatives(q, v, a),
        derivatives.inverse_dynamics_second_derivatives(robot, q, v, a),
    )
    group = ConfigurationGroup(robot)
    n = robot.nv
    brackets = np.stack([group.ad(e) for e in np.eye(n)])  # [j][m, k]: coordinate m of [S_j, S_k]
    # dqdq[i, j, k] = L_k L_j tau for left-invariant fields, so L_j L_k - L_k L_j = L_[j, k]
    defect = second.dqdq.swapaxes(-1, -2) - second.dqdq
    assert_close(defect, np.einsum("im,jmk->ijk", first.dq, brackets), 1e-11, np.abs(second.dqdq).max())


@properties
@given(cases(floating_base=None, max_bodies=5))
def test_second_derivatives_of_wrenches_fixed_to_bodies_are_those_of_the_jacobians(case):
    """d2/dq_j dq_k of -sum_i Jac_i^T f_i, by the brackets of `jacobian_partial_derivatives`."""
    robot, q, v, a, x = case
    f_ext = np.random.default_rng(0).normal(size=(robot.nbodies, 6))
    loaded = derivatives.inverse_dynamics_second_derivatives(robot, q, v, a, f_ext)
    free = derivatives.inverse_dynamics_second_derivatives(robot, q, v, a)
    along = sensitivities.inverse_dynamics_derivatives_along(robot, q, v, a, x, v, a, f_ext)
    unloaded = sensitivities.inverse_dynamics_derivatives_along(robot, q, v, a, x, v, a)
    bodies = zip(robot.body_names, f_ext)
    expected = -sum(
        np.einsum("xijk,x->ijk", higher.jacobian_partial_derivatives(robot, q, name, 2), f) for name, f in bodies
    )
    scale = np.abs(free.dqdq).max() + np.abs(expected).max()
    assert_close(loaded.dqdq - free.dqdq, expected, 1e-12, scale)
    assert_close(
        along.dq - unloaded.dq, expected @ x, 1e-12, (scale + np.abs(unloaded.dq).max()) * (1 + np.abs(x).sum())
    )
    for name in ("dvdq", "dvdv", "dadq"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(free, name))


@pytest.mark.quick(4)
@pytest.mark.parametrize("loaded", [False, True], ids=["free", "loaded"])
@pytest.mark.parametrize("name", ["two_link", "panda", "tree"])
def test_forward_dynamics_second_derivatives_by_differences(name, loaded):
    robot = tree(5) if name == "tree" else models.load(name)
    q, v, tau = motion(robot, 5, 2)
    f = 5.0 * np.random.default_rng(0).normal(size=(robot.nbodies, 6)) if loaded else None
    ours, n = derivatives.forward_dynamics_second_derivatives(robot, q, v, tau, f), robot.nv

    def along_q(e):
        return difference(
            lambda t: np.stack(robot.forward_dynamics_derivatives(robot.integrate(q, t * e), v, tau, f)[:3]), 1e-3
        )

    dqdq, dvdq, dtaudq = by_columns(along_q, n)
    dvdv = by_columns(lambda e: difference(lambda t: robot.forward_dynamics_derivatives(q, v + t * e, tau, f).dv), n)
    assert_close(ours.dqdq, dqdq, 1e-7)
    assert_close(ours.dvdq, dvdq, 1e-7, np.abs(dqdq).max())
    assert_close(ours.dtaudq, dtaudq, 1e-7)
    assert_close(ours.dvdv, dvdv, 1e-8)
    assert_close(ours.dtaudq, sensitivities.mass_matrix_inverse_derivative(robot, q), 1e-11)


# --- articulated bodies and operational space --------------------------------------------------------------------


@properties
@given(cases(floating_base=None))
def test_articulated_bodies_carry_the_wrenches_of_newton_euler(case):
    """F_i = IA_i A_i + pA_i for every body, where F_i is the sum over the subtree from the true accelerations."""
    robot, q, v, tau, _ = case
    f_ext = np.random.default_rng(0).normal(size=(robot.nbodies, 6))
    a = robot.forward_dynamics(q, v, tau, f_ext)
    IA, pA = articulated_bodies.articulated_bodies(robot, q, v, tau, f_ext)
    F, A = np.zeros((robot.nbodies, 6)), []
    for i, name in enumerate(robot.body_names):
        J, V = gc.inertia.spatial(robot.parameters[i]), robot.jacobian(q, name) @ v
        gravity = np.concatenate((np.zeros(3), robot.pose(q, name)[:3, :3].T @ robot.gravity))
        A.append(robot.jacobian(q, name) @ a + robot.jacobian_rate(q, v, name) @ v - gravity)
        F[i] = J @ A[i] - se3.ad(V).T @ J @ V - f_ext[i]
    for i in range(robot.nbodies - 1, -1, -1):
        p = robot.parents[i]
        if p >= 0:
            T = np.linalg.inv(robot.pose(q, robot.body_names[p])) @ robot.pose(q, robot.body_names[i])
            F[p] += se3.Ad(se3.inverse(T)).T @ F[i]
    scale = np.abs(F).max() + np.abs(IA).max() * (np.abs(A).max() + np.abs(v).max() ** 2)
    assert_close(np.einsum("iab,ib->ia", IA, np.array(A)) + pA, F, 1e-11, scale)
    assert_close(IA, IA.swapaxes(-1, -2), 1e-15)
    leaves = sorted(set(range(robot.nbodies)) - set(robot.parents))
    for i in leaves:  # without children a body is its own articulated body
        assert_close(IA[i], gc.inertia.spatial(robot.parameters[i]), 1e-12, np.abs(IA).max())


@pytest.mark.parametrize("representation", ["body", "spatial", "hybrid", "mixed"])
def test_operational_mobility_and_inertia(representation):
    for robot in (models.panda(), tree(6)):
        q, _ = motion(robot, 6, 1)
        name = robot.body_names[-1]
        Jac = robot.jacobian(q, name, representation)
        mobility = Jac @ np.linalg.inv(robot.mass_matrix(q)) @ Jac.T
        assert_close(operational_space.mobility(robot, q, name, representation), mobility, 1e-10)

        if robot.name == "panda":
            L = operational_space.inertia(robot, q, name, representation)
            assert_close(L @ mobility, np.eye(6), 1e-9, np.linalg.cond(mobility))
    with pytest.raises(ModelError, match=r"two_link.*frame 'tip' can not move in all six directions"):
        operational_space.inertia(models.two_link(), [0.1, 0.2], "tip")


# --- geometry ----------------------------------------------------------------------------------------------------


def displaced(robot, i, U, screw):
    """The robot with joint i's placement, or screw, displaced by exp U."""
    T = se3.exp(U)
    joints, placements = list(robot.joints), robot.placements.copy()
    if screw:
        joint = joints[i]
        joints[i] = gc.Joint(joint.kind, se3.Ad(T) @ joint.S, joint.name)
    else:
        placements[i] = placements[i] @ T
    parents = [robot.body_names[p] if p >= 0 else None for p in robot.parents]
    bodies = [gc.Body(*x) for x in zip(robot.body_names, parents, joints, placements, robot.parameters)]
    return gc.Robot.build(bodies, gravity=robot.gravity)


def conjugated(robot, q, i, U):
    """The same motion of a joint that stores its pose, displaced together with the joint."""
    out = q.copy()
    if robot.joints[i].dof > 1:
        T, X = np.eye(4), se3.exp(U)
        T[:3] = q[robot.q_slices[i]].reshape(3, 4)
        out[robot.q_slices[i]] = (X @ T @ se3.inverse(X))[:3].ravel()
    return out


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("seed", range(3))
def test_geometric_sensitivity_by_displaced_robots(seed):
    rng = np.random.default_rng(seed)
    kinds = ["revolute", "spherical", "helical", "planar", "prismatic"]
    robot = testing.random_robot(rng, kinds, [-1, 0, 1, 1, 3])
    q, v, a = motion(robot, seed, 2)
    # frames fixed to the bodies, displaced with them
    f_ext = 5.0 * rng.normal(size=(robot.nbodies, 6)) if seed else None
    ours, scale = sensitivities.geometric_sensitivity(robot, q, v, a, f_ext), force_scale(robot, q, v, a)
    frame = robot.body_names[-1]
    poses, T = sensitivities.pose_sensitivity(robot, q, frame), robot.pose(q, frame)
    for i in range(robot.nbodies):
        U = rng.normal(size=6)
        for screw, tensor, pose in ((False, ours.placement, poses.placement), (True, ours.screw, poses.screw)):

            def moved(t, i=i, U=U, screw=screw):
                x = conjugated(robot, q, i, t * U) if screw else q
                return displaced(robot, i, t * U, screw).inverse_dynamics(x, v, a, f_ext=f_ext)

            def log_pose(t, i=i, U=U, screw=screw):
                x = conjugated(robot, q, i, t * U) if screw else q
                return se3.log(se3.inverse(T) @ displaced(robot, i, t * U, screw).pose(x, frame))

            assert_close(tensor[:, i] @ U, difference(moved, 1e-3), 1e-9, scale)
            assert_close(pose[:, i] @ U, difference(log_pose, 1e-3), 1e-9, 1.0)


def test_sensitivity_to_the_placement_in_the_joints_own_direction_is_the_derivative_by_its_coordinate():
    robot = models.panda()
    q, v, a = motion(robot, 7, 2)
    ours, d = sensitivities.geometric_sensitivity(robot, q, 0 * v, a), robot.inverse_dynamics_derivatives(q, 0 * v, a)
    along = np.stack([ours.placement[:, i] @ joint.S[:, 0] for i, joint in enumerate(robot.joints)], axis=-1)
    assert_close(along, d.dq, 1e-12)
    along = np.stack([ours.screw[:, i] @ joint.S[:, 0] for i, joint in enumerate(robot.joints)], axis=-1)
    assert_close(along, 0 * d.dq, 1.0, 1e-12 * np.abs(d.dq).max())  # a screw does not change along itself


# --- far from the origin -----------------------------------------------------------------------------------------


def test_a_floating_base_a_kilometre_away_keeps_its_digits():
    robot = testing.random_robot(np.random.default_rng(11), ["free", "revolute", "spherical", "helical"], [-1, 0, 1, 0])
    q, v, a = motion(robot, 11, 2)
    far = q.copy()
    far[[3, 7, 11]] += 1000.0, -700.0, 500.0
    for name in METHODS:
        if name != "inverse_dynamics_derivatives_along":
            args = (v, a)[: METHODS[name]]
            for here, there in zip(tuple_of(term(robot, name)(q, *args)), tuple_of(term(robot, name)(far, *args))):
                if name == "geometric_sensitivity":  # the root's placement and screw are relative to the world
                    here, there = here[:, 1:], there[:, 1:]
                assert_close(there, here, 1e-11, 1.0)


# --- linearisation -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["panda", "tree"])
def test_linearize_is_the_derivative_of_the_flow_in_exponential_coordinates(name):
    robot = tree(8) if name == "tree" else models.panda()
    q, v, tau = motion(robot, 8, 2)
    f_ext = 5.0 * np.random.default_rng(0).normal(size=(robot.nbodies, 6))
    A, B, a = derivatives.linearize(robot, q, v, tau, f_ext)
    n, group = robot.nv, ConfigurationGroup(robot)

    def field(x, u):
        """d/dt of (log(q_t^-1 q~), v~ - v_t), where the nominal motion q_t moves, too."""
        e = x[:n]
        qx, vx = robot.integrate(q, e), v + x[n:]
        # q~ = q_t exp(e): v~ = Ad_exp(-e) v + dexp_-e e', exactly
        carried = group.Ad(group.exp(-e)) @ v if robot.nq != n else v
        rate = group.dexp_inv_mul(-e, vx - carried) if robot.nq != n else vx - carried
        return np.concatenate((rate, robot.forward_dynamics(qx, vx, tau + u, f_ext) - a))

    zero = np.zeros(2 * n)
    expected = by_columns(lambda x: difference(lambda t: field(t * x, 0 * tau), 1e-3), 2 * n)
    assert_close(A, expected, 1e-8)
    expected = by_columns(lambda u: difference(lambda t: field(zero, t * u), 1e-3), n)
    assert_close(B, expected, 1e-8)
    assert_close(a, robot.forward_dynamics(q, v, tau, f_ext), 1e-13)


def test_linearisation_along_a_trajectory_predicts_its_neighbours():
    """x' = A(t) x, integrated along one motion of a free robot, against a second motion that starts close to it."""
    robot = testing.random_robot(np.random.default_rng(10), ["free", "revolute", "spherical"], [-1, 0, 1])
    q0, v0, tau, x0, w0 = motion(robot, 10, 4)
    h, steps, n, size = 1e-3, 200, robot.nv, 1e-6

    class Constant:
        def start(self):
            return None

        def __call__(self, t, q, v, z):
            return gc.Command(tau)

    def run(q, v):
        return gc.simulate(robot, Constant(), q, v, steps * h, h, monitors=None)

    here, there = run(q0, v0), run(robot.integrate(q0, size * x0), v0 + size * w0)
    A = derivatives.linearize(robot, here.q, here.v, here.tau).A  # all states of the trajectory at once
    x = np.concatenate((x0, w0))
    for k in range(0, steps, 2):  # Runge-Kutta with steps of two samples
        k1 = A[k] @ x
        k2 = A[k + 1] @ (x + h * k1)
        k3 = A[k + 1] @ (x + h * k2)
        k4 = A[k + 2] @ (x + 2.0 * h * k3)
        x = x + h / 3.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    expected = np.concatenate((robot.difference(here.q[-1], there.q[-1]), there.v[-1] - here.v[-1])) / size
    assert_close(x, expected, 1e-4)
    assert A.shape == (steps + 1, 2 * n, 2 * n)


# --- batches and errors ------------------------------------------------------------------------------------------

METHODS = {  # name: number of velocity-like arguments after q
    "inverse_dynamics_derivatives": 2,
    "forward_dynamics_derivatives": 2,
    "inverse_dynamics_derivatives_along": 5,
    "inverse_dynamics_second_derivatives": 2,
    "forward_dynamics_second_derivatives": 2,
    "mass_matrix_derivative": 0,
    "mass_matrix_inverse": 0,
    "mass_matrix_inverse_derivative": 0,
    "mass_matrix_solve": 1,
    "articulated_bodies": 2,
    "geometric_sensitivity": 2,
    "linearize": 2,
}
LOADED = {
    *("inverse_dynamics_derivatives", "inverse_dynamics_derivatives_along", "inverse_dynamics_second_derivatives"),
    *("forward_dynamics_derivatives", "forward_dynamics_second_derivatives"),
    *("articulated_bodies", "geometric_sensitivity", "linearize"),
}
FRAMED = {"mobility": 0, "pose_sensitivity": 0}


def term(robot, name):
    """The robot's term of this name, from the module in which it is public."""
    homes = (derivatives, sensitivities, operational_space, articulated_bodies)
    return functools.partial(next(vars(home)[name] for home in homes if name in vars(home)), robot)


def tuple_of(x):
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("lead", [(1,), (2, 2), (0,)], ids=str)
@pytest.mark.parametrize("name", [*METHODS, *FRAMED])
def test_batches_equal_loops(name, lead):
    rng, robot = np.random.default_rng(9), tree(9)
    count = (METHODS | FRAMED)[name]
    q = np.empty((*lead, robot.nq))
    for i in np.ndindex(lead):
        q[i] = robot.random_configuration(rng)
    args, f = [q, *rng.normal(size=(count, *lead, robot.nv))], term(robot, name)
    options = ({"frame": "body4"},) if name in FRAMED else ({},)
    if name in LOADED:
        options = ({}, {"f_ext": rng.normal(size=(*lead, robot.nbodies, 6))})
    for given_ in options:
        whole = tuple_of(f(*args, **given_))
        one = {k: np.zeros((robot.nbodies, 6)) if k == "f_ext" else x for k, x in given_.items()}
        shapes = [np.shape(x) for x in tuple_of(f(robot.neutral(), *np.zeros((count, robot.nv)), **one))]
        assert [x.shape for x in whole] == [lead + s for s in shapes]
        for i in np.ndindex(lead):
            picked = {k: x[i] if k == "f_ext" else x for k, x in given_.items()}
            for all_, single in zip(whole, tuple_of(f(*(x[i] for x in args), **picked))):
                assert_close(all_[i], single, 1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_bad_arguments_are_named(name):
    robot, count = models.two_link(), METHODS[name]
    good = [np.zeros(2)] * (count + 1)
    for i in range(count + 1):
        for bad, message in ((np.zeros(3), "shape"), (np.array([0.0, np.nan]), "finite"), ("x", "real numbers")):
            args = [*good]
            args[i] = bad
            with pytest.raises(ArgumentError, match=message):
                term(robot, name)(*args)


def test_an_indefinite_mass_matrix_is_refused():
    pi = np.array([-1.0, 0, 0, 0, 0, 0, 0, 0, 0, -1.0])
    robot = gc.Robot.build([gc.Body("b", None, gc.Joint.revolute((0, 0, 1)), None, -pi)], physical=False)
    robot = robot.with_parameters([pi], physical=False)
    for x, v, tau in (([0.5], [0.0], [1.0]), np.array([[0.5], [0.0], [1.0]])):  # arrays: also the kernel for one state
        for call in (
            lambda x=x: robot.mass_matrix_inverse(x),
            lambda x=x, tau=tau: robot.mass_matrix_solve(x, tau),
            lambda x=x, v=v, tau=tau: articulated_bodies.articulated_bodies(robot, x, v, tau),
            lambda x=x, v=v, tau=tau: robot.forward_dynamics_derivatives(x, v, tau),
        ):
            with pytest.raises(ModelError, match=r"the mass matrix is not positive definite at q = \[0.5\]"):
                call()


def test_solve_tells_columns_from_batches():
    robot = models.two_link()
    q, b = np.zeros((3, 2)), np.random.default_rng(0).normal(size=(3, 2, 3))
    X = robot.mass_matrix_solve(q, b)
    for i in range(3):
        assert_close(X[i, :, 1], robot.mass_matrix_solve(q[i], b[i, :, 1]), 1e-13)
    with pytest.raises(ArgumentError, match="b: expected the leading axes of q"):
        robot.mass_matrix_solve(q, np.zeros((2, 2)))
