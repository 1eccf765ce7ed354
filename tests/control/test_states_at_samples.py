"""Controllers with discrete states (z_next), alone and combined with continuous states."""

import subprocess

import numpy as np
import pytest
from simulation_options import both_ways, grouped

import geomctrl as gc
from geomctrl import models, so3, testing
from geomctrl.errors import ArgumentError, SimulationError
from geomctrl.lie.groups import SO3, Product, Rn
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint

MASS, PERIOD = 2.0, 0.05  # kg, s
SLIDER = gc.Robot.build(
    [Body("m", None, Joint.prismatic([1.0, 0.0, 0.0]), np.eye(4), inertia.from_com(MASS, np.zeros(3), np.eye(3)))],
    gravity=(0.0, 0.0, 0.0),
)
GAINS = np.array([-30.0, -9.0, -20.0])  # gains of q, of the filtered velocity, of the sum of q


class Digital:
    """tau = K (q, filter, sum): z is a first-order filter of v and the sum of q."""

    def __init__(self, robot, gains=GAINS, pole=0.6):
        self.robot, self.gains, self.pole = robot, gains, pole

    def start(self):
        return np.zeros(2)

    def __call__(self, t, q, v, z):
        k = self.gains
        tau = np.array([k[0] * q[0] + k[1] * z[0] + k[2] * z[1]])
        z_next = np.array([self.pole * z[0] + (1.0 - self.pole) * v[0], z[1] + PERIOD * q[0]])
        return gc.Command(tau, signals={"filtered": z[0]}, z_next=z_next)


class Mixed:
    """A continuous integral of q, the rotation of an oscillator, and a counter of samples."""

    group = Product(Rn(1), SO3(), Rn(1))

    def start(self):
        return self.group.identity()

    def __call__(self, t, q, v, z):
        tau = np.array([-20.0 * q[0] - 8.0 * v[0] - 5.0 * z[0] + 0.1 * z[2]])
        z_next = np.concatenate((z[:10], [z[10] + 1.0]))
        return gc.Command(tau, np.array([q[0], 0.0, 0.0, 2.0, 0.0]), {}, z_next)


def sampled(controller, compiled=False, t_end=2.0, **options):
    return gc.simulate(
        SLIDER, controller, [0.3], [-0.2], t_end, PERIOD / 5, **grouped(control_dt=PERIOD, compiled=compiled, **options)
    )


def transition():
    """The exact map of (q, v, filter, sum) one period ahead, because the torque is constant in between."""
    T, m, digital = PERIOD, MASS, Digital(SLIDER)
    K = np.array([digital.gains[0], 0.0, digital.gains[1], digital.gains[2]])
    A = np.eye(4)
    A[0, 1] = T
    A[0] += 0.5 * T**2 / m * K
    A[1] += T / m * K
    A[2] = [0.0, 1.0 - digital.pole, digital.pole, 0.0]
    A[3, 0] = T
    return A


@pytest.mark.parametrize("compiled", [False, True])
def test_a_digital_law_is_its_difference_equation(compiled):
    run = sampled(Digital(SLIDER), compiled)
    x = np.column_stack((run.q, run.v, run.z))[::5]
    np.testing.assert_allclose(x[1:], x[:-1] @ transition().T, rtol=0.0, atol=1e-14)
    np.testing.assert_array_equal(run.signals["filtered"][::5], run.z[::5, 0])


@pytest.mark.parametrize("compiled", [False, True])
def test_between_samples_the_state_is_the_next(compiled):
    run = sampled(Digital(SLIDER), compiled)
    assert np.abs(np.diff(run.z[::5], axis=0)).min(axis=1).max() > 0.0
    for j in range(1, 5):
        np.testing.assert_array_equal(run.z[j::5], run.z[5::5])


@pytest.mark.parametrize("method", ["MK4", "CG3", "MK54"])
def test_a_state_of_both_kinds_and_on_a_group(method):
    law = Mixed()
    options = {"rtol": 1e-10, "atol": 1e-12} if method == "MK54" else {}
    run = sampled(law, method=method, **options)
    samples = np.floor(run.t / PERIOD - 1e-9).astype(int) + 1  # the value before t
    np.testing.assert_array_equal(run.z[:, 10], samples)
    angle = so3.log(run.z[:, 1:10].reshape(-1, 3, 3))
    np.testing.assert_allclose(angle[:, 2], 2.0 * run.t - 2.0 * np.pi * (2.0 * run.t > np.pi), rtol=0.0, atol=1e-9)
    rate = np.repeat(run.q[:-1:5, 0], 5)  # held like the torque
    np.testing.assert_allclose(np.diff(run.z[:, 0]), rate * PERIOD / 5, rtol=0.0, atol=1e-14)
    traced = sampled(law, True, method=method, **options)
    for name in ("q", "v", "z", "tau"):
        np.testing.assert_allclose(getattr(traced, name), getattr(run, name), rtol=0.0, atol=1e-12, err_msg=name)
    assert all(m.ok for name, m in run.monitors.items() if name in ("group", "energy")), run.summary()


