"""`identify_load`: identify a load from one or two logs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from geomctrl.arguments import choice, instance
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.identification.errors import DataError, ExcitationError
from geomctrl.identification.estimators import Estimate
from geomctrl.identification.estimators.cutoffs import LogFilter, chosen_cutoffs
from geomctrl.identification.findings import Finding
from geomctrl.identification.logs import Dataset
from geomctrl.identification.logs.dataset import read_log, require_units
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.identification.settings import Filtering, Reading
from geomctrl.mechanism import inertia
from geomctrl.mechanism.mechanism import Frame
from geomctrl.robot import Robot

from .report import Body, LoadReport, body_findings, estimated, model_findings, two_log_findings
from .torque_rows import LOAD_DEPENDENT, Columns, Solved, TorqueLog, factored, known, solved
from .wrist import WrenchLog, fit_wrench, read_wrenches

FRICTION = ("own", "same", "load")
PASSES = 4  # iterations, because friction depends on the torque and the torque on the load


@dataclass(frozen=True, eq=False)
class WristSensor:
    """A force-torque sensor whose wrenches are in a log.

    Parameters
    ----------
    frame : str
        The sensor's frame: wrenches are in its axes, about its origin.
    wrench : sequence of str, str or array_like (N, 6), optional
        Column names of fx, fy, fz, tx, ty, tz, or their common prefix, or a bag's topic of wrenches. With a Dataset:
        the numbers [N, N m], forces first. Default: common names.

    Examples
    --------
    >>> from geomctrl.identification import WristSensor
    >>> WristSensor("tool0", wrench=["fx", "fy", "fz", "tx", "ty", "tz"]).frame
    'tool0'
    """

    frame: str
    wrench: Any = None


def identify_load(
    robot: Robot,
    log: Dataset | str | Path,
    without_load: Dataset | str | Path | None = None,
    *,
    frame: str | None = None,
    identified: Estimate | Mapping[str, Any] | None = None,
    model: RegressorModel | None = None,
    friction: str = "own",
    sensor: str | WristSensor | None = None,
    reading: Reading | None = None,
    filtering: Filtering | None = None,
) -> LoadReport:
    """Identify mass, centre of mass and inertia of a load that is rigidly attached to a robot.

    About 10 s of motion of all joints suffice. Three methods, depending on the arguments: two logs of joint torques,
    with and without the load, from which the robot's base parameters are identified too; one log and a known robot; or
    one log with the wrenches of a force-torque sensor.

    Parameters
    ----------
    robot : Robot
        The robot without the load.
    log : Dataset, str or Path
        Log with the load.
    without_load : Dataset, str or Path, optional
        Log without the load.
    frame : str, optional
        Frame or body that the load moves with; results are in its axes. Default: the last body, or the sensor's.
    identified : Estimate or mapping, optional
        The known robot, for one log: an Estimate, or `load_extra` of its robot.json. Default: the model's parameters.
    model : RegressorModel, optional
        Contributions to the robot's torques. Default: as in `identify`.
    friction : {"own", "same", "load"}
        Friction of the loaded robot. "own" (default): viscous, Coulomb, offsets fitted separately. "same": as without
        load. "load": with a part proportional to the transmitted torque (Hamon, Gautier, Garrec 2010).
    sensor : str or WristSensor, optional
        The force-torque sensor whose wrenches are in the log; a name is its frame. Its offsets are identified.
    reading, filtering : optional
        As for `identify`. With a sensor the default cut-off is five times the bandwidth of the motion.

    Returns
    -------
    LoadReport

    Raises
    ------
    ExcitationError
        If the motion does not determine the mass.
    DataError, ArgumentError, NameNotFoundError
        If a log or argument is invalid.

    Examples
    --------
    load = identify_load(robot, "with.csv", "without.csv", frame="tool0")  # load.mass, .centre, .robot, .text()
    """
    reading, filtering = checked_arguments(robot, log, without_load, model, reading, filtering)
    instance("sensor", sensor, (str, WristSensor, NoneType), "the name of a frame, a WristSensor, or None")
    choice("friction", friction, FRICTION)
    if sensor is not None:
        why = "not with a sensor, whose wrenches need no torques of the robot"
        refuse(why, without_load=without_load, identified=identified, model=model)
        sensor = WristSensor(sensor) if isinstance(sensor, str) else sensor
        return _from_wrenches(robot, log, frame or sensor.frame, sensor, reading, filtering)
    mount = load_frame(robot, frame)
    if without_load is not None:
        refuse("the log without the load already determines the robot; give one of the two", identified=identified)
    logs = {"log": log} if without_load is None else {"without_load": without_load, "log": log}
    return _from_torques(robot, logs, mount, identified, model, friction, reading, filtering)


def _from_torques(
    robot, logs, mount: Frame, identified, model, friction, reading: Reading, filtering: Filtering
) -> LoadReport:
    """From a log without the load and one with it, or from the latter alone and a known robot."""
    robot_known = None if len(logs) == 2 else known(robot, identified, model)
    model = robot_known.model if robot_known is not None else model or RegressorModel(robot)
    data, cut = filtered(
        [read_log(x, robot, reading, filtering.resample, name) for name, x in logs.items()], robot, filtering, model
    )
    loaded = data[-1]
    is_separate = friction == "own" or (friction == "load" and robot_known is not None)
    own, none = own_friction(model) if is_separate else np.zeros(0, int), np.zeros(0, int)
    columns = Columns(model, mount, model.base.columns, own)
    if robot_known is not None:
        columns = Columns(model, mount, none, own, robot_known.x)

    def fit(columns: Columns) -> Solved:
        return solved(factored([TorqueLog(x, columns, x is loaded) for x in data], columns.nuisances))

    s, columns = _with_share(fit, columns, friction)
    body = _determined_body(s, loaded.label)
    seconds, notes = round(loaded.t[-1] - loaded.t[0], 3), {"friction of the loaded robot": friction}
    if robot_known is None:
        findings, source = two_log_findings(s), f"from {loaded.label!r} and, without it, {data[0].label!r}"
        notes |= {"time with load [s]": seconds}
    else:
        torques = np.sqrt(np.mean(np.square(loaded.tau), 0))
        findings = model_findings(s, torques, robot_known.source)
        source = f"from {loaded.label!r} and the robot's model"
        notes = {"robot": robot_known.source, **notes, "time [s]": seconds}
    extra = dict(identified) if isinstance(identified, Mapping) else {}
    findings = (*body_findings(body), *findings, *cut)
    notes |= _shares(columns, s)
    return _report(robot, mount, body, s, source, loaded.history, notes, findings, extra, _friction(columns, s))


def _from_wrenches(robot, log, frame, sensor: WristSensor, reading, filtering) -> LoadReport:
    mount, there = load_frame(robot, frame), load_frame(robot, sensor.frame, "sensor")
    if mount.body != there.body:
        raise ArgumentError(
            f"frame: {mount.name!r} does not move with the sensor {sensor.frame!r}: they are on different links"
        )
    motion, W = read_wrenches(log, robot, reading, sensor.wrench, sensor.frame, filtering.resample)
    filter_ = LogFilter.of(filtering, motion)
    data, W = filter_.filtered(motion), filter_.filtered(W)
    source = WrenchLog(robot, data, W, sensor.frame, mount.name)
    s, source = fit_wrench(source)
    body = _determined_body(s, data.label)
    reads = "the sensor's forces on the load" if source.sign > 0.0 else "the load's forces on the sensor"
    notes: dict[str, Any] = {
        "sign of the wrenches": reads,
        "offsets [N, N m]": ", ".join(f"{x:.5g}" for x in s.nuisances[:6]),
        "time [s]": round(data.t[-1] - data.t[0], 3),
    }
    source_text = f"from {data.label!r}, wrenches of the sensor at {sensor.frame!r}"
    return _report(robot, mount, body, s, source_text, data.history, notes, tuple(body_findings(body)))


# --- pieces ---------------------------------------------------------------------------------------------------------


def _report(
    robot, mount, body: Body, s: Solved, source, history, notes, findings, extra=None, friction=None
) -> LoadReport:
    pi = robot.parameters.copy()
    pi[mount.body] += inertia.transform(mount.placement, body.parameters)
    loaded = robot.with_parameters(pi, physical=False)
    return LoadReport(loaded, mount.name, body, s, source, history, notes, tuple(findings), extra or {}, friction or {})


def load_frame(robot: Robot, frame: str | None, argument: str = "frame") -> Frame:
    """Return the frame, or that of the last body, which moves. Raises ArgumentError, NameNotFoundError."""
    try:
        mount = robot.frame(robot.body_names[-1] if frame is None else frame)
    except NameNotFoundError as error:
        raise NameNotFoundError(f"{argument}: {error}") from None
    if mount.body < 0:
        raise ArgumentError(f"{argument}: {mount.name!r} is fixed to the world and can not carry a load")
    return mount


def own_friction(model: RegressorModel) -> np.ndarray:
    """Numbers of the parameters that may differ with a load attached."""
    return np.concatenate([model.by_kind[kind] for kind in LOAD_DEPENDENT])


def _with_share(fit, columns: Columns, friction: str) -> tuple[Solved, Columns]:
    """Return the fit; with friction "load" it is repeated with the transmitted torques of the previous fit."""
    s = fit(columns)
    for _ in range(PASSES if friction == "load" else 0):
        x = np.zeros(columns.model.size) if columns.known_parameters is None else columns.known_parameters.copy()
        x[columns.base] = s.nuisances[: len(columns.base)]
        columns = replace(columns, transmitted=(x[: columns.model.inertial], s.x))
        s = fit(columns)
    return s, columns


def _friction(columns: Columns, s: Solved) -> dict[str, float]:
    """Friction of the loaded robot by the model's names: the robot's own, and the part fitted with the load."""
    model, first = columns.model, len(s.nuisances) - len(columns.own)
    x = np.zeros(model.size) if columns.known_parameters is None else columns.known_parameters.copy()
    x[columns.base] = s.nuisances[: len(columns.base)]
    x[columns.own] += s.nuisances[first:]
    return {model.names[k]: float(x[k]) for k in own_friction(model)}


def _shares(columns: Columns, s: Solved) -> dict[str, str]:
    if columns.transmitted is None:
        return {}
    first = len(columns.base)
    shares = s.nuisances[first : first + columns.model.robot.nv]
    return {"friction per transmitted torque": ", ".join(f"{x:.3g}" for x in shares)}


def filtered(
    logs: list[Dataset], robot: Robot, filtering: Filtering, model: RegressorModel | None = None
) -> tuple[list[Dataset], list[Finding]]:
    """The logs, low-passed at the same frequencies so that the filters' effect cancels, and findings."""
    names = [data.names for data in logs]
    if any(a != b and not _numbered(a) and not _numbered(b) for a in names for b in names):
        raise DataError(f"{logs[-1].label}: joints: expected those of {logs[0].label!r}, got {', '.join(names[-1])}")
    chosen, findings = (None, []) if model is None else chosen_cutoffs(filtering, model, logs[-1])
    if chosen is not None:
        max_cutoff = 0.2 * min(data.rate for data in logs)
        chosen = replace(
            chosen, cutoff=min(chosen.cutoff, max_cutoff), torque_cutoff=min(chosen.torque_cutoff, max_cutoff)
        )
    filters = [LogFilter.of(filtering, data, chosen) for data in logs]
    if chosen is None:
        cutoff, torque_cutoff = min(f.cutoff for f in filters), min(f.torque_cutoff for f in filters)
        both = replace(filtering, cutoff=cutoff, torque_cutoff=torque_cutoff)
        filters = [LogFilter.of(both, data) for data in logs]
    return [f.moving(f.filtered(f.cleaned(data, robot))) for f, data in zip(filters, logs)], findings


