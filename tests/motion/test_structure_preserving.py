"""What each structure-preserving method keeps, against independent oracles: finite differences of the discrete
Lagrangian, momentum and energy of the plain terms, high-order trajectories."""

import functools
import math

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import inertia, integrators, models
from geomctrl.errors import ArgumentError, IntegrationError, NameNotFoundError
from geomctrl.lie.groups import Product, Rn
from geomctrl.mechanism.configuration import configuration_group
from geomctrl.motion.rollout import rollout
from geomctrl.motion.structure_preserving import METHODS
from geomctrl.motion.structure_preserving import step as one_step
from geomctrl.testing.random_robots import random_inertia, random_joint


def of_method(function, name):
    """`rollout` or `step` with one method, whose name is the test id in pytest."""

    def run(*args, **options):
        return function(*args, method=name, **options)

    run.__name__ = name
    return run


momentum_form, variational, energy_momentum = (of_method(rollout, name) for name in METHODS)
momentum_form_step, variational_step, energy_momentum_step = (of_method(one_step, name) for name in METHODS)

FLOATING = models.three_spheres()
SPIN = np.array([0.3, 0.3, 0.3, 0.1, 0.1, 0.1, 0.4, 0.4])


def mixed_tree(free: bool) -> gc.Robot:
    """Spherical, planar, cylindrical, helical and revolute joints on a free or a fixed base, under gravity."""
    rng = np.random.default_rng(5)
    kinds = ["free" if free else "revolute", "spherical", "planar", "cylindrical", "helical"]
    bodies = [
        gc.Body(f"b{i}", None if i == 0 else f"b{(i - 1) // 2}", random_joint(rng, kind), None,
                random_inertia(rng))
        for i, kind in enumerate(kinds)
    ]  # fmt: skip
    return gc.Robot.build(bodies).with_armature(0.4)  # of motors at the revolute and the helical joint


FREE_TREE, FIXED_TREE = mixed_tree(True), mixed_tree(False)


def state(robot, seed=0, speed=0.5):
    rng = np.random.default_rng(seed)
    return robot.random_configuration(rng), speed * rng.normal(size=robot.nv)


CASES = {
    "three spheres": (FLOATING, FLOATING.neutral(), SPIN, None),
    "two links": (models.two_link(), np.array([0.3, -0.5]), np.array([0.2, 0.4]), None),
    "free tree, torques": (FREE_TREE, *state(FREE_TREE), np.linspace(-0.5, 0.5, FREE_TREE.nv)),
    "fixed tree, torques": (FIXED_TREE, *state(FIXED_TREE), np.linspace(-0.5, 0.5, FIXED_TREE.nv)),
}
ORDERS = [(variational, {}, 2), (energy_momentum, {}, 2)]
ORDERS += [(momentum_form, {"tableau": m}, int(m[-1])) for m in ("MK2", "CG3", "CF4", "MK4")]


@functools.cache
def exact_end(case):
    robot, q0, v0, tau = CASES[case]
    return rollout(robot, q0, v0, tau, 0.4, 0.4 / 256, "MK8", every=256)


@pytest.mark.parametrize(
    ("case", "integrator", "options", "order"),
    [
        (case, *row)
        for case in CASES
        for row in ORDERS
        if row[0] is not momentum_form or CASES[case][0].joints[0].kind == "free"
    ],
    ids=lambda x: getattr(x, "__name__", str(x)),
)
def test_measured_order(case, integrator, options, order):
    robot, q0, v0, tau = CASES[case]
    exact = exact_end(case)
    errors = []
    for n in (128, 256) if order < 4 else (64, 128):
        end = integrator(robot, q0, v0, tau, 0.4, 0.4 / n, **options)
        q_error = robot.difference(exact.q[-1], end.q[-1])
        errors.append(np.linalg.norm(np.concatenate((q_error, end.v[-1] - exact.v[-1]))))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.1)


# --- variational -----------------------------------------------------------------------------------------------------


def discrete_lagrangian(robot, q0, q1, h):
    x = robot.difference(q0, q1)
    middle = robot.integrate(q0, 0.5 * x)
    return h * (robot.kinetic_energy(middle, x / h) - robot.potential_energy(middle))


