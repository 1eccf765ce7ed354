"""What the commands share at a terminal: consoles, progress, messages, exit statuses."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from rich.console import Console

from geomctrl.output import moves, of_a_notebook, plain_console

FAILED, BAD_ARGUMENTS = 1, 2
command_line: ContextVar[tuple[str, ...]] = ContextVar("command_line")  # as typed


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


def progress_bar(console: Console):
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    class Bar(Progress):
        def stop(self) -> None:
            self.live.stop()  # and no empty line in files, as of rich's own

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    return Bar(*columns, console=console, transient=True)


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


def report_written(console: Console, files: Any, out: Any, more: str = "") -> None:
    """List the files that a command wrote in its folder."""
    console.print(f"wrote {', '.join(path.name for path in files)} in {out}{more}", soft_wrap=True)
