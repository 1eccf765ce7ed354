"""Checks of Taylor models and of tubes against exact rationals, mpmath and closed forms: each returns what escapes.

They take the modules under test as arguments, so that `test_planted_tube_errors` can give them modules with errors.
"""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
from scipy.integrate import solve_ivp

from geomctrl.tracing.proofs.operation_rows import OperationRows
from geomctrl.tracing.symbols import Graph, add, binary, compare, div, mul, neg, sub, unary, where

FUNCTIONS = ("sin", "cos", "exp", "log", "sqrt", "tanh", "asin", "acos", "tan")
HELD_INPUTS = [(1, 0), (1, 1), (3, 0), (2, 0)]  # q, v, held command, time
mpmath.mp.dps = 50  # decimal digits


class OneStep:
    """Layout of rows for tests: `initial` symbols, one moving state, two spare symbols."""

    def __init__(self, kernels, steps, initial):
        self.kernels, self.layout = kernels, steps.Layout(initial, 1, spare=2)
        self.spare = slice(self.layout.symbols - 1, self.layout.symbols + 1)

    def row(self, rng, centre, size, err, kind):
        """A random row of a size: with all coefficients (kind 0), linear ones (1), or one symbol (2)."""
        C = np.zeros((1, self.layout.coefficients))
        end = (self.layout.coefficients, 1 + self.layout.symbols, 2)[kind]
        C[0, 1:end] = rng.normal(size=end - 1)
        C[0, self.spare] = 0.0
        C[0, 1:] *= size / np.abs(C).sum()
        C[0, 0] = centre
        return C, err if kind < 2 else 0.0

    def value(self, row, e, s=Fraction(0)):
        """Exactly: the polynomial of a row at the symbols e, plus s times its error."""
        layout = self.layout
        total = Fraction(row[0]) + sum(Fraction(row[1 + k]) * e[k] for k in range(layout.symbols))
        i, j = np.triu_indices(layout.quadratic)
        for k, (a, b) in enumerate(zip(i.tolist(), j.tolist())):
            total += Fraction(row[1 + layout.symbols + k]) * e[a] * e[b]
        return total + s * Fraction(row[-4])

    def evaluated(self, expression, rows):
        """Coefficient 0 of an expression of two states."""
        graph = Graph()
        program = OperationRows(graph, [(1, 0), (1, 1)], [], {}, [expression(graph.load(1, 0), graph.load(1, 1))])
        C = np.vstack([C for C, _ in rows])
        X = self.layout.forms(C, np.array([err for _, err in rows]))
        values = np.zeros((1, X.shape[1]))
        with np.errstate(all="ignore"):
            self.kernels.series_many(
                program.rows, program.constants, program.rates, program.further, X, 1, self.layout.symbols,
                self.layout.quadratic, self.layout.symbols - 1, False, np.zeros((2, 2, X.shape[1])), values,
            )  # fmt: skip
        values[0, -4] += np.abs(values[0, self.spare]).sum() * (1.0 + 1e-12)
        values[0, self.spare] = 0.0
        return X, values[0]


def _both_sides(x, y):
    """A choice between two expressions that the rows do not decide."""
    return where(compare("lt", x, y), mul(x, 2.0), sub(y, 0.25))


ARITHMETIC = {
    "sum": (lambda x, y: add(x, y), lambda a, b: a + b),
    "difference": (lambda x, y: sub(neg(x), y), lambda a, b: -a - b),
    "product": (lambda x, y: mul(x, y), lambda a, b: a * b),
    "quotient": (lambda x, y: div(x, y), lambda a, b: a / b),
    "reciprocal": (lambda x, y: div(0.3, y), lambda a, b: Fraction(0.3) / b),
    "choice": (_both_sides, lambda a, b: 2 * a if a < b else b - Fraction(1, 4)),
    "smaller": (lambda x, y: binary("min", x, y), min),
    "size": (lambda x, y: unary("abs", sub(x, y)), lambda a, b: abs(a - b)),
}


