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

from geomctrl.arguments import choice, instance, path_of
from geomctrl.errors import ArgumentError
from geomctrl.files import whole

from . import edges, masks, parts, plausibility, reading, repeats, signals
from .samples import Samples

Keys = Mapping[str, str | Sequence[str]]


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
    def read(
        cls,
        path: str | Path,
        keys: Keys | None = None,
        *,
        label: str | None = None,
        names: Sequence[str] = (),
        form: str | None = None,
        **options: Any,
    ) -> Dataset:
        """A log from a file: an npz archive, a table (CSV, parquet), MATLAB's .mat, HDF5, a ROS bag (a file, or the
        folder of a ROS 2 bag or of a LeRobot dataset).

        Parameters
        ----------
        path : str or Path
        keys : mapping, optional
            Which arrays or columns are t, q, v, a, tau, or currents i; see `Reading`.
        label : str, optional
            What messages call the log; default the file's name.
        names : sequence of str, optional
            Of the joints; default as the file has them.
        form : str, optional
            A key of `reading.formats.FORMATS`; default by the file's first bytes or its suffix.
        **options
            Other fields of `Reading` but `resample` and `check_units`: units, mapping, rate, drop_bad_rows, joints,
            topic, current_gains, episodes.

        Raises
        ------
        DataError, ArgumentError
        """
        path = path_of("path", path)
        file_options = reading.FileOptions(keys, **options)
        if form is not None:
            choice("form", form, reading.FORMATS)
        _check_words(label, names)
        return cls.of_recording(
            reading.recorded(path, file_options.topic, form), file_options, label or path.stem, names
        )

    @classmethod
    def from_npz(cls, path: str | Path, keys: Keys | None = None, **options: Any) -> Dataset:
        """`read`, of a numpy archive whatever its name."""
        return cls.read(path, keys, form="npz", **options)

    @classmethod
    def from_csv(cls, path: str | Path, keys: Keys | None = None, **options: Any) -> Dataset:
        """`read`, of a table with a header line whatever its name: t, q1, q2, ..., tau1, tau2, ...; comma, semicolon,
        tab or blanks between; an empty cell is a missing number.
        """
        return cls.read(path, keys, form="csv", **options)

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, np.ndarray],
        keys: Keys | None = None,
        *,
        label: str = "log",
        names: Sequence[str] = (),
        **options: Any,
    ) -> Dataset:
        """A log from arrays by name; see `read`."""
        instance("label", label, str, "words")
        file_options = reading.FileOptions(keys, **options)
        _check_words(label, names)
        if not isinstance(arrays, Mapping) or not all(isinstance(name, str) for name in arrays):
            raise ArgumentError(f"arrays: expected arrays by name, got {arrays!r:.60}")
        return cls.of_recording(reading.Recording(label, arrays, "array"), file_options, label, names)

    @classmethod
    def of_recording(
        cls, recording: reading.Recording, options: reading.FileOptions, label: str, names: Sequence[str] = ()
    ) -> Dataset:
        """A log from numbers by name."""
        values, joints = reading.fields(recording, options)
        return cls(**values, label=label, names=tuple(names) or joints)

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
    with_bridges = edges.with_bridges
    split_time = parts.split_time
    split_phase = parts.split_phase
    period = repeats.period
    require_period = repeats.require_period
    require_repeating = repeats.require_repeating

    # --- signals -----------------------------------------------------------------------------------------------

    filtered = signals.filtered
    decimated = signals.decimated
    resampled = signals.resampled
    without_delay = signals.without_delay

    # --- masks -------------------------------------------------------------------------------------------------

    without_saturation = masks.without_saturation
    without_outliers = masks.without_outliers
    without_standstill = masks.without_standstill
    at_rest = masks.at_rest
    without_rest = masks.without_rest
    without_edges = edges.without_edges


def _check_words(label: Any, names: Any) -> None:
    if isinstance(names, str) or not isinstance(names, Sequence) or not all(isinstance(x, str) for x in names):
        raise ArgumentError(f"names: expected one a joint, got {names!r:.60}")
    if label is not None:
        instance("label", label, str, "words")
