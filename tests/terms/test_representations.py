"""One motion in four representations: conversions, one body, recursions, closed forms, the choice of body frames."""

import inspect

import numpy as np
import pytest
from hypothesis import given
from oracles import ONE_DOF, assert_close, cases, force_scale, pinocchio, properties

from geomctrl import models, se3, testing
from geomctrl.errors import ArgumentError
from geomctrl.papers import closed_forms, factored, representations

FORMS = ("body", "spatial", "hybrid", "mixed")


def reach(robot, q):
    """Distance from the world's origin, to which the spatial representation loses digits."""
    return 1.0 + max(np.abs(robot.pose(q, name)[:3, 3]).max() for name in robot.body_names)


@properties
@given(cases(floating_base=None, max_bodies=6))
def test_recursions_agree(case):
    robot, q, v, a, _ = case
    f_ext = np.random.default_rng(0).normal(size=(robot.nbodies, 6))
    tau = robot.inverse_dynamics(q, v, a, f_ext=f_ext)
    scale = force_scale(robot, q, v, a) * reach(robot, q) ** 2 + 10
    for form in FORMS[:3]:
        ours = representations.inverse_dynamics(robot, q, v, a, f_ext, representation=form)
        assert_close(ours, tau, 1e-12, scale)
        free = representations.inverse_dynamics(robot, q, v, a, representation=form)
        assert_close(free, factored.inverse_dynamics(robot, q, v, a), 1e-12, scale)


@pytest.mark.parametrize("name", models.names())
def test_recursions_agree_on_bundled_robots(name):
    robot, rng = models.load(name), np.random.default_rng(0)
    q = np.array([robot.random_configuration(rng) for _ in range(5)])
    v, a = rng.normal(size=(2, 5, robot.nv))
    tau = np.array([pinocchio(robot).inverse_dynamics(*x) for x in zip(q, v, a)])
    for form in FORMS[:3]:
        assert_close(representations.inverse_dynamics(robot, q, v, a, representation=form), tau, 1e-12)


def motion(robot, q, v, a, name):
    T = robot.pose(q, name)
    J = {f: robot.jacobian(q, name, f) for f in FORMS}
    dJ = {f: robot.jacobian_rate(q, v, name, f) for f in FORMS}
    return T, J, dJ, {f: J[f] @ v for f in FORMS}, {f: J[f] @ a + dJ[f] @ v for f in FORMS}


@properties
@given(cases(floating_base=None, max_bodies=5))
def test_conversions_between_all_representations(case):
    robot, q, v, a, _ = case
    for name in robot.body_names:
        T, J, dJ, V, A = motion(robot, q, v, a, name)
        size = reach(robot, q) ** 2 * (1 + np.abs(v).max() ** 2 + np.abs(a).max()) * robot.nv * 10
        for x in FORMS:
            for y in FORMS:
                assert_close(representations.convert_twist(T, V[x], x, y), V[y], 1e-13, size)
                assert_close(representations.change_of_representation(T, x, y) @ V[x], V[y], 1e-13, size)
                assert_close(representations.convert_acceleration(T, V[x], A[x], x, y), A[y], 1e-12, size)
                assert_close(representations.convert_jacobian(T, J[x], x, y), J[y], 1e-13, size)
                assert_close(representations.convert_jacobian_rate(T, V[x], J[x], dJ[x], x, y), dJ[y], 1e-12, size)


@properties
@given(cases(floating_base=None, max_bodies=4))
def test_power_is_the_same_in_all_representations(case):
    robot, q, v, a, _ = case
    W = np.random.default_rng(1).normal(size=6)
    for name in robot.body_names:
        T, _, _, V, _ = motion(robot, q, v, a, name)
        for x in FORMS:
            moved = representations.convert_wrench(T, W, "body", x)
            assert_close(moved @ V[x], W @ V["body"], 1e-12, 10 * reach(robot, q) ** 2 * (1 + np.abs(v).max()))
            assert_close(representations.convert_wrench(T, moved, x, "body"), W, 1e-12, reach(robot, q) ** 2)


