"""Check the dynamics of a robot at random states; exit status 1 if a check fails.

The checks are: physically possible inertias; M symmetric and positive definite, with the right derivative; Mdot - 2C
skew-symmetric and C v + g equal to the bias force for each form of C; recursions against the factored form, the
regressor, forward against inverse dynamics, and the power balance.

**Examples**

- `geomctrl check ur10`

- `geomctrl check robot.urdf --states 100 --physical required`
"""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter, validators
from rich.table import Table
from rich.text import Text

from .options import CheckedUrdfOptions, RobotArgument
from .terminal import FAILED, compiling, print_error, stdout_console


def check(
    robot: RobotArgument,
    /,
    *,
    states: Annotated[int, Parameter(help="Number of random states.", validator=validators.Number(gte=1))] = 20,
    seed: Annotated[int, Parameter(help="Seed of the random states.", validator=validators.Number(gte=0))] = 0,
    urdf: CheckedUrdfOptions = CheckedUrdfOptions(),
) -> int | None:
    from geomctrl.testing.robot_terms import check_robot

    console = stdout_console()
    with compiling(console, "20 s"):
        model = urdf.load(robot)
        checks = check_robot(model, states, seed)
    table = Table(title=f"{model.name}: {states} random states", title_justify="left", title_style="bold")
    table.add_column("property")
    table.add_column("worst", justify="right")
    table.add_column("limit", justify="right")
    table.add_column("verdict")
    for c in checks:
        verdict = Text("holds", "green") if c.ok else Text("FAILS", "bold red")
        table.add_row(c.name, f"{c.worst:.1e}", f"{c.limit:.0e}", verdict)
    console.print(table)
    failed = [c for c in checks if not c.ok]
    for c in failed:
        print_error(f"{c.name}: {c.reason or f'{c.worst:.3g} exceeds {c.limit:.0e} at state {c.state} of seed {seed}'}")
    if failed:
        return FAILED
    console.print(f"all {len(checks)} properties hold")
    return None
