"""Functions that branch on their arguments: every path, and paths without a result."""

import itertools
import math

import numpy as np
import pytest
from compiled_functions import traced
from compiler.evaluation import evaluate

from geomctrl.tracing import branches
from geomctrl.tracing.arrays import symbol_array
from geomctrl.tracing.branches import joined
from geomctrl.tracing.patched_numpy import numpy_on_symbols
from geomctrl.tracing.requirements import requirements
from geomctrl.tracing.symbols import Condition, Graph, UntraceableError, both


def law(x):
    """A switch, saturations, a loop that ends early, an early return, chained comparisons, any and all."""
    if abs(x[0]) < 0.3 and abs(x[1]) < 0.3:
        return np.zeros(2)
    out = [max(-1.0, min(1.0, 3.0 * y)) for y in x]
    for k, y in enumerate(x):
        if y > 1.0:
            out[k] -= 5.0 * (y - 1.0)
            break
    if -0.5 < x[0] <= 0.2 or not x[1] < 0.0:
        out[0] += 1.0
    if any(y > 1.5 for y in x) or all(y < -0.5 for y in x):
        return np.array(sorted(out))
    return np.array(out) if out[0] > 0 or x[1] < 0 else 0.5 * np.array(out)


def nested(x):
    y = x[0]
    while y > math.pi:
        y -= 2.0 * math.pi
    try:
        if x[1] > 1.0:
            raise KeyError("high")
        y += 1.0
    except KeyError:
        y -= 1.0
    return y if y else 7.0


def boundaries(x):
    return [1.0 if x[0] > 0.5 else 2.0 if x[0] >= 0.5 else 3.0, x[1] if x[0] != x[1] else 9.0]


def conditions_by_paths(x):
    """Conditions that differ on each path, and comparisons that follow from an equality."""
    near = x[0] > 0.1 if x[1] > 0.0 else x[0] < -0.1
    either = np.bool_(True) if x[0] == x[1] else x[0] < x[1]
    same = 1.0 if x[0] == x[1] and x[1] <= x[0] and x[0] >= x[1] else 2.0
    return [np.where(near, 1.0, 2.0), np.where(either, 3.0, 4.0), same]


def comparisons_after_comparisons(x):
    """All comparisons of two numbers after one of them: some follow from it, nan included."""
    a, b = x
    out = [0.0, 0.0, 0.0]
    for k, first in enumerate((lambda: a < b, lambda: a <= b, lambda: a == b)):
        if first():
            out[k] += 100.0
        for digit, then in enumerate((lambda: a < b, lambda: a <= b, lambda: b < a, lambda: b <= a, lambda: a == b)):
            if then():
                out[k] += 2.0**digit
    return out


def parts_of_a_conjunction(x):
    """What is known of its parts after a conjunction that holds, and after one that does not."""
    positive, small = x[0] > 0.0, x[1] < 0.5
    if np.logical_and(positive, small):
        return 10.0 if positive else 11.0
    return 1.0 + (2.0 if positive else 0.0) + (4.0 if small else 0.0)


def undefined_elsewhere(x):
    return math.sqrt(x[0] - 1.0) if x[0] >= 1.0 else math.log(2.0 - x[0])


def raising(x):
    if x[0] > 1.0:
        raise RuntimeError("stop")
    return 1.0 / math.sqrt(1.0 + x[1])


def raising_otherwise(x):
    if x[0] <= 0.5:
        return [2.0 if x[0] == 0.5 else 1.0]
    raise RuntimeError("stop")


POINTS = [
    *map(np.array, itertools.product([-2.0, -0.5, -0.1, -0.0, 0.0, 0.2, 0.5, 1.0, 1.7, 4.0, math.nan], repeat=2)),
    *np.random.default_rng(0).normal(size=(400, 2)),
]


FUNCTIONS = [law, nested, boundaries, conditions_by_paths, comparisons_after_comparisons, parts_of_a_conjunction]


@pytest.mark.parametrize("f", [*FUNCTIONS, undefined_elsewhere, raising, raising_otherwise])
def test_every_way_is_what_python_does(f):
    trace = traced(f, 2)
    with_results = 0
    for x in POINTS:
        if f is law and np.isnan(x).any():  # of max and min
            continue
        values = evaluate(trace.graph, [*trace.outputs, *([] if trace.flag is None else [trace.flag])], [[], x])
        result, good = values[: len(trace.outputs)], trace.flag is None or values[-1]
        try:
            expected = np.ravel(f(x)).astype(float)
        except (RuntimeError, ValueError, ZeroDivisionError):
            assert not good, x
            continue
        if good:
            with_results += 1
            np.testing.assert_allclose(np.array(result, float), expected, rtol=1e-12, atol=1e-14, err_msg=str(x))
        else:
            assert np.isnan(x).any() or not np.isfinite(expected).all() or x[0] > 30.0, x
    assert with_results > 100


def conditions(n):
    graph = Graph()
    return graph, symbol_array([graph.load(0, k) for k in range(n)], (n,))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[1] > 0.2 if x[0] > 0.0 else x[1] < -0.3,
        lambda x: True if x[0] > 0.0 else x[1] > 0.2,
        lambda x: x[1] > 0.2 if x[0] > 0.0 else False,
        lambda x: not x[0] > 0.0,
    ],
)
def test_truths_of_paths_are_joined(f):
    graph, x = conditions(2)
    result = joined(lambda: f(x))
    for point in POINTS:
        assert evaluate(graph, [graph.operand(result)], [point])[0] == f(point)


