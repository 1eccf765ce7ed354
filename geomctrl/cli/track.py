"""Simulate a robot that tracks a reference, and check the properties that the stability proof needs.

The controller uses the nominal model; the plant also has --payload, --friction, --actuators and --sensors. Prints a
table and writes run.npz, report.txt, PNG plots and, with the extra 'view', run.html (the robot in three dimensions) to
--out. Torques beyond the limits are reported; `--actuators limits` enforces the limits. Controllers command all
coordinates: a free base is driven too, by a wrench on its body, and the report says so; `--actuators joints` drives
the joints only.

FILE.py:CLASS selects your own controller. It is constructed as CLASS(robot, reference), or by its classmethod
tuned(tuning): rule 9 of `geomctrl.Controller` lists what `tuning` has. Delays and sensors need --control-dt; times are
in s, or as 5ms.

A Python file instead of the robot defines any closed loop. It sets the arguments of `geomctrl.simulate` by name:
`plant`, `controller`, `q0`, `v0`, `t_end`, `dt` and any others; the scenario options do not apply.

**Gains** scale with the robot's mass matrix. With D_i the mean of M_ii, kappa_i = kappa (max D / D_i)^(1/3) and
Lambda in 1/s, every controller has the same nominal error dynamics e'' + (kappa_i + Lambda) e' + kappa_i Lambda e = 0:

- slotine-li, passivity: `Lambda` = 5, K = kappa_i D_i with `kappa` = 20; slotine-li: adaptation `rate` = 20

- computed-torque: `kp` = kappa_i Lambda, `kd` = kappa_i + Lambda

- pd-gravity: the same times D_i; it holds the last configuration of the reference

kappa and Lambda are reduced if the fastest closed-loop rate would exceed 1.5 / dt, and rate if adaptation would
be faster than 1 / dt. The comparison with computed torque uses the same rule, so both have the same bandwidth.

**Exit status**: 0 the run finished, whatever the monitors report (see --strict); 1 it diverged or --strict stopped
it; 130 Ctrl-C, 143 SIGTERM, and the part up to then is saved; 2 invalid arguments.

**Examples**

- `geomctrl track panda --payload 2 --out out/demo`

- `geomctrl track ur10 --controller passivity --reference spline --seconds 5`

- `geomctrl track quadruped --payload 3 --payload-at 4 --adapt links`

- `geomctrl track panda --controller my.py:Law --actuators limits,lag=5ms --sensors bits=17 --control-dt 1e-3`

- `geomctrl track loop.py --out out/loop`

- `geomctrl track arm.urdf --controller computed-torque --gains kp=400,kd=40 --control-dt 0.002`
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter
from rich.console import Console

from geomctrl.arguments import number
from geomctrl.control.contracts import Controller
from geomctrl.control.loop import simulate
from geomctrl.control.options import SimulationOptions
from geomctrl.control.run import Run
from geomctrl.errors import ArgumentError, SimulationError
from geomctrl.files import write_text
from geomctrl.output import transcript

from .options import MODEL_HELP, CheckedUrdfOptions, flag
from .run_tables import report
from .scenario import Scenario, ScenarioOptions, check_options
from .terminal import FAILED, compiling, interrupted_status, print_error, progress_bar, report_written, stdout_console
from .user_files import arguments_of

MAX_SAMPLES = 20000  # largest number of stored samples


@Parameter(name="*", group=Group("The run", sort_key=2))
@dataclass(frozen=True)
class RunOptions:
    """Options for the simulation and its results."""

    compare: Annotated[
        bool,
        Parameter(help="slotine-li: also run computed torque with the same wrong model."),
    ] = True
    strict: Annotated[bool, flag("Stop when a monitor's violation is confirmed.")] = False
    method: Annotated[str, Parameter(help="Integration method on the group.")] = "MK4"
    out: Annotated[Path, Parameter(help="Folder for run.npz, report.txt, run.html and the plots.")] = Path("out")
    plots: Annotated[bool, Parameter(help="Draw PNG files, and run.html with the extra 'view'.")] = True


def track(
    robot: Annotated[str, Parameter(help=f"{MODEL_HELP} Or a Python file with a closed loop.")],
    /,
    *,
    scenario: ScenarioOptions = ScenarioOptions(),
    run: RunOptions = RunOptions(),
    urdf: CheckedUrdfOptions = CheckedUrdfOptions(),
) -> int | None:
    console = stdout_console()
    if robot.endswith(".py"):
        stop = own_loop(Path(robot), scenario, run, console)
    else:
        check_options(scenario)
        run.out.mkdir(parents=True, exist_ok=True)
        with compiling(console, "half a minute"):
            case = Scenario.make(urdf.load(robot), scenario)
            case.warm_up()
        stop = tracked(case, run, console)
    if stop is None:
        return None
    print_error(stop.reason)
    return stop.status


@dataclass(frozen=True)
class Stop:
    """Why a run stopped early, and the exit status for it."""

    reason: str
    status: int = FAILED


def tracked(case: Scenario, options: RunOptions, console: Console) -> Stop | None:
    """Run a scenario, print and save its results; return why it stopped early, or None."""
    if case.rule.slowed < 1.0:
        lowered = f"gains lowered to {case.rule.slowed:.0%} of their rates"
        console.print(f"note: {lowered}, as fast as a step of {case.options.dt:g} s allows")
    run, stop = _simulate(console, case, case.controller, case.options.controller, options)
    others: dict[str, Run] = {}
    if options.compare and case.adapts and stop is None:
        others["ComputedTorque"], stop = _simulate(console, case, case.rival, "computed-torque", options, monitors=None)
        if stop is not None and stop.status == FAILED:
            stop = None  # the report mentions the failure of the other controller
    kept, text = transcript()
    show = partial(report, case=case, run=run, others=others, failure=None if run.success else run.reason)
    show(kept)
    return save(console, text(), show, run, others, options, stop)


def _simulate(
    console: Console, case: Scenario, controller: Controller, label: str, options: RunOptions, **more: Any
) -> tuple[Run, Stop | None]:
    loop = {"plant": case.plant, "controller": controller, "q0": case.q0, "v0": case.v0, **more}
    every = _sample_interval(case.options.seconds, case.options.dt)
    loop_options = SimulationOptions(options.method, every, options.strict)
    loop |= {"t_end": case.options.seconds, "dt": case.options.dt, "control_dt": case.options.control_dt}
    return watched(console, label, loop | {"options": loop_options})


def _sample_interval(t_end: float, dt: float) -> int:
    """Number of steps between stored samples, so that at most MAX_SAMPLES are stored. Raises ArgumentError."""
    t_end, dt = number("t_end", t_end), number("dt", dt, "a positive number of seconds", lambda dt: dt > 0.0)
    return max(1, round(min(t_end / dt, 1e12)) // MAX_SAMPLES)  # `simulate` refuses more steps


def watched(console: Console, label: str, arguments: dict[str, Any]) -> tuple[Run, Stop | None]:
    """Simulate with a progress bar; return (run, None), or the part until it failed or was interrupted, and why."""
    with progress_bar(console) as bar:
        task = bar.add_task(label, total=1.0)
        try:
            arguments["progress"] = lambda fraction: bar.update(task, completed=fraction)
            return simulate(**arguments), None
        except SimulationError as error:
            if error.run is None:
                raise
            return error.run, Stop(str(error))
        except (KeyboardInterrupt, SystemExit) as error:
            kept = getattr(error, "run", None)
            if kept is None:
                raise
            return kept, Stop(kept.reason, interrupted_status(error))


def save(
    console: Console,
    text: str,
    show: Callable[[Console], Any],
    run: Run,
    others: dict[str, Run],
    options: RunOptions,
    stop: Stop | None,
) -> Stop | None:
    """Write the run and its report, then `show` the report and draw the pictures.

    Returns why things stopped early: `stop`, or that the disk had no space for the run.
    """
    out = options.out
    try:
        written = [run.save(out / "run.npz")] if len(run.t) else []
    except OSError as error:
        try:
            kept = f"kept in {run.save(Path(tempfile.mkdtemp(prefix='geomctrl-')) / 'run.npz')}"
        except OSError as another:
            kept = f"not saved; {another.strerror}: {another.filename}"
        show(console)
        return Stop(f"{error.strerror}: {error.filename}; the run is {kept}")
    try:
        written.append(write_text(out / "report.txt", text))
    finally:  # a report that can not be written is printed
        show(console)
    if options.plots and len(run.t) > 1 and (stop is None or stop.status == FAILED):  # no plots after an interruption
        with console.status("drawing"):
            from geomctrl.viewing.plots import plot_run  # imported here because matplotlib is slow to import

            written += plot_run(run, out, others)
            if find_spec("viser") is not None:
                written.append(run.save_html(out / "run.html"))
    report_written(console, written, out)
    return stop


def own_loop(study: Path, scenario: ScenarioOptions, options: RunOptions, console: Console) -> Stop | None:
    """Run a closed loop from a file, print and save its results; return why it stopped early, or None.

    Raises ArgumentError for options that the file defines.
    """
    stated = [f.name for f in fields(scenario) if getattr(scenario, f.name) != f.default]
    if stated:
        raise ArgumentError(
            f"{stated[0].replace('_', '-')}: can not be given with {study.name}, which defines the whole loop"
        )
    arguments = arguments_of(study, simulate, {"progress"}, "ROBOT")
    stated = arguments.get("options", SimulationOptions(every=_sample_interval(arguments["t_end"], arguments["dt"])))
    method = stated.method if options.method == RunOptions.method else options.method
    arguments["options"] = replace(stated, method=method, strict=options.strict or stated.strict)
    options.out.mkdir(parents=True, exist_ok=True)
    run, stop = watched(console, study.stem, arguments)
    text = f"{study.name}: {run!r}\n{run.summary()}"
    return save(console, f"{text}\n", lambda target: target.print(text, soft_wrap=True), run, {}, options, stop)
