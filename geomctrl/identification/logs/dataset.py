"""`Dataset`: the log of a robot with times, positions, velocities, accelerations, torques, and a mask of valid samples.

Arrays are (N, ...) with time first, in SI units and in the robot's joint coordinates; a `JointMapping` converts motor
coordinates. Nothing is filtered, resampled or dropped unless requested. `history` lists all operations, and reports
print it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import instance, is_a, listed, mapped, path_of
from geomctrl.errors import ArgumentError
from geomctrl.files import whole
from geomctrl.identification.errors import DataError
from geomctrl.robot import Robot

from . import parts, signals
from .reading.fields import fields
from .reading.formats import recorded
from .reading.options import ANGULAR, DEGREE, LINEAR, RPM, Reading
from .reading.recording import Recording
from .samples import Processing, Samples, derive

LAG_SECONDS = 0.1  # s: short compared with a robot's reversals, long enough to move by more than an encoder step
STEP_TOLERANCE = 0.01  # relative: how close quantised torques are to multiples of the step


def check_robot(data: Samples, robot: Robot, units: bool = True) -> None:
    """Raise DataError unless the log fits the robot: joint counts and, if `units` is True, plausible units."""
    if data.nv != robot.nv or data.q.shape[1] != robot.nq:
        raise DataError(
            f"{data.label}: expected {robot.nv} joints (nq = {robot.nq}) as robot {robot.name!r} has, got tau of "
            f"{data.nv} and q of {data.q.shape[1]}; a JointMapping or `keys` can select and couple columns"
        )
    if units:
        findings = suspicious_units(data, robot)
        if findings:
            raise DataError(
                f"{data.label}: wrong units suspected: {'; '.join(findings)}. Say what they are by"
                " units={'q': 'deg', ...} (identify: --unit q=deg), or that they are right by check_units=False"
                " (--no-check-units)"
            )


def suspicious_units(data: Samples, robot: Robot | None = None) -> list[str]:
    """Reasons to believe that an array is not in SI units; empty if there are none."""
    findings = []
    one_dof = data.q.shape[1] == data.nv
    s = data.stretches[0]
    t = data.t[s]
    if len(t) > 10 and one_dof and data.v is not None:
        findings += _velocity_scale(data, s)
    if len(t) > 10 and np.median(np.diff(t)) > 0.9:
        findings.append(f"the sampling interval is {np.median(np.diff(t)):.4g} s (t in milliseconds or nanoseconds?)")
    if robot is not None and one_dof:
        findings += _beyond_limits(data, robot) + _torque_scale(data, robot)
    return findings


def _velocity_scale(data, s):
    """Compare measured velocities with displacements over LAG_SECONDS, because encoder noise affects rates more."""
    t, v = data.t[s], data.v[s]
    gone = np.concatenate((np.zeros((1, data.nv)), np.cumsum(0.5 * np.diff(t)[:, None] * (v[1:] + v[:-1]), axis=0)))
    lag = min(max(1, round(LAG_SECONDS / float(np.median(np.diff(t))))), len(t) // 2)
    whole = t[lag:] - t[:-lag] < 1.5 * lag * np.median(np.diff(t))  # excludes intervals with gaps
    displacement, integrated = (x[lag:][whole] - x[:-lag][whole] for x in (data.q[s], gone))
    power = np.sum(integrated * integrated, 0)
    moving = power > 1e-6 * power.max() if power.max() > 0.0 else np.zeros(data.nv, bool)
    if not moving.any():
        return []
    displacement, integrated = displacement[:, moving], integrated[:, moving]
    ratio = np.sum(displacement * integrated, 0) / power[moving]
    fit = np.sqrt(np.sum((displacement - ratio * integrated) ** 2, 0) / np.sum(displacement**2, 0).clip(1e-300))
    off = ((np.abs(np.log(np.abs(ratio).clip(1e-12))) > np.log(1.5)) | (ratio < 0.0)) & (fit < 0.5)
    if not off.any():
        return []
    k = int(np.argmax(off))
    joint = data.names[int(np.flatnonzero(moving)[k])]
    causes = {57.29578: "q in degrees or v not", 1 / 57.29578: "v in degrees a second", RPM: "v in rpm",
             1e-3: "t in ms", 1e-9: "t in ns", 1e-6: "t in us", -1.0: "v with the other sign"}  # fmt: skip
    hint = next((word for value, word in causes.items() if np.isclose(ratio[k], value, rtol=0.05)), "a gear ratio?")
    return [f"dq/dt is {ratio[k]:.4g} times v of {joint} ({hint})"]


def _beyond_limits(data, robot):
    turning, largest = robot.is_rotational, np.abs(data.q).max(0)
    limit = np.maximum(np.abs(robot.limits.lower), np.abs(robot.limits.upper))
    limit = np.where(np.isfinite(limit) | ~turning, limit, 4.0 * np.pi)
    reach = limit + np.where(turning, 1.0, 0.1 * limit)
    bad = largest > np.where(turning, np.maximum(3.0 * reach, 15.0), 3.0 * reach)
    if not bad.any():
        return []
    k = int(np.argmax(bad))
    unit, other, factor = ("rad", "degrees", DEGREE) if turning[k] else ("m", "millimetres", 1e-3)
    fits = f"in {other} it would fit" if largest[k] * factor <= reach[k] else "a motor-side angle?"
    return [f"q of {data.names[k]} reaches {largest[k]:.4g} {unit} where {limit[k]:.4g} is the limit; {fits}"]


def _torque_scale(data, robot):
    """Compare torques with those of gravity, if the robot has masses and torques are not high-passed."""
    if not robot.parameters[:, 0].any() or len(data) < 10:
        return []
    some = np.linspace(0, len(data) - 1, min(len(data), 400)).astype(int)
    gravity = np.sqrt(np.mean(robot.gravity_force(data.q[some]) ** 2))
    measured = np.sqrt(np.mean(data.tau[some] ** 2))
    if gravity < 1e-9:
        return []
    if measured < 0.02 * gravity:
        hint = "motor-side torques, currents or kN m?"
    elif measured > 200.0 * gravity:
        hint = "N mm, or a load the model lacks?"
    else:
        return []
    return [f"torques are {measured:.3g} N m rms where gravity alone takes {gravity:.3g} ({hint})"]


def torque_steps(data: Samples) -> np.ndarray:
    """The quantisation step (nv,) in which each joint's torques were recorded, 0 if there is none."""
    out = np.zeros(data.nv)
    for k, tau in enumerate(np.asarray(data.tau).T):
        levels = np.unique(tau)
        if 1 < len(levels) < 0.2 * len(tau):
            between = np.diff(levels)
            step = float(between[between > 1e-6 * np.ptp(levels)].min())
            multiples = (levels - levels[0]) / step
            out[k] = step if (np.abs(multiples - np.round(multiples)) < STEP_TOLERANCE).mean() > 0.95 else 0.0
    return out