@pytest.mark.parametrize("robot", [FLOATING, FREE_TREE, FIXED_TREE], ids=["floating", "free tree", "fixed tree"])
def test_discrete_momenta_are_the_discrete_lagrangians_slopes(robot):
    """p0 = -D1 L_d and p1 = D2 L_d, by central differences."""
    q0, v0 = state(robot, 3)
    h, e = 0.02, 1e-5
    q1, v1 = variational_step(robot, q0, v0, None, h)
    for k, direction in enumerate(np.eye(robot.nv)):
        moved = [[robot.integrate(q, s * e * direction) for s in (1, -1)] for q in (q0, q1)]
        D1 = (discrete_lagrangian(robot, moved[0][0], q1, h) - discrete_lagrangian(robot, moved[0][1], q1, h)) / (2 * e)
        D2 = (discrete_lagrangian(robot, q0, moved[1][0], h) - discrete_lagrangian(robot, q0, moved[1][1], h)) / (2 * e)
        p0, p1 = (robot.mass_matrix(q0) @ v0)[k], (robot.mass_matrix(q1) @ v1)[k]
        np.testing.assert_allclose((-D1, D2), (p0, p1), rtol=0, atol=1e-7)


def test_the_variational_map_is_symplectic():
    """D^T Omega D = Omega for the derivative of (q, p) -> (q, p) at a long step; MK4's violates it."""
    robot, h = models.two_link(), 0.1

    def explicit_step(robot, q, v, tau, dt):
        path = rollout(robot, q, v, tau, dt, dt)
        return path.q[-1], path.v[-1]

    def defect(step):
        def flow(y):
            q, v = step(robot, y[:2], np.linalg.solve(robot.mass_matrix(y[:2]), y[2:]), None, h)
            return np.concatenate((q, robot.mass_matrix(q) @ v))

        y, e = np.array([0.3, -0.9, 4.0, 1.5]), 1e-4
        columns = [
            (8 * (flow(y + e * d) - flow(y - e * d)) - flow(y + 2 * e * d) + flow(y - 2 * e * d)) / (12 * e)
            for d in np.eye(4)
        ]
        D, Omega = np.array(columns).T, np.kron([[0, 1], [-1, 0]], np.eye(2))
        return np.abs(D.T @ Omega @ D - Omega).max()

    assert defect(variational_step) < 1e-9
    assert defect(explicit_step) > 1e-6
    assert defect(energy_momentum_step) > 1e-6


def test_variational_energy_does_not_drift():
    """Over 4000 s the band of energies keeps its width and its mean, with a step at which MK4 loses energy steadily.

    The motion is chaotic, so averages are compared: they do not depend on rounding.
    """

    def energy_error(method):
        path = method(FLOATING, FLOATING.neutral(), SPIN, None, 4000.0, 0.2)
        return np.array_split(FLOATING.energy(path.q, path.v) - FLOATING.energy(path.q[0], path.v[0]), 5)

    parts, lost = energy_error(variational), energy_error(rollout)
    widths = [np.sqrt(np.mean(part**2)) for part in parts]
    assert max(widths[2:]) < 2.5 * max(widths[:2])
    assert abs(parts[-1].mean() - parts[0].mean()) < 0.2 * abs(lost[-1].mean() - lost[0].mean())


# --- what is kept ----------------------------------------------------------------------------------------------------


def floating_at_rest_on_average():
    """The three spheres rotate about a centre of mass at rest, so that the angular momentum keeps its digits."""
    P = np.array([FLOATING.momentum(FLOATING.neutral(), e)[3:] for e in np.eye(8)]).T
    v = SPIN.copy()
    v[3:6] -= np.linalg.solve(P[:, 3:6], P @ v)
    return FLOATING.neutral(), v