@properties
@given(cases(floating_base=None, max_bodies=4))
def test_newton_euler_equations_of_one_body(case):
    """All four representations and any frame's, from Newton and Euler at the centre of mass in inertial axes."""
    robot, q, v, a, _ = case
    rng = np.random.default_rng(2)
    for i, name in enumerate(robot.body_names):
        T, _, _, V, A = motion(robot, q, v, a, name)
        pi, R = robot.parameters[i], T[:3, :3]
        m, c = pi[0], R @ (pi[1:4] / pi[0])
        I = R @ (factored.inertia.com_tensor(pi)) @ R.T
        w, w_rate, r_accel = V["hybrid"][:3], A["hybrid"][:3], A["hybrid"][3:]
        force = m * (r_accel + np.cross(w_rate, c) + np.cross(w, np.cross(w, c)))
        moment = I @ w_rate + np.cross(w, I @ w) + np.cross(c, force)
        W = np.concatenate((moment, force))
        size = reach(robot, q) ** 2 * 100 * (1 + m) * (1 + np.abs(v).max() ** 2 + np.abs(a).max()) * robot.nv
        for x in FORMS:
            ours = representations.newton_euler(pi, T, V[x], A[x], x)
            assert_close(ours, representations.convert_wrench(T, W, "hybrid", x), 1e-13, size)
        frame, U = se3.exp(rng.normal(size=6)), rng.normal(size=6)
        V_f = np.linalg.inv(se3.Ad(frame)) @ V["spatial"]
        A_f = np.linalg.inv(se3.Ad(frame)) @ A["spatial"] - se3.ad(U) @ V_f
        expected = se3.Ad(frame).T @ representations.convert_wrench(T, W, "hybrid", "spatial")
        assert_close(representations.newton_euler_in_frame(pi, T, frame, U, V_f, A_f), expected, 1e-12, size)


@properties
@given(cases(max_bodies=4))
def test_momentum_and_inertia_of_one_body(case):
    robot, q, v, a, _ = case
    total = np.zeros(6)
    for i, name in enumerate(robot.body_names):
        T, _, _, V, _ = motion(robot, q, v, a, name)
        for x in FORMS:
            J = representations.convert_inertia(T, closed_forms.inertia.spatial(robot.parameters[i]), "body", x)
            energy = 0.5 * V["body"] @ closed_forms.inertia.spatial(robot.parameters[i]) @ V["body"]
            assert_close(0.5 * V[x] @ J @ V[x], energy, 1e-11, reach(robot, q) ** 4)
        total += representations.momentum_of_body(robot.parameters[i], T, V["spatial"], "spatial")
    assert_close(total, robot.momentum(q, v), 1e-11, reach(robot, q) ** 2 * 10)


@properties
@given(cases(floating_base=None, max_bodies=5))
def test_body_frames_do_not_matter(case):
    """Section 4.4: with A_i = 1 and with any frames, all terms are unchanged, by the recursions and by the closed
    form.
    """
    robot, q, v, a, _ = case
    rng = np.random.default_rng(0)
    home = np.array([robot.pose(robot.neutral(), name) for name in robot.body_names])
    for N in (se3.inverse(home), se3.exp(rng.normal(size=(robot.nbodies, 6)))):
        other = representations.with_body_frames(robot, N)
        x = representations.configuration_in_frames(robot, q, N)
        rates, forces = size(robot, q, v), force_scale(robot, q, v, a) * reach(robot, q) ** 2
        ours, theirs = other.terms(x, v, "christoffel"), robot.terms(q, v, "christoffel")
        assert_close(ours.M, theirs.M, 1e-11)
        assert_close(ours.Mdot, theirs.Mdot, 1e-11, rates)
        assert_close(ours.C, theirs.C, 1e-11, rates)  # Ploen's C depends on the frames' origins; only C v is unchanged
        assert_close(other.coriolis_matrix(x, v, "adjoint"), robot.coriolis_matrix(q, v, "adjoint"), 1e-11, rates)
        assert_close(other.coriolis_matrix(x, v) @ v, robot.coriolis_matrix(q, v) @ v, 1e-11, rates * np.abs(v).max())
        assert_close(ours.g, theirs.g, 1e-11, forces)
        for form in FORMS[:3]:
            tau = representations.inverse_dynamics(other, x, v, a, representation=form)
            assert_close(tau, robot.inverse_dynamics(q, v, a), 1e-11, forces)
        for i, name in enumerate(robot.body_names):
            assert_close(other.pose(x, name), robot.pose(q, name) @ N[i], 1e-12, reach(robot, q))
    plain = representations.without_body_frames(robot)
    for name in robot.body_names:
        assert_close(plain.pose(plain.neutral(), name), np.eye(4), 1e-13)


