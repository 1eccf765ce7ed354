"""The options of `geomctrl identify`, group by group, and what each group means to `geomctrl.identification`.

In help, {option} stands for the names of the estimators that have it; see `identify.Command`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from geomctrl.errors import ArgumentError

from .option_texts import counts, matrix, names, number_or_auto, numbers, pairs

LINEAR, CURVES = ("viscous", "coulomb", "offset"), ("sigmoid", "stribeck", "auto")


@dataclass(frozen=True)
class LogOptions:
    panel: ClassVar[str] = "The log"
    section: ClassVar[str] = "log"

    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="FIELD=NAME",
            help="Which array or columns are t, q, v, a, tau, or currents i: q=angle (an array, or columns angle1,"
            " angle2, ...), q=axis*_deg (* for the joint's number or name), q=base,elbow, q=2-8 (columns without a"
            " header) [default: the usual names, with numbers or the joints' names]. Repeat.",
        ),
    ] = None
    units: Annotated[
        list[str] | None,
        typer.Option(
            "--unit",
            metavar="FIELD=UNIT",
            help="q=deg, v=rpm, t=ms, ...; q=deg,mm: one a joint [default: SI]. Repeat.",
        ),
    ] = None
    joints: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="What the log calls the robot's joints, in the robot's order [default: as it does]."
        ),
    ] = None
    topic: Annotated[
        str | None,
        typer.Option(help="Of which joint states, where a log has several [default: /joint_states, or the only one]."),
    ] = None
    episodes: Annotated[
        str | None,
        typer.Option(metavar="NUMBERS", help="Which episodes of a log that has several: 0,2-5 [default: all]."),
    ] = None
    current_gains: Annotated[
        str | None,
        typer.Option(metavar="NUMBERS", help="Torque per current [N m/A], one number or one a joint: 0.12,0.12,0.08."),
    ] = None
    rate: Annotated[float | None, typer.Option(help="Sampling rate [Hz], where there are no time stamps.")] = None
    drop_bad_rows: Annotated[
        bool, typer.Option("--drop-bad-rows", help="Leave out rows with empty cells or repeated time stamps.")
    ] = False
    resample: Annotated[
        float | None,
        typer.Option(
            help="Interpolate to this rate [Hz] [default: where time stamps are not even, to their median one]."
        ),
    ] = None
    gears: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS|FILE",
            help="The log is motor-side: motor turns per joint turn, 100,100,80, or for coupled joints their matrix,"
            " 100,0;20,80 or a text file of such rows.",
        ),
    ] = None
    zero: Annotated[
        str | None,
        typer.Option(metavar="NUMBERS", help="Added to joint positions [rad, m]: 0,-1.5708,0, ..."),
    ] = None
    joint_torques: Annotated[
        bool, typer.Option("--joint-torques", help="With --gears: torques are at the joints already.")
    ] = False
    joint_positions: Annotated[
        bool,
        typer.Option("--joint-positions", help="With --gears: positions and velocities are at the joints already."),
    ] = False
    check_units: Annotated[
        bool, typer.Option(help="Stop if numbers look like degrees, milliseconds, currents, ...")
    ] = True

    def reading(self, nv: int) -> Any:
        """`identification.Reading` for a robot with nv joints."""
        from geomctrl.identification import Reading

        gains = None if self.current_gains is None else numbers("--current-gains", self.current_gains)
        return Reading(
            pairs("--column", self.columns), pairs("--unit", self.units), self._mapping(nv), self.rate,
            self.drop_bad_rows, resample=self.resample, check_units=self.check_units,
            joints=None if self.joints is None else names(self.joints), topic=self.topic,
            current_gains=gains[0] if gains is not None and len(gains) == 1 else gains,
            episodes=None if self.episodes is None else counts("--episodes", self.episodes),
        )  # fmt: skip

    def _mapping(self, nv: int) -> Any:
        from geomctrl.identification import JointMapping

        for option, given in (("--joint-torques", self.joint_torques), ("--joint-positions", self.joint_positions)):
            if given and self.gears is None:
                raise ArgumentError(f"{option}: for --gears; without them a log is at the joints")
        if self.gears is None and self.zero is None:
            return None
        if self.gears is None:
            ratios: Any = [1.0] * nv
        else:
            rows = matrix("--gears", self.gears)
            ratios = rows if len(rows) > 1 or nv == 1 else rows[0]
        offset = 0.0 if self.zero is None else numbers("--zero", self.zero)
        return JointMapping(ratios, offset, not self.joint_torques, not self.joint_positions)


@dataclass(frozen=True)
class ModelOptions:
    panel: ClassVar[str] = "Model"
    section: ClassVar[str] = "model"

    friction: Annotated[
        str,
        typer.Option(
            metavar="LIST",
            help="viscous, coulomb, offset, and sigmoid or stribeck, whose speeds nonlinear least squares find, or"
            " auto: whichever of them cross-validation prefers, if any; none.",
        ),
    ] = ",".join((*LINEAR, "auto"))
    smoothing: Annotated[
        float | None,
        typer.Option(help="Speed [rad/s] over which Coulomb friction changes its sign [default: by cross-validation]."),
    ] = None
    rotor: Annotated[
        str,
        typer.Option(
            metavar="yes|no|auto",
            help="Motor (rotor) inertias, too; auto: where `identify` predicts better with them, by cross-validation.",
        ),
    ] = "auto"
    springs: Annotated[str | None, typer.Option(metavar="JOINTS", help="Joints with a spring: joint2,joint3.")] = None
    transmission: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS|FILE",
            help="A row a motor, 1,0;0,1;1,1 or a text file of such rows: its speed per joint speed. Friction and"
            " rotors then act there [default: at the joints].",
        ),
    ] = None
    own_columns: Annotated[
        Path | None,
        typer.Option(
            "--own-columns",
            help="TOML file with tables \\[[column]]: torques of known shape and unknown amplitude, as formulas; see"
            " `geomctrl.identification.load_columns`.",
        ),
    ] = None

    def model(self, robot: Any) -> Any:
        """`identification.RegressorModel` of a robot, but for friction curves."""
        from geomctrl.arguments import choice
        from geomctrl.identification import RegressorModel, load_columns

        kinds = self._friction()[0]
        choice("--rotor", self.rotor, ("yes", "no", "auto"))
        return RegressorModel(
            robot,
            viscous="viscous" in kinds,
            coulomb="coulomb" in kinds,
            offset="offset" in kinds,
            rotor=self.rotor == "yes",
            smoothing=0.01 if self.smoothing is None else self.smoothing,
            springs=() if self.springs is None else names(self.springs),
            columns=() if self.own_columns is None else load_columns(self.own_columns, robot),
            transmission=None if self.transmission is None else matrix("--transmission", self.transmission),
        )

    @property
    def friction_curves(self) -> str | None:
        return self._friction()[1]

    def _friction(self) -> tuple[list[str], str | None]:
        """(linear kinds, curve or None)."""
        words = [] if self.friction.strip() == "none" else names(self.friction)
        unknown = [w for w in words if w not in (*LINEAR, *CURVES)]
        curves = [w for w in words if w in CURVES]
        if unknown or len(curves) > 1:
            raise ArgumentError(
                f"--friction: expected none, or a list of {', '.join(LINEAR)} and one of {', '.join(CURVES)}, got"
                f" {self.friction!r}"
            )
        return [w for w in words if w in LINEAR], (curves or [None])[0]


@dataclass(frozen=True)
class FilterOptions:
    panel: ClassVar[str] = "Filters"
    section: ClassVar[str] = "filters"

    cutoff: Annotated[
        float | None,
        typer.Option(
            help="Zero-phase low-pass of positions [Hz], where amplitudes are halved"
            " [default: the one whose motion best predicts torques not trained on].",
        ),
    ] = None
    torque_cutoff: Annotated[
        float | None,
        typer.Option(help="The same of torques [default: --cutoff, else up to where they follow the motion]."),
    ] = None
    alike: Annotated[bool, typer.Option("--alike/--torques-only", help="Low-pass the regressor like torques.")] = True
    decimate: Annotated[
        int | None, typer.Option(help="Keep one row in so many [default: 4 a period of the cut-off].")
    ] = None
    saturation: Annotated[bool, typer.Option(help="Leave out torques at the model's effort limits.")] = True
    outliers: Annotated[
        float | None,
        typer.Option(help="Leave out torques so many robust standard deviations off [default: keep all]."),
    ] = None
    standstill: Annotated[
        float | None,
        typer.Option(help="Do not train on a joint slower than this [rad/s], 0: on all rows [default: not at rest]."),
    ] = None

    delay: Annotated[
        str,
        typer.Option(
            metavar="SECONDS|auto", help="By how much torques lag positions, taken back; auto: as the log shows."
        ),
    ] = "0"

    def filtering(self) -> Any:
        """`identification.Filtering`."""
        from geomctrl.identification import Filtering

        return Filtering(
            self.cutoff, self.torque_cutoff, self.alike, self.decimate, self.saturation, self.outliers, self.standstill,
            number_or_auto("--delay", self.delay) or 0.0,
        )  # fmt: skip


@dataclass(frozen=True)
class PartOptions:
    panel: ClassVar[str] = "Training and test"
    section: ClassVar[str] = "test"

    test: Annotated[
        float,
        typer.Option(help="Fraction not trained on, 0 for none: the end of the log, or of every period if it repeats."),
    ] = 0.3
    period: Annotated[float | None, typer.Option(help="Period of the trajectory [s] [default: looked for].")] = None
    test_log: Annotated[Path | None, typer.Option(help="Another log to test on, in place of --test.")] = None
    test_columns: Annotated[
        list[str] | None,
        typer.Option("--test-column", metavar="FIELD=NAME", help="--column, where that of --test-log differs. Repeat."),
    ] = None

    def validation(self, reading: Any) -> Any:
        """`identification.Validation`; reading: of the log that trains."""
        from geomctrl.identification import Validation

        keys = pairs("--test-column", self.test_columns)
        if keys and self.test_log is None:
            raise ArgumentError("--test-column: for a --test-log")
        if self.test_log is None:
            return Validation(self.test if self.test != 0.0 else None, self.period)
        return Validation(self.test_log, self.period, replace(reading, keys={**reading.keys, **keys}) if keys else None)


@dataclass(frozen=True)
class EstimatorOptions:
    panel: ClassVar[str] = "Estimator"
    section: ClassVar[str] = "estimator"

    method: Annotated[
        str, typer.Option(metavar="METHOD", help="One of {methods}; {physical} give a robot that can exist.")
    ] = "consistent"
    prior_weight: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|auto",
            help="{prior_weight}: weight of the distance from the"
            " model's own parameters, beside a relative squared error; auto: by cross-validation [default: auto;"
            " {prior_weights} where --entropic is given].",
        ),
    ] = None
    entropic: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|auto",
            help="{entropic}: weight of the log-det distance from the model's bodies, which must be physical where it"
            " is a number; auto: by cross-validation [default: auto; 0 where --prior-weight is given].",
        ),
    ] = None
    mass_max: Annotated[
        str | None,
        typer.Option(metavar="NUMBERS", help="{mass_max}: upper bound of masses [kg], one number or one a body."),
    ] = None
    total_mass: Annotated[float | None, typer.Option(help="{total_mass}: known sum of all masses [kg].")] = None
    fixed: Annotated[str | None, typer.Option(metavar="BODIES", help="{fixed}: bodies known already: link1,link2.")] = (
        None
    )
    noise_weights: Annotated[
        bool | None,
        typer.Option(
            "--noise-weights/--equal-weights",
            help="{weights}: weigh joints by one over their noise, or all alike [default: what predicts better].",
        ),
    ] = None

    def options(self) -> dict[str, Any]:
        """Those given, by the names that `identification.fit` knows them by."""
        from geomctrl.identification.estimators import named

        estimator = named(self.method)
        masses = None if self.mass_max is None else numbers("--mass-max", self.mass_max)
        given: dict[str, Any] = {
            "entropic": number_or_auto("--entropic", self.entropic),
            "total_mass": self.total_mass,
            "mass_max": masses[0] if masses is not None and len(masses) == 1 else masses,
            "fixed": None if self.fixed is None else names(self.fixed),
            "weights": "noise" if self.noise_weights else None,
        }
        if self.prior_weight is not None:
            if estimator.prior_weight is None:
                raise ArgumentError(f"--prior-weight: for {with_prior()}, not for {self.method}")
            given[estimator.prior_weight] = number_or_auto("--prior-weight", self.prior_weight)
        chosen = {name: value for name, value in given.items() if value is not None}
        return chosen | ({"weights": None} if self.noise_weights is False else {})


@dataclass(frozen=True)
class OutputOptions:
    panel: ClassVar[str] = "Output"
    section: ClassVar[str] = "output"

    out: Annotated[Path, typer.Option(help="Folder for all that is written.")] = Path("out/identify")
    plots: Annotated[bool, typer.Option(help="Draw PNG files.")] = True
    export: Annotated[
        list[Path] | None,
        typer.Option(
            "--export",
            metavar="FILE",
            help="Also write ROBOT's own URDF or MJCF file with the identified inertias in it, all else byte for byte"
            " (in place, if FILE is ROBOT); or a C header of the parameters, .h. Repeat.",
        ),
    ] = None
    export_friction: Annotated[
        bool, typer.Option("--export-friction", help="With --export: joints' damping and friction, too.")
    ] = False

    def check(self, source: str, robot: Any) -> None:
        """Raises GeomctrlError for what can not be exported, before there is anything to export."""
        from geomctrl.models import in_place

        if self.export_friction and not self.export:
            raise ArgumentError("--export-friction: for --export FILE")
        for path in self.export or ():
            if path.suffix.lower() == ".h":
                in_place.require_writable(path)
                continue
            if not Path(source).is_file() or Path(source).suffix.lower() == ".toml":
                raise ArgumentError(
                    f"--export {path}: for robots of URDF or MJCF files, not for {source!r}; see robot.urdf"
                )
            if path.suffix.lower() != Path(source).suffix.lower():
                raise ArgumentError(f"--export {path}: expected {Path(source).suffix}, as ROBOT is, or .h")
            in_place.require_updatable(source, robot, path)

    def exported(self, source: str, report: Any) -> list[Path]:
        """Write the files of --export; their paths."""
        from geomctrl.models import save_c_header, update_model_file

        robot = report.robot
        return [
            save_c_header(robot, path, report.extra())
            if path.suffix.lower() == ".h"
            else update_model_file(source, robot, path, friction=self.export_friction)
            for path in self.export or ()
        ]


GROUPS = (LogOptions, ModelOptions, FilterOptions, PartOptions, EstimatorOptions, OutputOptions)


def with_prior() -> str:
    """Names of the estimators that have a prior."""
    from geomctrl.identification import ESTIMATORS

    return ", ".join(sorted(e.name for e in ESTIMATORS.values() if e.has_prior))
