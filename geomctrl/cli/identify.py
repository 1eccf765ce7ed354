"""Identify a robot's inertial and friction parameters from a log, and test them on unseen data.

The robot model provides the geometry. Its inertias are used only for parameters that the log does not determine, and
may be missing or wrong. The command prints the report, which begins with an assessment, and writes to --out:

- report.html, one file with all pictures; report.txt, report.json, parameters.csv (base parameters, with 95 % intervals
  if the method has them)

- robot.json: the identified robot without loss (`geomctrl.models.load`; friction, rotor inertias, springs:
  `load_extra`); robot.urdf: the same up to rounding, without springs and gravity; robot.xml: MJCF, with both

- torques.png, residuals.png, parameters.png

With --export it also writes a copy of the robot's file in which only the inertias change.

**Exit status**: 0 written, no reason for doubt; 1 written, but not trustworthy; 3 written, with doubts to check; 2
an error: invalid arguments, a log that does not determine the parameters, or files that can not be written (all
others are). The report's first lines, or the message, say why and what to do. --ignore leaves out kinds of doubts.

**Examples**

- `geomctrl identify log.npz --robot panda --out out/mine`

- `geomctrl identify recording --robot arm.urdf`, the folder of a ROS 2 bag, or a .mcap, .db3, .mat, .parquet file

- `geomctrl identify log.csv --robot arm.urdf --method wls --cutoff 8 --test-log other.csv`

- `geomctrl identify log.csv --robot arm.urdf --export identified/arm.urdf --export arm_parameters.h`

- `geomctrl identify log.csv --robot ur10 --column q=pos --column i=current --unit q=deg --current-gains
  13.3,13.3,9.8,7.5,7.5,7.5 --friction viscous,coulomb,sigmoid --mass-max 20`

- `geomctrl identify tx40_figaroh.npz --setup experiments/logs/tx40.toml`, motors and coupled joints: robot,
  gears and transmission in a file
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter

from geomctrl import identification
from geomctrl.errors import ModelError
from geomctrl.mechanism import inertia
from geomctrl.models import link_boxes
from geomctrl.models.io.model_file import file_format

from . import setup_file
from .identify_options import (
    AssessmentOptions,
    EstimatorOptions,
    FilterOptions,
    LogOptions,
    ModelOptions,
    OutputOptions,
    ValidationOptions,
)  # fmt: skip
from .options import MODEL_HELP, UrdfOptions
from .terminal import SaveResult, command_line, compiling, progress_bar, report_written, stdout_console


def identify(
    log: Annotated[
        Path,
        Parameter(
            help="npz archive; CSV with a header line, t, q1, q2, ..., tau1, ..., or with joints' names as PlotJuggler"
            " writes them, or without a header (--column t=1 --column q=2-8 --column tau=9-15); ROS bag (folder, .db3,"
            " .mcap, .bag), LeRobot dataset (folder), .mat, .h5, .parquet (need the extra 'logs', but .mat up to v7)."
        ),
    ],
    /,
    *,
    robot: Annotated[str, Parameter(metavar="ROBOT", help=f"{MODEL_HELP} Its inertias are a prior only.")],
    reading: LogOptions = LogOptions(),
    modelling: ModelOptions = ModelOptions(),
    filters: FilterOptions = FilterOptions(),
    test: ValidationOptions = ValidationOptions(),
    estimator: EstimatorOptions = EstimatorOptions(),
    output: OutputOptions = OutputOptions(),
    assessment: AssessmentOptions = AssessmentOptions(),
    urdf: UrdfOptions = UrdfOptions(),
    setup: Annotated[Path | None, setup_file.OPTION] = None,
) -> int:
    console = stdout_console()
    nominal = urdf.load(robot)
    ignore = assessment.kinds()
    options, read, model = estimator.options(), reading.reading(nominal.nv), modelling.model(nominal)
    output.check(robot, nominal)
    for line in _prior_notes(nominal):
        console.print(line, soft_wrap=True)
    report = _run(console, nominal, log, model, {
        "method": estimator.method, "options": options, "friction_curves": modelling.friction_curves,
        "choose_smoothing": modelling.smoothing is None, "choose_rotors": modelling.rotor == "auto",
        "reading": read, "filtering": filters.filtering(), "validation": test.validation(read),
        "ignore": ignore, "boxes": _boxes(console, robot, nominal) or None,
    })  # fmt: skip
    command = shlex.join(command_line.get())
    report = replace(report, provenance=replace(report.provenance, command=command))
    with console.status("drawing" if output.plots else "writing"):
        written = SaveResult(lambda: report.save(output.out, output.plots))
        exported = SaveResult(lambda: output.exported(robot, report))
    console.print(report.text(), soft_wrap=True)
    report_written(console, sorted(written.paths), output.out)
    for path in exported.paths:
        console.print(f"wrote {path}", soft_wrap=True)
    return written.status(exported.status(report.assessment.exit_status))


def _run(console: Any, robot: Any, log: Path, model: Any, settings: dict[str, Any]) -> Any:
    """Run the identification with a progress bar."""
    with compiling(console, "20 s"):
        some = robot.neutral()[None], *np.zeros((2, 1, robot.nv))
        model.torque(model.base.projection[0], *some)
    with progress_bar(console) as bar:
        task = bar.add_task("reading", total=1.0)

        def progress(stage: str, fraction: float) -> None:
            bar.update(task, description=stage, completed=fraction)

        return identification.identify(robot, log, model=model, progress=progress, **settings)


def _boxes(console: Any, source: str, robot: Any) -> dict[str, Any]:
    """Boxes of the links' geometry in a URDF file; prints a note if that geometry is invalid."""
    if file_format(source) != "urdf":
        return {}
    try:
        return link_boxes(Path(source), robot)
    except ModelError as error:  # the geometry is optional, so an error in it does not stop the command
        note = f"note: centres of mass are bounded by boxes around joints, not by the links' geometry: {error}"
        console.print(note, soft_wrap=True)
        return {}


def _prior_notes(robot: Any) -> list[str]:
    """A note on bodies whose inertia in the model is impossible and can not be a prior."""
    bad = [n for n, pi in zip(robot.body_names, robot.parameters) if not inertia.is_physical(pi, strict=True)]
    return [f"note: no body can have the inertias of {', '.join(bad)} in the model; its geometry is used"] * bool(bad)
