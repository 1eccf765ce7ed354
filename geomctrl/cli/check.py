"""`geomctrl check`: whether a robot's dynamics have the properties that proofs rest on."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from .terminal import (
    FAILED,
    FloatingBase,
    Mimic,
    MimicOption,
    Physical,
    PhysicalOption,
    RobotArgument,
    compiling,
    complain,
    load_robot,
    reported,
    stdout_console,
)


@reported
def check(
    robot: RobotArgument,
    states: Annotated[int, typer.Option(help="How many random states.", min=1)] = 20,
    seed: Annotated[int, typer.Option(help="Which random states.", min=0)] = 0,
    floating_base: FloatingBase = False,
    mimic: MimicOption = Mimic.coupled,
    physical: PhysicalOption = Physical.reported,
) -> None:
    """Check the properties that proofs rest on, at random states; exit status 1 if one fails.

    Inertias a body can have; M symmetric, positive definite, with the right derivative; Mdot - 2C skew and C v + g the
    bias force for each form of C; recursions against the factored form, the regressor, forward against inverse
    dynamics, and the power balance.

    **Examples**

    - `geomctrl check ur10`

    - `geomctrl check robot.urdf --states 100 --physical required`
    """
    from geomctrl.testing.properties import check_robot

    console = stdout_console()
    with compiling(console, "20 s"):
        model = load_robot(robot, floating_base, mimic, physical)
        found = check_robot(model, states, seed)
    table = Table(title=f"{model.name}: {states} random states", title_justify="left", title_style="bold")
    table.add_column("property")
    table.add_column("worst", justify="right")
    table.add_column("limit", justify="right")
    table.add_column("verdict")
    for c in found:
        verdict = Text("holds", "green") if c.ok else Text("FAILS", "bold red")
        table.add_row(c.name, f"{c.worst:.1e}", f"{c.limit:.0e}", verdict)
    console.print(table)
    failed = [c for c in found if not c.ok]
    for c in failed:
        complain(f"{c.name}: {c.reason or f'{c.worst:.3g} exceeds {c.limit:.0e} at state {c.state} of seed {seed}'}")
    if failed:
        raise typer.Exit(FAILED)
    console.print(f"all {len(found)} properties hold")
