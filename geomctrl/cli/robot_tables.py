"""A robot's joints as a table."""

import numpy as np
from rich.table import Table

from geomctrl.robot import Robot


def joint_table(robot: Robot) -> Table:
    """One row a joint: kind, tree, mass of the body it carries, limits; friction and motors where there are some."""
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
