"""A traced closed loop: its equations, and what their numbers mean."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from geomctrl.compiler.loop_memory import Equations

from .law_memory import LawMemory
from .symbolic_copies import SymbolicCopies


@dataclass(frozen=True, eq=False)
class Column:
    """Numbers that a sample leaves: what they are ("tau", "signal", ...), their name, first place and shape."""

    kind: str
    name: str
    first: int
    shape: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Remembered:
    """A number or array that lasts from sample to sample: an attribute of which watcher, where in the memory."""

    watcher: int
    name: str
    first: int
    shape: tuple[int, ...] | None  # None for a number

    @cached_property
    def size(self) -> int:
        return math.prod(self.shape or ())


@dataclass
class TracedLoop:
    """Equations, the columns of a sample's outputs after the rates, and the memory of the monitors."""

    equations: Equations
    columns: list[Column]  # within the outputs of `sample`, or within a held command where `held`
    held: list[Column]
    memory: list[Remembered]
    worst: int  # where in the memory the monitors' worst values begin; their times follow
    copies: SymbolicCopies  # whose signature hold ids: what they are of lives as long as this
    law_memory: LawMemory  # what the law remembers, within a held command
    of_rows: list[tuple[int, int]]  # monitors whose values depend on their row alone: (monitor, where in the row)

    @property
    def commanded(self) -> list[Column]:
        """Of a held command; the rest of `held` is what sensors tell."""
        return [c for c in self.held if c.kind not in ("measured", "memory")]

    codes: dict[Any, Any] = field(default_factory=dict)  # made of it, see `machine`
    observed: Any = None  # made of it, see `comparison`
