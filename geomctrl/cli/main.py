"""The command line: `geomctrl track | identify | info | check | robots`.

Imports of anything heavy are inside the commands, so that help is quick.
"""

from __future__ import annotations

import io
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from typer.core import TyperGroup

from geomctrl.errors import SimulationError

from .identify import identify
from .terminal import (
    FAILED,
    FloatingBase,
    Mimic,
    MimicOption,
    Nonphysical,
    RobotArgument,
    compiling,
    complain,
    load_robot,
    progress_bar,
    reported,
    stdout_console,
)

if TYPE_CHECKING:
    from geomctrl.control.contracts import Controller
    from geomctrl.control.run import Run
    from geomctrl.robot import Robot

MOST_SAMPLES = 20000


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
    " identify robots from their logs, look at robots, check their dynamics.\n\n"
    "Start with: `geomctrl track panda --controller slotine-li --payload 2.0`",
)


class ControllerName(StrEnum):
    pd_gravity = "pd-gravity"
    computed_torque = "computed-torque"
    passivity = "passivity"
    slotine_li = "slotine-li"


class ReferenceName(StrEnum):
    sinusoids = "sinusoids"
    quintic = "quintic"
    spline = "spline"


class Adapted(StrEnum):
    load = "load"
    links = "links"
    base = "base"


def main() -> None:
    """The console script."""
    app()


# --- track -----------------------------------------------------------------------------------------------------


