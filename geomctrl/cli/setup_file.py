"""`--setup FILE`: what a command is told in a TOML file in place of its options, which go before it.

    robot = "arm.urdf"            # or a table [robot], see `geomctrl.models.load_dh`
    [log]                         # sections are panels of options; tables for FIELD=NAME, lists for commas
    columns = {q = "A_q", tau = "A_tau"}
    gears = [[100, 0], [20, 80]]
    [model]
    rotor = true                  # or "yes", "no", "auto"
    [[column]]                    # torques of one's own, see `geomctrl.identification.load_columns`

Files are looked for beside the TOML file, then where the command runs.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer

from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.files import read_toml

from .terminal import BAD_ARGUMENTS, complain

FILES = ("robot", "gears", "transmission", "test_log", "own_columns")
BESIDE = ("robot", "floating_base", "mimic", "column")  # of no section
REPEATED = ("ignore",)  # options that are given once a word
ANSWERS = ("rotor",)  # options that take yes and no, among others


def applies(groups: Iterable[Any]) -> Callable[[typer.Context, Path | None], Path | None]:
    """The callback of an eager option --setup for a command with these groups of options, each with its `section`."""

    def apply(ctx: typer.Context, setup: Path | None) -> Path | None:
        if setup is None:
            return None
        try:
            ctx.default_map = {**(ctx.default_map or {}), **options_of(setup, groups)}
        except GeomctrlError as error:
            complain(f"--setup: {error}")
            raise typer.Exit(BAD_ARGUMENTS) from None
        return setup

    return apply


def options_of(path: Path, groups: Iterable[Any]) -> dict[str, Any]:
    """Parameters of the command by name. Raises ArgumentError for sections and keys that there are not."""
    tables = read_toml(path)
    sections = {g.section: [f.name for f in fields(g)] for g in groups}
    given: dict[str, Any] = {}
    for section, table in tables.items():
        if section in sections:
            if not isinstance(table, dict):
                raise ArgumentError(f"{path}: {section}: expected a table [{section}], got {table!r:.60}")
            for key, value in table.items():
                name = _known(f"{path}: [{section}]", key.replace("-", "_"), sections[section])
                given[name] = _option(f"{path}: [{section}] {key}", value)
        else:
            _known(str(path), section, [*sections, *BESIDE])
            given[section] = table
    for name in REPEATED:
        if isinstance(given.get(name), str):
            given[name] = given[name].split(",")
    for name in ANSWERS:
        if isinstance(given.get(name), bool):
            given[name] = "yes" if given[name] else "no"
    if given.pop("column", None) is not None:
        given["own_columns"] = str(path)
    if isinstance(given.get("robot"), dict):
        given["robot"] = str(path)
    return given | {name: _beside(path, given[name]) for name in FILES if isinstance(given.get(name), str)}


def _known(where: str, key: str, names: list[str]) -> str:
    if key not in names:
        near = difflib.get_close_matches(key, names, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise ArgumentError(f"{where}: {key!r} is not known; {hint}expected some of {', '.join(names)}")
    return key


def _option(where: str, value: Any) -> Any:
    """As the option's text: commas between numbers or names, semicolons between rows, FIELD=NAME for tables."""
    if isinstance(value, Mapping):
        return [f"{field}={_option(where, x)}" for field, x in value.items()]
    if isinstance(value, list):
        rows = any(isinstance(x, list) for x in value)
        return (";" if rows else ",").join(str(_option(where, x)) for x in value)
    if not isinstance(value, (str, int, float)):
        raise ArgumentError(f"{where}: expected words, numbers, true or false, or lists of them, got {value!r:.60}")
    return value


def _beside(path: Path, name: str) -> str:
    try:
        return str(path.parent / name) if (path.parent / name).is_file() else name
    except OSError:  # no name of a file: rows of numbers
        return name
