"""Robots as python-control systems: names, values, LQR's poles, and the same responses as gc.simulate."""

from dataclasses import replace

import control
import numpy as np
import pytest
from oracles import assert_close
from studies import lqr_panda

import geomctrl as gc
from geomctrl import derivatives, interop, models, testing
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.configuration import ConfigurationGroup

HOME = lqr_panda.HOME


@pytest.fixture(scope="module")
def lqr(panda):
    return lqr_panda.design(panda, HOME)


def floating():
    return testing.random_robot(np.random.default_rng(3), ["free", "revolute", "spherical"], [-1, 0, 1])


def test_signals_are_named_after_joints(panda):
    system = interop.state_space(panda, HOME, np.zeros(7), np.zeros(7))
    assert isinstance(system, control.StateSpace)
    assert system.name == "panda"
    assert system.state_labels[:2] == ["q_panda_joint1", "q_panda_joint2"]
    assert system.state_labels[7] == "v_panda_joint1"
    assert system.output_labels == system.state_labels
    assert system.input_labels[6] == "tau_panda_joint7"
    system = interop.nonlinear_system(floating(), name="floating")
    assert isinstance(system, control.NonlinearIOSystem)
    assert system.name == "floating"
    assert system.input_labels[:2] == ["tau_joint0[0]", "tau_joint0[1]"]
    body = gc.Body(
        "b", None, gc.Joint.revolute((0, 0, 1), name="arm.yaw"), None, gc.inertia.from_com(1.0, (0, 0, 0), np.eye(3))
    )
    assert interop.nonlinear_system(gc.Robot.build([body])).input_labels == [
        "tau_arm_yaw"
    ]  # python-control refuses dots


def test_state_space_is_the_linearisation(panda):
    rng = np.random.default_rng(0)
    v, tau = rng.normal(size=(2, 7))
    system, (A, B, _) = interop.state_space(panda, HOME, v, tau), derivatives.linearize(panda, HOME, v, tau)
    np.testing.assert_array_equal(system.A, A)
    np.testing.assert_array_equal(system.B, B)
    np.testing.assert_array_equal(system.C, np.eye(14))
    with pytest.raises(ArgumentError, match=r"expected one state, got leading axes \(2,\)"):
        interop.state_space(panda, np.tile(HOME, (2, 1)), np.zeros((2, 7)), np.zeros((2, 7)))


@pytest.mark.parametrize("make", [models.panda, floating])
def test_python_controls_own_linearisation_agrees(make):
    robot, rng = make(), np.random.default_rng(1)
    q0 = robot.random_configuration(rng)
    v, tau = rng.normal(size=(2, robot.nv))
    n = robot.nv
    theirs = control.linearize(interop.nonlinear_system(robot, q0), np.concatenate((0 * v, v)), tau, eps=1e-6)
    A, B, _ = derivatives.linearize(robot, q0, v, tau)
    # in a chart that moves with the motion we have -ad_v, where the chart fixed at q0 has -1/2 ad_v
    fixed = A.copy()
    if robot.nq != n:
        fixed[:n, :n] = -0.5 * ConfigurationGroup(robot).ad(v)
    assert_close(theirs.A, fixed, 1e-4)
    assert_close(theirs.B, B, 1e-5)


def test_states_are_logarithms_of_the_configuration():
    robot, rng = floating(), np.random.default_rng(2)
    q0, q = robot.random_configuration(rng), np.stack([robot.random_configuration(rng) for _ in range(4)])
    v = rng.normal(size=(4, robot.nv))
    x = interop.to_state(robot, q, v, q0)
    assert_close(robot.integrate(np.tile(q0, (4, 1)), x[:, : robot.nv]), q, 1e-13)
    assert_close(x[:, robot.nv :], v, 1e-15)


@pytest.mark.parametrize("make", [models.two_link, floating])
def test_input_output_response_equals_simulate(make):
    robot, rng = make(), np.random.default_rng(4)
    q0, v0, tau = robot.random_configuration(rng), *rng.normal(size=(2, robot.nv))
    friction = gc.Friction(viscous=0.3)

    class Constant:
        def start(self):
            return None

        def __call__(self, t, q, v, z):
            return gc.Command(tau)

    plant = gc.Plant(robot, friction)
    run = gc.simulate(plant, Constant(), q0, v0, 0.2, 1e-3, monitors=None)
    response = control.input_output_response(
        interop.nonlinear_system(plant, q0),
        run.t,
        np.tile(tau[:, None], len(run.t)),
        interop.to_state(robot, q0, v0, q0),
        solve_ivp_kwargs={"rtol": 1e-10, "atol": 1e-12},
    )
    assert_close(response.states.T, interop.to_state(robot, run.q, run.v, q0), 1e-7)


def test_a_plant_with_sensors_or_sampled_actuators_is_not_continuous():
    robot = gc.models.cart_pole()
    encoders = [gc.sensors.Encoder(bits=12, name="rail"), gc.sensors.IMU("pole")]
    plant = gc.Plant(robot, sensors=encoders, actuators=gc.actuators.TransportDelay(0.01))
    message = (
        "plant: expected one without sensors and sampled actuators, .* with rail, imu, TransportDelay: remove them by"
    )
    with pytest.raises(ArgumentError, match=message):
        interop.nonlinear_system(plant)
    with pytest.raises(ArgumentError, match="with TransportDelay: remove"):
        interop.nonlinear_system(replace(plant, sensors=()))
    assert interop.nonlinear_system(replace(plant, sensors=(), actuators=())).ninputs == 2


def test_lqr_poles(panda, lqr):
    """Poles are the eigenvalues of A - B K, all well damped, and those of double integrators where joints decouple."""
    system, K, poles = lqr
    closed = np.linalg.eigvals(system.A - system.B @ K)
    assert_close(np.sort_complex(closed), np.sort_complex(poles), 1e-7)
    assert poles.real.max() < -5.0
    # without gravity's gradient x'' = w: s^4 - (velocity/effort) s^2 + position/effort = 0
    still = panda.with_gravity((0, 0, 0))
    _, _, poles = lqr_panda.design(still, HOME, position=100.0, velocity=1.0, effort=1e-2)
    s = np.roots([1.0, 0.0, -100.0, 0.0, 1e4])
    expected = s[s.real < 0.0]
    for pole in poles:
        assert np.abs(pole - expected).min() < 1e-5 * np.abs(pole)


def test_step_response_settles_at_the_static_gain(lqr):
    """A torque step on the shoulder's input of the closed loop."""
    system, K, _ = lqr
    closed = control.ss(system.A - system.B @ K, system.B, np.eye(14), 0)
    _, y = control.step_response(closed, T=np.linspace(0.0, 4.0, 400), input=1)
    assert_close(y[:, 0, -1], -np.linalg.solve(closed.A, system.B[:, 1]), 1e-6)


def test_lqr_responses(panda, lqr):
    """simulate and python-control's solver agree; the linear system differs by the square of the disturbance."""
    system, K, _ = lqr
    off = []
    for push in (0.004, 0.002):
        x0 = np.concatenate((push * np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0]), np.zeros(7)))
        linear, solved, simulated, run = lqr_panda.responses(panda, HOME, K, system, x0, 1.0, 2e-3)
        assert run.ok
        assert_close(simulated, solved, 1e-6)
        assert np.abs(simulated[-1]).max() < 0.01 * push
        off.append(np.abs(simulated - linear).max() / push)
    assert off[0] < 0.1
    assert 1.8 < off[0] / off[1] < 2.2
