"""Closed loops on a GPU in single precision, on a stand-in: what is computed with floats, and what stays double."""

from dataclasses import replace

import numpy as np
import pytest
from fake_cuda import FakeCuda
from loops_on_fake_gpu import ON_GPU, arms, both, install, launches
from simulation_options import COMPILED

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control.references import Sinusoids
from geomctrl.errors import ArgumentError

FLOAT = replace(ON_GPU, precision="float")


@pytest.fixture
def cuda(monkeypatch):
    return install(monkeypatch, FakeCuda())


def worst_difference(there, here, name):
    x, y = getattr(there, name), getattr(here, name)
    return np.abs(x - y).max() / max(np.abs(y).max(), 1.0)


@pytest.mark.parametrize("method", ["MK4", "MK54"])
def test_floats_differ_by_their_rounding_and_monitors_are_doubles(cuda, method):
    there, here = both(arms(), 0.5, 1e-3, replace(FLOAT, method=method))
    assert launches(cuda)
    assert "fmul float" in cuda.texts[0] or "fmuladd.f32" in cuda.texts[0]
    changed = 0.0
    for a, b in zip(there, here):
        assert (a.success, a.compared.device, a.compared.precision) == (True, "cuda:0", "float")
        changed = max(changed, worst_difference(a, b, "v"))
        assert max(worst_difference(a, b, name) for name in ("q", "v", "tau")) < 2e-6
        for name, monitor in a.monitors.items():
            assert monitor.verdict == b.monitors[name].verdict
            assert abs(monitor.worst - b.monitors[name].worst) < 2e-7 or np.isinf(monitor.worst)
        assert a.monitors["skew"].worst < 1e-14
    assert changed > 1e-9


def test_configurations_on_a_group_stay_on_it_in_floats(cuda):
    robot, rng = models.satellite(), np.random.default_rng(3)
    q = np.array([robot.random_configuration(rng) for _ in range(4)])
    law = controllers.AttitudeTracking(robot, Sinusoids(robot, robot.neutral(), 0.2, 0.3, 0.1))
    there, here = both((robot, law, q, 0.1 * rng.normal(size=(4, robot.nv))), 0.25, 1e-3, FLOAT)
    for a, b in zip(there, here):
        assert a.compared.precision == "float"
        assert 0.0 < worst_difference(a, b, "q") < 1e-6
        assert a.monitors["group"].worst < 1e-14


def test_a_summary_and_a_file_say_where_a_run_was_computed(cuda, tmp_path):
    run = gc.simulate_many(*arms(), 0.3, 1e-3, options=FLOAT)[1]
    assert "compiled; on cuda:0 in float precision; compared with Python" in run.summary()
    loaded = gc.Run.load(run.save(tmp_path / "run.npz"))
    assert loaded.compared == run.compared
    assert "cuda" not in gc.simulate_many(*arms(), 0.3, 1e-3)[1].summary()


class Summing:
    """A sampled law that adds numbers in its attributes and in its state z."""

    def __init__(self, gain):
        self.gain, self.sum, self.integral = gain, 0.0, np.zeros(2)

    def start(self):
        return np.zeros(1)

    def __call__(self, t, q, v, z):
        self.sum = self.sum + 0.1
        self.integral = self.integral + 1e-3 * (q - 0.1 * np.sin(1e6 * t))
        return gc.Command(-self.gain * q - v - self.integral, z_next=z + 0.1)


class Effort(gc.measures.Measure):
    name, description, units = "effort", "sum of the squared torques, and of the time", "1"

    def start(self, plant, controller):
        self.sum = np.zeros(2)

    def add(self, sample):
        self.sum = self.sum + np.array([1e-3 * (sample.tau @ sample.tau), 0.1])

    def value(self):
        return self.sum


def test_what_persists_and_the_time_are_doubles(cuda):
    _, _, q, v = arms(4)
    laws = [[Summing(1.0 + k) for k in range(4)] for _ in range(2)]
    options = [FLOAT, COMPILED]
    runs = [
        gc.simulate_many(models.two_link(), x, q, v, 2.0, 1e-3, 1e-3, None, options=o) for x, o in zip(laws, options)
    ]
    for a, b in zip(*runs):
        assert a.compared.precision == "float"
        np.testing.assert_array_equal(a.z, b.z)  # floats would differ by 2e-2
    for a, b in zip(*laws):
        assert a.sum == b.sum
        np.testing.assert_allclose(a.integral, b.integral, rtol=0.0, atol=1e-6)

    def make(point):
        return models.two_link(), controllers.PDGravity(models.two_link(), [0.4, 0.2], kp=point["kp"]), q[0], v[0]

    tables = [gc.sweep(make, {"kp": [20.0, 30.0, 40.0]}, [Effort()], 2.0, 1e-3, options=o) for o in options]
    np.testing.assert_array_equal(tables[0].effort[:, 1], tables[1].effort[:, 1])
    np.testing.assert_allclose(tables[0].effort, tables[1].effort, rtol=1e-6)