def size(robot, q, v):
    return np.abs(robot.mass_matrix(q)).max() * np.abs(v).max() * reach(robot, q)


def test_named_frames_stay_where_they_are():
    robot, rng = models.panda(), np.random.default_rng(0)
    q = robot.random_configuration(rng)
    other = representations.with_body_frames(robot, se3.exp(rng.normal(size=(robot.nbodies, 6))))
    for frame in robot.frames:
        if frame.name not in robot.body_names:
            assert_close(other.pose(q, frame.name), robot.pose(q, frame.name), 1e-13)


@properties
@given(cases(max_bodies=5))
def test_closed_forms_are_the_equations_of_motion(case):
    robot, q, v, a, _ = case
    tau, scale = robot.inverse_dynamics(q, v, a), force_scale(robot, q, v, a) * reach(robot, q) ** 2
    f_ext = np.random.default_rng(0).normal(size=(robot.nbodies, 6))
    assert_close(closed_forms.product_mass_matrix(robot, q), robot.mass_matrix(q), 1e-11, reach(robot, q) ** 2)
    assert_close(closed_forms.product_gravity_force(robot, q), robot.gravity_force(q), 1e-11, scale)
    assert_close(closed_forms.lagrange(robot, q, v, a), tau, 1e-11, scale)
    assert_close(closed_forms.euler_jourdain(robot, q, v, a), tau, 1e-11, scale)
    loaded = robot.inverse_dynamics(q, v, a, f_ext=f_ext)
    assert_close(closed_forms.euler_jourdain(robot, q, v, a, f_ext), loaded, 1e-11, scale + 10)
    assert_close(closed_forms.momentum_form(robot, q, v, a), tau, 1e-11, scale)
    bias = robot.coriolis_matrix(q, v) @ v
    assert_close(closed_forms.mueller_coriolis_matrix(robot, q, v) @ v, bias, 1e-11, scale)


@properties
@given(cases(kinds=ONE_DOF, max_bodies=6))
def test_muellers_coriolis_matrix_is_ploens_25(case):
    robot, q, v, _, _ = case
    plain = factored.coriolis_matrix(robot, q, v, "plain")
    assert_close(closed_forms.mueller_coriolis_matrix(robot, q, v), plain, 1e-11, size(robot, q, v))


