"""Identify the torque per motor current of each joint [N m/A], for --current-gains of other commands.

It needs the motor currents of about 10 s of motion of all joints with a load of known mass, and without it (Gautier and
Briot 2014), or one log and links whose inertias are known from CAD. The robot's other inertias and its friction are
identified too. Gains that the logs determine less accurately than 25 % are refused, with the reason.

Prints gains with 95 % intervals and residuals; writes report.txt and report.json to --out.

**Exit status**: 0 written, no doubts; 1 written, but not trustworthy: all gains negative, or torques instead of
currents; 2 an error: invalid arguments, logs that determine no gain, or files that can not be written (all
others are); 3 written, with doubts or refused gains.

**Examples**

- `geomctrl drive-gains loaded.csv empty.csv --robot arm.urdf --mass 3.012 --frame tool0`

- `geomctrl drive-gains loaded.csv empty.csv --robot arm.urdf --mass 3.012 --centre 0,0,0.06 --inertia
  0.008,0.008,0.006 --frame tool0 --column i=current`

- `geomctrl drive-gains empty.csv --robot arm.urdf --known-bodies panda_link4,panda_link5`
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from geomctrl import identification
from geomctrl.errors import ArgumentError

from . import setup_file
from .identify_load import LOG_HELP, Frame, LogWithout, Out, print_and_save
from .identify_options import AssessmentOptions, FilterOptions, LogOptions, ModelOptions, RobotOption
from .options import UrdfOptions, as_numbers, names, numbers, option
from .terminal import compiling, stdout_console


def _tensor(text: str) -> list[list[float]]:
    values = as_numbers(text)
    if len(values) not in (3, 6):
        raise ValueError(f"expected xx,yy,zz or xx,yy,zz,xy,xz,yz, got {text!r}")
    xx, yy, zz, xy, xz, yz = [*values, 0.0, 0.0, 0.0][:6]
    return [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]


@Parameter(name="*", group=Group("Known inertias", sort_key=0))
@dataclass(frozen=True)
class KnownOptions:
    """Options that state what is known about the load or the bodies."""

    mass: Annotated[float | None, Parameter(help="Mass of the load, weighed [kg].")] = None
    centre: Annotated[
        list[float] | None, numbers("Its centre in --frame [m] [default: identified].", metavar="X,Y,Z")
    ] = None
    inertia: Annotated[
        list[list[float]] | None,
        option(
            _tensor,
            "Its inertia about the centre, xx,yy,zz or xx,yy,zz,xy,xz,yz [kg m^2] [default: identified].",
            metavar="NUMBERS",
        ),
    ] = None
    frame: Frame = None
    known_bodies: Annotated[
        list[str],
        names(
            "Instead of a load, with one log: bodies whose inertias in ROBOT are correct (CAD, weighed).",
            show_default=False,
        ),
    ] = ()  # type: ignore[assignment]
    friction: Annotated[
        str,
        Parameter(
            name="--load-friction", metavar="KIND", help="Friction with the load on: own (fitted separately), same."
        ),
    ] = "own"  # fmt: skip

    def load(self) -> identification.KnownLoad | None:
        """What is known of the load; None without one."""
        if self.mass is not None:
            return identification.KnownLoad(self.mass, self.centre, self.inertia)
        if self.centre is not None or self.inertia is not None:
            option = "centre" if self.centre is not None else "inertia"
            raise ArgumentError(f"--{option}: needs the mass of the load: give --mass")
        if not self.known_bodies:
            raise ArgumentError(
                "--mass: expected the mass of a load, or --known-bodies, because one of them must set the scale"
            )
        return None


def drive_gains(
    log: Annotated[Path, Parameter(name="LOG_WITH", help=f"{LOG_HELP}, of currents, with the load on.")],
    without_load: LogWithout = None,
    /,
    *,
    robot: RobotOption,
    reference: KnownOptions = KnownOptions(),
    reading: LogOptions = LogOptions(),
    modelling: ModelOptions = ModelOptions(),
    filters: FilterOptions = FilterOptions(),
    assessment: AssessmentOptions = AssessmentOptions(),
    out: Out = Path("out/gains"),
    urdf: UrdfOptions = UrdfOptions(),
    setup: Annotated[Path | None, setup_file.OPTION] = None,
) -> int:
    console, ignore = stdout_console(), assessment.kinds()
    nominal = urdf.load(robot)
    model, read, filtering = modelling.linear_model(nominal), reading.reading(nominal.nv), filters.filtering()
    if read.current_gains is not None:
        raise ArgumentError("--current-gains: can not be given, because this command identifies them")
    with compiling(console, "20 s"):
        report = identification.drive_gains(
            nominal, log, without_load, load=reference.load(), frame=reference.frame,
            known_bodies=reference.known_bodies, model=model, friction=reference.friction, reading=read,
            filtering=filtering,
        )  # fmt: skip
    return print_and_save(console, report, out, ignore)
