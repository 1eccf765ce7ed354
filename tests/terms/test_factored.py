"""The closed form against its own definition, and the recursions against the closed form."""

import numpy as np
import pytest
from hypothesis import assume, given
from lib.robots import without_its_base
from oracles import assert_close, cases, derivative, force_scale, properties, random_motion, rate_scale

from geomctrl import inertia, models, testing
from geomctrl.errors import ArgumentError
from geomctrl.papers import closed_forms, factored

FORMS = ("ploen", "christoffel", "adjoint")


def energy_scale(robot):
    """|g| times mass times the largest distance: the sum of all placements, plus the ranges of prismatic joints."""
    reach = np.linalg.norm(robot.placements[:, :3, 3], axis=1).sum() + 10.0
    return np.linalg.norm(robot.gravity) * (
        robot.parameters[:, 0].sum() * reach + np.abs(robot.parameters[:, 1:4]).sum()
    )


def test_numbers_of_low_precision_are_computed_with_in_double_precision():
    robot = testing.random_robot(np.random.default_rng(0), ["revolute", "prismatic", "helical"], [-1, 0, 1])
    q, v, a = np.array([[1, -2, 3], [2, 0, -1], [-3, 1, 2]])
    for dtype in (np.int8, np.float16, np.float32, int, object, ">f4"):
        small = [x.astype(dtype) for x in (q, v, a)]
        for function in (factored.inverse_dynamics, closed_forms.lagrange, closed_forms.euler_jourdain):
            np.testing.assert_array_equal(function(robot, *small), function(robot, *map(np.float64, (q, v, a))))
        for function in (factored.mass_matrix, factored.potential_energy, closed_forms.product_gravity_force):
            assert function(robot, small[0]).dtype == np.float64
            np.testing.assert_array_equal(function(robot, small[0]), function(robot, q.astype(float)))
    derivative = factored.mass_matrix(robot, (q + 1e-8j).astype(np.complex64))  # complex arrays stay complex
    assert derivative.dtype == np.complex128


def test_what_are_no_states_is_refused():
    robot = models.two_link()
    q = np.array([0.3, -0.2])
    for bad in (
        q * np.nan,
        q + np.nan * 1j,
        np.ma.masked_array(q, [1, 0]),
        q.astype(str),
        q > 0.0,
        [[1.0], [1.0, 2.0]],
        q[:1],
    ):
        for function in (
            factored.mass_matrix,
            closed_forms.product_mass_matrix,
            closed_forms.mueller_christoffel_symbols,
        ):
            with pytest.raises(ArgumentError, match="q: expected"):
                function(robot, bad)
        with pytest.raises(ArgumentError, match="v_ref: expected"):
            factored.inverse_dynamics(robot, q, q, q, bad)
    for form in ("Ploen", None, np.ones(2)):
        with pytest.raises(
            ArgumentError, match="form: expected one of 'ploen', 'christoffel', 'adjoint', 'plain', got"
        ):
            factored.factors(robot, q, q, form)
    for function in (factored.mass_matrix, closed_forms.product_mass_matrix, closed_forms.mueller_christoffel_symbols):
        with pytest.raises(ArgumentError, match="robot: expected a Robot, got 'arm'"):
            function("arm", q)


def check_recursions(robot, q, v, a, v_ref):
    rates, forces = rate_scale(robot, q, v), force_scale(robot, q, v, a, v_ref)
    assert_close(robot.mass_matrix(q), factored.mass_matrix(robot, q), 1e-11)
    assert_close(robot.mass_matrix_rate(q, v), factored.mass_matrix_rate(robot, q, v), 1e-11, rates)
    assert_close(robot.gravity_force(q), factored.gravity_force(robot, q), 1e-11, forces)
    assert_close(robot.potential_energy(q), factored.potential_energy(robot, q), 1e-11, energy_scale(robot))
    for form in FORMS:
        assert_close(robot.coriolis_matrix(q, v, form), factored.coriolis_matrix(robot, q, v, form), 1e-11, rates)
        expected = factored.inverse_dynamics(robot, q, v, a, v_ref, form)
        assert_close(robot.inverse_dynamics(q, v, a, v_ref, form=form), expected, 1e-11, forces)
        terms = robot.terms(q, v, form)
        assert_close(terms.M, factored.mass_matrix(robot, q), 1e-11)
        assert_close(terms.Mdot, factored.mass_matrix_rate(robot, q, v), 1e-11, rates)
        assert_close(terms.C, factored.coriolis_matrix(robot, q, v, form), 1e-11, rates)
        assert_close(terms.g, factored.gravity_force(robot, q), 1e-11, forces)
    assert_close(robot.inverse_dynamics(q, v, a), factored.inverse_dynamics(robot, q, v, a), 1e-11, forces)


@pytest.mark.slow
@properties
@given(cases())
def test_recursions_equal_the_closed_form_on_random_trees(case):
    check_recursions(*case)


