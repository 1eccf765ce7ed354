"""A robot log: times, positions, velocities, accelerations, torques, and which of them to trust.

Arrays are (N, ...) with time first, in SI units and in the robot's own joint coordinates; a `JointMapping` takes a log
there from motor coordinates. Nothing is filtered, resampled or dropped unless asked for, and what was done is kept in
`history`, which reports print.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot

from . import filters, reading
from .errors import DataError
from .plausibility import suspicious_units
from .reading import JointMapping

Units = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Samples of one log, or of parts of one.

    t (N,) [s], increasing; q (N, nq); v, a (N, nv) or None; tau (N, nv); mask (N, nv): True where a torque sample is to
    be used. `names`: one per column of tau. `band`: None, or the (cut-off [Hz], order) of the low-pass that is applied
    to the torques and to the model's regressor alike, and `stride` which of the rows after it are kept. `gaps`: sample
    numbers at which a new uninterrupted stretch begins.
    """

    t: np.ndarray
    q: np.ndarray
    tau: np.ndarray
    v: np.ndarray | None = None
    a: np.ndarray | None = None
    mask: np.ndarray | None = None
    names: tuple[str, ...] = ()
    label: str = "log"
    band: tuple[float, int] | None = None
    stride: int = 1
    gaps: tuple[int, ...] = ()
    history: tuple[str, ...] = ()

    def __post_init__(self):
        put = object.__setattr__
        t = _numbers(self.label, "t", self.t, 1)
        if len(t) == 0:
            raise DataError(f"{self.label}: t: expected samples, got none")
        _check_times(self.label, t, self.gaps)
        put(self, "t", t)
        for name in ("q", "v", "a", "tau"):
            x = getattr(self, name)
            if x is None and name in "va":
                continue
            x = _numbers(self.label, name, x, 2)
            if len(x) != len(t):
                raise DataError(f"{self.label}: {name}: expected {len(t)} samples as in t, got {len(x)}")
            put(self, name, x)
        n = self.tau.shape[1]
        for name in ("v", "a"):
            x = getattr(self, name)
            if x is not None and x.shape[1] != n:
                raise DataError(f"{self.label}: {name}: expected {n} joints as in tau, got {x.shape[1]}")
        if self.v is None and self.q.shape[1] != n:
            raise DataError(f"{self.label}: q: expected {n} joints as in tau, got {self.q.shape[1]}")
        mask = np.ones((len(t), n), dtype=bool) if self.mask is None else np.array(self.mask)
        mask = np.repeat(mask[:, None], n, axis=1) if mask.ndim == 1 else mask
        if mask.shape != (len(t), n) or mask.dtype != bool:
            raise DataError(f"{self.label}: mask: expected booleans of shape {(len(t), n)}, got {mask.shape}")
        put(self, "mask", mask)
        names = tuple(self.names) or tuple(f"joint{k + 1}" for k in range(n))
        if len(names) != n:
            raise DataError(f"{self.label}: names: expected {n}, one a joint, got {len(names)}")
        put(self, "names", names)
        for x in (self.t, self.q, self.v, self.a, self.tau, self.mask):
            if x is not None:
                x.setflags(write=False)

    def __repr__(self) -> str:
        has = "".join(f", {name}" for name in "va" if getattr(self, name) is not None)
        parts = f" in {len(self.gaps) + 1} parts" if self.gaps else ""
        size = f"{len(self)} samples at {self.rate:.6g} Hz"
        return f"<Dataset {self.label!r}: t, q{has}, tau of {self.nv} joints, {size}{parts}>"

    # --- reading and writing -----------------------------------------------------------------------------------

    @classmethod
    def from_npz(
        cls,
        path: str | Path,
        keys: Mapping[str, str] | None = None,
        *,
        units: Units | None = None,
        mapping: JointMapping | None = None,
        rate: float | None = None,
        drop_bad_rows: bool = False,
        label: str | None = None,
        names: Sequence[str] = (),
    ) -> Dataset:
        """A log from a numpy archive.

        keys: which array is t, q, v, a, tau, for instance {"q": "A_q_motor_deg"}; default: the usual names, see
        `reading.ALIASES`. units: {"q": "deg", ...}, a list for one a joint, default SI; see `reading.UNITS`. mapping:
        from motor to joint coordinates. rate [Hz]: for logs without time stamps. drop_bad_rows: leave out, and say in
        `history`, rows with missing numbers and repeated time stamps. Raises DataError, ArgumentError.
        """
        path = Path(path)
        return cls.from_arrays(
            reading.npz_arrays(path), keys, units=units, mapping=mapping, rate=rate, drop_bad_rows=drop_bad_rows,
            label=label or path.stem, names=names,
        )  # fmt: skip

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        keys: Mapping[str, str | Sequence[str]] | None = None,
        *,
        units: Units | None = None,
        mapping: JointMapping | None = None,
        rate: float | None = None,
        drop_bad_rows: bool = False,
        label: str | None = None,
        names: Sequence[str] = (),
    ) -> Dataset:
        """A log from a table with a header line, one column a joint: t, q1, q2, ..., tau1, tau2, ...

        keys: which columns, {"t": "stamp", "q": ["base", "elbow"], "tau": "effort"}: a list, or the stem that numbers
        follow (effort1, effort_1, effort[1]), with * where they stand if not at the end (axis*_effort). Comma,
        semicolon, tab or blanks between; an empty cell is a missing number. Other options as for `from_npz`.
        """
        path = Path(path)
        return cls.from_arrays(
            reading.csv_arrays(path, keys or {}), units=units, mapping=mapping, rate=rate, drop_bad_rows=drop_bad_rows,
            label=label or path.stem, names=names,
        )  # fmt: skip

    @classmethod
    def read(cls, path: str | Path, **options: Any) -> Dataset:
        """`from_csv` for .csv, .txt and .tsv, `from_npz` otherwise."""
        return (cls.from_csv if Path(path).suffix.lower() in (".csv", ".txt", ".tsv") else cls.from_npz)(
            path, **options
        )

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, np.ndarray],
        keys: Mapping[str, str] | None = None,
        *,
        units: Units | None = None,
        mapping: JointMapping | None = None,
        rate: float | None = None,
        drop_bad_rows: bool = False,
        label: str = "log",
        names: Sequence[str] = (),
    ) -> Dataset:
        """A log from arrays by name; see `from_npz`."""
        found = reading.fields(arrays, keys or {}, units or {}, mapping, rate, label, drop_bad_rows)
        return cls(**found, label=label, names=tuple(names))

    def save(self, path: str | Path) -> None:
        """Write t, q, v, a, tau and mask as an npz archive that `from_npz` reads."""
        arrays = {key: getattr(self, key) for key in ("t", "q", "v", "a", "tau", "mask")}
        np.savez_compressed(path, **{key: x for key, x in arrays.items() if x is not None})

    # --- facts -------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.t)

    @property
    def nv(self) -> int:
        return self.tau.shape[1]

    @property
    def rate(self) -> float:
        """Sampling rate [Hz]: one over the median interval."""
        return 1.0 / float(np.median(np.diff(self.t))) if len(self) > 1 else np.nan

    def stretches(self) -> list[slice]:
        """The uninterrupted parts."""
        edges = [0, *self.gaps, len(self)]
        return [slice(a, b) for a, b in pairwise(edges)]

    def period(self, tolerance: float = 0.02) -> float | None:
        """Shortest time [s] after which all positions repeat, to `tolerance` of their range; None if they do not.

        At least two periods must be in the longest stretch, which alone is looked at. Its first sample's
        neighbourhood proposes candidates; all its samples decide.
        """
        s = max(self.stretches(), key=lambda part: part.stop - part.start)
        q, n = self.q[s], s.stop - s.start
        scale = np.ptp(q, axis=0).max()
        if n < 20 or scale == 0.0 or not filters.is_uniform(self.t[s]):
            return None
        step = max(1, n // 4000)
        x = q[::step]
        apart = np.abs(x - x[0]).max(1)
        lags = np.arange(5, len(x) // 2 + 1)
        near = lags[apart[lags] < max(2.0 * tolerance * scale, 2.0 * np.abs(np.diff(x, axis=0)).max())]
        for lag in near:
            error = np.abs(x[lag:] - x[:-lag]).max(1)
            if np.sqrt(np.mean(error**2)) < tolerance * scale:
                best = min(
                    range(max(1, (lag - 1) * step), min(n // 2, round(1.1 * lag + 1) * step) + 1),
                    key=lambda k: float(np.mean((q[k:] - q[:-k]) ** 2)),
                )
                if np.abs(x[: max(lag, 1)] - x[0]).max() > 10.0 * tolerance * scale:  # not a robot at rest
                    return best / self.rate
        return None

    def require_period(self, given: float | None = None) -> float:
        """The period given [s], else the one found. Raises DataError, ArgumentError."""
        if given is not None and not (np.isfinite(given) and given > 0.0):
            raise ArgumentError(f"period: expected seconds > 0, got {given}")
        period = self.period() if given is None else given
        if period is None:
            raise DataError(f"{self.label}: period: none found in the log; give it in seconds")
        return period

    def check(self, robot: Robot, units: bool = True) -> None:
        """Raises DataError unless the log fits the robot: joint counts and, if asked, plausible units (saying why
        not).
        """
        if self.nv != robot.nv or self.q.shape[1] != robot.nq:
            raise DataError(
                f"{self.label}: expected {robot.nv} joints (nq = {robot.nq}) as robot {robot.name!r} has, got tau of "
                f"{self.nv} and q of {self.q.shape[1]}; a JointMapping or `keys` can select and couple columns"
            )
        if units:
            doubts = suspicious_units(self, robot)
            if doubts:
                raise DataError(
                    f"{self.label}: wrong units suspected: {'; '.join(doubts)}. Say what they are by"
                    " units={'q': 'deg', ...} (identify: --unit q=deg), or that they are right by check_units=False"
                    " (--no-check-units)"
                )

    # --- parts -------------------------------------------------------------------------------------------------

    def select(self, keep: np.ndarray, label: str | None = None) -> Dataset:
        """The samples where `keep` (N,) is True; every hole starts a new stretch."""
        if np.shape(keep) != (len(self),) or np.asarray(keep).dtype != bool:
            raise ArgumentError(f"keep: expected {len(self)} booleans, got shape {np.shape(keep)}")
        at = np.flatnonzero(keep)
        if len(at) == 0:
            raise DataError(f"{label or self.label}: an empty part: no sample of {len(self)} is left")
        breaks = np.diff(at) > 1
        for gap in self.gaps:
            breaks |= (at[:-1] < gap) & (at[1:] >= gap)
        arrays = {k: getattr(self, k)[at] for k in ("t", "q", "tau", "mask")}
        arrays |= {k: getattr(self, k)[at] for k in ("v", "a") if getattr(self, k) is not None}
        gaps = tuple((np.flatnonzero(breaks) + 1).tolist())
        return replace(self, **arrays, gaps=gaps, label=label or self.label)

    def cut_at_holes(self, longest: float = 5.0, shortest: int = 16) -> Dataset:
        """A new stretch after every sampling interval longer than `longest` median ones, so that nothing is filtered or
        interpolated across it; parts of fewer than `shortest` samples are left out.
        """
        if not longest > 1.0:
            raise ArgumentError(f"longest: expected a number > 1, of median sampling intervals, got {longest}")
        steps = np.diff(self.t)
        holes = np.flatnonzero(steps > longest * np.median(steps)) + 1 if len(steps) else np.zeros(0, int)
        new = sorted(set(holes.tolist()) - set(self.gaps))
        if not new:
            return self
        out = replace(self, gaps=tuple(sorted({*self.gaps, *new})))
        keep = np.ones(len(self), bool)
        for s in out.stretches():
            keep[s] = s.stop - s.start >= shortest
        widest = steps[np.array(new) - 1].max()
        note = (
            f"{len(new)} hole{'s' if len(new) > 1 else ''} of up to {widest:.4g} s, not filtered or interpolated across"
        )
        note += f"; {int((~keep).sum())} samples between them left out" if not keep.all() else ""
        return replace(out.select(keep), history=(*self.history, note))

    def between(self, start: float, stop: float, label: str | None = None) -> Dataset:
        """Samples with start <= t - t[0] < stop [s]."""
        s = self.t - self.t[0]
        return self.select((s >= start) & (s < stop), label)

    def split_time(self, fraction: float = 0.7, guard: float = 0.0) -> tuple[Dataset, Dataset]:
        """(training, test): the first `fraction` of the samples, and the rest after `guard` seconds.

        Unseen only if the trajectory does not repeat: raises DataError for a periodic one (use `split_phase`).
        """
        if not 0.0 < fraction < 1.0:
            raise DataError(f"fraction: expected a number between 0 and 1, else one part is empty; got {fraction}")
        period = self.period()
        if period is not None and period <= fraction * (self.t[-1] - self.t[0]):
            raise DataError(
                f"{self.label}: the trajectory repeats every {period:.4g} s: a split by time would test on motions"
                f" that were trained on; use split_phase(period={period:.6g})"
            )
        cut = round(fraction * len(self))
        after = np.arange(len(self)) >= cut
        late = after & (self.t >= self.t[min(cut, len(self) - 1)] + guard)
        return self.select(~after, f"{self.label}, training"), self.select(late, f"{self.label}, test")

    def split_phase(
        self, period: float | None = None, test: tuple[float, float] = (0.7, 1.0), guard: float = 0.0
    ) -> tuple[Dataset, Dataset]:
        """(training, test) of a periodic trajectory: samples whose phase (t - t[0]) / period mod 1 lies in `test` are
        for testing in every period, so that no tested motion was trained on; `guard` [s] at both edges goes to neither.
        """
        period = self.require_period(period)
        low, high = test
        if not 0.0 <= low < high <= 1.0 or high - low == 1.0:
            raise DataError(f"test: expected phases 0 <= low < high <= 1, not all of them, got {test}")
        phase = ((self.t - self.t[0]) / period) % 1.0
        g = guard / period
        inside = (phase >= low + g) & (phase < high - g)
        outside = ((phase < low - g) & (phase >= (g if high == 1.0 else 0.0))) | (
            (phase >= high + g) & (phase < (1.0 - g if low == 0.0 else 1.0))
        )
        return self.select(outside, f"{self.label}, training"), self.select(inside, f"{self.label}, test")

    # --- signals -----------------------------------------------------------------------------------------------

    def filtered(
        self,
        cutoff: float,
        *,
        order: int = 4,
        method: str = "butterworth",
        torque_cutoff: float | None = None,
        alike: bool = False,
        decimate: int = 1,
    ) -> Dataset:
        """Low-passed positions with velocities and accelerations from them; low-passed torques.

        cutoff, torque_cutoff [Hz] (default: the same): where amplitudes are halved, see `filters`. A measured v is
        low-passed and differentiated once; otherwise q is differentiated twice. method="spline" fits smoothing splines
        to q instead, which also serves time stamps that are not even (torques are then smoothed the same way).
        alike=True leaves the torques as measured and has the model apply one low-pass, at torque_cutoff, to torques and
        regressor: what a filter does to friction's steps then no longer counts as an error. decimate keeps every n-th
        row of the result. Stretches are filtered apart. Raises DataError, ArgumentError.
        """
        if method not in ("butterworth", "spline"):
            raise ArgumentError(f"method: expected 'butterworth' or 'spline', got {method!r}")
        _require_whole("order", order)
        _require_whole("decimate", decimate)
        if self.q.shape[1] != self.nv and self.v is None:
            raise DataError(f"{self.label}: joints with several degrees of freedom need measured velocities v")
        torque_cutoff = cutoff if torque_cutoff is None else torque_cutoff
        if len(self) < 2:
            raise DataError(f"{self.label}: a single sample can not be filtered")
        filters.require_cutoff(cutoff, self.rate)
        filters.require_cutoff(torque_cutoff, self.rate, "torque_cutoff")
        even = all(filters.is_uniform(self.t[s]) for s in self.stretches() if s.stop - s.start > 2)
        if not even and (method == "butterworth" or alike):
            steps = np.concatenate([np.diff(self.t[s]) for s in self.stretches()])
            raise DataError(
                f"{self.label}: t: sampling intervals from {steps.min():.4g} to {steps.max():.4g} s are not even;"
                f" use resampled({self.rate:.6g}) (identify: --resample {self.rate:.6g}), or method='spline' without"
                " alike"
            )
        parts = []
        for s in self.stretches():
            if s.stop - s.start < 16:
                raise DataError(f"{self.label}: a stretch of {s.stop - s.start} samples is too short to filter")
            parts.append(self._filter_stretch(s, cutoff, order, method, None if alike else torque_cutoff))
        q, v, a, tau = (np.concatenate(x) for x in zip(*parts))
        if method == "butterworth":
            what = f"zero-phase Butterworth low-pass of order {order} each way, amplitude 1/2 at {cutoff:g} Hz"
            source = "measured v, differences" if self.v is not None else "central differences"
        else:
            what, source = f"cubic smoothing spline, amplitude 1/2 at {cutoff:g} Hz", "the spline"
        history = [f"positions: {what}; derivatives: {source} of 4th order" if "spline" not in source else
                   f"positions: {what}; derivatives: of the spline"]  # fmt: skip
        history.append(
            f"torques and regressor alike: zero-phase Butterworth, order {order}, amplitude 1/2 at {torque_cutoff:g} Hz"
            if alike
            else f"torques: the same, amplitude 1/2 at {torque_cutoff:g} Hz"
        )
        band = (float(torque_cutoff), order) if alike else self.band
        out = replace(self, q=q, v=v, a=a, tau=tau, band=band, history=(*self.history, *history))
        if decimate == 1:
            return out
        if alike:
            # a low-pass of the whole regressor is dear: thin a log that is sampled far above the pass bands first
            thin = max(
                d
                for d in range(1, decimate + 1)
                if decimate % d == 0 and (d == 1 or d * 12 * max(cutoff, torque_cutoff) <= self.rate)
            )
            if thin > 1:
                guard = 0.25 * self.rate / thin
                tau = np.concatenate([filters.low_pass(out.tau[s], self.rate, guard) for s in out.stretches()])
                out = replace(out, tau=tau).decimated(thin)
                out = replace(
                    out,
                    history=(
                        *out.history[:-1],
                        f"thinned to {out.rate:g} Hz before, torques low-passed at {guard:g} Hz",
                    ),
                )
            note = f"one row kept every {1e3 * decimate / self.rate:g} ms"
            return replace(out, stride=decimate // thin * self.stride, history=(*out.history, note))
        return out.decimated(decimate)

    def _filter_stretch(self, s, cutoff, order, method, torque_cutoff):
        t, dt = self.t[s], 1.0 / self.rate
        if method == "spline":
            q, v, a = filters.smooth(t, self.q[s], cutoff) if self.v is None else (self.q[s], None, None)
            if self.v is not None:
                v, a, _ = filters.smooth(t, self.v[s], cutoff)
            tau = self.tau[s] if torque_cutoff is None else filters.smooth(t, self.tau[s], torque_cutoff)[0]
            return q, v, a, tau
        poses = self.q.shape[1] != self.nv  # a mean of rotation matrices is none: poses stay as measured
        q = self.q[s] if poses else filters.low_pass(self.q[s], self.rate, cutoff, order, "continue")
        v = (
            filters.differentiate(q, dt)
            if self.v is None
            else filters.low_pass(self.v[s], self.rate, cutoff, order, "continue")
        )
        a = filters.differentiate(v, dt)
        tau = self.tau[s] if torque_cutoff is None else filters.low_pass(self.tau[s], self.rate, torque_cutoff, order)
        return q, v, a, tau

    def decimated(self, factor: int) -> Dataset:
        """Every `factor`-th sample of each stretch; low-pass first."""
        _require_whole("factor", factor)
        keep = np.zeros(len(self), dtype=bool)
        for s in self.stretches():
            keep[s][::factor] = True
        arrays = {k: getattr(self, k)[keep] for k in ("t", "q", "tau", "mask")}
        arrays |= {k: getattr(self, k)[keep] for k in ("v", "a") if getattr(self, k) is not None}
        gaps = tuple(int(keep[:g].sum()) for g in self.gaps)
        return replace(self, **arrays, gaps=gaps, history=(*self.history, f"one sample in {factor} kept"))

    def resampled(self, rate: float) -> Dataset:
        """The log on even time stamps, by cubic interpolation within each stretch."""
        from scipy.interpolate import CubicSpline

        if not (np.isfinite(rate) and rate > 0.0):
            raise ArgumentError(f"rate: expected a positive number of hertz, got {rate}")
        if self.q.shape[1] != self.nv:
            raise DataError(f"{self.label}: poses of joints with several degrees of freedom can not be interpolated")
        parts, gaps = [], []
        for s in self.stretches():
            t = self.t[s]
            if len(t) < 2:
                raise DataError(f"{self.label}: a stretch of one sample can not be interpolated")
            new = t[0] + np.arange(int(np.floor((t[-1] - t[0]) * rate + 1e-9)) + 1) / rate
            nearest = np.clip(np.searchsorted(t, new), 0, len(t) - 1)
            columns = [getattr(self, k) for k in ("q", "tau", "v", "a")]
            values = [None if x is None else CubicSpline(t, x[s])(new) for x in columns]
            parts.append([new, np.asarray(self.mask)[s][nearest], *values])
            gaps.append(len(new))
        t, mask, q, tau, v, a = (None if x[0] is None else np.concatenate(x) for x in zip(*parts))
        note = f"resampled at {rate:g} Hz by cubic interpolation"
        gaps = tuple(np.cumsum(gaps)[:-1].tolist())
        return replace(self, t=t, q=q, tau=tau, v=v, a=a, mask=mask, gaps=gaps, history=(*self.history, note))

    # --- masks -------------------------------------------------------------------------------------------------

    def without_saturation(self, effort: ArrayLike, margin: float = 0.99, widen: float = 0.0) -> Dataset:
        """Torque samples at or above `margin` times `effort` (nv,) [N m] masked, `widen` seconds around them too."""
        limit = self._per_joint("effort", effort)
        return self._masked(np.abs(self.tau) >= margin * limit, widen, "saturated")

    def without_outliers(self, threshold: float = 6.0, window: float = 0.05, widen: float = 0.0) -> Dataset:
        """Torque spikes masked: further than `threshold` robust standard deviations from a running median [s]."""
        from scipy.ndimage import median_filter

        for name, value in (("threshold", threshold), ("window", window)):
            if not (np.isfinite(value) and value > 0.0):
                raise ArgumentError(f"{name}: expected a number > 0, got {value}")
        size = 2 * max(1, round(0.5 * window * self.rate)) + 1
        bad = np.zeros_like(self.mask)
        for s in self.stretches():
            off = np.abs(self.tau[s] - median_filter(self.tau[s], size=(size, 1), mode="nearest"))
            # on a steep slope the running median is the sample itself: noise shows in second differences too
            spread = 1.4826 * np.maximum(
                np.median(off, axis=0), np.median(np.abs(np.diff(self.tau[s], 2, axis=0)), axis=0) / np.sqrt(6.0)
            )
            floor = 1e-9 * np.maximum(np.abs(self.tau[s]).max(0), 1e-300)
            bad[s] = off > threshold * np.maximum(spread, floor)
        return self._masked(bad, widen, "outlying")

    def without_standstill(self, speed: ArrayLike, widen: float = 0.0) -> Dataset:
        """Mask, per joint, samples at which it is slower than `speed` [rad/s]: stiction is not Coulomb friction."""
        if self.v is None:
            raise DataError(f"{self.label}: velocities are needed: filter the log first")
        return self._masked(np.abs(self.v) < self._per_joint("speed", speed), widen, "standing")

    def _per_joint(self, name, given):
        x = np.asarray(given, float)
        if x.shape not in ((), (self.nv,)) or np.isnan(x).any() or (x < 0.0).any():
            raise ArgumentError(f"{name}: expected a number >= 0 or {self.nv}, one a joint, got {given!r}")
        return np.broadcast_to(x, (self.nv,))

    def _masked(self, bad, widen, word):
        if not (np.isfinite(widen) and widen >= 0.0):
            raise ArgumentError(f"widen: expected seconds >= 0, got {widen}")
        reach = round(widen * self.rate) if widen else 0  # samples
        if reach:
            from scipy.ndimage import binary_dilation

            for s in self.stretches():
                bad[s] = binary_dilation(bad[s], np.ones((2 * reach + 1, 1), bool))
        note = f"{int((bad & self.mask).sum())} {word} torque samples masked"
        return replace(self, mask=self.mask & ~bad, history=(*self.history, note))


def _numbers(label, name, value, ndim):
    x = reading.real(label, name, value)
    if x.ndim != ndim:
        shape = "(N,)" if ndim == 1 else "(N, joints)"
        raise DataError(f"{label}: {name}: expected shape {shape}, got {x.shape}")
    if not np.isfinite(x).all():
        at = np.argwhere(~np.isfinite(x))
        raise DataError(
            f"{label}: {name}: expected finite numbers, got {x[tuple(at[0])]} at index {at[0].tolist()}"
            f" ({len(at)} such); interpolate them, or drop_bad_rows=True (identify: --drop-bad-rows)"
        )
    return x


def _require_whole(name, value):
    if not value >= 1 or value != int(value):
        raise ArgumentError(f"{name}: expected a whole number from 1, got {value}")


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
