"""Closed loops on a GPU that fails, on a stand-in: no run is lost, and no memory is held."""

import gc as gc_of_python
import multiprocessing
import os
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from fake_cuda import FakeCuda
from loops_on_fake_gpu import ON_GPU, Filtered, arms, assert_equal_runs, both, install, launches

import geomctrl as gc
from geomctrl import models
from geomctrl.control import on_gpu
from geomctrl.control.compiled import choice, gpu_machine
from geomctrl.errors import GeomctrlError
from geomctrl.tracing.backends import gpu, host
from geomctrl.tracing.untraceable import UntraceableError


@pytest.fixture
def cuda(monkeypatch):
    return install(monkeypatch, FakeCuda())


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
    with pytest.warns(RuntimeWarning, match=r"GPU 0 failed \(RuntimeError: CUDA_ERROR_DEVICE_UNAVAILABLE: lost\): 5"):
        there, here = both(arms(), 0.3, 1e-3)
    assert_equal_runs(there, here)


def fresh_laws():
    return [Filtered(1.0 + k) for k in range(4)]


def attacked(cuda, laws, failing, lost=False, message="CUDA_ERROR_ILLEGAL_ADDRESS"):
    """The runs of sampled laws with memory where the driver's call number `failing` fails, and the call's name."""
    _, _, q, v = arms(4)
    cuda.calls, cuda.failing, cuda.lost, cuda.message = 0, failing, lost, message
    cuda.log.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        runs = gc.simulate_many(models.two_link(), laws, q, v, 0.26, 1e-3, 4e-3, None, options=ON_GPU)
    return runs, [str(w.message) for w in caught]


def forget_kernels():
    for traced in choice._traces.values():
        for key in [key for key in traced.codes if isinstance(key, tuple)]:
            del traced.codes[key]


