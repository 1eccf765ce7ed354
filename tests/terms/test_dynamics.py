"""The recursions against Pinocchio, and against the properties that control proofs use."""

import numpy as np
import pytest
from hypothesis import given
from oracles import (
    ONE_DOF,
    PINOCCHIO_KINDS,
    assert_close,
    assert_power_balanced,
    cases,
    derivative,
    force_scale,
    pinocchio,
    properties,
    random_motion,
    rate_scale,
)

import geomctrl as gc
from geomctrl import inertia, models, se3, testing
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.kernels import newton_euler
from geomctrl.papers import factored
from geomctrl.testing.random_robots import KINDS, random_inertia

FORMS = ("ploen", "christoffel", "adjoint")


# --- Pinocchio ---------------------------------------------------------------------------------------------------


def check_against_pinocchio(robot, q, v, a, f_ext):
    theirs = pinocchio(robot)
    rates, forces = rate_scale(robot, q, v), force_scale(robot, q, v, a)
    terms = robot.terms(q, v, "christoffel")
    assert_close(robot.mass_matrix(q), theirs.mass_matrix(q), 1e-9)
    assert_close(robot.gravity_force(q), theirs.gravity_force(q), 1e-9, forces)
    assert_close(terms.C, theirs.coriolis_matrix(q, v), 1e-9, rates)
    tau = theirs.inverse_dynamics(q, v, a)
    assert_close(robot.inverse_dynamics(q, v, a), tau, 1e-9, forces)
    bias = theirs.inverse_dynamics(q, v, 0 * a)
    for form in FORMS:
        terms = robot.terms(q, v, form)
        assert_close(terms.C @ v + terms.g, bias, 1e-9, forces)
    assert_close(robot.regressor(q, v, a), theirs.regressor(q, v, a), 1e-9)
    push = theirs.inverse_dynamics(q, v, a, f_ext)
    assert_close(robot.inverse_dynamics(q, v, a, f_ext=f_ext), push, 1e-9, forces + np.abs(f_ext).max())
    accelerations = np.abs(a).max() + forces * np.linalg.norm(np.linalg.inv(terms.M), 2)
    assert_close(robot.forward_dynamics(q, v, tau), theirs.forward_dynamics(q, v, tau), 1e-9, accelerations)
    assert_close(robot.forward_dynamics(q, v, push, f_ext), a, 1e-9, accelerations)
    kinetic, potential = theirs.energies(q, v)
    assert_close(robot.kinetic_energy(q, v), kinetic, 1e-9)
    assert_close(robot.potential_energy(q), potential, 1e-9, forces)
    assert_close(robot.momentum(q, v), theirs.momentum(q, v), 1e-9, rates)


@properties
@given(cases(kinds=PINOCCHIO_KINDS, floating_base=None))
def test_terms_equal_pinocchios_on_random_trees(case):
    robot, q, v, a, _ = case
    check_against_pinocchio(robot, q, v, a, np.random.default_rng(0).normal(size=(robot.nbodies, 6)))


@pytest.mark.parametrize("seed", range(40))
def test_terms_equal_pinocchios_on_many_trees(seed):
    rng = np.random.default_rng(seed)
    kinds = rng.choice(PINOCCHIO_KINDS, size=rng.integers(1, 10))
    robot = testing.random_robot(rng, kinds, aligned=seed % 4 == 0, gravity=rng.normal(size=3))
    q, v, a, _ = random_motion(robot, seed)
    check_against_pinocchio(robot, q, v, a, rng.normal(size=(robot.nbodies, 6)))


@pytest.mark.quick(4)
def test_terms_equal_pinocchios_on_bundled_robots(bundled):
    for seed in range(3):
        q, v, a, _ = random_motion(bundled, seed)
        check_against_pinocchio(bundled, q, v, a, np.random.default_rng(seed).normal(size=(bundled.nbodies, 6)))


# --- skew symmetry -----------------------------------------------------------------------------------------------


@properties
@given(cases(floating_base=None))
def test_mass_matrix_rate_minus_twice_coriolis_is_skew(case):
    robot, q, v, _, _ = case
    for form in FORMS:
        terms = robot.terms(q, v, form)
        N = terms.Mdot - 2.0 * terms.C
        assert_close(N, -N.T, 1e-12, rate_scale(robot, q, v))
        assert_close(terms.Mdot, terms.C + terms.C.T, 1e-12, rate_scale(robot, q, v))


