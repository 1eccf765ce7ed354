"""Robots from Denavit-Hartenberg tables in TOML files."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import path_of
from geomctrl.errors import ArgumentError, GeomctrlError, ModelError
from geomctrl.files import read_toml
from geomctrl.mechanism import inertia
from geomctrl.robot import Robot

__all__ = ["load_dh"]

TABLE = ("a", "alpha", "d", "theta")
LIMITS = ("lower", "upper", "velocity", "effort")
KNOWN = ("name", "convention", "angles", *TABLE, "joints", "prismatic", "masses", "gravity", *LIMITS)
GYRATION = 0.1  # m, of the balls that stand for bodies


def load_dh(path: str | Path) -> Robot:
    """A serial chain from the table [robot] of a TOML file:

        [robot]
        name = "arm"
        convention = "standard"    # or "modified", Craig's; see `Robot.from_dh`
        angles = "deg"             # of alpha and theta; default "rad"
        a = [0.35, 1.15]           # m
        alpha = [90, 0]
        d = [0.675, 0]             # m
        theta = [0, 0]             # default zeros
        masses = [20, 10]          # kg, as far as known: a prior
        joints = ["pan", "lift"]   # default joint1, joint2, ...
        prismatic = []             # those that slide, by name
        gravity = [0, 0, -9.81]    # in the frame of the base
        effort = [300, 200]        # limits, also velocity, lower, upper, in SI units; default none

    Bodies are balls of their masses and a radius of gyration of 0.1 m: geometry, and something to start identification
    from. Raises ModelError, ArgumentError, with the name of the file.
    """
    path = path_of("path", path)
    table = read_toml(path).get("robot")
    if not isinstance(table, dict):
        raise ModelError(f"{path}: expected a table [robot] with a, alpha, d, convention, masses")
    try:
        return _robot(table, path.stem)
    except GeomctrlError as error:
        raise type(error)(f"{path}: [robot]: {error}") from None


def _robot(table: dict[str, Any], name: str) -> Robot:
    for key in table:
        if key not in KNOWN:
            raise ModelError(f"{key}: expected some of {', '.join(KNOWN)}")
    missing = [key for key in ("convention", "a", "alpha", "d", "masses") if key not in table]
    if missing:
        raise ModelError(f"{missing[0]}: missing; see geomctrl.models.load_dh")
    n = len(table["a"]) if isinstance(table["a"], list) else 0
    columns = {key: _numbers(table, key, n) for key in TABLE if key in table}
    angles = table.get("angles", "rad")
    if angles not in ("rad", "deg"):
        raise ArgumentError(f"angles: expected 'rad' or 'deg', got {angles!r:.60}")
    for key in ("alpha", "theta"):
        if angles == "deg" and key in columns:
            columns[key] = np.deg2rad(columns[key])
    names = _names(table, "joints", [f"joint{k + 1}" for k in range(n)])
    if len(names) != n:
        raise ArgumentError(f"joints: expected {n} names, as a has numbers, got {len(names)}")
    sliding = _names(table, "prismatic", [])
    if unknown := [x for x in sliding if x not in names]:
        raise ArgumentError(f"prismatic: expected some of {', '.join(names)}, got {unknown[0]!r}")
    robot = Robot.from_dh(
        **{"theta": np.zeros(n), **columns},
        convention=table["convention"],
        inertias=[inertia.from_com(m, np.zeros(3), m * GYRATION**2 * np.eye(3)) for m in _numbers(table, "masses", n)],
        prismatic=[names.index(x) for x in sliding],
        name=str(table.get("name", name)),
        gravity=_numbers(table, "gravity", 3) if "gravity" in table else (0.0, 0.0, -9.81),
    )
    limits = {key: _numbers(table, key, n) for key in LIMITS if key in table}
    each = [{"name": x, **{key: float(values[k]) for key, values in limits.items()}} for k, x in enumerate(names)]
    return replace(robot, joints=tuple(replace(j, **own) for j, own in zip(robot.joints, each)))


def _numbers(table: dict[str, Any], key: str, n: int) -> np.ndarray:
    given = table[key]
    ok = isinstance(given, list) and len(given) == n > 0
    if not ok or not all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in given):
        raise ArgumentError(f"{key}: expected {n or 'as many'} numbers, one a joint, got {given!r:.80}")
    return np.array(given, dtype=float)


def _names(table: dict[str, Any], key: str, default: list[str]) -> list[str]:
    given = table.get(key, default)
    if not isinstance(given, list) or not all(isinstance(x, str) for x in given):
        raise ArgumentError(f"{key}: expected a list of names, got {given!r:.80}")
    return given
