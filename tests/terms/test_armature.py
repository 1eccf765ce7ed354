"""Armature is added to the diagonal of M in every recursion and nowhere else: against Pinocchio and a pendulum."""

import math

import numpy as np
import pinocchio as pin
import pytest
import scipy.integrate
import scipy.special
from hypothesis import given
from oracles import PINOCCHIO_KINDS, Pinocchio, assert_close, cases, derivative, force_scale, properties, random_motion

import geomctrl as gc
from geomctrl import derivatives, inertia, models, operational_space, testing
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.kernels import momenta
from geomctrl.papers import closed_forms, factored, representations
from geomctrl.terms import regressor
from geomctrl.testing.robot_terms import check_robot

KINDS = ("revolute", "spherical", "prismatic", "helical", "planar", "revolute")
PARENTS = (-1, 0, 0, 1, 2, 3)
TREE = testing.random_robot(np.random.default_rng(7), KINDS, PARENTS).with_armature(0.5)
LEGS = models.quadruped().with_armature(0.02)
ARM = testing.random_robot(np.random.default_rng(8), ("revolute", "prismatic", "helical"), (-1, 0, 1))
ARM = ARM.with_armature([0.6, 0.3, 0.0])  # few coordinates: functions for a bundled arm take seconds to compile
ROBOTS = pytest.mark.parametrize("robot", [TREE, LEGS, ARM], ids=["tree", "legs", "arm"])


def reference(form):
    return lambda r, q, v, a: r.inverse_dynamics(q, v, a, v, form=form)


def times_parameters(r, q, v, a):
    return regressor.products(r, q, v, a, v, r.parameters.ravel(), v)[0]


INVERSE_DYNAMICS = {
    "body": lambda r, q, v, a: r.inverse_dynamics(q, v, a),
    "many": lambda r, q, v, a: r.inverse_dynamics(*(np.tile(x, (3, 1)) for x in (q, v, a)))[1],
    "spatial": lambda r, q, v, a: representations.inverse_dynamics(r, q, v, a, representation="spatial"),
    "hybrid": lambda r, q, v, a: representations.inverse_dynamics(r, q, v, a, representation="hybrid"),
    "ploen": reference("ploen"),
    "christoffel": reference("christoffel"),
    "adjoint": reference("adjoint"),
    "external": lambda r, q, v, a: r.inverse_dynamics(q, v, a, f_ext=np.zeros((r.nbodies, 6))),
    "products": times_parameters,
    "rates": lambda r, q, v, a: derivatives.inverse_dynamics_rates(r, q, np.stack((v, a)))[0],
    "factored": factored.inverse_dynamics,
    "Lagrange": closed_forms.lagrange,
    "Euler and Jourdain": closed_forms.euler_jourdain,
    "momentum form": closed_forms.momentum_form,
}
MASS_MATRICES = {
    "composite bodies": lambda r, q: r.mass_matrix(q),
    "terms": lambda r, q: r.terms(q, np.zeros(r.nv)).M,
    "terms, adjoint": lambda r, q: r.terms(q, np.zeros(r.nv), "adjoint").M,
    "derivative": lambda r, q: r.inverse_dynamics_derivatives(q, np.zeros(r.nv), np.zeros(r.nv)).da,
    "inverse": lambda r, q: np.linalg.inv(r.mass_matrix_inverse(q)),
    "solve": lambda r, q: np.linalg.inv(r.mass_matrix_solve(q, np.eye(r.nv))),
    "forward derivative": lambda r, q: np.linalg.inv(r.forward_dynamics_derivatives(q, *np.zeros((2, r.nv))).dtau),
    "factored": factored.mass_matrix,
    "product of exponentials": closed_forms.product_mass_matrix,
}