def _ends_and_middle(numbers):
    numbers = list(numbers)
    return numbers[0], numbers[len(numbers) // 2], numbers[-1]


@pytest.mark.quick(1)
@pytest.mark.parametrize("lost", [False, True], ids=["once", "lost"])
def test_an_error_at_any_call_of_the_driver_loses_nothing(cuda, monkeypatch, lost):
    monkeypatch.setattr(gpu_machine, "STEPS", 100)
    right_laws = fresh_laws()
    right, caught = attacked(cuda, right_laws, None)
    assert not caught
    named = [entry[0] for entry in cuda.log]
    assert named.index("launch") >= 10
    attacks = range(len(named))
    if "GEOMCTRL_QUICK_TESTS" in os.environ:  # the first and the last call of each function, and the one between
        attacks = sorted({k for name in named for k in _ends_and_middle(k for k, x in enumerate(named) if x == name)})
    for k in attacks:
        monkeypatch.setattr(choice, "_warned", set())
        forget_kernels()
        laws = fresh_laws()
        runs, caught = attacked(cuda, laws, k, lost)
        assert re.search(rf"GPU 0 failed \(.*CUDA_ERROR_ILLEGAL_ADDRESS: {named[k]}\): 4 loops run", caught[0])
        assert_equal_runs(runs, right)
        assert [(law.calls, law.mode) for law in laws] == [(law.calls, law.mode) for law in right_laws]
        gc_of_python.collect()
        assert cuda.held == 0, f"memory is held after a failure of call {k}, {named[k]}"


def test_memory_is_free_before_halves_are_computed(cuda, monkeypatch):
    monkeypatch.setattr(on_gpu, "MIN_SPLIT", 1)
    cases = arms(8)
    allocate, largest, limit, groups = cuda.allocated, 0, np.inf, 0

    def limited(size):
        nonlocal largest, groups
        groups += cuda.held == 0
        largest = max(largest, cuda.held + size)
        if cuda.held + size > limit:
            raise MemoryError("CUDA_ERROR_OUT_OF_MEMORY")
        return allocate(size)

    monkeypatch.setattr(cuda, "allocated", limited)
    here = gc.simulate_many(*cases, 0.3, 1e-3, options=ON_GPU)
    limit, groups = 0.6 * largest, 0
    there = gc.simulate_many(*cases, 0.3, 1e-3, options=ON_GPU)
    assert_equal_runs(there, here)
    assert {run.compared.device for run in there} == {"cuda:0"}
    assert groups == 3  # the whole and its halves, each without the memory of others
    gc_of_python.collect()
    assert cuda.held == 0


class Breaking:
    """A law whose torque is nan after 0.1 s, if `broken` is 1."""

    def __init__(self, broken):
        self.broken = broken

    def __call__(self, t, q, v, z):
        return gc.Command(-5.0 * q - v + np.where(t * self.broken > 0.1, np.sqrt(-1.0 - q * q), 0.0))


def test_nan_in_one_run_of_many_is_named_and_the_others_go_on(cuda):
    robot, n, bad = models.two_link(), 300, 217
    laws = [Breaking(float(k == bad)) for k in range(n)]
    q = 0.1 * np.random.default_rng(0).normal(size=(n, 2))
    there = gc.simulate_many(robot, laws, q, np.zeros(2), 0.26, 1e-3, monitors=None, options=ON_GPU)
    assert [k for k, run in enumerate(there) if not run.success] == [bad]
    assert "nan" in there[bad].reason


class Sensitive:
    """A law that amplifies rounding: the configuration's by `scale`, and all of it by growth with `gain`."""

    def __init__(self, gain, scale):
        self.gain, self.scale = gain, scale

    def __call__(self, t, q, v, z):
        return gc.Command(self.gain * q + np.sin(self.scale * q))


@pytest.mark.parametrize(("gain", "scale"), [(1e6, 1.0), (-1.0, 1e13)], ids=["diverges and stops", "chaotic"])
def test_amplified_rounding_of_one_run_does_not_accuse_the_gpu(cuda, monkeypatch, gain, scale):
    plant_in_kernel(monkeypatch, cuda, "double", "fadd")  # which rounds the product, too
    laws = [Sensitive(gain, scale), *(Sensitive(-2.0 - k, 2.0) for k in range(4))]
    there, here = both((models.two_link(), laws, np.full((5, 2), 0.1), np.zeros(2)), 0.3, 1e-3, monitors=None)
    assert [run.compared.device for run in there[1:]] == ["cuda:0"] * 4
    assert_equal_runs(there[1:], here[1:])


def test_too_little_memory_splits_the_runs(cuda, monkeypatch):
    monkeypatch.setattr(on_gpu, "MIN_SPLIT", 2)
    failing(cuda, monkeypatch, "CUDA_ERROR_OUT_OF_MEMORY", largest=2)
    there, here = both(arms(4), 0.3, 1e-3)
    assert [line[2:] for line in launches(cuda)] == [(1, 128)] * 4
    assert_equal_runs(there, here)


def test_runs_are_not_split_after_an_error_of_an_address_in_memory(cuda, monkeypatch):
    monkeypatch.setattr(on_gpu, "MIN_SPLIT", 1)
    message = "CUDA_ERROR_ILLEGAL_ADDRESS: the device encountered a load on an invalid memory address"
    failing(cuda, monkeypatch, message)
    with pytest.warns(RuntimeWarning, match=f"{message}.: 5 loops run on the CPU"):
        runs = gc.simulate_many(*arms(), 0.3, 1e-3, options=ON_GPU)
    assert all(run.success for run in runs)


def test_a_missing_library_is_named_and_the_loops_run_on_the_cpu(cuda, monkeypatch):
    def missing():
        raise GeomctrlError("needs NVIDIA's libdevice: pip install nothing")

    class Soft:
        def __call__(self, t, q, v, z):
            return gc.Command(-np.tanh(q) - v)

    monkeypatch.setattr(gpu, "libdevice", missing)
    with pytest.warns(RuntimeWarning, match="needs NVIDIA's libdevice: pip install nothing.: 3 loops run on the CPU"):
        runs = gc.simulate_many(models.two_link(), [Soft() for _ in range(3)], np.zeros(2), np.zeros(2), 0.3, 1e-3,
                                options=ON_GPU)  # fmt: skip
    assert all(run.success for run in runs)


def test_an_old_driver_is_named(cuda, monkeypatch):
    def refused(code, name):
        raise RuntimeError("CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the provided PTX was compiled with another toolchain")

    monkeypatch.setattr(cuda.ObjectCode, "from_ptx", refused)
    with pytest.raises(
        GeomctrlError, match=r"needs a driver for CUDA 12.1 or newer: CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
    ):
        models.two_link().to_cuda("mass_matrix")


def test_a_gpu_that_can_not_be_used_is_named(cuda, monkeypatch):
    cuda.failing, cuda.lost, cuda.message = 0, True, "CUDA_ERROR_NOT_INITIALIZED"
    with pytest.raises(GeomctrlError, match=r"^GPU 0 can not be used: CUDA_ERROR_NOT_INITIALIZED: set_current$"):
        models.two_link().to_cuda("mass_matrix")
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: 1)
    with pytest.raises(GeomctrlError, match=r"start it by 'spawn'$"):
        models.two_link().to_cuda("mass_matrix")


