"""Logs of several episodes, LeRobot's for instance: one after the other in one table, the time from 0 in each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from geomctrl.identification.errors import DataError

from .recording import Recording

EPISODE = "episode_index"  # what the column is called
PAUSE = 1.0  # s between episodes: a hole that nothing is filtered or interpolated across
SHOWN = 12  # ranges of numbers in a message


def in_episodes(recording: Recording, values: dict[str, np.ndarray], episodes: Sequence[int] | None) -> tuple[str, ...]:
    """Keep, in place, the rows of the episodes that are asked for (default all), put their times one after the other,
    and add the number of each row's episode; say so. A recording without episodes stays as it is.

    Raises DataError for episodes that are not there, or whose rows are not next to each other.
    """
    label, numbers = recording.label, recording.arrays.get(EPISODE)
    if numbers is None or np.shape(numbers) != np.shape(values["t"]):
        if episodes is not None:
            raise DataError(f"{label}: episodes: the log has none: no column {EPISODE!r}; {recording.there_are()}")
        return ()
    number = np.asarray(numbers, float)
    starts = np.flatnonzero(np.concatenate(([True], number[1:] != number[:-1])))
    there = number[starts]
    if not np.isfinite(number).all() or len(set(there)) != len(there):
        raise DataError(f"{label}: {EPISODE}: expected a number in each row, and the rows of an episode together")
    missing = sorted(set(episodes or ()) - set(there))
    if missing:
        raise DataError(f"{label}: episodes: no episode {missing[0]:.0f}; there are {_ranges(there)}")
    t = np.array(values["t"], float)
    for start, stop in zip(starts[1:], [*starts[2:], len(t)]):
        if not t[start] > t[start - 1]:  # each begins anew
            t[start:stop] += t[start - 1] + PAUSE - t[start]
    values["t"], values[EPISODE] = t, number
    keep = np.isin(number, there if episodes is None else list(episodes))
    for field, x in values.items():
        if len(x) == len(keep):  # the Dataset refuses others, and says why
            values[field] = x[keep]
    kept = np.unique(values[EPISODE])
    return (f"episodes {_ranges(kept)} of {len(there)}, nothing filtered across",) if len(there) > 1 else ()


def _ranges(numbers: np.ndarray) -> str:
    """Numbers in words: 0 to 3, 7."""
    whole = np.unique(numbers).astype(int)
    runs = np.split(whole, np.flatnonzero(np.diff(whole) > 1) + 1)
    texts = [str(r[0]) if len(r) == 1 else f"{r[0]} to {r[-1]}" for r in runs]
    return ", ".join(texts[:SHOWN]) + (", ..." if len(texts) > SHOWN else "")