@pytest.mark.usefixtures("kernels")
@ROBOTS
@pytest.mark.parametrize("name", INVERSE_DYNAMICS)
def test_inverse_dynamics_takes_armature_times_acceleration(robot, name):
    q, v, a, _ = random_motion(robot, 1)
    function, bare = INVERSE_DYNAMICS[name], robot.with_armature(0.0)
    taken = function(robot, q, v, a) - function(bare, q, v, a)
    assert_close(taken, robot.armature * a, 1e-12, force_scale(robot, q, v, a))


@pytest.mark.usefixtures("kernels")
@ROBOTS
@pytest.mark.parametrize("name", MASS_MATRICES)
def test_armature_is_on_the_diagonal_of_the_mass_matrix(robot, name):
    q, function = random_motion(robot, 2)[0], MASS_MATRICES[name]
    M = robot.with_armature(0.0).mass_matrix(q)
    assert_close(function(robot, q), M + np.diag(robot.armature), 1e-11)


@ROBOTS
def test_nothing_else_changes(robot):
    """Motors have no weight, do not rotate the base, and do not depend on q: C, g, Mdot and the momentum are
    unchanged.
    """
    q, v, _, _ = random_motion(robot, 3)
    bare = robot.with_armature(0.0)
    for ours, theirs in zip(robot.terms(q, v)[1:], bare.terms(q, v)[1:]):
        assert_close(ours, theirs, 1e-13)
    assert_close(robot.momentum(q, v), bare.momentum(q, v), 1e-13)
    assert_close(robot.gravity_force(q), bare.gravity_force(q), 1e-13)
    assert_close(robot.potential_energy(q), bare.potential_energy(q), 1e-13)
    assert_close(robot.regressor(q, v, v), bare.regressor(q, v, v), 1e-13)
    assert_close(derivatives.mass_matrix_derivative(robot, q), derivatives.mass_matrix_derivative(bare, q), 1e-13)


@ROBOTS
def test_kinetic_energy_is_half_v_m_v(robot):
    q, v, _, _ = random_motion(robot, 4)
    assert robot.kinetic_energy(q, v) == pytest.approx(0.5 * v @ robot.mass_matrix(q) @ v, rel=1e-12)


@ROBOTS
def test_momenta_of_the_structure_preserving_methods_are_m_v(robot):
    q, v, _, _ = random_motion(robot, 8)
    p, rate, diagonal = np.empty((3, robot.nv))
    memory = momenta.sweep_memory(robot._model)
    potential = momenta.momentum_sweep(robot._model, q, v, memory, p, rate, diagonal)
    M = robot.mass_matrix(q)
    assert_close(p, M @ v, 1e-12)
    assert_close(diagonal, np.diag(M), 1e-12)
    assert potential == pytest.approx(robot.potential_energy(q), rel=1e-10)


@ROBOTS
def test_forward_dynamics_solves_with_the_armature(robot):
    """By the mass matrix for few coordinates, by articulated bodies for many; with and without wrenches."""
    q, v, tau, _ = random_motion(robot, 5)
    f_ext = np.random.default_rng(5).normal(size=(robot.nbodies, 6))
    for wrenches in ({}, {"f_ext": f_ext}):
        a = robot.forward_dynamics(q, v, tau, **wrenches)
        bias = robot.with_armature(0.0).inverse_dynamics(q, v, np.zeros(robot.nv), **wrenches)
        M = robot.with_armature(0.0).mass_matrix(q) + np.diag(robot.armature)
        assert_close(a, np.linalg.solve(M, tau - bias), 1e-10)


@given(case=cases(driven=True))
@properties
def test_rates_are_time_derivatives(case):
    """tau' and tau'' of tau = ID + armature a have the same form: the armature times derivatives of v."""
    robot, q, *rates = case
    tau, bare = (derivatives.inverse_dynamics_rates(r, q, np.array(rates)) for r in (robot, robot.with_armature(0.0)))
    rates = np.array(rates)
    scale = np.abs(robot.mass_matrix(q)).max() * np.abs(rates).max() * (1.0 + np.abs(rates).max()) ** 3
    assert_close(tau, bare + robot.armature * rates[1:], 1e-11, scale + np.abs(bare).max())


