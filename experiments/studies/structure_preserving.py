"""Conserved quantities and cost of the structure-preserving methods in a long simulation.

Three systems: Park and Chung's three spheres turning about a mass centre at rest (no forces: energy and both momenta
must be conserved); a falling floating robot, the A1 quadruped with limp legs and no ground (gravity: energy, m g t and
the vertical angular momentum); and Mueller and Terze's two floating bars on a ball joint in maximal coordinates, where
the constraint must also hold, with generalized-alpha and the index-1 equations in addition to the methods for relative
coordinates. Figures go to out/.

    python experiments/studies/structure_preserving.py [--quick]
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

import geomctrl as gc
from geomctrl import models
from geomctrl.errors import IntegrationError
from geomctrl.lie.groups import SE3
from geomctrl.motion.rollout import rollout
from geomctrl.papers import constrained
from geomctrl.papers.constrained import integration as generalized_alpha

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib import mueller_terze
from lib.script import Out, Quick, run_script

METHODS = {
    "MK2": partial(rollout, method="MK2"),
    "MK4": partial(rollout, method="MK4"),
    "momentum form, MK2": partial(rollout, method="momentum_form", tableau="MK2"),
    "momentum form, MK4": partial(rollout, method="momentum_form", tableau="MK4"),
    "variational": partial(rollout, method="variational"),
    "energy-momentum": partial(rollout, method="energy_momentum"),
}


def spheres():
    """The three spheres with the paper's second run's spin, the mass centre at rest."""
    robot = models.three_spheres()
    P = np.array([robot.momentum(robot.neutral(), e)[3:] for e in np.eye(robot.nv)]).T
    v = np.array([0.3, 0.3, 0.3, 0.1, 0.1, 0.1, 0.4, 0.4])
    v[3:6] -= np.linalg.solve(P[:, 3:6], P @ v)
    return robot, robot.neutral(), v


def quadruped():
    robot = models.quadruped()
    v = np.random.default_rng(0).normal(size=robot.nv)
    return robot, robot.neutral(), v


def seconds_per_step(call, robot, q, v, dt, budget):
    """Best of rounds of 200 steps."""
    call(robot, q, v, None, 200 * dt, dt, every=200)
    best, end = np.inf, time.perf_counter() + budget
    while time.perf_counter() < end:
        start = time.perf_counter()
        call(robot, q, v, None, 200 * dt, dt, every=200)
        best = min(best, (time.perf_counter() - start) / 200)
    return best


def long_run(t_end: float, dt: float, budget: float) -> dict:
    """Print the table of the three spheres; {method: (t, energy error, |linear|, |angular| momentum drift)}."""
    robot, q, v = spheres()
    E0, P0 = robot.energy(q, v), robot.momentum(q, v)
    print(f"Three spheres, {t_end:g} s at h = {dt:g}: E = {E0:.2f} J, angular momentum {np.linalg.norm(P0):.1f} N m s")
    print(
        f"{'':20s} {'energy: largest, and its mean over':^37s} {'momentum drift':^21s}  {'error':>9s} {'us/step':>8s}"
    )
    print(
        f"{'':20s} {'error [J]':>10s} {'first 10 %':>13s} {'last 10 %':>12s} {'linear':>10s} {'angular':>10s}  at 2 s"
    )
    exact = rollout(robot, q, v, None, 2.0, 1e-3, "MK8", every=2000)
    curves = {}
    for name, call in METHODS.items():
        cost = seconds_per_step(call, robot, q, v, dt, budget)
        try:
            path, note = call(robot, q, v, None, t_end, dt, every=10), ""
        except IntegrationError as stopped:  # the energy has grown until no step could be made
            path = stopped.solution
            note = f"  stopped at t = {path.t[-1]:.0f} s"
        energy = robot.energy(path.q, path.v) - E0
        P = robot.momentum(path.q, path.v) - P0
        linear, angular = np.linalg.norm(P[:, 3:], axis=1), np.linalg.norm(P[:, :3], axis=1)
        tenth = len(energy) // 10
        near = call(robot, q, v, None, 2.0, dt, every=1000)
        error = np.linalg.norm(robot.difference(exact.q[-1], near.q[-1]))
        print(
            f"{name:20s} {np.abs(energy).max():10.1e} {energy[:tenth].mean():13.1e} {energy[-tenth:].mean():12.1e}"
            f" {linear.max():10.1e} {angular.max():10.1e} {error:10.1e} {cost * 1e6:8.2f}{note}"
        )
        curves[name] = path.t, np.abs(energy), linear, angular
    return curves


def falling(t_end: float, dt: float) -> None:
    robot, q, v = quadruped()
    E0, P0, weight = robot.energy(q, v), robot.momentum(q, v), robot.parameters[:, 0].sum() * robot.gravity
    print(f"\nFalling quadruped, limp, {t_end:g} s at h = {dt:g}: largest error of")
    print(f"{'':20s} {'energy [J]':>11s} {'P - m g t':>11s} {'vertical angular momentum':>27s}")
    for name, call in METHODS.items():
        path = call(robot, q, v, None, t_end, dt)
        P = robot.momentum(path.q, path.v) - P0
        P[:, 3:] -= path.t[:, None] * weight
        energy = np.abs(robot.energy(path.q, path.v) - E0).max()
        print(f"{name:20s} {energy:11.1e} {np.abs(P[:, 3:]).max():11.1e} {np.abs(P[:, 2]).max():27.1e}")


# --- with a constraint -------------------------------------------------------------------------------------------


def pair() -> tuple[gc.Robot, np.ndarray, np.ndarray]:
    """The floating pair in relative coordinates: the first bar's frame at its centre, the second's at the joint."""
    half, I = mueller_terze.HALF, mueller_terze.bar("", None).inertia
    joint = np.eye(4)
    joint[0, 3] = half
    about_end = gc.inertia.from_com(I[0], (half, 0, 0), np.diag(I[[4, 6, 9]]))
    bars = [
        gc.Body("bar 1", None, gc.Joint.free(), None, I),
        gc.Body("bar 2", "bar 1", gc.Joint.spherical(), joint, about_end),
    ]
    robot = gc.Robot.build(bars, gravity=(0, 0, 0))
    case = mueller_terze.floating_pair(SE3())
    w1, w2 = case.system.twists(case.y0)[:, :3]
    return robot, robot.neutral(), np.concatenate((w1, np.zeros(3), w2 - w1))


def momentum_of(system: constrained.ConstrainedSystem, y: np.ndarray) -> np.ndarray:
    """Spatial momentum (..., 6), angular part first, of bodies whose frames are at their mass centres."""
    T, V, parameters = system.poses(y), system.twists(y), system.parameters
    R, p = T[..., :3, :3], T[..., :3, 3]
    linear = parameters[:, :1] * np.einsum("...ij,...j->...i", R, V[..., 3:])
    spin = np.einsum("...ij,...j->...i", R, parameters[:, [4, 6, 9]] * V[..., :3])  # these inertias are diagonal
    return np.concatenate((np.cross(p, linear) + spin, linear), axis=-1).sum(axis=-2)


def pair_run(t_end: float, dt: float) -> dict:
    """Print the table of the floating pair; {method: (t, energy error, linear, angular momentum drift, |g|)}."""
    robot, q, v = pair()
    curves, every = {}, 10
    print(f"\nTwo floating bars on a ball joint, {t_end:g} s at h = {dt:g}: E = {robot.energy(q, v):.2f} J, largest")
    print(f"{'':35s} {'energy':>9s} {'and in the last':>15s} {'momentum drift':^19s} {'|g|':>9s} {'|dg/dt|':>9s}")
    units = f"{'error [J]':>9s} {'10 %, mean':>15s} {'linear':>9s} {'angular':>9s} {'[m]':>9s} {'[m/s]':>9s}"
    print(f"{'':35s} {units} us/step")

    def row(name, t, E, P, g, gdot, cost, note):
        energy, P = E - E[0], P - P[0]
        linear, angular = np.linalg.norm(P[:, 3:], axis=1), np.linalg.norm(P[:, :3], axis=1)
        last = energy[-max(1, len(energy) // 10) :].mean()
        print(
            f"{name:35s} {np.abs(energy).max():9.1e} {last:15.1e} {linear.max():9.1e} {angular.max():9.1e}"
            f" {g.max():9.1e} {gdot.max():9.1e} {cost * 1e6:7.1f}{note}"
        )
        curves[name] = t, np.abs(energy), linear, angular, g

    for label, group in mueller_terze.GROUPS.items():
        system, y0 = mueller_terze.floating_pair(group)[1:]
        runs = {
            "MK4": partial(constrained.integrate_index1, system, y0, (0.0, t_end), dt, "MK4", every=every),
            "MK4, projected": partial(
                constrained.integrate_index1, system, y0, (0.0, t_end), dt, "MK4", project=True, every=every
            ),
        }
        for rho in (1.0, 0.9, 0.5, 0.0):
            runs[f"generalized-alpha, rho = {rho:g}"] = partial(
                generalized_alpha.integrate_index3, system, y0, (0.0, t_end), dt, rho=rho, every=every
            )
        for name, run in runs.items():
            start = time.perf_counter()
            try:
                path, note = run(), ""
            except IntegrationError as stopped:
                path, note = stopped.solution, f"  stopped at t = {stopped.solution.t[-1]:.3g} s"
            cost = (time.perf_counter() - start) / max(path.n_steps, 1)
            g, gdot = system.violation(path.y).max(axis=-1), system.violation(path.y, "velocity").max(axis=-1)
            row(f"{label} {name}", path.t, system.energy(path.y), momentum_of(system, path.y), g, gdot, cost, note)
    for name, call in METHODS.items():
        cost = seconds_per_step(call, robot, q, v, dt, 0.1)
        path = call(robot, q, v, None, t_end, dt, every=every)
        none = np.zeros(len(path.t))  # the joint is in the coordinates
        P = robot.momentum(path.q, path.v)
        row(f"relative {name}", path.t, robot.energy(path.q, path.v), P, none, none, cost, "")
    return curves


# --- figures -----------------------------------------------------------------------------------------------------


def work_precision(out: Path, quick: bool) -> None:
    """Error after 2 s against time, for the three spheres."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    robot, q, v = spheres()
    exact = rollout(robot, q, v, None, 2.0, 1e-3, "MK8", every=2000)
    figure = Figure(figsize=(6.5, 4.5), layout="constrained")
    ax = figure.subplots()
    for name, call in METHODS.items():
        points = []
        for n in (8, 32, 128, 512) if quick else (5, 10, 20, 40, 80, 160, 320, 640, 1280):
            best = np.inf
            for _ in range(2 if quick else 5):
                start = time.perf_counter()
                end = call(robot, q, v, None, 2.0, 2.0 / n, every=n)
                best = min(best, time.perf_counter() - start)
            points.append((best, np.linalg.norm(robot.difference(exact.q[-1], end.q[-1]))))
        ax.loglog(*zip(*points), "o-", label=name)
    ax.set(xlabel="time for 2 s of motion [s]", ylabel="error of the configuration", title="three spheres")
    ax.grid(True, alpha=0.3)
    ax.legend(loc="upper right")
    FigureCanvasAgg(figure).print_figure(out / "structure_preserving_work.png", dpi=130)