def test_measures_survive_repeated_splits(cuda, monkeypatch):
    monkeypatch.setattr(on_gpu, "MIN_SPLIT", 1)
    failing(cuda, monkeypatch, "CUDA_ERROR_OUT_OF_MEMORY", largest=1)
    plants, laws, q, v = arms(8)
    make = lambda point: (plants[int(point["k"])], laws[int(point["k"])], q[int(point["k"])], v[int(point["k"])])  # noqa: E731
    tables = [
        gc.sweep(make, {"k": np.arange(1.0, 8.0)}, [gc.measures.PeakTorque()], 0.3, 1e-3, options=options)
        for options in (ON_GPU, gc.SimulationOptions())
    ]
    assert launches(cuda)
    np.testing.assert_allclose(tables[0].peak_torque, tables[1].peak_torque, rtol=1e-12)


def plant_in_kernel(monkeypatch, cuda, precision, operation, count=-1):
    """Replace the first `count` fused operations a b + c of the kernel, or all, by an `operation` of a b and c."""
    translate = cuda.ptx
    definition = f"""
define internal double @planted(double %a, double %b, double %c) {{
  %x = fmul double %a, %b
  %y = {operation} double %x, %c
  ret double %y
}}""".replace("double", precision)

    def changed(text, *rest):
        fused = f"call {precision} @llvm.fmuladd.f{64 if precision == 'double' else 32}("
        assert fused in text
        return translate(text.replace(fused, f"call {precision} @planted(", count) + definition, *rest)

    monkeypatch.setattr(host, "ptx", changed)


@pytest.mark.parametrize("precision", ["double", "float"])
def test_a_kernel_that_differs_from_python_is_noticed(cuda, monkeypatch, precision):
    plant_in_kernel(monkeypatch, cuda, precision, "fsub", 1)
    with pytest.raises(
        UntraceableError, match=f"SlotineLi: the GPU's first 32 steps, in {precision} precision, differ from"
    ):
        gc.simulate_many(*arms(), 0.3, 1e-3, options=replace(ON_GPU, precision=precision))


def test_a_kernel_that_always_stops_is_noticed(cuda, monkeypatch):
    plant_in_kernel(monkeypatch, cuda, "float", "fsub")
    with pytest.raises(UntraceableError, match="SlotineLi: the GPU stops all 5 compared runs within 32 steps"):
        gc.simulate_many(*arms(), 0.3, 1e-3, options=replace(ON_GPU, precision="float"))


class Late:
    """A law that raises after a time."""

    def __init__(self, end):
        self.end = end

    def __call__(self, t, q, v, z):
        if t > self.end:
            raise ValueError("too late")
        return gc.Command(-q - v)


@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("first", [0.01, 0.1])
def test_a_kernel_that_never_stops_is_noticed(cuda, monkeypatch, precision, first):
    translate, active = cuda.ptx, "double %t_end, i64 1, i64 0)"

    def never_active(text, *rest):
        assert active in text
        return translate(text.replace(active, active.replace("i64 1", "i64 0")), *rest)

    monkeypatch.setattr(host, "ptx", never_active)
    laws, options = [Late(first + 0.001 * k) for k in range(4)], replace(ON_GPU, precision=precision)
    cases = models.two_link(), laws, np.full((4, 2), 0.1), np.zeros(2), 0.3, 1e-3
    if precision == "double" or first < 0.032:
        error = "the GPU's first 32 steps" if first < 0.032 else "cuda:0 has a sample at t = 0.1"
        with pytest.raises(UntraceableError, match=f"^Late.*: {error}"):
            gc.simulate_many(*cases, monitors=None, options=options)
        return
    runs = gc.simulate_many(*cases, monitors=None, options=options)  # repeated, as after rounding
    assert [run.reason.partition(" s:")[0] for run in runs] == [f"stopped at t = {law.end:g}" for law in laws]
