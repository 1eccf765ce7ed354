"""Where a recording begins, ends and is interrupted: short holes bridged, and what a filter makes of edges masked."""

from __future__ import annotations

import numpy as np

from geomctrl.arguments import count, number
from geomctrl.identification.errors import DataError

from .filters import JITTER
from .samples import Log, derive

MIN_KEPT_SHARE = 0.25  # of the samples: masks that leave less would leave a log of short stretches nothing
MAX_MISSING_SHARE = 0.02  # of the samples may be missing: where more are, something is wrong with the recording


def without_edges(data: Log, seconds: float) -> Log:
    """Torque samples within `seconds` of both ends of every stretch masked: there, a low-pass that settles in that time
    has continued the signal by guesses. Where that would leave less than a quarter of the samples, a quarter of each
    stretch at both ends.
    """
    seconds = number("seconds", seconds, "seconds >= 0", lambda x: x >= 0.0)
    margin, mask = int(np.ceil(seconds * data.rate - 1e-6)), np.ones(len(data), bool)
    inside = sum(max(0, s.stop - s.start - 2 * margin) for s in data.stretches())
    is_sparse = inside < MIN_KEPT_SHARE * len(data)
    for s in data.stretches():
        reach = min(margin, (s.stop - s.start) // 4) if is_sparse else margin
        if reach:
            mask[s.start : s.start + reach] = False
            mask[max(s.start, s.stop - reach) : s.stop] = False
    masked_rows = (
        f"rows within {seconds:.3g} s of ends, holes and splits"
        if not is_sparse
        else "a quarter of every stretch at ends"
    )
    note = f"{masked_rows} masked, where filters have not settled: {int((~mask).sum())} of {len(data)} samples"
    return derive(data, mask=data.used & mask[:, None], history=(*data.history, note))


def with_bridges(data: Log, longest: float = 0.03, max_samples: int = 20) -> Log:
    """Holes of up to `longest` seconds and `max_samples` samples bridged by cubic interpolation through the four
    samples around them; what is interpolated is masked, and as much beside it.

    Longer holes, and those of a duration that is no multiple of the sampling interval, stay what they are. Nothing is
    bridged where more than a fiftieth of the samples is missing, nor where joints' configurations are poses.
    """
    longest = number("longest", longest, "seconds >= 0", lambda x: x >= 0.0)
    max_samples = count("max_samples", max_samples)
    steps, dt = np.diff(data.t), 1.0 / data.rate
    missing = np.round(steps / dt).astype(int) - 1 if len(steps) else np.zeros(0, int)
    even = np.abs(steps / np.maximum(missing + 1, 1) - dt) <= JITTER * dt
    short = (missing > 0) & (missing <= max_samples) & (missing * dt <= longest * (1.0 + 1e-9)) & even
    edges = {g - 1 for g in data.gaps}
    before = np.array([k for k in np.flatnonzero(short) if k not in edges and 1 <= k < len(data) - 2], dtype=int)
    if not len(before) or data.q.shape[1] != data.nv or missing[before].sum() > MAX_MISSING_SHARE * len(data):
        return data
    return _bridged(data, before, missing[before])


def _bridged(data: Log, before: np.ndarray, missing: np.ndarray) -> Log:
    """`missing` samples put after each of the samples `before`."""
    offset = np.zeros(len(data), int)
    offset[before + 1] = missing
    place = np.arange(len(data)) + np.cumsum(offset)  # of the samples there are
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
        weights = _lagrange(data.t[k - 1 : k + 3], t)
        for name, x in arrays.items():
            if x is not None:
                out[name][new] = t if name == "t" else weights @ x[k - 1 : k + 3]
        mask[max(0, new[0] - m) : new[-1] + 1 + m] = False
    gaps = tuple(int(place[g]) for g in data.gaps)
    note = f"{len(before)} hole{'s' if len(before) > 1 else ''} of up to {int(missing.max())} samples bridged"
    note += "; those samples masked"
    if not np.all(np.diff(out["t"]) > 0.0):
        raise DataError(f"{data.label}: t: time stamps around holes are out of order")
    return derive(data, **out, mask=mask, gaps=gaps, history=(*data.history, note))


def _lagrange(nodes: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Weights (len(t), 4) of the values at four nodes, for their cubic at t."""
    out = np.ones((len(t), len(nodes)))
    for i, a in enumerate(nodes):
        for j, b in enumerate(nodes):
            if i != j:
                out[:, i] *= (t - b) / (a - b)
    return out
