"""Identify mass, centre of mass and inertia of a load or tool from about 10 s of motion of all joints.

**With two logs**, with and without the load, only the geometry of the robot must be known. **With one log** the robot
must be known: a robot.json of `geomctrl identify` (with its friction) or a model with correct inertias. **With
--sensor** the wrenches at the wrist suffice; the sensor's offsets are identified and no torques are needed.

Prints the load with 95 % intervals, what the motion did not excite, and residuals. Writes report.txt, report.json,
robot.json and robot.urdf (the robot with its load) to --out.

**Exit status**: 0 written, no doubts; 1 written, but not trustworthy (no load found, wrong sign); 2 an error:
invalid arguments, a log that does not determine the load's mass, or files that can not be written (all others are); 3
written, with doubts, which the report lists.

**Examples**

- `geomctrl identify-load gripper.csv empty.csv --robot arm.urdf --frame tool0`

- `geomctrl identify-load gripper.csv --robot out/identify/robot.json --frame tool0`

- `geomctrl identify-load wrist.csv --robot arm.urdf --sensor ft_sensor --frame tool0`
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter

from geomctrl import identification
from geomctrl.errors import ArgumentError
from geomctrl.models import load_extra
from geomctrl.models.io.model_file import file_format

from . import setup_file
from .identify_options import AssessmentOptions, FilterOptions, LogOptions, ModelOptions, RobotOption
from .options import UrdfOptions, names
from .terminal import SaveResult, compiling, report_written, stdout_console

LOG_HELP = "Log, in any format that `geomctrl identify` reads"
LogWithout = Annotated[Path | None, Parameter(name="LOG_WITHOUT", help="The same robot without the load.")]
Out = Annotated[Path, Parameter(help="Folder for the results.")]
Frame = Annotated[
    str | None,
    Parameter(
        name=("--frame", "--body"), metavar="NAME",
        help="Frame or body that carries the load; results are in its axes [default: the last body, or --sensor].",
    ),
]  # fmt: skip


@Parameter(name="*", group=Group("The load", sort_key=0))
@dataclass(frozen=True)
class LoadOptions:
    """Options for the load."""

    frame: Frame = None
    sensor: Annotated[
        str | None,
        Parameter(metavar="FRAME", help="The log has forces and moments of a sensor at this frame, in its axes."),
    ] = None
    wrench: Annotated[
        list[str] | None,
        names(
            "Columns of the wrench: fx,fy,fz,tx,ty,tz; one array, a common prefix, or a bag's topic"
            " [default: common names]."
        ),
    ] = None
    friction: Annotated[
        str,
        Parameter(
            name="--load-friction", metavar="KIND",
            help="Friction with the load: own (fitted separately), same (as without), load (with a part proportional"
            " to the transmitted torque).",
        ),
    ] = "own"  # fmt: skip

    def wrist_sensor(self) -> Any:
        """The sensor of the log; None where it has joint torques."""
        if self.sensor is not None:
            return identification.WristSensor(self.sensor, self.wrench)
        if self.wrench is not None:
            raise ArgumentError("--wrench: for logs of a wrench sensor: give --sensor")
        return None


def identify_load(
    log: Annotated[Path, Parameter(name="LOG_WITH", help=f"{LOG_HELP}, with the load on.")],
    without_load: LogWithout = None,
    /,
    *,
    robot: RobotOption,
    load: LoadOptions = LoadOptions(),
    reading: LogOptions = LogOptions(),
    modelling: ModelOptions = ModelOptions(),
    filters: FilterOptions = FilterOptions(),
    assessment: AssessmentOptions = AssessmentOptions(),
    out: Out = Path("out/load"),
    urdf: UrdfOptions = UrdfOptions(),
    setup: Annotated[Path | None, setup_file.OPTION] = None,
) -> int:
    console, ignore = stdout_console(), assessment.kinds()
    nominal = urdf.load(robot)
    identified = None if load.sensor is not None else _identified_friction(robot, modelling, without_load)
    model = None if load.sensor is not None or identified is not None else modelling.linear_model(nominal)
    read, filtering = reading.reading(nominal.nv), filters.filtering()
    with compiling(console, "20 s"):
        report = identification.identify_load(
            nominal, log, without_load, frame=load.frame, identified=identified, model=model, friction=load.friction,
            sensor=load.wrist_sensor(), reading=read, filtering=filtering,
        )  # fmt: skip
    return print_and_save(console, report, out, ignore)


def print_and_save(console: Any, report: Any, out: Path, ignore: tuple[str, ...]) -> int:
    """Save a report, print it with its assessment, and return the exit status."""
    written = SaveResult(lambda: report.save(out))
    console.print(report.text(), soft_wrap=True)
    report_written(console, sorted(written.paths), out)
    from geomctrl.identification.findings import Assessment

    result = Assessment.of(report.findings, ignore)
    console.print(f"assessment: {result}", soft_wrap=True)
    return written.status(result.exit_status)


def _identified_friction(source: str, modelling: ModelOptions, without_load: Path | None) -> Any:
    """The friction in a robot.json of `geomctrl identify` if there is one log; None for other robots."""
    if file_format(source) != "json" or without_load is not None:
        return None
    extra = load_extra(Path(source))
    if "identified" not in extra:
        return None
    if modelling != ModelOptions():
        raise ArgumentError(f"--friction, --rotor, ...: {source} contains the friction and rotors of its robot")
    return extra
