"""Identify a load from a force-torque sensor at the wrist: a source of rows for `torque_rows.solved`.

The load hangs on the sensor. The robot's kinematics give V, Vdot, the sensor frame's body-fixed twist and its rate.
With A = Vdot - (0, R^T g), the wrench that carries the load is linear in its parameters,

    F = J(pi) A - ad_V^T J(pi) V,    measured: +F or -F, and a constant of each axis
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import checked, instance, listed, path_of
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.identification.errors import DataError
from geomctrl.identification.logs import Dataset, Reading, filters
from geomctrl.identification.logs.dataset import check_robot, joints_of, read_log
from geomctrl.identification.logs.reading.fields import fields
from geomctrl.identification.logs.reading.formats import with_wrenches
from geomctrl.identification.logs.reading.recording import Recording, real
from geomctrl.identification.logs.samples import Processing, derive
from geomctrl.mechanism import inertia
from geomctrl.robot import Robot

from .torque_rows import Chunk, Solved, factored, solved

CHANNELS = ("fx", "fy", "fz", "tx", "ty", "tz")
OFFSETS = 6  # unknown constants of the channels
SPATIAL = inertia.spatial(np.eye(10))  # J = sum_k pi_k SPATIAL_k
ORDER = [3, 4, 5, 0, 1, 2]  # (moments, forces), as wrenches are here, to (forces, moments), as sensors have them


@dataclass(frozen=True, eq=False)
class WrenchLog:
    """A log of wrenches (N, 6), forces first, in the frame `sensor`, as a `Source`: six offsets, then the load's ten in
    `frame`. `data`: the motion; `wrench`: the wrenches as positions and torques, filtered alike.
    """

    robot: Robot
    data: Dataset
    wrench: Dataset
    sensor: str
    frame: str
    sign: float = 1.0

    channels: Sequence[str] = CHANNELS

    @property
    def label(self) -> str:
        return self.data.label

    def rows(self) -> Iterator[Chunk]:
        assert self.data.v is not None
        assert self.data.a is not None
        band = self.data.band
        for s in self.data.stretches:
            A = self.sign * self._columns(*(np.array(x[s]) for x in (self.data.q, self.data.v, self.data.a)))
            A[..., :OFFSETS] = np.eye(OFFSETS)
            b, used = self.wrench.tau[s], np.all(np.hstack((self.data.used[s], self.wrench.used[s])), axis=1)
            if band is not None:
                A, b = filters.low_pass(A, self.data.rate, *band), filters.low_pass(b, self.data.rate, *band)
            kept = slice(None, None, self.data.stride)
            yield A[kept], b[kept], np.repeat(used[kept, None], 6, 1)

    def _columns(self, q, v, a) -> np.ndarray:
        """(n, 6, 6 + 10)."""
        T, V, acceleration = self._motion(q, v, a)
        placement = np.linalg.inv(self.robot.frame(self.sensor).placement) @ self.robot.frame(self.frame).placement
        Y = _wrenches(V, acceleration, T[:, :3, :3], self.robot.gravity) @ inertia.transform(placement, np.eye(10)).T
        return np.concatenate((np.zeros((len(q), 6, OFFSETS)), Y), -1)

    def _motion(self, q, v, a) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The sensor frame's pose (n, 4, 4), twist and its rate (n, 6), body-fixed."""
        J = self.robot.jacobian(q, self.sensor)
        Jdot = self.robot.jacobian_rate(q, v, self.sensor)
        twist = np.einsum("nij,nj->ni", J, v)
        return self.robot.pose(q, self.sensor), twist, np.einsum("nij,nj->ni", J, a) + np.einsum("nij,nj->ni", Jdot, v)