@pytest.mark.parametrize("h", [0.3, 0.02])
@pytest.mark.parametrize(
    ("integrator", "options"),
    [
        (variational, {}),
        (energy_momentum, {}),
        *((momentum_form, {"tableau": m}) for m in ("CG2", "MK2", "CF3", "MK4")),
    ],
)
def test_spatial_momentum_is_kept_to_round_off(integrator, options, h):
    q0, v0 = floating_at_rest_on_average()
    path = integrator(FLOATING, q0, v0, None, 1000 * h, h, **options)
    drift = np.abs(FLOATING.momentum(path.q, path.v) - FLOATING.momentum(q0, v0)).max()
    assert drift < 1e-12  # relative to 50 N m s
    assert np.abs(FLOATING.momentum(*plain_end(q0, v0, h)) - FLOATING.momentum(q0, v0)).max() > 1e5 * drift


def plain_end(q0, v0, h):
    end = rollout(FLOATING, q0, v0, None, 1000 * h, h, "MK4", every=1000)
    return end.q[-1], end.v[-1]


@pytest.mark.parametrize("h", [0.2, 0.02])
def test_energy_momentum_keeps_energy_to_round_off(h):
    q0, v0 = floating_at_rest_on_average()
    path = energy_momentum(FLOATING, q0, v0, None, 1000 * h, h)
    energy = FLOATING.energy(path.q, path.v)
    assert np.ptp(energy) < 2e-12 * energy[0]
    assert abs(FLOATING.energy(*plain_end(q0, v0, h)) - energy[0]) > 1e-10 * energy[0]


@pytest.mark.parametrize("robot", [models.two_link(), models.panda(), FIXED_TREE, FREE_TREE], ids=lambda r: r.name)
def test_energy_momentum_keeps_energy_under_gravity(robot):
    q0, v0 = state(robot, 1)
    path = energy_momentum(robot, q0, v0, None, 1.0, 0.01)
    energy = robot.energy(path.q, path.v)
    assert np.abs(energy - energy[0]).max() < 1e-12 * robot.kinetic_energy(path.q, path.v).max() + 1e-11
    second_order = variational(robot, q0, v0, None, 1.0, 0.01)
    assert np.ptp(robot.energy(second_order.q, second_order.v)) > 1e-5


@pytest.mark.parametrize("robot", [models.panda(), FREE_TREE], ids=lambda r: r.name)
def test_energy_momentum_changes_energy_by_the_torques_work(robot):
    q0, v0 = state(robot, 2)
    tau = np.random.default_rng(0).normal(size=robot.nv)
    q1, v1 = energy_momentum_step(robot, q0, v0, tau, 0.02)
    work = robot.difference(q0, q1) @ tau
    assert robot.energy(q1, v1) - robot.energy(q0, v0) == pytest.approx(work, abs=1e-12)
    assert abs(work) > 1e-3


@pytest.mark.parametrize("integrator", [momentum_form, variational, energy_momentum])
def test_gravity_changes_linear_momentum_as_it_should_and_no_other(integrator):
    """The momentum changes by exactly m g t, and the angular momentum about the vertical is constant."""
    q0, v0 = state(FREE_TREE, 4)
    path = integrator(FREE_TREE, q0, v0, None, 0.5, 0.01)
    change = FREE_TREE.momentum(path.q, path.v) - FREE_TREE.momentum(q0, v0)
    weight = FREE_TREE.parameters[:, 0].sum() * FREE_TREE.gravity
    scale = np.abs(change).max()
    np.testing.assert_allclose(change[:, 3:], path.t[:, None] * weight, rtol=0, atol=1e-13 * scale)
    np.testing.assert_allclose(change[:, 2], 0.0, rtol=0, atol=1e-13 * scale)


def test_momentum_form_with_a_wrench_on_the_base():
    """A force along the base's x axis changes the spatial momentum by the integral of its wrench."""
    tau = np.zeros(8)
    tau[3] = 5.0
    path = momentum_form(FLOATING, FLOATING.neutral(), SPIN, tau, 1.0, 0.01, tableau="MK6")
    force = 5.0 * path.q[:, [0, 4, 8]]
    wrench = np.hstack((np.cross(path.q[:, [3, 7, 11]], force), force))
    weights = np.r_[1, np.tile([4, 2], 49), 4, 1] * 0.01 / 3  # Simpson's rule
    change = FLOATING.momentum(path.q[-1], path.v[-1]) - FLOATING.momentum(path.q[0], path.v[0])
    np.testing.assert_allclose(change, weights @ wrench, rtol=0, atol=1e-9)


