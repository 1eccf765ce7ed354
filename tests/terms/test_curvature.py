"""Christoffel symbols and curvature: derivatives of M, each other's formulas, identities, closed forms."""

import numpy as np
import pytest
from hypothesis import given
from oracles import ONE_DOF, STEP, assert_close, cases, derivative, properties, rate_scale

from geomctrl import models, testing
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint
from geomctrl.papers import closed_forms, factored
from geomctrl.papers import curvature as geometry
from geomctrl.robot import Robot


def gradient(function, q):
    return np.stack([np.imag(function(q + 1j * STEP * e)) / STEP for e in np.eye(len(q))], -1)


def random_motion(kinds, seed=0, **options):
    rng = np.random.default_rng(seed)
    robot = testing.random_robot(rng, kinds, **options)
    return robot, robot.random_configuration(rng), *rng.normal(size=(3, robot.nv))


def size_of(robot, q):
    return np.abs(robot.mass_matrix(q)).max()


@properties
@given(cases(kinds=ONE_DOF, max_bodies=6))
def test_christoffel_symbols_are_derivatives_of_M(case):
    robot, q, _, _, _ = case
    dM = gradient(lambda x: factored.mass_matrix(robot, x), q)
    expected = 0.5 * (np.einsum("kji->ijk", dM) + np.einsum("kij->ijk", dM) - dM)
    Gamma, scale = geometry.christoffel_symbols(robot, q), size_of(robot, q)
    assert_close(Gamma, expected, 1e-12, scale)
    assert_close(Gamma, Gamma.swapaxes(0, 1), 1e-15, scale)
    raised = np.linalg.solve(robot.mass_matrix(q), expected.reshape(-1, robot.nv).T).T.reshape(expected.shape)
    assert_close(geometry.christoffel_symbols(robot, q, 2), raised, 1e-9, 1.0)


@properties
@given(cases(kinds=ONE_DOF, max_bodies=6))
def test_papers_formulas_for_christoffel_symbols_agree(case):
    robot, q, _, _, _ = case
    Gamma, scale = geometry.christoffel_symbols(robot, q), size_of(robot, q)
    assert_close(closed_forms.product_christoffel_symbols(robot, q), Gamma, 1e-12, scale)
    assert_close(closed_forms.mueller_christoffel_symbols(robot, q), Gamma, 1e-12, scale)
    assert_close(closed_forms.binet_christoffel_symbols(robot, q), Gamma, 1e-12, scale)


@properties
@given(cases(max_bodies=5))
def test_christoffel_symbols_of_any_joints_are_the_lowered_connection(case):
    """C_christoffel(v) w, M [E_i, E_j] for the torsion, and dM along every velocity for the metric."""
    robot, q, v, w, _ = case
    Gamma, scale = geometry.christoffel_symbols(robot, q), size_of(robot, q)
    C = robot.coriolis_matrix(q, v, "christoffel")
    assert_close(np.einsum("ijk,i->kj", Gamma, v), C, 1e-11, rate_scale(robot, q, v))
    rate = derivative(lambda x: factored.mass_matrix(robot, x), robot, q, w)
    along = np.einsum("ijk,i->jk", Gamma, w)
    assert_close(along + along.T, rate, 1e-11, rate_scale(robot, q, w))
    bracket = np.zeros((robot.nv, robot.nv, robot.nv))
    for joint, s in zip(robot.joints, robot.v_slices):
        if joint.dof > 1:
            ad = np.stack([factored.ad(x) @ joint.S for x in joint.S.T])  # [i, :, j]
            bracket[s, s, s] = np.einsum("kx,ixj->ijk", np.linalg.pinv(joint.S), ad)
    assert_close(Gamma - Gamma.swapaxes(0, 1), bracket @ robot.mass_matrix(q), 1e-11, scale)


def test_inner_product_is_twice_the_kinetic_energy():
    robot, q, x, y, _ = random_motion(["free", "revolute", "spherical"])
    assert_close(geometry.inner_product(robot, q, x, x), 2.0 * robot.kinetic_energy(q, x), 1e-13)
    assert_close(geometry.inner_product(robot, q, x, y), x @ robot.mass_matrix(q) @ y, 1e-13)


