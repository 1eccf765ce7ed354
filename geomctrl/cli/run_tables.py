"""Tables that are printed after a simulation."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from geomctrl.control.monitors import HELD, UNRESOLVED, VIOLATED
from geomctrl.control.run import Run

from .scenario import Scenario

COLOURS = {HELD: "green", VIOLATED: "bold red", UNRESOLVED: "bold yellow"}


def report(console: Console, case: Scenario, run: Run, others: dict[str, Run], failure: str | None) -> None:
    """Print tables, remarks and computation times of a run. others: runs to compare with, by name."""
    console.print(case.describe(), style="bold", soft_wrap=True)
    if len(run.t):
        console.print(_tracking_table(run, others))
        estimate = _estimate_table(case, run)
        if estimate is not None:
            console.print(estimate)
    console.print(_monitor_table(run))
    for remark in _remarks(case, run):
        console.print(remark, style="dim")
    state = "finished" if failure is None else "STOPPED"
    speed = run.steps / run.wall_time if run.wall_time > 0.0 else float("nan")
    console.print(
        f"{state}: {run.reason}; {run.steps} steps in {run.wall_time:.2f} s, {speed:,.0f} steps/s,"
        f" {run.real_time_factor:.2g} x real time"
    )
    for name, other in others.items():
        if other.success:
            mine, its = (_total_rms(r) for r in (run, other))
            console.print(
                f"tracking RMS, all joints: {type(run.controller).__name__} {mine:.3g}, {name} {its:.3g}"
                f" with the same wrong model and bandwidth ({its / mine:.3g} times as much)",
                style="bold",
            )
        else:
            console.print(f"{name} with the same model failed: {other.reason}", style="bold")


def _remarks(case: Scenario, run: Run) -> list[str]:
    """Explain why a monitor exceeded its limit, and what else may be the cause."""
    lyapunov, remarks = run.monitors.get("lyapunov"), []
    remarks += [f"{m.name}: {m.verdict}: {m.explanation}." for m in run.monitors.values() if m.explanation]
    why = case.why_lyapunov_may_grow()
    if lyapunov is not None and not lyapunov.ok and why:
        remarks.append(f"The Lyapunov function may grow here: {why}.")
    return remarks


def _total_rms(run: Run) -> float:
    rms = run.tracking_rms()
    return float("nan") if rms is None else float((rms**2).sum() ** 0.5)


def _tracking_table(run: Run, others: dict[str, Run]) -> Table:
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
        unit, force = ("mrad", "N m") if robot.is_rotational[k] else ("mm", "N")
        cells: list[str | Text] = [name]
        if error is not None:
            cells += [_number(rms[0], k, unit), f"{1e3 * np.abs(error[:, k]).max():.3g} {unit}"]
            cells += [_number(r, k, unit) for r in rms[1:]]
        else:
            cells += [""] * (1 + len(rms))
        peak, effort = np.abs(run.applied[:, k]).max(), robot.limits.effort[k]
        over = peak > effort
        cells += [Text(f"{peak:.3g} {force}", "yellow" if over else "")]
        cells += [(f"{effort:.3g}" + (" exceeded" if over else "")) if np.isfinite(effort) else "-"]
        table.add_row(*cells)
    return table


def _number(rms: np.ndarray | None, k: int, unit: str) -> str:
    return "-" if rms is None else f"{1e3 * rms[k]:.3g} {unit}"


def _estimate_table(case: Scenario, run: Run) -> Table | None:
    law = run.controller
    if run.z is None or not all(hasattr(law, name) for name in ("true_parameters", "Gamma_inverse", "columns")):
        return None
    n = len(law.Gamma_inverse)  # the estimates come first in z, then states of filters
    z, truth = run.z[:, :n], law.true_parameters(run.plant.at(run.t[-1]))[:n]
    table = Table(title="parameter estimates", title_justify="left", title_style="bold")
    for name in ("", "at the start", "at the end", "true"):
        table.add_column(name, justify="left" if not name else "right")
    weight = np.sqrt(np.diag(law.Gamma_inverse))
    first, last = (np.linalg.norm(weight * (p - truth)) for p in (z[0], z[-1]))
    table.add_row("error of all, weighted by Gamma^-1/2", f"{first:.3g}", f"{last:.3g}", "0")
    masses = np.flatnonzero(law.columns % 10 == 0)
    for k in masses[np.argsort(-np.abs(truth[masses] - z[0, masses]), kind="stable")][:3]:
        body = run.plant.robot.body_names[law.columns[k] // 10]
        kind = "coefficient" if case.options.adapt == "base" else "mass"
        table.add_row(f"{kind} of {body} [kg]", *(f"{x:.3f}" for x in (z[0, k], z[-1, k], truth[k])))
    return table


def _monitor_table(run: Run) -> Table:
    table = Table(title="properties behind the proof", title_justify="left", title_style="bold")
    table.add_column("monitor")
    table.add_column("quantity", overflow="fold")
    for name in ("worst", "at", "limit"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for m in run.monitors.values():
        verdict = Text(m.verdict, COLOURS.get(m.verdict, "dim"))
        numbers = f"{m.worst:.1e}", f"{m.t_worst:.4g} s", f"{m.limit:.0e}"
        table.add_row(m.name, m.description, *numbers, verdict)
    return table
