"""`geomctrl identify-load`: what `geomctrl.identification.identify_load` offers, on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .grouped import grouped
from .identify_options import FilterOptions, LogOptions, ModelOptions
from .load_options import (
    LOG_HELP,
    LoadOptions,
    SetupFile,
    identified_friction,
    linear_model,
)
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
def identify_load(
    log: Annotated[Path, typer.Argument(metavar="LOG_WITH", help=f"{LOG_HELP}, with the load on.")],
    robot: Annotated[
        str,
        typer.Option("--robot", metavar="ROBOT", help=MODEL_HELP),
    ],
    load: LoadOptions,
    reading: LogOptions,
    modelling: ModelOptions,
    filters: FilterOptions,
    verdict: VerdictOptions,
    without_load: Annotated[
        Path | None, typer.Argument(metavar="LOG_WITHOUT", help="The same robot without the load.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for all that is written.")] = Path("out/load"),
    floating_base: FloatingBase = False,
    mimic: MimicOption = Mimic.coupled,
    setup: SetupFile = None,
) -> None:
    """Identify the mass, centre and inertia of a load or tool from about 10 s of motion of all joints.

    **With two logs**, with the load and without, nothing of the robot but its geometry need be known. **With one** the
    robot must be: a robot.json of `geomctrl identify` (with its friction) or a model with right inertias. **With
    --sensor** the wrenches at the wrist say it all; offsets are found with it, torques are not needed.

    Prints the load with 95 % intervals, what the motion did not excite, residuals; writes report.txt, report.json,
    robot.json and robot.urdf, the robot with its load, to --out.

    **Exit status**: 0 written, no doubts; 1 written, can not be trusted (no load seen, wrong sign); 2 bad arguments, or
    a log that does not show the load's mass; 3 written, doubts, which the report names.

    **Examples**

    - `geomctrl identify-load gripper.csv empty.csv --robot arm.urdf --frame tool0`

    - `geomctrl identify-load gripper.csv --robot out/identify/robot.json --frame tool0`

    - `geomctrl identify-load wrist.csv --robot arm.urdf --sensor ft_sensor --frame tool0 --estimate-gravity`
    """
    console, ignore = stdout_console(), verdict.kinds()
    nominal = load_robot(robot, floating_base, mimic, "unchecked")
    identified = None if load.sensor is not None else identified_friction(robot, modelling, without_load)
    model = None if load.sensor is not None or identified is not None else linear_model(modelling, nominal)
    read, filtering = reading.reading(nominal.nv), filters.filtering()
    from geomctrl import identification
    from geomctrl.identification import Assessment

    with compiling(console, "20 s"):
        report = identification.identify_load(
            nominal, log, without_load, identified=identified, model=model, reading=read, filtering=filtering,
            **load.arguments(),
        )  # fmt: skip
    written = ", ".join(sorted(path.name for path in report.save(out)))
    console.print(report.text(), soft_wrap=True)
    console.print(f"wrote {written} in {out}", soft_wrap=True)
    assessment = Assessment.of(report.findings, ignore)
    console.print(f"verdict: {assessment}", soft_wrap=True)
    raise typer.Exit(assessment.exit_status)
