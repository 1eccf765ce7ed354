"""`geomctrl export`: a robot's terms as C99 source."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

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
def export(
    robot: RobotArgument,
    terms: Annotated[
        str, typer.Option(help="Which, separated by commas; _christoffel behind some for that form of C.")
    ] = "inverse_dynamics,forward_dynamics",
    out: Annotated[Path, typer.Option(help="Folder for NAME.c, NAME.h and NAME_test.c.")] = Path("out/export"),
    name: Annotated[str | None, typer.Option(help="Of the files and functions.  [default: the robot's]")] = None,
    precision: Annotated[str, typer.Option(help="double or float.")] = "double",
    frame: Annotated[str | None, typer.Option(help="Of the terms pose, jacobian and jacobian_rate.")] = None,
    representation: Annotated[
        Literal["body", "spatial", "hybrid", "mixed"], typer.Option(help="Of jacobian and jacobian_rate.")
    ] = "body",
    floating_base: FloatingBase = False,
    mimic: MimicOption = Mimic.coupled,
    physical: PhysicalOption = Physical.reported,
) -> None:
    """Write a robot's terms as C99: no dependency but libm, no allocation, no loop, the robot's numbers inside.

    **Examples**

    - `geomctrl export panda --terms inverse_dynamics,mass_matrix`

    - `geomctrl export robot.urdf --terms terms,regressor --precision float --out firmware`
    """
    model = load_robot(robot, floating_base, mimic, physical)
    chosen = [term.strip() for term in terms.split(",")]
    written = model.to_c(out, chosen, name=name, precision=precision, frame=frame, representation=representation)
    for path in written:
        stdout_console().print(f"wrote {path}", soft_wrap=True)
