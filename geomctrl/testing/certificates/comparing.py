"""The trace that is certified against the Python that runs, at states all over the box."""

from __future__ import annotations

from typing import Any

import numpy as np

from geomctrl.control.plant import Plant
from geomctrl.tracing.proofs.interpreted import valued
from geomctrl.tracing.untraceable import UntraceableError

STATES = 64
ALLOWED = 1e-7  # of the largest value, or of 1: what rounding may make of M^-1


def compare_with_python(controller: Any, plant: Plant, equations: Any, box: Any, seed: int) -> None:
    """Raise UntraceableError where V, the promised rate, or the accelerations of the loop are other ones in Python.

    At the corner states, the equilibrium and random states of the box, each at a time of its own.
    """
    e, rng, lo, hi = equations, np.random.default_rng(seed), box.lo[0], box.hi[0]
    x = rng.uniform(lo, hi, (STATES, len(lo))) * rng.choice([1.0, 1.0, 0.1, 1e-3], (STATES, 1))
    x[0], x[1 : 1 + STATES // 4] = 0.0, np.where(rng.random((STATES // 4, len(lo))) < 0.5, lo, hi)
    t = np.concatenate(([0.0], rng.exponential(3.0, STATES - 1)))
    q, v = e.q_d + x[:, : e.n], x[:, e.n :]
    if e.timed:
        t = rng.uniform(box.p_lo[0, -1], box.p_hi[0, -1], STATES)
    p = np.tile(plant.robot.parameters.ravel(), (STATES, 1))
    given = {**e.at(x, np.column_stack([p, t]) if e.timed else p), e.loop.t.index: t}
    traced = valued(e.graph, [e.loop.value, e.loop.rate, *e.loop.field[e.n : 2 * e.n]], given, STATES)
    names = ["V", "the promised rate", *(f"vdot[{i}]" for i in range(e.n))]
    called = np.array([_called(controller, plant, *state) for state in zip(t, q, v)])
    size = np.maximum(np.abs(called).max(0, initial=0.0, where=np.isfinite(called)), 1.0)
    good = (np.abs(traced - called) <= ALLOWED * size) | (np.isnan(traced) & np.isnan(called))
    if not good.all():
        k, i = (int(a[0]) for a in np.nonzero(~good))
        raise UntraceableError(
            f"the traced loop is not the one that runs: {names[i]} is {traced[k, i]:.9g} traced, {called[k, i]:.9g} in"
            f" Python at t = {t[k]:.6g}, q = {q[k].tolist()}, v = {v[k].tolist()}"
        )


def _called(controller: Any, plant: Plant, t: float, q: np.ndarray, v: np.ndarray) -> list[float]:
    """(V, promised rate, vdot), nan where Python raises."""
    t = float(t)
    try:
        with np.errstate(all="ignore"):
            V, rate = controller.lyapunov(t, q, v, None, plant)
            vdot = plant.acceleration(t, q, v, controller(t, q, v, None).tau)
    except Exception:  # whatever a law does there: no number
        return [np.nan] * (2 + len(v))
    return [float(V), float(rate), *np.asarray(vdot, float).tolist()]
