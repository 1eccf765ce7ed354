"""Search for states that refute a claim, by ascent from many starts, and for surfaces on which a function is zero.

A function that is identically zero on a surface through the box is not definite.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from geomctrl.tracing.derivatives import pullback, tangents
from geomctrl.tracing.proofs.identities import degree_in, identical
from geomctrl.tracing.proofs.interpreted import Program, valued
from geomctrl.tracing.proofs.substitution import substituted

from .equations import Equations
from .forms import solved
from .quadratic import Boxes

STARTS, STEPS = 64, 40
ZERO_BAND = 1e-4  # relative to the size of F: a largest F closer to zero is improved along the set F = 0


class LargestExcess(NamedTuple):
    """The largest F minus its allowed value, and where: x (2n,), parameters."""

    excess: float
    x: np.ndarray
    p: np.ndarray


class Search:
    """F of the original loop, with its derivatives in state and parameters, numerically."""

    def __init__(self, e: Equations, F: Any):
        self.e = e
        slopes = pullback(e.graph, [F], [1.0], [*e.x, *e.parameters])
        self.program = Program(e.graph, [F, *slopes])

    def __call__(self, x: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(F, dF/dx, dF/dp) at states (m, 2n) with parameters (m, k)."""
        rows = self.program.values(self.e.at(x, p), len(x))
        n = len(self.e.x)
        return rows[:, 0], rows[:, 1 : 1 + n], rows[:, 1 + n :]