def coarseness(data: Samples) -> np.ndarray:
    """Quantisation error (nv,) of the torques (root mean square), relative to the variation of each joint's torques."""
    return torque_steps(data) / np.sqrt(12.0) / np.maximum(np.asarray(data.tau).std(axis=0), 1e-300)


# --- the dataset -----------------------------------------------------------------------------------------------------


Keys = Mapping[str, str | Sequence[str]]


class Dataset(Samples):
    """The samples of a log, or of parts of one, with methods to filter, cut and mask them.

    Methods return a new Dataset; arrays that do not change are shared. The constructor copies and checks its arguments.

    Parameters
    ----------
    t : array_like, shape (N,)
        Time stamps [s], increasing.
    q : array_like, shape (N, nq)
        Configurations [rad, m].
    v, a : array_like, shape (N, nv), or None
        Velocities [rad/s, m/s] and accelerations [rad/s^2, m/s^2].
    tau : array_like, shape (N, nv)
        Torques [N m, N].
    mask : array_like of bool, shape (N, nv), optional
        True for torque samples to use. Default: all.
    names : sequence of str, optional
        One for each joint. Default: "joint1", "joint2", ...
    label : str, default "log"
        The name of the log in messages.
    gaps : sequence of int, optional
        Sample numbers at which a new uninterrupted part begins.
    processing : Processing, optional
        What was done to the samples; methods record it.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl.identification import Dataset
    >>> t = np.linspace(0.0, 1.0, 101)
    >>> log = Dataset(t, q=np.sin(t)[:, None], tau=np.cos(t)[:, None])
    >>> log
    <Dataset 'log': t, q, tau of 1 joints, 101 samples at 100 Hz>
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
        source: str | Path | Mapping[str, np.ndarray],
        keys: Keys | None = None,
        *,
        label: str | None = None,
        names: Sequence[str] = (),
        **options: Any,
    ) -> Dataset:
        """Read a log from a file, or from arrays by name.

        Formats: npz archive, table (CSV, parquet), MATLAB's .mat, HDF5, ROS bag (a file, or the folder of a ROS 2 bag),
        LeRobot dataset (a folder).

        Parameters
        ----------
        source : str, Path or mapping
            The file or folder, or arrays by name.
        keys : mapping, optional
            Which arrays or columns are t, q, v, a, tau, or currents i; see `Reading`.
        label : str, optional
            Name of the log in messages. Default: the file name, "log" for arrays.
        names : sequence of str, optional
            Joint names. Default: those of the file.
        **options
            Other fields of `Reading` except `check_units`: units, mapping, rate, drop_bad_rows, joints,
            topic, current_gains, episodes.

        Returns
        -------
        Dataset

        Raises
        ------
        DataError, ArgumentError
            If the file can not be read, or has no such columns.

        Examples
        --------
        >>> import numpy as np
        >>> from geomctrl.identification import Dataset
        >>> t = np.linspace(0.0, 1.0, 101)
        >>> len(Dataset.read({"time": t, "position": np.sin(t)[:, None], "torque": np.cos(t)[:, None]}))
        101
        """
        file_options = Reading(keys, **options)
        for name in (names := listed("names", names, "one per joint")):
            instance("names", name, str, "one per joint")
        if label is not None:
            instance("label", label, str, "text")
        if not is_a(source, Mapping):
            path = path_of("source", source)
            recording = recorded(path, file_options.topic)
            return cls._of_recording(recording, file_options, label or path.stem, names)
        for name in mapped("source", source, "arrays by name"):  # `source` may have more: coordinates of xarray
            instance("source", name, str, "arrays by name")
        recording = Recording(label or "log", source, "array")
        return cls._of_recording(recording, file_options, recording.label, names)

    @classmethod
    def _of_recording(cls, recording: Recording, options: Reading, label: str, names: Sequence[str] = ()) -> Dataset:
        """Create a log from the numbers of a recording."""
        values, joints = fields(recording, options)
        processing = Processing(history=values.pop("history"))
        return cls(**values, processing=processing, label=label, names=tuple(names) or joints)

    def save(self, path: str | Path) -> None:
        """Write t, q, v, a, tau and mask as an npz archive that `read` can read.

        Parameters
        ----------
        path : str or Path
            File to write; .npz is appended if missing.

        Examples
        --------
        >>> import numpy as np
        >>> from geomctrl.identification import Dataset
        >>> t = np.linspace(0.0, 1.0, 101)
        >>> log = Dataset(t, q=np.sin(t)[:, None], tau=np.cos(t)[:, None])
        >>> log.save("log.npz")
        >>> len(Dataset.read("log.npz"))
        101
        """
        path = path_of("path", path)
        arrays = {key: getattr(self, key) for key in ("t", "q", "v", "a", "tau", "mask")}
        path = path if path.suffix == ".npz" else Path(f"{path}.npz")
        with whole(path) as file:
            np.savez_compressed(file, **{key: x for key, x in arrays.items() if x is not None})

    # --- cutting, filtering, masking ---------------------------------------------------------------------------

    select = parts.select
    split = parts.split
    filtered = signals.filtered
    resampled = signals.resampled
    without = signals.without


# --- logs of a robot -------------------------------------------------------------------------------------------------


MIN_SAMPLES = 32
MIN_MOTION = 0.01  # rad, m: more than encoder noise


def read_log(
    source: Dataset | str | Path, robot: Robot, reading: Reading, resample: float | None = None, name: str = "log"
) -> Dataset:
    """Read a log for the robot, split it at gaps, and resample it to a rate [Hz], by default if it is uneven; `name`:
    of the argument, for messages.
    """
    data = instance(name, source, (Dataset, str, os.PathLike), "a Dataset or the path of a log")
    if reading.joints is not None and len(reading.joints) != robot.nv:
        raise ArgumentError(
            f"joints: expected {robot.nv} names, one per joint of {robot.name!r}, got {len(reading.joints)}"
        )
    if not isinstance(data, Dataset):
        path, options = path_of(name, data), replace(reading, joints=joints_of(robot, reading))
        data = Dataset._of_recording(recorded(path, options.topic), options, path.stem)
    check_robot(data, robot, units=reading.check_units)
    if len(data) < MIN_SAMPLES:
        raise DataError(f"{data.label}: expected a log of at least {MIN_SAMPLES} samples, got {len(data)}")
    data = parts.cut_at_holes(parts.with_bridges(_without_empty_velocities(data)))
    if resample is None and not data.is_even and data.q.shape[1] == data.nv:
        steps = np.concatenate([np.diff(data.t[s]) for s in data.stretches])
        note = f"time stamps were not even, {steps.min():.3g} to {steps.max():.3g} s apart"
        noted = derive(data, history=(*data.history, note))
        return noted.resampled(float(f"{data.rate:.6g}"))
    return data if resample is None else data.resampled(resample)


def joints_of(robot: Robot, options: Reading) -> Sequence[str] | None:
    """Names of the robot's joints in the log: from the options, otherwise the robot's."""
    return options.joints if options.joints is not None or robot.nq != robot.nv else robot.dof_names


def require_units(robot: Robot, reading: Reading) -> None:
    """Raise ArgumentError for degrees of a prismatic joint, or millimetres of a revolute joint."""
    if not reading.check_units or reading.mapping is not None or reading.units is None:
        return
    slides = [not column[:3].any() for joint in robot.coupling.independent_joints for column in joint.S.T]
    for field, unit_or_units in reading.units.items():
        each = [unit_or_units] * robot.nv if isinstance(unit_or_units, str) else list(unit_or_units)
        for unit, sliding, name in zip(each, slides, robot.dof_names):
            if unit in (ANGULAR if sliding else LINEAR):
                raise ArgumentError(
                    f"units: {field}: {unit!r} for joint {name!r}, which {'slides' if sliding else 'turns'}; give"
                    f" one unit a joint: {field}={','.join('mm' if s else 'deg' for s in slides)}, say"
                )


def _without_empty_velocities(data: Dataset) -> Dataset:
    """Remove velocities if those of a moving joint are zero throughout, as drivers that do not measure them write."""
    if data.v is None or data.q.shape[1] != data.nv:
        return data
    empty = ~data.v.any(axis=0) & (np.ptp(data.q, axis=0) > MIN_MOTION)
    if not empty.any():
        return data
    which = ", ".join(repr(name) for name, x in zip(data.names, empty) if x)
    note = f"measured velocities left out: those of {which} are 0 in every sample, although it moves"
    return derive(data, v=None, history=(*data.history, note))
