"""Dense output, events, bad arguments and steppers written by users, with the drivers of integrators."""

import math

import numpy as np
import pytest
from fields import BODIES, END, oscillator, reference, turning

from geomctrl.errors import ArgumentError, GeomctrlError, IntegrationError, NameNotFoundError
from geomctrl.integrators.driver import integrate, steps
from geomctrl.integrators.explicit import step
from geomctrl.integrators.march import March, Step, collect, step_count
from geomctrl.integrators.solution import Event
from geomctrl.integrators.step_control import Adaptive
from geomctrl.integrators.tableaus import Tableau, method
from geomctrl.lie.groups import SE3, SO3, Product, Rn

# --- dense output and events ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "order"), [("CG4", 4), ("CF4", 4), ("MK4", 4), ("MK8", 4), ("MK5", 5)])
def test_dense_output_order(name, order):
    group, field, y0 = BODIES["SE3"]
    errors = []
    for n in (16, 32, 64):
        solution = integrate(field, y0, (0.0, END), END / n, name, group, dense=True)
        errors.append(np.sqrt(np.mean((solution.sol(np.linspace(0.0, END, 513)) - reference("SE3")) ** 2)))
        np.testing.assert_allclose(solution.sol(solution.t), solution.y, rtol=0, atol=1e-13)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(order, abs=0.25)


def test_dense_output_stays_on_the_group_and_inside_its_range():
    solution = integrate(turning, np.eye(3), (0, 1), 0.1, "MK4", SO3(), dense=True, every=3)
    assert SO3().residual(solution.sol(np.linspace(0, 1, 50))).max() < 1e-14
    assert solution.sol(0.55).shape == (3, 3)
    assert solution.sol([]).shape == (0, 3, 3)
    for t in (-0.1, 1.1, math.nan, [[0.5]]):
        with pytest.raises(ArgumentError, match=r"t: expected "):
            solution.sol(t)


@pytest.mark.parametrize(("name", "h"), [("CF4", 0.01), ("MK54", None)])
def test_events_are_located(name, h):
    def circle(t, y):
        return np.array([y[1], -y[0]])

    events = [Event(lambda t, y: y[0]), Event(lambda t, y: y[0], direction=1), lambda t, y: y[1]]
    events += [Event(lambda t, y: y[0], direction=-1), Event(lambda t, y: -y[1])]
    chosen = name if h else Adaptive(name, rtol=1e-10, atol=1e-12)
    solution = integrate(circle, [1.0, 0.0], (0, 10), h, chosen, Rn(2), events=events)
    zeros = math.pi * np.array([0.5, 1.5, 2.5])
    np.testing.assert_allclose(solution.events[0].t, zeros, rtol=0, atol=1e-8)
    np.testing.assert_allclose(solution.events[1].t, zeros[1::2], rtol=0, atol=1e-8)
    np.testing.assert_allclose(solution.events[3].t, zeros[::2], rtol=0, atol=1e-8)
    for k in (2, 4):  # a zero at the start is not a crossing
        np.testing.assert_allclose(solution.events[k].t, math.pi * np.arange(1, 4), rtol=0, atol=1e-8)
    np.testing.assert_allclose(solution.events[0].y, [[0, -1], [0, 1], [0, -1]], rtol=0, atol=1e-8)
    assert solution.t[-1] == 10.0


def test_a_crossing_at_a_sample_counts_once_and_one_at_the_beginning_does_not():
    solution = integrate(lambda t, y: [1.0], [0.0], (0.0, 1.0), 0.25, "MK2", Rn(1), events=[
        lambda t, y: y[0] - 0.5, lambda t, y: y[0], lambda t, y: 1.0 - y[0], lambda t, y: 0.0,
    ])  # fmt: skip
    at_sample, at_start, at_end, always = (x.t for x in solution.events)
    assert at_sample == pytest.approx([0.5], rel=1e-15)
    assert at_end == pytest.approx([1.0], rel=1e-15)
    assert at_start.size == always.size == 0


def test_terminal_event_ends_past_its_crossing_and_a_restart_goes_on():
    quarter = Event(lambda t, R: R[0, 0], terminal=True, name="edge on")
    field = lambda t, R: np.array([0.0, 0.0, 2.0])  # noqa: E731
    first = integrate(field, np.eye(3), (0, 3), 0.1, "MK4", SO3(), events=quarter, dense=True)
    assert first.success
    assert first.reason == "terminal event 'edge on' at t = 0.785398163"
    assert first.t[-1] == first.events[0].t[0] == first.sol.t_max == pytest.approx(math.pi / 4, abs=1e-14)
    np.testing.assert_array_equal(first.y[-1], first.events[0].y[0])
    assert first.h[-1] == pytest.approx(first.t[-1] - first.t[-2])
    second = integrate(field, first.y[-1], (first.t[-1], 3), 0.1, "MK4", SO3(), events=quarter)
    assert second.t[-1] == pytest.approx(3 * math.pi / 4, abs=1e-13)


