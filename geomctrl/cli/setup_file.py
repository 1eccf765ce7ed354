"""`--setup FILE`: read options of a command from a TOML file. Options on the command line take precedence.

    robot = "arm.urdf"            # or a table [robot], see `geomctrl.models.load`
    [log]                         # sections are the groups of --help; tables stand for FIELD=NAME, lists for commas
    columns = {q = "A_q", tau = "A_tau"}
    gears = [[100, 0], [20, 80]]
    [model]
    rotor = true                  # or "yes", "no", "auto"
    [[column]]                    # additional torques, see the page "Judge an identification"

Files are searched in the folder of the TOML file, then in the working directory.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cyclopts import Parameter, Token

from geomctrl.errors import ArgumentError
from geomctrl.files import read_toml

OPTION = Parameter(
    name="--setup",
    metavar="FILE",
    help="TOML file with any of these options, a Denavit-Hartenberg robot, additional torque columns; options on the"
    " command line take precedence.",
)
FILES = ("robot", "gears", "transmission", "test_log", "own_columns")  # options that name files
WITHOUT_SECTION = ("robot", "floating_base", "mimic", "column")
NOT_OF_OTHER_COMMANDS = ("out", "method")  # ignored by other commands that share a setup with `identify`


def read_setup(_app: Any, commands: tuple[str, ...], arguments: Any) -> None:
    """Pass the options of a setup file to the arguments that the command line does not set."""
    options = {a.field_info.name: a for a in arguments}
    if "setup" not in options or not options["setup"].tokens:
        return
    path = Path(options["setup"].tokens[0].value)
    for name, texts in options_of(path).items():
        if name in NOT_OF_OTHER_COMMANDS and commands != ("identify",):
            continue
        argument = options.get(name)
        if argument is not None and not argument.tokens:
            for text in texts:
                argument.append(Token(keyword=argument.name, value=text, source=str(path)))


def options_of(path: Path) -> dict[str, list[str]]:
    """Option texts in a file, by name. Raises ArgumentError for unknown sections and keys."""
    from .identify_options import SECTIONS

    tables = read_toml(path)
    values: dict[str, Any] = {}
    for section, table in tables.items():
        if section in SECTIONS:
            if not isinstance(table, dict):
                raise ArgumentError(f"{path}: {section}: expected a table [{section}], got {table!r:.60}")
            for key, value in table.items():
                name = _checked(f"{path}: [{section}]", key.replace("-", "_"), SECTIONS[section])
                values[name] = _texts(f"{path}: [{section}] {key}", name, value)
        elif _checked(str(path), section, (*SECTIONS, *WITHOUT_SECTION)) == "column":
            values["own_columns"] = [str(path)]
        elif section == "robot" and isinstance(table, dict):
            values["robot"] = [str(path)]
        else:
            values[section] = _texts(f"{path}: {section}", section, table)
    return values | {name: [_nearby(path, *values[name])] for name in FILES if name in values}


def _checked(where: str, key: str, names: Any) -> str:
    if key not in names:
        near = difflib.get_close_matches(key, names, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ArgumentError(f"{where}: {key!r} is not known; {hint}expected some of {', '.join(names)}")
    return key


def _texts(where: str, name: str, value: Any) -> list[str]:
    """The words after an option: FIELD=NAME for each entry of a table, otherwise one word."""
    if isinstance(value, Mapping):
        return [f"{field}={_text(where, x)}" for field, x in value.items()]
    if name == "rotor" and isinstance(value, bool):
        return ["yes" if value else "no"]
    return [_text(where, value)]


def _text(where: str, value: Any) -> str:
    """Join numbers or names with commas, and rows with semicolons."""
    if isinstance(value, list):
        rows = any(isinstance(x, list) for x in value)
        return (";" if rows else ",").join(_text(where, x) for x in value)
    if not isinstance(value, (str, int, float)):
        raise ArgumentError(f"{where}: expected strings, numbers, true or false, or lists of them, got {value!r:.60}")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _nearby(path: Path, name: str) -> str:
    try:
        return str(path.parent / name) if (path.parent / name).is_file() else name
    except OSError:  # rows of numbers may be too long for a file name
        return name