def test_lanes_are_the_run_alone():
    """Eight loops and a ninth, compiled, are equal bit for bit, and equal Python's up to rounding."""
    laws = [Digital(SLIDER, GAINS * (1.0 + 0.05 * k)) for k in range(9)]
    options = {"control_dt": PERIOD, "every": 3}
    runs = gc.simulate_many(SLIDER, laws, [0.3], [-0.2], 3.0, PERIOD / 5, **grouped(**options, compiled=True))
    for law, run in zip(laws, runs):
        alone = gc.simulate(SLIDER, law, [0.3], [-0.2], 3.0, PERIOD / 5, **grouped(**options, compiled=True))
        for name in ("q", "v", "z", "tau"):
            np.testing.assert_array_equal(getattr(run, name), getattr(alone, name))
    for law, run in ((laws[k], runs[k]) for k in (0, 7, 8)):
        plain = gc.simulate(SLIDER, law, [0.3], [-0.2], 3.0, PERIOD / 5, **grouped(**options, compiled=False))
        for name in ("q", "v", "z", "tau"):
            np.testing.assert_allclose(getattr(run, name), getattr(plain, name), rtol=0.0, atol=1e-13)


class Breaks(Digital):
    """At some samples compiled code has no result, so Python computes them."""

    def __call__(self, t, q, v, z):
        command = super().__call__(t, q, v, z)
        return command._replace(tau=command.tau + 0.0 * np.linalg.inv(np.array([[t - 0.5 * PERIOD]]))[0])


def test_where_python_takes_a_sample_the_state_goes_on(monkeypatch):
    """Python takes some of the steps, as for a compiled loop that has stopped."""
    whole = sampled(Breaks(SLIDER), True)
    from geomctrl.control import loop_runner

    monkeypatch.setattr(loop_runner, "CHUNK_STEPS", 3)
    advanced = loop_runner.LoopRunner.advanced
    monkeypatch.setattr(loop_runner, "turns", 0, raising=False)  # a state that the law does not reach

    def now_and_then(self, machine, report):
        loop_runner.turns += 1
        if loop_runner.turns % 2:
            return False
        self.steps_until_change = lambda: min(self.k + 3, self.n_steps)
        return advanced(self, machine, report)

    monkeypatch.setattr(loop_runner.LoopRunner, "advanced", now_and_then)
    pieces = sampled(Breaks(SLIDER), True)
    assert loop_runner.turns > 20
    for name in ("q", "v", "z", "tau"):
        np.testing.assert_allclose(getattr(pieces, name), getattr(whole, name), rtol=0.0, atol=1e-14)


def test_a_compiled_law_and_its_c_have_the_next_state(tmp_path):
    law = Digital(SLIDER)
    created = gc.compile(law)
    x = 0.3, np.array([0.2]), np.array([-0.4]), np.array([0.5, 0.7])
    expected, found = law(*x), created(*x)
    np.testing.assert_allclose(found.z_next, expected.z_next, rtol=1e-15)
    assert found.z_rate is None
    run, same = sampled(law), sampled(created)
    np.testing.assert_allclose(same.z, run.z, rtol=0.0, atol=1e-14)
    created.to_c(tmp_path)
    assert "z_next" in (tmp_path / "law.h").read_text()
    command = ["cc", "-std=c99", "-O1", "law.c", "law_test.c", "-lm", "-o", "law_test"]
    subprocess.run(command, cwd=tmp_path, check=True)
    subprocess.run(["./law_test"], cwd=tmp_path, check=True, capture_output=True)