@properties
@given(cases(max_bodies=5))
def test_covariant_derivative_is_metric_and_vanishes_on_free_motions(case):
    """d/dt <w, w> = 2 <Dw/dt, w>; without torques and gravity Dv/dt = 0."""
    robot, q, v, w, w_rate = case
    D = geometry.covariant_derivative(robot, q, v, w, w_rate)
    lowered = robot.mass_matrix(q) @ (D - w_rate)  # skewness alone, of any other C, would also pass the checks below
    Gamma = geometry.christoffel_symbols(robot, q)
    assert_close(lowered, np.einsum("ijk,i,j->k", Gamma, v, w), 1e-9, rate_scale(robot, q, v) * np.abs(w).max())
    rate = w @ derivative(lambda x: factored.mass_matrix(robot, x), robot, q, v) @ w
    rate += 2.0 * geometry.inner_product(robot, q, w, w_rate)
    scale = rate_scale(robot, q, v) * (w @ w) + size_of(robot, q) * np.abs(w).max() * np.abs(w_rate).max()
    assert_close(2.0 * geometry.inner_product(robot, q, D, w), rate, 1e-10, scale)
    a = robot.with_gravity((0, 0, 0)).forward_dynamics(q, v, np.zeros(robot.nv))
    assert_close(
        geometry.covariant_derivative(robot, q, v, v, a), np.zeros(robot.nv), 1e-9, max(np.abs(a).max(), v @ v)
    )


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("seed", range(4))
def test_curvature_is_that_of_park_bobrow_ploen_66(seed):
    robot, q, *_ = random_motion(("revolute", "helical", "prismatic", "revolute", "revolute"), seed)
    n, Gamma = robot.nv, closed_forms.product_christoffel_symbols(robot, q)
    d = gradient(lambda x: closed_forms.product_christoffel_symbols(robot, x), q)
    raised = np.linalg.solve(robot.mass_matrix(q), Gamma.reshape(-1, n).T).T.reshape(Gamma.shape)
    R = np.einsum("jlik->ijkl", d) - np.einsum("jkil->ijkl", d)
    R += np.einsum("ilr,jkr->ijkl", Gamma, raised) - np.einsum("ikr,jlr->ijkl", Gamma, raised)
    assert_close(geometry.riemann_curvature(robot, q), R, 1e-12)


@pytest.mark.parametrize("parents", [None, [-1, 0, 0, 1, 1]])
def test_propositions_of_park_bobrow_ploen_53_and_54(parents):
    """Derivatives of the maps Ad_j^i, on a chain and on a tree, where joints off the path have no effect."""
    kinds = ("revolute", "helical", "prismatic", "revolute", "revolute")
    robot, q, *_ = random_motion(kinds, 2, parents=parents)
    L = closed_forms.product_of_exponentials(robot, q).L
    first, second = closed_forms.adjoint_derivatives(robot, q), closed_forms.adjoint_second_derivatives(robot, q)
    assert_close(first, gradient(lambda x: closed_forms.product_of_exponentials(robot, x).L, q), 1e-13)
    assert_close(second, gradient(lambda x: closed_forms.adjoint_derivatives(robot, x), q), 1e-13)
    assert_close(second, second.swapaxes(-1, -2), 1e-14)
    A, k = closed_forms.product_of_exponentials(robot, q).A, 1  # of Ad_4^1 by x_1: Ad_4^1 changes by [., A_1] only
    inner = -factored.ad(A[6 * k : 6 * k + 6, k]) @ L[6 * k : 6 * k + 6, :6]
    assert_close(first[24:, :6, k], L[24:, 6 * k : 6 * k + 6] @ inner, 1e-13)
    batch = np.stack((q, 0.5 * q))
    assert_close(closed_forms.adjoint_derivatives(robot, batch)[0], first, 1e-14)
    assert_close(closed_forms.adjoint_second_derivatives(robot, batch)[0], second, 1e-14)


