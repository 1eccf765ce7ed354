"""`geomctrl identify`: what `geomctrl.identification.identify` offers, on the command line."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from geomctrl.errors import ArgumentError

from .terminal import (
    MODEL_HELP,
    FloatingBase,
    Mimic,
    MimicOption,
    compiling,
    load_robot,
    progress_bar,
    reported,
    stdout_console,
)

if TYPE_CHECKING:
    from geomctrl.robot import Robot

LINEAR, CURVES = ("viscous", "coulomb", "offset"), ("sigmoid", "stribeck")
PRIORS = {"consistent": "regularization", "manifold": "regularization", "ridge": "strength"}
LOG, MODEL, FILTERS, PARTS, ESTIMATOR, OUTPUT = (
    "The log",
    "Model",
    "Filters",
    "Training and test",
    "Estimator",
    "Output",
)


class Estimator(StrEnum):
    """How `identify` estimates; see geomctrl.identification.estimators."""

    consistent = "consistent"
    manifold = "manifold"
    ols = "ols"
    wls = "wls"
    irls = "irls"
    tls = "tls"
    iv = "iv"
    ridge = "ridge"


@reported
def identify(
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="npz archive, or CSV with a header line: t, q1, q2, ..., tau1, ...")
    ],
    robot: Annotated[
        str, typer.Option("--robot", metavar="ROBOT", help=f"{MODEL_HELP} Its inertias are a prior only.")
    ],
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="FIELD=NAME",
            rich_help_panel=LOG,
            help="Which array or columns are t, q, v, a, tau: q=angle (an array, or CSV columns angle1, angle2, ...),"
            " q=axis*_deg (* for the joint's number), q=base,elbow [default: the usual names]. Repeat.",
        ),
    ] = None,
    units: Annotated[
        list[str] | None,
        typer.Option(
            "--unit",
            metavar="FIELD=UNIT",
            rich_help_panel=LOG,
            help="q=deg, v=rpm, t=ms, ...; q=deg,mm: one a joint [default: SI]. Repeat.",
        ),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(rich_help_panel=LOG, help="Sampling rate [Hz], where there are no time stamps.")
    ] = None,
    drop_bad_rows: Annotated[
        bool,
        typer.Option(
            "--drop-bad-rows", rich_help_panel=LOG, help="Leave out rows with empty cells or repeated time stamps."
        ),
    ] = False,
    resample: Annotated[
        float | None,
        typer.Option(rich_help_panel=LOG, help="Interpolate time stamps that are not even to this rate [Hz]."),
    ] = None,
    gears: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=LOG,
            metavar="NUMBERS|FILE",
            help="The log is motor-side: motor turns per joint turn, 100,100,80, or a text file with their"
            " matrix, for coupled joints.",
        ),
    ] = None,
    zero: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=LOG, metavar="NUMBERS", help="Added to joint positions [rad, m]: 0,-1.5708,0, ..."
        ),
    ] = None,
    joint_torques: Annotated[
        bool,
        typer.Option("--joint-torques", rich_help_panel=LOG, help="With --gears: torques are at the joints already."),
    ] = False,
    check_units: Annotated[
        bool, typer.Option(rich_help_panel=LOG, help="Stop if numbers look like degrees, milliseconds, currents, ...")
    ] = True,
    friction: Annotated[
        str,
        typer.Option(
            rich_help_panel=MODEL,
            metavar="LIST",
            help="viscous, coulomb, offset, and sigmoid or stribeck, whose speeds nonlinear least squares find; none.",
        ),
    ] = ",".join(LINEAR),
    smoothing: Annotated[
        float, typer.Option(rich_help_panel=MODEL, help="Speed [rad/s] over which Coulomb friction changes its sign.")
    ] = 0.01,
    rotor: Annotated[bool, typer.Option("--rotor", rich_help_panel=MODEL, help="Motor (rotor) inertias, too.")] = False,
    springs: Annotated[
        str | None, typer.Option(rich_help_panel=MODEL, metavar="JOINTS", help="Joints with a spring: joint2,joint3.")
    ] = None,
    transmission: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=MODEL,
            help="Text file, one row a motor: its speed per joint speed. Friction and"
            " rotors then act there [default: at the joints].",
        ),
    ] = None,
    cutoff: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=FILTERS,
            help="Zero-phase low-pass of positions [Hz], where amplitudes are halved"
            " [default: five times the motion's band].",
        ),
    ] = None,
    torque_cutoff: Annotated[
        float | None, typer.Option(rich_help_panel=FILTERS, help="The same of torques [default: --cutoff].")
    ] = None,
    alike: Annotated[
        bool,
        typer.Option("--alike/--torques-only", rich_help_panel=FILTERS, help="Low-pass the regressor like torques."),
    ] = True,
    decimate: Annotated[
        int | None,
        typer.Option(rich_help_panel=FILTERS, help="Keep one row in so many [default: 4 a period of the cut-off]."),
    ] = None,
    saturation: Annotated[
        bool, typer.Option(rich_help_panel=FILTERS, help="Leave out torques at the model's effort limits.")
    ] = True,
    outliers: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=FILTERS,
            help="Leave out torques so many robust standard deviations off [default: keep all].",
        ),
    ] = None,
    standstill: Annotated[
        float, typer.Option(rich_help_panel=FILTERS, help="Do not train on a joint slower than this [rad/s].")
    ] = 0.0,
    test: Annotated[
        float,
        typer.Option(
            rich_help_panel=PARTS,
            help="Fraction not trained on, 0 for none: the end of the log, or of every period if it repeats.",
        ),
    ] = 0.3,
    period: Annotated[
        float | None, typer.Option(rich_help_panel=PARTS, help="Period of the trajectory [s] [default: looked for].")
    ] = None,
    test_log: Annotated[
        Path | None, typer.Option(rich_help_panel=PARTS, help="Another log to test on, in place of --test.")
    ] = None,
    method: Annotated[
        Estimator, typer.Option(rich_help_panel=ESTIMATOR, help="The first two give a robot that can exist.")
    ] = Estimator.consistent,
    prior_weight: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=ESTIMATOR,
            help="consistent, manifold, ridge: weight of the distance from the"
            " model's own parameters, beside a relative squared error [default: 1e-6; ridge 1e-3].",
        ),
    ] = None,
    entropic: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=ESTIMATOR,
            help="consistent, manifold: weight of the log-det distance from the"
            " model's bodies, which must be physical.",
        ),
    ] = None,
    mass_max: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=ESTIMATOR,
            metavar="NUMBERS",
            help="consistent: upper bound of masses [kg], one number or one a body.",
        ),
    ] = None,
    total_mass: Annotated[
        float | None, typer.Option(rich_help_panel=ESTIMATOR, help="consistent: known sum of all masses [kg].")
    ] = None,
    fixed: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=ESTIMATOR, metavar="BODIES", help="consistent: bodies known already: link1,link2."
        ),
    ] = None,
    noise_weights: Annotated[
        bool,
        typer.Option(
            "--noise-weights",
            rich_help_panel=ESTIMATOR,
            help="Weigh joints by one over their noise (wls and irls always do).",
        ),
    ] = False,
    out: Annotated[Path, typer.Option(rich_help_panel=OUTPUT, help="Folder for all that is written.")] = Path(
        "out/identify"
    ),
    plots: Annotated[bool, typer.Option(rich_help_panel=OUTPUT, help="Draw PNG files.")] = True,
    floating_base: FloatingBase = False,
    mimic: MimicOption = Mimic.error,
) -> None:
    """Identify a robot's inertial and friction parameters from a log, and test them on data not trained on.

    The robot gives the geometry; its inertias are where parameters are left that the log does not determine, and may be
    missing or wrong. Reads, checks, splits, filters, fits; prints the report with all definitions and writes to --out:

    - report.txt, report.json, parameters.csv (base parameters, with 95 % intervals from ols, wls, irls, iv, ridge)

    - robot.json: the identified robot, bit for bit (`geomctrl.identification.load_model`; friction, rotor inertias,
      springs: `load_extra`); robot.urdf: the same to rounding, without rotors and springs

    - torques.png, residuals.png, parameters.png

    **Methods**: *consistent*: semidefinite program, every link a body that can exist; *manifold*: the same without
    that solver; *ols*, *wls* (joints weighted by their noise), *irls* (robust to outliers), *tls* (errors in the
    regressor), *iv* (instrumental variables, for trajectories that repeat), *ridge* (towards the model's parameters).

    **Exit status**: 0 written; 2 bad arguments, or a log that does not determine what is asked for: the message says
    what to do.

    **Examples**

    - `geomctrl identify log.npz --robot panda --out out/mine`

    - `geomctrl identify log.csv --robot arm.urdf --method wls --cutoff 8 --test-log other.csv`

    - `geomctrl identify log.csv --robot ur10 --column q=pos --column tau=effort --unit q=deg --friction
      viscous,coulomb,sigmoid --mass-max 20`

    - `geomctrl identify tx40.npz --robot tx40.urdf --rate 5000 --column q=q_motor --column tau=tau_motor --gears
      gears.txt --zero 0,-1.5708,1.5708,0,0,0 --rotor --cutoff 40 --torque-cutoff 10 --mass-max 30`
    """
    import numpy as np

    from geomctrl.identification import JointMapping, RegressorModel
    from geomctrl.identification import identify as run_identification

    console = stdout_console()
    nominal = load_robot(robot, floating_base, mimic, unchecked=True)
    kinds, curves = _friction(friction)
    options: dict[str, Any] = {
        "entropic": entropic, "total_mass": total_mass,
        "mass_max": None if mass_max is None else _one_or_more(_numbers("--mass-max", mass_max)),
        "fixed": None if fixed is None else _names(fixed), "weights": "noise" if noise_weights else None,
    }  # fmt: skip
    if prior_weight is not None:
        if method.value not in PRIORS:
            raise ArgumentError(f"--prior-weight: for {', '.join(PRIORS)}, not for {method.value}")
        options[PRIORS[method.value]] = prior_weight
    mapping = None
    if gears is not None or zero is not None:
        ratios = [1.0] * nominal.nv if gears is None else _matrix(gears) if Path(gears).is_file() else None
        ratios = _numbers("--gears", str(gears)) if ratios is None else ratios
        offset = 0.0 if zero is None else _numbers("--zero", zero)
        mapping = JointMapping(ratios, offset, torque_at_motor=not joint_torques)
    model = RegressorModel(
        nominal, viscous="viscous" in kinds, coulomb="coulomb" in kinds, offset="offset" in kinds, rotor=rotor,
        smoothing=smoothing, springs=() if springs is None else _names(springs),
        transmission=None if transmission is None else _matrix(transmission),
    )  # fmt: skip
    for line in _doubts(nominal):
        console.print(line, markup=False, soft_wrap=True)
    with compiling(console, "20 s"):
        some = nominal.neutral()[None], *np.zeros((2, 1, nominal.nv))
        model.torque(model.base.projection[0], *some)
    with progress_bar(console) as bar:
        task = bar.add_task("reading", total=1.0)
        report = run_identification(
            nominal, log,
            keys=_pairs("--column", columns), units=_pairs("--unit", units), mapping=mapping, rate=rate,
            drop_bad_rows=drop_bad_rows, resample=resample, check_units=check_units, cutoff=cutoff,
            torque_cutoff=torque_cutoff, alike=alike,
            decimate=decimate, saturation=saturation, outliers=outliers, standstill=standstill, period=period,
            test=test_log if test_log is not None else (test if test != 0.0 else None),
            method=method.value, model=model, friction_curves=curves,
            options={name: value for name, value in options.items() if value is not None},
            progress=lambda what, fraction: bar.update(task, description=what, completed=fraction),
        )  # fmt: skip
    console.print(report.text(), markup=False, soft_wrap=True)
    with console.status("drawing" if plots else "writing"):
        names = ", ".join(sorted(path.name for path in report.save(out, plots)))
    console.print(f"wrote {names} in {out}", markup=False, soft_wrap=True)


def _doubts(robot: Robot) -> list[str]:
    """Bodies of the model given whose inertia is no prior worth the name."""
    from geomctrl.mechanism import inertia

    bad = [n for n, pi in zip(robot.body_names, robot.parameters) if not inertia.is_physical(pi, strict=True)]
    return [f"note: no body can have the inertias that the model gives {', '.join(bad)}; its geometry is used"] * bool(
        bad
    )


def _friction(text: str) -> tuple[list[str], str | None]:
    """(linear kinds, curve or None)."""
    words = [] if text.strip() == "none" else _names(text)
    unknown = [w for w in words if w not in (*LINEAR, *CURVES)]
    curves = [w for w in words if w in CURVES]
    if unknown or len(curves) > 1:
        raise ArgumentError(
            f"--friction: expected none, or a list of {', '.join(LINEAR)} and one of {', '.join(CURVES)}, got {text!r}"
        )
    return [w for w in words if w in LINEAR], (curves or [None])[0]


def _pairs(option: str, given: list[str] | None) -> dict[str, Any]:
    """FIELD=NAME or FIELD=NAME,NAME, ... to a dictionary."""
    out: dict[str, Any] = {}
    for text in given or []:
        field, equals, value = text.partition("=")
        words = _names(value)
        if not equals or not words:
            raise ArgumentError(f"{option}: expected FIELD=NAME, got {text!r}")
        if field.strip() in out:
            raise ArgumentError(f"{option}: {field.strip()!r} is given twice")
        out[field.strip()] = words if len(words) > 1 else words[0]
    return out


def _names(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _numbers(option: str, text: str) -> list[float]:
    try:
        return [float(word) for word in _names(text)]
    except ValueError:
        raise ArgumentError(f"{option}: expected numbers with commas between, got {text!r}") from None


def _one_or_more(numbers: list[float]) -> float | list[float]:
    return numbers[0] if len(numbers) == 1 else numbers


def _matrix(path: str | Path) -> Any:
    """Numbers of a text file, rows as lines, commas or blanks between."""
    import numpy as np

    try:
        return np.loadtxt(Path(path).read_text().replace(",", " ").splitlines(), ndmin=2)
    except ValueError as error:
        raise ArgumentError(f"{path}: expected rows of numbers: {error}") from None
