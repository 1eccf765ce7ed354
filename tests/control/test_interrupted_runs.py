"""Interrupted runs keep their samples, which equal the beginning of an uninterrupted run."""

import os
import signal
import threading

import numpy as np
import pytest
from simulation_options import COMPILED, IN_PYTHON, flat_simulate

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control.compiled.machine import Machine
from geomctrl.control.references import Sinusoids
from geomctrl.errors import SimulationError

ARM = models.two_link()
Q0, V0 = [0.2, 0.1], [0.0, 0.3]


def law(**options):
    return controllers.Passivity(ARM, Sinusoids(ARM, ARM.neutral(), 0.3, 0.4), 3.0, [1.0, 0.3], **options)


class Raises:
    """A law that raises at a given time; it can not be traced."""

    def __init__(self, error, t):
        self.law, self.error, self.t = law(), error, t

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        if t >= self.t:
            raise self.error
        return self.law(t, q, v, z)


def at_half(error):
    def progress(fraction):
        if fraction >= 0.5:
            raise error

    return progress


def is_beginning(part, whole):
    """Whether some samples, but not all, are equal bit for bit."""
    n = len(part.t)
    assert 0 < n < len(whole.t)
    for name in ("t", "q", "v", "tau"):
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name)[:n])
    for name, monitor in part.monitors.items():
        np.testing.assert_array_equal(monitor.values, whole.monitors[name].values[:n])
    assert not part.success


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()], ids=lambda e: type(e).__name__)
def test_what_is_no_exception_passes_with_the_run(error):
    with pytest.raises(type(error)) as caught:
        gc.simulate(ARM, Raises(error, 0.05), Q0, V0, 0.1, 1e-3)
    assert caught.value is error
    is_beginning(error.run, gc.simulate(ARM, law(), Q0, V0, 0.1, 1e-3, options=IN_PYTHON))
    assert error.run.reason == f"interrupted after t = 0.049 s: {type(error).__name__}"
    assert any("attribute `run`" in note for note in error.__notes__)


@pytest.mark.quick(3)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_a_callers_progress_may_end_it(error, compiled):
    with pytest.raises(SimulationError if error is RuntimeError else error) as caught:
        flat_simulate(ARM, law(), Q0, V0, 2.0, 1e-3, progress=at_half(error("enough")), compiled=compiled)
    run = caught.value.run
    is_beginning(run, gc.simulate(ARM, law(), Q0, V0, 2.0, 1e-3, options=gc.SimulationOptions(compiled=compiled)))
    assert len(run.t) >= 1000
    assert len(run.t) == run.steps + 1


def test_a_progress_that_fails_at_once_leaves_the_first_sample():
    def progress(fraction):
        raise RuntimeError("no terminal")

    with pytest.raises(
        SimulationError, match=r"RuntimeError in the closed loop \(.*in progress\): no terminal"
    ) as caught:
        gc.simulate(ARM, law(), Q0, V0, 0.1, 1e-3, progress=progress)
    assert len(caught.value.run.t) == 1


@pytest.mark.parametrize("compiled", [False, True])
def test_ctrl_c_from_outside(compiled):
    """Send a signal at any place in the loop."""
    started = threading.Event()

    def press():
        started.wait()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        flat_simulate(
            ARM, law(), Q0, V0, 10_000.0, 1e-3, progress=lambda fraction: started.set(), every=1000, compiled=compiled
        )
    thread.join()
    run = caught.value.run
    assert len(run.t) >= 1
    assert all(np.isfinite(x).all() for x in (run.q, run.v, run.tau))
    np.testing.assert_allclose(run.t, np.arange(len(run.t)))


def test_rows_that_are_half_written_are_none(monkeypatch):
    """Interrupt while the rows of compiled code are copied."""
    columns, calls = Machine.columns, []

    class Interrupted(dict):
        def __getitem__(self, key):
            if key == ("monitor", "energy") and len(calls) > 2:
                raise KeyboardInterrupt
            return super().__getitem__(key)

    def seen(self, *arguments):
        calls.append(1)
        return Interrupted(columns(self, *arguments))

    monkeypatch.setattr(Machine, "columns", seen)
    monkeypatch.setattr("geomctrl.control.loop.LONGER_CHUNKS", 1)
    with pytest.raises(KeyboardInterrupt) as caught:
        gc.simulate(ARM, law(), Q0, V0, 5.0, 1e-3, options=COMPILED)
    monkeypatch.undo()
    is_beginning(caught.value.run, gc.simulate(ARM, law(), Q0, V0, 5.0, 1e-3, options=COMPILED))


@pytest.mark.filterwarnings("ignore:these loops run in Python")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_many_runs_are_kept_as_well(threads, error):
    """Runs that are finished, runs in progress, and runs that have not started."""
    laws = [law() for _ in range(20)]
    laws[10] = Raises(error(), 0.05)
    with pytest.raises(error) as caught:
        gc.simulate_many(ARM, laws, Q0, V0, 2.0, 1e-3, threads=threads)
    runs, whole = caught.value.runs, gc.simulate_many(ARM, law(), [Q0] * 2, V0, 2.0, 1e-3)[0]
    assert len(runs) == 20
    assert len(runs[10].t) == 50
    for run in runs:
        n = len(run.t)
        np.testing.assert_allclose(run.q, whole.q[:n], atol=1e-9)
        assert run.success == (n == len(whole.t))


def test_threads_stop_when_the_first_is_interrupted():
    """Long loops in lanes: they stop within seconds, and their samples are kept."""
    started = threading.Timer(2.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    started.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        gc.simulate_many(
            ARM,
            [law() for _ in range(32)],
            Q0,
            V0,
            100_000.0,
            1e-3,
            threads=2,
            options=gc.SimulationOptions(every=10_000),
        )
    started.join()
    assert sum(len(run.t) for run in caught.value.runs) >= 1
    assert all(np.isfinite(run.q).all() for run in caught.value.runs)
    assert not any(run.success for run in caught.value.runs)