@pytest.mark.parametrize("kinds", [("revolute",) * 5, ("free", "revolute", "spherical"), ("planar", "cylindrical")])
def test_curvature_has_its_symmetries(kinds):
    robot, q, *_ = random_motion(kinds, 3)
    R = geometry.riemann_curvature(robot, q)
    size = np.abs(R).max()
    assert size > 1e-3
    assert_close(R, -R.transpose(1, 0, 2, 3), 1e-12, size)
    assert_close(R, -R.transpose(0, 1, 3, 2), 1e-12, size)
    assert_close(R, R.transpose(2, 3, 0, 1), 1e-12, size)
    assert_close(R + R.transpose(0, 2, 3, 1) + R.transpose(0, 3, 1, 2), np.zeros_like(R), 1e-12, size)
    Ric = geometry.ricci_curvature(robot, q)
    assert_close(Ric, Ric.T, 1e-10)


def test_second_bianchi_identity():
    """nabla_m R_ijkl + nabla_k R_ijlm + nabla_l R_ijmk = 0, derivatives by differences."""
    robot, q, *_ = random_motion(("revolute", "revolute", "helical"), 5)
    h, n = 1e-3, robot.nv
    Gamma = geometry.christoffel_symbols(robot, q, 2)

    def at(k, e):
        return geometry.riemann_curvature(robot, q + k * h * e)

    stencil = ((1, 45.0), (-1, -45.0), (2, -9.0), (-2, 9.0), (3, 1.0), (-3, -1.0))
    d = np.stack([sum(c * at(k, e) for k, c in stencil) / (60.0 * h) for e in np.eye(n)], -1)
    R = at(0, np.zeros(n))
    for pattern in ("mir,rjkl->ijklm", "mjr,irkl->ijklm", "mkr,ijrl->ijklm", "mlr,ijkr->ijklm"):
        d -= np.einsum(pattern, Gamma, R)
    cyclic = d + np.einsum("ijlmk->ijklm", d) + np.einsum("ijmkl->ijklm", d)
    assert_close(cyclic, np.zeros_like(d), 1e-8, np.abs(d).max())


def test_curvature_of_the_two_link_arm_in_closed_form():
    lengths, masses = np.array([0.8, 0.6]), np.array([1.3, 0.7])
    robot = models.two_link(lengths, masses)
    a = masses[0] * lengths[0] ** 2 / 3 + masses[1] * (lengths[0] ** 2 + lengths[1] ** 2 / 3)
    b, d = masses[1] * lengths.prod() / 2, masses[1] * lengths[1] ** 2 / 3
    q = np.stack((np.linspace(-3, 3, 9), np.linspace(-2, 3, 9)), -1)
    det = np.linalg.det(robot.mass_matrix(q))
    K = b * np.cos(q[:, 1]) * ((a - d) * d - b**2) / det**2
    e1, e2 = np.broadcast_to([1.0, 0.0], q.shape), np.broadcast_to([0.0, 1.0], q.shape)
    assert_close(geometry.riemann_curvature(robot, q)[:, 0, 1, 0, 1], K * det, 1e-12)
    assert_close(geometry.sectional_curvature(robot, q, e1, e2), K, 1e-12)
    assert_close(geometry.sectional_curvature(robot, q, e1 - 2 * e2, 3 * e1 + e2), K, 1e-11)
    assert_close(geometry.scalar_curvature(robot, q), 2 * K, 1e-12)
    assert_close(geometry.ricci_curvature(robot, q), K[:, None, None] * robot.mass_matrix(q), 1e-11)


def test_a_cartesian_robot_is_flat():
    robot, q, *_ = random_motion(("prismatic",) * 3 + ("revolute",), parents=(-1, 0, 1, 2))
    assert np.abs(geometry.riemann_curvature(robot, q)).max() < 1e-13 * size_of(robot, q)
    M = robot.mass_matrix(q)
    assert np.abs(M - robot.mass_matrix(q + 1.0)).max() > 1e-3  # although M is not constant


def test_a_spherical_body_is_a_round_sphere():
    """SO(3) with inertia I 1: constant sectional curvature 1 / (4 I), scalar curvature 3 / (2 I)."""
    inertia = np.array([1.0, 0, 0, 0, 0.7, 0, 0.7, 0, 0, 0.7])
    robot = Robot.build([Body("ball", None, Joint.spherical(), None, inertia)])
    rng = np.random.default_rng(0)
    q = robot.random_configuration(rng)
    x, y = rng.normal(size=(2, 3))
    assert_close(geometry.sectional_curvature(robot, q, x, y), 1.0 / (4.0 * 0.7), 1e-13)
    assert_close(geometry.scalar_curvature(robot, q), 6.0 / (4.0 * 0.7), 1e-13)


