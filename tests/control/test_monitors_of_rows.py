"""Monitors that depend on a single sample: compiled loops compute them later for many samples at once."""

import math

import numpy as np
import pytest
from simulation_options import COMPILED

import geomctrl as gc
from geomctrl.control.compiled import choice
from geomctrl.control.compiled.machine import Machine
from geomctrl.control.monitors import Monitor, Skew

ROBOT = gc.models.two_link()
START = np.array([0.4, -0.3]), np.array([0.5, 1.0])


class Elbow(Monitor):
    """A monitor of the elbow's angle, which is undefined below `edge`."""

    name = "elbow"
    description = "angle [rad]"

    def __init__(self, limit=10.0):
        self.limit = limit

    def measure(self, sample):
        return math.sqrt(sample.q[1] + 0.5)


class Gap(Monitor):
    """A monitor of the elbow's velocity, which is nan at high speeds."""

    name = "gap"
    description = "velocity [rad/s]"

    def __init__(self):
        self.limit = 10.0

    def measure(self, sample):
        return np.where(sample.v[1] > 1.2, np.nan, sample.v[1])


class Torque(Monitor):
    """A monitor of a command and of a signal at the same sample."""

    name = "torque"
    description = "torque [N m]"

    def __init__(self):
        self.limit = 100.0

    def measure(self, sample):
        return sample.tau[0] + 0.1 * sample.signals["e"][1] + 0.01 * sample.applied[1] + sample.desired.v[0]


class Memory(Monitor):
    """A monitor that counts, so that every sample needs the one before."""

    name = "memory"
    description = "samples"

    def __init__(self):
        self.limit, self.count = 1e6, 0.0

    def start(self, plant, controller):
        self.count = 0.0
        return True

    def measure(self, sample):
        self.count += 1.0
        return self.count + sample.q[0]


REFERENCE = gc.references.Sinusoids(ROBOT, [0.1, 0.2], [0.5, 0.3], [0.2, 0.4])


def law():
    return gc.controllers.ComputedTorque(ROBOT, REFERENCE, 2.0)


def run(monitors, compiled, t_end=0.4, **options):
    return gc.simulate(ROBOT, law(), *START, t_end, 1e-3, monitors=monitors, **with_options(compiled, **options))


def with_options(compiled, control_dt=None, **options):
    return {"control_dt": control_dt, "options": gc.SimulationOptions(compiled=compiled, **options)}


def same(a, b, name):
    x, y = a.monitors[name], b.monitors[name]
    np.testing.assert_allclose(x.values, y.values, rtol=1e-9, atol=1e-12, equal_nan=True)
    np.testing.assert_allclose(x.worst, y.worst, rtol=1e-9, atol=1e-12, equal_nan=True)
    assert x.t_worst == y.t_worst


@pytest.mark.quick(9)
@pytest.mark.parametrize(
    "options", [{}, {"every": 7}, {"control_dt": 0.01}, {"method": "MK54"}, {"method": "CF4"}, {"strict": True}]
)
@pytest.mark.parametrize("monitor", [Gap, Torque, Memory])
def test_values_and_the_worst_of_them_are_those_of_python(monitor, options):
    a, b = (run([monitor()], compiled, **options) for compiled in (True, False))
    assert len(b.t) == len(a.t)
    assert a.compared is not None
    same(a, b, monitor.name)


def test_skew_is_computed_of_rows_and_memory_is_not(monkeypatch):
    """Which monitors are computed later: those without memory, unless a strict run needs them at once."""
    traces, make = [], choice.trace_loop
    monkeypatch.setattr(choice, "trace_loop", lambda *a, **k: traces.append(make(*a, **k)) or traces[-1])
    for strict in (False, True):
        run([Skew(limit=1.0 + strict), Memory(), Torque()], True, t_end=0.05, strict=strict)
    computed = [traced.equations.rows and [k - traced.worst for k in traced.equations.rows.worst] for traced in traces]
    assert computed == [[0, 2], None]


@pytest.mark.parametrize("chunk", [3, 16, 1024])
def test_a_sample_without_a_value_is_python_s(monkeypatch, chunk):
    """The run ends there with Python's error, and stores the samples before it, for any division into blocks and
    chunks.
    """
    monkeypatch.setattr("geomctrl.control.loop_runner.CHUNK_STEPS", chunk)
    ends, chunks, advance = [], [], Machine.run
    monkeypatch.setattr(Machine, "run", lambda *a: chunks.append(advance(*a)) or chunks[-1])
    for compiled in (True, False):
        with pytest.raises(gc.SimulationError, match="math domain error") as error:
            gc.simulate(ROBOT, law(), *START, 3.0, 1e-3, monitors=[Elbow(), Memory()], **with_options(compiled))
        ends.append(error.value)
    a, b = ends
    assert str(a) == str(b)
    assert 10 < a.run.steps == b.run.steps < 2999
    assert sum(len(rows) for *_, rows in chunks) > 0.9 * b.run.steps
    for name in ("elbow", "memory"):
        same(a.run, b.run, name)


