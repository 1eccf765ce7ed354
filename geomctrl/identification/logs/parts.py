"""Parts of a log: by time, by phase of a motion that repeats, between the holes of a recording."""

from __future__ import annotations

import numpy as np

from geomctrl.arguments import count, number, vector
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import DataError

from . import reading
from .repeats import period, require_period
from .samples import Log, Samples, derive

SHORTEST = 16  # samples of a stretch: fewer can not be filtered


def select(data: Log, keep: np.ndarray, label: str | None = None) -> Log:
    """The samples where `keep` (N,) is True; every hole starts a new stretch."""
    _check_label(label)
    keep = reading.booleans("keep", keep)
    if keep.shape != (len(data),):
        raise ArgumentError(f"keep: expected {len(data)} booleans, got shape {keep.shape}")
    indices = np.flatnonzero(keep)
    if len(indices) == 0:
        raise DataError(f"{label or data.label}: an empty part: no sample of {len(data)} is left")
    breaks = np.diff(indices) > 1
    for gap in data.gaps:
        breaks |= (indices[:-1] < gap) & (indices[1:] >= gap)
    gaps = tuple((np.flatnonzero(breaks) + 1).tolist())
    whole = indices[-1] - indices[0] + 1 == len(indices)  # one piece: views
    return derive(
        data,
        **rows(data, slice(indices[0], indices[-1] + 1) if whole else indices),
        gaps=gaps,
        label=label or data.label,
    )


def _check_label(label: object) -> None:
    if label is not None and not isinstance(label, str):
        raise ArgumentError(f"label: expected words, got {label!r:.60}")


def rows(data: Samples, indices: slice | np.ndarray) -> dict[str, np.ndarray]:
    """All arrays at these samples."""
    arrays = {key: getattr(data, key) for key in ("t", "q", "v", "a", "tau", "mask")}
    return {key: x[indices] for key, x in arrays.items() if x is not None}


def cut_at_holes(data: Log, longest: float = 5.0, shortest: int = 16) -> Log:
    """A new stretch after every sampling interval longer than `longest` median ones, so that nothing is filtered or
    interpolated across it; parts of fewer than `shortest` samples are left out.
    """
    longest = number("longest", longest, "a number > 1, of median sampling intervals", lambda x: x > 1.0)
    shortest = count("shortest", shortest)
    steps = np.diff(data.t)
    holes = np.flatnonzero(steps > longest * np.median(steps)) + 1 if len(steps) else np.zeros(0, int)
    new = sorted(set(holes.tolist()) - set(data.gaps))
    if not new:
        return data
    out = derive(data, gaps=tuple(sorted({*data.gaps, *new})))
    keep = np.ones(len(data), bool)
    for s in out.stretches():
        keep[s] = s.stop - s.start >= shortest
    widest = steps[np.array(new) - 1].max()
    note = f"{len(new)} hole{'s' if len(new) > 1 else ''} of up to {widest:.4g} s, not filtered or interpolated across"
    note += f"; {int((~keep).sum())} samples between them left out" if not keep.all() else ""
    return derive(select(out, keep), history=(*data.history, note))


def between(data: Log, start: float, stop: float, label: str | None = None) -> Log:
    """Samples with start <= t - t[0] < stop [s]."""
    start = number("start", start)
    stop = stop if isinstance(stop, float) and stop == np.inf else number("stop", stop)
    _check_label(label)
    s = data.t - data.t[0]
    return select(data, (s >= start) & (s < stop), label)


def split_time(data: Log, fraction: float = 0.7, guard: float = 0.0) -> tuple[Log, Log]:
    """(training, test): the first `fraction` of the samples, and the rest after `guard` seconds.

    Unseen only if the trajectory does not repeat: raises DataError for a periodic one (use `split_phase`).
    """
    fraction, guard = number("fraction", fraction), number("guard", guard, "seconds >= 0", lambda x: x >= 0.0)
    if not 0.0 < fraction < 1.0:
        raise DataError(f"fraction: expected a number between 0 and 1, else one part is empty; got {fraction}")
    repeats = period(data)
    if repeats is not None and repeats <= fraction * (data.t[-1] - data.t[0]):
        raise DataError(
            f"{data.label}: the trajectory repeats every {repeats:.4g} s: a split by time would test on motions"
            f" that were trained on; use split_phase(period={repeats:.6g})"
        )
    cut = round(fraction * len(data))
    after = np.arange(len(data)) >= cut
    late = after & (data.t >= data.t[min(cut, len(data) - 1)] + guard)
    return select(data, ~after, f"{data.label}, training"), select(data, late, f"{data.label}, test")


def split_phase(
    data: Log, period: float | None = None, test: tuple[float, float] = (0.7, 1.0), guard: float = 0.0
) -> tuple[Log, Log]:
    """(training, test) of a periodic trajectory: samples whose phase (t - t[0]) / period mod 1 lies in `test` are
    for testing in every period, so that no tested motion was trained on; `guard` [s] at both edges goes to neither, nor
    do the few samples, less than can be filtered, that the log's own ends may leave of a phase.
    """
    period = require_period(data, period)
    guard = number("guard", guard, "seconds >= 0", lambda x: x >= 0.0)
    low, high = vector("test", test, 2).tolist()
    if not 0.0 <= low < high <= 1.0 or high - low == 1.0:
        raise DataError(f"test: expected phases 0 <= low < high <= 1, not all of them, got {test}")
    phase = ((data.t - data.t[0]) / period) % 1.0
    g = guard / period
    inside = (phase >= low + g) & (phase < high - g)
    outside = ((phase < low - g) & (phase >= (g if high == 1.0 else 0.0))) | (
        (phase >= high + g) & (phase < (1.0 - g if low == 0.0 else 1.0))
    )
    outside, inside = (_without_crumbs(data, keep) for keep in (outside, inside))
    return select(data, outside, f"{data.label}, training"), select(data, inside, f"{data.label}, test")


def _without_crumbs(data: Samples, keep: np.ndarray) -> np.ndarray:
    """`keep` (N,) without the pieces at the ends of stretches that are too short to be filtered and longer before."""
    keep = keep.copy()
    for s in data.stretches():
        edges = np.flatnonzero(np.diff(keep[s].astype(int), prepend=0, append=0))
        ends = [(a, b) for a, b in zip(edges[::2], edges[1::2]) if a == 0 or b == s.stop - s.start]
        for a, b in ends:
            keep[s.start + a : s.start + b] = not b - a < min(SHORTEST, s.stop - s.start)
    return keep
