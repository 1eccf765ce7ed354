"""The command line: `geomctrl track | sweep | excite | identify | identify-load | drive-gains | show | info | check |
robots | export`.

Imports of anything heavy are inside the commands, so that help is quick.
"""

import signal
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from geomctrl import __version__

# Each is the function of that name in the module of that name; a class `Command` there is what shows its help.
COMMANDS = (
    "track", "sweep", "excite", "identify", "identify_load", "drive_gains", "show", "info", "check", "robots", "export",
)  # fmt: skip


class Commands(TyperGroup):
    def invoke(self, ctx: typer.Context) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")  # pydantic's, in front of typer's own words
            raise


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Robot dynamics and control on Lie groups: run controllers on a plant that checks their proofs,"
    " sweep parameters of closed loops,"
    " design motions to identify robots with, identify robots, their loads and drives from logs, look at robots,"
    " check their dynamics, export them as C.\n\n"
    "Start with: `geomctrl track panda --controller slotine-li --payload 2.0`",
)


def show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"geomctrl {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=show_version, is_eager=True, help="Version.")] = False,
) -> None:
    """What can stand before a command's name."""


for name in COMMANDS:
    module = import_module(f"{__package__}.{name}")
    app.command(cls=getattr(module, "Command", None))(getattr(module, name))


def main() -> None:
    """The console script."""
    for name in ("SIGTERM", "SIGHUP"):  # the second is not on Windows
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _end)
    app()


def _end(number: int, _frame: Any) -> None:
    """What runs is ended as by Ctrl-C, so that it can keep what it has; the same signal once more kills."""
    signal.signal(number, signal.SIG_DFL)
    raise SystemExit(128 + number)