@pytest.mark.parametrize("step", [variational_step, energy_momentum_step])
@pytest.mark.parametrize("robot", [FLOATING, FREE_TREE, FIXED_TREE], ids=["floating", "free tree", "fixed tree"])
def test_implicit_steps_are_symmetric_in_time(step, robot):
    q0, v0 = state(robot, 6)
    tau = np.linspace(-1.0, 1.0, robot.nv)
    q, v = step(robot, *step(robot, q0, v0, tau, 0.02), tau, -0.02)
    np.testing.assert_allclose(q, q0, rtol=0, atol=2e-13)
    np.testing.assert_allclose(v, v0, rtol=0, atol=2e-11)


def test_a_single_body_turns_as_euler_says_it_must():
    """One free body: both momenta and, with the discrete gradient, energy are kept; the momentum form is exact in
    translation.
    """
    body = gc.Robot.build(
        [gc.Body("body", None, gc.Joint.free(), None, gc.inertia.from_com(2.0, (0.1, 0.0, 0.2), np.diag([1, 2, 2.5])))],
        gravity=(0, 0, 0),
    )
    q0, v0 = body.neutral(), np.array([0.1, 3.0, 0.2, 0.5, 0.0, -0.2])
    for integrator in (momentum_form, variational, energy_momentum):
        path = integrator(body, q0, v0, None, 20.0, 0.05)
        P = body.momentum(path.q, path.v)
        np.testing.assert_allclose(P, np.tile(P[0], (401, 1)), rtol=0, atol=2e-13)
    energy = body.energy(path.q, path.v)
    assert np.ptp(energy) < 1e-12 * energy[0]


