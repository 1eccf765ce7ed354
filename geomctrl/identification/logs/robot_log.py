"""A log as the robot needs it: read, checked against the robot, holes bridged or cut, on even time stamps."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from geomctrl.arguments import instance
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import DataError
from geomctrl.robot import Robot

from .dataset import Dataset
from .reading import ANGULAR, LINEAR, FileOptions, Reading, recorded
from .samples import derive

MIN_SAMPLES = 32
MOVED = 0.01  # rad, m: more than noise of encoders


def read_log(source: Dataset | str | Path, robot: Robot, reading: Reading) -> Dataset:
    """The log, fit for the robot, cut at its holes, resampled if asked. Raises DataError, ArgumentError."""
    data = instance("source, path", source, (Dataset, str, os.PathLike), "a Dataset or the path of a log")
    if reading.joints is not None and len(reading.joints) != robot.nv:
        raise ArgumentError(
            f"joints: expected {robot.nv} names, one a joint of {robot.name!r}, got {len(reading.joints)}"
        )
    if not isinstance(data, Dataset):
        path, options = Path(data), replace(reading, joints=joints_of(robot, reading))
        data = Dataset.of_recording(recorded(path, options.topic), options, path.stem)
    data.check(robot, units=reading.check_units)
    if len(data) < MIN_SAMPLES:
        raise DataError(f"{data.label}: {len(data)} samples are no log: expected at least {MIN_SAMPLES}")
    data = _without_empty_velocities(data).with_bridges().cut_at_holes()
    if reading.resample is None and not data.is_even and data.q.shape[1] == data.nv:
        steps = np.concatenate([np.diff(data.t[s]) for s in data.stretches()])
        note = f"time stamps were not even, {steps.min():.3g} to {steps.max():.3g} s apart"
        noted = derive(data, history=(*data.history, note))
        return noted.resampled(float(f"{data.rate:.6g}"))
    return data if reading.resample is None else data.resampled(reading.resample)


def joints_of(robot: Robot, options: FileOptions) -> Sequence[str] | None:
    """What the log calls the robot's joints: as the options say, else as the robot does."""
    return options.joints if options.joints is not None or robot.nq != robot.nv else robot.dof_names


def require_units(robot: Robot, reading: Reading) -> None:
    """Raises ArgumentError for degrees of a joint that slides, or millimetres of one that turns."""
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
    """Without velocities where those of a joint that moves are zero all the time, as where drivers do not fill them in:
    fits would take them for a joint that stands.
    """
    if data.v is None or data.q.shape[1] != data.nv:
        return data
    empty = ~data.v.any(axis=0) & (np.ptp(data.q, axis=0) > MOVED)
    if not empty.any():
        return data
    which = ", ".join(repr(name) for name, x in zip(data.names, empty) if x)
    note = f"measured velocities left out: those of {which} are 0 in every row, although it moves"
    return derive(data, v=None, history=(*data.history, note))
