"""`geomctrl info`: what a robot consists of. Nothing here is compiled: a first look must not wait for that."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from .terminal import (
    FloatingBase,
    Mimic,
    MimicOption,
    Physical,
    PhysicalOption,
    RobotArgument,
    load_robot,
    reported,
    stdout_console,
)


@reported
def info(
    robot: RobotArgument,
    frames: Annotated[bool, typer.Option("--frames/--no-frames", help="List the frames.")] = True,
    floating_base: FloatingBase = False,
    mimic: MimicOption = Mimic.coupled,
    physical: PhysicalOption = Physical.reported,
) -> None:
    """Show a robot: bodies, joints, limits, frames, mass, base parameters.

    **Examples**

    - `geomctrl info panda`

    - `geomctrl info robot.urdf --floating-base`
    """
    from geomctrl.papers import factored
    from geomctrl.terms.base_parameters import exact_base_parameters

    from .posture import middle
    from .robot_tables import joint_table

    console = stdout_console()
    model = load_robot(robot, floating_base, mimic, physical)
    base = exact_base_parameters(model).size
    energy = float(factored.potential_energy(model, middle(model)))
    bodies = f"{model.nbodies} {'body' if model.nbodies == 1 else 'bodies'}"
    kind = "free base" if model.joints[0].kind == "free" else "fixed base"
    size = f"{bodies}, {model.nv} degrees of freedom (nq = {model.nq}), {kind}, {model.parameters[:, 0].sum():.6g} kg"
    console.print(Text.assemble((model.name, "bold"), f": {size}"))
    g = ", ".join(f"{x:g}" for x in model.gravity)
    console.print(f"gravity ({g}) m/s^2; {base} base parameters of {10 * model.nbodies}; {energy:.4g} J in mid-range")
    console.print(joint_table(model))
    if frames:
        extra = [f for f in model.frames if f.name not in (*model.body_names, "world")]
        listed = [f"{f.name} (on {model.body_names[f.body] if f.body >= 0 else 'world'})" for f in extra]
        console.print("frames: every body, world" + "".join(f", {f}" for f in listed), soft_wrap=True)
