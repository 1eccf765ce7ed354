"""Limits of stability: the largest value of a control at which all monitors hold, and maps over two controls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from geomctrl.errors import GeomctrlError

from .controls import Control, Controls
from .outcomes import outcome_of

BISECTIONS = 12
VALUES_PER_CONTROL = 7  # values of each control of a map


@dataclass(frozen=True)
class Edge:
    """The largest value of a control at which all monitors held, and the smallest tried above at which not.

    held is None if they did not hold at the lower end of the range, failed is None if they held at the upper end.
    Between the two nothing was simulated: an island of stability above `failed` is not found.
    """

    key: str
    held: float | None
    failed: float | None
    runs: int

    def __str__(self) -> str:
        if self.failed is None:
            return f"{self.key}: all monitors hold up to the end of its range, {self.held:.4g} ({self.runs} runs)"
        if self.held is None:
            return f"{self.key}: no value below {self.failed:.4g} was found at which all monitors hold"
        return f"{self.key}: all monitors hold at {self.held:.4g} and not at {self.failed:.4g} ({self.runs} runs)"


@dataclass(frozen=True)
class Region:
    """A map over two controls: their values, and 1 where all monitors held, 0 where one is unresolved, else -1."""

    x: str
    y: str
    x_values: np.ndarray
    y_values: np.ndarray
    verdicts: np.ndarray  # (y, x)


def holds(controls: Controls, settings: Mapping[str, float]) -> bool | None:
    """Whether all monitors hold at a setting; None if one is unresolved. A refused setting does not hold."""
    try:
        return outcome_of(controls.loop(settings)).ok
    except GeomctrlError:
        return False


def find_edge(
    controls: Controls, settings: Mapping[str, float], key: str, stopped: Callable[[], bool] = lambda: False
) -> Edge | None:
    """Bisect between the present value and an end of the range; None if `stopped` returns True between two runs."""
    control, runs = controls[key], 0

    def good(position: float) -> bool:
        nonlocal runs
        runs += 1
        return holds(controls, {**settings, key: control.at(position)}) is True

    here = control.position(settings[key])
    low, high = (here, 1.0) if good(here) else (0.0, here)
    if low == here and good(1.0):
        return Edge(key, control.at(1.0), None, runs)
    if low != here and not good(0.0):
        return Edge(key, None, control.at(0.0), runs)
    for _ in range(BISECTIONS):
        if stopped():
            return None
        middle = 0.5 * (low + high)
        low, high = (middle, high) if good(middle) else (low, middle)
    return Edge(key, control.at(low), control.at(high), runs)


def map_region(
    controls: Controls, settings: Mapping[str, float], x: str, y: str, stopped: Callable[[], bool] = lambda: False
) -> Region | None:
    """Verdicts on a grid over the ranges of two controls; None if `stopped` returns True between two rows."""
    values = [_values(controls[key]) for key in (x, y)]
    verdicts = np.zeros((VALUES_PER_CONTROL, VALUES_PER_CONTROL))
    for j, b in enumerate(values[1]):
        if stopped():
            return None
        for i, a in enumerate(values[0]):
            ok = holds(controls, {**settings, x: float(a), y: float(b)})
            verdicts[j, i] = 0.0 if ok is None else 1.0 if ok else -1.0
    return Region(x, y, values[0], values[1], verdicts)


def _values(control: Control) -> np.ndarray:
    return np.array([control.at(p) for p in np.linspace(0.0, 1.0, VALUES_PER_CONTROL)])
