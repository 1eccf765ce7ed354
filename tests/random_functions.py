"""Random Python functions of (t, q, v): arithmetic, numpy, math, branches, loops and assignments."""

import linecache
import math
import random

import numpy as np

NUMBERS = ["0.0", "-0.0", "1.0", "-1.0", "0.5", "2.0", "0.1", "0.2", "3", "1e-3", "-0.7", "10.0", "np.pi", "2", "0"]
OPERATORS = ["+", "-", "*", "/", "+", "-", "*", "/", "%", "//", "**"]
COMPARISONS = ["<", "<=", ">", ">=", "==", "!="]
OF_ARRAYS = [
    "sin",
    "cos",
    "tanh",
    "abs",
    "exp",
    "sign",
    "floor",
    "ceil",
    "sqrt",
    "log1p",
    "arctan",
    "square",
    "rint",
    "cbrt",
    "radians",
    "trunc",
    "negative",
    "isnan",
    "isfinite",
    "logical_not",
    "nan_to_num",
    "asarray",
    "array",
    "copy",
    "real",
    "atleast_1d",
    "arcsin",
    "expm1",
    "reciprocal",
    "log",
    "tan",
    "fabs",
    "cumsum",
    "sort",
]
OF_TWO = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "maximum",
    "minimum",
    "hypot",
    "arctan2",
    "fmod",
    "copysign",
    "power",
    "mod",
    "fmax",
    "fmin",
    "floor_divide",
    "greater",
    "less_equal",
    "not_equal",
    "logical_and",
    "float_power",
]
REDUCTIONS = [
    "np.sum",
    "np.max",
    "np.min",
    "np.mean",
    "np.prod",
    "np.linalg.norm",
    "np.any",
    "np.all",
    "sum",
    "max",
    "min",
    "np.std",
    "np.var",
    "np.ptp",
    "len",
    "np.median",
    "np.ndim",
    "np.size",
]
OF_FLOATS = [
    "math.sin",
    "math.fabs",
    "math.tanh",
    "math.floor",
    "math.ceil",
    "math.exp",
    "math.sqrt",
    "math.atan",
    "abs",
    "math.isnan",
    "math.trunc",
    "math.log",
    "float",
    "bool",
    "round",
]
OF_TWO_FLOATS = ["math.atan2", "math.hypot", "math.copysign", "math.fmod", "math.pow", "math.remainder", "max", "min"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, 0.2, 0.1, -0.7, 10.0, 1e3, 1e-9, 0.3]