def test_a_value_that_python_finds_after_all_is_used():
    """Compiled code has no value for the square root of a negative number; this monitor does not need one."""

    class Careful(Elbow):
        def measure(self, sample):
            try:
                return super().measure(sample)
            except ValueError:
                return -1.0

    a, b = (run([Careful(), Memory()], compiled, t_end=3.0) for compiled in ("auto", False))
    same(a, b, "elbow")
    same(a, b, "memory")
    assert (b.monitors["elbow"].values == -1.0).any()
    assert (b.monitors["elbow"].values > 0.0).any()


def test_runs_side_by_side_have_each_its_own_values_and_ends():
    """Lanes without a value continue alone, the others side by side; the results equal those of single runs."""
    q0, v0 = [[0.4, x] for x in np.linspace(-0.45, 1.5, 11)], START[1]
    monitors = [Gap(), Elbow(), Memory()]
    together = gc.simulate_many(ROBOT, law(), q0, v0, 2.0, 1e-3, monitors=monitors, **with_options(True))
    for start, run_ in zip(q0, together, strict=True):
        try:
            alone = gc.simulate(ROBOT, law(), start, v0, 2.0, 1e-3, monitors=monitors, **with_options(False))
        except gc.SimulationError as error:
            alone = error.run
        assert (alone.success, alone.reason, alone.steps) == (run_.success, run_.reason, run_.steps)
        for monitor in monitors:
            same(run_, alone, monitor.name)
    assert {x.success for x in together} == {True, False}


class Rounding(Monitor):
    """A monitor that is all rounding: a fused sum of a product, or one of a computed signal, changes it."""

    name = "rounding"
    description = "error of sums [rad]"

    def __init__(self):
        self.limit = 1.0

    def measure(self, sample):
        x, y = sample.signals["e"][0], sample.tau[1]
        return abs(sample.q[0] * x + sample.v[1] * y - (sample.v[1] * y + sample.q[0] * x) - y * 1e-17) + abs(
            (x + y) * x - x * x - y * x
        )


@pytest.mark.parametrize("options", [{}, {"every": 40}, {"control_dt": 0.01}])
def test_runs_side_by_side_have_the_bits_of_single_runs(options):
    """A single run computes these monitors later, parallel runs at each sample."""
    q0 = [[0.4 + x, -0.3] for x in np.linspace(0.0, 1.0, 5)]
    monitors = [Skew(), Rounding(), Torque(), Memory()]
    together = gc.simulate_many(
        ROBOT, law(), q0, START[1], 0.4, 1e-3, monitors=monitors, **with_options(True, **options)
    )
    for start, run_ in zip(q0, together, strict=True):
        alone = gc.simulate(
            ROBOT, law(), start, START[1], 0.4, 1e-3, monitors=monitors, **with_options(True, **options)
        )
        np.testing.assert_array_equal(run_.q, alone.q)
        for a, b in zip(run_.monitors.values(), alone.monitors.values(), strict=True):
            np.testing.assert_array_equal(a.values, b.values)
            assert (a.worst, a.t_worst) == (b.worst, b.t_worst)
        assert alone.monitors["rounding"].worst > 0.0


def test_a_law_that_ends_in_the_first_lane_leaves_the_clock_of_the_others():
    """The law depends on time: with another clock, other lanes would take another path."""

    class UpTo:
        def __init__(self, limit):
            self.limit = limit

        def start(self):
            return None

        def __call__(self, t, q, v, z):
            return gc.Command(np.array([np.sin(20.0 * t), math.sqrt(self.limit - t)]) - v)

    def loops():
        return [UpTo(limit) for limit in (0.2, 1.0, 2.0, 0.35, 3.0)]

    together = gc.simulate_many(ROBOT, loops(), *START, 0.5, 1e-3, monitors=None, **with_options(True))
    apart = gc.simulate_many(ROBOT, loops(), *START, 0.5, 1e-3, monitors=None, **with_options(False))
    assert [x.success for x in together] == [False, True, True, False, True]
    for a, b in zip(together, apart, strict=True):
        assert (a.reason, a.steps) == (b.reason, b.steps)
        np.testing.assert_allclose(a.q, b.q, rtol=0, atol=1e-12)


class Part:
    def __init__(self):
        self.total = np.zeros(2)


class AddsToAPart(Monitor):
    """A monitor that accumulates in an array of another object."""

    name = "part"
    description = "sum [rad]"

    def __init__(self):
        self.limit, self.part = math.inf, Part()

    def measure(self, sample):
        self.part.total += np.abs(sample.q)
        return 0.0


def test_a_sum_in_another_object_is_not_lost():
    totals = []
    for compiled in (False, "auto"):
        monitor = AddsToAPart()
        options = gc.SimulationOptions(compiled=compiled)
        gc.simulate(ROBOT, gc.controllers.PDGravity(ROBOT, [0.5, 0.2]), *START, 0.5, 1e-3, None, [monitor], options)
        totals.append(monitor.part.total.tolist())
    assert totals[0] == totals[1]
    with pytest.raises(gc.GeomctrlError, match=r"total changes during a call.* and the next call reads it"):
        gc.simulate(
            ROBOT,
            gc.controllers.PDGravity(ROBOT, [0.5, 0.2]),
            *START,
            0.1,
            1e-3,
            monitors=[AddsToAPart()],
            options=COMPILED,
        )