@given(case=cases(driven=True))
@properties
def test_forward_dynamics_derivatives(case):
    """Against the complex step through the factored form, which shares no code."""
    robot, q, v, tau, x = case
    d = robot.forward_dynamics_derivatives(q, v, tau)
    zero = np.zeros(robot.nv)

    def acceleration(z):
        return np.linalg.solve(
            factored.mass_matrix(robot, z), tau - factored.inverse_dynamics(robot, z, v + 0j, zero + 0j)
        )

    expected = derivative(acceleration, robot, q, x)
    condition = np.linalg.cond(robot.mass_matrix(q))
    assert_close(d.dq @ x, expected, 1e-13 * condition + 1e-9, np.abs(d.dq).max() * np.abs(x).max())


@pytest.mark.slow
@ROBOTS
def test_forward_dynamics_second_derivatives(robot):
    q, v, tau, _ = random_motion(robot, 6)
    second, h = derivatives.forward_dynamics_second_derivatives(robot, q, v, tau), 1e-5
    for k in (0, robot.nv - 1):
        e = h * np.eye(robot.nv)[k]
        after, before = (robot.forward_dynamics_derivatives(robot.integrate(q, s * e), v, tau) for s in (1.0, -1.0))
        for ours, one, other in zip(
            (second.dqdq, second.dtaudq), (after.dq, after.dtau), (before.dq, before.dtau), strict=True
        ):
            assert_close(ours[..., k], (one - other) / (2.0 * h), 1e-6, np.abs(ours).max())


@pytest.mark.slow
@given(robot=testing.robots(driven=True))
@properties
def test_every_property_holds(robot):
    assert all(check.ok for check in check_robot(robot, 2)), [c for c in check_robot(robot, 2) if not c.ok]


@ROBOTS
def test_operational_inertia_is_felt_through_the_motors(robot):
    q, frame = random_motion(robot, 7)[0], robot.body_names[-1]
    J = robot.jacobian(q, frame)
    M = robot.with_armature(0.0).mass_matrix(q) + np.diag(robot.armature)
    assert_close(operational_space.mobility(robot, q, frame), J @ np.linalg.solve(M, J.T), 1e-10)


# --- Pinocchio ---------------------------------------------------------------------------------------------------


@given(case=cases(kinds=PINOCCHIO_KINDS, driven=True))
@properties
def test_pinocchio_agrees(case):
    robot, q, v, a, tau = case
    theirs = Pinocchio(robot)
    np.testing.assert_array_equal(theirs.ours(theirs.model.armature), robot.armature)
    scale = force_scale(robot, q, v, a)
    assert_close(robot.mass_matrix(q), theirs.mass_matrix(q), 1e-12)
    assert_close(robot.inverse_dynamics(q, v, a), theirs.inverse_dynamics(q, v, a), 1e-11, scale)
    condition = np.linalg.cond(robot.mass_matrix(q))
    expected = theirs.forward_dynamics(q, v, tau)
    assert_close(robot.forward_dynamics(q, v, tau), expected, 1e-13 * condition + 1e-10, 1.0)
    assert robot.kinetic_energy(q, v) == pytest.approx(theirs.energies(q, v)[0], rel=1e-10, abs=1e-12)


@given(case=cases(kinds=("revolute", "prismatic", "helical"), driven=True))
@properties
def test_pinocchios_derivatives_agree(case):
    robot, q, v, a, tau = case
    theirs = Pinocchio(robot)
    arguments = theirs.model, theirs.data, theirs.q(q), theirs.v(v)
    ours = robot.inverse_dynamics_derivatives(q, v, a)
    result = [x.copy() for x in pin.computeRNEADerivatives(*arguments, theirs.v(a))]
    scale = force_scale(robot, q, v, a)
    for mine, x in zip(ours, (*result[:2], symmetric(result[2])), strict=True):
        assert_close(mine, theirs.ours(x, 2), 1e-10, scale)
    ours = robot.forward_dynamics_derivatives(q, v, tau)
    result = [x.copy() for x in pin.computeABADerivatives(*arguments, theirs.v(tau))]
    size = np.linalg.cond(robot.mass_matrix(q))
    for mine, x in zip((ours.dq, ours.dv, ours.dtau), (result[0], result[1], symmetric(result[2])), strict=True):
        assert_close(mine, theirs.ours(x, 2), 1e-12 * size + 1e-9, 1.0)


