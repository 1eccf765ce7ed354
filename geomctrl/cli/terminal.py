"""Terminal output that the commands share: consoles, progress bars, messages, exit statuses."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console

from geomctrl.errors import WriteError
from geomctrl.output import moves, plain_console, runs_in_notebook

T = TypeVar("T")
FAILED, ERROR = 1, 2  # a bad result; invalid input, or a file that can not be read or written
command_line: ContextVar[tuple[str, ...]] = ContextVar("command_line")  # as typed


class Stdout:
    """Standard output that never raises: a command continues and saves its results.

    Text that can not be written, because of a closed pipe or a full disk, is dropped; `Stdout.lost` is the last error.
    Characters that the encoding lacks become question marks.
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
            with suppress(OSError, ValueError):  # the rest of Python's buffer is dropped silently
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self.file.fileno())
                os.close(nowhere)


def progress_bar(console: Console):
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    class Bar(Progress):
        def stop(self) -> None:
            self.live.stop()  # unlike rich's own, without an empty line in files

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    return Bar(*columns, console=console, transient=True)


@contextmanager
def compiling(console: Console, guess: str) -> Iterator[None]:
    """Print a message, once, if a kernel has to be compiled; nothing if the cache has it."""
    from geomctrl.kernels.jit import watch_compiling  # imported here because it imports numpy

    status, started = console.status("compiling"), []

    def announce(_):
        if not started:
            started.append(time.perf_counter())
            message = f"compiling kernels, about {guess}; later runs load them from the cache"
            console.print(message, soft_wrap=True)
            status.start()

    try:
        with watch_compiling(announce):
            yield
    finally:
        status.stop()
    if started:
        console.print(f"compiled in {time.perf_counter() - started[0]:.0f} s")


def stdout_console() -> Console:
    """Console for standard output.

    Without a terminal nothing is animated, the cursor is not hidden, and there are at least 110 columns, so that files
    contain whole tables. Notebook cells keep colours.
    """
    if moves():
        return plain_console(file=Stdout(sys.stdout))
    colours = "standard" if runs_in_notebook() or os.environ.get("FORCE_COLOR") else None
    width = None if "COLUMNS" in os.environ else 110
    return plain_console(file=Stdout(sys.stdout), force_terminal=False, color_system=colours, width=width)


def interrupted_status(error: KeyboardInterrupt | SystemExit) -> int:
    """Exit status of a shell for Ctrl-C, or for the signal that `main` has turned into a SystemExit."""
    return 130 if isinstance(error, KeyboardInterrupt) else int(error.code or 0)


def print_error(message: str) -> None:
    plain_console(stderr=True, soft_wrap=True).print(f"geomctrl: {message}", style="red")


def report_written(console: Console, files: Any, out: Any, more: str = "") -> None:
    """List the files that a command wrote to its folder, if any."""
    if names := ", ".join(path.name for path in files):
        console.print(f"wrote {names} in {out}{more}", soft_wrap=True)


class SaveResult:
    """Files that a function has written, and the message on those that can not be written.

    `paths`: files written; `status(otherwise)`: prints the message and returns ERROR if a file is missing.
    """

    def __init__(self, save: Callable[[], Sequence[Path]]):
        self.problem: str | None = None
        try:
            self.paths = list(save())
        except WriteError as error:
            self.paths, self.problem = error.written, str(error)

    def status(self, otherwise: T) -> int | T:
        if self.problem is None:
            return otherwise
        print_error(self.problem)
        return ERROR