def _wrenches(V, acceleration, R, gravity) -> np.ndarray:
    """(n, 6, 10): the wrench that carries a body of unit parameters, forces first."""
    A = acceleration.copy()
    A[:, 3:] -= np.einsum("nji,j->ni", R, gravity)
    momentum = np.einsum("kij,nj->nki", SPATIAL, V)
    w, u = V[:, None, :3], V[:, None, 3:]
    m, f = momentum[..., :3], momentum[..., 3:]
    F = np.einsum("kij,nj->nki", SPATIAL, A)
    F += np.concatenate((np.cross(w, m) + np.cross(u, f), np.cross(w, f)), -1)  # -ad_V^T (m, f)
    return F.swapaxes(-1, -2)[:, ORDER]


# --- the fit --------------------------------------------------------------------------------------------------------


def fit_wrench(source: WrenchLog) -> tuple[Solved, WrenchLog]:
    """(the solved system, its source with the sign that makes the mass positive)."""
    s = solved(factored([source], OFFSETS))
    if s.x[0] < 0.0:
        source = replace(source, sign=-source.sign)
        s = solved(factored([source], OFFSETS))
    return s, source


# --- reading logs of wrenches ----------------------------------------------------------------------------------------


AXES = "xyz"
# words for forces and moments, which an axis' letter follows: fx, force_x, force.x, /wrist/wrench/force/x
COLUMN_NAMES = (("f", "t"), ("f", "m"), ("force", "torque"), ("F", "T"), ("F", "M"), ("Force", "Torque"))
NUMBERED = ("f", "ft", "wrench")  # f1 ... f6, or an array (N, 6)
SEPARATORS = ("", "_", ".", "/")
MAX_OUTSIDE_SHARE = 0.05  # of the motion, before the first and after the last wrench
MAX_HOLE_PERIODS = 3.0  # longest gap between wrenches, in periods


def read_wrenches(
    source: Dataset | str | Path,
    robot: Robot,
    options: Reading,
    wrench: Any,
    sensor: str,
    resample: float | None = None,
) -> tuple[Dataset, Dataset]:
    """(the motion, as `read_log` returns logs, with the torques that hold the robot's weight in place of measured ones;
    the wrenches (N, 6) at its times, forces first, as positions and torques of a Dataset).

    wrench: the columns' names in the order fx, fy, fz, tx, ty, tz, the name of an array or of a topic, None for common
    names; with a Dataset the numbers (N, 6). sensor: their frame. Raises DataError, ArgumentError.
    """
    if isinstance(source, Dataset):
        W = checked("wrench", [] if wrench is None else wrench, ())
        if W.shape != (len(source), 6):
            raise ArgumentError(f"wrench: expected shape ({len(source)}, 6), as the log has samples, got {W.shape}")
        t = source.t
        data = derive(source, tau=_holding(source, robot), mask=np.ones((len(source), robot.nv), bool))
    else:
        moving, *sensors = with_wrenches(path_of("log", source), options.topic)
        recording = _sensor(sensors, wrench) if sensors else moving
        _require_frame(recording, robot, sensor)
        alone = wrench if not sensors or _several(wrench) else None
        columns = wrench_columns(recording, alone)
        data = _motion(moving, robot, options, Path(source).stem)
        t, W = _times_and_wrenches(recording, columns, options)
        data = _within_wrench_times(t, data)
    data = read_log(data, robot, options, resample)
    return data, _at_times(t, W, data)


def _several(wrench: Any) -> bool:
    """Whether columns are named, not a topic."""
    return wrench is not None and not isinstance(wrench, str) and len(listed("wrench", wrench)) > 1


def _sensor(sensors: Sequence[Recording], wrench: Any) -> Recording:
    """The requested wrench topic of a bag. Raises DataError."""
    topics = {next(name for name in x.arrays if name.endswith("/wrench/force/x"))[:-15]: x for x in sensors}
    there, label = ", ".join(topics), sensors[0].label
    if _several(wrench):
        matching = [x for x in sensors if set(wrench) <= set(x.arrays)]
        if not matching:
            raise DataError(f"{label}: wrench: expected the name of a topic, {there}, or columns of one of them")
        return matching[0]
    if wrench is None:
        if len(topics) > 1:
            raise DataError(
                f"{label}: wrench: expected one topic of wrenches, got {len(topics)}: {there}; name one (identify-load:"
                f" --wrench {next(iter(topics))})"
            )
        return sensors[0]
    name = instance("wrench", wrench if isinstance(wrench, str) else listed("wrench", wrench)[0], str, "a topic")
    matching = [x for topic, x in topics.items() if topic.strip("/") == name.strip("/")]
    if not matching:
        raise DataError(f"{label}: wrench: no topic {name!r} of wrenches; there are {there}")
    return matching[0]


