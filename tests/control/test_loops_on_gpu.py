"""Closed loops as a kernel for GPUs: executed on this machine by a stand-in, and checked by NVIDIA's assembler.

`tests/compiler/test_on_gpu.py` uses a real GPU.
"""

from dataclasses import replace

import numpy as np
import pytest
from cuda_tools import LIBDEVICE, assembled, needs_libdevice, needs_ptxas
from fake_cuda import FakeCuda
from loops_on_fake_gpu import ON_GPU, Filtered, arms, assert_equal_runs, both, install, launches

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control.compiled import gpu_machine
from geomctrl.control.references import Sinusoids
from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.tracing.backends import host


@pytest.fixture
def cuda(monkeypatch):
    return install(monkeypatch, FakeCuda())


@pytest.mark.parametrize("method", ["MK4", "MK54"])
def test_loops_are_those_of_the_cpu(cuda, method):
    there, here = both(arms(), 0.5, 1e-3, replace(ON_GPU, method=method))
    assert len(launches(cuda)) == 2
    assert_equal_runs(there, here, 1e-9 if method == "MK54" else 1e-12)
    assert there[0].compared.samples >= 32


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


def test_runs_that_diverge_do_not_stop_the_others(cuda):
    """Compiled code has no result at any state near that of the third run when it stops."""
    robot, loads = models.two_link(), (1, 2, 117, 3)
    plants = [
        gc.Plant(robot.with_payload(0.1 + 0.01 * k), friction=gc.friction.Dahl(50.0 + k, 0.1),
                 actuators=[gc.actuators.Saturation(10.0 + k), gc.actuators.Lag(0.02)])
        for k in loads
    ]  # fmt: skip
    laws = [controllers.PDGravity(robot, [0.4, 0.2], kp=20.0 + k) for k in loads]
    cases = plants, laws, np.ones(2), np.zeros(2)
    there, here = both(cases, 0.3, 1e-3, replace(ON_GPU, method="CF4"), monitors=None)
    assert [run.success for run in here] == [run.success for run in there] == [True, True, False, True]
    assert "unstable" in there[2].reason
    assert_equal_runs(there[:2], here[:2])


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


def test_a_launch_takes_bounded_time(cuda, monkeypatch):
    monkeypatch.setattr(gpu_machine, "SECONDS", 1e-12)
    there, here = both(arms(), 0.26, 1e-3)
    assert len(launches(cuda)) == 1 + 260 - 32  # after the first, one step each
    assert_equal_runs(there, here)


def test_a_launch_stores_a_bounded_number_of_samples(cuda, monkeypatch):
    monkeypatch.setattr(gpu_machine, "ROW_BYTES", 1)
    there, here = both(arms(), 0.26, 1e-3, replace(ON_GPU, every=20))
    assert len(launches(cuda)) == 1 + 12  # 32 steps, then 20 each, for one sample
    assert_equal_runs(there, here)


def test_the_second_gpu(monkeypatch):
    cuda = install(monkeypatch, FakeCuda(devices=2))
    there, here = both(arms(), 0.3, 1e-3, replace(ON_GPU, device="cuda:1"))
    assert_equal_runs(there, here)
    assert {run.compared.device for run in there} == {"cuda:1"}
    assert cuda.current == 0


def test_loops_that_do_not_run_on_the_gpu_are_named(cuda):
    robot, options = models.two_link(), gc.SimulationOptions(device="cuda")
    laws = [controllers.PDGravity(robot, [0.4, 0.2], kp=20.0 + k) for k in range(3)]
    cases = robot, laws, np.zeros(2), np.zeros(2)
    with pytest.warns(RuntimeWarning, match="device: these loops run on the CPU: each has fewer than 250 steps"):
        gc.simulate_many(*cases, 0.1, 1e-3, options=options)
    two = robot, laws[:2], *cases[2:]
    with pytest.warns(RuntimeWarning, match="device: these loops run on the CPU: at most 2 have the same equations"):
        gc.simulate_many(*two, 0.3, 1e-3, options=options)
    with pytest.raises(GeomctrlError, match="one of 1 NVIDIA GPUs, got 1"):  # before any of them runs
        gc.simulate_many(*two, 0.3, 1e-3, options=replace(options, device="cuda:1"))


def test_a_replay_runs_on_the_cpu(cuda):
    plants, laws, q, v = arms(4)
    make = lambda point: (plants[int(point["k"])], laws[int(point["k"])], q[int(point["k"])], v[int(point["k"])])  # noqa: E731
    table = gc.sweep(make, {"k": np.arange(4.0)}, [gc.measures.PeakTorque()], 0.3, 1e-3, options=ON_GPU)
    cuda.devices.clear()
    run = gc.replay(table, 2, make)
    assert run.compared.device == "cpu"
    np.testing.assert_allclose(gc.measures.PeakTorque()(run), table.peak_torque[2], rtol=1e-12)


def test_bad_devices():
    for device in ("gpu", "cuda:", "cuda:-1", 0, None):
        with pytest.raises(ArgumentError, match="device: expected 'cpu', 'cuda' or 'cuda:1', got "):
            gc.SimulationOptions(device=device)
    with pytest.raises(ArgumentError, match="compiled: expected \"auto\" or True with device='cuda', got False"):
        gc.SimulationOptions(device="cuda", compiled=False)
    robot = models.two_link()
    law = controllers.PDGravity(robot, [0.4, 0.2])
    options = gc.SimulationOptions(device="cuda")
    with pytest.raises(ArgumentError, match="device: expected 'cpu', as only the loops of simulate_many and sweep"):
        gc.simulate(robot, law, np.zeros(2), np.zeros(2), 0.1, 1e-3, options=options)
    with pytest.raises(ArgumentError, match="simulation: expected device='cpu', as only the loops"):
        gc.interop.EnvironmentOptions(simulation=options)
    with pytest.raises(ArgumentError, match=r"SimulationOptions\(device=\"cuda\"\)"):
        gc.SweepExecution(executor="cuda")


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
