"""Compiled code is freed when it is no longer used, and not earlier."""

import gc
import os
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import geomctrl
from geomctrl import models
from geomctrl.control.compiled import choice
from geomctrl.tracing import trace
from geomctrl.tracing.backends import entries, host, machine_code
from geomctrl.tracing.backends.batches import Batch


def traced(k: float):
    return trace(lambda x: np.sin(k * x) * x[::-1], (3,)).trace


def addresses(k: float, kind: str) -> list[host.Address]:
    if kind == "many":
        return machine_code.addresses_of_many(traced(k))
    return [machine_code.address_of_one(traced(k))]


def python_entry(address):
    return entries._python_entry(address, np.zeros(1), [(3,)], [(3,)])


HOLDERS = {
    "entry": ("one", lambda addresses: entries.entry(addresses[0], np.zeros(1), [(3,)], [(3,)])),
    "entry in Python": ("one", lambda addresses: python_entry(addresses[0])),
    "batch": ("many", lambda addresses: Batch(np.zeros(1), addresses, 3)),
}


@pytest.mark.quick(1)
@pytest.mark.parametrize("holder", HOLDERS)
def test_code_lives_as_long_as_what_calls_it(holder):
    kind, made = HOLDERS[holder]
    code = addresses(1.25, kind)
    engine = weakref.ref(code[0].engine)
    call = made(code)
    del code
    gc.collect()
    assert engine() is not None
    x = np.array([0.5, 1.0, 2.0])
    y = call(np.tile(x, (16, 1)))[0][3] if kind == "many" else call(x)
    np.testing.assert_allclose(y, np.sin(1.25 * x) * x[::-1], rtol=1e-15)
    del call
    gc.collect()
    assert engine() is None


PROGRAM = """
import ctypes, gc
import numpy as np
from geomctrl.tracing import trace
from geomctrl.tracing.backends import host

CODE = host.object_code("define double @f(double %x) {{ %y = fadd double %x, 1.0 ret double %y }}")
KIND = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)

def compiled(k):
    f = trace(lambda x: np.cos(x + k / 8) * x[0], (4,))
    assert f.to_llvm()(np.ones(4)).shape == (4,)

def loaded(k):
    assert host.function(KIND, host.load(CODE, ["f"])[0])(1.5) == 2.5

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

for k in range({warm}):
    {step}(k)
before = resident()
for k in range({warm}, {warm} + {rounds}):
    {step}(k)
print((resident() - before) / {rounds})
"""


@pytest.mark.quick(1)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="this system has no /proc")
@pytest.mark.parametrize(("step", "warm", "rounds"), [("loaded", 100, 400), ("compiled", 40, 60)])
def test_memory_does_not_grow_while_code_is_made_and_dropped(step, warm, rounds, tmp_path):
    """In a process of its own, whose cache is empty: the first compilation takes memory that stays, once.

    Code that is never freed takes 50 to 140 kB each.
    """
    program = PROGRAM.format(step=step, warm=warm, rounds=rounds)
    environment = {**os.environ, "GEOMCTRL_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 25e3


class Damping:
    """A law with another trace for each `gain`, because it compares it with a constant."""

    reference = None

    def __init__(self, gain):
        self.gain = gain

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return geomctrl.Command(-(1.0 if self.gain > 0.0 else 2.0) * v - np.sin(self.gain * q))


def test_loops_are_freed_with_their_traces(monkeypatch):
    """As many traces stay in memory as `choice` keeps; the code of all others is freed."""
    monkeypatch.setattr(choice, "_traces", type(choice._traces)())
    robot = models.two_link()
    q0 = v0 = np.array([0.1, 0.2])
    geomctrl.simulate(robot, Damping(1.0), q0, v0, 0.01, 1e-3, options=geomctrl.SimulationOptions(compiled=True))
    (loop,) = choice._traces.values()
    engines = [weakref.ref(x.engine) for code in loop.codes.values() for x in code if isinstance(x, host.Address)]
    assert engines
    del loop
    assert all(engine() is not None for engine in engines)
    choice._traces.clear()
    gc.collect()
    assert all(engine() is None for engine in engines)
