"""Saved claims about motions during a sample, with python-flint.

Such a claim is about f(x, t, r) for all times t up to a duration, and all r that are means of the rates over the time
before: the state at t is x + t r. `Motion` encloses r by the theorem of Picard and Lindeloef.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .saved_code import Code, are_indices

MAX_ITERATIONS = 12  # of bounds of the rates


@dataclass(frozen=True)
class Motion:
    """The rates of a motion: operations of a code, whose last coordinates are t, then the means r of these rates."""

    rates: list[int]
    duration: float

    def box(self, code: Code, lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """A box of x and t with bounds of r; None if no bounds are shown to hold.

        If all rates are inside of R for all times and r in R, the mean of the rates can not leave R.
        """
        a = b = np.zeros(len(self.rates))
        until = [*zip(lo[:-1].tolist(), hi[:-1].tolist()), (0.0, 0.0)]
        for _ in range(MAX_ITERATIONS):
            ends = [*until, *zip(a.tolist(), b.tolist())]
            if not np.isfinite(ends).all():
                return None
            values, _ = code.forward([code.arithmetic.interval(*x) for x in ends])
            rates = [values[k] for k in self.rates]
            if None in rates or (code.flag is not None and values[code.flag] is not True):
                return None
            below, above = _rounded(code, rates)
            if until[-1][1] and all(r[0] > x and r[1] < y for r, x, y in zip(rates, a.tolist(), b.tolist())):
                return np.append(lo, below), np.append(hi, above)
            first = not until[-1][1]
            until[-1] = 0.0, float(hi[-1])
            a, b = (below, above) if first else (np.minimum(a, below), np.maximum(b, above))
            margin = 0.1 * (b - a) + 1e-12 * np.maximum(np.abs(a), np.abs(b)) + 1e-300
            a, b = a - margin, b + margin
        return None


def _rounded(code: Code, ends: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Floating-point numbers below and above intervals."""
    below, above = (np.array([float(x[k].mid()) for x in ends]) for k in (0, 1))
    for k, x in enumerate(ends):
        while below[k] > -np.inf and not code.arithmetic.arb(below[k]) <= x[0]:
            below[k] = np.nextafter(below[k] - 1e-16 * abs(below[k]), -np.inf)
        while above[k] < np.inf and not code.arithmetic.arb(above[k]) >= x[1]:
            above[k] = np.nextafter(above[k] + 1e-16 * abs(above[k]), np.inf)
    return below, above


def motion_of(said: dict[str, Any], code: Code) -> Motion | None:
    """The rates of a claim about motions, or None."""
    if "rates" not in said and "duration" not in said:
        return None
    rates, duration = said["rates"], float.fromhex(said["duration"])
    if not (are_indices(rates, len(code.nodes)) and 0 < len(rates) < code.n - 1 and 0.0 < duration < np.inf):
        raise ValueError(f"rates, duration: expected operations and seconds, got {rates!s:.40}, {duration:g}")
    return Motion(rates, duration)