@pytest.mark.parametrize("seed", range(40))
def test_recursions_equal_the_closed_form_on_many_trees(seed):
    robot = testing.random_robot(np.random.default_rng(seed), aligned=seed % 4 == 0)
    check_recursions(robot, *random_motion(robot, seed))


@pytest.mark.quick(4)
def test_recursions_equal_the_closed_form_on_bundled_robots(bundled):
    for seed in range(3):
        check_recursions(bundled, *random_motion(bundled, seed))


@properties
@given(cases())
def test_G_is_the_inverse_of_one_minus_Gamma_which_is_nilpotent(case):
    robot, q, v, _, _ = case
    f = factored.factors(robot, q, v)
    one = np.eye(6 * robot.nbodies)
    assert_close(f.G @ (one - f.Gamma), one, 1e-12)
    assert not np.linalg.matrix_power(f.Gamma, robot.nbodies).any()


@properties
@given(cases())
def test_V_is_G_S_v_and_stacks_body_jacobians(case):
    robot, q, v, _, _ = case
    f = factored.factors(robot, q, v)
    assert_close(f.V, f.G @ f.S @ v, 1e-12, np.abs(v).max())
    for i, name in enumerate(robot.body_names):
        assert_close(robot.jacobian(q, name), (f.G @ f.S)[6 * i : 6 * i + 6], 1e-12)


@properties
@given(cases())
def test_C_bar_is_skew_and_gives_the_newton_euler_force(case):
    robot, q, v, _, _ = case
    for form in FORMS:
        f = factored.factors(robot, q, v, form)
        assert_close(f.C_bar, -f.C_bar.T, 1e-15)
        assert_close(f.C_bar @ f.V, f.ad_V_dual @ f.J @ f.V, 1e-12, np.abs(f.J).max() * (f.V @ f.V))
    plain = factored.factors(robot, q, v, "plain")
    assert_close(plain.C_bar, plain.ad_V_dual @ plain.J, 1e-15)


@properties
@given(cases())
def test_closed_form_of_inverse_dynamics_is_the_sum_of_its_terms(case):
    robot, q, v, a, v_ref = case
    for form in (*FORMS, "plain"):
        C = factored.coriolis_matrix(robot, q, v, form)
        total = factored.mass_matrix(robot, q) @ a + C @ v_ref + factored.gravity_force(robot, q)
        tau = factored.inverse_dynamics(robot, q, v, a, v_ref, form)
        assert_close(tau, total, 1e-12, force_scale(robot, q, v, a, v_ref))


@properties
@given(cases())
def test_mass_matrix_rate_is_the_derivative_of_the_mass_matrix(case):
    """The complex step of (36) against (28) and against the recursion."""
    robot, q, v, _, _ = case
    expected = derivative(lambda x: factored.mass_matrix(robot, x), robot, q, v)
    assert_close(factored.mass_matrix_rate(robot, q, v), expected, 1e-12, rate_scale(robot, q, v))
    assert_close(robot.mass_matrix_rate(q, v), expected, 1e-11, rate_scale(robot, q, v))


@properties
@given(cases())
def test_christoffel_form_is_the_lowered_levi_civita_connection(case):
    """Torsion-free: C(v) w - C(w) v = M c(v, w), c_i the bracket of the joint's velocities, zero for 1 DOF."""
    robot, q, v, w, _ = case
    C = [factored.coriolis_matrix(robot, q, x, "christoffel") for x in (v, w)]
    bracket = np.zeros(robot.nv)
    for joint, s in zip(robot.joints, robot.v_slices):
        if joint.dof > 1:
            bracket[s] = np.linalg.pinv(joint.S) @ factored.ad(joint.S @ v[s]) @ joint.S @ w[s]
    scale = rate_scale(robot, q, v) * np.abs(w).max()
    assert_close(C[0] @ w - C[1] @ v, factored.mass_matrix(robot, q) @ bracket, 1e-11, scale)


@properties
@given(cases(kinds=("revolute", "prismatic", "helical"), max_bodies=5))
def test_christoffel_form_is_made_of_christoffel_symbols(case):
    """Ploen (2), (3), with the partial derivatives of M by the complex step."""
    robot, q, v, _, _ = case
    dM = np.array([derivative(lambda x: factored.mass_matrix(robot, x), robot, q, e) for e in np.eye(robot.nv)])
    symbols = 0.5 * (np.einsum("ikj->ijk", dM) + np.einsum("jki->ijk", dM) - np.einsum("kij->ijk", dM))
    expected = np.einsum("ijk,i->kj", symbols, v)
    assert_close(robot.coriolis_matrix(q, v, "christoffel"), expected, 1e-11, rate_scale(robot, q, v))


