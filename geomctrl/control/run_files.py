"""Runs in .npz files: the arrays that are written, and the run that they are read as."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import path_of, shown
from geomctrl.errors import ArgumentError
from geomctrl.files import read_arrays, whole
from geomctrl.output import printable

from .contracts import Desired
from .monitors import HELD, UNRESOLVED, VIOLATED, Finding
from .monitors.monitor import MonitorResult
from .samples import ComparisonResult, Samples


def save_run(run: Any, path: str | os.PathLike) -> Path:
    """Write a run to an .npz file, as `Run.save` describes."""
    path = path_of("path", path)
    if path.suffix != ".npz":
        raise ArgumentError(f"path: expected a name that ends in .npz, got {os.fspath(path)!r:.80}")
    arrays = {"t": run.t, "q": run.q, "v": run.v, "tau": run.tau}
    for name, a in (("z", run.z), ("x", run.x), ("applied", run.applied)):
        if a is not None and a is not run.tau:
            arrays[name] = a
    if run.desired is not None:
        arrays |= {f"{name}_desired": x for name, x in run.desired._asdict().items()}
    arrays |= {f"signal/{k}": x for k, x in run.signals.items()}
    arrays |= {f"measured/{k}": x for k, x in run.measured.items()}
    arrays |= {f"monitor/{k}": m.values for k, m in run.monitors.items()}
    verdicts = {k: [m.description, m.limit, m.worst, m.t_worst, m.finding] for k, m in run.monitors.items()}
    about = {"reason": run.reason, "success": run.success, "steps": run.steps, "wall_time": run.wall_time}
    about |= {"compared": run.compared}
    about |= {"monitors": verdicts, "robot": _robot_of(run.plant), "controller": type(run.controller).__name__}
    arrays["about"] = np.array(json.dumps(about))
    with whole(path) as file:
        np.savez_compressed(file, **arrays)  # pyright: ignore[reportArgumentType]
    return path


def read_arguments(path: str | os.PathLike, plant: Any) -> tuple[Any, ...]:
    """Read the file of a run and return the arguments of `Run`; raise ArgumentError for a file that is none."""
    path = path_of("path", path)  # `open` would take an integer as a file descriptor and close it
    try:
        samples, *others = arguments_of(read_arrays(path), plant)
    except FileNotFoundError:
        raise ArgumentError(f"path: no such file: {os.fspath(path)!r}") from None
    except Exception as error:  # JSON of a file by others may be anything
        raise ArgumentError(
            f"path: {os.fspath(path)!r} is not a saved run: {type(error).__name__}: {error!s:.200}"
        ) from error
    if plant is not None and (plant.robot.nq, plant.robot.nv) != (samples.q.shape[1], samples.v.shape[1]):
        sizes = f"nq = {plant.robot.nq} and nv = {plant.robot.nv}"
        run_sizes = f"{samples.q.shape[1]} and {samples.v.shape[1]}"
        raise ArgumentError(f"plant: its robot {plant.robot.name!r} has {sizes}, the run {run_sizes}")
    return samples, *others


def arguments_of(data: dict[str, np.ndarray], plant: Any) -> tuple[Any, ...]:
    """The arguments of `Run` from the arrays that `save_run` wrote; ValueError or KeyError if they are invalid."""
    about = json.loads(str(data.pop("about")))
    for name, x in data.items():
        if x.dtype.kind not in "fiub" or x.shape[:1] != data["t"].shape:
            raise ValueError(f"{name}: expected {data['t'].shape} rows of numbers, got {x.dtype} of shape {x.shape}")
    monitors = {
        printable(k): MonitorResult(
            printable(k),
            printable(description),
            _number(limit),
            data[f"monitor/{k}"],
            _number(worst),
            _number(t),
            _finding(finding),
        )
        for k, (description, limit, worst, t, finding) in about["monitors"].items()
    }
    samples = Samples(
        data["t"],
        data["q"],
        data["v"],
        data["tau"],
        z=data.get("z"),
        x=data.get("x"),
        applied=data.get("applied"),  # pyright: ignore[reportArgumentType]
        desired=Desired(*(data[f"{x}_desired"] for x in "qva")) if "q_desired" in data else None,
        signals={k.removeprefix("signal/"): x for k, x in data.items() if k.startswith("signal/")},
        measured={k.removeprefix("measured/"): x for k, x in data.items() if k.startswith("measured/")},
    )
    compared = about["compared"]
    if compared is not None:
        samples_compared, difference, device, precision = compared
        compared = ComparisonResult(int(samples_compared), _number(difference), printable(device), printable(precision))
    ending = printable(about["reason"]), bool(about["success"]), int(about["steps"]), float(about["wall_time"])
    return samples, monitors, *ending, plant, None, compared


def _number(x: Any) -> float:
    if isinstance(x, bool) or not isinstance(x, (int, float)):
        raise ValueError(f"expected a number, got {shown(x)}")
    return float(x)


def _finding(saved: list | None) -> Finding | None:
    """The confirmation stored in a file. Raises ValueError if it is invalid."""
    if saved is None:
        return None
    verdict, reason, advice, dt = saved
    finding = Finding(str(verdict), printable(reason), printable(advice), float(dt))
    if finding.verdict not in (HELD, UNRESOLVED, VIOLATED):
        raise ValueError(f"verdict: expected {HELD}, {UNRESOLVED} or {VIOLATED}, got {shown(finding.verdict)}")
    return finding


def _robot_of(plant: Any) -> dict[str, str] | None:
    """Name of the robot and the file it was read from."""
    robot = getattr(plant, "robot", None)
    if robot is None:
        return None
    source = getattr(robot.origin.visual, "source", None)
    return {"name": robot.name} | ({"file": str(source.resolve())} if isinstance(source, Path) else {})