def _require_frame(recording: Recording, robot: Robot, sensor: str) -> None:
    """Raise DataError if the log names another frame of the robot for its wrenches."""
    try:
        log_frame = robot.frame(recording.frame) if recording.frame else None
    except NameNotFoundError:
        return  # a name that the driver has chosen
    there = robot.frame(sensor)
    if log_frame is not None and (
        log_frame.body != there.body or not np.allclose(log_frame.placement, there.placement, atol=1e-6)
    ):
        raise DataError(
            f"{recording.label}: sensor: the log's wrenches are in frame {recording.frame!r}, got {sensor!r}, which is"
            " elsewhere on the robot"
        )


def wrench_columns(recording: Recording, wrench: Any) -> list[str]:
    """The names of an array (N, 6), or of the columns of forces and moments. Raises DataError."""
    names = list(recording.arrays)
    if wrench is not None:
        columns = [wrench] if isinstance(wrench, str) else listed("wrench", wrench)
        for name in columns:
            instance("wrench", name, str, "names of columns")
        if len(columns) == 1:
            columns = _columns_with_prefix(columns[0], names)
        elif len(columns) != 6:
            raise ArgumentError(
                f"wrench: expected six columns, fx, fy, fz, tx, ty, tz, or one array, got {len(columns)}"
            )
        if missing := [name for name in columns if name not in names]:
            raise DataError(f"{recording.label}: wrench: no column {missing[0]!r}; {recording.available_names()}")
        return columns
    usual = [x for x in _usual(names) if all(name in names for name in x)]
    if len(usual) > 1:
        raise DataError(
            f"{recording.label}: wrench: {usual[0][0]!r} or {usual[1][0]!r}? name its six columns, or what they begin"
            " with"
        )
    if not usual:
        raise DataError(
            f"{recording.label}: wrench: expected forces and moments of the wrist's sensor, columns fx, fy, fz, tx, ty,"
            f" tz or f1 to f6, or their names (identify-load: --wrench NAME,NAME,...); {recording.available_names()}"
        )
    return usual[0]


def _columns_with_prefix(stem: str, names: Sequence[str]) -> list[str]:
    """The array of that name, or the columns with this prefix: /ft of /ft/wrench/force/x, f of f1 to f6."""
    if stem in names:
        return [stem]
    ways = [x for x in _usual(names) if x[0].startswith(stem) and all(name in names for name in x)]
    return ways[0] if len(ways) == 1 else [f"{stem}{k}" for k in range(1, 7)]


def _usual(names: Sequence[str]) -> list[list[str]]:
    """The common names of six columns whose first one exists."""
    ways = []
    for f, m in COLUMN_NAMES:
        for dash in SEPARATORS:
            for first in (x for x in names if x.endswith(f"{f}{dash}x")):
                before = first[: len(first) - len(f"{f}{dash}x")]
                if not before or not before[-1].isalnum():
                    ways.append([f"{before}{word}{dash}{axis}" for word in (f, m) for axis in AXES])
    ways += [[f"{word}{k}" for k in range(1, 7)] for word in NUMBERED]
    return ways + [[word] for word in NUMBERED]


