"""`Claim`: the statement f(x) <= 0 for all x of a box that satisfy constraints, for traced functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, flag, function, listed, number, shown
from geomctrl.errors import ArgumentError
from geomctrl.tracing.symbols import Graph
from geomctrl.tracing.tracer import traced
from geomctrl.tracing.traces import Trace

from .enclosure import Input, inputs_of


@dataclass(frozen=True, eq=False)
class Claim:
    """f(x) <= 0 (`strict`: < 0) for every x with lo <= x <= hi and g(x) <= 0 for every constraint g.

    `trace`: its first output is f, the others are the constraints. `coordinates`: the inputs (array, index) that form
    x; `numbers`: array 0, whose other elements are constant. `lo`, `hi`: (n,).
    """

    trace: Trace
    lo: np.ndarray
    hi: np.ndarray
    coordinates: tuple[Input, ...]
    numbers: np.ndarray
    strict: bool = False

    @property
    def n(self) -> int:
        return len(self.lo)

    @property
    def constraints(self) -> int:
        return len(self.trace.outputs) - 1

    @property
    def relation(self) -> str:
        return "<" if self.strict else "<="

    def decided(self, upper: np.ndarray, level: float = 0.0) -> np.ndarray:
        """Whether upper bounds of f prove it; nan proves nothing."""
        return upper < level if self.strict else upper <= level


class Ellipsoid:
    """{x: sum (x_i - centre_i)^2 / semi_axes_i^2 < 1}, a neighbourhood that a claim excludes.

    Parameters
    ----------
    semi_axes : float or array_like, shape (n,)
        Positive numbers; one number for a ball. Infinite for coordinates that do not matter.
    centre : array_like, shape (n,), optional
        Default: the origin.

    Raises
    ------
    ArgumentError
        For other values.

    Examples
    --------
    >>> from geomctrl import testing
    >>> testing.Ellipsoid([0.1, 0.2])
    Ellipsoid([0.1, 0.2], None)
    """

    def __init__(self, semi_axes: ArrayLike, centre: ArrayLike | None = None):
        axes = checked("semi_axes", semi_axes, (), finite=False)
        if axes.ndim > 1 or not axes.size or not (axes > 0.0).all() or np.isinf(axes).all():
            raise ArgumentError(f"semi_axes: expected positive numbers, some of them finite, got {shown(semi_axes)}")
        self.semi_axes = axes.copy()
        self.centre = None if centre is None else checked("centre", centre, ()).copy()
        if self.centre is not None and (self.centre.ndim != 1 or axes.shape not in ((), self.centre.shape)):
            raise ArgumentError(f"centre: expected numbers, as many as semi_axes has, got {shown(centre)}")

    def __repr__(self) -> str:
        return f"Ellipsoid({self.semi_axes.tolist()}, {None if self.centre is None else self.centre.tolist()})"


def outside_of(ellipsoid: Ellipsoid, n: int) -> Callable[[Any], Any]:
    """x (n,) -> 1 - sum (x_i - centre_i)^2 / semi_axes_i^2, not positive outside."""
    weights, centre = 1.0 / ellipsoid.semi_axes**2, ellipsoid.centre
    if weights.shape not in ((), (n,)) or (centre is not None and centre.shape != (n,)):
        raise ArgumentError(f"outside: expected an Ellipsoid in {n} dimensions, got {ellipsoid}")
    terms = list(zip(np.broadcast_to(weights, (n,)).tolist(), [0.0] * n if centre is None else centre.tolist()))
    return lambda x: 1.0 - sum(w * (y - c) ** 2 for (w, c), y in zip(terms, x) if w)


def box_of(name: str, box: Any) -> tuple[np.ndarray, np.ndarray]:
    """(lo, hi) of a box from pairs (lo, hi), one per coordinate. Raises ArgumentError, naming the argument `name`."""
    pairs = checked(name, box, (), finite=False)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
        raise ArgumentError(f"{name}: expected pairs (lo, hi), shape (n, 2), got {pairs.shape}")
    for k, (lo, hi) in enumerate(pairs.tolist()):
        if not (abs(lo) < np.inf and abs(hi) < np.inf):
            raise ArgumentError(f"{name}: expected finite sides, got ({lo}, {hi}) for coordinate {k}")
        if lo > hi:
            raise ArgumentError(f"{name}: expected lo <= hi, got ({lo}, {hi}) for coordinate {k}: an empty domain")
    return pairs[:, 0].copy(), pairs[:, 1].copy()


def claim_of(
    f: Callable[[Any], Any] | Trace,
    box: Any,
    *,
    outside: Ellipsoid | float | None = None,
    where: Sequence[Callable[[Any], Any]] | Callable[[Any], Any] = (),
    strict: bool = False,
) -> Claim:
    """A claim about user functions of x (n,), or about a trace whose outputs are f and its constraints.

    Raises ArgumentError for an empty or infinite box and functions that do not return one number, UntraceableError for
    functions that can not be traced.
    """
    lo, hi = box_of("box", box)
    n = len(lo)
    if isinstance(f, Trace):
        trace, inputs = f, tuple(inputs_of(f))
        if len(inputs) != n:
            raise ArgumentError(f"box: expected {len(inputs)} pairs, one for each coordinate, got {n}")
    else:
        trace, inputs = one_number(traced(function("f", f, "f(x)"), (n,)).trace, "f"), tuple((1, k) for k in range(n))
    wanted = [where] if callable(where) else listed("where", where)
    if outside is not None:
        ball = outside if isinstance(outside, Ellipsoid) else Ellipsoid(number("outside", outside, *POSITIVE))
        wanted.append(outside_of(ball, n))
    for k, g in enumerate(wanted):
        name = f"where[{k}]"
        trace = joined(trace, one_number(traced(function(name, g, "g(x)"), (n,), name=name).trace, name), inputs)
    return Claim(trace, lo, hi, inputs, np.zeros(0), flag("strict", strict))


POSITIVE = "a positive number, the radius of a ball about 0, or an Ellipsoid", lambda x: x > 0.0


def one_number(trace: Trace, name: str) -> Trace:
    if len(trace.outputs) != 1:
        raise ArgumentError(f"{name}: expected a function that returns one number, got {len(trace.outputs)}")
    return trace


def joined(first: Trace, second: Trace, coordinates: Sequence[Input]) -> Trace:
    """A trace with the outputs of both, nan where undefined; `second` is a function of `coordinates`."""
    graph = Graph()
    ends = placed(first.graph, first.ends, graph, lambda array, k: (array, k))
    more = placed(second.graph, second.ends, graph, lambda _, k: coordinates[k])
    outputs = (*_with_flag(graph, ends, len(first.outputs)), *_with_flag(graph, more, len(second.outputs)))
    return replace(first, graph=graph, outputs=outputs, sizes=(len(outputs),), flag=None)


def _with_flag(graph: Graph, ends: list[int], outputs: int) -> list[int]:
    """The outputs, nan where the flag after them (if any) does not hold."""
    if len(ends) == outputs:
        return ends
    return [graph.node("where", ends[-1], index, graph.operand(math.nan)) for index in ends[:-1]]


def placed(graph: Graph, ends: Sequence[int], new: Graph, place: Callable[[int, int], Input]) -> list[int]:
    """Copies of `ends` and their operands in the graph `new`, with inputs (array, index) mapped by `place`."""
    copied: dict[int, int] = {}
    for index in graph.needed(ends):
        op, *rest = graph.nodes[index]
        rest = place(*rest) if op == "load" else rest if op == "const" else [copied[x] for x in rest]
        copied[index] = new.node(op, *rest)
    return [copied[index] for index in ends]