def arithmetic_escapes(kernels, steps, seed=0, trials=30):
    """Names of operations whose rows miss an exact rational result."""
    rng, model, escaped = np.random.default_rng(seed), OneStep(kernels, steps, 2), set()
    for trial in range(trials):
        size, err = (0.4, 0.2, 1e-4, 1e-8)[trial % 4], (0.0, 0.05, 0.0, 1e-9, 0.0)[trial % 5]
        rows = [model.row(rng, c, size, err, trial % 3) for c in rng.uniform(0.9, 1.1, 2)]
        for name, (expression, exact) in ARITHMETIC.items():
            X, row = model.evaluated(expression, rows)
            for _ in range(4):
                e = [Fraction(int(x)) for x in rng.choice([-1, 1], model.layout.symbols)]
                a, b = (model.value(x, e, Fraction(int(rng.choice([-1, 1])))) for x in X)
                lo, hi = steps.bounds(X)
                if not (lo[0] <= a <= hi[0] and lo[1] <= b <= hi[1]):
                    escaped.add("bounds")
                if not np.isfinite(row[0]) or abs(model.value(row, e) - exact(a, b)) > Fraction(row[-4]):
                    escaped.add(name)
    return escaped


def function_escapes(kernels, steps, seed=0, trials=30):
    """Names of elementary functions whose rows miss a value of mpmath."""
    rng, model, escaped = np.random.default_rng(seed), OneStep(kernels, steps, 2), set()
    for trial in range(trials):
        size, err = (0.1, 0.3, 1e-3, 0.0)[trial % 4], (0.0, 0.02, 1e-12)[trial % 3]
        rows = [model.row(rng, rng.uniform(0.4, 0.6), size, err, trial % 3)] * 2
        for name in FUNCTIONS:
            X, row = model.evaluated(lambda x, y, name=name: unary(name, x), rows)
            for _ in range(4):
                e = [Fraction(int(x)) for x in rng.choice([-1, 1], model.layout.symbols)]
                a = model.value(X[0], e, Fraction(int(rng.choice([-1, 1]))))
                exact = getattr(mpmath, name)(mpmath.mpf(a.numerator) / a.denominator)
                value = model.value(row, e)
                off = abs(mpmath.mpf(value.numerator) / value.denominator - exact)
                if not np.isfinite(row[0]) or off > row[-4]:
                    escaped.add(name)
    return escaped


def activation_escapes(kernels, steps, seed=0, trials=40):
    """Names of functions whose rows miss a value: of rows with both signs, wide ones and where tanh is nearly 1."""
    rng, model, escaped = np.random.default_rng(seed), OneStep(kernels, steps, 2), set()
    functions = {
        "tanh": (lambda x, y: unary("tanh", x), lambda a, b: mpmath.tanh(mpmath.mpf(a.numerator) / a.denominator)),
        "max": (lambda x, y: binary("max", x, y), max),
        "min": (lambda x, y: binary("min", x, y), min),
        "abs": (lambda x, y: unary("abs", x), lambda a, b: abs(a)),
        "two layers": (lambda x, y: add(binary("max", x, 0.25), neg(unary("abs", sub(x, y)))), _two_layers),
    }
    for trial in range(trials):
        size, err = (0.3, 1.0, 4.0, 0.05)[trial % 4], (0.0, 0.2, 1e-9)[trial % 3]
        centre = rng.uniform(-1.0, 1.0) * (0.8 * size if trial % 8 < 4 else 4.0)
        rows = [model.row(rng, c, size, err, trial % 3) for c in (centre, centre + 0.3 * size * rng.normal())]
        for name, (expression, exact) in functions.items():
            X, row = model.evaluated(expression, rows)
            for k in range(12):
                e = [
                    Fraction(float(x)) for x in rng.uniform(-1, 1, model.layout.symbols).round(3) ** (1 if k > 4 else 0)
                ]
                e = [x * int(rng.choice([-1, 1])) for x in e]
                a, b = (model.value(x, e, Fraction(int(rng.choice([-1, 1])))) for x in X)
                value, result = model.value(row, e), exact(a, b)
                if not isinstance(result, Fraction):
                    value = mpmath.mpf(value.numerator) / value.denominator
                if not np.isfinite(row[0]) or abs(value - result) > row[-4]:
                    escaped.add(name)
    return escaped


def _square(x):
    return mul(x, x)


