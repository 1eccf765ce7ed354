"""Count the operations of a step of a Lie-group method by running its code: Park and Chung 2005, Tables IV and V."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from scipy.linalg import expm

import geomctrl as gc
from geomctrl.integrators.tableaus import Tableau, method

# --- numbers that count --------------------------------------------------------------------------------------------


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


# --- a general Lie group of matrices -------------------------------------------------------------------------------

Field = Callable[[float, np.ndarray], np.ndarray]  # A(t, Y) in the algebra, of Y' = Y A


class MatrixGroup:
    """A Lie group and its algebra as general matrices; counts the operations."""

    def __init__(self):
        self.counts: Counter = Counter(exp=0, com=0, mult=0)

    def advance(self, Y, X):
        """Y exp(X)."""
        self.counts["exp"] += 1
        self.counts["mult"] += 1
        return Y @ expm(X)

    def bracket(self, X, Y):
        self.counts["com"] += 1
        return X @ Y - Y @ X


def tableau_step(group: MatrixGroup, field: Field, t: float, Y, h: float, tableau: Tableau):
    """A step of a Crouch-Grossman or commutator-free method, (28), (29); common beginnings of stages are computed
    once."""
    poses, slopes = [], []
    for i, (base, rows) in enumerate(tableau.stages):
        Z = poses[base] if poses else Y
        for row in rows:
            Z = group.advance(Z, h * sum(c * K for c, K in zip(row, slopes) if c))
        poses.append(Z)
        if i < len(tableau.c):
            slopes.append(field(t + tableau.c[i] * h, Z))
    return poses[-1]


def mk3_step(group: MatrixGroup, field: Field, t: float, Y, h: float):
    """Munthe-Kaas' method with RK3 of Table III; order three needs one bracket of dexp^-1 only."""
    K1 = h * field(t, Y)
    K2 = h * field(t + h / 3, group.advance(Y, K1 / 3))
    K3 = h * field(t + 2 * h / 3, group.advance(Y, 2 / 3 * K2))
    return group.advance(Y, (K1 + 3 * K3 + group.bracket(K2, K3)) / 4)


def mk4_step(group: MatrixGroup, field: Field, t: float, Y, h: float):
    """The same on RK4, with two brackets: Munthe-Kaas and Owren 1999, the paper's [29], with signs for Y' = Y A."""
    K1 = h * field(t, Y)
    K2 = h * field(t + h / 2, group.advance(Y, K1 / 2))
    K3 = h * field(t + h / 2, group.advance(Y, K2 / 2 + group.bracket(K1, K2) / 8))
    K4 = h * field(t + h, group.advance(Y, K3))
    return group.advance(Y, (K1 + 2 * K2 + 2 * K3 + K4 + group.bracket(K1, K4) / 2) / 6)


def matrix_group_step(name: str, group: MatrixGroup, field: Field, t: float, Y, h: float):
    """A step of "CG3", "MK4", ... on a general group."""
    if name.startswith("MK"):
        return {"MK3": mk3_step, "MK4": mk4_step}[name](group, field, t, Y, h)
    return tableau_step(group, field, t, Y, h, method(name))


def operations_on_a_general_group(name: str) -> tuple[int, int, int]:
    """(exponentials, commutators, products) of one step: Table IV."""
    group = MatrixGroup()
    matrix_group_step(name, group, lambda t, Y: (1.0 + t) * Y, 0.0, np.diag((1.0, 2.0)), 0.1)
    return tuple(group.counts[kind] for kind in ("exp", "com", "mult"))


# --- a step of a robot -----------------------------------------------------------------------------------------------


def chain(joints: int) -> gc.Robot:
    """A free body followed by this many revolute joints."""
    inertia = gc.inertia.from_com(1.0, (0.0, 0.0, 0.1), 0.01 * np.eye(3))
    bodies = [gc.Body("base", None, gc.Joint.free(), None, inertia)]
    for i in range(joints):
        axis = np.roll((1.0, 0.0, 0.0), i)
        bodies.append(gc.Body(f"link{i}", bodies[-1].name, gc.Joint.revolute(axis, (0, 0, 0.2)), None, inertia))
    return gc.Robot.build(bodies, name=f"chain{joints}")


def count_operations(methods: list[str]) -> None:
    """Print the operations of one step besides forward dynamics as JSON; for a Python without numba's compiler."""
    from geomctrl.kernels import exponentials
    from geomctrl.kernels.marches import StageWork, rk_step
    from geomctrl.motion.trajectory import plan_of

    exponentials.math = CountingMath()
    results = {}
    for joints in (2, 20):
        robot = chain(joints)
        nv = robot.nv

        def no_dynamics(model, q, v, tau, w, memory, a, nv=nv):
            for k in range(nv):
                a[k] = Tally(0.3)
            return True

        for m in methods:
            tableau, (q, v) = method(m), (robot.neutral(), np.full(nv, 0.5))
            q, v = (np.array([Tally(x) for x in row], dtype=object) for row in (q, v))
            # Python's floats: numpy's would do the operation themselves, so that it is not counted
            model, plan = (np.array(x.tolist(), dtype=object) for x in (robot._model, plan_of(tableau, 0.1, robot)))
            sizes = (99 * len(q), 99 * nv, 99 * nv, nv, len(q), nv, nv, nv)
            numbers = [np.zeros(n, dtype=object) for n in sizes]
            work = StageWork(
                *numbers, *[None] * (len(StageWork._fields) - len(sizes))
            )  # the field needs no mathematical functions
            Tally.counts = Counter()
            rk_step(no_dynamics, model, plan, None, q, v, work, np.empty(0))
            results[f"{m} {joints}"] = Tally.counts
    print(json.dumps(results))


def counted_operations(methods: tuple[str, ...]) -> dict:
    """`count_operations` in a separate process, where the kernels are plain Python: {(method, joints): Counter}."""
    out = subprocess.run(
        [sys.executable, __file__, *methods],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return {(k.split()[0], int(k.split()[1])): Counter(c) for k, c in json.loads(out).items()}


if __name__ == "__main__":
    count_operations(sys.argv[1:])