@pytest.mark.quick(2)
def test_skew_symmetry_of_bundled_robots(bundled):
    testing.assert_skew_symmetric(bundled, rtol=1e-12)


@pytest.mark.parametrize("name", [n for n in models.names() if n not in ("scara", "two_link")])
def test_plain_coriolis_matrix_fails_the_skew_check(name):
    robot = models.load(name)
    with pytest.raises(AssertionError, match="is not skew"):
        testing.assert_skew_symmetric(robot, lambda q, v: factored.coriolis_matrix(robot, q, v, "plain"))


@properties
@given(cases())
def test_plain_form_of_the_kernel_is_the_plain_closed_form(case):
    robot, q, v, a, v_ref = case
    tau = np.empty(robot.nv)
    newton_euler.inverse_dynamics_reference.one(robot._model, q, v, a, v_ref, newton_euler.PLAIN, tau)
    expected = factored.inverse_dynamics(robot, q, v, a, v_ref, "plain")
    assert_close(tau, expected, 1e-11, force_scale(robot, q, v, a, v_ref))


# --- what the terms are to each other ----------------------------------------------------------------------------


@properties
@given(cases(floating_base=None))
def test_reference_velocity_recursion_is_the_sum_of_the_terms(case):
    robot, q, v, a, v_ref = case
    scale = force_scale(robot, q, v, a, v_ref)
    for form in FORMS:
        M, _, C, g = robot.terms(q, v, form)
        assert_close(robot.inverse_dynamics(q, v, a, v_ref, form=form), M @ a + C @ v_ref + g, 1e-12, scale)
        assert_close(robot.inverse_dynamics(q, v, a, v, form=form), robot.inverse_dynamics(q, v, a), 1e-12, scale)


@properties
@given(cases(floating_base=None))
def test_single_terms_are_those_of_the_sweep(case):
    robot, q, v, _, _ = case
    for form in FORMS:
        M, Mdot, C, g = robot.terms(q, v, form)
        assert_close(robot.mass_matrix(q), M, 1e-13)
        assert_close(robot.mass_matrix_rate(q, v), Mdot, 1e-13, rate_scale(robot, q, v))
        assert_close(robot.coriolis_matrix(q, v, form), C, 1e-15)
        assert_close(robot.gravity_force(q), g, 1e-12, force_scale(robot, q, v, v))


@properties
@given(cases(floating_base=None))
def test_mass_matrix_is_symmetric_and_positive_definite(case):
    robot, q, v, _, _ = case
    M = robot.mass_matrix(q)
    assert (M == M.T).all()
    assert np.linalg.eigvalsh(M)[0] > 0.0
    assert_close(robot.kinetic_energy(q, v), 0.5 * v @ M @ v, 1e-12, np.abs(M).max() * (v @ v))


@properties
@given(cases(floating_base=None))
def test_coriolis_matrix_is_linear_in_the_velocity(case):
    robot, q, v, w, _ = case
    for form in FORMS:
        C = [robot.coriolis_matrix(q, x, form) for x in (v, w, v - 2.0 * w)]
        assert_close(C[2], C[0] - 2.0 * C[1], 1e-12, rate_scale(robot, q, v) + rate_scale(robot, q, w))


@properties
@given(cases(floating_base=None))
def test_gravity_is_the_gradient_of_the_potential_energy(case):
    robot, q, v, _, _ = case

    def potential(x):
        P, A = np.zeros(()), np.eye(4)
        poses = []
        for p, joint, M, s, pi in zip(robot.parents, robot.joints, robot.placements, robot.q_slices, robot.parameters):
            poses.append((A if p < 0 else poses[p]) @ M @ factored.joint_motion(joint.S, x[s]))
            P = P - robot.gravity @ (poses[-1][:3, :3] @ pi[1:4] + pi[0] * poses[-1][:3, 3])
        return P

    scale = force_scale(robot, q, v, v)
    assert_close(robot.potential_energy(q), potential(q), 1e-12, scale)
    assert_close(robot.gravity_force(q) @ v, derivative(potential, robot, q, v), 1e-11, scale * np.abs(v).sum())