SQUARES = {
    "norm": (lambda x, y: unary("sqrt", add(_square(x), _square(y))), lambda a, b: mpmath.sqrt(a * a + b * b)),
    "hypot": (lambda x, y: binary("hypot", x, y), mpmath.hypot),
    "weighted norm": (
        lambda x, y: unary("sqrt", add(mul(mul(2.0, x), x), mul(neg(y), mul(y, -0.5)))),
        lambda a, b: mpmath.sqrt(2 * a * a + b * b / 2),
    ),
    "root of a product": (
        lambda x, y: unary("sqrt", mul(_square(x), unary("exp", y))), lambda a, b: abs(a) * mpmath.exp(b / 2)
    ),
    "root of a size": (lambda x, y: unary("sqrt", unary("abs", sub(x, y))), lambda a, b: mpmath.sqrt(abs(a - b))),
    "logarithm": (
        lambda x, y: unary("log", add(binary("pow", x, 4.0), 0.01)), lambda a, b: mpmath.log(a**4 + mpmath.mpf(0.01))
    ),
    "reciprocal": (lambda x, y: div(y, add(_square(x), 0.25)), lambda a, b: b / (a * a + mpmath.mpf("0.25"))),
    "negative reciprocal": (
        lambda x, y: div(1.0, sub(mul(div(x, -2.0), x), 0.25)), lambda a, b: -1 / (a * a / 2 + mpmath.mpf("0.25"))
    ),
    "logarithm of a choice": (
        lambda x, y: unary("log", where(compare("lt", x, 0.0), unary("exp", x), add(_square(y), 1.0))),
        lambda a, b: a if a < 0 else mpmath.log(b * b + 1),
    ),
    "unit vector": (
        lambda x, y: div(x, binary("max", unary("sqrt", add(_square(x), _square(y))), 0.25)),
        lambda a, b: a / max(mpmath.sqrt(a * a + b * b), mpmath.mpf("0.25")),
    ),
    "root of a choice": (
        lambda x, y: unary("sqrt", where(compare("lt", _square(x), -1.0), x, _square(y))), lambda a, b: abs(b)
    ),
    "sine": (lambda x, y: unary("sqrt", add(unary("sin", x), 1.25)), lambda a, b: mpmath.sqrt(mpmath.sin(a) + 1.25)),
    "size of tanh": (
        lambda x, y: unary("log", add(unary("tanh", unary("abs", x)), 0.125)),
        lambda a, b: mpmath.log(mpmath.tanh(abs(a)) + 0.125),
    ),
}  # fmt: skip


def square_escapes(kernels, steps, seed=0, trials=24):
    """Names of functions of squares whose rows miss a value or are undefined; Taylor models alone have no signs."""
    rng, model, escaped = np.random.default_rng(seed), OneStep(kernels, steps, 2), set()
    for trial in range(trials):
        size, err = (0.3, 1.0, 4.0, 0.05)[trial % 4], (0.0, 0.2, 1e-9)[trial % 3]
        centre = rng.uniform(-1.0, 1.0) * (0.8 * size if trial % 8 < 4 else 2.0)
        rows = [model.row(rng, c, size, err, trial % 3) for c in (centre, rng.uniform(-1.0, 1.0) * size)]
        for name, (expression, exact) in SQUARES.items():
            X, row = model.evaluated(expression, rows)
            if not np.isfinite(row[0]):
                escaped.add(name)
                continue
            for k in range(12):
                e = [
                    Fraction(float(x)) for x in rng.uniform(-1, 1, model.layout.symbols).round(3) ** (1 if k > 4 else 0)
                ]
                e = [x * int(rng.choice([-1, 1])) for x in e]
                a, b = (model.value(x, e, Fraction(int(rng.choice([-1, 1])))) for x in X)
                a, b = (mpmath.mpf(x.numerator) / x.denominator for x in (a, b))
                value = model.value(row, e)
                off = abs(mpmath.mpf(value.numerator) / value.denominator - exact(a, b))
                if off > row[-4]:
                    escaped.add(name)
    return escaped


def random_escapes(kernels, steps, seed=0, trials=60):
    """Numbers of random expressions whose rows miss a value."""
    model, escaped = OneStep(kernels, steps, 2), set()
    for trial in range(trials):
        rng = np.random.default_rng([seed, trial])
        size, err = (0.3, 1.0, 3.0, 0.02)[trial % 4], (0.0, 0.1, 1e-9)[trial % 3]
        rows = [model.row(rng, rng.uniform(-1.5, 1.5), size, err, trial % 3) for _ in range(2)]
        pair = _random_expression(rng, 6)
        try:
            X, row = model.evaluated(lambda x, y, f=pair: f(x, y, SYMBOLIC), rows)
        except StopIteration:  # folded to a comparison of two constants
            continue
        for _ in range(12 if np.isfinite(row[0]) else 0):
            e = [Fraction(float(x)) for x in rng.choice([-1.0, 1.0, 0.25, -0.5, 0.0], model.layout.symbols)]
            a, b = (model.value(x, e, Fraction(int(rng.choice([-1, 1])))) for x in X)
            a, b = (mpmath.mpf(x.numerator) / x.denominator for x in (a, b))
            try:
                exact, value = pair(a, b, EXACT), model.value(row, e)
            except (ValueError, ZeroDivisionError):  # a side that is not chosen is undefined
                continue
            value = mpmath.mpf(value.numerator) / value.denominator
            if not abs(value - exact) <= row[-4]:
                escaped.add(trial)
    return escaped


