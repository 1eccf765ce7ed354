"""Sampled actuators: transport delay and discrete rate limits."""

import numpy as np
import pytest
from simulation_options import both_ways, grouped

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control import sensing
from geomctrl.control.actuators import Lag, RateLimit, Sampled, Saturation, TransportDelay
from geomctrl.control.sensors import Encoder, JointTorque
from geomctrl.errors import ArgumentError
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint

MASS, DT = 2.0, 0.01
SLIDER = gc.Robot.build(
    [Body("m", None, Joint.prismatic([1.0, 0.0, 0.0]), np.eye(4), inertia.from_com(MASS, np.zeros(3), np.eye(3)))],
    gravity=(0.0, 0.0, 0.0),
)


class PD:
    def __init__(self, kp=30.0, kd=8.0):
        self.kp, self.kd = kp, kd

    def __call__(self, t, q, v, z):
        return gc.Command(-self.kp * q - self.kd * v)


def run_of(actuators, sensors=(), compiled=False, law=None, t_end=1.0, **options):
    plant = gc.Plant(SLIDER, actuators=actuators, sensors=sensors)
    options = {"control_dt": 2 * DT} | options
    return gc.simulate(plant, law or PD(), [0.2], [-0.3], t_end, DT, **grouped(compiled=compiled, **options))


@pytest.fixture
def interpolation_is_known():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sensing, "_warn_once", lambda message: None)
        yield


