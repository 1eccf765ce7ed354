"""What `geomctrl identify-load` and `geomctrl drive-gains` share: options, robots with their friction, verdicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from geomctrl.errors import ArgumentError

from .identify_options import GROUPS, ModelOptions
from .option_texts import names, numbers
from .setup_file import applies
from .verdict_options import VerdictOptions

LOG_HELP = "Log, in any format that `geomctrl identify` reads"


def setup_applies() -> Callable[[typer.Context, Path | None], Path | None]:
    """A setup file of `identify`, but for its method and its folder for results, whose robot.json may be read here."""
    callback = applies((*GROUPS, VerdictOptions))

    def apply(ctx: typer.Context, setup: Path | None) -> Path | None:
        callback(ctx, setup)
        for key in ("out", "method"):
            (ctx.default_map or {}).pop(key, None)
        return setup

    return apply


SetupFile = Annotated[
    Path | None,
    typer.Option(
        "--setup",
        metavar="FILE",
        is_eager=True,
        callback=setup_applies(),
        help="TOML file of `geomctrl identify`; the command line goes before it.",
    ),
]
Frame = Annotated[
    str | None,
    typer.Option(
        "--frame", "--body", metavar="NAME", help="Frame or body that the load moves with, whose axes are the load's"
        " [default: the last body, or --sensor]."
    ),
]  # fmt: skip


@dataclass(frozen=True)
class LoadOptions:
    panel: ClassVar[str] = "The load"

    frame: Frame = None
    sensor: Annotated[
        str | None,
        typer.Option(metavar="FRAME", help="The log has forces and moments of a sensor at this frame, in its axes."),
    ] = None
    wrench: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="What the log calls them: fx,fy,fz,tx,ty,tz; one array, what they begin with, or a bag's topic"
            " [default: the usual names].",
        ),
    ] = None
    estimate_gravity: Annotated[
        bool, typer.Option("--estimate-gravity", help="With --sensor: the robot's base is not level.")
    ] = False
    load_friction: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="Friction with the load on: own (fitted apart), same (as without), load (with a part proportional to"
            " the torque transmitted).",
        ),
    ] = "own"

    def arguments(self) -> dict[str, Any]:
        """Of `identification.identify_load`."""
        return {
            "frame": self.frame,
            "sensor": self.sensor,
            "wrench": None if self.wrench is None else names(self.wrench),
            "estimate_gravity": self.estimate_gravity,
            "friction": self.load_friction,
        }


@dataclass(frozen=True)
class KnownOptions:
    panel: ClassVar[str] = "What is known"

    mass: Annotated[float | None, typer.Option(help="Mass of the load, weighed [kg].")] = None
    centre: Annotated[
        str | None, typer.Option(metavar="X,Y,Z", help="Its centre in --frame [m] [default: identified].")
    ] = None
    inertia: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS",
            help="Its inertia about the centre, xx,yy,zz or xx,yy,zz,xy,xz,yz [kg m^2] [default: identified].",
        ),
    ] = None
    frame: Frame = None
    known_bodies: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="In place of a load, with one log: bodies whose inertias are right in ROBOT (of CAD, weighed).",
        ),
    ] = None
    load_friction: Annotated[
        str, typer.Option(metavar="KIND", help="Friction with the load on: own (fitted apart), same.")
    ] = "own"

    def arguments(self) -> dict[str, Any]:
        """Of `identification.drive_gains`."""
        return {
            "mass": self.mass,
            "centre": None if self.centre is None else numbers("--centre", self.centre),
            "inertia": None if self.inertia is None else _tensor(self.inertia),
            "frame": self.frame,
            "known_bodies": () if self.known_bodies is None else names(self.known_bodies),
            "friction": self.load_friction,
        }


def _tensor(text: str) -> Any:
    given = numbers("--inertia", text)
    if len(given) not in (3, 6):
        raise ArgumentError(f"--inertia: expected xx,yy,zz or xx,yy,zz,xy,xz,yz, got {text!r}")
    xx, yy, zz, xy, xz, yz = [*given, 0.0, 0.0, 0.0][:6]
    return [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]


def identified_friction(source: str, modelling: ModelOptions, without_load: Path | None) -> Any:
    """What a robot.json of `geomctrl identify` says of friction, where one log needs it; None for other robots."""
    if Path(source).suffix.lower() != ".json" or without_load is not None:
        return None
    from geomctrl.models import load_extra

    extra = load_extra(Path(source))
    if "identified" not in extra:
        return None
    if modelling != ModelOptions():
        raise ArgumentError(f"--friction, --rotor, ...: {source} says what its robot's torques are made of")
    return extra


def linear_model(modelling: ModelOptions, robot: Any) -> Any:
    """Raises ArgumentError for friction curves, whose speeds another command finds; none are looked for by default."""
    if modelling.friction_curves not in (None, "auto"):
        raise ArgumentError(f"--friction: expected viscous, coulomb, offset, got {modelling.friction!r}")
    return modelling.model(robot)
