"""Cost of the recursive Newton-Euler algorithm in Mueller's three representations, for chains of increasing length.

Chains of revolute joints about random axes; microseconds per state of the compiled recursions, one state after another
in one call, best of turns taken by turn. Last, what `Robot.inverse_dynamics` makes of the body-fixed one in a batch:
sixteen states side by side. Mueller 2018 section 4 counts operations: body-fixed 3 (n - 1) frame transformations of
screws and 2 n - 1 brackets; spatial n of screws, n of inertias and 2 n - 1 brackets; hybrid 3 n - 3 shifts, n rotations
of screws, n of inertias and 3 n - 1 brackets.

    python experiments/benchmarks/benchmark_representations.py [--quick]
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

from geomctrl import testing
from geomctrl.kernels import lanes, newton_euler
from geomctrl.kernels.representations import hybrid_inverse_dynamics, spatial_inverse_dynamics

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.results import Results
from lib.script import Quick, run_script

FORMS = ("body", "spatial", "hybrid", "body, 16 at once")
SEQUENTIAL_STATES = lanes.LANES - 1  # states that the body-fixed recursion takes one after another


def microseconds(robot, turns: int, repeat: int = 40) -> dict[str, float]:
    """Per state and recursion; also checks that they agree."""
    rng, none = np.random.default_rng(0), np.empty((0, 6 * robot.nbodies))
    few, many = (rng.normal(size=(3, states, robot.nv)) for states in (SEQUENTIAL_STATES, 16 * lanes.LANES))
    run = {
        "body": partial(newton_euler.inverse_dynamics.many, robot._model, *few),
        "spatial": partial(spatial_inverse_dynamics.many, robot._model, *few, none),
        "hybrid": partial(hybrid_inverse_dynamics.many, robot._model, *few, none),
        "body, 16 at once": partial(newton_euler.inverse_dynamics.many, robot._model, *many),
    }
    best = dict.fromkeys(FORMS, np.inf)
    for _ in range(turns):
        for form in FORMS:
            start = time.perf_counter()
            for _ in range(repeat):
                tau = run[form]()
            best[form] = min(best[form], (time.perf_counter() - start) / (repeat * len(tau)) * 1e6)
    expected = run["body"]()
    for form in FORMS[:3]:
        assert np.abs(run[form]() - expected).max() < 1e-11 * np.abs(expected).max(), form
    return best


def main(*, quick: Quick = False) -> None:
    print(
        "inverse dynamics per state: us, and ns per joint, in each representation; * times the body-fixed recursion\n"
    )
    print(f"{'':6s}" + "".join(f"{form:^26s}" for form in FORMS))
    print(f"{'joints':6s}" + f"{'us':>9s}{'ns/joint':>10s}{'*':>7s}" * len(FORMS))
    results = Results("representations")
    for n in (2, 4, 7, 15, 30) if quick else (2, 4, 7, 15, 30, 60, 120):
        robot = testing.random_robot(np.random.default_rng(n), ["revolute"] * n, list(range(-1, n - 1)))
        x = microseconds(robot, 20 if quick else 100)
        print(f"{n:6d}" + "".join(f"{x[f]:9.2f}{1e3 * x[f] / n:10.0f}{x[f] / x['body']:7.2f}" for f in FORMS))
        results.row("inverse dynamics", joints=n, **{f"{f} [us]": x[f] for f in FORMS})
    results.save(quick)


if __name__ == "__main__":
    run_script(main)
