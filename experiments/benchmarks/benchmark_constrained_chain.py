"""Cost of simulating a chain of bars on ball joints in maximal coordinates, with up to a thousand bodies.

The skyline factors of J M^-1 J^T and the kernels over bodies make a field evaluation linear in the number of bodies;
scipy's sparse LU of the whole matrix of (3) is timed beside it, and, while it fits, numpy's dense solution.

    python experiments/benchmarks/benchmark_constrained_chain.py [--quick]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from geomctrl import inertia, integrators
from geomctrl.papers.constrained.integration import integrate_index1
from geomctrl.papers.constrained.joints import ConstrainedBody, Constraint
from geomctrl.papers.constrained.maximal import ConstrainedSystem

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.script import Quick, run_script

BAR = inertia.from_com(2.7, (0, 0, 0), np.diag([0.0028, 0.0096, 0.0113]))  # kg, kg m^2: 0.2 x 0.1 x 0.05 m of aluminium


def chain(n: int) -> ConstrainedSystem:
    """n bars on a hook, stretched along x and let go."""
    bodies, joints = [], []
    for i in range(n):
        pose = np.eye(4)
        pose[0, 3] = 0.1 + 0.2 * i
        bodies.append(ConstrainedBody(f"bar {i}", BAR, pose))
        before = f"bar {i - 1}" if i else "world"
        joints.append(
            Constraint(
                "spherical", f"joint {i}", (before, f"bar {i}"), point=(0.1 if i else 0.0, 0, 0), point_b=(-0.1, 0, 0)
            )
        )
    return ConstrainedSystem(bodies, joints)


def best_of(function, budget: float) -> float:
    """Shortest time [s] of repeated calls."""
    function()
    best, end = np.inf, time.perf_counter() + budget
    while time.perf_counter() < end:
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best


def lu_of_the_whole(system: ConstrainedSystem, y: np.ndarray):
    """A function that solves (3) with scipy's sparse LU, its matrix already assembled."""
    J = sp.csr_array(system.jacobian(y))
    M = sp.block_diag([inertia.spatial(pi) for pi in system.parameters])
    matrix = sp.csc_array(sp.block_array([[M, -J.T], [J, None]]))
    right = np.ones(matrix.shape[0])
    return lambda: splu(matrix).solve(right)


def main(*, quick: Quick = False) -> None:
    budget = 0.2 if quick else 1.0
    print(
        "bodies   field [ms]  per body [us]   MK4 step [ms]   sparse LU [ms]   build [s]   |g| after 20 steps of 1 ms"
    )
    for n in (1, 10, 100) if quick else (1, 10, 30, 100, 300, 1000):
        start = time.perf_counter()
        system = chain(n)
        build = time.perf_counter() - start
        y = system.state()
        field = best_of(lambda system=system, y=y: system.field(0.0, y), budget)
        step = best_of(lambda s=system, y=y: integrators.step("MK4", s.field, 0.0, y, 1e-3, s.group), budget)
        lu = best_of(lu_of_the_whole(system, y), budget)
        end = integrate_index1(system, y, (0.0, 0.02), 1e-3, every=100).y[-1]
        print(
            f"{n:6d} {1e3 * field:12.3f} {1e6 * field / n:14.2f} {1e3 * step:15.3f} {1e3 * lu:16.3f} {build:11.2f}"
            f"   {system.violation(end).max():.1e}"
        )


if __name__ == "__main__":
    run_script(main)