def test_random_numbers_and_sensors_are_those_of_doubles(cuda):
    robot = models.two_link()
    plants = [gc.Plant(robot, sensors=[gc.sensors.Encoder(30, noise=1e-2, seed=100 * k)]) for k in range(4)]
    laws = [controllers.PDGravity(robot, [0.4, 0.2], kp=30.0 + k) for k in range(4)]
    there, here = both(
        (plants, laws, np.zeros((4, 2)), np.zeros((4, 2))), 0.3, 1e-3, FLOAT, control_dt=2e-3, monitors=None
    )
    for a, b in zip(there, here):
        assert a.compared.precision == "float"
        for name, x in a.measured.items():
            np.testing.assert_allclose(x, b.measured[name], rtol=0.0, atol=1e-4, err_msg=name)
        counts = a.measured["q"] * 2**30 / (2.0 * np.pi)
        assert np.abs(counts - np.rint(counts)).max() < 1e-5  # of a float 1


def test_constants_and_angles_that_floats_can_not_reduce(cuda):
    class Guarded:
        def __init__(self, gain):
            self.gain = gain

        def __call__(self, t, q, v, z):
            below = np.minimum(q, 0.0)  # 0 for a positive q
            size = np.maximum(np.abs(below), 1e-200)
            sign = np.where(size < 1e-100, 0.0, below / size)
            return gc.Command(-self.gain * q - v - 1e-3 * sign + 1e-2 * np.sin(1.2e4 * (1.0 + q)))

    _, _, q, _ = arms(4)
    cases = models.two_link(), [Guarded(1.0 + k) for k in range(4)], q, np.zeros((4, 2))
    there, here = both(cases, 0.3, 1e-3, FLOAT, monitors=None)
    for a, b in zip(there, here):
        assert a.compared.precision == "float"
        assert worst_difference(a, b, "tau") < 1e-4
        assert worst_difference(a, b, "v") < 1e-4


def test_runs_with_monitors_beyond_their_limits_are_repeated_in_doubles(cuda):
    robot, (_, _, q, v) = models.two_link(), arms(4)
    plants = [robot.with_payload(mass) for mass in (1e-13, 0.5, 2e-13, 1.0)]
    laws = [
        controllers.PDGravity(robot, [0.4, 0.2], kp=20.0, kd=5.0) for _ in range(4)
    ]  # compensates the gravity of no payload
    monitors = [gc.monitors.LyapunovDecrease(), gc.monitors.EnergyBalance()]
    there, here = both((plants, laws, q, v), 0.5, 1e-3, FLOAT, monitors=monitors)
    verdicts = [run.monitors["lyapunov"].verdict for run in here]
    assert [run.monitors["lyapunov"].verdict for run in there] == verdicts
    repeated = [a.compared.device == "cpu" for a in there]
    assert repeated == [run.monitors["lyapunov"].worst > 1e-8 for run in here]
    assert repeated == [False, True, False, True]
    for a, b, again in zip(there, here, repeated):
        assert np.array_equal(a.q, b.q) == again


def test_a_strict_run_that_ends_is_one_of_doubles(cuda):
    robot, (_, _, q, v) = models.two_link(), arms(4)
    plants = [robot.with_payload(mass) for mass in (1e-13, 0.5, 2e-13, 1.0)]
    laws = [controllers.PDGravity(robot, [0.4, 0.2], kp=20.0, kd=5.0) for _ in range(4)]
    monitors = [gc.monitors.LyapunovDecrease(), gc.monitors.EnergyBalance()]
    there, here = both((plants, laws, q, v), 0.5, 1e-3, replace(FLOAT, strict=True), monitors=monitors)
    assert [run.success for run in here] == [True, False, True, False]
    for a, b in zip(there, here):
        assert (a.success, a.reason) == (b.success, b.reason)
        assert np.array_equal(a.q, b.q) != b.success
        assert b.success or [m.worst for m in a.monitors.values()] == [m.worst for m in b.monitors.values()]


def test_floats_are_refused_where_they_make_no_sense():
    with pytest.raises(ArgumentError, match="precision: expected 'double' with device='cpu', got 'float'"):
        gc.SimulationOptions(precision="float")
    with pytest.raises(ArgumentError, match="precision: "):
        gc.SimulationOptions(device="cuda", precision="half")
    precise = gc.integrators.Adaptive(rtol=1e-9)
    with pytest.raises(ArgumentError, match="precision: expected 'double' with rtol = 1e-09"):
        gc.SimulationOptions(method=precise, device="cuda", precision="float")
    gc.SimulationOptions(method=precise, device="cuda")
