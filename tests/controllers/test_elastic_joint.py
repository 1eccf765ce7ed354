"""Elastic joints: the plant satisfies its equations, and feedback linearisation tracks to integration accuracy."""

import numpy as np
import pytest
import scipy.linalg
from oracles import assert_close

import geomctrl as gc
from geomctrl import integrators, models, testing
from geomctrl.control.elastic_joints import ElasticPlant, with_rotors
from geomctrl.control.references import Harmonic, RestToRest
from geomctrl.controllers import ElasticJoint
from geomctrl.errors import ArgumentError

HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
CASES = {  # robot, stiffness [N m/rad], rotor inertia [kg m^2], reference
    "two_link": (models.two_link(), 200.0, 0.3, Harmonic((0.3, -0.4), (0.5, 0.7), (0.5, 0.4), (0.0, 1.0))),
    "panda": (
        models.panda(),
        np.array([9000.0, 9000.0, 9000.0, 9000.0, 3500.0, 3500.0, 3500.0]),
        np.array([1.0, 1.0, 1.0, 1.0, 0.3, 0.3, 0.3]),
        Harmonic(HOME, 0.3, np.array([0.25, 0.3, 0.2, 0.35, 0.4, 0.3, 0.45])),
    ),
}


@pytest.fixture(params=CASES)
def case(request):
    robot, K, B, reference = CASES[request.param]
    return ElasticPlant(robot, K, B), ElasticJoint(robot, reference, K, B, bandwidth=12.0), reference


def state(controller, t=0.0):
    desired = controller.reference(t)
    return desired.q, desired.v


# --- plant -------------------------------------------------------------------------------------------------------


def test_plant_is_the_two_equations(case):
    plant, controller, _ = case
    n, rng = controller.links.nv, np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 2 * n))
    a = plant.acceleration(0.0, q, v, tau)
    spring = controller.K * (q[n:] - q[:n])
    assert_close(controller.links.inverse_dynamics(q[:n], v[:n], a[:n]), spring + tau[:n], 1e-10)
    assert_close(controller.B * a[n:] + spring, tau[n:], 1e-10, np.abs(spring).max())
    M = plant.robot.mass_matrix(q)
    assert_close(M, scipy.linalg.block_diag(controller.links.mass_matrix(q[:n]), np.diag(controller.B)), 1e-13)


def test_energy_with_the_springs_is_kept(case):
    """Without motor torque the sum of kinetic, potential and spring energy is constant."""
    plant, controller, _ = case

    class Idle:
        def start(self):
            return None

        def __call__(self, t, q, v, z):
            return gc.Command(np.zeros(len(v)))

    q0, v0 = state(controller)
    run = gc.simulate(plant, Idle(), q0, v0, 0.2, 1e-3)
    assert run.ok, run.summary()
    n = controller.links.nv
    springs = 0.5 * ((run.q[:, n:] - run.q[:, :n]) ** 2 * plant.stiffness).sum(axis=1)
    energy = plant.robot.energy(run.q, run.v) + springs
    assert_close(energy, np.full_like(energy, energy[0]), 1e-7, springs.max())


def test_frames_of_the_links_stay():
    robot = with_rotors(models.two_link(), 0.1)
    assert robot.nv == 4
    q = np.array([0.3, 0.4, 9.0, 9.0])
    assert_close(robot.pose(q, "tip"), models.two_link().pose(q[:2], "tip"), 1e-14)


# --- references --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reference", [CASES["two_link"][3], RestToRest((0.0, 1.0), (1.0, -0.5), 2.0)])
def test_references_are_their_own_derivatives(reference):
    k, weights, h = np.arange(1, 4), np.array([45.0, -9.0, 1.0]) / 60.0, 1e-3
    for t in (0.4, 1.1, 1.7):
        rates = sum(w * (reference(t + i * h) - reference(t - i * h)) for i, w in zip(k, weights)) / h
        assert_close(reference(t)[1:], rates[:-1], 1e-9)


def test_numbers_serve_all_joints():
    assert_close(
        Harmonic((0.0, 1.0), 0.5, 0.2)(0.3), Harmonic((0.0, 1.0), (0.5, 0.5), (0.2, 0.2), (0.0, 0.0))(0.3), 1e-15
    )


def test_rest_to_rest_rests():
    reference = RestToRest((0.0, 1.0), (1.0, -0.5), 2.0)
    for t, q in ((-1.0, (0.0, 1.0)), (0.0, (0.0, 1.0)), (2.0, (1.0, -0.5)), (5.0, (1.0, -0.5))):
        assert_close(reference(t), np.vstack((q, np.zeros((4, 2)))), 1e-11)


def test_reference_of_links_and_motors_solves_the_equations(case):
    plant, controller, _ = case
    n = controller.links.nv
    for t in (0.0, 0.7):
        d = controller.reference(t)
        command = controller(t, d.q, d.v, None)
        assert_close(plant.acceleration(t, d.q, d.v, command.tau), d.a, 1e-8, 10.0)
        ahead, behind = controller.reference(t + 1e-4), controller.reference(t - 1e-4)
        assert_close((ahead.q - behind.q) / 2e-4, d.v, 1e-6)
        assert_close((ahead.v - behind.v) / 2e-4, d.a, 1e-6)
        assert (command.tau[:n] == 0.0).all()


# --- control -----------------------------------------------------------------------------------------------------


