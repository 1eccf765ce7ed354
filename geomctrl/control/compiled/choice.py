"""Decides whether a closed loop runs in compiled code, and reports why if it does not."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from geomctrl.compiler import code as budget
from geomctrl.compiler.code import enabled
from geomctrl.errors import ModelError
from geomctrl.tracing.locks import renewed_lock
from geomctrl.tracing.untraceable import UntraceableError

from . import stored_traces
from .comparison import Comparison
from .law_memory import Cell, MemoryLengthError, covering
from .loop_parts import LoopParts, copied_parts, law_of
from .machine import Machine
from .settling import trace_loop
from .symbolic_copies import SymbolicCopies
from .traced_loop import TracedLoop

MIN_EVALUATIONS = 16_000  # evaluations of the law for which Python takes as long as tracing and compiling
MAX_TRACES = 64  # largest number of traces in memory


class TraceRefusal(NamedTuple):
    """The reason why a loop can not be traced."""

    reason: str
    kind: type[UntraceableError]


_lock = renewed_lock()
_traces: OrderedDict[tuple, TracedLoop | TraceRefusal] = OrderedDict()
_cells: dict[tuple, dict[str, Cell]] = {}  # known memory of laws by class
_warned: set[str] = set()


class FittedTrace(NamedTuple):
    """A trace that fits a loop; `copies` and `parts` belong to this loop's objects."""

    traced: TracedLoop
    copies: SymbolicCopies
    parts: LoopParts

    def fits(self, loop: Any, watchers: Sequence[Any]) -> bool:
        """Whether the loop's objects still agree with the trace, apart from the law's memory."""
        try:
            copies, _ = copied_parts(loop, watchers, _cells_of(loop))
            return copies.key() == self.copies.key() and np.array_equal(
                copies.values, self.copies.values, equal_nan=True
            )
        except Exception:  # user objects may raise anything
            return False


def _cells_of(loop: Any) -> dict[str, Cell]:
    """The known memory of the law of a sampled loop."""
    law = law_of(loop)
    return covering(_cells.get(_kind(law), {}), law) if loop.hold else {}


def _kind(law: Any) -> tuple[type, type]:
    return type(law), type(getattr(law, "reference", None))


def machine_for(
    loop: Any,
    record: Any,
    compiled: bool | str,
    strict: bool,
    steps: float,
    times: tuple[float, float, float],
    last: bool = True,
) -> tuple[Machine, Comparison, FittedTrace] | None:
    """The machine for a loop after its first sample, compared with Python; None if the loop runs in Python.

    steps: approximate number in the run. times: current time, end time, sampling period of the law. Raises
    UntraceableError if `compiled` is True and the loop can not be traced, or if Python computes something else; if this
    attempt is not the last one, MemoryLengthError while the law fills its buffers.
    """
    if compiled is False or (compiled == "auto" and steps * len(loop.tableau.c) < MIN_EVALUATIONS):
        return None
    if not enabled():
        if compiled is True:
            raise ModelError("compiled: the compiler is off (GEOMCTRL_COMPILER=off)")
        return None
    try:
        trace = known_trace(loop, record.watchers, strict)
        machine = Machine(trace.traced)
        machine.set_numbers([trace.copies.values])
        comparison = Comparison(loop, machine, 0, trace.parts)
        comparison.before(*times)
    except UntraceableError as error:
        if compiled is True or (not last and isinstance(error, MemoryLengthError)):
            raise
        say(f"this loop runs in Python: {error}")
        return None
    return machine, comparison, trace


def known_trace(loop: Any, watchers: Sequence[Any], strict: bool) -> FittedTrace:
    """The trace of loops like this one, cached or new. Raises UntraceableError."""
    law = law_of(loop)
    kind = _kind(law)
    try:
        cells = _cells_of(loop)
        copies, parts = copied_parts(loop, watchers, cells)
        key = copies.key()
    except UntraceableError:
        raise
    except Exception as error:  # user objects may raise anything
        raise UntraceableError(f"{type(loop.controller).__name__}: {type(error).__name__}: {error!s:.200}") from None
    sensing = () if loop.sensing is None else loop.sensing.signature
    others = loop.hold > 0, loop.tableau, loop.z_shape, strict, sensing
    key = *key, *others
    with _lock:
        own, traced = key, _traces.get(key)
        if traced is None:
            own = (*key, copies.values.tobytes())  # key of a trace in which the loop's numbers are constants
            traced = _traces.get(own)
        if traced is None:
            stored = stored_traces.Place(() if cells else key, copies.values)
            try:
                traced = stored.load() or _made(loop, watchers, strict, cells)
            except UntraceableError as error:
                kind = MemoryLengthError if isinstance(error, MemoryLengthError) else UntraceableError
                traced = TraceRefusal(str(error), kind)
            else:
                stored.keep(traced)
                more = {path: replace(cell, replaced=False) for path, cell in traced.law_memory.cells.items()}
                if more != cells:  # whether an array is replaced depends on the code, not only on the class
                    _cells[kind] = _cells.get(kind, {}) | more
                    copies, parts = copied_parts(loop, watchers, more)
                    key = *copies.key(), *others
                    own = *key, copies.values.tobytes()
        if next(reversed(_traces.values()), None) is not traced:
            key = own if isinstance(traced, TracedLoop) and traced.constant else key
            _traces[key] = traced
            _traces.move_to_end(key)
        while len(_traces) > MAX_TRACES:
            _traces.popitem(last=False)
    if isinstance(traced, TraceRefusal):
        raise traced.kind(traced.reason)
    if loop.hold:
        traced.require_signals(loop.command)
    return FittedTrace(traced, copies, parts)


def _made(loop: Any, watchers: Sequence[Any], strict: bool, cells: Mapping[str, Cell]) -> TracedLoop:
    try:
        traced = trace_loop(loop, watchers, strict=strict, cells=cells)
    except MemoryLengthError:
        raise
    except UntraceableError as error:  # perhaps the law needs the value of one of its own numbers
        try:
            traced = trace_loop(loop, watchers, strict=strict, cells=cells, constant=True)
        except UntraceableError:
            raise error from None
    operations = max(trace.operations for trace in traced.equations.all_traces)
    if operations > budget.LOOP_OPERATIONS:
        raise UntraceableError(f"{operations} operations, at most {budget.LOOP_OPERATIONS} are compiled")
    return traced


def say(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, RuntimeWarning, stacklevel=5)
