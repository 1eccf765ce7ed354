"""Generated closed loops, on a stand-in for a GPU and in the CPU's lanes: the same bits, failures and findings."""

import random
import warnings
from dataclasses import replace

import numpy as np
import pytest
from fake_cuda import FakeCuda
from loops_on_fake_gpu import ON_GPU, install, launches

import geomctrl as gc
from geomctrl import actuators, controllers, friction, models, sensors
from geomctrl.control.compiled import gpu_machine
from geomctrl.control.references import Sinusoids

SEEDS, ROBOT = 24, models.two_link()
QUANTITIES = "q", "v", "z", "x", "tau", "applied"


class Fragile:
    """A law that raises beyond an angle."""

    def __init__(self, limit):
        self.limit = limit

    def __call__(self, t, q, v, z):
        if q[0] > self.limit:
            raise ValueError("too far")
        return gc.Command(ROBOT.gravity_force(q) + np.array([3.0, 0.0]) - 0.1 * v)


LAWS = (
    lambda k: controllers.PDGravity(ROBOT, [0.4, 0.2], kp=20.0 + k),
    lambda k: controllers.SlotineLi(ROBOT, motion(k)),
    lambda k: controllers.SuperTwisting(ROBOT, motion(k)),
    lambda k: controllers.MomentumObserver(controllers.JointImpedance(ROBOT, motion(k))),
    lambda k: Fragile(0.1 + 0.1 * (7 * k % 5)),
)
FRICTION = (
    lambda k: friction.Friction(0.1 + 0.01 * k, 0.05),
    lambda k: friction.Stribeck(0.1 + 0.01 * k, 0.2 + 0.01 * k, 0.1),
    lambda k: friction.AsymmetricCoulomb(0.1 + 0.01 * k, 0.05),
    lambda k: friction.Dahl(50.0 + k, 0.1),
    lambda k: friction.LoadDependent(0.01 + 1e-3 * k),
)
ACTUATORS = (
    lambda k: [],
    lambda k: [actuators.Lag(0.01 + 1e-4 * k)],
    lambda k: [actuators.Saturation(10.0 + k), actuators.Lag(0.02)],
    lambda k: [actuators.CurrentDrive(1.0 + 1e-3 * k), actuators.DCMotor(1.0, 1.0, 0.01)],
    lambda k: [actuators.RateLimit(50.0 + k), actuators.TransportDelay(0.004)],
)
SENSORS = (
    lambda k: [],
    lambda k: [sensors.Encoder(14, noise=1e-3, cutoff=30.0, seed=100 * k)],
    lambda k: [sensors.Encoder(16, noise=1e-3, delay=0.004, seed=100 * k), sensors.JointTorque(noise=1e-2, seed=k)],
    lambda k: [sensors.IMU("tip", noise=1e-3, seed=100 * k)],
)
FORCES = (
    lambda k: None,
    lambda k: gc.Contact(["tip"], 1e3 + k, 0.3, 0.3),
    lambda k: lambda t, q, v, force=1.1 + k: np.stack([np.zeros(6), force * np.sin(3.0 * t) * np.eye(6)[3]]),
)


def motion(k):
    return Sinusoids(ROBOT, ROBOT.neutral(), 0.3, 0.2 + 0.02 * k, 0.5)


def generated(seed):
    """Return the arguments of `simulate_many` without options, and the options."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    n = rng.choice([3, 4, 7, 9, 129])
    make_law, make_friction, make_actuators, make_sensors, make_force = (
        rng.choice(kinds) for kinds in (LAWS, FRICTION, ACTUATORS, SENSORS, FORCES)
    )
    plants = [
        gc.Plant(ROBOT.with_payload(0.1 + 0.01 * k), friction=make_friction(k), f_ext=make_force(k),
                 actuators=make_actuators(k), sensors=make_sensors(k))
        for k in range(1, n + 1)
    ]  # fmt: skip
    laws = [make_law(k) for k in range(1, n + 1)]
    dt, sampled = rng.choice([1e-3, 2e-3]), make_actuators in ACTUATORS[4:] or make_sensors in SENSORS[1:]
    control_dt = 4e-3 if sampled or rng.random() < 0.3 else None
    t_end = rng.choice([260, 300]) * dt * rng.choice([1.0, 0.9995])
    method, every = rng.choice(list(gc.integrators.methods())), rng.choice([1, 3, 50, 1000])
    monitors = rng.choice(["default", None])
    q, v = 0.1 * numbers.normal(size=(2, n, 2))
    return (plants, laws, q, v, t_end, dt, control_dt, monitors), replace(ON_GPU, method=method, every=every)


@pytest.mark.quick(1)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_generated_loop(monkeypatch, seed):
    cuda = install(monkeypatch, FakeCuda())
    monkeypatch.setattr(gpu_machine, "STEPS", 60 if seed % 2 else 4096)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # delays between samples
        there, here = (
            gc.simulate_many(*arguments, options=replace(options, device=device))
            for device in ("cuda", "cpu")
            for arguments, options in [generated(seed)]
        )
    assert launches(cuda)
    for a, b in zip(there, here, strict=True):
        assert (a.success, a.reason) == (b.success, b.reason)
        np.testing.assert_array_equal(a.t, b.t)
        if not a.success and "unstable" in a.reason:
            continue  # sines of angles beyond the range of the common reduction differ by their rounding
        for name in QUANTITIES:
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name), name)
        for kept in ("signals", "measured"):
            for name, x in getattr(a, kept).items():
                np.testing.assert_array_equal(x, getattr(b, kept)[name], name)
        for name, monitor in a.monitors.items():
            assert (monitor.verdict, monitor.worst) == (b.monitors[name].verdict, b.monitors[name].worst)
