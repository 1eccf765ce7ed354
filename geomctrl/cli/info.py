"""Show a robot: bodies, joints, limits, frames, mass, base parameters.

**Examples**

- `geomctrl info panda`

- `geomctrl info robot.urdf --floating-base`
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from geomctrl.papers import factored
from geomctrl.robot import Robot
from geomctrl.terms.base_parameters import exact_base_parameters

from .motions import middle
from .options import CheckedUrdfOptions, RobotArgument
from .terminal import stdout_console


def info(
    robot: RobotArgument,
    /,
    *,
    frames: Annotated[bool, Parameter(help="List the frames.")] = True,
    urdf: CheckedUrdfOptions = CheckedUrdfOptions(),
) -> None:
    console, model = stdout_console(), urdf.load(robot)  # compiles nothing, so that it starts fast
    base = exact_base_parameters(model).size
    energy = float(factored.potential_energy(model, middle(model)))
    bodies = f"{model.nbodies} {'body' if model.nbodies == 1 else 'bodies'}"
    kind = "free base" if model.joints[0].kind == "free" else "fixed base"
    size = f"{bodies}, {model.nv} degrees of freedom (nq = {model.nq}), {kind}, {model.parameters[:, 0].sum():.6g} kg"
    console.print(Text.assemble((model.name, "bold"), f": {size}"))
    g = ", ".join(f"{x:g}" for x in model.gravity)
    console.print(f"gravity ({g}) m/s^2; {base} base parameters of {10 * model.nbodies}; {energy:.4g} J in mid-range")
    console.print(_joint_table(model))
    if frames:
        extra = [f for f in model.frames if f.name not in (*model.body_names, "world")]
        listed = [f"{f.name} (on {model.body_names[f.body] if f.body >= 0 else 'world'})" for f in extra]
        console.print("frames: every body, world" + "".join(f", {f}" for f in listed), soft_wrap=True)


def _joint_table(robot: Robot) -> Table:
    """One row for each joint: kind, tree, mass of its body, limits; friction and motors if there are any."""
    table = Table()
    for name in ("", "joint", "kind", "on", "body"):
        table.add_column(name, overflow="fold")
    for name in ("kg", "range", "speed", "effort"):
        table.add_column(name, justify="right")
    friction = bool(robot.damping.any() or robot.friction.any())
    if friction:
        table.add_column("damping, friction", justify="right")
    motors = bool(robot.armature.any() or (robot.gear_ratio != 1.0).any())
    if motors:
        table.add_column("armature, gears", justify="right")
    for i, (joint, body, p) in enumerate(zip(robot.joints, robot.body_names, robot.parents)):
        unit, force, inertia = ("rad", "N m", "kg m^2") if joint.is_rotational.any() else ("m", "N", "kg")
        bounded = np.isfinite([joint.lower, joint.upper]).any()
        row = [str(i), str(joint.name), joint.kind, str(p) if p >= 0 else "world", body]
        row += [f"{robot.parameters[i, 0]:.4g}", f"{joint.lower:.3g} .. {joint.upper:.3g} {unit}" if bounded else "-"]
        limits = ((joint.velocity, f"{unit}/s"), (joint.effort, force))
        row += [f"{x:.3g} {u}" if np.isfinite(x) else "-" for x, u in limits]
        row += [f"{joint.damping:.3g}, {joint.friction:.3g}"] * friction
        row += [f"{joint.armature:.3g} {inertia}, {joint.gear_ratio:.4g}"] * motors
        table.add_row(*row)
    return table
