"""Park and Chung 2005, "Geometric integration on Euclidean group with application to articulated multibody systems":
the tables of section VI beside the published digits, and its figures.

Three spheres in a chain, afloat and free of forces: energy and momentum should stay what they are, and what they do
instead measures the method. First run: V(0) = 0, qd(0) = (0.4, 0.4), to t = 1 at four step sizes, Tables VI to VIII
and Figs. 4 to 6. Second run: V(0) = 0.1 m/s and 0.3 rad/s along each axis (the paper writes the linear part first),
to t = 200 at h = 0.05, Figs. 7 and 8. Tables V, IX and X count operations: ours are counted by running the step's own
code on numbers that count. Figures go to out/.

    python experiments/papers/park_chung_2005.py [--quick]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import ClassVar

import numpy as np

import geomctrl as gc
from geomctrl import models, so3
from geomctrl.integrators.tableaus import method
from geomctrl.motion.rollout import rollout

METHODS = ("CG2", "CG3", "CG4", "CF2", "CF3", "CF4", "MK2", "MK3", "MK4")
STEPS = (1.0, 0.1, 0.01, 0.001)  # s
FIRST_RUN = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.4, 0.4])  # (omega, v) of the base [rad/s, m/s], qd [rad/s]
SECOND_RUN = np.array([0.3, 0.3, 0.3, 0.1, 0.1, 0.1, 0.4, 0.4])
QUANTITIES = ("kinetic energy", "linear momentum", "angular momentum")  # Tables VI, VII, VIII
PUBLISHED = {
    "kinetic energy": """
        3.4673E-2 1.1679E-3 1.2151E-5 1.2197E-7   3.9707E-2 4.2896E-5 4.3020E-8 4.3059E-11
        1.5120E-3 2.0035E-7 2.0421E-11 1.7764E-14  3.4673E-2 1.1679E-3 1.2151E-5 1.2197E-7
        5.3524E-2 5.0535E-5 5.0334E-8 5.0292E-11  3.6308E-3 3.2133E-7 3.1989E-11 1.7764E-14
        3.4673E-2 1.1679E-3 1.2151E-5 1.2197E-7   5.3524E-2 5.0535E-5 5.0334E-8 5.0292E-11
        3.6308E-3 3.2133E-7 3.1996E-11 1.4211E-14""",
    "linear momentum": """
        5.5613E-1 5.2947E-3 5.2633E-5 5.2600E-7   5.6523E-2 4.7138E-5 4.6619E-8 4.6510E-11
        8.4583E-3 8.2850E-7 8.3399E-11 3.2901E-13  5.5613E-1 5.2947E-3 5.2633E-5 5.2600E-7
        5.1921E-2 5.2437E-5 5.2982E-8 5.2981E-11  1.5953E-2 1.5814E-6 1.5782E-10 5.7011E-14
        5.5613E-1 5.3178E-3 5.2893E-5 5.2864E-7   5.2334E-2 5.3244E-5 5.3800E-8 5.3802E-11
        1.5910E-2 1.5903E-6 1.5877E-10 9.0256E-14""",
    "angular momentum": """
        8.3715E-1 8.1705E-3 8.3278E-5 8.3449E-7   2.0265E-1 1.9643E-4 1.9513E-7 1.9481E-10
        2.3172E-2 2.6873E-6 2.8057E-10 2.7154E-12  8.3715E-1 8.1705E-3 8.3278E-5 8.3449E-7
        2.8075E-1 2.8154E-4 2.8084E-7 2.8059E-10  3.6510E-2 3.6710E-6 3.6619E-10 3.9933E-13
        8.3715E-1 8.1218E-3 8.2721E-5 8.2885E-7   2.7813E-1 2.8401E-4 2.8359E-7 2.8344E-10
        3.9118E-2 3.8141E-6 3.8025E-10 1.9654E-13""",
}
PUBLISHED = {  # [quantity][method, step]
    quantity: dict(zip(((m, h) for m in METHODS for h in STEPS), map(float, digits.split())))
    for quantity, digits in PUBLISHED.items()
}
LONG_ENERGY = {"CG3": -0.1020, "CF3": -0.1001, "MK3": -0.1001, "CG4": 2.40e-4, "CF4": -2.26e-5, "MK4": -2.26e-5}
TABLE_V = {  # additions and multiplications for 2 and for 20 joints; divisions, square roots, trigonometric functions
    "CG2": ((191, 299), (270, 378), 6, 3, 6),
    "CF2": ((191, 299), (270, 378), 6, 3, 6),
    "MK2": ((201, 309), (265, 373), 7, 2, 4),
    "CG3": ((381, 597), (540, 756), 12, 6, 12),
    "CF3": ((208, 352), (286, 430), 6, 3, 6),
    "MK3": ((334, 478), (430, 574), 12, 3, 6),
    "CG4": ((950, 1490), (1350, 1890), 30, 15, 30),
    "CF4": ((411, 771), (542, 902), 10, 5, 10),
    "MK4": ((493, 745), (633, 885), 17, 4, 8),
}
TABLE_X = {  # FDyn, svmultadd(6), svmultadd(N), svmult(6), exp, hmmult, dexpinv
    "CG2": (2, 3, 6, 3, 3, 3, 0),
    "CF2": (2, 3, 6, 3, 3, 3, 0),
    "MK2": (2, 3, 6, 3, 2, 2, 1),
    "CG3": (3, 6, 12, 6, 6, 6, 0),
    "CF3": (3, 5, 8, 3, 3, 3, 0),
    "MK3": (3, 5, 8, 4, 3, 3, 2),
    "CG4": (5, 15, 30, 15, 15, 15, 0),
    "CF4": (4, 17, 20, 5, 5, 5, 0),
    "MK4": (4, 10, 14, 7, 4, 4, 3),
}

# --- Tables VI to VIII -------------------------------------------------------------------------------------------


def conserved(robot: gc.Robot, q, v) -> np.ndarray:
    """(..., 7): kinetic energy [J], linear momentum [N s] and angular momentum about the inertial origin [N m s]."""
    P = robot.momentum(q, v)
    return np.concatenate((robot.kinetic_energy(q, v)[..., None], P[..., 3:], P[..., :3]), axis=-1)


def drift(change) -> np.ndarray:
    """(..., 3): the size of a change (..., 7) of energy, linear and angular momentum."""
    return np.stack(
        [abs(change[..., 0]), np.linalg.norm(change[..., 1:4], axis=-1), np.linalg.norm(change[..., 4:], axis=-1)], -1
    )


def final_drift(name: str, h: float, R=None) -> np.ndarray:
    """(3,): the drifts at t = 1 of the first run; with R, of the same run begun with the base turned by R."""
    robot = models.three_spheres()
    q0 = robot.neutral()
    if R is not None:
        q0[:12] = np.hstack((R, np.zeros((3, 1)))).ravel()
    end = rollout(robot, q0, FIRST_RUN, None, 1.0, h, name, every=10_000)
    return drift(conserved(robot, end.q[-1], end.v[-1]) - conserved(robot, q0, FIRST_RUN))


def round_off(name: str, h: float) -> np.ndarray:
    """(3,): how far the drifts scatter when the whole chain is turned, which in exact arithmetic changes nothing."""
    rng = np.random.default_rng(0)
    runs = [final_drift(name, h, so3.exp(rng.normal(size=3))) for _ in range(6)]
    return np.ptp(runs, axis=0)


def agrees(ours: float, published: float) -> bool:
    """To the five digits printed."""
    return f"{ours:.4E}" == f"{published:.4E}"


def tables_vi_to_viii() -> None:
    ours = {(m, h): final_drift(m, h) for m in METHODS for h in STEPS}
    scatter = {key: round_off(*key) for key in ours}
    clean, noisy = [], []  # (ours, published) above round-off and not
    for k, quantity in enumerate(QUANTITIES):
        print(f"\nTable {('VI', 'VII', 'VIII')[k]}: drift of {quantity} at t = 1; ours, published")
        print("     " + "".join(f"{f'h = {h:g}':^26s}" for h in STEPS))
        for m in METHODS:
            line = f"{m:4s} "
            for h in STEPS:
                x, y = ours[m, h][k], PUBLISHED[quantity][m, h]
                hidden = scatter[m, h][k] > 1e-5 * y
                (noisy if hidden else clean).append((x, y))
                line += f"{x:11.4E} {y:11.4E} {'~' if hidden else ' ' if agrees(x, y) else '!'} "
            print(line)
    same = sum(agrees(*cell) for cell in clean)
    print(f"\n{same} of the {len(clean)} cells above round-off show the published five digits (! marks the others).")
    print(f"~ marks the {len(noisy)} cells whose digits round-off reaches, as turning the whole chain shows, which in")
    print(
        f"exact arithmetic changes nothing: {sum(agrees(*cell) for cell in noisy)} of them show the published digits,"
    )
    print(f"the others differ by {max(abs(x - y) for x, y in noisy):.1E} or less.")


# --- Tables V, IX, X: what a step costs ----------------------------------------------------------------------------


class Tally(float):
    """A number that counts the operations done with it."""

    counts: ClassVar[Counter] = Counter()

    def _count(kind, operation):
        def counted(self, *other):
            Tally.counts[kind] += 1
            return Tally(getattr(float, operation)(self, *other))

        return counted

    __add__, __radd__ = _count("add", "__add__"), _count("add", "__radd__")
    __sub__, __rsub__ = _count("add", "__sub__"), _count("add", "__rsub__")
    __mul__, __rmul__ = _count("mult", "__mul__"), _count("mult", "__rmul__")
    __truediv__, __rtruediv__ = _count("div", "__truediv__"), _count("div", "__rtruediv__")

    def __neg__(self):
        return Tally(-float(self))


class CountingMath:
    """The math module for Tally."""

    pi = np.pi

    def __getattr__(self, name):
        def counted(x):
            Tally.counts["sqrt" if name == "sqrt" else "trig"] += 1
            return Tally(getattr(np, name)(float(x)))

        return counted


def chain(joints: int) -> gc.Robot:
    """A free body and as many revolute joints after it."""
    inertia = gc.inertia.from_com(1.0, (0.0, 0.0, 0.1), 0.01 * np.eye(3))
    bodies = [gc.Body("base", None, gc.Joint.free(), None, inertia)]
    for i in range(joints):
        axis = np.roll((1.0, 0.0, 0.0), i)
        bodies.append(gc.Body(f"link{i}", bodies[-1].name, gc.Joint.revolute(axis, (0, 0, 0.2)), None, inertia))
    return gc.Robot.build(bodies, name=f"chain{joints}")


def count_operations() -> None:
    """Print the operations of one step besides forward dynamics as JSON; for a Python without numba's compiler."""
    from geomctrl.kernels import exponentials
    from geomctrl.kernels.runge_kutta import StageWork, rk_step
    from geomctrl.motion.rollout import plan_of

    exponentials.math = CountingMath()
    results = {}
    for joints in (2, 20):
        robot = chain(joints)
        nv = robot.nv

        def no_dynamics(model, q, v, tau, w, memory, a, nv=nv):
            for k in range(nv):
                a[k] = Tally(0.3)
            return True

        for m in METHODS:
            tableau, (q, v) = method(m), (robot.neutral(), np.full(nv, 0.5))
            q, v = (np.array([Tally(x) for x in row], dtype=object) for row in (q, v))
            # Python's own floats: numpy's would do the operation themselves and count nothing
            model, plan = (np.array(x.tolist(), dtype=object) for x in (robot._model, plan_of(tableau, 0.1, robot)))
            sizes = (99 * len(q), 99 * nv, 99 * nv, nv, len(q), nv, nv, nv)
            numbers = [np.zeros(n, dtype=object) for n in sizes]
            work = StageWork(*numbers, *[None] * (len(StageWork._fields) - len(sizes)))  # the field's: it needs none
            Tally.counts = Counter()
            rk_step(no_dynamics, model, plan, None, q, v, work, np.empty(0))
            results[f"{m} {joints}"] = Tally.counts
    print(json.dumps(results))


