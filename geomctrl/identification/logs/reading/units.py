"""The units a log may be in, and what makes SI of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from geomctrl.errors import ArgumentError

DEGREE, RPM = np.pi / 180.0, 2.0 * np.pi / 60.0
UNITS = {
    "t": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "q": {"rad": 1.0, "deg": DEGREE, "rev": 2.0 * np.pi, "m": 1.0, "mm": 1e-3},
    "v": {"rad/s": 1.0, "deg/s": DEGREE, "rpm": RPM, "m/s": 1.0, "mm/s": 1e-3},
    "a": {"rad/s^2": 1.0, "deg/s^2": DEGREE, "m/s^2": 1.0, "mm/s^2": 1e-3},
    "tau": {"N m": 1.0, "Nm": 1.0, "N": 1.0, "mN m": 1e-3, "N mm": 1e-3, "kN m": 1e3, "kN": 1e3},
    "i": {"A": 1.0, "mA": 1e-3},
}
FIELDS = tuple(UNITS)
ANGULAR, LINEAR = ("deg", "rev", "deg/s", "rpm", "deg/s^2"), ("mm", "mm/s", "mm/s^2")  # not SI, and telling


def factor(field: str, unit: str | Sequence[str], shape: tuple[int, ...]) -> float | np.ndarray:
    """To SI, for values of this shape; one number a joint for a list of units."""
    if not isinstance(unit, str) and len(unit) != (shape[-1] if len(shape) == 2 else 1):
        raise ArgumentError(f"units: {field}: expected one unit, or one a column of shape {shape}, got {list(unit)}")
    for u in [unit] if isinstance(unit, str) else unit:
        if u not in UNITS[field]:
            raise ArgumentError(f"units: {field}: expected one of {', '.join(UNITS[field])}, got {u!r}")
    if isinstance(unit, str):
        return UNITS[field][unit]
    return np.array([UNITS[field][u] for u in unit])
