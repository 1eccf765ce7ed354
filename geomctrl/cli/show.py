"""Show a robot or a simulation in three dimensions. It needs the extra 'view'.

A robot is shown with sliders for its joints until Ctrl-C; in a file, its joints move one after another. A simulation is
shown with a time slider, which moves the robot and the curves next to it. If there is a display, the browser is opened;
the address is always printed.

A saved run does not contain its robot, only the robot's name and file. If they have changed or no longer exist, use
--robot. URDF files are drawn with their meshes, other robots as capsules.

**Examples**

- `geomctrl show panda`

- `geomctrl show robot.urdf --out robot.html`

- `geomctrl show out/demo/run.npz`
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter, validators

from geomctrl.arguments import shown
from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.files import read_arrays, write_text

from .options import UrdfOptions, as_names
from .terminal import FAILED, print_error, stdout_console

if TYPE_CHECKING:
    from geomctrl.control.run import Run
    from geomctrl.robot import Robot


def show(
    subject: Annotated[
        str,
        Parameter(
            name="ROBOT|RUN",
            help="A bundled robot (see `geomctrl robots`), a robot's file as for `geomctrl info`, or a run.npz.",
        ),
    ],
    /,
    *,
    out: Annotated[Path | None, Parameter(help="Write the page to this file, and open no browser.")] = None,
    robot: Annotated[
        str | None, Parameter(help="Robot of a run, by name or file [default: the one that the run names].")
    ] = None,
    frames: Annotated[
        str | None,
        Parameter(metavar="NAMES", help="Frames whose axes are drawn, name,... [default: world and tool]."),
    ] = None,
    port: Annotated[
        int,
        Parameter(
            help="Port of the page of a robot, or the next free one.", validator=validators.Number(gte=0, lte=65535)
        ),
    ] = 8080,
    urdf: UrdfOptions = UrdfOptions(),
) -> int | None:
    try:
        names = None if frames is None else as_names(frames)
        if subject.endswith(".npz"):
            run = _load_run(Path(subject), robot, urdf)
            _write_or_open(run.animate(frames=names).text, out)
            return None
        if robot is not None:
            raise ArgumentError(f"--robot: for runs (.npz), not for {subject!r}")
        model = urdf.load(subject, "reported")
        if out is None:
            _sliders(model, names, port)
        else:
            from geomctrl.viewing.animation import robot_page

            _write_or_open(robot_page(model, model.name, names), out)
    except ImportError as error:
        if "geomctrl[view]" not in str(error):
            raise
        print_error(str(error))
        return FAILED
    return None


def _load_run(path: Path, robot: str | None, urdf: UrdfOptions) -> Run:
    """Load a saved run with its robot."""
    from geomctrl.control.run import Run

    if not path.is_file():
        raise ArgumentError(f"RUN: no such file: {str(path)!r}")
    bare = Run.load(path)
    model = _named_robot(path) if robot is None else urdf.load(robot, "reported")
    if (model.nq, model.nv) != (bare.q.shape[1], bare.v.shape[1]):
        origin = "--robot" if robot else f"{path}: names the robot"
        sizes = f"nq = {model.nq} and nv = {model.nv}, the run {bare.q.shape[1]} and {bare.v.shape[1]}"
        raise ArgumentError(
            f"{origin} {model.name!r}, which has {sizes}; give --robot, --floating-base, --mimic as for the run"
        )
    return Run.load(path, model)


def _named_robot(path: Path) -> Robot:
    """The robot that a saved run names."""
    from geomctrl import models

    named: Any = json.loads(str(read_arrays(path)["about"])).get("robot") or {}
    if not isinstance(named, dict) or not all(isinstance(x, str) for x in named.values()):
        raise ArgumentError(f"{path}: its robot: expected a name and a file, got {shown(named)}; give --robot")
    source = Path(named.get("file", ""))
    try:
        if "file" in named and source.is_file():
            return UrdfOptions().load(str(source), "reported")
        if "file" not in named and named.get("name") in models.names():
            return models.load(named["name"])
    except GeomctrlError as error:
        raise ArgumentError(f"{path}: its robot: {error}; give --robot") from None
    missing = f"its robot, {named.get('name')!r} of {source}, is missing" if "file" in named else "names no robot"
    raise ArgumentError(f"{path}: {missing}: give --robot ROBOT")


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