def test_earlier_event_of_the_same_step_is_kept_and_the_later_is_not():
    events = [Event(lambda t, y, at=at: y[0] - at, terminal=at == 0.55) for at in (0.58, 0.55, 0.52)]
    solution = integrate(lambda t, y: np.ones(1), [0.0], (0, 1), 0.1, "MK2", Rn(1), events=events)
    assert [len(x.t) for x in solution.events] == [0, 1, 1]
    assert solution.t[-1] == pytest.approx(0.55)
    assert solution.events[0].y.shape == (0, 1)


# --- bad input ------------------------------------------------------------------------------------------------------

GOOD = {"field": turning, "y0": np.eye(3), "t_span": (0.0, 1.0), "h": 0.1, "method": "MK4", "group": SO3()}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"method": "MK4"}, "method: expected an embedded pair, .* got MK4, a fixed-step method"),
        ({"method": "MK5000"}, "method: expected a Tableau or one of"),
        ({"rtol": -1.0}, "rtol: expected a number, not negative, got -1"),
        ({"atol": math.nan}, "atol: expected finite numbers"),
        ({"atol": [[1.0]]}, r"atol: expected a number or shape \(group.dim,\)"),
        ({"rtol": 0.0, "atol": 0.0}, "atol: expected positive numbers, as rtol is zero"),
    ],
)
def test_tolerances_that_are_none_are_refused(bad, message):
    with pytest.raises(GeomctrlError, match=message):
        Adaptive(**bad)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"h": 0.0}, "h: expected a positive step, at most the span"),
        ({"h": -0.1}, "h: expected a positive step"),
        ({"h": 1.5}, "at most the span t_end - t0 = 1, got 1.5"),
        ({"h": math.nan}, "h: expected a finite number, got nan"),
        ({"h": "0.1"}, "h: expected a finite number, got '0.1'"),
        ({"h": None}, "h: expected a finite number, got None"),
        ({"group": SO3}, r"group: expected a LieGroup, SO3\(\) for example, got <class"),
        ({"group": None}, "group: expected a LieGroup"),
        ({"field": np.ones(3)}, r"field: expected a function field\(t, y\)"),
        ({"h": 1e-20}, "h: expected a step that is not lost"),
        ({"t_span": (1.0, 0.0)}, r"t_span: expected t0 < t_end, got \(1, 0\)"),
        ({"t_span": (1.0, 1.0)}, "t_span: expected t0 < t_end"),
        ({"t_span": (0.0, math.inf)}, r"t_span\[1\]: expected a finite number, got inf"),
        ({"t_span": 1.0}, "t_span: expected a pair"),
        ({"y0": np.eye(4)}, r"y0: expected shape \(\.\.\., 3, 3\), got \(4, 4\)"),
        ({"y0": 1.001 * np.eye(3)}, r"y0: expected an element of SO3\(\), residual below 1e-06, got 0.002"),
        ({"y0": np.diag([1.0, 1.0, -1.0])}, "y0: expected an element"),
        ({"y0": np.full((3, 3), math.nan)}, "y0: expected finite numbers"),
        ({"y0": "identity"}, "y0: expected real numbers"),
        ({"every": 0}, "every: expected a positive integer, got 0"),
        ({"every": 1.5}, "every: expected a positive integer, got 1.5"),
        ({"events": [3]}, "events: expected functions"),
        ({"events": 3}, "events: expected functions g\\(t, y\\), got 3"),
        ({"events": None}, "events: expected functions"),
        ({"progress": 3}, "progress: expected a function progress\\(fraction\\) or None, got 3"),
        ({"method": Adaptive(atol=[1.0, 1.0])}, r"atol: expected a number or shape \(3,\)"),
    ],
)
def test_bad_arguments_are_named(change, message):
    with pytest.raises(ArgumentError, match=message):
        integrate(**{**GOOD, **change})


def test_bad_arguments_of_steps_are_named_before_the_first_step():
    with pytest.raises(ArgumentError, match="h: expected a positive step"):
        steps(turning, np.eye(3), (0, 1), -1.0, "MK4", SO3())