def drift_figure(path: Path, title: str, curves: dict) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    titles = ("energy [J]", "linear momentum [N s]", "angular momentum [N m s]", "constraint [m]")
    columns = len(next(iter(curves.values()))) - 1
    figure = Figure(figsize=(3.6 * columns, 5), layout="constrained")
    axes = figure.subplots(1, columns, sharex=True)
    styles = {"SE": "-", "SO": "--", "re": ":"}
    for k, (name, (t, *errors)) in enumerate(curves.items()):
        for ax, error in zip(axes, errors):
            if np.any(error > 0.0):
                worst = np.maximum.accumulate(error[1:]) + 1e-17
                ax.loglog(t[1:], worst, styles.get(name[:2], "-"), color=f"C{k % 6}", label=name)
    for ax, name in zip(axes, titles):
        ax.set(xlabel="t [s]", title=name)
        ax.grid(True, alpha=0.3)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3 if columns > 3 else 6, fontsize="small")
    figure.suptitle(f"{title}: the largest error up to time t")
    FigureCanvasAgg(figure).print_figure(path, dpi=130)


def main(*, quick: Quick = False, out: Out = Path("out")) -> None:
    out.mkdir(parents=True, exist_ok=True)
    curves = long_run(1000.0 if quick else 10_000.0, 0.1, 0.1 if quick else 1.0)
    drift_figure(out / "structure_preserving_drift.png", "Three spheres", curves)
    falling(1.0, 0.005)
    curves = pair_run(10.0 if quick else 60.0, 0.005)
    drift_figure(out / "structure_preserving_constrained.png", "Two floating bars on a ball joint", curves)
    work_precision(out, quick)
    names = "structure_preserving_drift.png, structure_preserving_constrained.png, structure_preserving_work.png"
    print(f"\nFigures in {out}: {names}")


if __name__ == "__main__":
    run_script(main)
