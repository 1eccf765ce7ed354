"""From a recording to the fields of a `Dataset`: SI units, joint coordinates, torques from currents, episodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from geomctrl.identification.errors import DataError

from .naming import ALIASES, named
from .options import JointMapping, Reading, factor
from .recording import Recording

EPISODE = "episode_index"  # name of the column
PAUSE = 1.0  # s between episodes: a gap, which filters and interpolation do not cross
MAX_RANGES = 12  # ranges of numbers in a message


def in_episodes(recording: Recording, values: dict[str, np.ndarray], episodes: Sequence[int] | None) -> tuple[str, ...]:
    """Keep, in place, the rows of the requested episodes (default all), put their times one after the other, add the
    number of each row's episode, and return notes. A recording without episodes is not changed.

    Raises DataError for episodes that do not exist, or whose rows are not contiguous.
    """
    label, numbers = recording.label, recording.arrays.get(EPISODE)
    if numbers is None or np.shape(numbers) != np.shape(values["t"]):
        if episodes is not None:
            raise DataError(
                f"{label}: episodes: the log has none: no column {EPISODE!r}; {recording.available_names()}"
            )
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
        if not t[start] > t[start - 1]:  # times restart in each episode
            t[start:stop] += t[start - 1] + PAUSE - t[start]
    values["t"], values[EPISODE] = t, number
    keep = np.isin(number, there if episodes is None else list(episodes))
    for field, x in values.items():
        if len(x) == len(keep):  # `Dataset` raises an error for others
            values[field] = x[keep]
    kept = np.unique(values[EPISODE])
    return (f"episodes {_ranges(kept)} of {len(there)}, nothing filtered across",) if len(there) > 1 else ()


def _ranges(numbers: np.ndarray) -> str:
    """Integers as text: 0 to 3, 7."""
    whole = np.unique(numbers).astype(int)
    runs = np.split(whole, np.flatnonzero(np.diff(whole) > 1) + 1)
    texts = [str(r[0]) if len(r) == 1 else f"{r[0]} to {r[-1]}" for r in runs]
    return ", ".join(texts[:MAX_RANGES]) + (", ..." if len(texts) > MAX_RANGES else "")


def fields(recording: Recording, options: Reading) -> tuple[dict[str, Any], tuple[str, ...]]:
    """(t, q, v, a, tau in SI units and joint coordinates, `gaps` and `history`; the log's joint names, if it has
    them).
    """
    label, o = recording.label, options
    values, joints, notes = named(recording, o.keys or {}, o.joints, o.topic)
    for field, unit in (o.units or {}).items():
        if field in values:
            values[field] = values[field] * factor(field, unit, values[field].shape)
    _torques_of_currents(recording, values, o)
    for field in ("q", "tau"):
        if field not in values:
            raise DataError(_no(recording, field))
    if "t" in values and o.rate is not None:
        raise DataError(f"{label}: rate: the log has time stamps of its own; leave the rate out")
    if "t" not in values:
        if o.rate is None:
            raise DataError(f"{label}: no time stamps: give t, or the sampling rate (rate=..., in Hz)")
        values["t"] = np.arange(np.atleast_1d(values["q"]).shape[0]) / o.rate
    notes = (*notes, *in_episodes(recording, values, o.episodes))
    dropped = _drop_bad_rows(label, values) if o.drop_bad_rows else ()
    gaps = tuple((np.flatnonzero(np.diff(values.pop(EPISODE))) + 1).tolist()) if EPISODE in values else ()
    if o.mapping is not None:
        _map(label, values, o.mapping)
    for x in values.values():
        x.setflags(write=False)  # no other references exist, so the Dataset need not copy
    return {**values, "gaps": gaps, "history": (*notes, *dropped)}, joints


def _torques_of_currents(recording: Recording, values: dict[str, np.ndarray], o: Reading) -> None:
    """Convert currents to torques by their gains. Raises DataError without gains, and if both could be meant."""
    i = values.pop("i", None)
    if o.current_gains is None:
        if i is not None and ("tau" not in values or "i" in (o.keys or {})):
            raise DataError(
                f"{recording.label}: tau: expected torques, got currents; give the gains that convert them,"
                " current_gains=[...] in N m/A, one number or one per joint (identify: --current-gains 0.12,0.12,0.08)"
            )
        return
    if i is None:
        raise DataError(
            f"{recording.label}: i: current_gains are given, expected currents, got none; {recording.available_names()}"
        )
    if "tau" in values and "i" not in (o.keys or {}):
        raise DataError(
            f"{recording.label}: tau: the log has torques as well as currents; say which by leaving out current_gains,"
            " or by keys={'i': ...} (identify: --column i=...)"
        )
    gains, n = np.asarray(o.current_gains, float), i.shape[-1]
    if gains.ndim and (i.ndim != 2 or len(gains) != n):
        raise DataError(
            f"{recording.label}: current_gains: expected one number or {n}, one per joint, got {len(gains)}"
        )
    values["tau"] = i * gains


def _no(recording: Recording, field: str) -> str:
    if recording.kind == "array":
        return (
            f"{recording.label}: no {field}: expected an array called {' or '.join(ALIASES[field][:3])}, or keys="
            f"{{{field!r}: ...}}; {recording.available_names()}"
        )
    return (
        f"{recording.label}: no {field}: expected columns {field}1, {field}2, ..., or names of joints in them, or keys="
        f"{{{field!r}: ...}} (identify: --column {field}=NAME,NAME,... or {field}=axis*_sensor, * for the joint's"
        f" number or name, or {field}=2-8 without a header); {recording.available_names()}"
    )


def _map(label: str, values: dict[str, np.ndarray], mapping: JointMapping) -> None:
    n = len(mapping.matrix)
    for field in ("q", "v", "a", "tau"):
        if field in values and (values[field].ndim != 2 or values[field].shape[1] != n):
            raise DataError(
                f"{label}: {field}: expected {n} joints as in the joint mapping, got shape {values[field].shape}"
            )
    values["q"], values["tau"] = mapping._rate(values["q"]) + mapping.offset, mapping._torque(values["tau"])
    for field in ("v", "a"):
        if field in values:
            values[field] = mapping._rate(values[field])


def _drop_bad_rows(label: str, values: dict[str, np.ndarray]) -> tuple[str, ...]:
    """Drop, in place, rows with nan or infinity and rows not later than all before; return notes. Raises DataError."""
    n = np.size(values["t"])
    if any(np.ndim(x) == 0 or len(x) != n for x in values.values()):
        return ()  # `Dataset` raises an error for these
    finite = np.all([np.isfinite(x).reshape(n, -1).all(1) for x in values.values()], axis=0)
    latest = np.maximum.accumulate(np.where(finite, values["t"], -np.inf))
    later = np.concatenate(([True], values["t"][1:] > latest[:-1]))
    keep = finite & later
    if keep.all():
        return ()
    back = finite[1:] & (values["t"][1:] < latest[:-1])
    if back.sum() > 0.5 * finite.sum():
        k = int(np.argmax(back))
        raise DataError(
            f"{label}: t: expected increasing time stamps, got {int(back.sum())} of {n} earlier than one before them:"
            f" {latest[k]:.9g} s up to sample {k}, then {values['t'][k + 1]:.9g} s; sort the log, or cut it there"
        )
    for field, x in values.items():
        values[field] = x[keep]
    bad, early = int((~finite).sum()), int((finite & ~later).sum())
    return (f"rows dropped: {bad} with missing numbers, {early} not later than those before",)
