"""What the commands share at a terminal: robots by name or path, messages, exit statuses, progress."""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from geomctrl.errors import ArgumentError, GeomctrlError, NameNotFoundError
from geomctrl.output import moves, of_a_notebook, plain_console

FAILED, BAD_ARGUMENTS = 1, 2
MODEL_HELP = (
    "A bundled robot (see `geomctrl robots`), or the path of a URDF file, of an MJCF file (.xml, .mjcf;"
    " needs the extra 'mjcf'), of a TOML file with a Denavit-Hartenberg table (`geomctrl.models.load_dh`), or of a"
    " robot.json that `geomctrl identify` wrote."
)


class Mimic(StrEnum):
    coupled = "coupled"
    fixed = "fixed"
    independent = "independent"
    error = "error"


class Physical(StrEnum):
    reported = "reported"
    required = "required"
    unchecked = "unchecked"


def reported(command: Callable[..., Any]) -> Callable[..., Any]:
    """Errors in what the user gave end with status 2 and a message, not a traceback."""

    @functools.wraps(command)
    def wrapped(*args: Any, **options: Any) -> Any:
        Stdout.lost = None
        try:
            command(*args, **options)
        except GeomctrlError as error:
            complain(str(error))
            raise typer.Exit(BAD_ARGUMENTS) from None
        except OSError as error:
            complain(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))
            raise typer.Exit(BAD_ARGUMENTS) from None
        if Stdout.lost is not None and not isinstance(Stdout.lost, BrokenPipeError):  # as of `| head`: nobody asks
            complain(f"{Stdout.lost.strerror or Stdout.lost}: standard output")
            raise typer.Exit(FAILED)

    return wrapped


class Stdout:
    """Standard output whose failure ends nothing: a command goes on and saves what it computes.

    What can not be written any more, to a closed pipe or a full disk, is dropped; the last error is `Stdout.lost`.
    Characters that the encoding lacks are written as question marks.
    """

    lost: OSError | None = None

    def __init__(self, file: Any):
        self.file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def write(self, text: str) -> int:
        encoding = getattr(self.file, "encoding", None) or "utf-8"
        self._try(self.file.write, text.encode(encoding, "replace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        self._try(self.file.flush)

    def _try(self, act: Callable[..., Any], *arguments: Any) -> None:
        if Stdout.lost is not None:
            return
        try:
            act(*arguments)
        except OSError as error:
            Stdout.lost = error
            with suppress(OSError, ValueError):  # what is left in Python's buffer goes nowhere, without a word
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self.file.fileno())
                os.close(nowhere)


RobotArgument = Annotated[str, typer.Argument(metavar="ROBOT", help=MODEL_HELP)]
FloatingBase = Annotated[bool, typer.Option("--floating-base", help="URDF: give the root link six degrees of freedom.")]
MimicOption = Annotated[Mimic, typer.Option(help="URDF: what to do with joints that follow others.")]
PhysicalOption = Annotated[Physical, typer.Option(help="URDF: what to do with inertias that no rigid body has.")]


def progress_bar(console: Console):
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    class Bar(Progress):
        def stop(self) -> None:
            self.live.stop()  # and no empty line in files, as of rich's own

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    return Bar(*columns, console=console, transient=True)


def load_robot(
    source: str,
    floating_base: bool = False,
    mimic: str = "coupled",
    physical: str = "reported",
):
    """A bundled robot by name, else that of a URDF, MJCF, TOML or robot.json file; options as of `load_urdf`.

    Raises GeomctrlError children.
    """
    from geomctrl import models

    bundled = source in models.names() or not (Path(source).suffix or Path(source).exists())
    if not bundled and not Path(source).is_file():
        raise ArgumentError(f"ROBOT: no such file: {source!r}; bundled robots: {', '.join(models.names())}")
    suffix = Path(source).suffix.lower()
    mjcf, table, ours = suffix in (".xml", ".mjcf"), suffix == ".toml", suffix == ".json"
    if (bundled or mjcf or table or ours) and (floating_base or physical == "required" or mimic != "coupled"):
        raise ArgumentError(f"--floating-base, --mimic, --physical: for URDF files, not for {source!r}")
    if bundled:
        try:
            return models.load(source)
        except NameNotFoundError as error:
            raise NameNotFoundError(str(error).replace("name:", "ROBOT:", 1)) from None
    if mjcf:
        return models.load_mjcf(Path(source))
    if table:
        return models.load_dh(Path(source))
    if ours:
        from geomctrl.models import load_model

        return load_model(Path(source))
    return models.load_urdf(Path(source), floating_base, mimic=str(mimic), physical=str(physical))


@contextmanager
def compiling(console: Console, guess: str) -> Iterator[None]:
    """Say so, once, when a kernel has to be compiled; silent with a warm cache."""
    from geomctrl.kernels.jit import watch_compiling  # here: it imports numpy

    status, started = console.status("compiling"), []

    def announce(_):
        if not started:
            started.append(time.perf_counter())
            said = f"compiling kernels, once, about {guess}; the next start finds them in the cache"
            console.print(said, soft_wrap=True)
            status.start()

    try:
        with watch_compiling(announce):
            yield
    finally:
        status.stop()
    if started:
        console.print(f"compiled in {time.perf_counter() - started[0]:.0f} s")


def stdout_console() -> Console:
    """Standard output. Where nobody watches nothing moves, no cursor is hidden, and there are at least 110 columns, so
    that files hold whole tables; notebooks' cells have colours still.
    """
    if moves():
        return plain_console(file=Stdout(sys.stdout))
    colours = "standard" if of_a_notebook() or os.environ.get("FORCE_COLOR") else None
    width = None if "COLUMNS" in os.environ else 110
    return plain_console(file=Stdout(sys.stdout), force_terminal=False, color_system=colours, width=width)


def interrupted_status(error: KeyboardInterrupt | SystemExit) -> int:
    """What a shell calls the end by Ctrl-C, or by the signal that `main` has made a SystemExit of."""
    return 130 if isinstance(error, KeyboardInterrupt) else int(error.code or 0)


def complain(message: str) -> None:
    plain_console(stderr=True, soft_wrap=True).print(f"geomctrl: {message}", style="red")