def test_the_lyapunov_monitor_counts_what_a_sample_does_to_v():
    """V = z^2 of a law that doubles z at each sample, which a rate along the motion does not include."""

    class Doubling:
        def __init__(self, factor):
            self.factor = factor

        def start(self):
            return np.array([1e-3])

        def __call__(self, t, q, v, z):
            return gc.Command(np.zeros(1), z_next=self.factor * z)

        def lyapunov(self, t, q, v, z, plant):
            return gc.Lyapunov(z[0] * z[0], 0.0)

    monitors = [gc.monitors.LyapunovDecrease()]
    assert sampled(Doubling(0.9), t_end=0.5, monitors=monitors).ok
    grown = sampled(Doubling(2.0), t_end=0.5, monitors=monitors)
    assert grown.monitors["lyapunov"].worst == pytest.approx(3.0)


@pytest.mark.parametrize("compiled", [False, True])
def test_without_samples_there_is_no_next_state(compiled):
    with pytest.raises(SimulationError, match=r"updated at samples \(z_next\): expected control_dt, got None"):
        gc.simulate(SLIDER, Digital(SLIDER), [0.3], [0.0], 0.1, 0.01, options=gc.SimulationOptions(compiled=compiled))


@pytest.mark.parametrize(
    ("z_next", "message"),
    [
        (np.zeros(3), r"expected z_next, finite numbers of shape \(2,\), at t = 0 s, got shape \(3,\)"),
        (np.array([0.0, np.nan]), r"expected z_next, finite numbers of shape \(2,\), at t = 0 s, got array"),
        ([0.0, 0.0], r"expected z_next, finite numbers"),
    ],
    ids=["shape", "nan", "list"],
)
def test_a_next_state_that_is_none(z_next, message):
    class Wrong(Digital):
        def __call__(self, t, q, v, z):
            return super().__call__(t, q, v, z)._replace(z_next=z_next)

    with pytest.raises(SimulationError, match=message):
        sampled(Wrong(SLIDER))


def test_a_next_state_of_a_law_without_state():
    class Stateless(Digital):
        def start(self):
            return None

        def __call__(self, t, q, v, z):
            return gc.Command(np.zeros(1), z_next=np.zeros(1))

    with pytest.raises(SimulationError, match="expected no z_next, as there is no state"):
        sampled(Stateless(SLIDER))


def test_proofs_of_continuous_laws_refuse_states_at_samples():
    class Law(Digital):
        q_d = np.zeros(1)

        def lyapunov(self, t, q, v, z, plant):
            return gc.Lyapunov(q @ q + v @ v + z @ z, 0.0)

    with pytest.raises(ArgumentError, match=r"updated at samples \(z_next\)"):
        testing.assert_lyapunov(Law(SLIDER), gc.Plant(SLIDER), search=20)


def test_sweeps_take_states_at_samples():
    table = gc.sweep(
        digital_of, {"gain": [1.0, 1.5, 2.0]}, {"last": last_state}, t_end=1.0, dt=PERIOD / 5, control_dt=PERIOD
    )
    for gain in (1.0, 1.5, 2.0):
        run = gc.simulate(*digital_of({"gain": gain}), 1.0, PERIOD / 5, control_dt=PERIOD)
        np.testing.assert_allclose(table["last"].sel(gain=gain), run.z[-1, 1], rtol=1e-12)


def digital_of(point):
    return SLIDER, Digital(SLIDER, point["gain"] * GAINS), [0.3], [-0.2]


def last_state(run):
    return run.z[-1, 1]


def test_a_robot_with_gravity_and_an_observer_at_samples():
    """A law for the Panda with velocity from a filter of positions in z gives the same compiled as in Python."""
    robot = models.panda()
    law = Filtered(robot, np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8]))
    runs = both_ways(robot, law, law.q_d + 0.05, np.zeros(7), 0.2, 1e-3, control_dt=2e-3)
    assert np.abs(runs[0].v[-1]).max() < 0.2
    np.testing.assert_allclose(runs[1].q, runs[0].q, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(runs[1].z, runs[0].z, rtol=0.0, atol=1e-8)


class Filtered:
    def __init__(self, robot, q_d):
        self.robot, self.q_d = robot, q_d

    def start(self):
        return np.concatenate((self.q_d + 0.05, np.zeros(7)))

    def __call__(self, t, q, v, z):
        speed = 0.5 * z[7:] + 0.5 * (q - z[:7]) / 2e-3
        M = self.robot.mass_matrix(q)
        tau = self.robot.gravity_force(q) - M @ (100.0 * (q - self.q_d) + 20.0 * speed)
        return gc.Command(tau, z_next=np.concatenate((q, speed)))
