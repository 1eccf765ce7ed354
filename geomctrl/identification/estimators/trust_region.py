"""Newton's method in a trust region, with exact Hessians: second-order critical points of smooth functions of a hundred
variables or so.

In each step the quadratic model is minimised over a ball, exactly, by the Hessian's eigenvalues (More and Sorensen
1983; Nocedal and Wright, Numerical Optimization, algorithm 4.1 and section 4.3). Negative curvature is followed, so
that the method leaves saddle points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Second = tuple[float, np.ndarray, np.ndarray]  # value, gradient (n,), Hessian (n, n)
GOOD, BAD = 0.75, 0.1  # actual over predicted decrease: above the ball grows, below the step is not taken
WIDEST, NARROWEST = 10.0, 1e-10
ROUNDING = 1e-14  # of the first value: less decrease can not be seen


@dataclass(frozen=True)
class Minimum:
    """x, with the value, the gradient's largest entry, how often the function was evaluated, and whether it ended."""

    x: np.ndarray
    value: float
    optimality: float
    evaluations: int
    converged: bool


def minimise(
    value: Callable[[np.ndarray], float],
    second: Callable[[np.ndarray], Second],
    x: np.ndarray,
    evaluations: int,
    tolerance: float,
) -> Minimum:
    """Until a Newton step would lower the value by less than `tolerance` times itself, or after `evaluations`."""
    f, g, H = second(x)
    eigenvalues, V = np.linalg.eigh(H)
    radius, count, floor = 1.0, 1, ROUNDING * abs(f)
    while count < evaluations:
        p, predicted = _step(eigenvalues, V, V.T @ g, radius)
        convex = eigenvalues[0] > -1e-9 * eigenvalues[-1]
        inside = np.linalg.norm(p) < 0.99 * radius
        if (convex and inside and predicted <= tolerance * abs(f) + floor) or radius < NARROWEST:
            return Minimum(x, f, _largest(g), count, bool(radius >= NARROWEST or predicted <= 10.0 * floor))
        tried, count = value(x + p), count + 1
        ratio = (f - tried) / predicted if np.isfinite(tried) and predicted > 0.0 else -1.0
        if ratio < 0.25:
            radius = 0.25 * min(radius, float(np.linalg.norm(p)))
        elif ratio > GOOD and not inside:
            radius = min(2.0 * radius, WIDEST)
        if ratio > BAD:
            x = x + p
            f, g, H = second(x)
            eigenvalues, V = np.linalg.eigh(H)
    return Minimum(x, f, _largest(g), count, False)


def _largest(g: np.ndarray) -> float:
    return float(np.abs(g).max(initial=0.0))


def _step(eigenvalues: np.ndarray, V: np.ndarray, b: np.ndarray, radius: float) -> tuple[np.ndarray, float]:
    """(p, decrease) that minimises g p + 1/2 p H p for |p| <= radius; b = V^T g.

    p = -(H + mu)^-1 g with the least mu >= 0 that makes H + mu positive semidefinite and |p| <= radius, by bisection on
    log mu; in the hard case the eigenvector of the least eigenvalue is added.
    """
    least = eigenvalues[0]
    tiny = 1e-14 * max(abs(eigenvalues[0]), abs(eigenvalues[-1]), 1e-300)

    def along(mu: float) -> np.ndarray:
        return -b / np.maximum(eigenvalues + mu, tiny)

    y = along(0.0)
    if least <= tiny or np.linalg.norm(y) > radius:
        low = max(0.0, -least) + tiny
        y = along(low)
        if np.linalg.norm(y) > radius:
            high = low + float(np.linalg.norm(b)) / radius
            for _ in range(60):
                mu = 0.5 * (low + high)
                y = along(mu)
                low, high = (mu, high) if np.linalg.norm(y) > radius else (low, mu)
                if high - low < 1e-10 * high:
                    break
            y = along(high)
        elif least < -tiny:  # the hard case
            y[0] += np.copysign(np.sqrt(max(radius**2 - float(y @ y), 0.0)), y[0] if y[0] else 1.0)
    return V @ y, -float(b @ y + 0.5 * eigenvalues @ y**2)