SYMBOLIC = {
    "add": add, "sub": sub, "mul": mul, "div": div, "max": lambda a, b: binary("max", a, b),
    "min": lambda a, b: binary("min", a, b), "hypot": lambda a, b: binary("hypot", a, b),
    "where": lambda a, b: where(compare("lt", a, b), mul(a, a), b),
    **{f: (lambda a, f=f: unary(f, a)) for f in ("sqrt", "log", "sin", "tanh", "exp", "abs")},
}  # fmt: skip
EXACT = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "max": max, "min": min, "hypot": mpmath.hypot, "where": lambda a, b: a * a if a < b else b,
    **{f: getattr(mpmath, f) for f in ("sin", "tanh", "exp")}, "abs": abs,
    **{f: (lambda a, f=f: _defined(f, a)) for f in ("sqrt", "log")},
}  # fmt: skip


def _defined(name, a):
    if a < 0:
        raise ValueError(name)
    return getattr(mpmath, name)(a)


def _random_expression(rng, count):
    """A function (x, y, operations): `count` random operations on earlier results."""
    plan = []
    for k in range(count):
        name = str(rng.choice(["add", "sub", "mul", "square", "square", "scaled", "max", "min", "where", "div", "hypot",
                               "sqrt", "sqrt", "log", "sin", "tanh", "exp", "abs", "shift"]))  # fmt: skip
        plan.append((name, *(int(i) for i in k + 1 - rng.geometric(0.5, 2).clip(max=k + 2)), float(rng.normal())))

    def f(x, y, operations):
        values = [x, y]
        for name, i, j, c in plan:
            a, b = values[i], values[j]
            if name == "square":
                values.append(operations["mul"](a, a))
            elif name == "scaled":
                values.append(operations["mul"](c, a))
            elif name == "shift":
                values.append(operations["add"](a, abs(c)))
            else:
                take = operations[name]
                values.append(take(a) if name in ("sqrt", "log", "sin", "tanh", "exp", "abs") else take(a, b))
        return values[-1]

    return f


def _two_layers(a, b):
    return max(a, Fraction(1, 4)) - abs(a - b)


def coefficient_escapes(kernels, steps, order=6):
    """Names of functions whose Taylor coefficients in time miss those of mpmath, for x' = x, y' = f(x) / x."""
    layout, escaped, x0 = steps.Layout(0, 2), set(), 0.375
    for name in FUNCTIONS:
        graph = Graph()
        x = graph.load(1, 0)
        program = OperationRows(graph, [(1, 0), (1, 1), (2, 0)], [x, div(unary(name, x), x), 1.0], {})
        X = layout.box(np.array([x0, 0.0, 0.0]), np.array([x0, 0.0, 0.0]))
        c = np.zeros((3, order + 1, X.shape[1]))
        kernels.series_many(
            program.rows, program.constants, program.rates, program.further, X, order, layout.symbols,
            layout.quadratic, layout.symbols + 1, False, c, np.zeros((0, X.shape[1])),
        )  # fmt: skip
        exact = mpmath.taylor(
            lambda t, name=name: getattr(mpmath, name)(x0 * mpmath.exp(t)) / (x0 * mpmath.exp(t)), 0, order
        )
        for k in range(order):
            off = abs(mpmath.mpf(c[1, k + 1, 0]) - exact[k] / (k + 1))
            if not off <= c[1, k + 1, -3] + 1e-30 or c[1, k + 1, -3] > 1e-11:
                escaped.add(name)
    return escaped


