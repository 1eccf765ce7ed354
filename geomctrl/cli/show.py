"""`geomctrl show`: a robot, or a run of one, in three dimensions in a browser."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.files import write_text

from .terminal import (
    FAILED,
    FloatingBase,
    Mimic,
    MimicOption,
    complain,
    load_robot,
    reported,
    stdout_console,
)

if TYPE_CHECKING:
    from geomctrl.control.run import Run
    from geomctrl.robot import Robot

WhatArgument = Annotated[
    str,
    typer.Argument(
        metavar="WHAT",
        help="A bundled robot (see `geomctrl robots`), a robot's file as for `geomctrl info`, or a run.npz.",
    ),
]


@reported
def show(
    what: WhatArgument,
    out: Annotated[
        Path | None, typer.Option(help="Write the page to this file, and open no browser.", dir_okay=False)
    ] = None,
    robot: Annotated[
        str | None, typer.Option(help="Of a run: its robot, by name or file [default: the one that the run names].")
    ] = None,
    frames: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="name,...: frames whose axes are drawn [default: world and tool]."),
    ] = None,
    port: Annotated[
        int, typer.Option(help="Of the page of a robot, or the next that is free.", min=0, max=65535)
    ] = 8080,
    floating_base: FloatingBase = False,
    mimic: MimicOption = Mimic.coupled,
) -> None:
    """Show a robot or a run in three dimensions. It needs the extra 'view'.

    A robot has sliders for its joints, until Ctrl-C; written to a file, its joints move one after the other. A run has
    one slider, for the time, which moves the robot and the curves beside it. The browser is opened where there is a
    display; the address is printed in any case.

    A run does not hold its robot, but its name and the file it was read from: with those changed or gone, give --robot.
    URDF files are drawn with their meshes, other robots with capsules made of the tree.

    **Examples**

    - `geomctrl show panda`

    - `geomctrl show robot.urdf --out robot.html`

    - `geomctrl show out/demo/run.npz`
    """
    try:
        names = None if frames is None else [name.strip() for name in frames.split(",") if name.strip()]
        if what.endswith(".npz"):
            run = _run(Path(what), robot, floating_base, mimic)
            _write_or_open(_page_of(run, names), out)
            return
        if robot is not None:
            raise ArgumentError(f"--robot: for runs (.npz), not for {what!r}")
        model = load_robot(what, floating_base, mimic)
        if out is None:
            _sliders(model, names, port)
        else:
            from geomctrl.viewing.animation import robot_page

            _write_or_open(robot_page(model, model.name, names), out)
    except ImportError as error:
        if "geomctrl[view]" not in str(error):
            raise
        complain(str(error))
        raise typer.Exit(FAILED) from None


def _page_of(run: Run, frames: list[str] | None) -> str:
    return run.animate(frames=frames).text


def _run(path: Path, robot: str | None, floating_base: bool, mimic: str) -> Run:
    """A saved run with its robot."""
    from geomctrl.control.run import Run

    if not path.is_file():
        raise ArgumentError(f"WHAT: no such file: {str(path)!r}")
    bare = Run.load(path)
    model = _named(path) if robot is None else load_robot(robot, floating_base, mimic)
    if (model.nq, model.nv) != (bare.q.shape[1], bare.v.shape[1]):
        said = "--robot" if robot else f"{path}: names the robot"
        sizes = f"nq = {model.nq} and nv = {model.nv}, the run {bare.q.shape[1]} and {bare.v.shape[1]}"
        raise ArgumentError(
            f"{said} {model.name!r}, which has {sizes}; give --robot, --floating-base, --mimic as it was"
        )
    return Run.load(path, model)


def _named(path: Path) -> Robot:
    """The robot that a saved run says it was of."""
    import numpy as np

    from geomctrl import models

    with np.load(path, allow_pickle=False) as file:
        named: Any = json.loads(str(file["about"])).get("robot") or {}
    source = Path(named.get("file", ""))
    try:
        if "file" in named and source.is_file():
            return load_robot(str(source))
        if "file" not in named and named.get("name") in models.names():
            return models.load(named["name"])
    except GeomctrlError as error:
        raise ArgumentError(f"{path}: its robot: {error}; give --robot") from None
    told = (
        f"its robot, {named.get('name')!r} of {source}, is not there"
        if "file" in named
        else "does not say of which robot"
    )
    raise ArgumentError(f"{path}: {told}: give --robot ROBOT")


def _write_or_open(page: str, out: Path | None) -> None:
    from geomctrl.viewing.live import opened

    console = stdout_console()
    if out is not None:
        write_text(out, page)
        console.print(f"wrote {out} ({out.stat().st_size / 1e6:.1f} MB)", soft_wrap=True)
        return
    path = Path(tempfile.mkdtemp(prefix="geomctrl-")) / "run.html"
    address = write_text(path, page).as_uri()
    console.print(f"{'opened' if opened(address) else 'open in a browser:'} {address}", soft_wrap=True)


def _sliders(model: Robot, frames: list[str] | None, port: int) -> None:
    from geomctrl.viewing.live import opened, show_robot
    from geomctrl.viewing.server import stop

    console = stdout_console()
    server = show_robot(model, port=port, frames=frames)
    try:
        address = f"http://localhost:{server.get_port()}"
        opened(address)
        console.print(f"{model.name}: {address}, until Ctrl-C", soft_wrap=True)
        while True:
            time.sleep(1.0)
    except KeyboardInterrupt:
        console.print("closed")
    finally:
        stop(server)