@properties
@given(cases(floating_base=None))
def test_forward_dynamics_inverts_inverse_dynamics(case):
    robot, q, v, a, _ = case
    f_ext = np.random.default_rng(0).normal(size=(robot.nbodies, 6))
    condition = np.linalg.norm(np.linalg.inv(robot.mass_matrix(q)), 2) * force_scale(robot, q, v, a)
    assert_close(robot.forward_dynamics(q, v, robot.inverse_dynamics(q, v, a)), a, 1e-10, condition)
    tau = robot.inverse_dynamics(q, v, a, f_ext=f_ext)
    assert_close(robot.forward_dynamics(q, v, tau, f_ext), a, 1e-10, condition)
    M, _, C, g = robot.terms(q, v)
    assert_close(M @ robot.forward_dynamics(q, v, a), a - C @ v - g, 1e-10, force_scale(robot, q, v, a) * 10)


@properties
@given(cases(floating_base=None))
def test_external_wrenches_act_through_the_transposed_jacobian(case):
    robot, q, v, a, v_ref = case
    f_ext = np.random.default_rng(0).normal(size=(robot.nbodies, 6))
    expected = sum(robot.jacobian(q, name).T @ F for name, F in zip(robot.body_names, f_ext))
    scale = force_scale(robot, q, v, a, v_ref)
    for reference in (None, v_ref):
        push = robot.inverse_dynamics(q, v, a, reference) - robot.inverse_dynamics(q, v, a, reference, f_ext)
        assert_close(push, expected, 1e-11, scale)


# --- energy and momentum -----------------------------------------------------------------------------------------


def test_power_balance_of_random_robots():
    for seed in range(10):
        assert_power_balanced(testing.random_robot(np.random.default_rng(seed)), states=3)


def test_power_balance_of_bundled_robots(bundled):
    assert_power_balanced(bundled, states=5)


@properties
@given(cases(floating_base=None))
def test_energy_rate_is_power_exactly(case):
    """d/dt (1/2 v . M v) = v . (M a) + 1/2 v . Mdot v, by the terms."""
    robot, q, v, a, _ = case
    M, Mdot, _, g = robot.terms(q, v)
    power = v @ robot.inverse_dynamics(q, v, a)
    scale = force_scale(robot, q, v, a) * np.abs(v).sum()
    assert_close(power, v @ M @ a + 0.5 * v @ Mdot @ v + v @ g, 1e-11, scale)
    assert_close(robot.energy(q, v), robot.kinetic_energy(q, v) + robot.potential_energy(q), 1e-12, scale)


@properties
@given(cases(floating_base=None))
def test_momentum_is_the_sum_over_bodies(case):
    robot, q, v, _, _ = case
    expected = np.zeros(6)
    for name, pi in zip(robot.body_names, robot.parameters):
        T, V = robot.pose(q, name), robot.jacobian(q, name) @ v
        expected += se3.Ad(se3.inverse(T)).T @ inertia.spatial(pi) @ V
    assert_close(robot.momentum(q, v), expected, 1e-11, rate_scale(robot, q, v))


@pytest.mark.parametrize("seed", range(5))
def test_momentum_of_a_free_robot_changes_by_gravity_alone(seed):
    """Linear momentum: d/dt p = m g; angular: d/dt L = c x m g, for any joint torques."""
    rng = np.random.default_rng(seed)
    kinds = ["free", *rng.choice(KINDS, size=4)]
    parents = [-1, 0, 1, 0, 3]
    robot = testing.random_robot(rng, kinds, parents)
    q, v, tau, _ = random_motion(robot, seed)
    tau[:6] = 0.0
    a = robot.forward_dynamics(q, v, tau)
    h = 1e-3
    k, weights = np.arange(1, 4), np.array([45.0, -9.0, 1.0]) / (60.0 * h)
    P = [[robot.momentum(robot.integrate(q, t * v + 0.5 * t**2 * a), v + t * a) for t in s * k * h] for s in (1, -1)]
    rate = weights @ (np.array(P[0]) - np.array(P[1]))
    weight = robot.parameters[:, 0].sum() * robot.gravity
    first = sum(robot.pose(q, n)[:3] @ np.append(pi[1:4], pi[0]) for n, pi in zip(robot.body_names, robot.parameters))
    assert_close(rate, np.concatenate((np.cross(first, robot.gravity), weight)), 1e-8, np.abs(P).max())


