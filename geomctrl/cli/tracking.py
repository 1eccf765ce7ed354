"""A scenario run at a terminal: simulated with a bar, then printed and saved."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.console import Console

from geomctrl.arguments import number
from geomctrl.control.contracts import Controller
from geomctrl.control.loop import simulate
from geomctrl.control.run import Run
from geomctrl.errors import SimulationError
from geomctrl.files import write_text
from geomctrl.output import transcript

from .run_tables import report
from .scenario import Scenario
from .terminal import FAILED, interrupted_status, progress_bar
from .track_options import RunOptions

MOST_SAMPLES = 20000


@dataclass(frozen=True)
class Stop:
    """Why a run stopped early, and the exit status that says so."""

    reason: str
    status: int = FAILED


def tracked(case: Scenario, options: RunOptions, console: Console) -> Stop | None:
    """Run a scenario, print and save what came of it; why it stopped early, or None."""
    if case.rule.slowed < 1.0:
        lowered = f"gains lowered to {case.rule.slowed:.0%} of their rates"
        console.print(f"note: {lowered}, which a step of {case.options.dt:g} s can follow")
    run, stop = _simulate(console, case, case.controller, case.options.controller, options, strict=options.strict)
    others: dict[str, Run] = {}
    if options.compare and case.adapts and stop is None:
        others["ComputedTorque"], stop = _simulate(console, case, case.rival, "computed-torque", options, monitors=None)
        if stop is not None and stop.status == FAILED:
            stop = None  # of the other law, as its numbers tell
    kept, text = transcript()
    show = partial(report, case=case, run=run, others=others, failure=None if run.success else run.reason)
    show(kept)
    return save(console, text(), show, run, others, options, stop)


def _simulate(
    console: Console, case: Scenario, controller: Controller, label: str, options: RunOptions, **more: Any
) -> tuple[Run, Stop | None]:
    loop = {"plant": case.plant, "controller": controller, "q0": case.q0, "v0": case.v0, **more}
    times = {"t_end": case.options.seconds, "dt": case.options.dt, "control_dt": case.options.control_dt}
    return watched(console, label, loop | times | {"method": options.method})


def watched(console: Console, label: str, arguments: dict[str, Any]) -> tuple[Run, Stop | None]:
    """What `simulate` makes of its arguments, with a bar: (run, None), or the part up to where it failed or was
    interrupted, and why.
    """
    t_end = number("t_end", arguments["t_end"])
    dt = number("dt", arguments["dt"], "a positive number of seconds", lambda dt: dt > 0.0)
    every = max(1, round(min(t_end / dt, 1e12)) // MOST_SAMPLES)  # what is more is refused
    with progress_bar(console) as bar:
        task = bar.add_task(label, total=1.0)
        try:
            given: dict[str, Any] = {"every": every, **arguments}
            given["progress"] = lambda fraction: bar.update(task, completed=fraction)
            return simulate(**given), None
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
    told: str,
    show: Callable[[Console], Any],
    run: Run,
    others: dict[str, Run],
    options: RunOptions,
    stop: Stop | None,
) -> Stop | None:
    """Write the run and its report, then `show` the report and draw the pictures.

    Returns why things stopped early: `stop`, or that there was no room for the run where it should be.
    """
    out = options.out
    try:
        written = [run.save(out / "run.npz")] if len(run.t) else []
    except OSError as error:
        elsewhere = run.save(Path(tempfile.mkdtemp(prefix="geomctrl-")) / "run.npz")
        show(console)
        return Stop(f"{error.strerror}: {error.filename}; the run is kept in {elsewhere}")
    written.append(write_text(out / "report.txt", told))
    show(console)
    if options.plots and len(run.t) > 1 and (stop is None or stop.status == FAILED):  # who interrupts does not wait
        with console.status("drawing"):
            from geomctrl.viewing.plots import plot_run  # here: matplotlib is slow to import

            written += plot_run(run, out, others)
            written += _page(run, out / "run.html")
    console.print(f"wrote {', '.join(p.name for p in written)} in {out}", soft_wrap=True)
    return stop


def _page(run: Run, path: Path) -> list[Path]:
    """The run as a page, where the extra that it needs is installed."""
    return [run.save_html(path)] if find_spec("viser") is not None else []
