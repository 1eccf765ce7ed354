"""Closed loops as a kernel for GPUs: executed on this machine by a stand-in, and checked by NVIDIA's assembler.

`tests/compiler/test_on_gpu.py` uses a real GPU.
"""

from collections import OrderedDict
from dataclasses import replace

import numpy as np
import pytest
from cuda_tools import LIBDEVICE, assembled, needs_libdevice, needs_ptxas
from fake_cuda import FakeCuda

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control import on_gpu
from geomctrl.control.compiled import choice, gpu_machine
from geomctrl.control.references import Sinusoids
from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.tracing.backends import gpu, host
from geomctrl.tracing.untraceable import UntraceableError


def install(monkeypatch, fake):
    monkeypatch.setattr(gpu, "core", lambda: fake)
    monkeypatch.setattr(gpu, "libdevice", lambda: b"")
    monkeypatch.setattr(host, "ptx", fake.ptx)
    monkeypatch.setattr(gpu_machine.cache, "kept", lambda key, make: make())
    monkeypatch.setattr(choice, "_traces", OrderedDict())  # which keep their kernels
    return fake


@pytest.fixture
def cuda(monkeypatch):
    return install(monkeypatch, FakeCuda())


ON_GPU = gc.SimulationOptions(device="cuda", compiled=True)


def arms(n=5, **options):
    """Return n plants, laws and initial states of a two-link arm that differ in payload, gains and start."""
    robot, rng = models.two_link(), np.random.default_rng(0)
    plants = [gc.Plant(robot.with_payload(0.2 * k), friction=gc.Friction(0.1 * k, 0.05)) for k in range(n)]
    laws = [
        controllers.SlotineLi(robot, Sinusoids(robot, robot.neutral(), 0.3, 0.2 + 0.1 * k, 0.5), **options)
        for k in range(n)
    ]
    return plants, laws, 0.1 * rng.normal(size=(n, 2)), 0.1 * rng.normal(size=(n, 2))


def both(cases, t_end, dt, options=ON_GPU, **rest):
    """Return the runs on the GPU and on the CPU."""
    here = gc.simulate_many(*cases, t_end, dt, options=replace(options, device="cpu", precision="double"), **rest)
    return gc.simulate_many(*cases, t_end, dt, options=options, **rest), here


def assert_equal_runs(there, here, tolerance=1e-12):
    for a, b in zip(there, here, strict=True):
        assert (a.success, a.reason) == (b.success, b.reason)
        np.testing.assert_array_equal(a.t, b.t)
        for name in ("q", "v", "z", "tau"):
            x, y = getattr(a, name), getattr(b, name)
            assert (x is None) == (y is None)
            if x is not None:
                np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance, err_msg=name)
        assert a.monitors.keys() == b.monitors.keys()
        for name, monitor in a.monitors.items():
            other = b.monitors[name]
            assert monitor.verdict == other.verdict
            np.testing.assert_allclose(monitor.worst, other.worst, rtol=1e-6, atol=1e-13, err_msg=name)


def launches(cuda):
    return [line for line in cuda.log if line[0] == "launch"]


@pytest.mark.parametrize("method", ["MK4", "MK54"])
def test_loops_are_those_of_the_cpu(cuda, method):
    there, here = both(arms(), 0.5, 1e-3, replace(ON_GPU, method=method))
    assert len(launches(cuda)) == 2
    assert_equal_runs(there, here, 1e-9 if method == "MK54" else 1e-12)
    assert there[0].compared.samples >= 32


class Filtered:
    """A sampled PD law with a filter of the velocity and a counter in its attributes."""

    def __init__(self, gain):
        self.gain, self.v, self.calls, self.mode = gain, np.zeros(2), 0, "soft"

    def __call__(self, t, q, v, z):
        self.calls += 1
        self.v = 0.8 * self.v + 0.2 * v
        self.mode = "hard" if abs(q[0]) > 0.05 else "soft"
        gain = self.gain * (2.0 if self.mode == "hard" else 1.0)
        return gc.Command(-gain * q - 0.5 * self.v)


def test_sampled_laws_with_memory_end_as_on_the_cpu(cuda):
    _, _, q, v = arms(4)
    laws = [[Filtered(1.0 + k) for k in range(4)] for _ in range(2)]
    runs = [
        gc.simulate_many(models.two_link(), laws[k], q, v, 0.4, 1e-3, 4e-3, options=replace(ON_GPU, device=device))
        for k, device in enumerate(("cuda", "cpu"))
    ]
    assert launches(cuda)
    assert_equal_runs(*runs)
    for a, b in zip(*laws):
        assert (a.calls, a.mode) == (b.calls, b.mode)
        np.testing.assert_allclose(a.v, b.v, rtol=1e-12)