def symmetric(A):
    """Pinocchio fills the upper half."""
    return np.triu(A) + np.triu(A, 1).T


# --- closed form ---------------------------------------------------------------------------------------------------


def test_a_pendulum_swings_slower_with_a_rotor():
    """T = 4 sqrt((I + armature) / (m g l)) K(sin^2(A / 2)), for a rotor of 2e-4 kg m^2 with a gear ratio of 50."""
    m, l, rotor, ratio, start = 2.0, 0.4, 2e-4, 50.0, 1.0
    joint = gc.Joint.revolute((0, 1, 0)).with_motor(rotor, ratio)
    bob = inertia.from_com(m, (0.0, 0.0, -l), np.zeros((3, 3)))
    robot = gc.Robot.build([gc.Body("bob", None, joint, None, bob)])
    assert robot.armature == pytest.approx([0.5])
    period = 4.0 * math.sqrt((m * l**2 + 0.5) / (m * 9.81 * l)) * scipy.special.ellipk(math.sin(start / 2.0) ** 2)

    def field(t, y):
        return [y[1], robot.forward_dynamics(y[:1], y[1:], np.zeros(1))[0]]

    def bottom(t, y):
        return y[0]

    result = scipy.integrate.solve_ivp(field, (0.0, period), [start, 0.0], events=bottom, rtol=1e-11, atol=1e-12)
    assert result.t_events[0] == pytest.approx([0.25 * period, 0.75 * period], rel=1e-8)


# --- the door ------------------------------------------------------------------------------------------------------


def test_other_motors():
    robot = TREE.with_armature(0.0)
    assert not robot.armature.any()
    np.testing.assert_array_equal(TREE.armature, [0.5, 0, 0, 0, 0.5, 0.5, 0, 0, 0, 0.5])
    array = np.array([1.0, 0, 0, 0, 2.0, 3.0, 0, 0, 0, 4.0])
    other = TREE.with_armature(array)
    np.testing.assert_array_equal(other.armature, array)
    q = other.random_configuration(np.random.default_rng(0))
    assert_close(other.mass_matrix(q), robot.mass_matrix(q) + np.diag(array), 1e-13)
    loaded = other.with_payload(1.0)
    np.testing.assert_array_equal(loaded.armature, array)
    assert_close(loaded.mass_matrix(q) - loaded.with_armature(0.0).mass_matrix(q), np.diag(array), 1e-12)


@pytest.mark.parametrize(
    ("armature", "message"),
    [
        (-1.0, "armature: expected a number >= 0 or 10 of them, got -1.0"),
        (np.ones(9), "armature: expected a number >= 0 or 10 of them"),
        (np.ones(10), "armature: expected 0 at 'joint1.*', whose joint has several degrees of freedom"),
        (np.nan, "armature: .*not finite|armature: expected"),
    ],
)
def test_wrong_armatures(armature, message):
    with pytest.raises(ArgumentError, match=message):
        TREE.with_armature(armature)


def test_a_massless_body_on_a_motor_is_accepted():
    """With armature M is positive definite; without it the robot is refused."""
    joint = gc.Joint.revolute((0, 0, 1), armature=0.3)
    robot = gc.Robot.build([gc.Body("wheel", None, joint)])
    np.testing.assert_array_equal(robot.mass_matrix(np.zeros(1)), [[0.3]])
    with pytest.raises(ModelError, match="singular"):
        robot.with_armature(0.0)
