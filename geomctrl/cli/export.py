"""Write a robot's terms as C99 code that depends only on libm, allocates nothing and has no loops.

The robot's numbers are constants in the code.

**Examples**

- `geomctrl export panda --terms inverse_dynamics,mass_matrix`

- `geomctrl export robot.urdf --terms terms,regressor --precision float --out firmware`
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from .options import CheckedUrdfOptions, RobotArgument, as_names
from .terminal import stdout_console


def export(
    robot: RobotArgument,
    /,
    *,
    terms: Annotated[
        str, Parameter(help="Terms, separated by commas; _christoffel after some selects that form of C.")
    ] = "inverse_dynamics,forward_dynamics",
    out: Annotated[Path, Parameter(help="Folder for NAME.c, NAME.h and NAME_test.c.")] = Path("out/export"),
    name: Annotated[str | None, Parameter(help="Name of the files and functions [default: the robot's].")] = None,
    precision: Annotated[Literal["double", "float"], Parameter(help="Type of the numbers.")] = "double",
    frame: Annotated[str | None, Parameter(help="Frame of the terms pose, jacobian and jacobian_rate.")] = None,
    representation: Annotated[
        Literal["body", "spatial", "hybrid", "mixed"], Parameter(help="Coordinates of jacobian and jacobian_rate.")
    ] = "body",
    urdf: CheckedUrdfOptions = CheckedUrdfOptions(),
) -> None:
    written = urdf.load(robot).to_c(
        out, as_names(terms), name=name, precision=precision, frame=frame, representation=representation
    )
    for path in written:
        stdout_console().print(f"wrote {path}", soft_wrap=True)