def test_bad_arguments_of_step_are_named():
    with pytest.raises(ArgumentError, match="h: expected a finite number other than zero"):
        step("MK4", turning, 0.0, np.eye(3), 0.0, SO3())
    with pytest.raises(ArgumentError, match=r"y: expected shape \(\.\.\., 2\), got \(1,\)"):
        step("MK4", oscillator, 0.0, [1.0], 0.1, Rn(2))
    with pytest.raises(ArgumentError, match="t: expected a finite number, got nan"):
        step("MK4", oscillator, math.nan, [1.0, 0.0], 0.1, Rn(2))
    with pytest.raises(IntegrationError, match="overflows between t = 0 and 1e\\+200"):
        step("CF2", lambda t, y: [1.0, 2.0, 3.0], 0.0, np.eye(3), 1e200, SO3())


def test_bad_events_and_times_are_named():
    with pytest.raises(ArgumentError, match=r"function: expected a function g\(t, y\), got 3"):
        Event(3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match=r"event 'rise': direction: expected .*, got 'up'"):
        Event(lambda t, y: t, direction="up", name="rise")  # pyright: ignore[reportArgumentType]

    def late(t, y):
        return t - 0.5

    late.direction = None
    with pytest.raises(ArgumentError, match="event 'late': direction: expected"):
        integrate(**GOOD, events=late)
    sol = integrate(**GOOD, dense=True).sol
    for t in ("noon", None, [0.0, [1.0]], np.zeros((2, 2)), math.nan, 1.1):
        with pytest.raises(ArgumentError, match=r"t: expected "):
            sol(t)


def test_unknown_method_lists_the_known_ones():
    with pytest.raises(NameNotFoundError, match=r"one of CG2, .*MK8, got 'mk4'; did you mean MK4"):
        method("mk4")
    with pytest.raises(NameNotFoundError, match=r"got \['MK4'\]"):
        method(["MK4"])
    with pytest.raises(NameNotFoundError, match="got 'Euler'"):
        integrate(**{**GOOD, "method": "Euler"})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"A": [[0, 1], [1, 0]]}, "strictly lower triangular"),
        ({"A": [[0]]}, r"A, b: expected A \(s, s\) and b \(s,\) of MK, got \(1, 1\) and \(2,\)"),
        ({"A": [[0, 0], [math.nan, 0]]}, "A: expected finite"),
        ({"A": [[0, 0], [1]]}, "A: expected real numbers"),
        ({"b": [1.0, 1.0]}, "b: expected weights that sum to 1"),
        ({"b": []}, "A, b: expected A"),
        ({"c": [0.0]}, r"c: expected shape \(2,\)"),
        ({"family": "RK"}, "family: expected one of 'CG', 'CF', 'MK', got 'RK'"),
        ({"family": "CF"}, r"A \(kappa, s, s\)"),
        ({"b_hat": [1.0, 0.0]}, r"b_hat: expected shape \(s \+ 1,\), s = 2, and family MK"),
        ({"family": "CG", "interpolant": np.zeros((3, 4))}, "interpolant: expected shape .* and family MK"),
    ],
)
def test_bad_tableaus_are_named(table, message):
    with pytest.raises(ArgumentError, match=message):
        Tableau(**{"name": "mine", "order": 2, "A": [[0, 0], [1, 0]], "b": [0.5, 0.5], **table})


def test_tableaus_can_not_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        method("MK4").A[0, 0] = 1.0


@pytest.mark.parametrize("name", ["CG3", "CF4", "MK4", "MK54"])
@pytest.mark.parametrize("group", [Rn(3), SO3()], ids=repr)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_field_that_is_not_finite_stops_with_the_solution_so_far(name, group, bad):
    def field(t, y):
        return np.array([1.0, bad if t > 0.5 else 0.0, -0.2])

    tableau = method(name)
    with pytest.raises(
        IntegrationError,
        match=rf"finite numbers, got .* at index 1 of 3, at t = 0\.5.*, stage [1-6] of {len(tableau.c)}",
    ) as e:
        integrate(field, group.identity(), (0.0, 1.0), 0.1, name, group, every=4)
    solution = e.value.solution
    assert not solution.success
    assert solution.reason == str(e.value)
    assert solution.t[-1] == pytest.approx(0.5)
    assert isinstance(e.value, GeomctrlError)


@pytest.mark.parametrize("value", [np.ones(2), np.ones((3, 1)), 1.0, np.ones(3) * 1j, "abc", None, [1.0, [2.0], 3.0]])
@pytest.mark.parametrize("group", [Rn(3), SO3()], ids=repr)
def test_field_of_the_wrong_kind(group, value):
    with pytest.raises(IntegrationError, match=r"field must return .*3.*, at t = 0, stage 1 of 4") as e:
        integrate(lambda t, y: value, group.identity(), (0, 1), 0.1, "MK4", group)
    assert len(e.value.solution.t) == 1


def test_large_numbers_are_not_mistaken_for_infinity():
    assert step("MK4", lambda t, y: np.array([1e200]), 0.0, [0.0], 1.0, Rn(1))[0] == pytest.approx(1e200)