def test_sensors_noise_and_actuators(cuda):
    robot = models.two_link()
    plants = [
        gc.Plant(
            robot.with_payload(0.1 * k),
            actuators=[gc.actuators.Saturation(20.0 + k)],
            sensors=[gc.sensors.Encoder(12, noise=1e-4, cutoff=40.0, seed=100 * k)],
        )
        for k in range(4)
    ]
    laws = [controllers.PDGravity(robot, [0.4, 0.2], kp=30.0 + k) for k in range(4)]
    cases = plants, laws, np.zeros((4, 2)), np.zeros((4, 2))
    there, here = both(cases, 0.3, 1e-3, control_dt=2e-3)
    assert launches(cuda)
    assert_equal_runs(there, here)


@pytest.mark.quick(2)
@pytest.mark.parametrize("every", [1, 7, 1000])
def test_configurations_on_a_group_and_stored_samples(cuda, monkeypatch, every):
    monkeypatch.setattr(gpu_machine, "STEPS", 60)  # several launches
    robot = models.satellite()
    rng = np.random.default_rng(3)
    q = np.array([robot.random_configuration(rng) for _ in range(6)])
    law = controllers.AttitudeTracking(robot, Sinusoids(robot, robot.neutral(), 0.2, 0.3, 0.1))
    there, here = both((robot, law, q, 0.1 * rng.normal(size=(6, robot.nv))), 0.25, 1e-3, replace(ON_GPU, every=every))
    assert len(launches(cuda)) == 5  # 32 steps, then 60 each
    assert_equal_runs(there, here)


class Wall:
    """A law without a result beyond an angle, which the runs reach at different times."""

    def __init__(self, push):
        self.push = push

    def __call__(self, t, q, v, z):
        if q[0] > 0.05:
            raise ValueError("too far")
        return gc.Command(np.array([self.push, 0.0]))


def test_runs_that_fail_end_where_they_do_on_the_cpu_and_others_go_on(cuda):
    robot = models.two_link(gravity=[0.0, 0.0, 0.0])
    laws = [Wall(push) for push in (0.0, 1.0, 2.0, 0.0, 4.0)]
    there, here = both((robot, laws, np.zeros((5, 2)), np.zeros((5, 2))), 0.5, 1e-3)
    assert_equal_runs(there, here)
    assert [run.success for run in there] == [True, False, False, True, False]
    assert "ValueError" in there[1].reason
    assert "too far" in there[1].reason
    assert len({float(run.t[-1]) for run in there}) == 4


def test_sweeps_and_their_stores(cuda, tmp_path):
    plants, laws, q, v = arms(8)

    def make(point):
        k = int(point["k"])
        return plants[k], laws[k], q[k], v[k]

    space, measures = {"k": np.arange(1.0, 8.0)}, [gc.measures.PeakTorque(), gc.measures.TrackingRMS()]
    there = gc.sweep(make, space, measures, 0.3, 1e-3, options=ON_GPU, store=tmp_path / "gpu.zarr")
    assert launches(cuda)
    here = gc.sweep(make, space, measures, 0.3, 1e-3)
    for name in here.data_vars:
        if here[name].dtype.kind == "f":
            np.testing.assert_allclose(there[name], here[name], rtol=1e-10, err_msg=name)
    with pytest.raises(GeomctrlError, match="device"):
        gc.sweep(make, space, measures, 0.3, 1e-3, store=tmp_path / "gpu.zarr")


def test_functions_of_libdevice_are_called_by_their_names(cuda):
    class Soft:
        def __init__(self, gain):
            self.gain = gain

        def __call__(self, t, q, v, z):
            return gc.Command(-self.gain * np.tanh(q) - np.exp(-q * q) * v + np.sin(1e7 * t + q))

    _, _, q, v = arms(4)
    there, here = both((models.two_link(), [Soft(1.0 + k) for k in range(4)], q, v), 0.3, 1e-3)
    assert "@__nv_tanh(" in cuda.texts[0]
    assert "@__nv_exp(" in cuda.texts[0]
    assert_equal_runs(there, here, 1e-9)


# --- single precision ---

FLOAT = replace(ON_GPU, precision="float")


def worst_difference(there, here, name):
    x, y = getattr(there, name), getattr(here, name)
    return np.abs(x - y).max() / max(np.abs(y).max(), 1.0)


@pytest.mark.parametrize("method", ["MK4", "MK54"])
def test_floats_differ_by_their_rounding_and_monitors_are_doubles(cuda, method):
    there, here = both(arms(), 0.5, 1e-3, replace(FLOAT, method=method))
    assert launches(cuda)
    assert "fmul float" in cuda.texts[0] or "fmuladd.f32" in cuda.texts[0]
    changed = 0.0
    for a, b in list(zip(there, here))[1:]:  # the first has another trace, without friction
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
    options = [FLOAT, gc.SimulationOptions(compiled=True)]
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