@app.command()
@reported
def track(
    robot: RobotArgument,
    controller: Annotated[ControllerName, typer.Option(help="Which law closes the loop.")] = ControllerName.slotine_li,
    reference: Annotated[
        ReferenceName, typer.Option(help="Desired motion, within the limits.")
    ] = ReferenceName.sinusoids,
    seconds: Annotated[float, typer.Option(help="Length of the run.")] = 10.0,
    payload: Annotated[
        float, typer.Option(help="Mass [kg] of a ball in the true robot's hand, unknown to the model.")
    ] = 0.0,
    payload_at: Annotated[
        float | None, typer.Option(help="Time [s] at which the load is gripped [default: the start].")
    ] = None,
    payload_frame: Annotated[
        str | None, typer.Option(help="Frame that carries it [default: the tool, free base or last body].")
    ] = None,
    dt: Annotated[float, typer.Option(help="Integration step [s].")] = 1e-3,
    control_dt: Annotated[
        float | None, typer.Option(help="Sample the law each so many seconds, a multiple of dt [default: continuous].")
    ] = None,
    friction: Annotated[
        bool, typer.Option("--friction/--no-friction", help="Friction in the plant; only slotine-li adapts to it.")
    ] = False,
    gains: Annotated[str | None, typer.Option(help="name=number,...: gains to override, see above.")] = None,
    adapt: Annotated[
        Adapted, typer.Option(help="slotine-li: estimate the body with the load, all links, or base parameters.")
    ] = Adapted.load,
    compare: Annotated[
        bool,
        typer.Option("--compare/--no-compare", help="slotine-li: run computed torque with the same wrong model too."),
    ] = True,
    strict: Annotated[bool, typer.Option("--strict", help="Stop when a monitor exceeds its limit.")] = False,
    method: Annotated[str, typer.Option(help="Integration method on the group.")] = "MK4",
    seed: Annotated[int, typer.Option(help="Which random reference.", min=0)] = 0,
    out: Annotated[Path, typer.Option(help="Folder for run.npz, report.txt and the plots.")] = Path("out"),
    plots: Annotated[bool, typer.Option("--plots/--no-plots", help="Draw PNG files.")] = True,
    floating_base: FloatingBase = False,
    mimic: MimicOption = Mimic.error,
    allow_nonphysical: Nonphysical = False,
) -> None:
    """Track a reference and report whether the properties behind the proof held.

    The controller is built on the nominal model; the plant also carries --payload, has --friction, or both. Ends
    with a table, run.npz, report.txt and PNG plots in --out. Torque limits are reported, not enforced; a free base is
    driven like any other joint.

    **Gains** come from the robot's mass matrix: with D_i the mean of M_ii, kappa_i = kappa (max D / D_i)^(1/3) and
    Lambda, in 1/s, every law gets the same nominal error dynamics e'' + (kappa_i + Lambda) e' + kappa_i Lambda e = 0:

    - slotine-li, passivity: `Lambda` = 5, K = kappa_i D_i with `kappa` = 20; slotine-li: `rate` = 20, of adaptation

    - computed-torque: `kp` = kappa_i Lambda, `kd` = kappa_i + Lambda

    - pd-gravity: the same times D_i; it holds the reference's last configuration

    kappa and Lambda are lowered where the fastest closed-loop rate would exceed 1.5 / dt, rate where adaptation would
    be faster than 1 / dt. The comparison with computed torque uses this rule, so both laws have the same bandwidth.

    **Exit status**: 0 the run finished, whatever the monitors say (see --strict); 1 it diverged or --strict stopped
    it, the part up to then is saved; 2 bad arguments.

    **Examples**

    - `geomctrl track panda --payload 2 --out out/demo`

    - `geomctrl track ur10 --controller passivity --reference spline --seconds 5`

    - `geomctrl track quadruped --payload 3 --payload-at 4 --adapt links`

    - `geomctrl track arm.urdf --controller computed-torque --gains kp=400,kd=40 --control-dt 0.002`
    """
    from . import scenario

    given = scenario.parse_gains(controller, gains)
    scenario.check_times(seconds, dt, control_dt, payload_at)
    console, text = stdout_console(), io.StringIO()
    transcript = Console(file=text, width=110, highlight=False)
    out.mkdir(parents=True, exist_ok=True)
    with compiling(console, "half a minute"):
        model = load_robot(robot, floating_base, mimic, allow_nonphysical)
        case = scenario.Scenario.make(
            model,
            controller=controller,
            reference=reference,
            seconds=seconds,
            payload=payload,
            payload_at=payload_at,
            payload_frame=payload_frame,
            dt=dt,
            control_dt=control_dt,
            friction=friction,
            gains=given,
            adapt=adapt,
            seed=seed,
        )
        case.warm_up()
    if case.slowed < 1.0:
        console.print(f"note: gains lowered to {case.slowed:.0%} of their rates, which a step of {dt:g} s can follow")
    every = max(1, round(seconds / dt) // MOST_SAMPLES)
    options = {"method": method, "control_dt": control_dt, "every": every}
    run, failure = _simulate(console, case, case.controller, controller.value, strict=strict, **options)
    others: dict[str, Run] = {}
    if compare and controller is ControllerName.slotine_li and failure is None:
        rival, _ = _simulate(console, case, case.rival, "computed-torque", monitors=None, **options)
        others["ComputedTorque"] = rival
    for target in (console, transcript):
        _report(target, case, run, others, failure)
    _save(console, text.getvalue(), run, others, out, plots)
    if failure is not None:
        complain(failure)
        raise typer.Exit(FAILED)


def _simulate(
    console: Console, case: Any, controller: Controller, label: str, **options: Any
) -> tuple[Run, str | None]:
    """(run, None), or the part up to a failure and why it failed."""
    from geomctrl.control.loop import simulate

    with progress_bar(console) as bar:
        task = bar.add_task(label, total=1.0)
        try:
            run = simulate(
                case.plant, controller, case.q0, case.v0, case.seconds, case.dt,
                progress=lambda fraction: bar.update(task, completed=fraction), **options,
            )  # fmt: skip
            return run, None
        except SimulationError as error:
            if error.run is None:
                raise
            return error.run, str(error)


def _report(console: Console, case: Any, run: Run, others: dict[str, Run], failure: str | None) -> None:
    """The tables a run ends with."""
    console.print(f"[bold]{escape(case.describe())}[/bold]", soft_wrap=True)
    if len(run.t):
        console.print(_tracking_table(run, others))
        estimate = _estimate_table(case, run)
        if estimate is not None:
            console.print(estimate)
    console.print(_monitor_table(run))
    if not all(m.ok for m in run.monitors.values()) and "lyapunov" in run.monitors and not run.monitors["lyapunov"].ok:
        why = case.why_lyapunov_may_grow()
        if why:
            console.print(f"[dim]The Lyapunov function may grow here: {why}.[/dim]")
    energy = run.monitors.get("energy")
    if energy is not None and not energy.ok:
        fastest = f"the loop's fastest rate, {case.fastest:.0f} 1/s"
        console.print(f"[dim]Energy is lost where dt is too long for {fastest}: try a smaller --dt.[/dim]")
    state = "finished" if failure is None else "STOPPED"
    speed = run.steps / run.wall_time if run.wall_time > 0.0 else float("nan")
    console.print(
        f"{state}: {escape(run.reason)}; {run.steps} steps in {run.wall_time:.2f} s, {speed:,.0f} steps/s,"
        f" {run.real_time_factor:.2g} x real time"
    )
    for name, other in others.items():
        if other.success:
            mine, its = (_total_rms(r) for r in (run, other))
            console.print(
                f"[bold]tracking RMS, all joints: {type(run.controller).__name__} {mine:.3g}, {name} {its:.3g}"
                f" with the same wrong model and bandwidth ({its / mine:.3g} times as much)[/bold]"
            )
        else:
            console.print(f"[bold]{name} with the same model failed: {escape(other.reason)}[/bold]")


def _total_rms(run: Run) -> float:
    rms = run.tracking_rms()
    return float("nan") if rms is None else float((rms**2).sum() ** 0.5)


def _tracking_table(run: Run, others: dict[str, Run]) -> Table:
    import numpy as np

    robot = run.plant.robot
    table = Table(title="tracking", title_justify="left", title_style="bold")
    table.add_column("joint")
    table.add_column("RMS error", justify="right")
    table.add_column("largest", justify="right")
    for name in others:
        table.add_column(f"RMS, {name}", justify="right")
    table.add_column("peak torque", justify="right")
    table.add_column("limit", justify="right")
    error = run.tracking_error()
    rms = [r.tracking_rms() for r in (run, *others.values())]
    for k, name in enumerate(robot.dof_names):
        unit, force = ("mrad", "N m") if robot.turning[k] else ("mm", "N")
        cells = [escape(name)]
        if error is not None:
            cells += [_number(rms[0], k, unit), f"{1e3 * np.abs(error[:, k]).max():.3g} {unit}"]
            cells += [_number(r, k, unit) for r in rms[1:]]
        else:
            cells += [""] * (1 + len(rms))
        peak, effort = np.abs(run.tau[:, k]).max(), robot.limits.effort[k]
        over = peak > effort
        cells += [f"[yellow]{peak:.3g} {force}[/yellow]" if over else f"{peak:.3g} {force}"]
        cells += [(f"{effort:.3g}" + (" exceeded" if over else "")) if np.isfinite(effort) else "-"]
        table.add_row(*cells)
    return table


def _number(rms: Any, k: int, unit: str) -> str:
    return "-" if rms is None else f"{1e3 * rms[k]:.3g} {unit}"


def _estimate_table(case: Any, run: Run) -> Table | None:
    import numpy as np

    law = run.controller
    if run.z is None or not hasattr(law, "true_parameters"):
        return None
    z, truth = run.z, law.true_parameters(run.plant.at(run.t[-1]))
    table = Table(title="parameter estimates", title_justify="left", title_style="bold")
    for name in ("", "at the start", "at the end", "true"):
        table.add_column(name, justify="left" if not name else "right")
    weight = np.sqrt(np.diag(law.Gamma_inverse))
    first, last = (np.linalg.norm(weight * (p - truth)) for p in (z[0], z[-1]))
    table.add_row("error of all, weighted by Gamma^-1/2", f"{first:.3g}", f"{last:.3g}", "0")
    masses = np.flatnonzero(law.columns % 10 == 0)
    for k in masses[np.argsort(-np.abs(truth[masses] - z[0, masses]), kind="stable")][:3]:
        body = run.plant.robot.body_names[law.columns[k] // 10]
        kind = "coefficient" if case.adapt == "base" else "mass"
        table.add_row(escape(f"{kind} of {body} [kg]"), *(f"{x:.3f}" for x in (z[0, k], z[-1, k], truth[k])))
    return table


def _monitor_table(run: Run) -> Table:
    table = Table(title="properties behind the proof", title_justify="left", title_style="bold")
    table.add_column("monitor")
    table.add_column("what", overflow="fold")
    for name in ("worst", "at", "limit"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for m in run.monitors.values():
        verdict = "[green]held[/green]" if m.ok else "[bold red]VIOLATED[/bold red]"
        numbers = f"{m.worst:.1e}", f"{m.t_worst:.4g} s", f"{m.limit:.0e}"
        table.add_row(escape(m.name), escape(m.what), *numbers, verdict)
    return table


def _save(console: Console, transcript: str, run: Run, others: dict[str, Run], out: Path, plots: bool) -> None:
    written = [run.save(out / "run.npz")] if len(run.t) else []
    report = out / "report.txt"
    temporary = report.with_suffix(".txt.tmp")
    temporary.write_text(transcript, encoding="utf-8")
    temporary.replace(report)
    written.append(report)
    if plots and len(run.t) > 1:
        with console.status("drawing"):
            from geomctrl.viewing.plots import plot_run

            written += plot_run(run, out, others)
    console.print(f"wrote {', '.join(p.name for p in written)} in {out}", soft_wrap=True)


app.command()(identify)


# --- info, check, robots ---------------------------------------------------------------------------------------


@app.command()
@reported
def info(
    robot: RobotArgument,
    frames: Annotated[bool, typer.Option("--frames/--no-frames", help="List the frames.")] = True,
    floating_base: FloatingBase = False,
    mimic: MimicOption = Mimic.error,
    allow_nonphysical: Nonphysical = False,
) -> None:
    """Show a robot: bodies, joints, limits, frames, mass, base parameters.

    **Examples**

    - `geomctrl info panda`

    - `geomctrl info robot.urdf --floating-base`
    """
    console = stdout_console()
    with compiling(console, "5 s"):
        from geomctrl.identification import exact_base_parameters

        from . import scenario

        model = load_robot(robot, floating_base, mimic, allow_nonphysical)
        base = exact_base_parameters(model).size
        energy = float(model.potential_energy(scenario.middle(model)))
    kind = "free base" if model.joints[0].kind == "free" else "fixed base"
    console.print(
        f"[bold]{escape(model.name)}[/bold]: {_count(model.nbodies, 'body', 'bodies')}, {model.nv} degrees of freedom"
        f" (nq = {model.nq}), {kind}, {model.parameters[:, 0].sum():.6g} kg"
    )
    g = ", ".join(f"{x:g}" for x in model.gravity)
    console.print(f"gravity ({g}) m/s^2; {base} base parameters of {10 * model.nbodies}; {energy:.4g} J in mid-range")
    console.print(_joint_table(model))
    if frames:
        extra = [f for f in model.frames if f.name not in (*model.body_names, "world")]
        listed = [f"{f.name} (on {model.body_names[f.body] if f.body >= 0 else 'world'})" for f in extra]
        console.print("frames: every body, world" + "".join(f", {f}" for f in listed), soft_wrap=True, markup=False)


def _joint_table(robot: Robot) -> Table:
    import numpy as np

    table = Table()
    for name in ("", "joint", "kind", "on", "body"):
        table.add_column(name, overflow="fold")
    for name in ("kg", "range", "speed", "effort"):
        table.add_column(name, justify="right")
    friction = bool(robot.damping.any() or robot.friction.any())
    if friction:
        table.add_column("damping, friction", justify="right")
    for i, (joint, body, p) in enumerate(zip(robot.joints, robot.body_names, robot.parents)):
        unit, force = ("rad", "N m") if joint.turning.any() else ("m", "N")
        bounded = np.isfinite([joint.lower, joint.upper]).any()
        row = [str(i), escape(str(joint.name)), joint.kind, str(p) if p >= 0 else "world", escape(body)]
        row += [f"{robot.parameters[i, 0]:.4g}", f"{joint.lower:.3g} .. {joint.upper:.3g} {unit}" if bounded else "-"]
        limits = ((joint.velocity, f"{unit}/s"), (joint.effort, force))
        row += [f"{x:.3g} {u}" if np.isfinite(x) else "-" for x, u in limits]
        table.add_row(*row, *([f"{joint.damping:.3g}, {joint.friction:.3g}"] if friction else []))
    return table


@app.command()
@reported
def check(
    robot: RobotArgument,
    states: Annotated[int, typer.Option(help="How many random states.", min=1)] = 20,
    seed: Annotated[int, typer.Option(help="Which random states.", min=0)] = 0,
    floating_base: FloatingBase = False,
    mimic: MimicOption = Mimic.error,
    allow_nonphysical: Nonphysical = False,
) -> None:
    """Check the properties that proofs rest on, at random states; exit status 1 if one fails.

    Inertias a body can have; M symmetric, positive definite, with the right derivative; Mdot - 2C skew and C v + g the
    bias force for both forms of C; recursions against the factored form, the regressor, forward against inverse
    dynamics, and the power balance.

    **Examples**

    - `geomctrl check ur10`

    - `geomctrl check robot.urdf --states 100 --allow-nonphysical`
    """
    from geomctrl.testing.properties import check_robot

    console = stdout_console()
    with compiling(console, "20 s"):
        model = load_robot(robot, floating_base, mimic, allow_nonphysical)
        found = check_robot(model, states, seed)
    table = Table(title=f"{escape(model.name)}: {states} random states", title_justify="left", title_style="bold")
    table.add_column("property")
    table.add_column("worst", justify="right")
    table.add_column("limit", justify="right")
    table.add_column("verdict")
    for c in found:
        verdict = "[green]holds[/green]" if c.ok else "[bold red]FAILS[/bold red]"
        table.add_row(c.name, f"{c.worst:.1e}", f"{c.limit:.0e}", verdict)
    console.print(table)
    failed = [c for c in found if not c.ok]
    for c in failed:
        complain(f"{c.name}: {c.reason or f'{c.worst:.3g} exceeds {c.limit:.0e} at state {c.state} of seed {seed}'}")
    if failed:
        raise typer.Exit(FAILED)
    console.print(f"all {len(found)} properties hold")


@app.command()
@reported
def robots() -> None:
    """List the bundled robots."""
    from geomctrl import models

    table = Table()
    for name in ("name", "bodies", "nv", "mass [kg]", "base", "what"):
        table.add_column(name)
    for name in models.names():
        r = models.load(name)
        what = (getattr(models, name).__doc__ or "").strip().splitlines()[0]
        base = "free" if r.joints[0].kind == "free" else "fixed"
        table.add_row(name, str(r.nbodies), str(r.nv), f"{r.parameters[:, 0].sum():.4g}", base, what)
    stdout_console().print(table)


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"
