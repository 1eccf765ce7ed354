"""Random functions of statements: branches, loops, early returns, exceptions, whole numbers and types of numbers.

Where a trace has a result, Python has the same, to the sign of zero: at random points and at hostile ones.
"""

import linecache
import math
import random
import warnings

import numpy as np
import pytest

from geomctrl.errors import ArgumentError
from geomctrl.tracing.backends.rounding import evaluated, has_result
from geomctrl.tracing.tracer import traced
from geomctrl.tracing.untraceable import UntraceableError

FUNCTIONS, TOGETHER = 240, 40
HOSTILE = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 1e-300, 1e300, -1e17, 5e-324, math.pi, 2.5, -2.5, 7.0]
FLOATS = ["t", "a", "x[0]", "x[1]", "b", "0.5", "-0.0", "2.0", "1e-3", "float('inf')", "math.nan", "-1.5", "3"]
INTS = ["n", "m", "2", "3", "-1", "0", "int(t > 0.5)", "len(x)", "(x[0] > t)", "True"]
CONDITIONS = [
    "{f} > {f}", "{f} <= {f}", "{f} == {f}", "{i} < {i}", "{i} == {i}", "0.0 < {f} < 1.0", "not {f} < {f}", "{i} % 2",
    "isinstance({f}, float)", "isinstance({f}, np.floating)", "type({f}) is float", "isinstance({i}, int)", "{f}",
    "math.isnan({f})", "{f} != {f}", "{i} in (0, 1, 2)", "isinstance({f}, (int, np.float64))",
    "math.copysign(1.0, {f}) < 0",
]  # fmt: skip
OF_FLOATS = [
    "{f} + {f}", "{f} - {f}", "{f} * {f}", "{f} / {f}", "-{f}", "abs({f})", "min({f}, {f})", "max({f}, {f})",
    "max(-1.0, min({f}, {i}))", "({f} if {c} else {f})", "{f} % {f}", "{f} // {f}", "{f} ** 2", "math.sqrt({f})",
    "float({f})", "float({i})", "np.float64({f})" , "{i} * {f}", "{f} / {i}", "math.copysign({f}, {f})", "x[{i} % 2]",
    "sum([{f}, {f}, {i}])", "max({f}, {f}, {i})", "np.sign({f})", "math.fmod({f}, {f})", "divmod({f}, {f})[1]",
    "{i} / {i}", "min(x)", "math.hypot({f}, {f})", "float(np.where({f} > 0, {f}, {i}))", "({f} > {f}) * {f}",
    "{i} - {f}", "np.maximum({f}, {f})",
]  # fmt: skip
OF_INTS = [
    "{i} + {i}", "{i} - {i}", "{i} * {i}", "{i} // {i}", "{i} % {i}", "-{i}", "abs({i})", "int({f})", "round({f})",
    "math.floor({f})", "math.ceil({f})", "min({i}, {i})", "max({i}, 0)", "({f} > 0) + ({f} > 1)", "divmod({i}, 3)[0]",
    "({i} if {c} else {i})", "int({c})", "int(np.argmax(x))", "int(np.digitize({f}, [0.0, 1.0]))", "{i} ** 2",
    "math.isnan({f}) + {i}", "math.isfinite({f}) * {i}",
]  # fmt: skip


