"""What `identify` can be told, in three groups: how to read a log, how to filter it, what to test on."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from types import NoneType

import numpy as np

from geomctrl.arguments import count, flag, instance, number
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot

from .errors import DataError
from .estimators.cutoffs import Cutoffs, TooShort, choose_cutoffs
from .findings import Finding
from .logs import Dataset, filters, reading, signals
from .logs.reading import ANGULAR, LINEAR
from .logs.samples import derive
from .model.regressor_model import RegressorModel

SHORTEST = 32  # samples: less is no log
MOVED = 0.01  # rad, m: more than noise of encoders
SETTLING = 1.5  # periods of a low-pass: its response is down to 3 %, and what it makes of an end to below noise


@dataclass(frozen=True)
class Reading(reading.Options):
    """How to read a log.

    keys, units, mapping, rate, joints, topic, current_gains, episodes: which arrays or columns, in which units, from
    motors to joints, the sampling rate [Hz] where there are no time stamps, what the log calls the robot's joints
    (default: as the robot does), which of several topics, torques per current, which episodes; see `Dataset.read`.
    drop_bad_rows: leave out rows with missing numbers and repeated time stamps.
    resample [Hz]: put the log on a grid of this rate; default only where its time stamps are not even, at their median
    rate.
    check_units: stop where numbers look like degrees, milliseconds, currents.
    """

    resample: float | None = None
    check_units: bool = True

    def __post_init__(self):
        super().__post_init__()
        if self.resample is not None:
            number("resample", self.resample, "a positive number of hertz", lambda x: x > 0.0)
        flag("check_units", self.check_units)

    def read(self, source: Dataset | str | Path, robot: Robot) -> Dataset:
        """The log, fit for the robot, cut at its holes, resampled if asked. Raises DataError, ArgumentError."""
        instance("robot", robot, Robot, "a geomctrl.Robot")
        data = instance("source, path", source, (Dataset, str, os.PathLike), "a Dataset or the path of a log")
        if self.joints is not None and len(self.joints) != robot.nv:
            raise ArgumentError(
                f"joints: expected {robot.nv} names, one a joint of {robot.name!r}, got {len(self.joints)}"
            )
        if not isinstance(data, Dataset):
            joints = self.joints if self.joints is not None or robot.nq != robot.nv else robot.dof_names
            data = Dataset.read(
                data, self.keys, units=self.units, mapping=self.mapping, rate=self.rate,
                drop_bad_rows=self.drop_bad_rows, joints=joints, topic=self.topic, current_gains=self.current_gains,
                episodes=self.episodes,
            )  # fmt: skip
        data.check(robot, units=self.check_units)
        if len(data) < SHORTEST:
            raise DataError(f"{data.label}: {len(data)} samples are no log: expected at least {SHORTEST}")
        data = _without_empty_velocities(data).with_bridges().cut_at_holes()
        if self.resample is None and not data.is_even and data.q.shape[1] == data.nv:
            steps = np.concatenate([np.diff(data.t[s]) for s in data.stretches()])
            note = f"time stamps were not even, {steps.min():.3g} to {steps.max():.3g} s apart"
            noted = derive(data, history=(*data.history, note))
            return noted.resampled(float(f"{data.rate:.6g}"))
        return data if self.resample is None else data.resampled(self.resample)

    def require_units_of(self, robot: Robot) -> None:
        """Raises ArgumentError for degrees of a joint that slides, or millimetres of one that turns."""
        instance("robot", robot, Robot, "a geomctrl.Robot")
        if not self.check_units or self.mapping is not None or self.units is None:
            return
        slides = [not column[:3].any() for joint in robot.coupling.independent_joints for column in joint.S.T]
        for field, given in self.units.items():
            each = [given] * robot.nv if isinstance(given, str) else list(given)
            for unit, sliding, name in zip(each, slides, robot.dof_names):
                if unit in (ANGULAR if sliding else LINEAR):
                    raise ArgumentError(
                        f"units: {field}: {unit!r} for joint {name!r}, which {'slides' if sliding else 'turns'}; give"
                        f" one unit a joint: {field}={','.join('mm' if s else 'deg' for s in slides)}, say"
                    )


@dataclass(frozen=True)
class Filtering:
    """What is low-passed, thinned and left out.

    cutoff [Hz] of positions: default the one whose motion best predicts torques not trained on, and torque_cutoff then
    up to where motion and torques belong together, see `choose_cutoffs`; torque_cutoff with a cutoff given: the same.
    alike: one low-pass for torques and regressor. decimate: default such that four rows are kept a period of
    torque_cutoff.
    Rows within SETTLING periods of the lower cut-off from an end, a hole or a split are left out.
    saturation: leave out torques at the robot's effort limits. outliers: leave out torques this many robust standard
    deviations off their running median. standstill: speed [rad/s] below which training samples of a joint are left out,
    0 for none; default samples at rest, see `Dataset.at_rest`. delay: seconds by which torques lag positions, taken
    back before all else; "auto": as the log that trains shows.
    """

    cutoff: float | None = None
    torque_cutoff: float | None = None
    alike: bool = True
    decimate: int | None = None
    saturation: bool = True
    outliers: float | None = None
    standstill: float | None = None
    delay: float | str = 0.0

    def __post_init__(self):
        if not (isinstance(self.delay, str) and self.delay == "auto"):
            seconds = number("delay", self.delay, "seconds between -1 and 1, or 'auto'", lambda x: abs(x) < 1.0)
            object.__setattr__(self, "delay", seconds)
        for name, unit in (("cutoff", "hertz"), ("torque_cutoff", "hertz"), ("outliers", "a number")):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, number(name, given, f"{unit} > 0", lambda x: x > 0.0))
        if self.decimate is not None:
            count("decimate", self.decimate, 1)
        flag("alike", self.alike)
        flag("saturation", self.saturation)
        if self.standstill is not None:
            number("standstill", self.standstill, "a speed >= 0", lambda x: x >= 0.0)

    def for_log(self, data: Dataset, chosen: Cutoffs | None = None) -> LogFilter:
        """With the defaults that depend on a log; chosen: the cut-offs to be used where none are given, default the
        motion's bandwidth. Raises ArgumentError.
        """
        instance("data", data, Dataset, "a Dataset")
        instance("chosen", chosen, (Cutoffs, NoneType), "Cutoffs or None")
        if self.cutoff is not None or chosen is None:
            cutoff = torque_cutoff = self.cutoff if self.cutoff is not None else signals.motion_bandwidth(data)
            velocities = True
        else:
            cutoff, torque_cutoff, velocities = chosen.cutoff, chosen.torque_cutoff, chosen.measured_velocities
        torque_cutoff = torque_cutoff if self.torque_cutoff is None else self.torque_cutoff
        filters.require_cutoff(cutoff, data.rate)
        filters.require_cutoff(torque_cutoff, data.rate, "torque_cutoff")
        decimate = self.decimate
        if decimate is None:
            decimate = max(1, int(data.rate / (4.0 * torque_cutoff)))
            decimate -= decimate % min(decimate, signals.thinning(data.rate, cutoff, torque_cutoff))
        return LogFilter(self, cutoff, torque_cutoff, decimate, velocities)

    def choose(self, model: RegressorModel, data: Dataset) -> tuple[Cutoffs | None, list[Finding]]:
        """(what `for_log` is to use, chosen from the torques of a log that are trusted; what is doubtful about it).

        None where a cut-off is given, and where the log is too short. Raises DataError, ArgumentError.
        """
        instance("model", model, RegressorModel, "a RegressorModel")
        instance("data", data, Dataset, "a Dataset")
        if self.cutoff is not None:
            return None, []
        first = self.for_log(data)
        try:
            chosen = choose_cutoffs(model, first.without_outliers(first.without_saturation(data, model.robot)))
        except TooShort as error:
            return None, [Finding("cutoff", str(error), "Record longer, or give a cut-off (identify: --cutoff)")]
        return chosen, chosen.findings()


@dataclass(frozen=True)
class LogFilter:
    """`Filtering` with its numbers settled for one log."""

    settings: Filtering
    cutoff: float
    torque_cutoff: float
    decimate: int
    measured_velocities: bool = True  # used where there are any

    def without_saturation(self, data: Dataset, robot: Robot) -> Dataset:
        instance("data", data, Dataset, "a Dataset")
        instance("robot", robot, Robot, "a geomctrl.Robot")
        effort = np.where(robot.limits.effort > 0.0, robot.limits.effort, np.inf)  # URDF files say 0 for "not known"
        if not (self.settings.saturation and np.isfinite(effort).any()):
            return data
        return data.without_saturation(effort, widen=0.5 / self.torque_cutoff)

    def without_outliers(self, data: Dataset) -> Dataset:
        instance("data", data, Dataset, "a Dataset")
        return data if self.settings.outliers is None else data.without_outliers(self.settings.outliers)

    def without_standstill(self, data: Dataset) -> Dataset:
        instance("data", data, Dataset, "a Dataset")
        if self.settings.standstill is None:
            return data.without_rest()
        return data if self.settings.standstill == 0.0 else data.without_standstill(self.settings.standstill)

    def filtered(self, data: Dataset) -> Dataset:
        """Low-passed and thinned, rows masked where the filters have not settled."""
        instance("data", data, Dataset, "a Dataset")
        if not self.measured_velocities and data.v is not None:
            data = derive(data, v=None, history=(*data.history, "measured velocities are not used"))
        out = data.filtered(
            self.cutoff, torque_cutoff=self.torque_cutoff, alike=self.settings.alike, decimate=self.decimate
        )
        return out.without_edges(SETTLING / min(self.cutoff, self.torque_cutoff))


@dataclass(frozen=True)
class Validation:
    """What an estimate is tested on.

    test: a Dataset or path of another log; or the fraction of the log that is set aside, by phase if the trajectory is
    periodic, by time if not; None: no test.
    period [s] of the trajectory: default looked for.
    reading: how another log is read; default as the one that trains.
    """

    test: Dataset | str | Path | float | None = 0.3
    period: float | None = None
    reading: Reading | None = None

    def __post_init__(self):
        if self.test is not None and not isinstance(self.test, (Dataset, str, os.PathLike)):
            expected = "a fraction between 0 and 1, a log, or None"
            object.__setattr__(self, "test", number("test", self.test, expected, lambda x: 0.0 < x < 1.0))
        if self.period is not None:
            number("period", self.period, "seconds > 0", lambda x: x > 0.0)
        if self.reading is not None:
            instance("reading", self.reading, Reading, "a Reading or None")

    @property
    def needs_period(self) -> bool:
        """Whether the log that trains is split, or has a period that was given and is to be looked at."""
        return self.period is not None or isinstance(self.test, (int, float))

    def period_of(self, data: Dataset) -> float | None:
        """The period, given or found. Raises ArgumentError for one given that the log does not have."""
        instance("data", data, Dataset, "a Dataset")
        if self.period is None:
            return data.period()
        data.require_repeating(self.period)
        return self.period

    def split(self, data: Dataset, period: float | None, guard: float = 0.0) -> tuple[list[Dataset], str]:
        """([training, unseen], in words) of a log, `guard` [s] between them: by phase where there is a period, by time
        where not.
        """
        instance("data", data, Dataset, "a Dataset")
        period = None if period is None else number("period", period, "seconds > 0", lambda x: x > 0.0)
        guard = number("guard", guard, "seconds >= 0", lambda x: x >= 0.0)
        test = self.test
        if not isinstance(test, (int, float)) or not 0.0 < test < 1.0:
            raise ArgumentError(f"test: expected a fraction between 0 and 1, a log, or None, got {test}")
        if period is None:
            words = f"the first {100 * (1 - test):.0f} % of the samples train, the rest is unseen"
            return list(data.split_time(1.0 - test, guard)), words
        words = f"by phase of a period of {period:.5g} s: from {1 - test:.2f} on unseen in every period"
        return list(data.split_phase(period, (1.0 - test, 1.0), guard)), words


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