def test_every_torques_per_step_and_the_loop_of_ones_own_agree():
    robot = FREE_TREE
    q, v = state(robot, 7)
    taus = np.random.default_rng(1).normal(size=(20, robot.nv))
    for integrator, step in (
        (variational, variational_step), (energy_momentum, energy_momentum_step), (momentum_form, momentum_form_step)
    ):  # fmt: skip
        path = integrator(robot, q, v, taus, 0.2, 0.01, every=3)
        np.testing.assert_allclose(path.t, [0, 0.03, 0.06, 0.09, 0.12, 0.15, 0.18, 0.2])
        y = q, v
        for k, tau in enumerate(taus):
            y = step(robot, *y, tau, 0.01)
            if k == 8:
                np.testing.assert_allclose(path.q[3], y[0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(path.q[-1], y[0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(path.v[-1], y[1], rtol=0, atol=1e-10)


# --- a torque function ------------------------------------------------------------------------------------------------


def feedback(robot, home):
    """Springs to a configuration, dampers and an oscillating drive for every coordinate."""
    swing = np.linspace(0.5, 1.0, robot.nv)

    def torque(t, q, v):
        return -2.0 * robot.difference(home, q) - 0.7 * v + swing * np.sin(3.0 * t)

    return torque


@pytest.mark.parametrize(
    ("case", "integrator", "options", "order"),
    [
        (case, *row)
        for case in CASES
        for row in [*ORDERS[:2], (momentum_form, {"tableau": "CF3"}, 3), (momentum_form, {"tableau": "MK4"}, 4)]
        if row[0] is not momentum_form or CASES[case][0].joints[0].kind == "free"
    ],
    ids=lambda x: getattr(x, "__name__", str(x)),
)
def test_the_order_stays_with_a_loop_closed(case, integrator, options, order):
    robot, q0, v0, _ = CASES[case]
    torque, nq = feedback(robot, q0), robot.nq

    def field(t, y):
        q, v = y[:nq], y[nq:]
        return np.concatenate((v, robot.forward_dynamics(q, v, torque(t, q, v))))

    group = Product(configuration_group(robot), Rn(robot.nv))
    exact = integrators.integrate(field, np.r_[q0, v0], (0.0, 0.4), 0.4 / 128, "MK8", group, every=1000).y[-1]
    errors = []
    for n in (64, 128) if order < 4 else (128, 256):
        end = integrator(robot, q0, v0, torque, 0.4, 0.4 / n, every=n, **options)
        errors.append(np.linalg.norm(np.concatenate((robot.difference(exact[:nq], end.q[-1]), end.v[-1] - exact[nq:]))))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.15)


@pytest.mark.parametrize("integrator", [variational, energy_momentum])
@pytest.mark.parametrize("robot", [FREE_TREE, FIXED_TREE], ids=["free tree", "fixed tree"])
def test_the_torque_is_the_midpoints_and_does_its_work(integrator, robot):
    """The same run with held torques of its own midpoints: the energy changes by their work."""
    q0, v0 = state(robot, 8)
    torque, missed = feedback(robot, q0), []
    for h in (0.01, 0.005):
        path = integrator(robot, q0, v0, torque, 0.405 + 0.4 * h, h)  # the last step is shorter
        x, steps = robot.difference(path.q[:-1], path.q[1:]), np.diff(path.t)
        middle = robot.integrate(path.q[:-1], 0.5 * x)
        taus = np.array([torque(t + 0.5 * k, q, u / k) for t, k, q, u in zip(path.t, steps, middle, x)])
        held = integrator(robot, q0, v0, taus, 0.405 + 0.4 * h, h)
        np.testing.assert_allclose(held.q, path.q, rtol=0, atol=1e-11)
        np.testing.assert_allclose(held.v, path.v, rtol=0, atol=1e-9)
        energy, work = robot.energy(path.q, path.v), np.cumsum(np.einsum("ki,ki->k", x, taus))
        assert np.ptp(work) > 0.1
        missed.append(np.abs(energy[1:] - energy[0] - work).max())
    if integrator is energy_momentum:
        assert max(missed) < 1e-11
    else:
        assert np.log2(missed[0] / missed[1]) == pytest.approx(2.0, abs=0.1)


def test_gravity_as_a_torque_is_gravity():
    """With a force that has a potential, the forced discrete Euler-Lagrange equations equal the free ones to
    round-off.
    """
    robot = models.two_link()
    weightless = robot.with_gravity((0, 0, 0))
    q0, v0 = np.array([0.3, -0.5]), np.array([0.2, 0.4])
    ours = variational(weightless, q0, v0, lambda t, q, v: -robot.gravity_force(q), 2.0, 0.02)
    theirs = variational(robot, q0, v0, None, 2.0, 0.02)
    np.testing.assert_allclose(ours.q, theirs.q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.v, theirs.v, rtol=0, atol=1e-8)


@pytest.mark.parametrize("integrator", [momentum_form, variational, energy_momentum])
def test_joint_control_leaves_the_spatial_momentum_alone(integrator):
    """A floating robot folds its joints by feedback: internal torques do not change its momentum, for any step."""
    q0, v0 = floating_at_rest_on_average()

    def fold(t, q, v):
        return np.concatenate((np.zeros(6), 20.0 * (1.0 - q[12:]) - 8.0 * v[6:]))

    path = integrator(FLOATING, q0, v0, fold, 10.0, 0.1)
    assert np.abs(FLOATING.momentum(path.q, path.v) - FLOATING.momentum(q0, v0)).max() < 1e-12
    assert np.abs(path.q[-1, 12:] - q0[12:]).max() > 0.5


@pytest.mark.parametrize("stiffness", [0.1, 2.0, 50.0, 1e4])
@pytest.mark.parametrize("step", [variational_step, energy_momentum_step])
def test_a_damper_of_any_strength_is_solved_for(step, stiffness):
    """m v' = -k v by the midpoint rule: v1 = v0 (1 - a/2)/(1 + a/2), a = h k/m; plain iteration diverges from a = 2."""
    m, h = 2.0, 0.01
    slide = gc.Robot.build(
        [gc.Body("cart", None, gc.Joint.prismatic((1, 0, 0)), None, inertia.from_com(m, (0, 0, 0), np.eye(3)))]
    )
    q, v = step(slide, [0.0], [3.0], lambda t, q, v: -stiffness * m / h * v, h)
    expected = 3.0 * (1.0 - 0.5 * stiffness) / (1.0 + 0.5 * stiffness)
    assert v[0] == pytest.approx(expected, rel=1e-9)
    assert q[0] == pytest.approx(0.5 * h * (3.0 + expected), rel=1e-9)


@pytest.mark.parametrize("integrator", [variational, energy_momentum])
def test_steep_friction_stops_and_a_jump_is_refused(integrator):
    """No step uses a torque other than that of its midpoint."""
    robot, q0, v0 = models.two_link().with_gravity((0, 0, 0)), np.array([0.3, 0.2]), np.array([0.5, -0.5])
    path = integrator(robot, q0, v0, lambda t, q, v: -3.0 * np.tanh(v / 0.01), 1.0, 0.01)
    x = robot.difference(path.q[:-1], path.q[1:])
    held = integrator(robot, q0, v0, -3.0 * np.tanh(x / 0.01 / 0.01), 1.0, 0.01)
    np.testing.assert_allclose(held.q, path.q, rtol=0, atol=1e-10)
    assert np.abs(path.v[-1]).max() < 1e-6
    with pytest.raises(IntegrationError, match="implicit equations could not be solved: halve dt") as caught:
        integrator(robot, q0, v0, lambda t, q, v: -3.0 * np.sign(v), 1.0, 0.01)
    assert caught.value.solution.steps >= 1


def test_steps_of_ones_own_know_the_time():
    robot = FREE_TREE
    q, v = state(robot, 7)
    torque = feedback(robot, q)
    for integrator, step in (
        (variational, variational_step), (energy_momentum, energy_momentum_step), (momentum_form, momentum_form_step)
    ):  # fmt: skip
        path = integrator(robot, q, v, torque, 0.1, 0.01, every=4)
        np.testing.assert_allclose(path.t, [0, 0.04, 0.08, 0.1])
        y = q, v
        for k in range(10):
            y = step(robot, *y, torque, 0.01, t=0.01 * k)
        np.testing.assert_allclose(path.q[-1], y[0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(path.v[-1], y[1], rtol=0, atol=1e-10)


def test_at_rest_under_torques_that_are_round_off():
    """If weight and torques cancel, tolerances are relative to round-off, for held torques and for feedback."""
    robot = models.two_link()
    hold = np.array([0.4, -0.3])
    for integrator in (variational, energy_momentum):
        path = integrator(robot, hold, np.zeros(2), robot.gravity_force(hold), 1.0, 0.01)
        np.testing.assert_allclose(path.q, np.tile(hold, (101, 1)), rtol=0, atol=1e-12)
    for integrator in (variational, energy_momentum):
        path = integrator(
            robot, hold, np.zeros(2), lambda t, q, v: robot.gravity_force(q) - 900.0 * (q - hold) - 90.0 * v, 1.0, 0.01
        )
        np.testing.assert_allclose(path.q, np.tile(hold, (101, 1)), rtol=0, atol=1e-12)


@pytest.mark.parametrize("integrator", [variational, energy_momentum, momentum_form])
@pytest.mark.parametrize("bad", [np.full(8, np.nan), np.zeros(7), None, "torque"], ids=str)
def test_a_torque_function_that_fails_says_when_and_keeps_the_run_so_far(integrator, bad):
    def torque(t, q, v):
        return bad if t > 0.32 else np.zeros(8)

    with pytest.raises(IntegrationError, match=r"tau\(t, q, v\): expected .*, at t = 0.35") as caught:
        integrator(FLOATING, FLOATING.neutral(), SPIN, torque, 1.0, 0.1)
    assert caught.value.solution.steps == 3
    assert len(caught.value.solution.q) == 4


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("integrator", [variational, energy_momentum, momentum_form])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dt": 0.0}, "dt: expected a positive number of seconds, got 0.0"),
        ({"dt": -0.1}, "dt: expected a positive number"),
        ({"dt": 2.0}, "dt: expected a step no longer than t_end = 1 s, got 2"),
        ({"dt": math.nan}, "dt: expected a positive number of seconds, got nan"),
        ({"t_end": math.inf}, "t_end: expected a positive number"),
        ({"every": 0}, "every: expected a positive integer, got 0"),
        ({"q0": np.zeros(8)}, r"q0: expected shape \(14,\), got \(8,\)"),
        ({"q0": np.zeros(14)}, "q0: entries 0 to 11, .* hold no rotation"),
        ({"v0": np.full(8, math.nan)}, "v0: expected finite numbers, got nan"),
        ({"robot": None}, "robot: expected a Robot, got None"),
        ({"tau": np.zeros(7)}, r"tau: expected shape \(8,\), got \(7,\)"),
        ({"tau": np.zeros((3, 8))}, r"tau: expected shape \(8,\), or \(10, 8\) for one per step, got \(3, 8\)"),
    ],
)
def test_bad_arguments_are_named(integrator, change, message):
    good = {"robot": FLOATING, "q0": FLOATING.neutral(), "v0": SPIN, "tau": None, "t_end": 1.0, "dt": 0.1}
    with pytest.raises(ArgumentError, match=message):
        integrator(**{**good, **change})


@pytest.mark.parametrize("step", [variational_step, energy_momentum_step, momentum_form_step])
def test_the_time_of_a_step_is_a_number(step):
    with pytest.raises(ArgumentError, match="t: expected a finite number of seconds, got nan"):
        step(FLOATING, FLOATING.neutral(), SPIN, None, 0.1, t=math.nan)


@pytest.mark.parametrize("integrator", [variational, energy_momentum, momentum_form])
def test_a_torque_function_may_reuse_its_buffer(integrator):
    buffer = np.zeros(8)

    def reused(t, q, v):
        return np.multiply(-1.0, v, out=buffer)

    runs = [integrator(FLOATING, FLOATING.neutral(), SPIN, f, 0.5, 0.05) for f in (reused, lambda t, q, v: -v)]
    assert np.array_equal(runs[0].q, runs[1].q)


def test_momentum_form_needs_a_free_base():
    robot = models.panda()
    with pytest.raises(ArgumentError, match=r"needs one free base .* begins with a revolute joint"):
        momentum_form(robot, robot.neutral(), np.zeros(7), None, 1.0, 0.1)
    with pytest.raises(NameNotFoundError, match="got 'RK4'"):
        momentum_form(FLOATING, FLOATING.neutral(), SPIN, None, 1.0, 0.1, tableau="RK4")
    with pytest.raises(ArgumentError, match="expected a fixed-step method, got the adaptive MK54"):
        momentum_form(FLOATING, FLOATING.neutral(), SPIN, None, 1.0, 0.1, tableau="MK54")


@pytest.mark.parametrize("integrator", [variational, energy_momentum])
def test_a_step_too_long_for_the_implicit_equations_says_so_and_keeps_what_was_done(integrator):
    taus = np.zeros((10, 8))
    taus[6:, 6:] = 1e5
    with pytest.raises(IntegrationError, match=r"step of dt = 0.1 at t = 0.6 s can not be made: .* halve dt") as e:
        integrator(FLOATING, FLOATING.neutral(), SPIN, taus, 1.0, 0.1)
    path = e.value.solution
    assert (path.success, path.steps, len(path.t), path.reason) == (False, 6, 7, str(e.value))
    undisturbed = integrator(FLOATING, FLOATING.neutral(), SPIN, None, 0.6, 0.1)
    np.testing.assert_allclose(path.q, undisturbed.q, rtol=0, atol=1e-12)


@pytest.mark.parametrize("integrator", [variational, energy_momentum, momentum_form])
def test_a_turn_by_two_pi_within_the_step_is_refused(integrator):
    spin = np.zeros(8)
    spin[2] = 7.0
    with pytest.raises(IntegrationError, match=r"turns by 2 pi within the step|implicit equations"):
        integrator(FLOATING, FLOATING.neutral(), spin, None, 2.0, 1.0)
