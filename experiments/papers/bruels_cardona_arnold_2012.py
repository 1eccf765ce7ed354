"""Simulate the heavy top of Bruels, Cardona and Arnold 2012 (Mech. Mach. Theory 48, section 5) with all methods.

A top of 15 kg on a ball joint spins at 150 rad/s and is simulated to t = 0.8 s, in two kinds of coordinates:

- maximal coordinates (the pose of the centre of mass) on SE(3) and on SO(3) x R^3, by the index-1 equations, or by the
  generalized-alpha method of the authors with rho = 0.9 ("GA"), also with spatial twists ("GA-s");
- relative coordinates: a `Robot` with one spherical joint, compiled.

The script prints the error of the centre of mass against the converged solution in docs/reference/formulas.md, the
violation of the joint, the drift of the energy and the error of omega_y, which symmetry keeps at 150 rad/s. A figure in
out/ shows error over computing time.

    python experiments/papers/bruels_cardona_arnold_2012.py [--quick]
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from geomctrl.integrators import Adaptive
from geomctrl.integrators.tableaus import method, methods
from geomctrl.lie.groups import SE3, SO3xR3
from geomctrl.motion.rollout import rollout
from geomctrl.papers.constrained import integration as generalized_alpha
from geomctrl.papers.constrained.integration import integrate_index1

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.bruels_top import ENERGY, OMEGA0, REFERENCE, T_END, X0, robot, top
from lib.script import Out, Quick, run_script

GROUPS = {"SE(3)": SE3(), "SO(3)xR3": SO3xR3()}
ALPHA = {"GA": "body", "GA-s": "spatial"}
FIXED = [name for name in methods() if method(name).b_hat is None]


class Row(NamedTuple):
    where: str
    method: str
    h: float
    error: float  # |x(0.8) - reference| [m]
    violation: float  # |g| at the end [m]
    energy: float  # drift [J]
    spin: float  # omega_y - 150 [rad/s]
    nfev: int
    seconds: float


def best_of(times: int, function) -> tuple:
    """Return the shortest time [s] of some calls and the result."""
    best, result = np.inf, None
    for _ in range(times):
        start = time.perf_counter()
        result = function()
        best = min(best, time.perf_counter() - start)
    return best, result


def maximal(label: str, name: str, n: int | None, rtol: float | None = None) -> Row:
    system, y0 = top(GROUPS[label])
    method = name if rtol is None else Adaptive(name, rtol, rtol)
    h = None if n is None else T_END / n
    if name in ALPHA:
        form = ALPHA[name]
        run = partial(generalized_alpha.integrate_index3, system, y0, (0.0, T_END), h, every=10**9, representation=form)
    else:
        run = partial(integrate_index1, system, y0, (0.0, T_END), h, method, every=10**9)
    seconds, solution = best_of(3, run)
    y = solution.y[-1]
    return Row(
        label,
        name,
        T_END / solution.n_steps,
        float(np.linalg.norm(system.poses(y)[0, :3, 3] - REFERENCE)),
        float(system.violation(y)[0]),
        float(system.energy(y) - ENERGY),
        float(system.twists(y)[0, 1] - OMEGA0[1]),
        solution.nfev,
        seconds,
    )


def relative(name: str, n: int) -> Row:
    model = robot()
    run = partial(rollout, model, model.neutral(), OMEGA0, None, T_END, T_END / n, name, every=10**9)
    seconds, path = best_of(5, run)
    q, v = path.q[-1], path.v[-1]
    R, p = q.reshape(3, 4)[:, :3], q.reshape(3, 4)[:, 3]  # p: from the pivot on the ground to the pivot on the body
    violation, energy = float(np.linalg.norm(p)), float(model.energy(q, v)) - ENERGY
    return Row(
        "relative", name, T_END / n, float(np.linalg.norm(p + R @ X0 - REFERENCE)), violation, energy,
        float(v[1] - OMEGA0[1]), n * len(method(name).c), seconds,
    )  # fmt: skip


def print_rows(rows: list[Row]) -> None:
    heads = zip(("h [ms]", "|x - ref|", "|g|", "energy", "omega_y", "nfev", "ms"), (8, 10, 10, 11, 10, 7, 8))
    print(f"{'':9s}{'method':7s}" + "".join(f"{head:>{width}s}" for head, width in heads))
    for r in rows:
        print(
            f"{r.where:9s}{r.method:7s}{1e3 * r.h:8.3f}{r.error:10.1e}{r.violation:10.1e}{r.energy:11.1e}{r.spin:10.1e}"
            f"{r.nfev:7d}{1e3 * r.seconds:8.1f}"
        )


def print_orders(rows: list[Row]) -> None:
    print("\nMeasured order: slope of |x - ref| between the two shortest steps with errors above 1e-11")
    for where in (*GROUPS, "relative"):
        slopes = []
        for name in (*FIXED, *ALPHA):
            mine = [r for r in rows if r.where == where and r.method == name and 1e-11 < r.error < 0.1]
            if len(mine) > 1:
                log_h, log_e = np.log([r.h for r in mine]), np.log([r.error for r in mine])
                slopes.append(f"{name} {(np.diff(log_e) / np.diff(log_h))[-1]:.2f}")
        print(f"  {where:9s}" + "  ".join(slopes))


def draw(out: Path, rows: list[Row]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    figure = Figure(figsize=(11.0, 8.0), layout="constrained")
    axes = figure.subplots(2, 3, sharey=True)
    colors = {name: f"C{i}" for i, name in enumerate([*FIXED, "MK54", *ALPHA])}
    for column, where in zip(axes.T, (*GROUPS, "relative")):
        for name, color in colors.items():
            mine = [r for r in rows if r.where == where and r.method == name]
            if not mine:
                continue
            style = {"CG": ":", "CF": "--", "MK": "-", "GA": "-."}[name[:2]]
            for ax, cost in zip(column, ("nfev", "seconds")):
                ax.loglog(
                    [getattr(r, cost) for r in mine],
                    [r.error for r in mine],
                    style,
                    marker=".",
                    color=color,
                    label=name,
                )
        column[0].set(title=where.replace("xR3", " x R³"), xlabel="evaluations of the field")
        column[1].set(xlabel="time [s]")
    for ax in axes.ravel():
        ax.grid(True, alpha=0.3)
        ax.set_ylim(1e-12, 10.0)
        ax.xaxis.set_minor_formatter(NullFormatter())  # without them the labels of a short axis overlap
    for ax in axes[:, 0]:
        ax.set_ylabel("|x(0.8 s) - reference| [m]")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", fontsize="small")
    figure.suptitle("Heavy top: work and precision")
    FigureCanvasAgg(figure).print_figure(out / "heavy_top_work_precision.png", dpi=130)


def main(*, quick: Quick = False, out: Out = Path("out")) -> None:
    counts = (200, 400, 800, 1600) if quick else (200, 400, 800, 1600, 3200)
    system, y0 = top(SE3())
    print(f"Energy at the start: {system.energy(y0):.11f} J (expected: {ENERGY:.11f})\n")
    for warm in ("SE(3)", "SO(3)xR3"):  # compile before timing
        maximal(warm, "MK4", 200)
    relative("MK4", 200)
    rows = [maximal(g, name, n) for g in GROUPS for name in FIXED for n in counts]
    rows += [
        maximal(g, "GA", n) for g in GROUPS for n in counts if n >= 800
    ]  # with longer steps its iteration diverges
    rows += [maximal("SE(3)", "GA-s", n) for n in counts if n >= 800]
    rows += [maximal(g, "MK54", None, rtol) for g in GROUPS for rtol in (1e-5, 1e-7, 1e-9, 1e-11)]
    rows += [relative(name, n) for name in FIXED for n in counts]
    print_rows(rows)
    print_orders(rows)
    out.mkdir(parents=True, exist_ok=True)
    draw(out, rows)
    print(f"\nWork against precision: {out}/heavy_top_work_precision.png")


if __name__ == "__main__":
    run_script(main)
