"""`geomctrl identify`: what `geomctrl.identification.identify` offers, on the command line."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from .grouped import grouped
from .identify_options import (
    GROUPS,
    EstimatorOptions,
    FilterOptions,
    LogOptions,
    ModelOptions,
    OutputOptions,
    PartOptions,
    with_prior,
)
from .setup_file import applies
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
from .verdict_options import VerdictOptions

TYPED = "geomctrl.identify"  # where the context keeps the command as it was typed


class Command(TyperCommand):
    """The command, whose help names estimators: all of them where it says {methods}, those that have an option, or what
    the word says, where it says {word}. They are looked up when help is asked for: identification is slow to import.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[TYPED] = shlex.join(["geomctrl", "identify", *args])
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from geomctrl.identification import ESTIMATORS

        everyone = ESTIMATORS.values()
        words = {option: [e.name for e in everyone if option in e.options] for e in everyone for option in e.options}
        words |= {"methods": list(ESTIMATORS), "physical": [e.name for e in everyone if e.physical]}
        texts = {word: ", ".join(names) for word, names in words.items()} | {"prior_weight": with_prior()}
        weights = [(e.name, e.options[e.prior_weight]) for e in everyone if e.prior_weight is not None]
        texts["prior_weights"] = ", ".join(f"{name} {default:g}" for name, default in weights)
        texts["summaries"] = "; ".join(f"*{e.name}*: {e.summary}" for e in everyone)
        for part in (self, *self.params):
            part.help = (part.help or "").format_map(texts)  # type: ignore[union-attr]
        super().format_help(ctx, formatter)


@reported
@grouped
def identify(
    context: typer.Context,
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG",
            help="npz archive; CSV with a header line, t, q1, q2, ..., tau1, ..., or with joints' names as PlotJuggler"
            " writes them; ROS bag (folder, .db3, .mcap, .bag), .mat, .h5, .parquet (need the extra 'logs',"
            " but .mat up to v7).",
        ),
    ],
    robot: Annotated[
        str, typer.Option("--robot", metavar="ROBOT", help=f"{MODEL_HELP} Its inertias are a prior only.")
    ],
    reading: LogOptions,
    modelling: ModelOptions,
    filters: FilterOptions,
    parts: PartOptions,
    estimator: EstimatorOptions,
    output: OutputOptions,
    verdict: VerdictOptions,
    floating_base: FloatingBase = False,
    mimic: MimicOption = Mimic.coupled,
    setup: Annotated[
        Path | None,
        typer.Option(
            "--setup",
            metavar="FILE",
            is_eager=True,
            callback=applies((*GROUPS, VerdictOptions)),
            help="TOML file with any of these options, a Denavit-Hartenberg robot, columns of one's own; the command"
            " line goes before it.",
        ),
    ] = None,
) -> None:
    """Identify a robot's inertial and friction parameters from a log, and test them on data not trained on.

    The robot gives the geometry; its inertias are where parameters are left that the log does not determine, and may be
    missing or wrong. Reads, checks, splits, filters, fits; prints the report, first whether to trust it, and writes to
    --out:

    - report.html, for people, one file with all pictures; report.txt, report.json, parameters.csv (base parameters,
    with 95 % intervals where the method has them)

    - robot.json: the identified robot, bit for bit (`geomctrl.models.load_model`; friction, rotor inertias,
      springs: `load_extra`); robot.urdf: the same to rounding, without springs and gravity;
      robot.xml: MJCF, with both

    - torques.png, residuals.png, parameters.png

    and with --export the robot's own file, of which only inertias change.

    **Methods**: {summaries}.

    **Exit status**: 0 written, and nothing speaks against trusting it; 1 written, but it can not be trusted; 3 written,
    with doubts to look at; 2 nothing written: bad arguments, or a log that does not determine what is asked for. The
    report's first lines, or the message, say why and what to do; --ignore leaves doubts out of the count.

    **Examples**

    - `geomctrl identify log.npz --robot panda --out out/mine`

    - `geomctrl identify recording --robot arm.urdf`, the folder of a ROS 2 bag, or a .mcap, .db3, .mat, .parquet file

    - `geomctrl identify log.csv --robot arm.urdf --method wls --cutoff 8 --test-log other.csv`

    - `geomctrl identify log.csv --robot arm.urdf --export identified/arm.urdf --export arm_parameters.h`

    - `geomctrl identify log.csv --robot ur10 --column q=pos --column i=current --unit q=deg --current-gains
      13.3,13.3,9.8,7.5,7.5,7.5 --friction viscous,coulomb,sigmoid --mass-max 20`

    - `geomctrl identify tx40_figaroh.npz --setup experiments/logs/tx40.toml`, motors and coupled joints: robot,
      gears and transmission in a file
    """
    console = stdout_console()
    nominal = load_robot(robot, floating_base, mimic, "unchecked")
    ignore = verdict.kinds()
    options, read, model = estimator.options(), reading.reading(nominal.nv), modelling.model(nominal)
    output.check(robot, nominal)
    for line in _doubts(nominal):
        console.print(line, soft_wrap=True)
    report = _run(console, nominal, log, model, {
        "method": estimator.method, "options": options, "friction_curves": modelling.friction_curves,
        "choose_smoothing": modelling.smoothing is None, "choose_rotors": modelling.rotor == "auto",
        "reading": read, "filtering": filters.filtering(), "validation": parts.validation(read),
        "ignore": ignore, "boxes": _boxes(console, robot, nominal) or None,
    })  # fmt: skip
    report = replace(report, provenance=report.provenance.typed(context.meta[TYPED]))
    with console.status("drawing" if output.plots else "writing"):
        names = ", ".join(sorted(path.name for path in report.save(output.out, output.plots)))
    console.print(report.text(), soft_wrap=True)
    console.print(f"wrote {names} in {output.out}", soft_wrap=True)
    for path in output.exported(robot, report):
        console.print(f"wrote {path}", soft_wrap=True)
    if report.assessment.exit_status:
        raise typer.Exit(report.assessment.exit_status)


def _run(console: Any, robot: Any, log: Path, model: Any, settings: dict[str, Any]) -> Any:
    """The report; says what is going on."""
    import numpy as np

    from geomctrl.identification import identify

    with compiling(console, "20 s"):
        some = robot.neutral()[None], *np.zeros((2, 1, robot.nv))
        model.torque(model.base.projection[0], *some)
    with progress_bar(console) as bar:
        task = bar.add_task("reading", total=1.0)

        def progress(what: str, fraction: float) -> None:
            bar.update(task, description=what, completed=fraction)

        return identify(robot, log, model=model, progress=progress, **settings)


def _boxes(console: Any, source: str, robot: Any) -> dict[str, Any]:
    """Of the links' geometry, where the robot came from a URDF file that has some; says why not where that is wrong."""
    from geomctrl.errors import ModelError
    from geomctrl.models import link_boxes

    if Path(source).suffix.lower() != ".urdf":
        return {}
    try:
        return link_boxes(Path(source), robot)
    except ModelError as error:  # geometry is a help, and may be wrong where the rest of the file is right
        said = f"note: masses are looked for about joints, not in the links' geometry: {error}"
        console.print(said, soft_wrap=True)
        return {}


def _doubts(robot: Any) -> list[str]:
    """Bodies of the model given whose inertia is no prior worth the name."""
    from geomctrl.mechanism import inertia

    bad = [n for n, pi in zip(robot.body_names, robot.parameters) if not inertia.is_physical(pi, strict=True)]
    return [f"note: no body can have the inertias that the model gives {', '.join(bad)}; its geometry is used"] * bool(
        bad
    )