def test_overflow_of_the_solution_is_reported():
    with np.errstate(over="ignore"), pytest.raises(IntegrationError, match="overflows between t = 0 and 1"):
        integrate(lambda t, y: np.array([1.7e308]), [1.7e308], (0, 2), 1.0, "CF2", Rn(1))


def test_step_that_turns_by_two_pi_says_halve_it():
    def field(t, R):
        return np.array([0.0, 0.0, 60.0]) + turning(t, R)

    with pytest.raises(
        IntegrationError,
        match=r"the step of h = 0\.104 from t = 0 turns by 6\.\d+ rad, but dexp\^-1 is singular at 2 pi: halve h",
    ) as e:
        integrate(field, np.eye(3), (0, 1), 0.104, "MK4", SO3())
    assert len(e.value.solution.t) == 1
    integrate(field, np.eye(3), (0, 1), 0.052, "MK4", SO3())


def test_infinite_increment_is_reported():
    with (
        np.errstate(over="ignore"),
        pytest.raises(
            IntegrationError, match=r"the solution overflows between t = 0 and 500: x: expected finite numbers, got inf"
        ),
    ):
        integrate(lambda t, R: np.array([0.0, 0.0, 1.7e308]), np.eye(3), (0, 1e3), 500.0, "MK4", SO3())


def test_a_long_translation_is_not_mistaken_for_a_turn():
    end = integrate(lambda t, y: np.array([0.1, 0, 0, 50.0, 0, 0]), np.eye(4), (0, 1), 0.5, "MK4", SE3()).y[-1]
    assert end[0, 3] == pytest.approx(50.0)


def test_many_bodies_that_turn_by_little_each_are_not_mistaken_for_a_turn():
    """40 bodies that rotate by 1 rad each: the increment is longer than 2 pi, the largest rotation is not."""
    group, spin = Product(*[SO3()] * 40), np.tile([0.0, 0.6, 0.8], 40)
    end = integrate(lambda t, y: spin, group.identity(), (0, 1), 1.0, "MK4", group).y[-1]
    np.testing.assert_allclose(end, group.exp(spin), rtol=0, atol=1e-14)
    with pytest.raises(IntegrationError, match=r"turns by 7 rad, .* halve h"):
        integrate(lambda t, y: 7.0 * spin, group.identity(), (0, 2), 2.0, "MK4", group)


def test_event_that_is_not_a_number():
    bad = Event(lambda t, y: math.nan if t > 0.5 else 1.0, name="broken")
    with pytest.raises(
        IntegrationError, match=r"event 'broken' must return one finite number, got nan at t = 0\.6"
    ) as e:
        integrate(**GOOD, events=[bad])
    assert e.value.solution.t[-1] == pytest.approx(0.6)


# --- user-defined steppers -------------------------------------------------------------------------------------------


class ImplicitMidpoint:
    """y' = -y by the implicit midpoint rule; its memory counts the steps, and it stops after `last` of them."""

    group = Rn(1)

    def __init__(self, last=10**6):
        self.last, self.nfev = last, 0

    def step(self, t, y, h, t_next, memory):
        self.nfev += 1
        count = (memory or 0) + 1
        if count > self.last:
            raise IntegrationError(f"enough, at t = {t:g}")
        return Step(t, y, h, t_next, y * (1.0 - 0.5 * h) / (1.0 + 0.5 * h), memory=count)


def test_a_march_takes_any_stepper_and_hands_its_memory_on():
    shown = []
    march = March(ImplicitMidpoint(), [1.0], (0.0, 1.05), 0.1)
    solution = collect(march, every=4, progress=shown.append)
    np.testing.assert_allclose(solution.t, [0.0, 0.4, 0.8, 1.05], rtol=0, atol=1e-15)
    factor = 0.95 / 1.05
    np.testing.assert_allclose(solution.y[:, 0], [1.0, factor**4, factor**8, factor**10 * 0.975 / 1.025], rtol=1e-14)
    np.testing.assert_allclose(solution.h, [0.0, 0.1, 0.1, 0.05], rtol=0, atol=1e-15)
    assert (solution.n_steps, solution.nfev, shown[-1]) == (11, 11, 1.0)
    with pytest.raises(IntegrationError, match="enough") as caught:
        collect(March(ImplicitMidpoint(5), [1.0], (0.0, 1.0), 0.1))
    assert len(caught.value.solution.t) == 6
    assert not caught.value.solution.success


@pytest.mark.parametrize(
    ("span", "h", "n"), [(1.0, 0.1, 10), (1.05, 0.1, 11), (0.3, 0.1, 3), (1e3, 1e-3, 10**6), (1, 1, 1)]
)
def test_rounding_adds_no_step(span, h, n):
    assert step_count(span, h) == n