def test_scalar_curvature_sums_sectional_ones_over_an_orthonormal_basis():
    robot, q, *_ = random_motion(("revolute",) * 4, 2)
    basis = np.linalg.inv(np.linalg.cholesky(robot.mass_matrix(q)))
    pairs = [geometry.sectional_curvature(robot, q, x, y) for i, x in enumerate(basis) for y in basis[:i]]
    assert_close(geometry.scalar_curvature(robot, q), 2.0 * np.sum(pairs), 1e-11)


def test_curvature_measures_how_free_motions_part():
    """Jacobi's equation at t = 0: the third covariant derivative of the separation is -R(J', v) v."""
    robot = models.two_link().with_gravity((0, 0, 0))
    q, v, w = np.array([0.2, 0.9]), np.array([0.5, -0.3]), np.array([0.4, 0.8])
    R, M = geometry.riemann_curvature(robot, q), robot.mass_matrix(q)
    # |J|^2 = t^2 <w, w> - t^4 / 3 R(w, v, w, v) + ... for J(0) = 0, J'(0) = w
    expected = -np.einsum("ijkl,i,j,k,l->", R, w, v, w, v) / 3.0

    def flow(u, t, steps=40):
        x, dx, h = q.copy(), u.copy(), t / steps
        free = np.zeros(2)
        for _ in range(steps):
            k = []
            for c in (0.0, 0.5, 0.5, 1.0):
                last = k[-1] if k else np.zeros(4)
                y = np.concatenate((x, dx)) + c * h * last
                k.append(np.concatenate((y[2:], robot.forward_dynamics(y[:2], y[2:], free))))
            y = np.concatenate((x, dx)) + h / 6.0 * (k[0] + 2 * k[1] + 2 * k[2] + k[3])
            x, dx = y[:2], y[2:]
        return x

    def coefficient(t, e=1e-3):
        J = (flow(v + e * w, t) - flow(v - e * w, t)) / (2.0 * e)
        return (geometry.inner_product(robot, flow(v, t), J, J) / t**2 - w @ M @ w) / t**2

    even = 0.5 * (coefficient(0.1) + coefficient(-0.1))
    assert_close(even, expected, 1e-2)


def test_batches_equal_their_members():
    robot, _, *_ = random_motion(["spherical", "revolute", "helical"])
    rng = np.random.default_rng(1)
    q = np.array([[robot.random_configuration(rng) for _ in range(3)] for _ in range(2)])
    x, y, z = rng.normal(size=(3, 2, 3, robot.nv))
    for name, arguments in {
        "inner_product": (x, y),
        "christoffel_symbols": (),
        "covariant_derivative": (x, y, z),
        "riemann_curvature": (),
        "sectional_curvature": (x, y),
        "ricci_curvature": (),
        "scalar_curvature": (),
    }.items():
        function = getattr(geometry, name)
        batch = function(robot, q, *arguments)
        one = function(robot, q[1, 2], *(a[1, 2] for a in arguments))
        assert_close(batch[1, 2], one, 1e-12)
        assert batch.shape == (2, 3, *np.shape(one))


def test_arguments_are_checked():
    robot = models.two_link()
    q = np.zeros(2)
    with pytest.raises(ArgumentError, match="kind: expected 1 or 2, got 3"):
        geometry.christoffel_symbols(robot, q, 3)
    with pytest.raises(ArgumentError, match="x, y: expected velocities that span a plane"):
        geometry.sectional_curvature(robot, q, [1.0, 2.0], [2.0, 4.0])
    with pytest.raises(ArgumentError, match=r"q: expected shape \(..., 2\)"):
        geometry.riemann_curvature(robot, np.zeros(3))
    with pytest.raises(ArgumentError, match="w_rate: expected finite numbers"):
        geometry.covariant_derivative(robot, q, q, q, [np.nan, 0.0])
    ball = testing.random_robot(np.random.default_rng(0), ["spherical"])
    for one_dof in (
        closed_forms.product_christoffel_symbols,
        closed_forms.adjoint_derivatives,
        closed_forms.adjoint_second_derivatives,
    ):
        with pytest.raises(ArgumentError, match="joint 'joint0' has 3 degrees of freedom"):
            one_dof(ball, q)
