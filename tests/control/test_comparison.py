"""Comparison of compiled loops with Python before and after every run: differing code is refused or run in Python."""

import itertools
import warnings

import numpy as np
import pytest
from simulation_options import COMPILED, grouped

import geomctrl as gc
from geomctrl import models
from geomctrl.control.compiled import choice
from geomctrl.control.compiled.comparison import Comparison, spread_rows
from geomctrl.control.compiled.symbolic_copies import SymbolicCopies
from geomctrl.control.monitors import Monitor
from geomctrl.tracing.external_state import ExternalState
from geomctrl.tracing.untraceable import UntraceableError


class Spring:
    """A law of q and v whose trace is right."""

    def __init__(self, robot, k=5.0):
        self.robot, self.k = robot, k

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(-self.k * q - v)


class AsksForTypes(Spring):
    """The result of `isinstance` is not recorded in a trace: Python adds 1e-7 to the first torque, compiled code
    does not.
    """

    def __call__(self, t, q, v, z):
        return gc.Command(-self.k * q - v + (1e-7 if getattr(t, "graph", None) is None else 0.0))


class Singular(Spring):
    """Solves a linear system with a condition number of 1e13, so the last digits depend on rounding."""

    def __call__(self, t, q, v, z):
        A = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-13]]) * np.cos(0.3 * q[0])
        return gc.Command(-self.k * q - v + 1e-13 * np.linalg.solve(A, q))


class Draws(Spring):
    def __init__(self, robot):
        super().__init__(robot)
        self.rng = np.random.default_rng(1)

    def __call__(self, t, q, v, z):
        return gc.Command(-self.k * q - v + 0.1 * self.rng.normal(size=2))


class NotANumberInPython(Spring):
    """A signal that is nan in Python; a difference with nan shows nothing."""

    def __call__(self, t, q, v, z):
        return gc.Command(-self.k * q - v, signals={"x": np.nan if getattr(t, "graph", None) is None else 1.0})


class NeverTheSame(Spring):
    """Python's torque differs at each call by far more than rounding, for a reason that the trace does not contain."""

    def __call__(self, t, q, v, z):
        return gc.Command(-self.k * q - v + (1e-3 * next(CALLS) if getattr(t, "graph", None) is None else 0.0))


class Noisy(Spring):
    """Python's torque differs at each call as if the law amplified rounding."""

    def __call__(self, t, q, v, z):
        return gc.Command(-self.k * q - v + (1e-3 * NOISE.normal() if getattr(t, "graph", None) is None else 0.0))


class RaisesInPython(Spring):
    """Compiled code has a result where Python raises an exception."""

    def __call__(self, t, q, v, z):
        if getattr(t, "graph", None) is None and t > 0.0:
            raise ValueError("only in Python")
        return gc.Command(-self.k * q - v)


class DiffersAtSamples(Spring):
    """Python's torque differs at multiples of 10 ms only."""

    def __call__(self, t, q, v, z):
        at_sample = getattr(t, "graph", None) is None and t > 0.0 and abs(t - round(t, 2)) < 1e-12
        return gc.Command(-self.k * q - v + (1e-3 if at_sample else 0.0))


CALLS, NOISE = itertools.count(), np.random.default_rng(1)


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch):
    monkeypatch.setattr(choice, "_warned", set())


def run(law, compiled=True, t_end=0.2, **options):
    return gc.simulate(
        law.robot, law, [0.3, -0.2], [0.0, 0.1], **grouped(t_end=t_end, dt=1e-3, compiled=compiled, **options)
    )


@pytest.fixture(scope="module")
def robot():
    return models.two_link()


def test_a_run_says_with_how_many_samples_it_was_compared(robot, tmp_path):
    result = run(Spring(robot))
    assert result.compared.samples == 41
    assert result.compared.difference < 1e-12
    assert "compiled; compared with Python at 41 samples, largest difference" in result.summary()
    assert gc.Run.load(result.save(tmp_path / "run.npz")).compared == result.compared
    in_python = run(Spring(robot), compiled=False)
    assert in_python.compared is None
    assert "compared" not in in_python.summary()


@pytest.mark.parametrize("options", [{}, {"control_dt": 0.004}, {"every": 7}, {"method": "MK54"}, {"strict": True}])
def test_right_loops_pass(robot, options):
    assert run(Spring(robot), **options).compared.samples > 20


def test_another_result_is_refused_with_the_law_s_line(robot):
    line = AsksForTypes.__call__.__code__.co_firstlineno
    with pytest.raises(
        UntraceableError, match=rf"AsksForTypes \(.*test_comparison.py, line {line}\): compiled, tau differs"
    ):
        run(AsksForTypes(robot))


@pytest.mark.parametrize("law", [NotANumberInPython, NeverTheSame, Noisy])
def test_nan_and_what_changes_from_call_to_call_are_refused(robot, law, monkeypatch):
    # otherwise the law would be refused because of its memory
    monkeypatch.setattr(SymbolicCopies, "external_state", ExternalState((), ()))
    with pytest.raises(UntraceableError, match=r"compiled, .* differs from its value in Python"):
        run(law(robot))