@pytest.mark.quick(1)
def test_tracks_to_integration_accuracy(case):
    """Starting on the reference, the error is that of the integrator: half the step, a sixteenth of the error."""
    plant, controller, reference = case
    q0, v0 = state(controller)
    errors = []
    for dt in (4e-3, 2e-3):
        run = gc.simulate(plant, controller, q0, v0, 1.0, dt, monitors=None)
        assert run.success
        desired = np.array([reference(t)[0] for t in run.t])
        errors.append(np.abs(run.q[:, : len(desired[0])] - desired).max())
    assert errors[1] < 1e-9
    assert errors[1] < errors[0] / 10.0
    run = gc.simulate(plant, controller, q0, v0, 0.3, 5e-4)
    assert np.abs(run.tracking_error()).max() < 1e-9
    for name in ("skew", "energy", "group"):
        assert run.monitors[name].ok


def test_errors_decay_as_the_linear_equation_says(case):
    """Starting off the reference: e' ' ' ' + 4 w e' ' ' + ... = 0 joint by joint, and V falls at the claimed rate."""
    plant, controller, reference = case
    n, rng = controller.links.nv, np.random.default_rng(1)
    q0, v0 = state(controller)
    q0, v0 = q0 + np.tile(0.02 * rng.normal(size=n), 2), v0 + np.tile(0.1 * rng.normal(size=n), 2)
    run = gc.simulate(plant, controller, q0, v0, 0.6, 1e-3)
    assert run.ok, run.summary()
    e0 = controller.errors(0.0, q0, v0) * 12.0 ** np.arange(4)[:, None]
    e = np.array([run.q[k, :n] - reference(t)[0] for k, t in enumerate(run.t)])
    w = 12.0
    A = np.diag(np.ones(3), 1)
    A[3] = -(w**4), -4 * w**3, -6 * w**2, -4 * w
    expected = np.array([(scipy.linalg.expm(A * t) @ e0)[0] for t in run.t])
    assert_close(e, expected, 1e-6)
    value, rate = run.signals["lyapunov"], run.signals["lyapunov_rate"]
    assert (np.diff(value) < 0.0).all()
    slope = (value[2:] - value[:-2]) / (run.t[2:] - run.t[:-2])
    assert_close(slope, rate[1:-1], 2e-3)


def test_rigid_control_of_the_same_robot_does_not_track():
    """Effect of the springs: computed torque for rigid joints, applied at the motors, is off by degrees."""
    robot, K, B, reference = CASES["two_link"]
    plant, controller = ElasticPlant(robot, K, B), ElasticJoint(robot, reference, K, B)

    class Rigid:
        def start(self):
            return None

        def __call__(self, t, q, v, z):
            d = reference(t)
            a = d[2] - 25.0 * (q[2:] - d[0]) - 10.0 * (v[2:] - d[1])
            return gc.Command(
                np.concatenate((np.zeros(2), robot.inverse_dynamics(q[2:].copy(), v[2:].copy(), a) + B * a))
            )

    q0, v0 = state(controller)
    run = gc.simulate(plant, Rigid(), q0, v0, 1.0, 2e-3, monitors=None)
    desired = np.array([reference(t)[0] for t in run.t])
    assert np.abs(run.q[:, :2] - desired).max() > 0.02


def test_integrates_without_simulate():
    """The plant and the controller are plain functions: here the loop is written by hand."""
    robot, K, B, reference = CASES["two_link"]
    plant, controller = ElasticPlant(robot, K, B), ElasticJoint(robot, reference, K, B)

    def field(t, y):
        return np.concatenate((y[4:], plant.acceleration(t, y[:4], y[4:], controller(t, y[:4], y[4:], None).tau)))

    y0 = np.concatenate(state(controller))
    solution = integrators.integrate(field, y0, (0.0, 0.5), 1e-3, "MK4", gc.groups.Rn(8))
    assert_close(solution.y[-1, :2], reference(0.5)[0], 1e-7)


# --- errors ------------------------------------------------------------------------------------------------------


def test_bad_arguments():
    robot, reference = models.two_link(), CASES["two_link"][3]
    with pytest.raises(ArgumentError, match="stiffness: expected a positive number or 2 of them"):
        ElasticPlant(robot, (1.0, -1.0), 1.0)
    with pytest.raises(ArgumentError, match="rotor: expected a positive number or 2 of them"):
        ElasticJoint(robot, reference, 1.0, (1.0, 2.0, 3.0))
    with pytest.raises(ArgumentError, match=r"reference: expected a function t -> \(5, 2\)"):
        ElasticJoint(robot, gc.references.hold(robot, (0.0, 0.0)), 1.0, 1.0)
    with pytest.raises(ArgumentError, match="rotor: expected real numbers"):
        ElasticPlant(robot, 1.0, "heavy")
    with pytest.raises(ArgumentError, match="amplitude: expected a number or 2, as many as q0 has"):
        Harmonic((0.0, 0.0), (1.0, 2.0, 3.0), 1.0)
    with pytest.raises(ArgumentError, match=r"q1: expected shape \(2,\)"):
        RestToRest((0.0, 0.0), (1.0, 2.0, 3.0), 1.0)
    with pytest.raises(ArgumentError, match="duration: expected a positive number of seconds, got 0"):
        RestToRest((0.0, 0.0), (1.0, 2.0), 0)
    loose = testing.random_robot(np.random.default_rng(0), ["revolute", "spherical"], [-1, 0])
    with pytest.raises(ArgumentError, match="'joint1' of 'random' has more"):
        ElasticPlant(loose, 1.0, 1.0)
