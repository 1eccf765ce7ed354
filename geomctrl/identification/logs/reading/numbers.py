"""Arrays of logs as numbers or truth values, or the reason why they are none."""

from __future__ import annotations

from typing import Any

import numpy as np

from geomctrl.arguments import checked
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import DataError


def real(label: str, name: str, value: Any) -> np.ndarray:
    """A copy as floats. Raises DataError for what is no array of real numbers."""
    try:
        return np.array(checked(name, value, (), finite=False))
    except ArgumentError:
        raise DataError(f"{label}: {name}: expected real numbers, got {value!r:.60}") from None


def booleans(name: str, value: Any) -> np.ndarray:
    """As an array of truth values. Raises ArgumentError."""
    try:
        x = np.asarray(value)
    except ValueError:
        x = np.empty(0)
    if x.dtype != bool or np.ma.is_masked(value):
        raise ArgumentError(f"{name}: expected booleans, got {value!r:.60}")
    return x
