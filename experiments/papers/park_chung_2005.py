"""Park and Chung 2005, "Geometric integration on Euclidean group with application to articulated multibody systems":
the tables of section VI compared with the published digits, and its figures.

Three spheres in a chain float without forces. The exact motion keeps energy and momentum, so their drift measures the
error of a method.

- First run: V(0) = 0, qd(0) = (0.4, 0.4), to t = 1 at four step sizes, for Tables VI to VIII and Figs. 4 to 6. Fig. 4
  also uses the rounded coefficients of CG4 that Table I prints.
- Second run: V(0) = 0.1 m/s and 0.3 rad/s along each axis (the paper writes the linear part first), to t = 200 at
  h = 0.05, for Figs. 7 and 8.
- Tables IV, V, IX and X count operations; here they are counted by running the code of the steps.

Figures go to out/.

    python experiments/papers/park_chung_2005.py [--quick]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import geomctrl as gc
from geomctrl import so3
from geomctrl.integrators.tableaus import Tableau, method
from geomctrl.kernels import exponentials
from geomctrl.motion.rollout import rollout

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.counting import chain, counted_operations, operations_on_a_general_group
from lib.park_chung import (
    LONG_ENERGY,
    METHODS,
    PUBLISHED,
    QUANTITIES,
    SECOND_RUN,
    STEPS,
    TABLE_IV,
    TABLE_V,
    TABLE_X,
    conserved,
    crouch_grossman_drift,
    drift,
    final_drift,
    long_drift,
    printed_cg4,
)  # fmt: skip
from lib.script import Out, Quick, run_script

# --- Tables VI to VIII -------------------------------------------------------------------------------------------


def round_off(tableau: str | Tableau, h: float) -> np.ndarray:
    """Scatter (3,) of the drifts over rotations of the whole chain, which have no effect in exact arithmetic."""
    rng = np.random.default_rng(0)
    runs = [final_drift(tableau, h, so3.exp(rng.normal(size=3))) for _ in range(12)]
    return np.ptp(runs, axis=0)


def published_round_off(quantity: str, h: float) -> float:
    """Scatter of the published drifts. At 1 ms CF4 and MK4 have rounding errors only, which grow with the number of
    steps.
    """
    return max(PUBLISHED[quantity][m, 1e-3] for m in ("CF4", "MK4")) * 1e-3 / h


class Cell(NamedTuple):
    """A drift and its published value, each with its round-off."""

    method: str
    quantity: str
    h: float
    ours: float
    published: float
    scatter: float  # of ours
    published_scatter: float

    @property
    def hidden(self) -> bool:
        """Whether round-off affects the printed digits."""
        return self.scatter > 1e-5 * self.published

    @property
    def agrees(self) -> bool:
        """Whether both agree to the five printed digits."""
        return f"{self.ours:.4E}" == f"{self.published:.4E}"

    @property
    def mark(self) -> str:
        """Blank for equal digits, "~" if round-off explains the difference, "!" otherwise."""
        if self.agrees:
            return " "
        apart = abs(self.ours - self.published)
        return "~" if self.hidden and apart <= self.scatter + self.published_scatter else "!"


def cells(name: str, h: float, tableau: Tableau | None = None) -> list[Cell]:
    """Cells of the three tables for a method and a step; `tableau` replaces that of the method."""
    ours, scatter = final_drift(tableau or name, h), round_off(tableau or name, h)
    return [
        Cell(name, quantity, h, x, PUBLISHED[quantity][name, h], s, published_round_off(quantity, h))
        for quantity, x, s in zip(QUANTITIES, ours, scatter)
    ]


def tables_vi_to_viii() -> None:
    all_cells = [cell for m in METHODS for h in STEPS for cell in cells(m, h)]
    for table, quantity in zip(("VI", "VII", "VIII"), QUANTITIES):
        print(f"\nTable {table}: drift of {quantity} at t = 1; ours, published")
        print("     " + "".join(f"{f'h = {h:g}':^26s}" for h in STEPS))
        for m in METHODS:
            row = [c for c in all_cells if (c.method, c.quantity) == (m, quantity)]
            print(f"{m:4s} " + "".join(f"{c.ours:11.4E} {c.published:11.4E} {c.mark} " for c in row))
    clear, hidden = [c for c in all_cells if not c.hidden], [c for c in all_cells if c.hidden]
    within, beyond = [c for c in hidden if c.mark == "~"], [c for c in all_cells if c.mark == "!"]
    largest = max(abs(c.ours - c.published) for c in within)
    print(
        f"\n{sum(c.agrees for c in clear)} of the {len(clear)} cells above round-off show the published five digits."
        f"\nRound-off reaches the digits of the other {len(hidden)}, as turning the whole chain shows, which in exact"
        f"\narithmetic changes nothing: {sum(c.agrees for c in hidden)} show them all the same,"
        f" {len(within)} (~) differ by {largest:.1E} at most,\nno more than ours and the authors' scatter,"
        f" {len(beyond)} (!) by more:"
    )
    for c in beyond:
        apart, scatter = abs(c.ours - c.published), c.scatter + c.published_scatter
        print(f"  {c.method}, {c.quantity}, h = {c.h:g}: by {apart:.1E}, {apart / scatter:.1f} times the scatter")


def rounded_coefficients() -> None:
    """Print the drift of CG4 with the fractions of Table I(b), and with ours, in plain arithmetic."""
    (A, b), exact = printed_cg4(), method("CG4")
    print(
        f"\nCG4 with the fractions of Table I(b), whose weights sum to 1 {b.sum() - 1.0:+.1e}, step by step in numpy;"
    )
    print("with 16 digits in the same code; the compiled step; published: energy, linear, angular momentum")
    rows = {}
    for h in STEPS:
        n = round(1.0 / h)
        ours = crouch_grossman_drift(A, b, n), crouch_grossman_drift(exact.A, exact.b, n), final_drift("CG4", h)
        rows[h] = np.array([*ours, [PUBLISHED[quantity]["CG4", h] for quantity in QUANTITIES]])
        print(f"  h = {h:<5g} " + " | ".join(" ".join(f"{x:8.1e}" for x in row) for row in rows[h]))
    fall, (rounded, plain, polished, published) = np.log10(rows[0.01][0] / rows[0.001][0]), rows[0.001]
    uncorrected, theirs = (plain / polished)[1:].min(), (published / plain)[1:].max()
    print(
        f"From 10 to 1 ms the fractions' drift falls with order {fall.min():.1f} to {fall.max():.1f}, to"
        f" {(rounded / published).min():.0e} times the published one or more:"
        "\nthe published digits are of other coefficients. That theirs flatten at 1 ms (Fig. 4, the cells marked !) is"
        "\nround-off of fifteen products of rotations a step, which nothing corrects in plain arithmetic: there our"
        f" momenta\ndrift at least {uncorrected:.0f} times more than compiled, where rotations are brought back to"
        f" SO(3), and theirs at\nmost {theirs:.1f} times more than those."
    )


# --- Tables IV, V, IX, X: what a step costs ------------------------------------------------------------------------


def table_iv() -> None:
    print("\nTable IV: operations a step on a general Lie group: exponentials, commutators, products; ours | published")
    for name, published in TABLE_IV.items():
        ours = operations_on_a_general_group(name)
        pairs = "  ".join(f"{x:2d} | {y:2d}" for x, y in zip(ours, published))
        print(f"  {name}  {pairs} {' ' if ours == published else '!'}")


def vector_operations(name: str) -> tuple[int, ...]:
    """The columns of Table X from the tableau, for the operations of `kernels.marches.rk_step`."""
    tableau = method(name)
    rows = [row for _, rows in tableau.stages for row in rows]
    s = len(tableau.c)
    classical = np.count_nonzero(tableau.A_classical) + np.count_nonzero(tableau.b_classical)
    pose = sum(np.count_nonzero(row) for row in rows)
    pulled_back = sum(len(r) for _, r in tableau.stages[:s]) if tableau.family == "MK" else 0
    return s, classical + pose - len(rows), 2 * classical, len(rows), len(rows), len(rows), pulled_back


def seconds_per_step(robot: gc.Robot, budget: float) -> dict:
    """{method: s}, and {"FDyn": s} for one forward dynamics from Python; best of rounds in which they take turns."""
    v, n = np.full(robot.nv, 0.1), 200
    q, tau = robot.neutral(), np.zeros(robot.nv)
    functions = {m: lambda m=m: rollout(robot, q, v, None, n * 1e-4, 1e-4, m, every=n) for m in METHODS}
    functions["FDyn"] = lambda: [robot.forward_dynamics(q, v, tau) for _ in range(n)]
    best = dict.fromkeys(functions, np.inf)
    for f in functions.values():
        f()
    end = time.perf_counter() + budget
    while time.perf_counter() < end:
        for m, f in functions.items():
            start = time.perf_counter()
            f()
            best[m] = min(best[m], (time.perf_counter() - start) / n)
    return best


def tables_v_ix_x(budget: float) -> None:
    counts = counted_operations(METHODS)
    seconds = {n: seconds_per_step(chain(n), budget / 2) for n in (2, 20)}
    kinds = ("add", "mult", "div", "sqrt", "trig")

    def row(m, n):
        return [counts[m, n][kind] for kind in kinds]

    print(
        "\nTable V: operations a step besides FDyn evaluations, for 2/20 joints, ours | published; and our time a step"
    )
    print(f"{'':5s}FDyn   {'add':^27s} {'mult':^27s} {'div':^8s}{'sqrt':^8s}{'trig':^9s} us, 2 joints / 20")
    for m in METHODS:
        a, b, p = row(m, 2), row(m, 20), TABLE_V[m]
        print(
            f"{m:5s}{len(method(m).c):3d}  "
            + "".join(f" {a[i]:5d}/{b[i]:5d} | {p[i][0]:4d}/{p[i][1]:4d} " for i in (0, 1))
            + "".join(f" {a[i]:2d} | {p[i]:2d}" for i in (2, 3, 4))
            + f"    {seconds[2][m] * 1e6:6.2f} / {seconds[20][m] * 1e6:6.2f}"
        )
    dear = sum(counts[m, n][kind] for m in METHODS for n in (2, 20) for kind in ("sqrt", "trig"))
    lengths = sorted(len(terms) for terms in (exponentials.C4, exponentials.C5, exponentials.G1, exponentials.G2))
    print(
        f"Every operation of the step's code is counted. Below a turn of {exponentials.SWITCH**0.5:.2f} rad our"
        f" exponential and dexp^-1 take {dear or 'no'}\nsquare roots and sines but two series of {lengths[0]} to"
        f" {lengths[-1]} terms each, because the closed forms lose digits at small angles:\nhence more additions and"
        " products, and fewer of the dear ones."
        f"\nFDyn from Python: {seconds[2]['FDyn'] * 1e6:.2f} us with 2 joints, {seconds[20]['FDyn'] * 1e6:.2f} with 20."
    )
    print("\nTable IX: 1000 steps of third order against 100 of fourth, 2 joints: ours, published; and our time in ms")
    for family in ("CG", "CF", "MK"):
        for order, n in ((3, 1000), (4, 100)):
            m, p = f"{family}{order}", TABLE_V[f"{family}{order}"]
            published = " ".join(f"{n * x:6d}" for x in (p[0][0], p[1][0], *p[2:]))
            ours = " ".join(f"{n * x:7d}" for x in row(m, 2))
            fdyn = n * len(method(m).c)
            print(f"{m} x {n:4d}: FDyn {fdyn:4d}, ours {ours} | {published} {n * seconds[2][m] * 1e3:8.2f} ms")
    print("\nTable X: vector operations a step, ours | published")
    heads = ("FDyn", "svmultadd(6)", "svmultadd(N)", "svmult(6)", "exp", "hmmult", "dexpinv")
    print("     " + " ".join(f"{head:>12s}" for head in heads))
    for m in METHODS:
        pairs = zip(vector_operations(m), TABLE_X[m])
        print(f"{m:5s}" + " ".join(f"{f'{x} | {y}':>12s}" for x, y in pairs))
    differ = [m for m in METHODS if vector_operations(m) != TABLE_X[m]]
    print(f"{', '.join(differ)} differ: MK needs no copy of a slope beside its sums, CF4 skips what cancels on R^N.")


# --- the second run and the figures --------------------------------------------------------------------------------


class Comparison(NamedTuple):
    """The fourth-order methods at the end of the second run, as ratios."""

    energy_of_cg4: float  # CG4's drift over the larger of CF4's and MK4's
    momentum_of_cg4: float  # the smaller of the ratios of linear and angular momentum
    energies_apart: float  # CF4's and MK4's, relative
    momentum_of_mk4: float  # MK4's over CF4's, the larger of linear and angular


def compare(runs: dict) -> Comparison:
    cg, cf, mk = (drift(runs[m][1][-1]) for m in ("CG4", "CF4", "MK4"))
    return Comparison(
        cg[0] / max(cf[0], mk[0]),
        float((cg[1:] / np.maximum(cf, mk)[1:]).min()),
        abs(cf[0] - mk[0]) / cf[0],
        float((mk[1:] / cf[1:]).max()),
    )


def second_run(runs: dict) -> None:
    start = conserved(robot := gc.models.three_spheres(), robot.neutral(), SECOND_RUN)
    print(f"\nSecond run: E = {start[0]:.2f} J, linear momentum {start[1:4]}, angular {start[4:]}; drift at t = 200")
    for m, (_, change) in runs.items():
        size = drift(change[-1])
        print(
            f"  {m}: kinetic energy {change[-1, 0]: .4e} (expected: {LONG_ENERGY[m]: .3g}), "
            f"linear {size[1]:.3e}, angular {size[2]:.3e}"
        )
    r = compare(runs)
    faster, better = min(r.energy_of_cg4, r.momentum_of_cg4) > 1.0, r.momentum_of_mk4 < 1.0
    verdict, more = {True: "confirmed", False: "NOT confirmed"}, {True: "less", False: "more"}
    print(
        f"  CG4 drifts {r.energy_of_cg4:.1f} times as fast in energy, at least {r.momentum_of_cg4:.1f} times in"
        f"\n  momentum: that it drifts much faster is {verdict[faster]}. CF4's and MK4's energies differ by"
        f" {r.energies_apart:.0e}:\n  without forces the velocities do not see the base's pose, and both are RK4 in"
        f" them. MK4's\n  momenta drift {abs(r.momentum_of_mk4 - 1.0):.1%} {more[better]} than CF4's: that it has"
        f" a slight advantage is {verdict[better]}."
    )


def figures_4_to_6(out: Path, quick: bool) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    counts = np.unique(np.round(np.logspace(0, 3, 7 if quick else 25)).astype(int))
    printed = np.array([crouch_grossman_drift(*printed_cg4(), n) for n in counts])
    for number, family in ((4, "CG"), (5, "CF"), (6, "MK")):
        figure = Figure(figsize=(10.5, 3.8), layout="constrained")
        axes = figure.subplots(1, 3)
        for order, marker in ((2, "o"), (3, "s"), (4, "^")):
            errors = np.array([final_drift(f"{family}{order}", 1.0 / n) for n in counts])
            for ax, column in zip(axes, errors.T):
                (line,) = ax.loglog(1.0 / counts, column, label=f"{family}{order}")
                published = [PUBLISHED[QUANTITIES[list(axes).index(ax)]][f"{family}{order}", h] for h in STEPS]
                ax.loglog(STEPS, published, marker, color=line.get_color(), fillstyle="none")
        for ax, column in zip(axes, printed.T if family == "CG" else ()):
            ax.loglog(1.0 / counts, column, "k:", label="CG4 as printed, rounded")
        for ax, quantity in zip(axes, QUANTITIES):
            ax.set(xlabel="h [s]", title=f"drift of {quantity}")
            ax.grid(True, alpha=0.3)
        axes[0].legend(loc="upper left")
        figure.suptitle(f"Fig. {number}: {family} methods at t = 1 (markers: published)")
        FigureCanvasAgg(figure).print_figure(out / f"park_chung_fig{number}.png", dpi=130)


def figures_7_and_8(out: Path, runs: dict) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    titles = ("kinetic energy variation [J]", "norm of linear momentum drift", "norm of angular momentum drift")
    for number, order in ((7, 3), (8, 4)):
        figure = Figure(figsize=(10.5, 3.6), layout="constrained")
        axes = figure.subplots(1, 3)
        for family, style in (("CG", "-"), ("CF", "-"), ("MK", "--")):
            t, change = runs[f"{family}{order}"]
            sizes = drift(change)
            for ax, y in zip(axes, (change[:, 0], sizes[:, 1], sizes[:, 2])):
                ax.plot(t, y, style, label=f"{family}{order}", linewidth=1.0)
        for ax, title in zip(axes, titles):
            ax.set(xlabel="t [s]", title=title)
            ax.grid(True, alpha=0.3)
        axes[0].legend()
        figure.suptitle(f"Fig. {number}: drift along the second run, h = 0.05")
        FigureCanvasAgg(figure).print_figure(out / f"park_chung_fig{number}.png", dpi=130)


def main(*, quick: Quick = False, out: Out = Path("out")) -> None:
    tables_vi_to_viii()
    rounded_coefficients()
    table_iv()
    tables_v_ix_x(budget=1.0 if quick else 10.0)
    runs = {m: long_drift(m) for m in LONG_ENERGY}
    second_run(runs)
    out.mkdir(parents=True, exist_ok=True)
    figures_4_to_6(out, quick)
    figures_7_and_8(out, runs)
    print(f"\nFigs. 4 to 8: {out}/park_chung_fig4.png to fig8.png")


if __name__ == "__main__":
    run_script(main)
