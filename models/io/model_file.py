"""geomctrl's own model file (JSON), and robots from Denavit-Hartenberg tables in TOML files.

Python writes a float as the shortest text that reads back to the same number. A robot that is saved and loaded
therefore has exactly the same tree, joints, placements, inertial parameters, gravity and frames.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import instance, mapped, path_of, shown
from geomctrl.errors import ArgumentError, GeomctrlError, ModelError
from geomctrl.files import read_toml, require_regular, write_text
from geomctrl.mechanism import inertia
from geomctrl.mechanism.coupling import Coupling
from geomctrl.mechanism.joint import Joint
from geomctrl.mechanism.mechanism import Frame
from geomctrl.robot import Robot

FORMAT, VERSION = "geomctrl robot", 1
FORMATS = {".urdf": "urdf", ".xml": "mjcf", ".mjcf": "mjcf", ".toml": "dh", ".json": "json"}
LIMITS = ("lower", "upper", "velocity", "effort", "damping", "friction")
LATER = {
    "stiffness": 0.0,
    "rest": 0.0,
    "armature": 0.0,
    "gear_ratio": 1.0,
}  # defaults for files that predate these keys


def save_model(robot: Robot, path: str | Path, extra: Mapping[str, Any] | None = None) -> Path:
    """Write the robot as a geomctrl model file (JSON).

    Parameters
    ----------
    robot : Robot
        The robot.
    path : str or Path
        The file to write.
    extra : mapping, optional
        Additional data that JSON can hold, for example identified friction; `load_extra` reads it.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    ArgumentError
        If JSON can not hold `extra`.
    """
    instance("robot", robot, Robot, "a geomctrl.Robot")
    path = path_of("path", path)
    kept = mapped("extra", {} if extra is None else extra, "a dict")
    document = {
        "format": FORMAT,
        "version": VERSION,
        "name": robot.name,
        "gravity": robot.gravity.tolist(),
        "bodies": [
            {
                "name": body,
                "parent": parent,
                "placement": M[:3].tolist(),
                "parameters": pi.tolist(),
                "joint": {
                    "name": j.name,
                    "kind": j.kind,
                    "S": j.S.T.tolist(),
                    **{key: _number(getattr(j, key)) for key in (*LIMITS, *LATER)},
                },
            }
            for body, parent, j, M, pi in zip(
                robot.body_names, robot.parents, robot.joints, robot.placements, robot.parameters
            )
        ],
        "couplings": [{"joint": c.joint, "follows": dict(c.follows), "offset": c.offset} for c in robot.couplings],
        "frames": [{"name": f.name, "body": f.body, "placement": f.placement[:3].tolist()} for f in robot.frames],
        "extra": kept,
    }
    try:
        text = json.dumps(document, indent=1, allow_nan=False)
        if other := [key for key in _keys(kept) if not isinstance(key, str)]:
            raise TypeError(f"keys must be str, got {shown(other[0])}")  # JSON stores 1 as "1"
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(f"extra: expected values that JSON can represent: {error}") from None
    return write_text(path, text + "\n")


def load_model(path: str | Path) -> Robot:
    """Load a robot from a geomctrl model file, with exactly the numbers that were saved.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    Robot

    Raises
    ------
    ModelError
        If the file is not a complete model file.
    """
    path = path_of("path", path)
    document = _document(path)
    try:
        bodies = document["bodies"]
        joints = tuple(
            Joint(
                j["kind"],
                _array(j["S"]).T.copy().reshape(6, -1),
                j["name"],
                **{key: _float(j[key]) for key in LIMITS},
                **{key: _float(j.get(key, default)) for key, default in LATER.items()},
            )
            for j in (b["joint"] for b in bodies)
        )
        parents = tuple(_index(b["parent"]) for b in bodies)
        frames = tuple(Frame(f["name"], _index(f["body"]), _placement(f["placement"])) for f in document["frames"])
        if any(not -1 <= p < i for i, p in enumerate(parents)) or any(not -1 <= f.body < len(bodies) for f in frames):
            raise ModelError(f"{path}: the parent of a body or frame does not exist")
        parameters = _array([b["parameters"] for b in bodies]).reshape(len(bodies), 10)
        return Robot(
            document["name"],
            tuple(b["name"] for b in bodies),
            parents,
            joints,
            np.array([_placement(b["placement"]) for b in bodies]),
            parameters,
            _array(document["gravity"]).reshape(3),
            frames,
            couplings=tuple(Coupling(**c) for c in document.get("couplings", ())),
        )
    except (KeyError, TypeError, IndexError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{path}: incomplete or damaged model file: {type(error).__name__} {error}") from None


def load_extra(path: str | Path) -> dict[str, Any]:
    """Return the additional data that `save` stored in a .json file.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    dict
        The argument `extra` of `save`.

    Raises
    ------
    ModelError
        If the file is not a saved robot.

    Examples
    --------
    >>> import tempfile
    >>> from geomctrl import models
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = models.save(models.two_link(), f"{folder}/arm.json", extra={"serial": "A7"})
    ...     print(models.load_extra(path))
    {'serial': 'A7'}
    """
    extra = _document(path_of("path", path)).get("extra", {})
    if not isinstance(extra, dict):
        raise ModelError(f"path: {path}: 'extra': expected an object, got {shown(extra)}")
    return extra


def file_format(path: str | Path) -> str | None:
    """Return the format of a file by its suffix: "urdf", "mjcf", "dh", "json", or None."""
    return FORMATS.get(Path(path).suffix.lower())


def _document(path):
    try:
        require_regular(path)
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"path: {path}: not a readable model file: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT or document.get("version") != VERSION:
        raise ModelError(f"path: {path}: expected a file of format {FORMAT!r}, version {VERSION}")
    return document


def _keys(x: Any) -> Iterator[Any]:
    """Yield all keys of nested data."""
    if isinstance(x, Mapping):
        yield from x
    if isinstance(x, (Mapping, list, tuple)):
        for y in x.values() if isinstance(x, Mapping) else x:
            yield from _keys(y)


def _number(x):
    return float(x) if math.isfinite(x) else str(float(x))  # JSON has no infinity; `_float` reads the text back


def _float(x: Any) -> float:
    if isinstance(x, bool) or not (isinstance(x, (int, float)) or x in ("inf", "-inf", "nan")):
        raise TypeError(f"expected a number, got {shown(x)}")
    return float(x)


def _index(x: Any) -> int:
    if type(x) is not int:
        raise TypeError(f"expected an index, got {shown(x)}")
    return x


def _array(x: Any) -> np.ndarray:
    """The array of nested lists of numbers; numpy would also accept strings and booleans."""
    return np.array(_floats(x))


def _floats(x: Any) -> Any:
    return [_floats(y) for y in x] if isinstance(x, list) else _float(x)


def _placement(rows):
    T = np.eye(4)
    T[:3] = _array(rows).reshape(3, 4)
    if not np.isfinite(T).all():
        raise ArgumentError("placement: expected finite numbers")
    return T


DH_TABLE = ("a", "alpha", "d", "theta")
DH_LIMITS = LIMITS[:4]
DH_KEYS = ("name", "convention", "angles", *DH_TABLE, "joints", "prismatic", "masses", "gravity", *DH_LIMITS)
GYRATION = 0.1  # m, radius of gyration of all bodies


def load_dh(path: str | Path) -> Robot:
    """Load a serial chain from a Denavit-Hartenberg table in a TOML file.

    Its keys are those in `models.load`.
    """
    path = path_of("path", path)
    table = read_toml(path).get("robot")
    if not isinstance(table, dict):
        raise ModelError(f"{path}: expected a table [robot] with a, alpha, d, convention, masses")
    try:
        return _robot_of_table(table, path.stem)
    except GeomctrlError as error:
        raise type(error)(f"{path}: [robot]: {error}") from None


def _robot_of_table(table: dict[str, Any], name: str) -> Robot:
    for key in table:
        if key not in DH_KEYS:
            raise ModelError(f"{key}: expected some of {', '.join(DH_KEYS)}")
    missing = [key for key in ("convention", "a", "alpha", "d", "masses") if key not in table]
    if missing:
        raise ModelError(f"{missing[0]}: missing; see geomctrl.models.load")
    n = len(table["a"]) if isinstance(table["a"], list) else 0
    columns = {key: _table_numbers(table, key, n) for key in DH_TABLE if key in table}
    angles = table.get("angles", "rad")
    if angles not in ("rad", "deg"):
        raise ArgumentError(f"angles: expected 'rad' or 'deg', got {shown(angles)}")
    for key in ("alpha", "theta"):
        if angles == "deg" and key in columns:
            columns[key] = np.deg2rad(columns[key])
    names = _table_names(table, "joints", [f"joint{k + 1}" for k in range(n)])
    if len(names) != n:
        raise ArgumentError(f"joints: expected {n} names, one per number in `a`, got {len(names)}")
    sliding = _table_names(table, "prismatic", [])
    if unknown := [x for x in sliding if x not in names]:
        raise ArgumentError(f"prismatic: expected some of {', '.join(names)}, got {unknown[0]!r}")
    balls = [inertia.from_com(m, np.zeros(3), m * GYRATION**2 * np.eye(3)) for m in _table_numbers(table, "masses", n)]
    robot = Robot.from_dh(
        **{"theta": np.zeros(n), **columns},
        convention=table["convention"],
        inertias=balls,
        prismatic=[names.index(x) for x in sliding],
        name=str(table.get("name", name)),
        gravity=_table_numbers(table, "gravity", 3) if "gravity" in table else (0.0, 0.0, -9.81),
    )
    limits = {key: _table_numbers(table, key, n) for key in DH_LIMITS if key in table}
    each = [{"name": x, **{key: float(values[k]) for key, values in limits.items()}} for k, x in enumerate(names)]
    return replace(robot, joints=tuple(replace(j, **own) for j, own in zip(robot.joints, each)))


def _table_numbers(table: dict[str, Any], key: str, n: int) -> np.ndarray:
    entries = table[key]
    ok = isinstance(entries, list) and len(entries) == n > 0
    if not ok or not all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in entries):
        raise ArgumentError(f"{key}: expected {n or 'as many'} numbers, one per joint, got {shown(entries)}")
    return np.array(entries, dtype=float)


def _table_names(table: dict[str, Any], key: str, default: list[str]) -> list[str]:
    entries = table.get(key, default)
    if not isinstance(entries, list) or not all(isinstance(x, str) for x in entries):
        raise ArgumentError(f"{key}: expected a list of names, got {shown(entries)}")
    return entries