@pytest.mark.usefixtures("interpolation_is_known")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("steps", [0.0, 1.0, 5.0, 2.5])
def test_torques_are_at_work_later_and_move_the_robot_then(steps, compiled):
    run = run_of([TransportDelay(steps * DT)], compiled=compiled)
    late, s = int(steps), steps % 1.0
    command = np.concatenate((np.zeros((late + 1, 1)), run.tau))
    n = len(run.tau)
    expected = (1.0 - s) * command[1 : 1 + n] + s * command[:n]
    np.testing.assert_allclose(run.applied, expected, rtol=0.0, atol=1e-14)
    a = run.applied[:-1] / MASS
    np.testing.assert_allclose(np.diff(run.v, axis=0), DT * a, rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(np.diff(run.q, axis=0), DT * run.v[:-1] + 0.5 * DT**2 * a, rtol=0.0, atol=1e-14)
    assert run.monitors["energy"].ok


@pytest.mark.parametrize("compiled", [False, True])
def test_a_rate_limit_in_steps(compiled):
    run = run_of([RateLimit(20.0)], compiled=compiled)
    u = np.zeros(1)
    for tau, applied in zip(run.tau, run.applied):
        u = u + np.clip(tau - u, -20.0 * DT, 20.0 * DT)
        np.testing.assert_allclose(applied, u, rtol=0.0, atol=1e-14)
    assert np.abs(run.applied - run.tau).max() > 1.0


@pytest.mark.parametrize("compiled", [False, True])
def test_links_act_one_after_the_other(compiled):
    """A rate limit, then a delay, then a saturation in continuous time."""
    run = run_of([RateLimit(20.0), TransportDelay(3 * DT), Saturation(0.5)], compiled=compiled)
    slow = run_of([RateLimit(20.0)], compiled=compiled)
    np.testing.assert_array_equal(run.applied[:3], 0.0)
    assert np.abs(run.applied).max() == 0.5
    limit, u = 20.0 * DT, np.zeros(1)
    created = []
    for tau in run.tau:
        u = u + np.clip(tau - u, -limit, limit)
        created.append(u)
    np.testing.assert_allclose(run.applied[3:], np.clip(created[:-3], -0.5, 0.5), rtol=0.0, atol=1e-14)
    assert not np.allclose(slow.q, run.q)


def test_the_delay_at_which_a_law_becomes_unstable():
    """v' = -k v(t - h) / m sampled at dt is stable up to the k at which an eigenvalue leaves the unit circle."""
    steps = 4

    def radius(k):
        A = np.eye(steps + 1, k=-1)
        A[0, 0] = 1.0
        A[0, steps] -= k * DT / MASS
        return np.abs(np.linalg.eigvals(A)).max()

    low, high = 1.0, 1000.0
    while high > 1.0001 * low:
        k = np.sqrt(low * high)
        low, high = (k, high) if radius(k) <= 1.0 + 1e-12 else (low, k)
    # about pi m / (2 h), as for the continuous loop with half a step added for the hold
    assert low == pytest.approx(0.5 * np.pi * MASS / ((steps + 0.5) * DT), rel=0.02)
    for factor in (0.95, 1.05):
        law = PD(0.0, factor * low)
        run = run_of([TransportDelay(steps * DT)], law=law, control_dt=DT, t_end=10.0, compiled=True, monitors=None)
        early, late = np.abs(run.v[:200]).max(), np.abs(run.v[-200:]).max()
        assert (late < early) == (factor < 1.0)


def test_compiled_loops_with_sensors_and_sampled_actuators_and_a_lag():
    robot = models.two_link()
    motion = gc.references.Sinusoids(robot, robot.neutral(), 0.2, 0.7, 0.3)
    dt = 1e-3
    plant = gc.Plant(
        robot,
        actuators=[RateLimit(5e3), TransportDelay(3 * dt), Lag(5e-3)],
        sensors=[Encoder(14, noise=1e-4, cutoff=80.0, delay=2 * dt), JointTorque(noise=0.1, dt=3 * dt)],
    )
    q0, v0, _ = motion(0.0)
    law = controllers.ComputedTorque(robot, motion, kp=25.0, kd=10.0)
    options = {"control_dt": 2 * dt}
    runs = both_ways(plant, law, q0, v0, 0.05, dt, **options)
    many = gc.simulate_many([plant] * 3, law, q0, v0, 0.4, dt, **grouped(**options, compiled=True))
    for name in ("q", "v", "tau", "applied", "x"):
        expected = getattr(runs[0], name)
        np.testing.assert_allclose(getattr(runs[1], name), expected, rtol=1e-9, atol=1e-9, err_msg=name)
        np.testing.assert_allclose(getattr(many[1], name)[: len(expected)], expected, rtol=1e-9, atol=1e-8)
    for name, x in runs[0].measured.items():
        np.testing.assert_allclose(runs[1].measured[name], x, rtol=1e-9, atol=1e-9, err_msg=name)


def test_a_torque_sensor_feels_what_is_at_work():
    run = run_of([TransportDelay(4 * DT)], [JointTorque(side="motor", dt=DT)], control_dt=DT)
    np.testing.assert_array_equal(run.measured["torque"][1:], run.applied[:-1])


def test_a_sampled_actuator_of_ones_own():
    class Steps(Sampled):
        """Torque in whole steps, of which every other change is passed on."""

        def memory(self, inputs):
            return np.zeros(2 * inputs)

        def output(self, u, memory, period):
            n = len(u)
            asked, odd = np.floor(u / 0.25 + 0.5) * 0.25, memory[n:]
            created = np.where(odd > 0.5, asked, memory[:n])
            return created, np.concatenate((created, 1.0 - odd))

    runs = [run_of([Steps()], compiled=compiled) for compiled in (False, True)]
    np.testing.assert_allclose(runs[1].applied, runs[0].applied, rtol=0.0, atol=1e-12)
    steps = runs[0].applied / 0.25
    np.testing.assert_array_equal(steps, np.round(steps))
    assert (np.diff(runs[0].applied[:, 0])[1::2] == 0.0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TransportDelay(-1e-3), "delay: expected seconds >= 0, got -0.001"),
        (lambda: TransportDelay(np.nan), "delay: expected seconds >= 0, got nan"),
        (lambda: RateLimit(0.0), "rate: expected a positive slope"),
        (lambda: gc.Plant(SLIDER, actuators=[RateLimit([1.0, 2.0])]), "rate: expected a number or"),
        (
            lambda: gc.Plant(SLIDER, actuators=[Lag(0.1), TransportDelay(0.1)]),
            r"actuators\[1\]: TransportDelay: expected sampled actuators first",
        ),
        (
            lambda: run_of([TransportDelay(0.1)], control_dt=None),
            "control_dt: expected a multiple of dt, as the plant has a TransportDelay",
        ),
    ],
    ids=["negative", "nan", "zero", "sizes", "order", "continuous"],
)
def test_actuators_that_are_none(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_a_delay_that_is_no_multiple_is_said_once():
    sensing._warned.clear()
    with pytest.warns(
        RuntimeWarning, match=r"the delay of 'TransportDelay', 0.004 s, is no multiple of its period, 0.01"
    ):
        run_of([TransportDelay(0.004)], t_end=0.1)
    run_of([TransportDelay(0.004)], t_end=0.1)
