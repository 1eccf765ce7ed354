"""Traces of loops on disk, so that a new process need not trace code that an earlier one has traced.

A file is named by `stable_key`, and checked and trusted as the machine code beside it (see `caches`). It contains
numbers, strings and tuples in the format of `marshal`, of which no code is executed. Loops whose law has memory in
attributes are not stored. A stored trace is compared with Python before and after every run, as any other.
"""

from __future__ import annotations

import functools
import marshal
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl import caches
from geomctrl.compiler.loop_memory import HELD, Equations, Pair, Rows, Sampled, Stage
from geomctrl.tracing.graph import Graph
from geomctrl.tracing.traces import Trace

from .law_memory import LawMemory
from .stable_keys import stable_key
from .traced_loop import Column, MemoryEntry, TracedLoop

PARTS = {kind.__name__: kind for kind in (Column, Equations, MemoryEntry, Pair, Rows, Sampled, Stage, Trace)}
MAX_FILES = 200  # of up to 1 MB
VERSION = 2  # of marshal: without references, so that equal traces give equal files
enabled = True


class Place:
    """Where the trace of a loop is stored: under its key, or, if its numbers are constants, its key and its numbers."""

    def __init__(self, key: tuple, values: np.ndarray):
        stable = stable_key(key) if enabled and key else ""
        self.files = [caches.file_name((stable, x), ".trace") for x in (b"", values.tobytes())] if stable else []

    def load(self) -> TracedLoop | None:
        """The stored trace, or None."""
        for file in self.files:
            traced = caches.read(_folders(), file, functools.partial(_decoded, file))
            if traced is not None:
                return traced
        return None

    def keep(self, traced: TracedLoop) -> None:
        """Store a new trace, if its law has no memory."""
        if self.files and not traced.file and not traced.law_memory.cells:
            traced.file = self.files[traced.constant]
            caches.write(_folders(), traced.file, _content(traced))
            caches.keep_newest(_folders(), "*.trace", MAX_FILES)


NAMES = ("equations", "columns", "held", "memory", "worst", "constant", "buffers")


def _content(traced: TracedLoop) -> bytes:
    graphs: dict[int, tuple[int, Graph]] = {}
    parts = {name: _encoded(getattr(traced, name), graphs) for name in NAMES}
    nodes = [(g.nodes, sorted(g.exact), g.finite) for _, g in graphs.values()]
    return marshal.dumps((nodes, parts, traced.law_memory.first), VERSION)


def _decoded(file: str, data: bytes) -> TracedLoop:
    nodes, parts, first = marshal.loads(data)
    graphs = [Graph.of(*x) for x in nodes]
    values = {name: _part(x, graphs) for name, x in parts.items()}
    return TracedLoop(**values, law_memory=LawMemory({}, graphs[0], HELD, first), file=file)


def _encoded(x: Any, graphs: dict[int, tuple[int, Graph]]) -> Any:
    kind = type(x)
    if kind is Graph:
        return graphs.setdefault(id(x), (len(graphs), x))[0]
    if kind.__name__ in PARTS:
        names = [f.name for f in fields(x)] if is_dataclass(x) else x._fields
        return {"": kind.__name__} | {name: _encoded(getattr(x, name), graphs) for name in names}
    return kind(_encoded(y, graphs) for y in x) if kind in (list, tuple) else x


def _part(x: Any, graphs: list[Graph]) -> Any:
    if type(x) is dict:
        values = {name: _part(y, graphs) for name, y in x.items() if name}
        kind = PARTS[x[""]]
        return kind(**values | {"graph": graphs[values["graph"]]}) if kind is Trace else kind(**values)
    return type(x)(_part(y, graphs) for y in x) if type(x) in (list, tuple) else x


@functools.cache
def _folders() -> tuple[Path, ...]:
    return caches.folders(Path(__file__).parent)
