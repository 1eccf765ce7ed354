"""Select parts of a log: by time, by phase of a periodic motion, and between gaps in the recording; find its period.

Periods are found from the mean square of q(t + L) - q(t) as a function of the lag L, over the times at which both were
recorded. With the samples on a grid, m(t) = 1 where there is a sample and 0 in gaps, it consists of three correlations,
sum m(t) m(t + L) (q(t)^2 + q(t + L)^2 - 2 q(t) q(t + L)), which FFTs compute for all lags at once.
"""

from __future__ import annotations

import numpy as np

from geomctrl.arguments import number, shown
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import DataError

from .filters import MAX_JITTER
from .reading.recording import booleans
from .samples import Log, Samples, derive

GRID_SAMPLES = 1 << 14  # number of times at which positions are compared first
MIN_OVERLAP_SHARE = 0.1  # smallest share of the log's length that a lag must overlap
PERIOD_TOLERANCE = 0.02  # of the range of positions: difference between repetitions
MAX_TOLERANCES = 2.5  # largest deviation of a given period, in tolerances


def detected_period(data: Samples, tolerance: float = PERIOD_TOLERANCE) -> float | None:
    """The shortest time [s] after which all positions repeat, up to `tolerance` of their range, or None."""
    scale = float(np.ptp(data.q, axis=0).max())
    if len(data) < 20 or scale == 0.0 or data.t[-1] - data.t[0] <= 0.0:
        return None
    n = round((data.t[-1] - data.t[0]) * data.rate) + 1
    step = max(1, -(-n // GRID_SAMPLES))
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


def require_repeating(data: Samples, seconds: float) -> None:
    """Raise ArgumentError unless the positions repeat after `seconds` and not before."""
    seconds = number("period", seconds, "seconds > 0", lambda x: x > 0.0)
    detected, tolerance = detected_period(data), PERIOD_TOLERANCE
    explanation = f"they repeat every {detected:.5g} s" if detected is not None else "no period was found"
    scale = float(np.ptp(data.q, axis=0).max())
    k = round(seconds * data.rate)
    error = min((e for j in (k - 1, k, k + 1) if (e := _difference(data, j)) is not None), default=None)
    if error is None:
        raise ArgumentError(f"period: {data.label}: nothing was recorded {seconds:.5g} s apart; {explanation}")
    if error > MAX_TOLERANCES * tolerance * scale:
        raise ArgumentError(
            f"period: {data.label}: positions {seconds:.5g} s apart differ by {100.0 * error / scale:.2g} % of their"
            f" range (root mean square); {explanation}"
        )
    if detected is not None and seconds > 1.5 * detected:
        raise ArgumentError(
            f"period: {data.label}: the motion already repeats every {detected:.5g} s: with a period of"
            f" {seconds:.5g} s, the test part would repeat motion of the training part"
        )


def _on_grid(data: Samples, step: int) -> tuple[np.ndarray, np.ndarray]:
    """Every step-th of the log's evenly spaced times: q (n, nq), and where there is a sample (n,)."""
    ticks = np.round((data.t - data.t[0]) * data.rate).astype(int)
    kept = ticks % step == 0
    n = int(ticks[-1]) // step + 1
    q, m = np.zeros((n, data.q.shape[1])), np.zeros(n, bool)
    q[ticks[kept] // step], m[ticks[kept] // step] = data.q[kept], True
    return q, m


def _apart(q: np.ndarray, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For lags 0, 1, ...: the largest root mean square difference and the largest standard deviation of any joint."""
    n = len(m)
    size = 2 * n
    q = np.where(m[:, None], q - q[m].mean(axis=0), 0.0)

    def correlate(x, y):
        X, Y = np.fft.rfft(x, size, axis=0), np.fft.rfft(y, size, axis=0)
        return np.fft.irfft(X.conj() * Y, size, axis=0)[:n]

    here = m.astype(float)[:, None]
    both = np.maximum(np.round(correlate(here, here)), 0.0)
    lags = int(np.flatnonzero(both[:, 0] >= MIN_OVERLAP_SHARE * m.sum())[-1]) + 1
    both = np.maximum(both[:lags], 1.0)
    squares = correlate(here, q**2)[:lags] + correlate(q**2, here)[:lags] - 2.0 * correlate(q, q)[:lags]
    mean = correlate(here, q)[:lags] / both
    variance = correlate(here, q**2)[:lags] / both - mean**2
    enough = (both >= MIN_OVERLAP_SHARE * m.sum())[:, 0]
    apart = np.where(enough, np.sqrt(np.maximum(squares / both, 0.0)).max(axis=1), np.inf)
    return apart, np.sqrt(np.maximum(variance, 0.0)).max(axis=1)


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(int)))
    return list(zip(edges[0::2].tolist(), edges[1::2].tolist()))


def _refined(data: Samples, lag: int, step: int) -> int:
    """The lag in samples, near `lag` steps, at which positions differ least."""
    near = range(max(1, (lag - 1) * step), (lag + 1) * step + 1)
    errors = {k: e for k in near if (e := _difference(data, k)) is not None}
    return min(errors, key=lambda k: errors[k]) if errors else lag * step


def _difference(data: Samples, k: int) -> float | None:
    """Root mean square of q(t + k samples) - q(t) for the joint with the greatest one; None without common samples."""
    ticks = np.round((data.t - data.t[0]) * data.rate).astype(int)
    there = np.minimum(np.searchsorted(ticks, ticks + k), len(ticks) - 1)
    both = ticks[there] == ticks + k
    if k < 1 or both.sum() < max(10, MIN_OVERLAP_SHARE * len(ticks)):
        return None
    return float(np.sqrt(np.mean((data.q[there[both]] - data.q[both]) ** 2, axis=0)).max())


# --- ends and holes --------------------------------------------------------------------------------------------------


MAX_GAP_SECONDS, MAX_GAP_SAMPLES = 0.03, 20  # of gaps that are filled
MIN_KEPT_SHARE = 0.25  # of the samples: otherwise logs of short parts would be masked completely
MAX_MISSING_SHARE = 0.02  # of the samples: if more are missing, the recording has another fault


def without_edges(data: Log, seconds: float) -> Log:
    """Mask torque samples within `seconds` of both ends of every uninterrupted part, where filters have not settled."""
    seconds = number("seconds", seconds, "seconds >= 0", lambda x: x >= 0.0)
    margin, mask = int(np.ceil(seconds * data.rate - 1e-6)), np.ones(len(data), bool)
    inside = sum(max(0, s.stop - s.start - 2 * margin) for s in data.stretches)
    is_sparse = inside < MIN_KEPT_SHARE * len(data)
    for s in data.stretches:
        reach = min(margin, (s.stop - s.start) // 4) if is_sparse else margin
        if reach:
            mask[s.start : s.start + reach] = False
            mask[max(s.start, s.stop - reach) : s.stop] = False
    masked_rows = (
        f"samples within {seconds:.3g} s of ends, holes and splits"
        if not is_sparse
        else "a quarter of every stretch at ends"
    )
    note = f"{masked_rows} masked, where filters have not settled: {int((~mask).sum())} of {len(data)} samples"
    return derive(data, mask=data.used & mask[:, None], history=(*data.history, note))


def with_bridges(data: Log) -> Log:
    """Fill gaps of up to MAX_GAP_SECONDS and MAX_GAP_SAMPLES by cubic interpolation through the four samples around."""
    steps, dt = np.diff(data.t), 1.0 / data.rate
    missing = np.round(steps / dt).astype(int) - 1 if len(steps) else np.zeros(0, int)
    even = np.abs(steps / np.maximum(missing + 1, 1) - dt) <= MAX_JITTER * dt
    short = (missing > 0) & (missing <= MAX_GAP_SAMPLES) & (missing * dt <= MAX_GAP_SECONDS * (1.0 + 1e-9)) & even
    edges = {g - 1 for g in data.gaps}
    before = np.array([k for k in np.flatnonzero(short) if k not in edges and 1 <= k < len(data) - 2], dtype=int)
    if not len(before) or data.q.shape[1] != data.nv or missing[before].sum() > MAX_MISSING_SHARE * len(data):
        return data
    return _bridged(data, before, missing[before])


def _bridged(data: Log, before: np.ndarray, missing: np.ndarray) -> Log:
    """Insert `missing` samples after each of the samples `before`."""
    from scipy.interpolate import BarycentricInterpolator  # slow to import

    offset = np.zeros(len(data), int)
    offset[before + 1] = missing
    place = np.arange(len(data)) + np.cumsum(offset)  # index of each existing sample
    n = len(data) + int(missing.sum())
    arrays = {name: getattr(data, name) for name in ("t", "q", "v", "a", "tau")}
    out = {}
    for name, x in arrays.items():
        if x is not None:
            out[name] = np.empty((n, *x.shape[1:]))
            out[name][place] = x
    mask = np.ones((n, data.nv), bool)
    mask[place] = data.used
    for k, m in zip(before.tolist(), missing.tolist()):
        new = place[k] + 1 + np.arange(m)
        t = data.t[k] + (data.t[k + 1] - data.t[k]) * (1.0 + np.arange(m)) / (m + 1.0)
        around = slice(k - 1, k + 3)
        for name, x in arrays.items():
            if x is not None:
                out[name][new] = t if name == "t" else BarycentricInterpolator(data.t[around], x[around])(t)
        mask[max(0, new[0] - m) : new[-1] + 1 + m] = False
    gaps = tuple(int(place[g]) for g in data.gaps)
    note = f"{len(before)} hole{'s' if len(before) > 1 else ''} of up to {int(missing.max())} samples bridged"
    note += "; those samples masked"
    if not np.all(np.diff(out["t"]) > 0.0):
        raise DataError(f"{data.label}: t: time stamps around holes are out of order")
    return derive(data, **out, mask=mask, gaps=gaps, history=(*data.history, note))


# --- parts -----------------------------------------------------------------------------------------------------------


MIN_STRETCH = 16  # samples: shorter parts can not be filtered


def select(data: Log, keep: np.ndarray, label: str | None = None) -> Log:
    """Return the samples where `keep` (N,) is True; every gap starts a new uninterrupted part.

    Parameters
    ----------
    keep : ndarray of bool, shape (N,)
        Which samples to keep.
    label : str, optional
        Name of the result. Default: that of the log.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        If no sample is left.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl.identification import Dataset
    >>> t = np.linspace(0.0, 1.0, 101)
    >>> log = Dataset(t, q=np.sin(t)[:, None], tau=np.cos(t)[:, None])
    >>> len(log.select(t >= 0.5))
    51
    """
    _check_label(label)
    keep = booleans("keep", keep)
    if keep.shape != (len(data),):
        raise ArgumentError(f"keep: expected {len(data)} booleans, got shape {keep.shape}")
    indices = np.flatnonzero(keep)
    if len(indices) == 0:
        raise DataError(f"{label or data.label}: an empty part: no sample of {len(data)} is left")
    breaks = np.diff(indices) > 1
    for gap in data.gaps:
        breaks |= (indices[:-1] < gap) & (indices[1:] >= gap)
    gaps = tuple((np.flatnonzero(breaks) + 1).tolist())
    whole = indices[-1] - indices[0] + 1 == len(indices)  # contiguous: views
    return derive(
        data,
        **rows(data, slice(indices[0], indices[-1] + 1) if whole else indices),
        gaps=gaps,
        label=label or data.label,
    )


def _check_label(label: object) -> None:
    if label is not None and not isinstance(label, str):
        raise ArgumentError(f"label: expected text, got {shown(label)}")


def rows(data: Samples, indices: slice | np.ndarray) -> dict[str, np.ndarray]:
    """All arrays at these samples."""
    arrays = {key: getattr(data, key) for key in ("t", "q", "v", "a", "tau", "mask")}
    return {key: x[indices] for key, x in arrays.items() if x is not None}


MAX_INTERVALS = 5.0  # median sampling intervals: a longer one starts a new part


def cut_at_holes(data: Log) -> Log:
    """Start a new part after every long sampling interval: nothing is filtered or interpolated across it."""
    steps = np.diff(data.t)
    holes = np.flatnonzero(steps > MAX_INTERVALS * np.median(steps)) + 1 if len(steps) else np.zeros(0, int)
    new = sorted(set(holes.tolist()) - set(data.gaps))
    if not new:
        return data
    out = derive(data, gaps=tuple(sorted({*data.gaps, *new})))
    keep = np.ones(len(data), bool)
    for s in out.stretches:
        keep[s] = s.stop - s.start >= MIN_STRETCH
    widest = steps[np.array(new) - 1].max()
    note = f"{len(new)} hole{'s' if len(new) > 1 else ''} of up to {widest:.4g} s, not filtered or interpolated across"
    note += f"; {int((~keep).sum())} samples between them left out" if not keep.all() else ""
    return derive(select(out, keep), history=(*data.history, note))


def split(data: Log, fraction: float = 0.7, period: float | None = None) -> tuple[Log, Log]:
    """Split the log into (training, test).

    Parameters
    ----------
    fraction : float
        Share of the log, or of every period, for training, from the start. Default 0.7.
    period : float, optional
        Period of a motion that repeats [s]: the end of every period is for the test, so that no tested motion was
        trained on. Default: the end of the log is for the test.

    Returns
    -------
    tuple of Dataset
        Remainders of periods at the ends of the log that are too short to be filtered are in neither part.

    Raises
    ------
    DataError
        If the motion repeats and no period is given: the test would not be unseen.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl.identification import Dataset
    >>> t = np.linspace(0.0, 10.0, 1001)
    >>> log = Dataset(t, q=(t * np.sin(t))[:, None], tau=np.cos(t)[:, None])
    >>> training, test = log.split(0.7)
    >>> len(training), len(test)
    (701, 300)
    """
    fraction = number("fraction", fraction)
    if not 0.0 < fraction < 1.0:
        raise DataError(f"fraction: expected a number between 0 and 1, else one part is empty; got {fraction}")
    if period is None:
        _require_no_period(data, fraction)
        tested = np.arange(len(data)) >= round(fraction * len(data))
        trained = ~tested
    else:
        period = number("period", period, "seconds > 0", lambda x: x > 0.0)
        inside = ((data.t - data.t[0]) / period) % 1.0 >= fraction
        trained, tested = (_without_short_pieces(data, keep) for keep in (~inside, inside))
    return select(data, trained, f"{data.label}, training"), select(data, tested, f"{data.label}, test")


def _require_no_period(data: Samples, fraction: float) -> None:
    repeats = detected_period(data)
    if repeats is not None and repeats <= fraction * (data.t[-1] - data.t[0]):
        raise DataError(
            f"{data.label}: the trajectory repeats every {repeats:.4g} s: a split by time would test on motions"
            f" that were trained on; use split(period={repeats:.6g})"
        )


def _without_short_pieces(data: Samples, keep: np.ndarray) -> np.ndarray:
    """`keep` (N,) without pieces at the ends of uninterrupted parts that became too short to be filtered."""
    keep = keep.copy()
    for s in data.stretches:
        edges = np.flatnonzero(np.diff(keep[s].astype(int), prepend=0, append=0))
        ends = [(a, b) for a, b in zip(edges[::2], edges[1::2]) if a == 0 or b == s.stop - s.start]
        for a, b in ends:
            keep[s.start + a : s.start + b] = not b - a < min(MIN_STRETCH, s.stop - s.start)
    return keep
