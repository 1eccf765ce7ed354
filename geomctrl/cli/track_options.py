"""What may be chosen of a scenario and of `geomctrl track`, as data: see `grouped`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer


@dataclass(frozen=True)
class ScenarioOptions:
    """What is tracked, by which controller, on which plant."""

    panel: ClassVar[str] = "The scenario"

    controller: Annotated[
        str,
        typer.Option(metavar="LAW", help="Which law closes the loop, see Gains, or FILE.py:CLASS, one of your own."),
    ] = "slotine-li"
    reference: Annotated[
        str, typer.Option(metavar="MOTION", help="Desired motion, within the limits: sinusoids, quintic or spline.")
    ] = "sinusoids"
    seconds: Annotated[float, typer.Option(help="Length of the run.")] = 10.0
    payload: Annotated[
        float, typer.Option(help="Mass [kg] of a ball in the true robot's hand, unknown to the model.")
    ] = 0.0
    payload_at: Annotated[
        float | None, typer.Option(help="Time [s] at which the load is gripped [default: the start].")
    ] = None
    payload_frame: Annotated[
        str | None, typer.Option(help="Frame that carries it [default: the tool, free base or last body].")
    ] = None
    dt: Annotated[float, typer.Option(help="Integration step [s].")] = 1e-3
    control_dt: Annotated[
        float | None, typer.Option(help="Sample the law each so many seconds, a multiple of dt [default: continuous].")
    ] = None
    friction: Annotated[
        bool,
        typer.Option("--friction/--no-friction", help="Friction in the plant also where the robot's model has none."),
    ] = False
    actuators: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="Between law and joints, in order: delay=, rate=, lag=, limits, limits=, joints."
        ),
    ] = None
    sensors: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Encoders: bits= or resolution=, noise=, offset=, cutoff=, delay=, dt=."),
    ] = None
    gains: Annotated[
        str | None, typer.Option(metavar="LIST", help="name=number,...: gains to override, see above.")
    ] = None
    adapt: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="What slotine-li estimates: the body with the load (load), all links (links), base parameters (base).",
        ),
    ] = "load"
    seed: Annotated[int, typer.Option(help="Which random reference.", min=0)] = 0


@dataclass(frozen=True)
class RunOptions:
    """How it is run, and what becomes of it."""

    panel: ClassVar[str] = "The run"

    compare: Annotated[
        bool,
        typer.Option("--compare/--no-compare", help="slotine-li: run computed torque with the same wrong model too."),
    ] = True
    strict: Annotated[bool, typer.Option("--strict", help="Stop when a monitor's violation is confirmed.")] = False
    method: Annotated[str, typer.Option(help="Integration method on the group.")] = "MK4"
    out: Annotated[Path, typer.Option(help="Folder for run.npz, report.txt, run.html and the plots.")] = Path("out")
    plots: Annotated[
        bool, typer.Option("--plots/--no-plots", help="Draw PNG files, and run.html with the extra 'view'.")
    ] = True
