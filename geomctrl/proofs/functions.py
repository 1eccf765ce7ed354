"""A user's function f(x) in plain Python and numpy, traced."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from geomctrl.compiler.arrays import SymbolArray, has_symbols, requirements, symbol_array
from geomctrl.compiler.stand_ins import numpy_on_symbols
from geomctrl.compiler.symbols import Condition, Graph, both, is_symbol
from geomctrl.compiler.tracing import Trace
from geomctrl.compiler.untraceable import UntraceableError, heard
from geomctrl.errors import ArgumentError, raised_in

PARTIAL = ("div", "sqrt", "log", "asin", "acos", "tan")  # without a value somewhere


def traced(f: Callable[[Any], Any], n: int, name: str = "f") -> Trace:
    """The trace of f(x), x an array of n numbers, which answers a number or an array of numbers.

    Inputs: array 1, x. Outputs: what f answers, one number below the other. The flag: what f relies on, such as that
    np.linalg.solve has a solution, or that what it computes and multiplies by zero has a value. Raises UntraceableError
    with the file and line that asks what a symbol can not know, and ArgumentError, naming f `name`, where it answers no
    numbers.
    """
    graph = Graph()
    x = symbol_array([graph.load(1, k) for k in range(n)], (n,))
    x.setflags(write=False)
    with requirements() as required, numpy_on_symbols(getattr(f, "__globals__", {})):
        found = _called(f, x, name)
    ends = [graph.operand(y) for y in _numbers(found, name)]
    good: Any = True
    for condition in required:
        good = both(good, condition)
    if good is False:
        raise ArgumentError(f"{name}: expected a function that has a value, got one that has none anywhere")
    flag = graph.operand(good) if isinstance(good, Condition) else None
    ends = _where_all_has_a_value(graph, ends)
    return Trace(graph, (n,), tuple(ends), (len(ends),), flag)


def _where_all_has_a_value(graph: Graph, ends: list[int]) -> list[int]:
    """`ends`, without a value where something computed has none that they do not depend on: 0 log(x) is folded."""
    used = set(graph.needed(ends))
    dropped = [k for k in range(len(graph.nodes)) if k not in used and graph.nodes[k][0] in PARTIAL]
    for k in dropped:
        ends = [graph.node("where", graph.node("le", k, k), end, graph.operand(math.nan)) for end in ends]
    return ends


def _called(f: Callable[[Any], Any], x: SymbolArray, name: str) -> Any:
    """f(x); what it raises on symbols names the line."""
    try:
        with heard():
            return f(x)
    except UntraceableError as error:
        raise UntraceableError(f"{name} does not trace: {error}") from error
    except Exception as error:
        frame = raised_in(error) or traceback.extract_tb(error.__traceback__)[-1]
        where = f"in {frame.filename}, line {frame.lineno}"
        raise UntraceableError(f"{name} does not trace: {type(error).__name__}: {error!s:.200}, {where}") from error


def _numbers(found: Any, name: str) -> list[Any]:
    """What f has answered, as symbols and floats."""
    expected = f"{name}: expected a function that answers numbers"
    if isinstance(found, (tuple, list)):
        found = np.array([y.item() if isinstance(y, np.ndarray) and y.size == 1 else y for y in found], object)
    if not has_symbols(found) and not isinstance(found, (int, float, np.ndarray, np.number)):
        raise ArgumentError(f"{expected}, got {found!r:.80}")
    numbers = np.asarray(found, object).ravel().tolist()
    for y in numbers:
        if isinstance(y, bool) or not (is_symbol(y) or isinstance(y, (int, float, np.number))):
            raise ArgumentError(f"{expected}, got {'a condition' if isinstance(y, Condition) else repr(y)[:80]}")
    if not numbers:
        raise ArgumentError(f"{expected}, got none")
    return [y if is_symbol(y) else float(y) for y in numbers]
