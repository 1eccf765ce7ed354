"""Points of a claim's domain: f and its slopes in floating point, ascent to large f, and exact values."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from geomctrl.errors import ArgumentError
from geomctrl.tracing.symbols import Condition, Graph, Symbol, where
from geomctrl.tracing.traces import Trace

from .claims import Claim, placed
from .enclosure import compiled
from .forms import slopes_of

STARTS, ITERATIONS = 64, 60


class Sampler:
    """f, the constraints and their slopes at many points in floating point, for searching only."""

    def __init__(self, claim: Claim):
        self.claim, self.rows = claim, 1 + claim.constraints
        own, flag = claim.trace.graph, claim.trace.flag
        slopes = [slopes_of(claim, index) for index in claim.trace.outputs]
        ends = [*claim.trace.outputs, *(index for row in slopes for index in row)]
        if flag is not None:
            ends = [own.operand(where(Condition(own, flag), Symbol(own, index), math.nan)) for index in ends]
        graph = Graph()
        column = {x: (1, k) for k, x in enumerate(claim.coordinates)}
        copied = placed(own, ends, graph, lambda a, k: column.get((a, k), (a, k)))
        self._run = compiled(Trace(graph, (claim.n,), tuple(copied), (len(copied),), None), claim.numbers)

    def __call__(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(values (points, 1 + constraints), slopes (points, 1 + constraints, n))."""
        out = self._run(np.ascontiguousarray(x, float))[0]
        return out[:, : self.rows], out[:, self.rows :].reshape(len(x), self.rows, self.claim.n)


def worst_points(claim: Claim, rng: np.random.Generator) -> np.ndarray:
    """Points of the domain with large f, largest first, found by ascent from random points; there may be none.

    If constraints are violated, the search descends on the worst of them; if one is nearly violated, it moves along its
    surface. Raises ArgumentError if f is nan at a random point.
    """
    sample, width = Sampler(claim), claim.hi - claim.lo
    x = claim.lo + rng.random((STARTS, claim.n)) * width
    x[0] = 0.5 * claim.lo + 0.5 * claim.hi
    step = np.full(len(x), 0.1)
    with np.errstate(all="ignore"):
        values, slopes = sample(x)
        _require_numbers(values, x)
        merit, direction = _merit(values, slopes, width)
        for _ in range(ITERATIONS):
            trial = np.clip(x + step[:, None] * direction * width, claim.lo, claim.hi)
            new, new_direction = _merit(*sample(trial), width)
            better = new > merit
            x[better], merit[better], direction[better] = trial[better], new[better], new_direction[better]
            step *= np.where(better, 1.6, 0.4)
    order = np.argsort(-merit)
    return x[order[merit[order] > FEASIBLE]]


def _require_numbers(values: np.ndarray, x: np.ndarray) -> None:
    missing = np.isnan(values).any(axis=1) & ~(values[:, 1:] > 0.0).any(axis=1)
    if missing.any():
        raise ArgumentError(
            "f: expected a number everywhere in the domain, and of constraints too, got nan at"
            f" x = {np.array2string(x[np.argmax(missing)], separator=', ')}"
        )


FEASIBLE = -1e200  # merits above this are values of f


def _merit(values: np.ndarray, slopes: np.ndarray, width: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(f, or far below it if a constraint is violated; the direction of the search in units of the domain's widths)."""
    slopes = np.nan_to_num(slopes * width)
    f, direction = np.nan_to_num(values[:, 0], nan=-1e100), slopes[:, 0]
    f = np.clip(f, -1e100, 1e100)
    if values.shape[1] > 1:
        rows = np.arange(len(values))
        worst = np.nan_to_num(values[:, 1:], nan=np.inf).argmax(axis=1)
        g, normal = np.nan_to_num(values[rows, 1 + worst], nan=1e50), slopes[rows, 1 + worst]
        square = np.maximum((normal**2).sum(axis=1), 1e-300)
        climb = (direction * normal).sum(axis=1)
        near = (g > -0.1 * np.sqrt(square)) & (climb > 0.0)
        direction = direction - np.where(near, climb / square, 0.0)[:, None] * normal
        broken = g > 0.0
        direction = np.where(broken[:, None], -normal, direction)
        f = np.where(broken, -1e250 * (1.0 + np.minimum(g, 1e50)), f)
    size = np.abs(direction).max(axis=1, keepdims=True)
    return f, np.where(size > 0.0, direction / np.where(size > 0.0, size, 1.0), 0.0)


# --- exact values ------------------------------------------------------------------------------------------------

RATIONAL: dict[str, Any] = {
    "neg": lambda a: -a,
    "abs": abs,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "min": min,
    "max": max,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "and": lambda a, b: a and b,
    "not": lambda a: not a,
}


def exact_values(claim: Claim, x: np.ndarray) -> list[Fraction] | None:
    """f and the constraints at x in rational arithmetic; None if the code is not rational, or they are undefined."""
    graph, trace = claim.trace.graph, claim.trace
    column = {key: Fraction(float(y)) for key, y in zip(claim.coordinates, x)}
    values: dict[int, Any] = {}
    for index in graph.needed(trace.ends):
        op, *rest = graph.nodes[index]
        if op == "load":
            values[index] = column[*rest] if tuple(rest) in column else Fraction(float(claim.numbers[rest[1]]))
        elif op == "const":
            if isinstance(rest[0], str) or not math.isfinite(rest[0]):
                return None
            values[index] = rest[0] if isinstance(rest[0], bool) else Fraction(rest[0])
        elif op == "where":
            values[index] = values[rest[1]] if values[rest[0]] else values[rest[2]]
        elif op in RATIONAL and not (op == "div" and values[rest[1]] == 0):
            values[index] = RATIONAL[op](*(values[k] for k in rest))
        else:
            return None
    if trace.flag is not None and not values[trace.flag]:
        return None
    return [values[index] for index in trace.outputs]