# --- far from the origin -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_a_floating_base_a_kilometre_away_keeps_its_digits(seed):
    """Only the potential energy and the angular momentum depend on the origin of the world."""
    rng = np.random.default_rng(seed)
    robot = testing.random_robot(rng, ["free", *rng.choice(KINDS, size=6)], [-1, 0, 1, 0, 3, 3, 0])
    q, v, a, v_ref = random_motion(robot, seed)
    far = q.copy()
    far[[3, 7, 11]] += 1000.0, -700.0, 500.0
    forces, rates = force_scale(robot, q, v, a, v_ref), rate_scale(robot, q, v)
    for form in FORMS:
        here, there = robot.terms(q, v, form), robot.terms(far, v, form)
        assert_close(there.M, here.M, 1e-12)
        assert_close(there.Mdot, here.Mdot, 1e-12, rates)
        assert_close(there.C, here.C, 1e-12, rates)
        assert_close(there.g, here.g, 1e-12, forces)
        there, here = (robot.inverse_dynamics(x, v, a, v_ref, form=form) for x in (far, q))
        assert_close(there, here, 1e-12, forces)
        there, here = (robot.regressor(x, v, a, v_ref, form) for x in (far, q))
        assert_close(there, here, 1e-12)
    tau = robot.inverse_dynamics(q, v, a)
    assert_close(robot.forward_dynamics(far, v, tau), robot.forward_dynamics(q, v, tau), 1e-11)
    assert_close(robot.kinetic_energy(far, v), robot.kinetic_energy(q, v), 1e-12)
    assert_close(robot.jacobian(far, "body5"), robot.jacobian(q, "body5"), 1e-12)


# --- batches -----------------------------------------------------------------------------------------------------

TERMS = {  # name: (how many of v, a, v_ref it takes, whether it has f_ext)
    "mass_matrix": (0, False),
    "mass_matrix_rate": (1, False),
    "coriolis_matrix": (1, False),
    "gravity_force": (0, False),
    "inverse_dynamics": (3, True),
    "forward_dynamics": (2, True),
    "regressor": (3, False),
    "kinetic_energy": (1, False),
    "potential_energy": (0, False),
    "energy": (1, False),
    "momentum": (1, False),
    "terms": (1, False),
}


@pytest.mark.parametrize("lead", [(1,), (5,), (2, 3), (2, 1, 3), (0,), (3, 0)], ids=str)
@pytest.mark.parametrize("name", TERMS)
def test_batches_equal_loops(name, lead):
    rng = np.random.default_rng(1)
    robot = testing.random_robot(rng, ["free", "revolute", "planar", "helical", "spherical"], [-1, 0, 1, 0, -1])
    n, with_forces = TERMS[name]
    q = np.empty((*lead, robot.nq))
    for i in np.ndindex(lead):
        q[i] = robot.random_configuration(rng)
    args = [q, *rng.normal(size=(n, *lead, robot.nv))]
    variants = [(args, {})]
    if with_forces:
        variants.append((args, {"f_ext": rng.normal(size=(*lead, robot.nbodies, 6))}))
    if name in ("inverse_dynamics", "regressor", "coriolis_matrix", "terms"):
        variants.append((args, {"form": "christoffel"}))
    if n == 3:
        variants.append((args[:3], {}))
    for arguments, options in variants:
        batch = getattr(robot, name)(*arguments, **options)
        parts = batch if name == "terms" else (batch,)
        one = getattr(robot, name)(
            *(np.zeros(x.shape[len(lead) :]) if x is not q else robot.neutral() for x in arguments),
            **{k: np.zeros((robot.nbodies, 6)) if k == "f_ext" else x for k, x in options.items()},
        )
        for whole, single in zip(parts, one if name == "terms" else (one,)):
            assert whole.shape == lead + np.shape(single)
        for i in np.ndindex(lead):
            picked = {k: x[i] if k == "f_ext" else x for k, x in options.items()}
            one = getattr(robot, name)(*(x[i] for x in arguments), **picked)
            for whole, single in zip(parts, one if name == "terms" else (one,)):
                assert_close(whole[i], single, 1e-13)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 32, 53])
