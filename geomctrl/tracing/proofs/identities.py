"""Exact tests of identities: whether two traced expressions are the same function.

A trace is a rational function of its inputs and of the sines, cosines and other values in it. It is evaluated at random
residues modulo a large prime, without rounding. Two different functions agree by chance with probability at most their
degree divided by the prime (Schwartz 1980, Zippel 1979). Floating-point numbers are exact fractions.

sin x and cos x of the same x lie on the unit circle; no other relation is used. An identity that is confirmed holds for
all arguments, but one that needs, for example, sin 2x = 2 sin x cos x is not recognised.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from geomctrl.tracing.operations import BINARY, ODD, UNARY
from geomctrl.tracing.symbols import Graph

from .substitution import COMPARED, applied

PRIME = 2**521 - 1
TRIALS = 2

Residue = int


def identical(
    graph: Graph, pairs: Sequence[tuple[Any, Any]], numbers: Mapping[tuple[int, int], Any], seed: int = 0
) -> bool:
    """Whether both sides of every pair are the same function of the inputs.

    numbers: values, or residues (`Modular`), of fixed inputs (array, index); the others are free. Branches on fixed
    inputs are resolved; branches on free inputs are treated as unknown functions. False where a side is undefined.
    """
    ends = [graph.operand(x) for pair in pairs for x in pair]
    order = graph.needed(ends)
    fixed = _fixed(graph, order, numbers)
    for trial in range(TRIALS):
        residues = _Residues(graph, numbers, fixed, random.Random(seed * TRIALS + trial))
        try:
            values = residues.of(order)
        except (ArithmeticError, ValueError):  # a division by zero, an infinite constant
            return False
        if any(values[a] != values[b] for a, b in zip(ends[::2], ends[1::2])):
            return False
    return True


def chance(graph: Graph, pairs: Sequence[tuple[Any, Any]]) -> float:
    """log10 of the probability that `identical` accepts two different functions."""
    ends = [graph.operand(x) for pair in pairs for x in pair]
    degree: dict[int, int] = {}
    for index in graph.needed(ends):
        op, *rest = graph.nodes[index]
        degree[index] = 2 if op in ("load", "const") or op in UNARY or op in BINARY else sum(degree[x] for x in rest)
    worst = max((degree[a] + degree[b] for a, b in zip(ends[::2], ends[1::2])), default=1)
    return TRIALS * (math.log10(worst) - math.log10(PRIME)) + math.log10(max(len(pairs), 1))


def degree_in(graph: Graph, end: Any, inputs: set[int]) -> float:
    """The degree of an expression as a polynomial of those nodes; infinite if it is no polynomial or unknown."""
    index = graph.operand(end)
    degree: dict[int, float] = {}
    for k in graph.needed([index]):
        op, *rest = graph.nodes[k]
        if k in inputs:
            degree[k] = 1
        elif op in ("load", "const"):
            degree[k] = 0
        elif op in ("add", "sub", "neg"):
            degree[k] = max(degree[x] for x in rest)
        elif op == "mul":
            degree[k] = sum(degree[x] for x in rest)
        elif op == "div" and degree[rest[1]] == 0:
            degree[k] = degree[rest[0]]
        elif op == "where" and degree[rest[0]] == 0:
            degree[k] = max(degree[x] for x in rest[1:])
        else:
            degree[k] = math.inf if any(degree[x] for x in rest) else 0
    return degree[index]


class Modular(int):
    """A residue modulo PRIME as the value of an input."""


def residue(x: Any) -> Residue:
    """A number as an exact residue."""
    if isinstance(x, Modular):
        return int(x)
    f = Fraction(x)
    return f.numerator * pow(f.denominator, -1, PRIME) % PRIME


def _fixed(graph: Graph, order: Sequence[int], numbers: Mapping[tuple[int, int], Any]) -> dict[int, Any]:
    """Values of the nodes that depend on fixed numbers only, which decide branches."""
    values: dict[int, Any] = {}
    for index in order:
        op, *rest = graph.nodes[index]
        if op == "const":
            if rest[0] != "nan":
                values[index] = rest[0]
        elif op == "load":
            x = numbers.get((rest[0], rest[1]))
            if x is not None and not isinstance(x, Modular):
                values[index] = float(x)
        elif all(x in values for x in rest):
            try:
                values[index] = applied(op, [values[x] for x in rest])
            except (ArithmeticError, ValueError):
                continue
    return values


class _Residues:
    """One evaluation at random residues."""

    def __init__(self, graph: Graph, numbers: Mapping, fixed: Mapping[int, Any], rng: random.Random):
        self.graph, self.numbers, self.fixed, self.rng = graph, numbers, fixed, rng
        self.memory: dict[Any, Any] = {}

    def of(self, order: Sequence[int]) -> dict[int, Residue]:
        values: dict[int, Residue] = {}
        for index in order:
            op, *rest = self.graph.nodes[index]
            values[index] = self.value(index, op, rest, values)
        return values

    def value(self, index: int, op: str, rest: list, values: dict[int, Residue]) -> Residue:
        if op == "const":
            return self.unknown_value("nan") if rest[0] == "nan" else residue(rest[0])
        if op == "load":
            x = self.numbers.get((rest[0], rest[1]))
            return self.unknown_value(("load", *rest)) if x is None else residue(x)
        if op in COMPARED or op in ("and", "or", "not"):
            return self.unknown_value((op, *(values[x] for x in rest)))
        a = [values[x] for x in rest]
        match op:
            case "add":
                return (a[0] + a[1]) % PRIME
            case "sub":
                return (a[0] - a[1]) % PRIME
            case "mul":
                return a[0] * a[1] % PRIME
            case "div":
                return a[0] * pow(a[1], -1, PRIME) % PRIME
            case "neg":
                return -a[0] % PRIME
            case "where" if rest[0] in self.fixed:
                return a[1] if self.fixed[rest[0]] else a[2]
            case "min" | "max" if rest[0] in self.fixed and rest[1] in self.fixed:
                first = (self.fixed[rest[0]] <= self.fixed[rest[1]]) == (op == "min")
                return a[0] if first else a[1]
            case "sin" | "cos":
                return self.circle(a[0])[op == "cos"]
        if op in ODD and a[0] > PRIME // 2:
            return -self.unknown_value((op, PRIME - a[0])) % PRIME if a[0] else 0
        return self.unknown_value((op, *a))

    def unknown_value(self, key: Any) -> Residue:
        """The value of an unknown function: random, but the same for equal arguments."""
        if key not in self.memory:
            self.memory[key] = self.rng.randrange(1, PRIME)
        return self.memory[key]

    def circle(self, x: Residue) -> tuple[Residue, Residue]:
        """(sin x, cos x), a random point of the unit circle."""
        if x == 0:
            return 0, 1
        if x > PRIME // 2:
            s, c = self.circle(PRIME - x)
            return -s % PRIME, c
        t = self.unknown_value(("circle", x))
        scale = pow(1 + t * t, -1, PRIME)
        return 2 * t * scale % PRIME, (1 - t * t) * scale % PRIME