def counted_operations() -> dict:
    """`count_operations` in a process of its own, where the kernels are plain Python: {(method, joints): Counter}."""
    out = subprocess.run(
        [sys.executable, __file__, "--count"],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return {(k.split()[0], int(k.split()[1])): Counter(c) for k, c in json.loads(out).items()}


def vector_operations(name: str) -> tuple[int, ...]:
    """The columns of Table X from the tableau: what `kernels.runge_kutta.rk_step` does."""
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
    counts = counted_operations()
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
    print(
        "Every operation of the step's code is counted. Below a turn of 3.1 rad"
        "\nour exponential and dexp^-1 take no square root and no sine but two series of 13 to 15 terms each, right to"
        "\n1e-16 where the closed forms lose digits: hence more additions and products, and fewer of the dear ones."
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
    print("Differences: MK needs no copy of a slope beside its sums, and CF4 skips coefficients that cancel on R^N.")


# --- the second run and the figures --------------------------------------------------------------------------------


def long_drift(name: str, t_end: float = 200.0, h: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """(t (n,), change (n, 7)) along the second run: energy, linear and angular momentum against their beginnings."""
    robot = models.three_spheres()
    path = rollout(robot, robot.neutral(), SECOND_RUN, None, t_end, h, name)
    values = conserved(robot, path.q, path.v)
    return path.t, values - values[0]


def second_run(runs: dict) -> None:
    start = conserved(robot := models.three_spheres(), robot.neutral(), SECOND_RUN)
    print(f"\nSecond run: E = {start[0]:.2f} J, linear momentum {start[1:4]}, angular {start[4:]}; drift at t = 200")
    for m, (_, change) in runs.items():
        size = drift(change[-1])
        print(
            f"  {m}: kinetic energy {change[-1, 0]: .4e} (expected: {LONG_ENERGY[m]: .3g}), "
            f"linear {size[1]:.3e}, angular {size[2]:.3e}"
        )
    print(
        "  As in the paper CG4 drifts faster, ten times in energy and twice in momentum. CF4's and MK4's energies"
        "\n  agree to eight digits: without forces the velocities do not see the base's pose, and both are RK4 in them."
        "\n  The paper's slight advantage of MK4 over CF4 is not confirmed: its momenta drift 4 % more."
    )


def figures_4_to_6(out: Path, quick: bool) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    counts = np.unique(np.round(np.logspace(0, 3, 7 if quick else 25)).astype(int))
    for number, family in ((4, "CG"), (5, "CF"), (6, "MK")):
        figure = Figure(figsize=(10.5, 3.8), layout="constrained")
        axes = figure.subplots(1, 3)
        for order, marker in ((2, "o"), (3, "s"), (4, "^")):
            errors = np.array([final_drift(f"{family}{order}", 1.0 / n) for n in counts])
            for ax, column in zip(axes, errors.T):
                (line,) = ax.loglog(1.0 / counts, column, label=f"{family}{order}")
                published = [PUBLISHED[QUANTITIES[list(axes).index(ax)]][f"{family}{order}", h] for h in STEPS]
                ax.loglog(STEPS, published, marker, color=line.get_color(), fillstyle="none")
        for ax, quantity in zip(axes, QUANTITIES):
            ax.set(xlabel="h [s]", title=f"drift of {quantity}")
            ax.grid(True, alpha=0.3)
        axes[0].legend()
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


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer points in the figures, less repeatable times")
    parser.add_argument("--out", type=Path, default=Path("out"), help="where figures go")
    parser.add_argument("--count", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.count:
        count_operations()
        return
    tables_vi_to_viii()
    tables_v_ix_x(budget=1.0 if options.quick else 10.0)
    runs = {m: long_drift(m) for m in LONG_ENERGY}
    second_run(runs)
    options.out.mkdir(parents=True, exist_ok=True)
    figures_4_to_6(options.out, options.quick)
    figures_7_and_8(options.out, runs)
    print(f"\nFigs. 4 to 8: {options.out}/park_chung_fig4.png to fig8.png")


if __name__ == "__main__":
    main()
