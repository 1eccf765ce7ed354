"""Cost of derivatives relative to Pinocchio's in the same process, and of rates relative to our inverse dynamics.

Peers take turns as in `benchmark_dynamics`. Our side is the public method with its validation.
    python experiments/benchmarks/benchmark_derivatives.py [--quick]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import geomctrl as gc
from geomctrl import derivatives, interop, models
from geomctrl.papers import sensitivities

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.results import Results
from lib.robots import chain, humanoid, pin, pinocchio_model
from lib.script import Quick, run_script
from lib.timing import best_of, table

TARGETS = {  # ratios to reach at 7 and 30 joints
    "inverse_dynamics_derivatives": (1.5, 1.0),
    "forward_dynamics_derivatives": (1.5, 1.0),
    "inverse_dynamics_rates to tau''": (4.0, 4.0),
}
RESULTS = Results("derivatives")


def single_calls(robot: gc.Robot, budget: float) -> None:
    """One state a call, from Python."""
    rng = np.random.default_rng(0)
    q, (v, a, tau, x, y, z) = robot.random_configuration(rng), rng.normal(size=(6, robot.nv))
    model = pinocchio_model(robot)
    data = model.createData()
    pq, pv = interop.to_pinocchio(robot, model, q, v)
    pa, ptau = (interop.to_pinocchio(robot, model, q, x)[1] for x in (a, tau))
    motion = np.stack((v, a, x, y))
    cases = {
        "inverse_dynamics_derivatives": (
            lambda: robot.inverse_dynamics_derivatives(q, v, a),
            {"computeRNEADerivatives": lambda: pin.computeRNEADerivatives(model, data, pq, pv, pa)},
        ),
        "forward_dynamics_derivatives": (
            lambda: robot.forward_dynamics_derivatives(q, v, tau),
            {"computeABADerivatives": lambda: pin.computeABADerivatives(model, data, pq, pv, ptau)},
        ),
        "mass_matrix_inverse": (
            lambda: robot.mass_matrix_inverse(q),
            {"computeMinverse": lambda: pin.computeMinverse(model, data, pq)},
        ),
        "inverse_dynamics_rates to tau''": (
            lambda: derivatives.inverse_dynamics_rates(robot, q, motion),
            {"our inverse_dynamics": lambda: robot.inverse_dynamics(q, v, a)},
        ),
        "inverse_dynamics_derivatives_along": (
            lambda: sensitivities.inverse_dynamics_derivatives_along(robot, q, v, a, x, y, z),
            {"our derivatives": lambda: robot.inverse_dynamics_derivatives(q, v, a)},
        ),
        "second derivatives, all": (
            lambda: derivatives.inverse_dynamics_second_derivatives(robot, q, v, a),
            {"our derivatives": lambda: robot.inverse_dynamics_derivatives(q, v, a)},
        ),
        "geometric_sensitivity, all": (
            lambda: sensitivities.geometric_sensitivity(robot, q, v, a),
            {"our derivatives": lambda: robot.inverse_dynamics_derivatives(q, v, a)},
        ),
        "linearize": (
            lambda: derivatives.linearize(robot, q, v, tau),
            {"computeABADerivatives": lambda: pin.computeABADerivatives(model, data, pq, pv, ptau)},
        ),
    }
    rows, missed = [], []
    for label, (ours, peers) in cases.items():
        times = best_of({"ours": ours, **peers}, budget)
        rows.append((label, times.pop("ours"), times))
        RESULTS.peers("single calls", robot, label, rows[-1][1], times)
        column = {7: 0, 30: 1}.get(robot.nv)
        if label in TARGETS and column is not None:
            ratio, limit = rows[-1][1] / min(times.values()), TARGETS[label][column]
            missed += [f"  {label}: ratio {ratio:.2f}, target {limit}"] if ratio > limit else []
    table(f"{robot.name}: {robot.nv} degrees of freedom, single calls from Python", rows)
    if robot.nv in (7, 30):
        print("\n".join(["  MISSED", *missed]) if missed else "  every target reached")


def batches(robot: gc.Robot, size: int, budget: float) -> None:
    """Microseconds a state, ours in one call, Pinocchio in a Python loop."""
    rng = np.random.default_rng(0)
    q = np.array([robot.random_configuration(rng) for _ in range(size)])
    v, a = rng.normal(size=(2, size, robot.nv))
    model = pinocchio_model(robot)
    data = model.createData()

    def loop(function):
        for row in zip(q, v, a):
            function(model, data, *row)

    cases = {
        "inverse_dynamics_derivatives": (robot.inverse_dynamics_derivatives, pin.computeRNEADerivatives),
        "forward_dynamics_derivatives": (robot.forward_dynamics_derivatives, pin.computeABADerivatives),
    }
    print(f"\n{robot.name}: batches of {size}")
    for label, (ours, peer) in cases.items():
        times = best_of({"ours": lambda f=ours: f(q, v, a), "peer": lambda f=peer: loop(f)}, budget)
        rate = f"throughput {times['peer'] / times['ours']:.2f} x a loop over Pinocchio"
        print(f"  {label:34s} {times['ours'] / size * 1e6:9.2f} us a state   {rate}")
        state, gain = times["ours"] / size * 1e6, times["peer"] / times["ours"]
        RESULTS.row("batches", robot=robot.name, states=size, term=label, state_us=state, throughput=gain)


def main(*, quick: Quick = False) -> None:
    budget = 0.15 if quick else 1.5
    if pin is None:
        raise SystemExit("Pinocchio is not installed: pip install 'geomctrl[bench]'")
    for robot in (models.panda(), chain(30), humanoid()):
        single_calls(robot, budget)
    for robot in (models.panda(), chain(30)):
        batches(robot, 1000, budget)
    RESULTS.save(quick)


if __name__ == "__main__":
    run_script(main)
