"""Closed loops on the stand-in for a GPU: cases, and comparisons with the CPU."""

from collections import OrderedDict
from dataclasses import replace

import numpy as np
from fake_cuda import install as install_fake

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control.compiled import choice, gpu_machine
from geomctrl.control.references import Sinusoids

ON_GPU = gc.SimulationOptions(device="cuda", compiled=True)


def install(monkeypatch, fake):
    install_fake(monkeypatch, fake)
    monkeypatch.setattr(gpu_machine.cache, "kept", lambda key, make: make())
    monkeypatch.setattr(choice, "_traces", OrderedDict())  # which keep their kernels
    monkeypatch.setattr(choice, "_warned", set())
    monkeypatch.setattr(gpu_machine, "SECONDS", 1e9)  # so that launches do not depend on this machine's load
    return fake


def arms(n=5, **options):
    """Return n plants, laws and initial states of a two-link arm that differ in payload, gains and start."""
    robot, rng = models.two_link(), np.random.default_rng(0)
    plants = [gc.Plant(robot.with_payload(0.2 + 0.2 * k), friction=gc.Friction(0.1 + 0.1 * k, 0.05)) for k in range(n)]
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
