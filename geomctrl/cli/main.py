"""The program `geomctrl`: its commands, error messages and exit statuses.

Each command is a function in a module of the same name, and the module's docstring is its help page. Modules are
imported when their command runs, so that `geomctrl --help` is fast.
"""

import ast
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cyclopts import App, CycloptsError, Group, MissingArgumentError, Parameter, UnusedCliTokensError
from rich.text import Text

from geomctrl import __version__
from geomctrl.errors import GeomctrlError
from geomctrl.output import plain_console, printable

from .setup_file import read_setup
from .terminal import ERROR, Stdout, command_line, print_error

UNEXPECTED = 70  # exit status after an error of geomctrl itself, EX_SOFTWARE of sysexits.h
COMMANDS = (
    "track", "tune", "sweep", "excite", "identify", "identify_load", "drive_gains", "show", "info", "check", "robots",
    "export",
)  # fmt: skip
HELP = """Robot dynamics and control on Lie groups: simulate controllers and check their stability proofs, tune
them by hand, sweep parameters of closed loops, design motions for identification, identify robots, loads and drives
from logs, show robots, check their dynamics, export them as C code.

Start with: `geomctrl track panda --controller slotine-li --payload 2.0`"""


def _help_page(name: str) -> str:
    """The docstring of a command's module, without importing it."""
    source = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
    return ast.get_docstring(ast.parse(source)) or ""


def _message(error: CycloptsError) -> str:
    """The message of an error of the command line; cyclopts' own words where they say what to change."""
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        several = len(error.unused_tokens) > 1
        return f"unexpected argument{'s' * several}: {' '.join(map(repr, error.unused_tokens))}"
    if isinstance(error, MissingArgumentError) and error.argument is not None and not error.keyword:
        page = " ".join(("geomctrl", *(error.command_chain or ()), "--help"))
        return f"{error.argument.name}: required, but not given; see {page}"
    return str(error)


app = App(
    name="geomctrl",
    help=HELP,
    help_format="markdown",
    version=f"geomctrl {__version__}",
    group_parameters=Group("Options", sort_key=0),
    default_parameter=Parameter(negative_iterable=""),
    config=read_setup,
    result_action="return_int_as_exit_code_else_zero",
    error_console=plain_console(stderr=True, soft_wrap=True),
    error_formatter=lambda error: Text(printable(f"geomctrl: {_message(error)}"), "red"),
)
app.register_install_completion_command(help="Install completion of commands and options for bash, zsh or fish.")
for _order, _name in enumerate(COMMANDS):
    app.command(f"{__package__}.{_name}:{_name}", name=_name.replace("_", "-"), help=_help_page(_name), sort_key=_order)


def main() -> int:
    """Run the console script and return its exit status; UNEXPECTED after an error of geomctrl itself."""
    for name in ("stdin", "stdout", "stderr"):  # None if the caller closed it, as `>&-` does
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r+"))  # noqa: SIM115 - takes its number, which a result could get
    for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _end)
    try:
        return run(sys.argv[1:])
    except Exception:  # Python's own status, 1, has a meaning of its own in some commands
        traceback.print_exc()
        return UNEXPECTED


def run(arguments: Sequence[str]) -> int:
    """Run the command given by `arguments` and return its exit status.

    Invalid input, and files that can not be read or written, end with status 2 and a message. Raises SystemExit for
    unknown options.
    """
    Stdout.lost = None
    command_line.set(("geomctrl", *arguments))
    try:
        status = app(arguments)
    except GeomctrlError as error:
        print_error(str(error))
        return ERROR
    except OSError as error:
        print_error(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))
        return ERROR
    if Stdout.lost is not None and not isinstance(Stdout.lost, BrokenPipeError):  # not after `| head`
        print_error(f"{Stdout.lost.strerror or Stdout.lost}: standard output")
        return status or ERROR
    return status


def _end(number: int, _frame: Any) -> None:
    """End the command like Ctrl-C, so that it saves its results; the same signal once more kills it."""
    signal.signal(number, signal.SIG_DFL)
    raise SystemExit(128 + number)
