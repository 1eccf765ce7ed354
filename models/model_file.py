"""geomctrl's own model file, exact to the last bit.

It is JSON. Python writes a float as the shortest text that reads back to the same number, so a robot comes
back bit for bit: tree, joints, placements, inertial parameters, gravity, frames.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import instance, path_of
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.files import write_text
from geomctrl.mechanism.coupling import Coupling
from geomctrl.mechanism.joint import Joint
from geomctrl.mechanism.mechanism import Frame
from geomctrl.robot import Robot

FORMAT, VERSION = "geomctrl robot", 1
LIMITS = ("lower", "upper", "velocity", "effort", "damping", "friction")
LATER = {"stiffness": 0.0, "rest": 0.0, "armature": 0.0, "gear_ratio": 1.0}  # which files had not at first


def save_model(robot: Robot, path: str | Path, extra: Mapping[str, Any] | None = None) -> Path:
    """Write the robot as a geomctrl model file; `extra`: anything JSON holds, kept beside it (friction, provenance)."""
    instance("robot", robot, Robot, "a geomctrl.Robot")
    path = path_of("path", path)
    kept: Mapping[str, Any] = instance("extra", {} if extra is None else extra, Mapping, "a dict")
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
        "extra": dict(kept),
    }
    try:
        text = json.dumps(document, indent=1, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"extra: expected what JSON can hold: {error}") from None
    return write_text(path, text + "\n")


def load_model(path: str | Path) -> Robot:
    """The robot of a geomctrl model file, every number as it was saved. Raises ModelError."""
    path = path_of("path", path)
    document = _document(path)
    try:
        bodies = document["bodies"]
        joints = tuple(
            Joint(
                j["kind"],
                np.array(j["S"], dtype=float).T.copy().reshape(6, -1),
                j["name"],
                **{key: float(j[key]) for key in LIMITS},
                **{key: float(j.get(key, default)) for key, default in LATER.items()},
            )
            for j in (b["joint"] for b in bodies)
        )
        parents = tuple(int(b["parent"]) for b in bodies)
        frames = tuple(Frame(f["name"], int(f["body"]), _placement(f["placement"])) for f in document["frames"])
        if any(not -1 <= p < i for i, p in enumerate(parents)) or any(not -1 <= f.body < len(bodies) for f in frames):
            raise ModelError(f"{path}: a body or frame hangs on one that is not there")
        parameters = np.array([b["parameters"] for b in bodies], dtype=float).reshape(len(bodies), 10)
        return Robot(
            document["name"],
            tuple(b["name"] for b in bodies),
            parents,
            joints,
            np.array([_placement(b["placement"]) for b in bodies]),
            parameters,
            np.array(document["gravity"], dtype=float).reshape(3),
            frames,
            couplings=tuple(Coupling(**c) for c in document.get("couplings", ())),
        )
    except (KeyError, TypeError, IndexError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{path}: incomplete or damaged model file: {type(error).__name__} {error}") from None


def load_extra(path: str | Path) -> dict[str, Any]:
    """What `save_model` kept beside the robot. Raises ModelError."""
    return _document(path_of("path", path)).get("extra", {})


def _document(path):
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"path: {path}: not a readable model file: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT or document.get("version") != VERSION:
        raise ModelError(f"path: {path}: expected a file of format {FORMAT!r}, version {VERSION}")
    return document


def _number(x):
    return float(x) if math.isfinite(x) else str(float(x))  # JSON has no infinity; float("inf") reads the text back


def _placement(rows):
    T = np.eye(4)
    T[:3] = np.array(rows, dtype=float).reshape(3, 4)
    if not np.isfinite(T).all():
        raise ArgumentError("placement: expected finite numbers")
    return T
