"""A log cut into contiguous folds with guards between them, each as its triangular factors: one pass over the samples.

Rows within a guard of a held-out fold are not trained on either: filters and correlated noise would carry what is
tested into what trains.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from operator import add

import numpy as np

from geomctrl.arguments import count, number
from geomctrl.identification.errors import DataError
from geomctrl.identification.logs import Dataset
from geomctrl.identification.model.compressed import Compressed, Factors
from geomctrl.identification.model.regressor_model import RegressorModel

FOLDS = 5


class TooShortForFolds(DataError):
    """A log, or a joint's part of it, is too short to be cut into so many folds."""


@dataclass(frozen=True, eq=False)
class Folds:
    """`held[k]`: the factors of fold k; `rest[k]`: of what it is predicted from; `whole`: of all rows."""

    held: tuple[Compressed, ...]
    rest: tuple[Compressed, ...]
    whole: Compressed
    words: str

    def __len__(self) -> int:
        return len(self.held)


def folds_of(
    model: RegressorModel,
    data: Dataset,
    number_of: int = FOLDS,
    guard: float | None = None,
    period: float | None = None,
    added: np.ndarray | None = None,
    weights: np.ndarray | None = None,
) -> Folds:
    """`number_of` folds of a filtered log with as many used rows each.

    guard [s] between neighbours: default one period of the low-pass, 0 without. period [s] of a motion that repeats:
    folds are then stretches of its phase, the same in every period; else the same motion would be trained and tested
    on. added (rows, nv) [N m]: put on the torques of `model.rows`; weights (rows, nv): factors on these rows then.
    Raises DataError where a fold or what is left without it has no rows.
    """
    number_of = count("number_of", number_of, 2)
    default = 0.0 if data.band is None else 1.0 / data.band[0]
    guard = default if guard is None else number("guard", guard, "seconds >= 0", lambda x: x >= 0.0)
    indices = model.rows(data)
    used = data.used[indices].any(1)
    if period is None:
        clock = data.t[indices] - data.t[0]
    else:
        period = number("period", period, "seconds > 0", lambda x: x > 0.0)
        clock = (data.t[indices] - data.t[0]) % period
    if not used.any():
        raise DataError(f"{data.label}: no usable torque sample is left (all are masked)")
    if used.sum() < 2 * number_of:
        raise TooShortForFolds(f"{data.label}: {int(used.sum())} used rows are too few for {number_of} parts")
    edges = np.quantile(clock[used], np.linspace(0.0, 1.0, number_of + 1)[1:-1])
    label = _labels(clock, edges, guard, period)
    pieces = _compressed(model, data, label, 2 * number_of, added, weights)
    held, rest, whole = pieces[0::2], *_rests(pieces)
    for k, (h, r) in enumerate(zip(held, rest)):
        if not h.counts.any() or not r.counts.any() or not h.norms.any() or not r.norms.any():
            raise TooShortForFolds(
                f"{data.label}: too short: of {number_of} parts, {guard:.3g} s apart, part {k + 1} has no rows"
            )
    description = (
        f"{number_of} {'stretches of phase' if period is not None else 'stretches of time'}, {guard:.2g} s apart"
    )
    return Folds(tuple(held), tuple(rest), whole, description)


def _labels(clock: np.ndarray, edges: np.ndarray, guard: float, period: float | None) -> np.ndarray:
    """2 k for rows of fold k, 2 k + 1 for those of the guard after it; guards are half before, half after an edge."""
    label = 2 * np.searchsorted(edges, clock, side="right")
    for k, edge in enumerate(edges):
        label[np.abs(clock - edge) < 0.5 * guard] = 2 * k + 1
    if period is not None:  # the last fold goes on into the first
        label[(clock < 0.5 * guard) | (clock > period - 0.5 * guard)] = 2 * len(edges) + 1
    return label


def _compressed(
    model: RegressorModel,
    data: Dataset,
    label: np.ndarray,
    size: int,
    added: np.ndarray | None,
    weights: np.ndarray | None,
) -> list[Compressed]:
    """The factors of rows with each label, below `size`."""
    factors, done = [Factors(model) for _ in range(size)], 0
    for blocks, tau, mask, _ in model.stream(data, model.blocks):
        now = slice(done, done + len(tau))
        here = label[now]
        tau = tau if added is None else tau + added[now]
        for k in np.unique(here):
            rows = here == k
            own = None if weights is None else weights[now][rows]
            factors[k].add([x[rows] for x in blocks], tau[rows], mask[rows], own)
        done += len(tau)
    return [f.result() for f in factors]


def _rests(pieces: list[Compressed]) -> tuple[list[Compressed], Compressed]:
    """(what is left without each fold and the guards beside it, all), from sums of what is before and behind."""
    *line, wrap = pieces  # the last guard is beside the first fold, too
    before, behind = list(accumulate(line, add)), list(accumulate(reversed(line), add))[::-1]
    rests = []
    for k in range(0, len(line), 2):
        parts = [before[k - 2]] if k >= 2 else []
        parts += [behind[k + 2]] if k + 2 < len(line) else []
        parts += [wrap] if 0 < k < len(line) - 1 and wrap.counts.any() else []
        rests.append(reduce(add, parts))
    return rests, before[-1] + wrap