class Writer:
    """Writes one function; stores the names of numbers and of arrays (2,) that are defined so far."""

    def __init__(self, rng):
        self.rng, self.lines, self.count, self.indent = rng, [], 0, 1
        self.numbers, self.arrays = ["t"], ["q", "v"]

    def text(self):
        for _ in range(self.rng.choice([2, 3, 4, 6])):
            self.statement(0)
        self.line(f"return {self.array(0)}")
        return "def f(t, q, v):\n" + "\n".join(self.lines) + "\n"

    def line(self, text):
        self.lines.append("    " * self.indent + text)

    def name(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def any_of(self, makers, depth):
        """Choose one of (weight, maker); only names from a certain depth on."""
        return self.rng.choices([m for _, m in makers], [w for w, _ in makers])[0](depth + 1)

    # --- expressions -------------------------------------------------------------------------------------------------

    def number(self, depth):
        r = self.rng
        if depth > 2:
            return r.choice(self.numbers)
        return self.any_of(
            [
                (25, lambda d: r.choice(self.numbers)),
                (10, lambda d: r.choice(NUMBERS)),
                (10, lambda d: f"{r.choice(self.arrays)}[{r.choice([0, 1, -1])}]"),
                (13, lambda d: f"({self.number(d)} {r.choice(OPERATORS)} {self.number(d)})"),
                (8, lambda d: f"{r.choice(REDUCTIONS)}({self.array(d)})"),
                (3, lambda d: f"({self.array(d)} @ {self.array(d)})"),
                (10, lambda d: f"{r.choice(OF_FLOATS)}({self.number(d)})"),
                (7, lambda d: f"{r.choice(OF_TWO_FLOATS)}({self.number(d)}, {self.number(d)})"),
                (4, lambda d: f"np.{r.choice(OF_ARRAYS[:20])}({self.number(d)})"),
                (5, lambda d: f"({self.number(d)} if {self.condition(d)} else {self.number(d)})"),
                (2, lambda d: f"np.where({self.comparison(d)}, {self.number(d)}, {self.number(d)})"),
                (1, lambda d: f"np.interp({self.number(d)}, [-1.0, 0.0, 2.0], [0.5, -1.0, 3.0])"),
            ],
            depth,
        )

    def array(self, depth):
        r = self.rng
        if depth > 2:
            return r.choice(self.arrays)
        return self.any_of(
            [
                (28, lambda d: r.choice(self.arrays)),
                (17, lambda d: f"({self.array(d)} {r.choice(OPERATORS)} {r.choice([self.array, self.number])(d)})"),
                (10, lambda d: f"np.{r.choice(OF_ARRAYS)}({self.array(d)})"),
                (10, lambda d: f"np.{r.choice(OF_TWO)}({self.array(d)}, {r.choice([self.array, self.number])(d)})"),
                (7, lambda d: f"np.array([{self.number(d)}, {self.number(d)}])"),
                (6, lambda d: f"np.where({self.array(d)} < {self.number(d)}, {self.array(d)}, {self.array(d)})"),
                (5, lambda d: f"np.clip({self.array(d)}, {self.number(d)}, {self.array(d)})"),
                (4, lambda d: f"(np.array([[1.0, {self.number(d)}], [0.5, 2.0]]) @ {self.array(d)})"),
                (3, lambda d: f"{self.array(d)}[::-1]"),
                (2, lambda d: f"np.concatenate([{self.array(d)}[:1], {self.array(d)}[1:]])"),
            ],
            depth,
        )

    def comparison(self, depth):
        return f"{self.number(depth + 1)} {self.rng.choice(COMPARISONS)} {self.number(depth + 1)}"

    def condition(self, depth):
        return self.any_of(
            [
                (70, self.comparison),
                (10, lambda d: f"({self.comparison(d)} and {self.condition(d)})"),
                (10, lambda d: f"(not ({self.comparison(d)}))"),
                (5, lambda d: f"np.any({self.array(d)} > {self.number(d)})"),
                (5, lambda d: f"({self.comparison(d)} or {self.condition(d)})"),
            ],
            depth,
        )

    # --- statements --------------------------------------------------------------------------------------------------

    def statement(self, depth):
        makers = [(40, self.new_number), (25, self.new_array), (7, self.written_array), (10, self.changed_number)]
        makers += [(8, self.branch), (6, self.loop)] if depth < 2 else []
        makers += [(4, self.early_return)] if depth < 1 else []
        self.any_of(makers, depth)

    def new_number(self, _):
        value, name = self.number(0), self.name("s")
        self.line(f"{name} = {value}")
        self.numbers.append(name)

    def new_array(self, _):
        value, name = self.array(0), self.name("a")
        self.line(f"{name} = {value}")
        self.arrays.append(name)

    def written_array(self, _):
        name = self.name("a")
        self.line(f"{name} = {self.rng.choice([f'np.array({self.array(0)}, float)', 'np.zeros(2)'])}")
        self.line(f"{name}[{self.rng.choice([0, 1])}] {self.rng.choice(['=', '+=', '*='])} {self.number(0)}")
        self.arrays.append(name)

    def changed_number(self, _):
        if len(self.numbers) > 1:
            self.line(f"{self.rng.choice(self.numbers[1:])} {self.rng.choice(['+=', '-=', '*='])} {self.number(0)}")

    def branch(self, depth):
        set_on_both = self.rng.choice(self.numbers[1:] or [None])
        for head in [f"if {self.condition(0)}:", "else:"][: self.rng.choice([1, 2])]:
            self.line(head)
            self.block(depth, set_on_both)

    def loop(self, depth):
        name = self.name("i")
        self.line(f"for {name} in range({self.rng.choice([2, 3])}):")
        self.numbers.append(name)
        self.block(depth, None, leaves=self.rng.random() < 0.4)
        self.numbers.remove(name)

    def early_return(self, _):
        self.line(f"if {self.condition(0)}:")
        self.line(f"    return {self.array(0)}")

    def block(self, depth, name, leaves=False):
        numbers, arrays = list(self.numbers), list(self.arrays)
        self.indent += 1
        before = len(self.lines)
        if name:
            self.line(f"{name} = {self.number(0)}")
        for _ in range(self.rng.choice([1, 1, 2])):
            self.statement(depth)
        if leaves:
            self.line(f"if {self.condition(0)}:")
            self.line("    break")
        if len(self.lines) == before:
            self.line("pass")
        self.numbers, self.arrays, self.indent = numbers, arrays, self.indent - 1


def function(seed):
    """Return (f, its source text)."""
    text, name = Writer(random.Random(seed)).text(), f"<random function {seed}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name  # so that a refusal can name the line
    space = {"np": np, "math": math, "__name__": "random_functions"}
    exec(compile(text, name, "exec"), space)
    return space["f"], text


def points(seed, count):
    rng = np.random.default_rng(seed)
    draws = [lambda: rng.normal(size=5), lambda: 10.0 * rng.normal(size=5), lambda: rng.choice(SPECIAL, size=5)]
    draws.append(lambda: rng.normal(size=5).round(1))
    for k in range(count):
        x = draws[k % len(draws)]()
        yield float(x[0]), x[1:3].copy(), x[3:].copy()


def moved(point, rng):
    """Return the point moved by some units of rounding."""
    t, q, v = (x * (1.0 + 1e-13 * rng.normal(size=np.shape(x))) for x in point)
    return float(t), q, v