def counted(f, n=3):
    """Count how often f runs on symbols."""
    _, x = conditions(n)
    runs = []
    joined(lambda: (runs.append(1), f(x))[1])
    return len(runs)


def test_what_is_known_is_not_asked_again():
    assert counted(lambda x: 1.0 if x[0] < x[1] else 0.0) == 2
    assert counted(lambda x: [1.0 if x[0] < x[1] else 0.0 for _ in range(5)]) == 2
    assert counted(lambda x: [bool(x[0] < 1.0), bool(not (x[0] < 1.0)), bool(~(x[0] < 1.0))]) == 2
    assert counted(lambda x: [bool(x[0] < x[1]), bool(x[0] > x[1]), bool(x[0] == x[1])]) == 4  # nan is a way
    assert counted(lambda x: [bool(x[0] < x[1]) and bool(x[0] <= x[1])]) == 2


def test_a_requirement_on_one_way_holds_there_only():
    graph, x = conditions(2)

    def f():
        return math.log(x[0]) if x[1] > 0.0 else x[1]

    with requirements() as required, numpy_on_symbols(f.__globals__):
        joined(f)
    good = True
    for condition in required:
        good = both(good, condition)
    assert isinstance(good, Condition)
    for a, b, expected in [(1.0, 1.0, True), (-1.0, 1.0, False), (-1.0, -1.0, True), (1.0, -1.0, True)]:
        assert bool(evaluate(graph, [good.index], [[a, b]])[0]) is expected


def test_too_many_paths_name_the_lines():
    def f(x):
        return [1.0 if y > 0.0 else 0.0 for y in x]

    line = f.__code__.co_firstlineno + 1
    with pytest.raises(UntraceableError, match=rf"more than 256 paths .*test_branches.py, line {line} \(\d+ times\)"):
        traced(f, 9)
    assert traced(f, 8).sizes == (8,)


def test_fewer_turns_of_a_loop_where_there_would_be_too_many_paths():
    def wrapped(x):
        out = []
        for y in x:
            while y > math.pi:
                y = y - 2.0 * math.pi
            out.append(y)
        return out

    trace = traced(wrapped, 4)
    near, far = np.array([0.0, 4.0, 7.0, -1.0]), np.array([0.0, 40.0, 7.0, -1.0])
    result = evaluate(trace.graph, [*trace.outputs, trace.flag], [[], near])
    np.testing.assert_allclose(result[:-1], wrapped(near), atol=1e-14)
    assert result[-1]
    assert not evaluate(trace.graph, [trace.flag], [[], far])[0]


def recursive(x):
    return x[0] if x[0] < 1.0 else recursive(x / 2.0)


def endless(x):
    y = x[0]
    while y > 0.0:
        try:
            y = y * 0.5 if y > -1.0 else y
        except Exception:
            continue
    raise ValueError("never")


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (recursive, r"more than 40 paths through the code; most branches are in .*test_branches.py, line \d+"),
        (endless, r"test_branches.py, line \d+"),
        (lambda x: np.zeros(2) if x[0] > 0.0 else np.zeros(3), r"\(2,\)|of 2 where .* holds, and .* where it does not"),
        (
            lambda x: [complex(x[0]).real] if x[0] > 0.0 else [complex(x[0]).imag],
            r"used as a complex number, in .*test_branches",
        ),
    ],
)
def test_what_is_refused_names_the_line(f, words, monkeypatch):
    monkeypatch.setattr(branches, "MAX_PATHS", 40)  # not 256: `recursive` calls itself once more on each of them
    with pytest.raises(UntraceableError, match=words):
        traced(f, 2)


def test_code_that_asks_something_else_when_called_again():
    calls = itertools.count()

    def f(x):
        return x[0] if x[next(calls) % 2] > 0.0 else x[1]

    with pytest.raises(UntraceableError, match="tests different conditions"):
        traced(lambda x: f(x) if x[1] < 3.0 else x[0], 2)


def test_code_that_asks_fewer_questions_when_called_again():
    calls = itertools.count()

    def f(x):
        return x[0] if next(calls) or x[0] > 0.0 or x[1] > 0.0 else x[1]

    with pytest.raises(UntraceableError, match="tests different conditions"):
        traced(f, 2)


def test_what_one_way_changes_is_undone_before_the_next():
    _, x = conditions(2)
    kept = []

    def f():
        assert not kept
        kept.append(1.0)
        return x[0] if x[0] > 0.0 else x[1]

    joined(f, kept.clear)
    assert kept == []


def test_shapes_and_names_are_compared():
    _, x = conditions(2)
    with pytest.raises(UntraceableError, match=r"\['signal'\]|\{'a'\} if the condition"):
        joined(lambda: {"a": 1.0} if x[0] > 0.0 else {"b": 1.0})
    with pytest.raises(UntraceableError, match=r"is a number if .* holds, and None if it does not"):
        joined(lambda: 1.0 if x[0] > 0.0 else None)
