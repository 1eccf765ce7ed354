"""Motions that repeat: after which time, across the holes of a log; whether a period that is given is one.

All of it comes from one function of the lag L, the mean square of q(t + L) - q(t) over the times at which both were
recorded. With the samples on a grid and m(t) = 1 where there is one, 0 in holes, it is three correlations,
sum m(t) m(t + L) (q(t)^2 + q(t + L)^2 - 2 q(t) q(t + L)), which FFTs compute for all lags at once.
"""

from __future__ import annotations

import numpy as np

from geomctrl.arguments import number
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import DataError

from .samples import Samples

GRID = 1 << 14  # times at which positions are compared first
LEAST_OVERLAP = 0.1  # of the log's length: what a lag is judged by
WRONG = 2.5  # tolerances by which a period that is given may be off


def period(data: Samples, tolerance: float = 0.02) -> float | None:
    """Shortest time [s] after which all positions repeat, to `tolerance` of their range; None if they do not.

    Found across holes. As much as a tenth of the log's length must have been recorded again, moving.
    """
    tolerance = number("tolerance", tolerance, "a number > 0", lambda x: x > 0.0)
    scale = float(np.ptp(data.q, axis=0).max())
    if len(data) < 20 or scale == 0.0 or data.t[-1] - data.t[0] <= 0.0:
        return None
    n = round((data.t[-1] - data.t[0]) * data.rate) + 1
    step = max(1, -(-n // GRID))
    q, m = _on_grid(data, step)
    apart, moving = _apart(q, m)
    if len(apart) < 8:
        return None
    left = np.flatnonzero(apart > 10.0 * tolerance * scale)  # neighbouring samples are alike without any repetition
    slack = float(np.abs(np.diff(q, axis=0))[m[1:] & m[:-1]].max(initial=0.0)) if step > 1 else 0.0
    near = (apart < tolerance * scale + slack) & (moving > 0.1 * scale)
    near[: left[0] if len(left) else len(near)] = False
    for first, last in _runs(near):
        best = first + int(np.argmin(apart[first:last]))
        k = _refined(data, best, step)
        error = _difference(data, k)
        if error is not None and error < tolerance * scale:
            return k / data.rate
    return None


def require_repeating(data: Samples, seconds: float, tolerance: float = 0.02) -> None:
    """Raises ArgumentError, saying what was found, unless the positions repeat after `seconds` and not before."""
    seconds = number("period", seconds, "seconds > 0", lambda x: x > 0.0)
    detected = period(data, tolerance)
    explanation = f"they repeat every {detected:.5g} s" if detected is not None else "no period was found"
    scale = float(np.ptp(data.q, axis=0).max())
    k = round(seconds * data.rate)
    error = min((e for j in (k - 1, k, k + 1) if (e := _difference(data, j)) is not None), default=None)
    if error is None:
        raise ArgumentError(f"period: {data.label}: nothing was recorded {seconds:.5g} s apart; {explanation}")
    if error > WRONG * tolerance * scale:
        raise ArgumentError(
            f"period: {data.label}: positions {seconds:.5g} s apart differ by {100.0 * error / scale:.2g} % of their"
            f" range (root mean square); {explanation}"
        )
    if detected is not None and seconds > 1.5 * detected:
        raise ArgumentError(
            f"period: {data.label}: the motion repeats every {detected:.5g} s already: of {seconds:.5g} s, the end"
            " would be tested on motion that the start trains on"
        )


def require_period(data: Samples, seconds: float | None = None) -> float:
    """The period given [s], else the one found. Raises DataError, ArgumentError."""
    seconds = None if seconds is None else number("given period", seconds, "seconds > 0", lambda x: x > 0.0)
    result = period(data) if seconds is None else seconds
    if result is None:
        raise DataError(f"{data.label}: period: none found in the log; give it in seconds")
    return result


def _on_grid(data: Samples, step: int) -> tuple[np.ndarray, np.ndarray]:
    """Every step-th of the evenly spaced times that the log was sampled at: q (n, nq), and where there is one (n,)."""
    ticks = np.round((data.t - data.t[0]) * data.rate).astype(int)
    kept = ticks % step == 0
    n = int(ticks[-1]) // step + 1
    q, m = np.zeros((n, data.q.shape[1])), np.zeros(n, bool)
    q[ticks[kept] // step], m[ticks[kept] // step] = data.q[kept], True
    return q, m


def _apart(q: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For lags 0, 1, ...: the root mean square of the differences of the joint that differs most, and the standard
    deviation of the joint that moves most where both times were recorded.
    """
    n = len(m)
    size = 2 * n
    q = np.where(m[:, None], q - q[m].mean(axis=0), 0.0)

    def correlate(x, y):
        X, Y = np.fft.rfft(x, size, axis=0), np.fft.rfft(y, size, axis=0)
        return np.fft.irfft(X.conj() * Y, size, axis=0)[:n]

    here = m.astype(float)[:, None]
    both = np.maximum(np.round(correlate(here, here)), 0.0)
    lags = int(np.flatnonzero(both[:, 0] >= LEAST_OVERLAP * m.sum())[-1]) + 1
    both = np.maximum(both[:lags], 1.0)
    squares = correlate(here, q**2)[:lags] + correlate(q**2, here)[:lags] - 2.0 * correlate(q, q)[:lags]
    mean = correlate(here, q)[:lags] / both
    variance = correlate(here, q**2)[:lags] / both - mean**2
    enough = (both >= LEAST_OVERLAP * m.sum())[:, 0]
    apart = np.where(enough, np.sqrt(np.maximum(squares / both, 0.0)).max(axis=1), np.inf)
    return apart, np.sqrt(np.maximum(variance, 0.0)).max(axis=1)


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(int)))
    return list(zip(edges[0::2].tolist(), edges[1::2].tolist()))


def _refined(data: Samples, lag: int, step: int) -> int:
    """The lag in samples, of those near `lag` steps, at which positions differ least."""
    near = range(max(1, (lag - 1) * step), (lag + 1) * step + 1)
    errors = {k: e for k in near if (e := _difference(data, k)) is not None}
    return min(errors, key=lambda k: errors[k]) if errors else lag * step


def _difference(data: Samples, k: int) -> float | None:
    """Root mean square of q(t + k samples) - q(t), of the joint with the greatest; None if never both recorded."""
    ticks = np.round((data.t - data.t[0]) * data.rate).astype(int)
    there = np.minimum(np.searchsorted(ticks, ticks + k), len(ticks) - 1)
    both = ticks[there] == ticks + k
    if k < 1 or both.sum() < max(10, LEAST_OVERLAP * len(ticks)):
        return None
    return float(np.sqrt(np.mean((data.q[there[both]] - data.q[both]) ** 2, axis=0)).max())