def search(
    e: Equations, F: Any, box: Boxes, ball: np.ndarray | None, allowed: float, seed: int = 0, size: float = 0.0
) -> LargestExcess:
    """Maximise F, an expression in x and the parameters, on the box outside the ball, by ascent.

    size: of F as a quadratic form; values near zero relative to it are refined.
    """
    find, rng = Search(e, F), np.random.default_rng(seed)
    lo, hi, p_lo, p_hi = box.lo[0], box.hi[0], box.p_lo[0], box.p_hi[0]
    half = 0.5 * (hi - lo)
    x = rng.uniform(lo, hi, (STARTS, len(lo))) * rng.uniform(0.0, 1.0, (STARTS, 1)) ** 2
    x[: STARTS // 4] = np.where(rng.random((STARTS // 4, len(lo))) < 0.5, lo, hi)
    p = at_random(e, p_lo, p_hi, STARTS, rng)
    x = _outside(x, ball, lo, hi)
    best, best_x, best_p = np.full(STARTS, -np.inf), x, p
    for step in range(STEPS):
        F, slope, of_p = find(x, p)
        better = best < F
        best = np.where(better, F, best)
        best_x, best_p = np.where(better[:, None], x, best_x), np.where(better[:, None], p, best_p)
        ends = np.where(of_p > 0.0, p_hi, np.where(of_p < 0.0, p_lo, p))
        p = np.concatenate([ends[:, e.robots], at_random(e, p_lo, p_hi, STARTS, rng)[:, e.robots.stop :]], 1)
        if e.timed:  # near the best times, or random
            near = best_p[:, -1] + 0.3 * 0.87**step * (p_hi[-1] - p_lo[-1]) * rng.normal(size=STARTS)
            p[:, -1] = np.where(rng.random(STARTS) < 0.7, np.clip(near, p_lo[-1], p_hi[-1]), p[:, -1])
        direction = np.nan_to_num(slope) * half
        length = np.maximum(np.linalg.norm(direction, axis=1, keepdims=True), 1e-300)
        reach = 0.4 * 0.87**step * np.maximum(np.abs(best_x / half).max(1, keepdims=True), 1e-3)
        x = _outside(np.clip(best_x + reach * half * direction / length, lo, hi), ball, lo, hi)
        if step % 12 == 11:  # restart at the best state
            x[STARTS // 2 :] = best_x[np.argmax(best)] + reach[STARTS // 2 :] * half * rng.normal(
                size=(STARTS - STARTS // 2, len(lo))
            )
            x = _outside(np.clip(x, lo, hi), ball, lo, hi)
    k = int(np.argmax(best))
    if best[k] > -ZERO_BAND * size:
        better = _along_zero(find, best_x[k], best_p[k], half, lo, hi)
        if better[0] >= best[k]:
            return LargestExcess(better[0], better[1], best_p[k])
    return LargestExcess(float(best[k]) - allowed, best_x[k], best_p[k])


def at_random(e: Equations, p_lo: np.ndarray, p_hi: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Parameters (count, k) at ends of their intervals; times are random in theirs."""
    p = np.where(rng.random((count, len(p_lo))) < 0.5, p_lo, p_hi)
    if e.timed:
        p[:, -1] = rng.uniform(p_lo[-1], p_hi[-1], count)
    return p


def _along_zero(
    find: Search, x: np.ndarray, p: np.ndarray, half: np.ndarray, lo: np.ndarray, hi: np.ndarray
) -> tuple[float, np.ndarray]:
    """The state with the largest F / |x|^2 near x and at its distance: a line where F vanishes, zero to rounding."""
    from scipy.optimize import minimize

    def ratio(y: np.ndarray) -> tuple[float, np.ndarray]:
        F, slope, _ = find((y * half)[None], p[None])
        size = max(float(y @ y), 1e-300)
        return -float(F[0]) / size, -(np.nan_to_num(slope[0]) * half / size - 2.0 * float(F[0]) * y / size**2)

    options = {"ftol": 0.0, "gtol": 1e-14, "maxiter": 60}
    with np.errstate(over="ignore", invalid="ignore"):  # the line may lead far out if -F grows faster than |x|^2
        minimum = minimize(ratio, x / half, jac=True, method="L-BFGS-B", options=options)
    y = minimum.x * np.linalg.norm(x / half) / max(np.linalg.norm(minimum.x), 1e-300)
    y = np.clip(y * half, lo, hi)
    return float(find(y[None], p[None])[0][0]), y


def _outside(x: np.ndarray, ball: np.ndarray | None, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """x, moved to the outside of the ball."""
    if ball is None:
        return x
    size = np.sqrt(((x / ball) ** 2).sum(1, keepdims=True))
    return np.clip(np.where(size < 1.0, x / np.maximum(size, 1e-12) * (1.0 + 1e-9), x), lo, hi)


HALVINGS = 20


def zero_on_surface(e: Equations, F: Any, x: np.ndarray, half: np.ndarray) -> np.ndarray | None:
    """A state (q - q_d, v) in the box with these half widths, not the equilibrium, at which F of the model is zero.

    F is quadratic in v and has its extremum in v on a surface v = w(q). F(q, w(q)) = 0 may be an identity. The result
    is None if it is not, or if the surface is not reached between x and the equilibrium.
    """
    v = e.x[e.n : 2 * e.n]
    model = dict(
        zip([*e.parameters[e.robots], *e.errors[e.robots]], [*e.model[e.robots].tolist(), *[0.0] * len(e.model)])
    )
    (F,) = substituted(e.graph, [F], model)
    if degree_in(e.graph, F, set(v)) != 2:
        return None
    gradient = pullback(e.graph, [F], [1.0], v)
    H = [tangents(e.graph, gradient, {k: 1.0}) for k in v]
    at_rest = substituted(e.graph, gradient, dict.fromkeys(v, 0.0))
    w = [-y for y in solved(H, at_rest)]
    (there,) = substituted(e.graph, [F], dict(zip(v, w)))
    values = {e.graph.nodes[k][1:]: y for k, y in e.numbers.items()}
    if not identical(e.graph, [(there, 0.0)], values):  # nor where second derivatives are singular
        return None
    for _ in range(HALVINGS):
        point = e.at(x[None], e.model[None]) | {
            k: e.q_d[i] + x[i : i + 1] for i, k in enumerate(e.angles) if k is not None
        }
        state = np.concatenate([x[: e.n], valued(e.graph, w, point, 1)[0], x[2 * e.n :]])
        if np.isfinite(state).all() and (np.abs(state) < half).all():
            return state if state.any() else None
        x = 0.5 * x
    return None
