"""The samples of a log as read-only arrays, which the public constructor checks once.

Functions that read, cut, filter or mask a log are in the other modules of this package; `Dataset` has them as methods.
They create results with `derive`, which neither copies nor checks, because arrays computed from checked ones are valid.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np

from geomctrl.arguments import count, instance, listed, number, shown
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import DataError

from . import filters
from .reading.recording import booleans, real


class Processing(NamedTuple):
    """What was done to the samples of a log.

    Parameters
    ----------
    band : tuple (float, int), optional
        Cut-off [Hz] and order of the low-pass that a model applies to torques and regressor alike; default none.
    stride : int, default 1
        Which of the rows after it are kept: every `stride`-th.
    history : tuple of str
        What was done, in sentences that reports print.
    """

    band: tuple[float, int] | None = None
    stride: int = 1
    history: tuple[str, ...] = ()


UNPROCESSED = Processing()


@dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """The arrays of a `Dataset`, which documents them."""

    t: np.ndarray
    q: np.ndarray
    tau: np.ndarray
    v: np.ndarray | None = None
    a: np.ndarray | None = None
    mask: np.ndarray | None = None
    names: tuple[str, ...] = ()
    label: str = "log"
    gaps: tuple[int, ...] = ()
    processing: Processing = UNPROCESSED

    def __post_init__(self):
        _check_words(self)
        label, t = self.label, _numbers(self.label, "t", self.t, 1)
        if len(t) == 0:
            raise DataError(f"{label}: t: expected samples, got none")
        _check_times(label, t, self.gaps)
        arrays = {"t": t}
        for name in ("q", "v", "a", "tau"):
            value = getattr(self, name)
            if value is None and name in "va":
                continue
            x = _numbers(label, name, value, 2)
            if len(x) != len(t):
                raise DataError(f"{label}: {name}: expected {len(t)} samples as in t, got {len(x)}")
            arrays[name] = x
        n = arrays["tau"].shape[1]
        for name in ("v", "a"):
            if name in arrays and arrays[name].shape[1] != n:
                raise DataError(f"{label}: {name}: expected {n} joints as in tau, got {arrays[name].shape[1]}")
        if self.v is None and arrays["q"].shape[1] != n:
            raise DataError(f"{label}: q: expected {n} joints as in tau, got {arrays['q'].shape[1]}")
        names = tuple(self.names) or tuple(f"joint{k + 1}" for k in range(n))
        arrays["mask"] = _mask(label, self.mask, (len(t), n))
        if len(names) != n:
            raise DataError(f"{label}: names: expected {n}, one per joint, got {len(names)}")
        _put(self, {**arrays, "names": names})

    def __len__(self) -> int:
        return len(self.t)

    @property
    def band(self) -> tuple[float, int] | None:
        """Cut-off [Hz] and order of the low-pass that a model applies to torques and regressor alike; None: none."""
        return self.processing.band

    @property
    def stride(self) -> int:
        """Which rows a model keeps after that low-pass: every `stride`-th."""
        return self.processing.stride

    @property
    def history(self) -> tuple[str, ...]:
        """What was done to the samples, in sentences."""
        return self.processing.history

    @property
    def nv(self) -> int:
        return self.tau.shape[1]

    @cached_property
    def rate(self) -> float:
        """Sampling rate [Hz]: the inverse of the median interval."""
        return 1.0 / float(np.median(np.diff(self.t))) if len(self) > 1 else np.nan

    @cached_property
    def is_even(self) -> bool:
        """Whether the time stamps of every uninterrupted part have equal intervals, up to some jitter."""
        return all(filters.is_uniform(self.t[s]) for s in self.stretches if s.stop - s.start > 2)

    @property
    def used(self) -> np.ndarray:
        """The mask, which is never None after construction."""
        assert self.mask is not None
        return self.mask

    @property
    def stretches(self) -> list[slice]:
        """Slices of the uninterrupted parts."""
        edges = [0, *self.gaps, len(self)]
        return [slice(a, b) for a, b in pairwise(edges)]

    @property
    def longest_stretch(self) -> slice:
        """The uninterrupted part with the most samples."""
        return max(self.stretches, key=lambda part: part.stop - part.start)


Log = TypeVar("Log", bound=Samples)


def derive(data: Log, **changes: Any) -> Log:
    """Return the data with these fields changed. Only for results of the library: nothing is copied or checked."""
    done = {name: changes.pop(name) for name in Processing._fields if name in changes}
    changes["processing"] = data.processing._replace(**done)
    out = object.__new__(type(data))
    _put(out, {f.name: getattr(data, f.name) for f in fields(data)} | changes)
    return out


def _put(samples: Samples, values: dict[str, Any]) -> None:
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(samples, name, value)


def _numbers(label: str, name: str, value: Any, ndim: int) -> np.ndarray:
    x = value if _is_shareable(value) else real(label, name, value)
    if x.ndim != ndim:
        shape = "(N,)" if ndim == 1 else "(N, joints)"
        raise DataError(f"{label}: {name}: expected shape {shape}, got {x.shape}")
    if not np.isfinite(x).all():
        indices = np.argwhere(~np.isfinite(x))
        raise DataError(
            f"{label}: {name}: expected finite numbers, got {x[tuple(indices[0])]} at index {indices[0].tolist()}"
            f" ({len(indices)} such); interpolate them, or drop_bad_rows=True (identify: --drop-bad-rows)"
        )
    return x


def _is_shareable(x) -> bool:
    """Whether an array of floats is read-only and not a view of a writable one: such an array is shared, not copied."""
    return isinstance(x, np.ndarray) and x.dtype == np.float64 and x.base is None and not x.flags.writeable


def _mask(label, mask_or_none, shape):
    mask = np.ones(shape, dtype=bool) if mask_or_none is None else booleans("mask", mask_or_none).copy()
    mask = np.repeat(mask[:, None], shape[1], axis=1) if mask.ndim == 1 else mask
    if mask.shape != shape or mask.dtype != bool:
        raise DataError(f"{label}: mask: expected booleans of shape {shape}, got {mask.shape}")
    return mask


def _check_words(x: Samples) -> None:
    """Check the fields that are not arrays."""
    if not isinstance(x.label, str):
        raise ArgumentError(f"label: expected text, got {shown(x.label)}")
    instance("processing", x.processing, Processing, "what filters record, a Processing")
    count("stride", x.stride, 1)
    for name, kind in (("names", str), ("gaps", (int, np.integer)), ("history", str)):
        value = getattr(x, name)
        if not isinstance(value, (tuple, list)) or not all(isinstance(y, kind) for y in listed(name, value, "a tuple")):
            raise ArgumentError(f"{name}: expected a tuple, got {shown(value)}")
    if x.band is not None:
        if not isinstance(x.band, tuple) or len(x.band) != 2:
            raise ArgumentError(f"band: expected (cut-off [Hz], order) or None, got {shown(x.band)}")
        number("band: cut-off", x.band[0], "a number > 0", lambda f: f > 0.0)
        count("band: order", x.band[1], 1)


def _check_times(label, t, gaps):
    steps = np.diff(t)
    if (steps <= 0.0).any():
        k = int(np.argmax(steps <= 0.0))
        raise DataError(
            f"{label}: t: expected increasing time stamps, got {t[k]:.9g} then {t[k + 1]:.9g} s at sample {k + 1}"
            f" ({int((steps <= 0).sum())} such); sort the log, or drop_bad_rows=True (identify: --drop-bad-rows)"
        )
    edges = [0, *gaps, len(t)]
    if any(a >= b for a, b in pairwise(edges)):
        raise DataError(f"{label}: gaps: expected increasing sample numbers from 1 to {len(t) - 1}, got {gaps}")
