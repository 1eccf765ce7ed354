"""Options that several commands share, and the conversion of option texts to numbers, names or tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from cyclopts import Group, Parameter, Token

from geomctrl.errors import ArgumentError, NameNotFoundError

if TYPE_CHECKING:
    from geomctrl.robot import Robot

MAX_RANGE = 100_000  # largest number of integers in a range such as 2-5
MODEL_HELP = (
    "A bundled robot (see `geomctrl robots`), or the path of a URDF file, of an MJCF file (.xml, .mjcf;"
    " needs the extra 'mjcf'), of a TOML file with a Denavit-Hartenberg table (`geomctrl.models.load`), or of a"
    " robot.json that `geomctrl identify` wrote."
)
RobotArgument = Annotated[str, Parameter(help=MODEL_HELP)]


# --- conversion of texts -------------------------------------------------------------------------------------------


def option(convert: Callable[[str], Any], help: str, *, metavar: str, **more: Any) -> Parameter:
    """An option whose text is converted by a function, which raises ValueError."""
    return Parameter(
        help=help, metavar=metavar, n_tokens=1, allow_leading_hyphen=True, negative="", accepts_keys=False,
        converter=lambda _type, tokens: convert(tokens[0].value), **more,
    )  # fmt: skip


def numbers(help: str, *, metavar: str = "NUMBERS", **more: Any) -> Parameter:
    """An option with numbers separated by commas."""
    return option(as_numbers, help, metavar=metavar, **more)


def per_joint(help: str, **more: Any) -> Parameter:
    """An option with one number, or one number per joint."""
    return option(_number_or_list, help, metavar="NUMBERS", **more)


def names(help: str, *, metavar: str = "NAMES", **more: Any) -> Parameter:
    """An option with names separated by commas."""
    return option(as_names, help, metavar=metavar, **more)


def matrix(help: str, *, metavar: str = "NUMBERS|FILE", **more: Any) -> Parameter:
    """An option with rows of numbers, or a file that contains them."""
    return option(_as_matrix, help, metavar=metavar, **more)


def ranges(help: str) -> Parameter:
    """An option with integers and ranges of integers."""
    return option(as_ranges, help, metavar="NUMBERS")


def pairs(
    help: str, *, name: str, metavar: str = "FIELD=NAME", convert: Callable[[str], Any] | None = None
) -> Parameter:
    """A repeated option FIELD=NAME or FIELD=NAME,NAME,..., of type list[Any], whose value becomes a dictionary.

    convert: makes the text after = a value, and raises ValueError.
    """
    return Parameter(
        name=name, help=help, metavar=metavar, n_tokens=1, negative="", show_default=False,
        converter=lambda _type, tokens: _as_pairs(tokens, metavar, convert or _as_word),
    )  # fmt: skip


def flag(help: str, *, name: str | None = None) -> Parameter:
    """A switch that is off by default and has no opposite."""
    return Parameter(name=name, help=help, negative="", show_default=False)


def with_fields(source: type, *names: str, **parameters: Parameter) -> Callable[[type], type]:
    """Class decorator that adds options with the names, types, defaults and help texts of a dataclass's fields.

    names: names of the fields, default all. parameters: for fields whose value is not a single word of their type.
    """
    hints = get_type_hints(source)

    def decorated(cls: type) -> type:
        for field in fields(source):
            if names and field.name not in names:
                continue
            help = re.sub(r"\.? Default: (.+)\.$", r" [default: \1].", field.metadata["help"])
            more, type_ = parameters.get(field.name), hints[field.name] if field.name not in parameters else Any
            type_ = bool if hints[field.name] is bool else type_
            cls.__annotations__[field.name] = Annotated[type_, Parameter.combine(more, Parameter(help=help))]
            setattr(cls, field.name, field.default)
        return cls

    return decorated


def as_names(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def as_numbers(text: str) -> list[float]:
    try:
        return [float(word) for word in as_names(text)]
    except ValueError:
        raise ValueError(f"expected numbers separated by commas, got {text!r}") from None


def _number_or_list(text: str) -> float | list[float]:
    values = as_numbers(text)
    return values[0] if len(values) == 1 else values


def as_ranges(text: str) -> list[int]:
    """Parse integers and ranges: 0,2-5."""
    out: list[int] = []
    for word in as_names(text):
        first, dash, last = word.partition("-")
        if not first.isdigit() or (dash and not (last.isdigit() and int(first) <= int(last) < int(first) + MAX_RANGE)):
            raise ValueError(f"expected numbers and ranges of them, 0,2-5, got {text!r:.60}")
        out += range(int(first), int(last if dash else first) + 1)
    return out


def _as_matrix(text: str) -> Any:
    """Parse rows of numbers, separated by semicolons or as lines of a file; commas or blanks separate numbers."""
    import numpy as np

    try:
        is_file = Path(text).is_file()
    except OSError:  # a text of numbers may be too long for a file name
        is_file = False
    lines = Path(text).read_text(encoding="utf-8").splitlines() if is_file else text.split(";")
    try:
        return np.loadtxt([line.replace(",", " ") for line in lines], ndmin=2)
    except ValueError as error:
        expected = f"expected rows of numbers, or the name of a file of them, got {text!r:.60}: {error}"
        raise ValueError(expected) from None


def _as_pairs(tokens: Sequence[Token], metavar: str, convert: Callable[[str], Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for token in tokens:
        field, equals, text = token.value.partition("=")
        try:
            value = convert(text)
        except ValueError:
            equals, value = "", None
        if not equals:
            raise ValueError(f"expected {metavar}, got {token.value!r}")
        if field.strip() in out:
            raise ValueError(f"{field.strip()!r} is given twice")
        out[field.strip()] = value
    return out


def _as_word(text: str) -> str | list[str]:
    values = as_names(text)
    if not values:
        raise ValueError("expected a name")
    return values if len(values) > 1 else values[0]


def as_limits(text: str) -> tuple[float, float]:
    """Parse LOW:HIGH."""
    low, high = map(float, text.split(":"))
    return low, high


# --- robots --------------------------------------------------------------------------------------------------------


@Parameter(name="*", group=Group("URDF files", sort_key=90))
@dataclass(frozen=True)
class UrdfOptions:
    """Options for reading a URDF file."""

    floating_base: Annotated[bool, flag("Give the root link six degrees of freedom.")] = False
    mimic: Annotated[
        Literal["coupled", "fixed", "independent", "error"],
        Parameter(help="What to do with mimic joints, which follow others."),
    ] = "coupled"

    def load(self, source: str, physical: str = "unchecked") -> Robot:
        """Load a bundled robot by name, or a URDF, MJCF, TOML or robot.json file. Raises GeomctrlError."""
        from geomctrl import models
        from geomctrl.models.io.model_file import file_format

        bundled = source in models.names() or not (Path(source).suffix or Path(source).exists())
        if not bundled and not Path(source).is_file():
            raise ArgumentError(f"ROBOT: no such file: {source!r}; bundled robots: {', '.join(models.names())}")
        if not bundled and file_format(source) in ("urdf", None):
            return models.load_urdf(Path(source), self.floating_base, mimic=self.mimic, physical=physical)
        if self.floating_base or physical == "required" or self.mimic != "coupled":
            raise ArgumentError(f"--floating-base, --mimic, --physical: for URDF files, not for {source!r}")
        try:
            return models.load(source)
        except NameNotFoundError as error:
            raise NameNotFoundError(str(error).replace("name:", "ROBOT:", 1)) from None


@Parameter(name="*", group=Group("URDF files", sort_key=90))
@dataclass(frozen=True)
class CheckedUrdfOptions(UrdfOptions):
    """Options for reading a URDF file in commands that use its inertias."""

    physical: Annotated[
        Literal["reported", "required", "unchecked"],
        Parameter(help="What to do with inertias that no rigid body can have."),
    ] = "reported"

    def load(self, source: str, physical: str | None = None) -> Robot:
        return super().load(source, physical or self.physical)