def _motion(recording: Recording, robot: Robot, options: Reading, label: str) -> Dataset:
    """The log without its wrench and torques."""
    joints = joints_of(robot, options)
    n = len(next(iter(recording.arrays.values()), ()))
    actuators = robot.nv if options.mapping is None else len(options.mapping.matrix)
    silent = replace(recording, arrays={**recording.arrays, "no torques": np.zeros((n, actuators))})
    keys = {k: x for k, x in (options.keys or {}).items() if k not in ("tau", "i")} | {"tau": "no torques"}
    arrays = (np.asarray(x) for x in recording.arrays.values())
    has_holes = any(x.dtype.kind == "f" and np.isnan(x).any() for x in arrays)  # rows of several topics
    rows = options.drop_bad_rows or has_holes
    values, names = fields(silent, replace(options, keys=keys, joints=joints, current_gains=None, drop_bad_rows=rows))
    processing = Processing(history=values.pop("history"))
    data = Dataset(**values, processing=processing, label=label, names=names)
    return derive(data, tau=_holding(data, robot))


def _holding(data: Dataset, robot: Robot) -> np.ndarray:
    """Gravity torques, in place of measured ones, for the check of units."""
    check_robot(data, robot, units=False)
    return robot.gravity_force(data.q)


def _times_and_wrenches(recording: Recording, columns: list[str], options: Reading):
    """(t, W (N, 6)) of the rows that have a wrench."""
    label = recording.label
    parts = [real(label, "wrench", recording.arrays[name]) for name in columns]
    W = np.stack(parts, -1) if len(parts) == 6 else parts[0].T if parts[0].shape[:1] == (6,) else parts[0]
    if W.ndim != 2 or W.shape[1] != 6:
        raise DataError(f"{label}: wrench: expected six columns, got shape {W.shape}")
    keys = {k: x for k, x in (options.keys or {}).items() if k == "t"}
    units = {k: x for k, x in (options.units or {}).items() if k == "t"}
    times = {name: x for name, x in recording.arrays.items() if name not in columns}
    alone = Recording(label, {**times, "no angles": W, "no torques": W}, "array")
    keys |= {"q": "no angles", "tau": "no torques"}
    kept = bool(np.isnan(W).any()) or options.drop_bad_rows
    values, _ = fields(alone, Reading(keys, units, rate=options.rate, drop_bad_rows=kept))
    return values["t"], values["tau"]


def _within_wrench_times(t: np.ndarray, data: Dataset) -> Dataset:
    """The motion at the times of wrenches. Raises DataError if much of it has none."""
    if len(t) < 2 or not (np.diff(t) > 0.0).all():
        raise DataError(f"{data.label}: wrench: expected increasing time stamps of wrenches, got some that go back")
    inside = (data.t >= t[0]) & (data.t <= t[-1])
    if (~inside).mean() > MAX_OUTSIDE_SHARE:
        raise DataError(
            f"{data.label}: wrench: expected wrenches over the whole motion, got them from {t[0]:.6g} to"
            f" {t[-1]:.6g} s, the motion from {data.t[0]:.6g} to {data.t[-1]:.6g} s"
        )
    steps = np.diff(t)
    before = np.clip(np.searchsorted(t, data.t, "right") - 1, 0, len(t) - 2)
    hole = (steps[before] > MAX_HOLE_PERIODS * np.median(steps)) & (data.t != t[before]) & (data.t != t[before + 1])
    kept = inside & ~hole
    if kept.all():
        return data
    note = f"{int((~kept).sum())} samples left out: no wrenches there"
    return derive(data.select(kept), history=(*data.history, note))


def _at_times(t: np.ndarray, W: np.ndarray, data: Dataset) -> Dataset:
    """W at the motion's times, by linear interpolation if they differ."""
    if len(t) == len(data) and np.array_equal(t, data.t):
        return Dataset(data.t, W, W, gaps=data.gaps, label=data.label)
    if not np.isfinite(W).all():
        raise DataError(f"{data.label}: wrench: expected finite numbers")
    values = np.stack([np.interp(data.t, t, w) for w in W.T], -1)
    return Dataset(data.t, values, values, gaps=data.gaps, label=data.label,
                   processing=Processing(history=("wrenches interpolated to the motion's times",)))  # fmt: skip