def test_batches_equal_their_members():
    robot, rng = (
        testing.random_robot(np.random.default_rng(0), ["free", "revolute", "helical"]),
        np.random.default_rng(1),
    )
    q = np.array([[robot.random_configuration(rng) for _ in range(3)] for _ in range(2)])
    v, a = rng.normal(size=(2, 2, 3, robot.nv))
    name = robot.body_names[-1]
    T, _, _, V, A = motion_batch(robot, q, v, a, name)
    f_ext = rng.normal(size=(2, 3, robot.nbodies, 6))
    frame, U = se3.exp(rng.normal(size=(2, 3, 6))), rng.normal(size=(2, 3, 6))
    pi = np.broadcast_to(robot.parameters[-1], (2, 3, 10))
    for function, arguments, options in (
        (representations.inverse_dynamics, (q, v, a, f_ext, "spatial"), {}),
        (representations.inverse_dynamics, (q, v, a, f_ext, "hybrid"), {}),
        (closed_forms.lagrange, (q, v, a), {}),
        (closed_forms.euler_jourdain, (q, v, a, f_ext), {}),
        (closed_forms.momentum_form, (q, v, a), {}),
        (closed_forms.spatial_momenta, (q, v), {}),
        (closed_forms.product_gravity_force, (q,), {}),
        (representations.convert_acceleration, (T, V, A, "hybrid", "mixed"), {}),
        (representations.convert_wrench, (T, V, "hybrid", "spatial"), {}),
        (representations.newton_euler, (pi, T, V, A, "hybrid"), {}),
        (representations.newton_euler_in_frame, (pi, T, frame, U, V, A), {}),
    ):
        first = (robot,) if next(iter(inspect.signature(function).parameters)) == "robot" else ()
        one = tuple(x if isinstance(x, str) else x[1, 2] for x in arguments)
        assert_close(function(*first, *arguments, **options)[1, 2], function(*first, *one, **options), 1e-12)


def motion_batch(robot, q, v, a, name):
    J, dJ = robot.jacobian(q, name, "hybrid"), robot.jacobian_rate(q, v, name, "hybrid")
    V, A = (J @ v[..., None])[..., 0], (J @ a[..., None] + dJ @ v[..., None])[..., 0]
    return robot.pose(q, name), J, dJ, V, A


def test_arguments_are_checked():
    robot = models.two_link()
    q, T = np.zeros(2), np.eye(4)
    with pytest.raises(ArgumentError, match="representation: expected 'body', 'spatial' or 'hybrid', got 'mixed'"):
        representations.inverse_dynamics(robot, q, q, q, representation="mixed")
    with pytest.raises(ArgumentError, match="representation: expected one of"):
        representations.inverse_dynamics(robot, q, q, q, representation="Spatial")
    with pytest.raises(ArgumentError, match="target: expected one of"):
        representations.convert_twist(T, np.zeros(6), "body", "global")
    with pytest.raises(ArgumentError, match="source: expected one of"):
        representations.convert_twist(T, np.zeros(6), "global", "body")
    with pytest.raises(ArgumentError, match=r"a: expected shape \(..., 2\)"):
        representations.inverse_dynamics(robot, q, q, np.zeros(3), representation="hybrid")
    with pytest.raises(ArgumentError, match="V: expected finite"):
        representations.newton_euler(robot.parameters[0], T, np.full(6, np.nan), np.zeros(6))
    with pytest.raises(ArgumentError, match="placements: expected shape"):
        representations.with_body_frames(robot, np.eye(4)[None])
    with pytest.raises(ArgumentError, match="placements: expected shape"):
        representations.configuration_in_frames(robot, q, np.eye(4)[None])
    with pytest.raises(ArgumentError, match="T: expected a rotation"):
        representations.convert_twist(2 * np.eye(4), np.zeros(6), "body", "spatial")
    with pytest.raises(ArgumentError, match="frame: expected a rotation"):
        representations.newton_euler_in_frame(robot.parameters[0], T, 2 * T, *np.zeros((3, 6)))
    with pytest.raises(ArgumentError, match=r"V: expected the leading axes of T, \(\), got \(2,\)"):
        representations.convert_twist(T, np.zeros((2, 6)), "body", "spatial")
    for function in (closed_forms.lagrange, closed_forms.euler_jourdain, closed_forms.momentum_form):
        with pytest.raises(ArgumentError, match="a: expected finite numbers"):
            function(robot, q, q, [np.nan, 0.0])
        with pytest.raises(ArgumentError, match="a: expected the leading axes of q"):
            function(robot, q, q, np.zeros((3, 2)))
    with pytest.raises(ArgumentError, match="v: expected finite numbers"):
        closed_forms.spatial_momenta(robot, q, [np.nan, 0.0])