@pytest.mark.parametrize("largest", [1.0, 3e4, 1e7], ids=["near", "far", "beyond"])
def test_states_side_by_side_equal_states_one_by_one(count, largest):
    """Inverse dynamics takes states of 1-DOF robots sixteen at a time, the rest and very large angles one by one."""
    rng = np.random.default_rng(count)
    robot = testing.random_robot(rng, rng.choice(ONE_DOF, size=7))
    turning = np.array([joint.kind == "revolute" for joint in robot.joints])
    q = np.where(turning, largest, 1.0) * rng.uniform(-1.0, 1.0, (count, 7))
    v, a = rng.normal(size=(2, count, 7))
    tau = robot.inverse_dynamics(q, v, a)
    for i in range(count):
        assert_close(tau[i], robot.inverse_dynamics(q[i], v[i], a[i]), 1e-13, force_scale(robot, q[i], v[i], a[i]))
        expected = factored.inverse_dynamics(robot, q[i], v[i], a[i])
        rounding = 1e-17 * largest  # of the pitch of a helical joint, which turns rotation into translation
        assert_close(tau[i], expected, 1e-12 + rounding, force_scale(robot, q[i], v[i], a[i]))


def test_lists_integers_and_strided_arrays_are_accepted():
    robot = models.two_link()
    expected = robot.inverse_dynamics(np.array([1.0, 0.0]), np.array([0.0, 2.0]), np.array([3.0, 4.0]))
    np.testing.assert_array_equal(robot.inverse_dynamics([1, 0], [0, 2], (3, 4)), expected)
    wide = np.zeros((2, 6))
    wide[0] = 1.0, 0.0, 0.0, 2.0, 3.0, 4.0
    strided = np.asfortranarray(wide)
    np.testing.assert_array_equal(robot.inverse_dynamics(strided[0, :2], strided[0, 2:4], strided[0, 4:]), expected)
    single = wide.astype(np.float32)
    np.testing.assert_array_equal(robot.inverse_dynamics(single[0, :2], single[0, 2:4], single[0, 4:]), expected)


def test_results_are_the_callers_own():
    robot = models.two_link()
    q, v = np.array([0.3, 0.4]), np.array([1.0, 2.0])
    expected = robot.mass_matrix(q).copy()
    robot.mass_matrix(q)[:] = 0.0
    np.testing.assert_array_equal(robot.mass_matrix(q), expected)
    C = robot.coriolis_matrix(q, v)
    assert C.flags.writeable
    assert C.base is None or C.base.shape == C.shape


# --- closed forms and edges --------------------------------------------------------------------------------------


def test_double_pendulum_in_closed_form():
    m, length, c, I, gravity = (1.5, 0.7), (0.4, 0.3), (0.25, 0.1), (0.02, 0.01), 9.81
    bodies = [
        gc.Body(
            f"link{i}",
            f"link{i - 1}" if i else None,
            gc.Joint.revolute((0, 0, 1)),
            se3.exp(np.array([0, 0, 0, length[0] * i, 0, 0])),
            inertia.from_com(m[i], (c[i], 0, 0), np.diag((0.5 * I[i], 0.7 * I[i], I[i]))),
        )
        for i in range(2)
    ]
    robot = gc.Robot.build(bodies, gravity=(0, -gravity, 0))
    q, v = np.array([0.3, -1.1]), np.array([0.7, -0.4])
    b = m[1] * length[0] * c[1]
    d = I[1] + m[1] * c[1] ** 2
    a = I[0] + m[0] * c[0] ** 2 + m[1] * length[0] ** 2 + d
    c2, s2 = np.cos(q[1]), np.sin(q[1])
    assert_close(robot.mass_matrix(q), [[a + 2 * b * c2, d + b * c2], [d + b * c2, d]], 1e-14)
    h = -b * s2
    expected = np.array([[h * v[1], h * (v[0] + v[1])], [-h * v[0], 0.0]])
    assert_close(robot.coriolis_matrix(q, v, "christoffel"), expected, 1e-13)
    assert_close(robot.coriolis_matrix(q, v) @ v, expected @ v, 1e-13)
    g2 = m[1] * gravity * c[1] * np.cos(q.sum())
    g1 = (m[0] * c[0] + m[1] * length[0]) * gravity * np.cos(q[0]) + g2
    assert_close(robot.gravity_force(q), (g1, g2), 1e-14)


