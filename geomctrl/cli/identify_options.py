"""Options of the commands that identify from logs, by group, with their conversion to `geomctrl.identification`."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter

from geomctrl.errors import ArgumentError
from geomctrl.files import write_each
from geomctrl.identification import (
    ESTIMATORS,
    Filtering,
    JointMapping,
    Reading,
    RegressorModel,
    Validation,
)  # fmt: skip
from geomctrl.identification.estimators import named
from geomctrl.identification.estimators.estimate import OPTION_HELP
from geomctrl.identification.findings import ignorable
from geomctrl.identification.model.columns import load_columns
from geomctrl.models.io import in_place
from geomctrl.models.io.model_file import file_format
from geomctrl.models.io.writing import save_c_header

from .options import (
    MODEL_HELP,
    as_names,
    flag,
    matrix,
    names,
    numbers,
    option,
    pairs,
    per_joint,
    ranges,
    with_fields,
)

SHARED_READING = (
    "rate", "drop_bad_rows", "joints", "topic", "current_gains", "episodes", "check_units",
)  # fmt: skip
LINEAR, CURVES = ("viscous", "coulomb", "offset"), ("sigmoid", "stribeck", "auto")
RobotOption = Annotated[str, Parameter(metavar="ROBOT", help=MODEL_HELP)]


def _number_or_auto(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"expected a number or auto, got {text!r}") from None


def _with(option: str) -> str:
    """Names of the estimators that have an option."""
    return ", ".join(e.name for e in ESTIMATORS.values() if option in e.options)


def _help(option: str, methods: str = "") -> str:
    """The text of an option in `fit`, after the names of the estimators that have it."""
    text = OPTION_HELP[option]
    return f"{methods or _with(option)}: {text[0].lower()}{text[1:]}"


PRIOR = ", ".join(sorted(e.name for e in ESTIMATORS.values() if e.has_prior))
PRIOR_WEIGHTS = ", ".join(
    f"{e.name} {e.options[e.prior_weight]:g}" for e in ESTIMATORS.values() if e.prior_weight is not None
)
METHODS = "; ".join(f"*{e.name}*: {e.summary}" for e in ESTIMATORS.values())


@Parameter(name="*", group=Group("Log", sort_key=1))
@dataclass(frozen=True)
@with_fields(
    Reading, *SHARED_READING, drop_bad_rows=flag(""), joints=names(""), current_gains=per_joint(""), episodes=ranges("")
)
class LogOptions:
    """Options for reading a log: the fields of `Reading`, and options for its names, units and mapping."""

    columns: Annotated[
        list[Any],
        pairs(
            "Which array or columns are t, q, v, a, tau, or currents i: q=angle (an array, or columns angle1, angle2,"
            " ...), q=axis*_deg (* for the joint's number or name), q=base,elbow, q=2-8 (columns without a header)"
            " [default: common names, with numbers or the joints' names]. Repeat.",
            name="--column",
        ),
    ] = ()  # pyright: ignore[reportAssignmentType]
    units: Annotated[
        list[Any],
        pairs(
            "q=deg, v=rpm, t=ms, ...; q=deg,mm: one per joint [default: SI]. Repeat.",
            name="--unit", metavar="FIELD=UNIT",
        ),
    ] = ()  # fmt: skip  # pyright: ignore[reportAssignmentType]
    gears: Annotated[
        Any,
        matrix(
            "The log has motor coordinates: motor turns per joint turn, 100,100,80, or a matrix for coupled joints,"
            " 100,0;20,80 or a text file of such rows."
        ),
    ] = None
    zero: Annotated[list[float] | None, numbers("Added to joint positions [rad, m]: 0,-1.5708,0, ...")] = None
    joint_torques: Annotated[bool, flag("With --gears: torques are already at the joints.")] = False
    joint_positions: Annotated[bool, flag("With --gears: positions and velocities are already at the joints.")] = False

    def reading(self, nv: int) -> Reading:
        """The `Reading` for a robot with nv joints."""
        shared = {name: getattr(self, name) for name in SHARED_READING}
        return Reading(dict(self.columns), dict(self.units), self._mapping(nv), **shared)

    def _mapping(self, nv: int) -> JointMapping | None:
        for name in ("joint_torques", "joint_positions"):
            if getattr(self, name) and self.gears is None:
                raise ArgumentError(f"--{name.replace('_', '-')}: for --gears; without them a log is at the joints")
        if self.gears is None and self.zero is None:
            return None
        ratios = [1.0] * nv if self.gears is None else self.gears
        if self.gears is not None and len(ratios) == 1 and nv > 1:
            ratios = ratios[0]
        offset = 0.0 if self.zero is None else self.zero
        return JointMapping(ratios, offset, not self.joint_torques, not self.joint_positions)


def _friction(text: str) -> list[str]:
    kinds = [] if text.strip() == "none" else as_names(text)
    if set(kinds) - {*LINEAR, *CURVES} or len(set(kinds) & set(CURVES)) > 1:
        expected = f"expected none, or a list of {', '.join(LINEAR)} and one of {', '.join(CURVES)}"
        raise ValueError(f"{expected}, got {text!r}")
    return kinds


@Parameter(name="*", group=Group("Model", sort_key=2))
@dataclass(frozen=True)
class ModelOptions:
    """Options for the contributions to the torques."""

    friction: Annotated[
        Any,
        option(
            _friction,
            "viscous, coulomb, offset, and sigmoid or stribeck, whose speeds nonlinear least squares find, or"
            " auto: the one of them that predicts torques better, if one does; none.",
            metavar="LIST",
            show_default=",".join,
        ),
    ] = (*LINEAR, "auto")
    smoothing: Annotated[
        float | None,
        Parameter(
            help="Speed [rad/s] over which Coulomb friction changes its sign [default: what predicts torques best]."
        ),
    ] = None
    rotor: Annotated[
        Literal["yes", "no", "auto"],
        Parameter(
            metavar="yes|no|auto", show_choices=False,
            help="Motor (rotor) inertias; auto: if torques are predicted better with them.",
        ),
    ] = "auto"  # fmt: skip
    springs: Annotated[
        list[str], names("Joints with a spring: joint2,joint3.", metavar="JOINTS", show_default=False)
    ] = ()  # type: ignore[assignment]
    transmission: Annotated[
        Any,
        matrix(
            "One row per motor, 1,0;0,1;1,1 or a text file of such rows: motor speed per joint speed. Friction and"
            " rotors then act at the motors [default: at the joints]."
        ),
    ] = None
    own_columns: Annotated[
        Path | None,
        Parameter(
            help="TOML file with tables \\[[column]]: torques of known shape and unknown amplitude, as formulas; the"
            " page 'Judge an identification' shows one."
        ),
    ] = None

    def model(self, robot: Any) -> RegressorModel:
        """The model of a robot, without friction curves."""
        return RegressorModel(
            robot,
            **{kind: kind in self.friction for kind in LINEAR},  # pyright: ignore[reportArgumentType]
            rotor=self.rotor == "yes",
            smoothing=0.01 if self.smoothing is None else self.smoothing,
            springs=self.springs,
            columns=() if self.own_columns is None else load_columns(self.own_columns, robot),
            transmission=self.transmission,
        )

    @property
    def friction_curves(self) -> str | None:
        return next((kind for kind in self.friction if kind in CURVES), None)

    def linear_model(self, robot: Any) -> RegressorModel:
        """The model; raises ArgumentError for friction curves, whose speeds only `identify` finds."""
        if self.friction_curves not in (None, "auto"):
            raise ArgumentError(f"--friction: expected viscous, coulomb, offset, got {','.join(self.friction)!r}")
        return self.model(robot)


@Parameter(name="*", group=Group("Filters", sort_key=3))
@dataclass(frozen=True)
@with_fields(
    Filtering, alike=Parameter(negative="--torques-only"), delay=option(_number_or_auto, "", metavar="SECONDS|auto")
)
class FilterOptions:
    """Options of `Filtering`."""

    def filtering(self) -> Filtering:
        return Filtering(**vars(self))


@Parameter(name="*", group=Group("Test", sort_key=4))
@dataclass(frozen=True)
@with_fields(Validation, "period")
class ValidationOptions:
    """Options for the test on unseen data."""

    test: Annotated[
        float,
        Parameter(
            help="Fraction of the log for the test, 0 for none: its end, or the end of every period if it repeats."
        ),
    ] = 0.3
    test_log: Annotated[Path | None, Parameter(help="Another log to test on, instead of --test.")] = None
    test_columns: Annotated[
        list[Any],
        pairs("--column for --test-log, if it differs. Repeat.", name="--test-column"),
    ] = ()  # pyright: ignore[reportAssignmentType]

    def validation(self, reading: Reading) -> Validation:
        """The `Validation`; reading: that of the training log."""
        keys, period = dict(self.test_columns), self.period  # pyright: ignore[reportAttributeAccessIssue]
        if keys and self.test_log is None:
            raise ArgumentError("--test-column: expected together with --test-log")
        if self.test_log is None:
            return Validation(self.test if self.test != 0.0 else None, period)
        other = replace(reading, keys={**(reading.keys or {}), **keys}) if keys else None
        return Validation(self.test_log, period, other)


@Parameter(name="*", group=Group("Estimator", sort_key=5))
@dataclass(frozen=True)
class EstimatorOptions:
    """Options for the estimator."""

    method: Annotated[
        str,
        Parameter(
            metavar="METHOD",
            help=f"{METHODS}. {', '.join(e.name for e in ESTIMATORS.values() if e.physical)} give a"
            " physically possible robot.",
        ),
    ] = "consistent"
    prior_weight: Annotated[
        Any,
        option(
            _number_or_auto,
            _help("regularization", PRIOR)
            + f" auto: what predicts best [default: auto; {PRIOR_WEIGHTS} where --entropic is given].",
            metavar="NUMBER|auto",
        ),
    ] = None
    entropic: Annotated[
        Any,
        option(
            _number_or_auto,
            _help("entropic") + " auto: what predicts best [default: auto; 0 where --prior-weight is given].",
            metavar="NUMBER|auto",
        ),
    ] = None
    mass_max: Annotated[Any, per_joint(_help("mass_max"))] = None
    total_mass: Annotated[float | None, Parameter(help=_help("total_mass"))] = None
    fixed: Annotated[list[str] | None, names(_help("fixed"), metavar="BODIES")] = None
    noise_weights: Annotated[
        bool | None,
        Parameter(
            negative="--equal-weights",
            help=f"{_with('weights')}: weigh joints by the inverse of their noise, or equally [default: what"
            " predicts better].",
        ),
    ] = None

    def options(self) -> dict[str, Any]:
        """The given options, by their names in `identification.fit`."""
        estimator = named(self.method)
        values = {name: getattr(self, name) for name in ("entropic", "total_mass", "mass_max", "fixed")}
        if self.prior_weight is not None:
            if estimator.prior_weight is None:
                raise ArgumentError(f"--prior-weight: for {PRIOR}, not for {self.method}")
            values[estimator.prior_weight] = self.prior_weight
        chosen = {name: value for name, value in values.items() if value is not None}
        if self.noise_weights is not None:
            chosen["weights"] = "noise" if self.noise_weights else None
        return chosen


@Parameter(name="*", group=Group("Output", sort_key=6))
@dataclass(frozen=True)
class OutputOptions:
    """Options for the output."""

    out: Annotated[Path, Parameter(help="Folder for the results.")] = Path("out/identify")
    plots: Annotated[bool, Parameter(help="Draw PNG files.")] = True
    export: Annotated[
        list[Path],
        Parameter(
            metavar="FILE", show_default=False,
            help="Also write ROBOT's URDF or MJCF file with the identified inertias; all other bytes stay the same"
            " (in place if FILE is ROBOT). Or a C header of the parameters, .h. Repeat.",
        ),
    ] = ()  # type: ignore[assignment]  # fmt: skip
    export_friction: Annotated[bool, flag("With --export: also write damping and friction of the joints.")] = False

    def check(self, source: str, robot: Any) -> None:
        """Raise GeomctrlError if an export is impossible, before the identification starts."""
        if self.export_friction and not self.export:
            raise ArgumentError("--export-friction: expected together with --export FILE")
        for path in self.export:
            if path.suffix.lower() == ".h":
                in_place.require_writable(path)
                continue
            if not Path(source).is_file() or file_format(source) == "dh":
                raise ArgumentError(
                    f"--export {path}: for robots of URDF or MJCF files, not for {source!r}; see robot.urdf"
                )
            if path.suffix.lower() != Path(source).suffix.lower():
                raise ArgumentError(f"--export {path}: expected {Path(source).suffix}, as ROBOT is, or .h")
            in_place.require_updatable(source, robot, path)

    def exported(self, source: str, report: Any) -> list[Path]:
        """Write the files of --export and return their paths. Raises WriteError if one can not be written."""
        robot = report.robot

        def write(path: Path) -> Path:
            if path.suffix.lower() == ".h":
                return save_c_header(robot, path, report._extra())
            return in_place.update_model_file(source, robot, path, friction=self.export_friction)

        return write_each(partial(write, path) for path in self.export)


@Parameter(name="*", group=Group("Assessment", sort_key=7))
@dataclass(frozen=True)
class AssessmentOptions:
    """Options for the assessment."""

    ignore: Annotated[
        list[str],
        Parameter(
            metavar="KIND", show_default=False,
            help="Kind of doubt, as named in the report, to leave out of assessment and exit status; or all. The"
            " report lists what was ignored. Repeat.",
        ),
    ] = ()  # type: ignore[assignment]  # fmt: skip

    def kinds(self) -> tuple[str, ...]:
        """Kinds of findings to ignore. Raises ArgumentError for unknown kinds."""
        return ignorable("--ignore", [kind for text in self.ignore for kind in as_names(text)])


GROUPS = {
    "log": LogOptions, "model": ModelOptions, "filters": FilterOptions, "test": ValidationOptions,
    "estimator": EstimatorOptions, "output": OutputOptions, "assessment": AssessmentOptions,
}  # fmt: skip
SECTIONS = {name: [f.name for f in fields(group)] for name, group in GROUPS.items()}  # of setup files: see `setup_file`
