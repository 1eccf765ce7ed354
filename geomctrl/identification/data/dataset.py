"""A robot log: times, positions, velocities, accelerations, torques, and which of them to trust.

Arrays are (N, ...) with time first, in SI units and in the robot's own joint coordinates; a `JointMapping` takes a log
there from motor coordinates. Nothing is filtered, resampled or dropped unless asked for, and what was done is kept in
`history`, which reports print.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import instance, path_of
from geomctrl.errors import ArgumentError
from geomctrl.files import whole

from . import masks, parts, plausibility, reading, signals
from .reading import JointMapping
from .samples import Samples

Units = Mapping[str, str | Sequence[str]]


class Dataset(Samples):
    """Samples of one log, or of parts of one, and what can be done with them.

    t (N,) [s], increasing; q (N, nq); v, a (N, nv) or None; tau (N, nv); mask (N, nv): True where a torque sample is to
    be used; names, label, band, stride, gaps, history: see `Samples`. The constructor copies and checks; what is made
    of a log here shares the arrays that stay the same.
    """

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
        path = path_of("path", path)
        reading.check_options(keys, units, mapping, rate, drop_bad_rows, names, label)
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
        path = path_of("path", path)
        reading.check_options(keys, units, mapping, rate, drop_bad_rows, names, label)
        return cls.from_arrays(
            reading.csv_arrays(path, keys or {}), units=units, mapping=mapping, rate=rate, drop_bad_rows=drop_bad_rows,
            label=label or path.stem, names=names,
        )  # fmt: skip

    @classmethod
    def read(cls, path: str | Path, **options: Any) -> Dataset:
        """`from_csv` for .csv, .txt and .tsv, `from_npz` otherwise."""
        path = path_of("path", path)
        return (cls.from_csv if path.suffix.lower() in (".csv", ".txt", ".tsv") else cls.from_npz)(path, **options)

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
        instance("label", label, str, "words")
        reading.check_options(keys, units, mapping, rate, drop_bad_rows, names)
        if not isinstance(arrays, Mapping) or not all(isinstance(name, str) for name in arrays):
            raise ArgumentError(f"arrays: expected arrays by name, got {arrays!r:.60}")
        found = reading.fields(arrays, keys or {}, units or {}, mapping, rate, label, drop_bad_rows)
        return cls(**found, label=label, names=tuple(names))

    def save(self, path: str | Path) -> None:
        """Write t, q, v, a, tau and mask as an npz archive that `from_npz` reads."""
        path = path_of("path", path)
        arrays = {key: getattr(self, key) for key in ("t", "q", "v", "a", "tau", "mask")}
        path = path if path.suffix == ".npz" else Path(f"{path}.npz")
        with whole(path) as file:
            np.savez_compressed(file, **{key: x for key, x in arrays.items() if x is not None})

    # --- plausibility ------------------------------------------------------------------------------------------

    check = plausibility.check

    # --- parts -------------------------------------------------------------------------------------------------

    select = parts.select
    between = parts.between
    cut_at_holes = parts.cut_at_holes
    split_time = parts.split_time
    split_phase = parts.split_phase
    period = parts.period
    require_period = parts.require_period

    # --- signals -----------------------------------------------------------------------------------------------

    filtered = signals.filtered
    decimated = signals.decimated
    resampled = signals.resampled

    # --- masks -------------------------------------------------------------------------------------------------

    without_saturation = masks.without_saturation
    without_outliers = masks.without_outliers
    without_standstill = masks.without_standstill
