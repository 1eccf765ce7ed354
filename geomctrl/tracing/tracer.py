"""`traced`: runs a function of arrays with symbols and returns its trace."""

from __future__ import annotations

import functools
import math
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from geomctrl.errors import ArgumentError

from .arrays import has_symbols, symbol_array
from .branches import joined
from .code_identity import raised_in
from .patched_numpy import numpy_on_symbols
from .requirements import requirements
from .symbols import Condition, Graph, both, is_symbol
from .traces import Trace
from .untraceable import UntraceableError, reraise_untraceable

Shape = tuple[int, ...]


class TraceResult(NamedTuple):
    """A trace, and the shapes of the outputs; several: whether the function returns a tuple of outputs."""

    trace: Trace
    shapes: tuple[Shape, ...]
    several: bool


def traced(f: Callable[..., Any], *shapes: Shape, name: str = "f") -> TraceResult:
    """Run f with symbols: arrays of these shapes, numbers for `()`.

    Inputs of the trace are arrays 1, 2, ... Its outputs are those of f: a number, an array or list of numbers, or a
    tuple of these. Its flag contains the conditions that f needs, such as a solution of np.linalg.solve. Raises
    UntraceableError with the file and line that need the value of a symbol, and ArgumentError, naming f `name`, for
    other outputs.
    """
    graph, arguments = Graph(finite=False), []
    for k, shape in enumerate(shapes, start=1):
        x = symbol_array([graph.load(k, j) for j in range(math.prod(shape))], shape)
        x.setflags(write=False)
        arguments.append(x if shape else x.item())

    def traced_outputs() -> tuple[bool, list[np.ndarray]]:
        result = _called(f, arguments, name)
        several = isinstance(result, tuple)
        return several, [_numbers(y, name) for y in (result if several else [result])]

    with requirements() as required, numpy_on_symbols(_globals_of(f), roots=[f]):
        several, outputs = joined(traced_outputs)
    if isinstance(several, Condition):
        raise UntraceableError(f"{name} can not be traced: it returns a tuple on some paths only")
    if not any(y.size for y in outputs):
        raise ArgumentError(f"{name}: expected a function that returns numbers, got none")
    trace = finished(graph, shapes, outputs, required)
    if trace is None:
        raise ArgumentError(f"{name}: expected a function that is defined somewhere, got one that always raises")
    return TraceResult(trace, tuple(y.shape for y in outputs), several)


def finished(
    graph: Graph, shapes: Iterable[Shape], outputs: Sequence[np.ndarray], required: Iterable[Any]
) -> Trace | None:
    """The trace of arrays of symbols and numbers, under the conditions `required`; None where these never hold."""
    good: Any = functools.reduce(both, required, True)
    if good is False:
        return None
    flag = graph.operand(good) if isinstance(good, Condition) else None
    ends = tuple(graph.operand(x) for y in outputs for x in y.ravel().tolist())
    return Trace(graph, tuple(map(math.prod, shapes)), ends, tuple(y.size for y in outputs), flag)


def _globals_of(f: Any) -> dict[str, Any]:
    """The globals that a function's own code, or that of a callable object, uses."""
    while isinstance(f, functools.partial):
        f = f.func
    f = getattr(f, "__func__", f)
    return getattr(f, "__globals__", None) or getattr(type(f).__call__, "__globals__", {})


def _called(f: Callable[..., Any], arguments: list[Any], name: str) -> Any:
    """f applied to symbols; exceptions are reported with their line."""
    try:
        with reraise_untraceable():
            return f(*arguments)
    except UntraceableError as error:
        raise UntraceableError(f"{name} can not be traced: {error}") from error
    except Exception as error:
        frame = raised_in(error) or traceback.extract_tb(error.__traceback__)[-1]
        where = f"in {frame.filename}, line {frame.lineno}"
        raise UntraceableError(f"{name} can not be traced: {type(error).__name__}: {error!s:.200}, {where}") from error


def _numbers(y: Any, name: str) -> np.ndarray:
    """One output of f as an array of symbols and floats."""
    expected = f"{name}: expected a function that returns numbers"
    if isinstance(y, list):
        y = np.array([x.item() if isinstance(x, np.ndarray) and x.size == 1 else x for x in y], object)
    if not has_symbols(y) and not isinstance(y, (int, float, np.ndarray, np.number)):
        raise ArgumentError(f"{expected}, got {y!r:.80}")
    array = np.array(y, object)
    for k, x in enumerate(array.ravel().tolist()):
        if isinstance(x, bool) or not (is_symbol(x) or isinstance(x, (int, float, np.number))):
            raise ArgumentError(f"{expected}, got {'a condition' if isinstance(x, Condition) else repr(x)[:80]}")
        array.reshape(-1)[k] = x if is_symbol(x) else float(x)
    return array.view(np.ndarray)