def frame_escapes(steps, seed=0, trials=20):
    """Whether a new frame misses a point of the set that it encloses, or is more than a little larger than it."""
    rng, escaped, unmoved = np.random.default_rng(seed), set(), lambda t, y: [0.0, 0.0]
    for trial in range(trials):
        enclosure = steps.Enclosure(
            dynamics(steps, unmoved, 2), np.array([0.0, 0.0, 0.0]), np.array([1.0, 1.0, 0.0]), 2
        )
        layout = enclosure.layout
        total = rng.normal(size=(2, layout.coefficients)) * 10.0 ** -rng.integers(0, 5)
        total[:, layout.defect] = total[:, layout.time] = 0.0
        free = layout.group(int(rng.integers(1, layout.recent + 1))) if trial % 4 < 2 else None
        if free is not None:
            total[:, free] = 0.0
        err = (0.0, 0.1)[trial % 2] * rng.uniform(size=2)
        X = enclosure._reframed(total.copy(), err)
        i, j = np.triu_indices(layout.quadratic)
        for _ in range(64):
            e = rng.choice([-1.0, 1.0], layout.symbols)
            point = total[:, 0] + total[:, 1 : 1 + layout.symbols] @ e
            point = point + total[:, 1 + layout.symbols :] @ (e[i] * e[j]) + err * rng.choice([-1.0, 1.0], 2)
            new = layout.frame if free is None else free
            e[new.start - 1 : new.stop - 1 if free else None] = 0.0
            kept = X[:2, 0] + X[:2, 1 : 1 + layout.symbols] @ e + X[:2, 1 + layout.symbols : -4] @ (e[i] * e[j])
            if not _is_in(X[:2, new], point - kept):
                escaped.add("frame")
    return escaped


def _is_in(B, x):
    """Whether x = B s with |s| <= 1; B is invertible, or zero."""
    s = np.linalg.solve(B, x) if B.any() else x / 1e-12
    return (np.abs(s) <= 1.0 + 1e-9).all()


def dynamics(steps, f, n):
    """y' = f(t, y) on n states, from a function on symbols."""
    graph = Graph()
    y, t = [graph.load(1, k) for k in range(n)], graph.load(2, 0)
    rows = OperationRows(graph, [*((1, k) for k in range(n)), (2, 0)], [*f(t, y), 1.0], {})
    return steps.Dynamics(rows, n)


def tube(steps, f, lower, upper, t_end, order=6, step=2.0**-3):
    """Segments up to t_end."""
    lower, upper = np.append(np.asarray(lower, float), 0.0), np.append(np.asarray(upper, float), 0.0)
    enclosure = steps.Enclosure(dynamics(steps, f, len(lower) - 1), lower, upper, order)
    return enclosure.advance(t_end, step, t_end * 2.0**-12)[0]


def pendulum(t, y):
    return [y[1], neg(unary("sin", y[0]))]


def forced(t, y):
    """A pendulum with tanh friction and a torque that depends on time, limited where a branch is not decided."""
    torque = binary("min", unary("cos", t), add(mul(y[1], 0.5), 0.6))
    return [y[1], sub(sub(torque, unary("tanh", y[1])), unary("sin", y[0]))]


def saturated(t, y):
    return [y[1], binary("max", binary("min", sub(mul(y[0], -4.0), y[1]), 0.5), -0.5)]


def quadratic(t, y):
    return [sub(mul(y[0], y[1]), y[0]), sub(1.0, mul(y[0], y[0]))]


SYSTEMS = {
    "pendulum": (pendulum, lambda t, y: [y[1], -np.sin(y[0])]),
    "forced": (forced, lambda t, y: [y[1], np.minimum(np.cos(t), 0.5 * y[1] + 0.6) - np.tanh(y[1]) - np.sin(y[0])]),
    "saturated": (saturated, lambda t, y: [y[1], np.clip(-4.0 * y[0] - y[1], -0.5, 0.5)]),
    "quadratic": (quadratic, lambda t, y: [y[0] * y[1] - y[0], 1.0 - y[0] ** 2]),
}