@properties
@given(cases())
def test_ploen_and_christoffel_differ_by_half_the_traces(case):
    """C_ploen - C_christoffel = sum_i 1/2 tr(I_i) Jw_i^T [w_i] Jw_i."""
    robot, q, v, _, _ = case
    expected = np.zeros((robot.nv, robot.nv))
    for name, pi in zip(robot.body_names, robot.parameters):
        Jw = robot.jacobian(q, name)[:3]
        expected += 0.5 * np.trace(inertia.tensor(pi)) * Jw.T @ factored.hat(Jw @ v) @ Jw
    difference = robot.coriolis_matrix(q, v) - robot.coriolis_matrix(q, v, "christoffel")
    assert_close(difference, expected, 1e-11, rate_scale(robot, q, v))


@properties
@given(cases(floating_base=True, max_bodies=5))
def test_a_moving_base_equals_a_floating_base_with_that_motion(case):
    """(13), (19), (20) with V_0 and Vdot_0 of the base, against the same robot with a free base."""
    robot, q, v, a, v_ref = case
    assume(robot.nbodies > 1)
    S, carried = robot.joints[0].S, without_its_base(robot, q)
    V_0, A_0 = S @ v[:6], S @ a[:6]
    x, u, b, r = q[12:], v[6:], a[6:], v_ref[6:]
    reference = np.concatenate((v[:6], r))
    rates, size = 1.0 + np.abs(v).max() ** 2 + np.abs(a).max(), force_scale(robot, q, v, a, reference)
    whole = factored.factors(robot, q, v)
    assert_close(factored.body_twists(carried, x, u, V_0).ravel(), whole.V[6:], 1e-11, 100 * rates)
    A = factored.body_accelerations(robot, q, v, a)
    assert_close(factored.body_accelerations(carried, x, u, b, V_0, A_0), A[1:], 1e-11, 100 * rates)
    for form in FORMS:
        assert_close(factored.factors(carried, x, u, form, V_0).V, whole.V[6:], 1e-11, 100 * rates)
        tau = factored.inverse_dynamics(carried, x, u, b, r, form, V_0, A_0)
        expected = robot.inverse_dynamics(q, v, a, reference, form=form)[6:]
        assert_close(tau, expected, 1e-11, size)


@properties
@given(cases())
def test_body_accelerations_are_those_of_the_jacobians(case):
    robot, q, v, a, _ = case
    A = factored.body_accelerations(robot, q, v, a)
    for i, name in enumerate(robot.body_names):
        expected = robot.jacobian(q, name) @ a + robot.jacobian_rate(q, v, name) @ v
        assert_close(A[i], expected, 1e-11, 100 * (1.0 + np.abs(v).max() ** 2 + np.abs(a).max()))


@properties
@given(cases())
def test_batches_equal_loops(case):
    robot, q, v, a, _ = case
    rng = np.random.default_rng(0)
    Q, V = np.array([q, robot.random_configuration(rng)]), np.array([v, a])
    Q, V = np.stack((Q, Q[::-1], Q)), np.stack((V, V, -V))
    batch = factored.factors(robot, Q, V)
    for i in np.ndindex(3, 2):
        one = factored.factors(robot, Q[i], V[i])
        for name, x in one._asdict().items():
            y = getattr(batch, name)
            assert_close(y if name in "SJ" else y[i], x, 1e-15)
        base = np.stack((np.ones((3, 2, 6)), np.full((3, 2, 6), 0.5)))
        tau = factored.inverse_dynamics(robot, Q, V, V, None, "ploen", *base)[i]
        assert_close(tau, factored.inverse_dynamics(robot, Q[i], V[i], V[i], None, "ploen", *base[:, 0, 0]), 1e-13)
        tau = factored.inverse_dynamics(robot, Q, V, V)[i]
        assert_close(tau, factored.inverse_dynamics(robot, Q[i], V[i], V[i]), 1e-13)


def test_arguments_are_checked():
    robot = models.two_link()
    q, v = np.zeros(2), np.zeros(2)
    with pytest.raises(ArgumentError, match=r"q: expected shape \(..., 2\)"):
        factored.mass_matrix(robot, np.zeros(3))
    with pytest.raises(ArgumentError, match="v: expected finite numbers, got nan at index"):
        factored.factors(robot, q, np.array([np.nan, 0.0]))
    text = "form: expected one of 'ploen', 'christoffel', 'adjoint', 'plain', got 'lin'"
    with pytest.raises(ArgumentError, match=text):
        factored.coriolis_matrix(robot, q, v, "lin")
    with pytest.raises(ArgumentError, match=r"a: expected shape \(..., 2\)"):
        factored.inverse_dynamics(robot, q, v, np.zeros(3))
    with pytest.raises(ArgumentError, match=r"base_twist: expected shape \(6,\)"):
        factored.body_twists(robot, q, v, np.zeros(3))
    with pytest.raises(ArgumentError, match=r"base_acceleration: expected shape \(6,\), got \(2, 6\)"):
        factored.body_accelerations(robot, q, v, v, None, np.zeros((2, 6)))