def _numbered(names: tuple[str, ...]) -> bool:
    return names == tuple(f"joint{k + 1}" for k in range(len(names)))


def _determined_body(s: Solved, label: str) -> Body:
    """Raise ExcitationError if not even the mass is determined."""
    body = estimated(s.W, s.b)
    if not np.isfinite(body.quantities()["mass"]).all():
        raise ExcitationError(
            f"{label}: too little motion: the log does not determine the load's mass; move the joints that lift it,"
            " over wide angles, for about 10 s"
        )
    return body


def checked_arguments(
    robot: Any, log: Any, without_load: Any, model: Any, reading: Any, filtering: Any
) -> tuple[Reading, Filtering]:
    """Return reading and filtering, or their defaults. Raises ArgumentError for arguments of the wrong type."""
    expected = "a Dataset or the path of a log"
    for name, x, kind, description in (
        ("robot", robot, Robot, "a geomctrl.Robot"),
        ("log", log, (Dataset, str, os.PathLike), expected),
        ("without_load", without_load, (Dataset, str, os.PathLike, NoneType), f"{expected}, or None"),
        ("model", model, (RegressorModel, NoneType), "a RegressorModel or None"),
        ("reading", reading, (Reading, NoneType), "a Reading or None"),
        ("filtering", filtering, (Filtering, NoneType), "a Filtering or None"),
    ):
        instance(name, x, kind, description)
    if model is not None and model.robot is not robot:
        raise ArgumentError("model: expected one of this robot, got one of another robot")
    reading = reading or Reading()
    require_units(robot, reading)
    return reading, filtering or Filtering()


def refuse(why: str, **arguments: Any) -> None:
    """Raise ArgumentError for the first of these arguments that is not None."""
    for name, value in arguments.items():
        if value is not None:
            raise ArgumentError(f"{name}: {why}")