class Writer:
    def __init__(self, rng):
        self.rng, self.lines = rng, []

    def of(self, templates, leaves, depth):
        if depth == 0 or self.rng.random() < 0.35:
            return self.rng.choice(leaves)
        return f"({self.filled(self.rng.choice(templates), depth - 1)})"

    def filled(self, template, depth):
        for key, make in (("{f}", self.float_), ("{i}", self.int_), ("{c}", self.condition)):
            while key in template:
                template = template.replace(key, make(depth), 1)
        return template

    def float_(self, depth=2):
        return self.of(OF_FLOATS, FLOATS, depth)

    def int_(self, depth=1):
        return self.of(OF_INTS, INTS, depth)

    def condition(self, depth=1):
        return f"({self.filled(self.rng.choice(CONDITIONS), depth)})"

    def write(self, indent, line):
        self.lines.append("    " * indent + line)

    def assignment(self, indent):
        name = self.rng.choice("abnm")
        value = self.float_() if name in "ab" else self.int_(2)
        self.write(indent, f"{name} {self.rng.choice(['=', '=', '+=', '-='])} {value}")

    def statement(self, indent):
        kind = self.rng.choice(["set", "set", "set", "if", "for", "try", "return"] if indent < 3 else ["set"])
        if kind == "set":
            return self.assignment(indent)
        if kind == "if":
            self.write(indent, f"if {self.condition()}:")
        elif kind == "for":
            self.write(indent, f"for k in range({self.rng.choice([2, 3])}):")
            self.assignment(indent + 1)
            self.write(indent + 1, f"if {self.condition()}:")
            self.write(indent + 2, self.rng.choice(["break", "continue", "b = b + k"]))
            return self.assignment(indent + 1)
        elif kind == "try":
            self.write(indent, "try:")
            self.assignment(indent + 1)
            self.write(indent, f"except {self.rng.choice(['ZeroDivisionError', 'ValueError', 'ArithmeticError'])}:")
        else:
            self.write(indent, f"if {self.condition()}:")
            return self.write(indent + 1, f"return {self.float_()}")
        for _ in range(self.rng.choice([1, 2])):
            self.statement(indent + 1)
        if kind == "if" and self.rng.random() < 0.5:
            self.write(indent, "else:")
            self.statement(indent + 1)
        return None

    def text(self):
        self.write(1, "a, b, n, m = 1.0, x[0], 1, 2")
        for _ in range(self.rng.choice([2, 3, 4])):
            self.statement(1)
        self.write(1, f"return [a, b, n + 0.0, m * 1.0, {self.float_()}][{self.rng.choice([0, 1, 2, 3, 4, 4])}]")
        return "def f(t, x):\n" + "\n".join(self.lines) + "\n"


def function(seed):
    text, name = Writer(random.Random(seed)).text(), f"<random statements {seed}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    space = {"np": np, "math": math, "__name__": "random_statements"}
    exec(compile(text, name, "exec"), space)
    return space["f"], text


def points(seed):
    rng = random.Random(seed)
    yield from ([rng.choice(HOSTILE) for _ in range(3)] for _ in range(60))
    yield from ([rng.gauss(0.0, 2.0) for _ in range(3)] for _ in range(20))


def same(a, b):
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    if a == 0.0 or b == 0.0 or math.isinf(a) or math.isinf(b):
        return a == b and math.copysign(1.0, a) == math.copysign(1.0, b)
    return abs(a - b) <= 1e-12 * abs(a)


def outcome(seed):
    f, text = function(seed)
    try:
        trace = traced(f, (), (2,)).trace
    except (UntraceableError, ArgumentError):
        return "refused"
    compared = 0
    for t, *x in points(seed):
        arguments = [np.array([t]), np.array(x)]
        if not has_result(trace, arguments):
            continue
        compared += 1
        actual = float(evaluated(trace, arguments)[0][0])
        try:
            expected = f(t, np.array(x))
        except Exception as error:
            pytest.fail(f"{text}\nat {t}, {x}: traced {actual}, Python raises {error!r}")
        assert same(float(expected), actual), f"{text}\nat {t}, {x}: traced {actual}, Python {expected}"
    return "equal" if compared else "nowhere"


@pytest.mark.quick(1)
@pytest.mark.parametrize("first", range(0, FUNCTIONS, TOGETHER))
def test_random_statements_mean_the_same(first):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = [outcome(seed) for seed in range(first, first + TOGETHER)]
    assert outcomes.count("equal") >= TOGETHER // 2, outcomes
