"""A robot's parameters as a C header: numbers by name, for controllers that have the equations already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from geomctrl.arguments import instance, path_of
from geomctrl.files import write_text
from geomctrl.robot import Robot
from geomctrl.tracing.backends.c_files import comment, prefix, prefix_of


def save_c_header(
    robot: Robot, path: str | Path, extra: Mapping[str, Any] | None = None, *, name: str | None = None
) -> Path:
    """Write NAME_parameters[bodies][10] (m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz in each body's frame, about its
    origin), NAME_damping and NAME_friction by joint, NAME_gravity, all in SI units and exact, with bodies' and joints'
    names as comments; C99 and C++. `Robot.to_c` writes whole terms instead.

    extra: what `Result.extra` gives or `load_extra` reads: its "identified" become NAME_identified[], and
    its "smoothing" NAME_smoothing. name: default the robot's, made a name of C. Raises ArgumentError.
    """
    instance("robot", robot, Robot, "a geomctrl.Robot")
    path = path_of("path", path)
    beside: Mapping[str, Any] = instance("extra", {} if extra is None else extra, Mapping, "a dict")
    name = prefix("name", prefix_of(robot.name, "robot") if name is None else name)
    guard = f"{name.upper()}_PARAMETERS_H"
    identified = instance("extra: identified", beside.get("identified", {}), Mapping, "numbers by name")
    source = " by ".join(str(beside[key]) for key in ("log", "method") if key in beside)
    lines = [
        f"/* Parameters of {comment(robot.name)}{f', identified from {comment(source)}' if source else ''}.",
        " * SI units; a body: m, hx, hy, hz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz in its frame, about the frame's origin. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        f"#define {name.upper()}_BODIES {robot.nbodies}",
        f"#define {name.upper()}_JOINTS {robot.nv}",
        *_array(f"{name}_gravity[3]", [(robot.gravity, "")], flat=True),
        *_array(f"{name}_parameters[{robot.nbodies}][10]", list(zip(robot.parameters, robot.body_names))),
        *_array(f"{name}_damping[{robot.nv}]", [([x], n) for x, n in zip(robot.damping, robot.dof_names)], flat=True),
        *_array(f"{name}_friction[{robot.nv}]", [([x], n) for x, n in zip(robot.friction, robot.dof_names)], flat=True),
    ]
    if identified:
        rows = [([x], str(key)) for key, x in identified.items()]
        lines += _array(f"{name}_identified[{len(rows)}]", rows, flat=True)
    if "smoothing" in beside:
        lines += [f"static const double {name}_smoothing = {float(beside['smoothing'])!r};"]
    return write_text(path, "\n".join([*lines, "", "#endif", ""]))


def _array(declaration: str, rows: Sequence[tuple[Any, str]], flat: bool = False) -> list[str]:
    """Rows with their names behind; flat: one dimension."""
    texts = [", ".join(repr(float(x)) for x in row) for row, _ in rows]
    body = [
        f"    {text if flat else f'{{{text}}}'},{f' /* {comment(name)} */' if name else ''}"
        for text, (_, name) in zip(texts, rows)
    ]
    return [f"static const double {declaration} = {{", *body, "};"]