def motion_escapes(steps, radius, t_end=1.5, samples=64, seed=0, order=6, step=2.0**-3):
    """Names of systems of which a sampled motion, integrated to 1e-12, leaves the tube, or whose tube ends early."""
    rng, escaped = np.random.default_rng(seed), set()
    for name, (f, g) in SYSTEMS.items():
        centre = np.array([0.8, 0.3])
        x0 = centre + radius * np.vstack(
            [rng.uniform(-1, 1, (samples // 2, 2)), rng.choice([-1.0, 1.0], (samples // 2, 2))]
        )
        segments = tube(steps, f, centre - radius, centre + radius, t_end, order, step)
        if not segments or segments[-1].end < t_end:
            escaped.add(name)
            continue

        def rates(t, y, g=g):
            return np.ravel(g(t, y.reshape(2, -1)))

        times = np.unique([t for s in segments for t in np.linspace(s.start, s.end, 5)])
        solution = solve_ivp(rates, (0.0, t_end), x0.T.ravel(), "DOP853", times, rtol=1e-12, atol=1e-13, max_step=0.01)
        x, tolerance = solution.y.reshape(2, samples, -1), 1e-10 if name in ("pendulum", "quadratic") else 1e-6
        for s in segments:
            lo, hi = s.hull
            inside = x[:, :, (times >= s.start) & (times <= s.end)]
            at_end = x[:, :, times == s.end]
            for a, b, y in ((lo, hi, inside), (s.lo, s.hi, at_end)):
                if (y < (a[:2] - tolerance)[:, None, None]).any() or (y > (b[:2] + tolerance)[:, None, None]).any():
                    escaped.add(name)
    return escaped


def held_escapes(steps, samples=48, seed=0):
    """Whether sampled motions of a pendulum under a held command of a small network leave its tube, in 8 samples."""
    rng, dt, escaped = np.random.default_rng(seed), 0.25, set()
    W, w = rng.normal(size=(6, 2)), rng.normal(size=6)

    def network(q, v):
        total = 0.0
        for k, (a, b) in enumerate(W.tolist()):
            s = add(add(mul(q, a), mul(v, b)), 0.1 * k - 0.2)
            total = add(total, mul(binary("max", s, 0.0) if k < 3 else unary("tanh", s), float(w[k])))
        return total

    def command(x):
        s = W @ x + 0.1 * np.arange(6)[:, None] - 0.2
        return w @ np.vstack([np.maximum(s[:3], 0.0), np.tanh(s[3:])])

    graph = Graph()
    q, v, u, t = (graph.load(*key) for key in HELD_INPUTS)
    rows = OperationRows(graph, HELD_INPUTS, [v, sub(u, unary("sin", q)), 0.0, 1.0], {})
    law = OperationRows(graph, HELD_INPUTS, [], {}, [add(network(q, v), mul(t, 0.1))])
    dynamics = steps.Dynamics(rows, 3, law, 1, dt)
    centre, radius, end = np.array([0.4, -0.2]), 0.1, 8 * dt
    enclosure = steps.Enclosure(dynamics, dynamics.start(centre - radius), dynamics.start(centre + radius), 5)
    segments = enclosure.until(end, 2.0**-3, 2.0**-12)
    if segments[-1].end != end:
        return {"end"}
    x = centre[:, None] + radius * rng.choice([-1.0, 1.0, 0.3], (2, samples))
    for k in range(8):
        held = command(x) + 0.1 * k * dt
        inside = [s for s in segments if s.start >= k * dt and s.end <= (k + 1) * dt]
        times = np.unique([t for s in inside for t in (s.start, 0.5 * (s.start + s.end), s.end)])

        def rates(t, y, held=held):
            y = y.reshape(2, -1)
            return np.concatenate([y[1], held - np.sin(y[0])])

        y = solve_ivp(rates, times[[0, -1]], x.ravel(), "DOP853", times, rtol=1e-12, atol=1e-13).y.reshape(
            2, samples, -1
        )
        for s in inside:
            during, (lo, hi) = y[:, :, (times >= s.start) & (times <= s.end)], s.hull
            pairs = [(lo[:2], hi[:2], during), (s.lo[:2], s.hi[:2], y[:, :, times == s.end])]
            if any((p < a[:, None, None] - 1e-10).any() or (p > b[:, None, None] + 1e-10).any() for a, b, p in pairs):
                escaped.add("motion")
            if (held < lo[2] - 1e-10).any() or (held > hi[2] + 1e-10).any():
                escaped.add("command")
        x = y[:, :, -1]
    return escaped


def closed_form_escapes(steps, order=10):
    """Whether the tube of one pendulum motion misses Jacobi's elliptic functions, to fifty digits."""
    escaped, angle = set(), 1.25
    k = mpmath.sin(mpmath.mpf(angle) / 2)
    for step in (2.0**-2, 2.0**-4):
        for s in tube(steps, pendulum, [angle, 0.0], [angle, 0.0], 2.0, order, step):
            exact = 2 * mpmath.asin(k * mpmath.ellipfun("cd", mpmath.mpf(s.end), m=k * k))
            if not s.lo[0] <= exact <= s.hi[0] or s.hi[0] - s.lo[0] > 1e-9 or not math.isfinite(s.hi[1]):
                escaped.add(f"pendulum at {s.end}")
    return escaped