def test_a_result_where_python_raises_is_refused(robot):
    with pytest.raises(UntraceableError, match=r"returns a result at t = .*, where Python raises ValueError: only in"):
        run(RaisesInPython(robot))


def test_multiples_of_the_sampling_period_are_compared_before_a_run(robot, monkeypatch):
    monkeypatch.setattr(Comparison, "after", lambda *_: None)
    with pytest.raises(UntraceableError, match="compiled, tau differs from its value in Python"):
        run(DiffersAtSamples(robot), control_dt=0.01, t_end=0.237)


class Other(Monitor):
    """A monitor that measures something else in Python than on symbols."""

    name, what, limit = "other", "a number", 1.0

    def measure(self, sample):
        return 1e-3 if getattr(sample.t, "graph", None) is None else 2e-3


@pytest.mark.parametrize("which", ["before", "after"])
def test_what_monitors_measure_is_compared_before_and_after_a_run(robot, which, monkeypatch):
    monkeypatch.setattr(Comparison, which, lambda *_: None)
    with pytest.raises(UntraceableError, match="compiled, monitor other differs from its value in Python"):
        run(Spring(robot), monitors=[Other()])


def test_another_result_leads_to_python_and_one_warning(robot):
    expected = run(AsksForTypes(robot), compiled=False, t_end=6.0)
    with pytest.warns(RuntimeWarning, match="AsksForTypes") as said:
        result = run(AsksForTypes(robot), compiled="auto", t_end=6.0)
    assert len(said) == 1
    np.testing.assert_array_equal(result.q, expected.q)
    assert result.compared is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(AsksForTypes(robot), compiled="auto", t_end=6.0)


def test_what_only_stored_samples_show_is_found_after_the_run(robot, monkeypatch):
    monkeypatch.setattr(Comparison, "before", lambda *_: None)
    with pytest.raises(UntraceableError, match="compiled, tau differs from its value in Python at t = "):
        run(AsksForTypes(robot))
    expected = run(AsksForTypes(robot), compiled=False, t_end=6.0)
    with pytest.warns(RuntimeWarning, match="AsksForTypes"):
        result = run(AsksForTypes(robot), compiled="auto", t_end=6.0)
    np.testing.assert_array_equal(result.q, expected.q)


def test_rows_that_were_not_written_as_computed_are_found(robot, monkeypatch):
    original = Comparison.after

    def damaged(self, rows, *rest):
        column = next(c for c in self.traced.columns if c.kind == "tau")
        e = self.traced.equations
        rows[len(rows) // 2][1 + e.y + e.held + column.first - e.dim] *= 1.0 + 1e-6
        original(self, rows, *rest)

    monkeypatch.setattr(Comparison, "after", damaged)
    with pytest.raises(UntraceableError, match="compiled, tau differs"):
        run(Spring(robot))


def test_a_trace_of_another_law_is_refused(robot, monkeypatch):
    class Stronger(Spring):
        def __call__(self, t, q, v, z):
            return gc.Command(-self.k * q - 1.001 * v)

    monkeypatch.setattr(SymbolicCopies, "key", lambda self: ("every loop has this key",))
    monkeypatch.setattr(choice, "_traces", type(choice._traces)())
    run(Spring(robot))
    with pytest.raises(UntraceableError, match="Stronger"):
        run(Stronger(robot))


def test_many_loops_are_compared_one_by_one(robot):
    laws = [Spring(robot, k) for k in (4.0, 5.0, 6.0, 7.0)]
    start = [[0.3, -0.2]] * 4, [[0.0, 0.1]] * 4
    runs = gc.simulate_many(robot, laws, *start, t_end=0.3, dt=1e-3, options=COMPILED)
    assert [r.compared.samples for r in runs] == [41, 6, 6, 6]
    wrong = [AsksForTypes(robot, k) for k in (4.0, 5.0, 6.0, 7.0)]
    with pytest.raises(UntraceableError, match="AsksForTypes"):
        gc.simulate_many(robot, wrong, *start, t_end=0.3, dt=1e-3, options=COMPILED)
    with pytest.warns(RuntimeWarning, match="AsksForTypes"):
        runs = gc.simulate_many(robot, wrong, *start, t_end=0.3, dt=1e-3)
    for law, result in zip(wrong, runs):
        np.testing.assert_array_equal(result.q, run(law, compiled=False, t_end=0.3).q)


def test_rounding_that_a_law_magnifies_is_no_difference(robot):
    assert run(Singular(robot)).compared.samples == 41


def test_random_numbers_are_refused(robot):
    with pytest.raises(UntraceableError):
        run(Draws(robot))


@pytest.mark.parametrize("count", [1, 5, 32, 33, 1000, 5002])
def test_rows_are_spread_over_a_run(count):
    rows = [*spread_rows(count, 32)]
    assert rows == sorted(set(rows))
    assert 0 <= rows[0] <= rows[-1] < count
    assert len(rows) == min(count, 32)
    if count > 100:
        assert all(any(a <= k / count < a + 0.25 for k in rows) for a in (0.0, 0.25, 0.5, 0.75))
