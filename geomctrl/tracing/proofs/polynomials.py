"""Expansion of traced expressions into polynomials in which each power product occurs once.

Intervals of sin^2 + cos^2, or of terms that cancel, are too wide. A polynomial in inputs, sines and cosines in which
sin^2 is replaced by 1 - cos^2 has neither. Coefficients are exact fractions until they are written as sums of floats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from geomctrl.tracing.symbols import Graph, Symbol, add, mul, sub, unary

MAX_PRODUCTS, MAX_TERMS, MAX_FLOATS = 20_000, 1_000, 8  # products of terms; terms of a result; floats of a coefficient

ZERO = Fraction(0)
Polynomial = dict[tuple[int, ...], Fraction]  # exponents of x, sines and cosines


def expanded(
    graph: Graph, end: Any, x: Mapping[int, float], angles: Sequence[int], numbers: Mapping[int, float],
    constant: Callable[[float], Any],
) -> Any:  # fmt: skip
    """`end` as a polynomial in x - origin and in sines and cosines of the angles; None if it is none, or a long one.

    x: nodes of inputs, and their origins. angles: nodes of other inputs. numbers: values of all others. constant:
    returns an input with a value; constants of the graph would be folded with rounding when it is differentiated.
    """
    expansion = _Expansion(graph, x, angles, numbers)
    try:
        terms = expansion.of(graph.operand(end))
        return expansion.written(terms, constant) if len(terms) <= MAX_TERMS else None
    except (ValueError, KeyError, ZeroDivisionError, OverflowError):
        return None


class _Expansion:
    def __init__(self, graph: Graph, x: Mapping[int, float], angles: Sequence[int], numbers: Mapping[int, float]):
        self.graph, self.x, self.angles, self.numbers = graph, x, angles, numbers
        count = len(x) + 2 * len(angles)
        self.one = (0,) * count
        self.units = [tuple(int(i == k) for i in range(count)) for k in range(count)]
        self.products = 0

    def of(self, end: int) -> Polynomial:
        """The terms of a node. Raises ValueError if it is no polynomial or takes too long."""
        graph, n, m = self.graph, len(self.x), len(self.angles)
        values: dict[int, Polynomial] = {}
        for k, (node, origin) in enumerate(self.x.items()):
            values[node] = _cleaned({self.units[k]: Fraction(1), self.one: Fraction(origin)})
        for k, node in enumerate(self.angles):
            for shift, op in ((0, "sin"), (m, "cos")):
                values[graph.node(op, node)] = {self.units[n + shift + k]: Fraction(1)}
        for k in graph.needed([end]):
            if k not in values and k not in self.angles:
                op, *rest = graph.nodes[k]
                values[k] = self.applied(k, op, rest, values)
        return values[end]

    def applied(self, node: int, op: str, rest: list[Any], values: dict[int, Polynomial]) -> Polynomial:
        if op in ("const", "load"):
            return _cleaned({self.one: Fraction(rest[0] if op == "const" else self.numbers[node])})
        a, *b = (values[k] for k in rest)
        match op:
            case "add" | "sub":
                sign = 1 if op == "add" else -1
                return _cleaned({k: a.get(k, ZERO) + sign * b[0].get(k, ZERO) for k in {**a, **b[0]}})
            case "neg":
                return {k: -c for k, c in a.items()}
            case "mul":
                return self.product(a, b[0])
            case "div" if b[0].keys() == {self.one}:
                return {k: c / b[0][self.one] for k, c in a.items()}
        raise ValueError(op)

    def product(self, a: Polynomial, b: Polynomial) -> Polynomial:
        self.products += len(a) * len(b)
        if self.products > MAX_PRODUCTS:
            raise ValueError("too many terms")
        out: Polynomial = {}
        for (k, c), (j, d) in product(a.items(), b.items()):
            for exponents, sign in self.reduced(tuple(map(int.__add__, k, j))):
                out[exponents] = out.get(exponents, 0) + sign * c * d
        return _cleaned(out)

    def reduced(self, exponents: tuple[int, ...]) -> list[tuple[tuple[int, ...], int]]:
        """A power product as a sum without squares of sines."""
        out, n, m = [(exponents, 1)], len(self.x), len(self.angles)
        for s in range(n, n + m):
            if exponents[s] == 2:
                low = [((*k[:s], 0, *k[s + 1 :]), sign) for k, sign in out]
                high = [(tuple(e + 2 * (i == s + m) for i, e in enumerate(k)), -sign) for k, sign in low]
                out = low + high
        return out

    def written(self, terms: Polynomial, constant: Callable[[float], Any]) -> Any:
        """The terms as an expression, by power products of x; None if a coefficient needs too many floats."""
        graph, n = self.graph, len(self.x)
        factors = [sub(Symbol(graph, k), origin) for k, origin in self.x.items()]
        factors += [unary(op, Symbol(graph, k)) for op in ("sin", "cos") for k in self.angles]
        waves: dict[tuple[int, ...], Any] = {}  # coefficients that depend on angles
        total: Any = 0.0
        for exponents, c in terms.items():
            if (floats := _floats(c)) is None:
                return None
            wave, of_x = _power_product(factors[n:], exponents[n:]), exponents[:n]
            for x in map(constant, floats):
                if any(exponents[n:]):
                    waves[of_x] = add(waves.get(of_x, 0.0), mul(wave, x))
                else:
                    total = add(total, mul(_power_product(factors[:n], of_x), x))
        for of_x, wave in waves.items():
            total = add(total, mul(_power_product(factors[:n], of_x), wave))
        return total


def _cleaned(terms: Mapping[tuple[int, ...], Any]) -> Polynomial:
    return {k: c for k, c in terms.items() if c}


def _power_product(factors: Sequence[Any], exponents: Sequence[int]) -> Any:
    out: Any = 1.0
    for x, e in zip(factors, exponents, strict=True):
        for _ in range(e):
            out = mul(out, x)
    return out


def _floats(c: Fraction) -> list[float] | None:
    """Floats with this sum, the largest first."""
    out = []
    while c and len(out) < MAX_FLOATS:
        out.append(float(c))
        c -= Fraction(out[-1])
    return None if c else out
