"""Copies of the plant, the controller and the watchers of a closed loop."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .law import CompiledLaw
from .law_memory import Cell
from .symbolic_copies import LAW, SymbolicCopies


class LoopParts(NamedTuple):
    """Copies of a loop's plant, controller and watchers (monitors, measures)."""

    plant: Any
    controller: Any
    watchers: list[Any]


def loop_parts(
    loop: Any, watchers: Sequence[Any], copies: SymbolicCopies, remember: Callable[[int, str, Any], Any]
) -> LoopParts:
    """Copies of the current plant, the controller and the watchers; `remember` returns the watchers' numbers."""
    plant = copy.copy(loop.now)
    object.__setattr__(plant, "changes", ())
    both = copies.of(plant, "plant"), copies.of(law_of(loop), LAW)
    return LoopParts(*both, [_copy_of_watcher(k, m, copies, remember) for k, m in enumerate(watchers)])


def law_of(loop: Any) -> Any:
    """The controller without its own compilation."""
    return loop.controller.controller if isinstance(loop.controller, CompiledLaw) else loop.controller


def copied_parts(
    loop: Any, watchers: Sequence[Any], cells: Mapping[str, Cell] | None = None
) -> tuple[SymbolicCopies, LoopParts]:
    """Copies of a loop's objects with their numbers. cells: the law's memory."""
    copies = SymbolicCopies(cells=cells)
    return copies, loop_parts(loop, watchers, copies, lambda watcher, name, x: x.copy() if type(x) is np.ndarray else x)


def _copy_of_watcher(k: int, watcher: Any, copies: SymbolicCopies, remember: Callable[[int, str, Any], Any]) -> Any:
    clone, kind = copies.of_kind(type(watcher)), type(watcher).__name__
    signature, attributes = copies.signature, clone.__dict__
    signature.append((watcher.name, getattr(watcher, "limit", None)))
    for name, x in vars(watcher).items():
        signature.append(name)
        if name == "signals":
            attributes[name] = dict.fromkeys(x, np.nan)
            signature.append(tuple(x))
        elif is_memory(x):
            attributes[name] = value = remember(k, name, x)
            signature.append(getattr(x, "shape", ()))
            if type(x) is np.ndarray:
                copies.is_copy(value, x, value)
        else:
            attributes[name] = copies.of(x, f"monitor {kind}.{name}")
    return clone


def is_memory(x: Any) -> bool:
    """Whether an attribute of a watcher may change between samples: numbers and arrays."""
    kind = type(x)
    return kind is float or kind is np.float64 or (kind is np.ndarray and x.dtype == np.float64)
