"""Parts of traces of closed loops: numbers and arrays as outputs, the rates of a plant."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from geomctrl.tracing.arrays import SymbolArray, entered, symbol_array
from geomctrl.tracing.symbols import Condition, Graph, Symbol, UntraceableError, both, is_symbol, where
from geomctrl.tracing.traces import Trace

from .law_trace import OF_STATE, named
from .traced_loop import Column


def trace_of(graph: Graph, inputs: tuple[int, ...], outputs: list[list[Any]], required: list) -> Trace:
    good: Any = functools.reduce(both, required, True)
    if good is False:
        raise UntraceableError("a term of the robot is undefined at every state")
    flag = graph.operand(good) if isinstance(good, Condition) else None
    ends = tuple(graph.operand(one_number(x)) for y in outputs for x in y)
    return Trace(graph, inputs, ends, tuple(map(len, outputs)), flag)


def plant_rate(loop: Any, plant: Any, t: Any, y: SymbolArray, tau: Any) -> list[Any]:
    """(v, vdot, x', power) of a plant (a clone) in the state y of the loop."""
    (q, v, _), x = loop.split(y), loop.plant_state(y)
    size = len(loop.plant_rates) if x is not None else 2 * loop.plant.robot.nv + 1
    return rate_of(plant, t, q, v, x, tau, size)


def rate_of(plant: Any, t: Any, q: Any, v: Any, x: Any, tau: Any, size: int) -> list[Any]:
    """(v, vdot, x', power) of a plant (a clone), `size` numbers."""
    out = symbol_array([0.0] * size, (size,))
    state = () if x is None else (x,)
    named(plant, lambda: plant.rate(t, q, v, as_symbols(tau), out, *state))
    return out.tolist()


def signals_of(outputs: dict[str, Any]) -> dict[tuple[str, str], Any]:
    return {("signal", name): x for name, x in outputs.items() if name not in ("tau", *OF_STATE)}


def columns_of(arrays: dict[tuple[str, str], Any], first: int) -> tuple[list[Column], list[Any]]:
    """Consecutive columns, and their numbers."""
    columns, numbers = [], []
    for (kind, name), x in arrays.items():
        columns.append(Column(kind, name, first + len(numbers), np.shape(x)))
        numbers += as_symbols(x).ravel().tolist()
    return columns, numbers


def entries_of(x: Any) -> list | None:
    """A copy of the array's current contents, because it may be modified later."""
    return x.view(np.ndarray).ravel().tolist() if isinstance(x, np.ndarray) else None


def same_entries(a: list | None, b: list | None) -> bool:
    return a is b or (
        a is not None
        and b is not None
        and all(x is y or (type(x) is type(y) is float and x == y) for x, y in zip(a, b, strict=True))
    )


def as_symbols(x: Any) -> Any:
    return x if isinstance(x, SymbolArray) else entered(np.array(x, object))


def one_number(x: Any) -> Any:
    """A number or symbol, also from an array of one; a condition as 1 or 0."""
    x = x.item() if isinstance(x, np.ndarray) else x
    if isinstance(x, Condition):
        return where(x, 1.0, 0.0)
    return x if is_symbol(x) else float(x)


def as_symbol(graph: Graph, x: float) -> Symbol:
    return Symbol(graph, graph.constant(x))