def test_the_plain_form_can_be_skew_for_a_planar_elbow():
    """If C_bar acts in a plane, -ad_V^T J can be skew too, so the negative tests use spatial robots."""
    robot = models.two_link()
    testing.assert_skew_symmetric(robot)
    assert_power_balanced(robot)


def test_a_joint_of_several_degrees_equals_a_chain_of_massless_ones():
    """A cylindrical joint is equivalent to a revolute and a prismatic one."""
    rng = np.random.default_rng(3)
    axis, point, pi = rng.normal(size=3), rng.normal(size=3), random_inertia(rng)
    one = gc.Robot.build([gc.Body("b", None, gc.Joint.cylindrical(axis, point), None, pi)])
    slide = gc.Body("slide", None, gc.Joint.prismatic(axis))
    two = gc.Robot.build([slide, gc.Body("b", "slide", gc.Joint.revolute(axis, point), None, pi)])
    v, a = rng.normal(size=(2, 2))
    x = np.array([0.4, -0.2])
    q = one.integrate(one.neutral(), x)
    assert_close(one.mass_matrix(q), two.mass_matrix(x[::-1])[::-1, ::-1], 1e-13)
    for form in FORMS:
        C = one.coriolis_matrix(q, v, form)
        assert_close(C, two.coriolis_matrix(x[::-1], v[::-1], form)[::-1, ::-1], 1e-12, rate_scale(one, q, v))
    assert_close(one.inverse_dynamics(q, v, a), two.inverse_dynamics(x[::-1], v[::-1], a[::-1])[::-1], 1e-13)


def test_long_chain_of_sixty_bodies():
    robot = testing.random_robot(np.random.default_rng(0), [*ONE_DOF] * 20, range(-1, 59))
    q, v, a, v_ref = random_motion(robot)
    assert_close(robot.mass_matrix(q), factored.mass_matrix(robot, q), 1e-11)
    tau = factored.inverse_dynamics(robot, q, v, a, v_ref)
    assert_close(robot.inverse_dynamics(q, v, a, v_ref), tau, 1e-11, force_scale(robot, q, v, a, v_ref))
    testing.assert_skew_symmetric(robot, states=1, rtol=1e-12)


def test_forward_dynamics_refuses_an_indefinite_mass_matrix():
    pi = np.array([-1.0, 0, 0, 0, 0, 0, 0, 0, 0, -1.0])
    robot = gc.Robot.build([gc.Body("b", None, gc.Joint.revolute((0, 0, 1)), None, -pi)], physical=False)
    robot = robot.with_parameters([pi], physical=False)
    with pytest.raises(ModelError, match=r"robot 'robot': the mass matrix is not positive definite at q = \[0.5\]"):
        robot.forward_dynamics([0.5], [0.0], [1.0])
    with pytest.raises(ModelError, match="not positive definite"):
        robot.forward_dynamics(np.zeros((3, 1)), np.zeros((3, 1)), np.zeros((3, 1)))


def test_a_right_hand_side_that_is_no_array_is_named():
    for b in ("left", [[1.0], [1.0, 2.0]], None):
        with pytest.raises(ArgumentError, match=r"b: expected real numbers of shape \(\.\.\.\), got"):
            models.two_link().mass_matrix_solve(np.zeros(2), b)


@pytest.mark.parametrize("name", ["terms", "coriolis_matrix"])
def test_an_unknown_form_is_refused(name):
    robot, zero = models.two_link(), np.zeros(2)
    for form in ("plain", "Ploen", None, 0, ["ploen"]):
        with pytest.raises(ArgumentError, match="form: expected one of 'ploen', 'christoffel', 'adjoint'"):
            getattr(robot, name)(zero, zero, form=form)
        with pytest.raises(ArgumentError, match="form: expected one of 'ploen', 'christoffel', 'adjoint'"):
            robot.inverse_dynamics(zero, zero, zero, zero, form=form)
        with pytest.raises(ArgumentError, match="form: expected one of 'ploen', 'christoffel', 'adjoint'"):
            robot.regressor(zero, zero, zero, zero, form=form)


def test_a_form_is_checked_also_where_it_makes_no_difference():
    robot, zero = models.panda(), np.zeros(7)
    with pytest.raises(ArgumentError, match="form"):
        robot.inverse_dynamics(zero, zero, zero, form="other")
