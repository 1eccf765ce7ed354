"""Traces a closed loop repeatedly until the trace covers the complete memory of the law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from geomctrl.tracing.untraceable import UnknownValueError, UntraceableError

from .contents import LAW, with_work_buffers
from .law_memory import Cell, MemoryGrowthError, value_at
from .loop_parts import copied_parts, law_of
from .trace import LoopTrace
from .traced_loop import TracedLoop

MAX_WHOLES = 64  # largest integer or boolean array that may be part of the law's memory


def trace_loop(
    loop: Any,
    watchers: Sequence[Any],
    *,
    strict: bool = False,
    constant: bool = False,
    cells: Mapping[str, Cell] | None = None,
) -> TracedLoop:
    """The loop's trace. loop: a `Loop` after its first sample. watchers: monitors and measures.

    constant: as for `SymbolicCopies`. cells: known memory of the law. Raises UntraceableError.
    """
    cells = dict(cells or {})
    try:
        return _settled(loop, watchers, strict, constant, cells, frozenset())
    except UntraceableError as error:  # perhaps an integer is an index: then each of its values gets a path
        ints = [path for path, cell in cells.items() if cell.may_be_whole]
        several = [ints] if len(ints) > 1 else []
        for chosen in [*([path] for path in ints), *several] if isinstance(error, UnknownValueError) else ():
            others = {path: cell for path, cell in cells.items() if path not in chosen}
            with suppress(UntraceableError):
                return _settled(loop, watchers, strict, constant, others, frozenset(chosen))
        arrays = _arrays_of_wholes(loop, cells) if loop.hold else {}
        if arrays.keys() <= cells.keys():
            raise
        with suppress(UntraceableError):
            return _settled(loop, watchers, strict, constant, cells | arrays, frozenset())
        raise


def _arrays_of_wholes(loop: Any, cells: Mapping[str, Cell]) -> dict[str, Cell]:
    """The law's integer and boolean arrays as memory, because those that it modifies can not be constants."""
    copies, _ = copied_parts(loop, (), cells)
    paths = [path for clone, path, _ in copies.filled if path.startswith(LAW) and _of_wholes(clone)]
    arrays = {}
    for path in (x.removeprefix(LAW) for x in paths):
        with suppress(UntraceableError):
            arrays[path] = Cell().with_value(path, value_at(law_of(loop), path), False)
    return arrays


def _of_wholes(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype in (np.int64, bool) and x.size <= MAX_WHOLES


def _settled(
    loop: Any, watchers: Sequence[Any], strict: bool, constant: bool, cells: dict[str, Cell], choices: frozenset[str]
) -> TracedLoop:
    """The trace that covers the law's memory, which is then in `cells`."""
    settled = cells

    def trace(buffers: frozenset[str]) -> TracedLoop:
        return LoopTrace(loop, watchers, strict, constant, settled, choices, buffers).traced()

    while True:
        try:
            return with_work_buffers(trace)
        except MemoryGrowthError as grown:
            settled |= grown.cells
