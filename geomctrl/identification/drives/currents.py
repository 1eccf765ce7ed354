"""Logs of motor currents, read as they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from geomctrl.identification.errors import DataError
from geomctrl.identification.logs import Dataset, reading
from geomctrl.identification.logs.reading import Reading
from geomctrl.identification.logs.reading.naming import ALIASES, named
from geomctrl.identification.logs.robot_log import joints_of, read_log
from geomctrl.identification.logs.samples import derive
from geomctrl.robot import Robot


def read_currents(source: Dataset | str | Path, robot: Robot, options: Reading) -> Dataset:
    """The log with currents [A] in its `tau`, as `read_log` gives logs; of a Dataset, tau are currents.

    Torques that the log may have as well are left alone. Raises DataError.
    """
    if isinstance(source, Dataset):
        data = source
    else:
        options = replace(options, joints=joints_of(robot, options), current_gains=1.0)
        recording = reading.recorded(Path(source), options.topic)
        options = replace(options, keys=_keys(recording, options))
        data = Dataset.of_recording(recording, options, Path(source).stem)
    data.check(robot, units=False)
    if options.check_units:  # all but the torques', which are none
        derive(data, tau=robot.gravity_force(data.q)).check(robot)
    return read_log(data, robot, replace(options, current_gains=None, check_units=False))


def _keys(recording: reading.Recording, options: Reading) -> dict:
    """The caller's, and what currents are called where torques are there too."""
    keys = dict(options.keys or {})
    found = named(recording, keys, options.joints, options.topic).arrays
    if "i" not in found:
        raise DataError(
            f"{recording.label}: i: expected motor currents, got none; {recording.there_are()}; say what they are"
            " called by keys={'i': ...} (--column i=NAME)"
        )
    if "i" in keys or "tau" not in found:
        return keys
    for alias in ALIASES["i"]:
        try:
            again = named(recording, keys | {"i": alias}, options.joints, options.topic).arrays
        except DataError:
            continue
        if np.array_equal(again["i"], found["i"]):
            return keys | {"i": alias}
    return keys
