"""Numbers of actuators: one for all of them, or one each."""

from __future__ import annotations

import numpy as np

from geomctrl.errors import ArgumentError


def require_sizes(outputs: int, **numbers: np.ndarray) -> int:
    """`outputs`, unless one of the numbers, each () or (n,), is not of so many; then raises ArgumentError."""
    for name, x in numbers.items():
        if x.shape not in ((), (outputs,)):
            raise ArgumentError(f"{name}: expected a number or ({outputs},) numbers, got shape {x.shape}")
    return outputs