def test_floats_are_refused_where_they_make_no_sense():
    with pytest.raises(ArgumentError, match="precision: expected 'double' with device='cpu', got 'float'"):
        gc.SimulationOptions(precision="float")
    with pytest.raises(ArgumentError, match="precision: "):
        gc.SimulationOptions(device="cuda", precision="half")
    precise = gc.integrators.Adaptive(rtol=1e-9)
    with pytest.raises(ArgumentError, match="precision: expected 'double' with rtol = 1e-09"):
        gc.SimulationOptions(method=precise, device="cuda", precision="float")
    gc.SimulationOptions(method=precise, device="cuda")


# --- a GPU that fails ---


def failing(cuda, monkeypatch, message, largest=0):
    """Let launches of more than `largest` threads fail."""
    launch = type(cuda).launch

    def broken(self, stream, config, kernel, *arguments):
        if arguments[0] > largest:
            raise RuntimeError(message)
        launch(self, stream, config, kernel, *arguments)

    monkeypatch.setattr(type(cuda), "launch", broken)


def test_runs_on_a_lost_gpu_are_computed_on_the_cpu(cuda, monkeypatch):
    failing(cuda, monkeypatch, "CUDA_ERROR_DEVICE_UNAVAILABLE: lost")
    with pytest.warns(RuntimeWarning, match=r"GPU 0 failed \(RuntimeError: CUDA_ERROR_DEVICE_UNAVAILABLE: lost\): 4"):
        there, here = both(arms(), 0.3, 1e-3)
    assert_equal_runs(there, here)


def test_too_little_memory_splits_the_runs(cuda, monkeypatch):
    monkeypatch.setattr(on_gpu, "MIN_SPLIT", 2)
    failing(cuda, monkeypatch, "CUDA_ERROR_OUT_OF_MEMORY", largest=2)
    there, here = both(arms(), 0.3, 1e-3)
    assert [line[2:] for line in launches(cuda)] == [(1, 128)] * 4
    assert_equal_runs(there, here)


@pytest.mark.parametrize("precision", ["double", "float"])
def test_a_kernel_that_differs_from_python_is_noticed(cuda, monkeypatch, precision):
    translate = cuda.ptx
    definition = """
define internal double @wrong(double %a, double %b, double %c) {
  %x = fmul double %a, %b
  %y = fsub double %x, %c
  ret double %y
}""".replace("double", precision)

    def changed(text, *rest):
        multiplied = f"call {precision} @llvm.fmuladd.f{64 if precision == 'double' else 32}("
        assert multiplied in text
        return translate(text.replace(multiplied, f"call {precision} @wrong(", 1) + definition, *rest)

    monkeypatch.setattr(host, "ptx", changed)
    with pytest.raises(UntraceableError, match=f"SlotineLi: the GPU's first 32 steps, in {precision} precision, differ from"):
        gc.simulate_many(*arms(), 0.3, 1e-3, options=replace(ON_GPU, precision=precision))


def test_bad_devices():
    for device in ("gpu", "cuda:", "cuda:-1", 0, None):
        with pytest.raises(ArgumentError, match="device: expected 'cpu', 'cuda' or 'cuda:1', got "):
            gc.SimulationOptions(device=device)
    with pytest.raises(ArgumentError, match="compiled: expected \"auto\" or True with device='cuda', got False"):
        gc.SimulationOptions(device="cuda", compiled=False)
    robot = models.two_link()
    law = controllers.PDGravity(robot, [0.4, 0.2])
    with pytest.raises(ArgumentError, match="device: expected 'cpu'"):
        gc.simulate(robot, law, np.zeros(2), np.zeros(2), 0.1, 1e-3, options=gc.SimulationOptions(device="cuda"))


def test_a_missing_gpu_is_named(cuda):
    with pytest.raises(GeomctrlError, match="device: expected the number of one of 1 NVIDIA GPUs, got 3"):
        gc.simulate_many(*arms(), 0.3, 1e-3, options=gc.SimulationOptions(device="cuda:3"))


# --- NVIDIA's assembler ---


ASSEMBLED = [("sm_80", "double"), ("sm_90", "float"), ("sm_90", "double"), ("sm_80", "float"), ("sm_100", "float")]


@needs_ptxas
@needs_libdevice
@pytest.mark.quick(2)
@pytest.mark.parametrize(("processor", "precision"), ASSEMBLED)
def test_the_assembler_takes_the_kernel(monkeypatch, tmp_path, processor, precision):
    translate, texts = host.ptx, []
    cuda = install(monkeypatch, FakeCuda())
    monkeypatch.setattr(host, "ptx", lambda text, *rest: texts.append(text) or cuda.ptx(text, *rest))
    gc.simulate_many(*arms(), 0.3, 1e-3, options=replace(ON_GPU, precision=precision))
    code = translate(texts[0], min(processor, "sm_90", key=lambda x: int(x[3:])), LIBDEVICE)
    assert ("fma.rn.f32" in code) == (precision == "float")
    registers, _, spilled = assembled(code, processor, gpu_machine.NAME, tmp_path)
    assert registers <= 255
    assert spilled == 0
