"""`TracedLoop`: the equations of a traced closed loop, and the meaning of their numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from geomctrl.compiler.loop_memory import Equations
from geomctrl.tracing.untraceable import UntraceableError

from .law_memory import LawMemory


@dataclass(frozen=True, eq=False)
class Column:
    """Numbers of a sample: kind ("tau", "signal", ...), name, first index and shape."""

    kind: str
    name: str
    first: int
    shape: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class MemoryEntry:
    """A number or array that persists between samples: an attribute of a watcher, and its position in memory."""

    watcher: int
    name: str
    first: int
    shape: tuple[int, ...] | None  # None for a number

    @cached_property
    def size(self) -> int:
        return math.prod(self.shape or ())

    @property
    def key(self) -> tuple[str, str]:
        """Its kind and name in a sample."""
        return "memory", f"{self.watcher}.{self.name}"


@dataclass
class TracedLoop:
    """Equations, the columns of a sample's outputs after the rates, and the monitors' memory."""

    equations: Equations
    columns: list[Column]  # within the outputs of `sample`, or within a held command where `held`
    held: list[Column]
    memory: list[MemoryEntry]
    worst: int  # index of the monitors' worst values in memory; their times follow
    constant: bool  # whether the loop's numbers are constants
    buffers: frozenset[str]  # paths of work buffers
    law_memory: LawMemory  # memory of the law, inside the held command

    def memory_of(self, watchers: Sequence[Any]) -> list[float]:
        """The numbers of the watchers' memory, in order."""
        numbers: list[float] = []
        for place in self.memory:
            x = getattr(watchers[place.watcher], place.name)
            if type(x) is float:
                numbers.append(x)
            else:
                numbers += (x if type(x) is np.ndarray else np.asarray(x)).ravel().tolist()
        return numbers

    @property
    def commanded(self) -> list[Column]:
        """Columns of a held command; the rest of `held` are measurements."""
        return [c for c in self.held if c.kind not in ("measured", "memory")]

    def require_signals(self, command: Any) -> None:
        """Raise UntraceableError if a held command of Python has other signals than the traced law."""
        shapes = {c.name: c.shape for c in self.commanded if c.kind == "signal"}
        if shapes != {name: np.shape(x) for name, x in command.signals.items()}:
            raise UntraceableError(
                f"the law returned the signals {sorted(command.signals)} in Python and {sorted(shapes)} while it was"
                " traced: return the same signals, of the same shapes, at all samples"
            )

    file: str = ""  # in which it is stored, see `stored_traces`
    codes: dict[Any, Any] = field(default_factory=dict)  # cache of `machine`
    observed: Any = None  # cache of `comparison`
