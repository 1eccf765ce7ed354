"""Twins of what a closed loop is made of."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from .law import CompiledLaw
from .law_memory import Cell
from .twins import LAW, Twins


class Twin(NamedTuple):
    """What a loop is made of, as twins."""

    plant: Any
    controller: Any
    watchers: list[Any]


def twins_of(loop: Any, watchers: Sequence[Any], twins: Twins, remember: Callable[[int, str, Any], Any]) -> Twin:
    """Twins of the plant as it is now, of the controller and of watchers, whose numbers `remember` gives."""
    plant = copy.copy(loop.now)
    object.__setattr__(plant, "changes", ())
    both = twins.of(plant, "plant"), twins.of(law_of(loop), LAW)
    return Twin(*both, [_twin_of_watcher(k, m, twins, remember) for k, m in enumerate(watchers)])


def law_of(loop: Any) -> Any:
    """The controller as the user wrote it."""
    return loop.controller.controller if isinstance(loop.controller, CompiledLaw) else loop.controller


def met(loop: Any, watchers: Sequence[Any], cells: Mapping[str, Cell] | None = None) -> tuple[Twins, Twin]:
    """What is met in a loop, and copies of its objects with the numbers they have. cells: what its law remembers."""
    twins = Twins(cells=cells)
    return twins, twins_of(loop, watchers, twins, lambda watcher, name, x: copy.copy(x))


def _twin_of_watcher(k: int, watcher: Any, twins: Twins, remember: Callable[[int, str, Any], Any]) -> Any:
    twin = twins.of_kind(type(watcher))
    twins.words.append((watcher.name, getattr(watcher, "limit", None)))
    for name, x in vars(watcher).items():
        twins.words.append(name)
        if name == "signals":
            value: Any = dict.fromkeys(x, np.nan)
            twins.words.append(tuple(x))
        elif is_memory(x):
            twins.words.append(np.shape(x))
            value = remember(k, name, x)
            if isinstance(x, np.ndarray):
                twins.is_twin(value, x)
        else:
            value = twins.of(x, f"{type(watcher).__name__}.{name}")
        twin.__dict__[name] = value
    return twin


def is_memory(x: Any) -> bool:
    """Whether an attribute of a watcher may change from sample to sample: numbers and arrays of them."""
    kind = type(x)
    return kind is float or kind is np.float64 or (kind is np.ndarray and x.dtype == np.float64)
