"""What the structure-preserving methods keep in a long run, what they do not, and at what cost.

Two systems: Park and Chung's three spheres turning about a mass centre at rest (no forces: energy and both momenta are
to stay), and a falling floating robot, the A1 quadruped with limp legs and no ground (gravity: energy, m g t and the
vertical angular momentum). Figures go to out/.

    python experiments/structure_preserving.py [--quick]
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path

import numpy as np

from geomctrl import models
from geomctrl.errors import IntegrationError
from geomctrl.rollout import rollout
from geomctrl.structure_preserving import energy_momentum, momentum_form, variational

METHODS = {
    "MK2": partial(rollout, method="MK2"),
    "MK4": partial(rollout, method="MK4"),
    "momentum form, MK2": partial(momentum_form, method="MK2"),
    "momentum form, MK4": partial(momentum_form, method="MK4"),
    "variational": variational,
    "energy-momentum": energy_momentum,
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
    ax.legend()
    FigureCanvasAgg(figure).print_figure(out / "structure_preserving_work.png", dpi=130)


def drift_figure(out: Path, curves: dict) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4), layout="constrained")
    axes = figure.subplots(1, 3, sharex=True)
    for name, (t, *errors) in curves.items():
        for ax, error in zip(axes, errors):
            ax.loglog(t[1:], np.maximum.accumulate(error[1:]) + 1e-16, label=name)
    for ax, title in zip(axes, ("energy [J]", "linear momentum [N s]", "angular momentum [N m s]")):
        ax.set(xlabel="t [s]", title=title)
        ax.grid(True, alpha=0.3)
    axes[0].legend(fontsize="small")
    figure.suptitle("Three spheres: the largest error up to time t")
    FigureCanvasAgg(figure).print_figure(out / "structure_preserving_drift.png", dpi=130)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the time")
    parser.add_argument("--out", type=Path, default=Path("out"), help="where figures go")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    curves = long_run(1000.0 if options.quick else 10_000.0, 0.1, 0.1 if options.quick else 1.0)
    falling(1.0, 0.005)
    drift_figure(options.out, curves)
    work_precision(options.out, options.quick)
    print(f"\nFigures: {options.out}/structure_preserving_drift.png, structure_preserving_work.png")


if __name__ == "__main__":
    main()
