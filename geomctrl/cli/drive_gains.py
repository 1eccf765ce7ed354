"""`geomctrl drive-gains`: what `geomctrl.identification.drive_gains` offers, on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from geomctrl.errors import ArgumentError

from .grouped import grouped
from .identify_options import FilterOptions, LogOptions, ModelOptions
from .load_options import LOG_HELP, KnownOptions, SetupFile, linear_model
from .terminal import (
    MODEL_HELP,
    FloatingBase,
    Mimic,
    MimicOption,
    compiling,
    load_robot,
    reported,
    stdout_console,
)
from .verdict_options import VerdictOptions


@reported
@grouped
def drive_gains(
    log: Annotated[Path, typer.Argument(metavar="LOG_WITH", help=f"{LOG_HELP}, of currents, with the load on.")],
    robot: Annotated[str, typer.Option("--robot", metavar="ROBOT", help=MODEL_HELP)],
    known: KnownOptions,
    reading: LogOptions,
    modelling: ModelOptions,
    filters: FilterOptions,
    verdict: VerdictOptions,
    without_load: Annotated[
        Path | None, typer.Argument(metavar="LOG_WITHOUT", help="The same robot without the load.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for all that is written.")] = Path("out/gains"),
    floating_base: FloatingBase = False,
    mimic: MimicOption = Mimic.coupled,
    setup: SetupFile = None,
) -> None:
    """Identify how much torque a motor's current makes, joint by joint [N m/A], for --current-gains of the others.

    From currents of about 10 s of motion of all joints with a load that was weighed, and without it (Gautier and Briot
    2014); or from one log and links whose inertias CAD knows. The robot's other inertias and its friction are found
    with them. Gains that the logs do not determine to 25 % are refused, with the reason.

    Prints gains with 95 % intervals and residuals; writes report.txt and report.json to --out.

    **Exit status**: 0 written, no doubts; 1 written, not to be trusted: all gains negative, or torques in place of
    currents; 2 bad arguments, or logs that determine no gain; 3 written, doubts, or gains
    refused.

    **Examples**

    - `geomctrl drive-gains loaded.csv empty.csv --robot arm.urdf --mass 3.012 --frame tool0`

    - `geomctrl drive-gains loaded.csv empty.csv --robot arm.urdf --mass 3.012 --centre 0,0,0.06 --inertia
      0.008,0.008,0.006 --frame tool0 --column i=current`

    - `geomctrl drive-gains empty.csv --robot arm.urdf --known-bodies panda_link4,panda_link5`
    """
    console, ignore = stdout_console(), verdict.kinds()
    nominal = load_robot(robot, floating_base, mimic, "unchecked")
    if reading.current_gains is not None:
        raise ArgumentError("--current-gains: they are what is to be found")
    model, read, filtering = linear_model(modelling, nominal), reading.reading(nominal.nv), filters.filtering()
    from geomctrl import identification
    from geomctrl.identification import Assessment

    with compiling(console, "20 s"):
        report = identification.drive_gains(
            nominal, log, without_load, model=model, reading=read, filtering=filtering, **known.arguments()
        )
    written = ", ".join(sorted(path.name for path in report.save(out)))
    console.print(report.text(), soft_wrap=True)
    console.print(f"wrote {written} in {out}", soft_wrap=True)
    assessment = Assessment.of(report.findings, ignore)
    console.print(f"verdict: {assessment}", soft_wrap=True)
    raise typer.Exit(assessment.exit_status)
