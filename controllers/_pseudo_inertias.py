"""Pseudo-inertia matrices for adaptive laws, with numbers or symbols.

`mechanism.inertia` has the checked counterparts. Parameters p are (10 n,) for n bodies, P is (n, 4, 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from geomctrl.errors import ArgumentError, InertiaError
from geomctrl.identification.online.square_root import solved
from geomctrl.mechanism import inertia
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import has_symbols

BASIS = inertia.pseudo(np.eye(10))  # P of each unit parameter; P is linear in the parameters
TO_P = BASIS.reshape(10, 16).T
TO_TEN = np.linalg.pinv(TO_P)
# tr(L dP) = g . dp for L = sum_k g_k B_k, with B_k dual to the basis: tr(B_j E_k) = 1 if j == k else 0
TO_DUAL = TO_P @ np.linalg.inv(TO_P.T @ TO_P)


def pseudo(p):
    """Pseudo-inertia of each body."""
    return (p.reshape(-1, 10) @ TO_P.T).reshape(-1, 4, 4)


def ten(P):
    """The ten parameters of each pseudo-inertia, concatenated (10 n,)."""
    return (P.reshape(-1, 16) @ TO_TEN.T).ravel()


def dual(g):
    """The symmetric matrix L of each body with tr(L dP) = g . dp."""
    return (g.reshape(-1, 10) @ TO_DUAL.T).reshape(-1, 4, 4)


def inverse_and_log_det(P):
    """(P^-1, log det P) of a symmetric matrix; log det is infinite if P is not positive definite."""
    minors = [P[0, 0], *(np.linalg.det(P[:k, :k]) for k in (2, 3, 4))]
    good = (minors[0] > 0.0) & (minors[1] > 0.0) & (minors[2] > 0.0) & (minors[3] > 0.0)
    return np.linalg.inv(P), np.where(good, np.log(np.where(good, minors[3], 1.0)), np.inf)


def divergence(true, p):
    """Sum over bodies of log(det P / det P_true) + tr(P^-1 P_true) - 4; infinite if p is not physically possible."""
    total = 0.0
    for P_true, P in zip(pseudo(true), pseudo(p)):
        inverse, size = inverse_and_log_det(P)
        total = total + size - inverse_and_log_det(P_true)[1] + (inverse * P_true).sum() - 4.0
    return total


def natural_gradient(p, g):
    """The rate of the parameters that corresponds to P' = P L P."""
    P = pseudo(p)
    return ten(P @ dual(g) @ P)


def metric_inverse(p):
    """The block-diagonal matrix (10 n, 10 n) of `natural_gradient`."""
    blocks, n = [], len(p) // 10
    for i, P in enumerate(pseudo(p)):
        products = (P[:, None, :, None] * P[None, :, None, :]).reshape(16, 16)  # Kronecker product: entries of P L P
        block = TO_TEN @ products @ TO_DUAL
        blocks.append(np.concatenate((np.zeros((10, 10 * i)), block, np.zeros((10, 10 * (n - 1 - i)))), axis=1))
    return np.concatenate(blocks)


def require_solid(robot: Robot, columns: np.ndarray) -> None:
    """Raise InertiaError unless each body with these parameters has extent in all directions."""
    for body in columns[::10] // 10:
        if not inertia.is_physical(robot.parameters[body], strict=True):
            raise InertiaError(
                f"robot: body {robot.body_names[body]!r}: expected extent in all directions, got a pseudo-inertia"
                " that is not positive definite; leave it out of `adapt`"
            )


def random_bodies(rng: np.random.Generator, p, spread: float = 0.2):
    """Random bodies near those with parameters p, from linear maps at distance `spread` from the identity."""
    T = np.eye(4) + spread * rng.normal(size=(len(p) // 10, 4, 4))
    return ten(T @ pseudo(p) @ T.swapaxes(1, 2))


MAX_CUTS = 8
# Newton iterations from the left; each covers at least a quarter of the distance to the smallest root
MAX_NEWTON_STEPS = 30

SMALL = 1e-15


class NearestBodies:
    """Projection of parameters p = p0 + unit x to physical bodies; margin: relative to the model's pseudo-inertias."""

    def __init__(self, robot: Robot, bodies: Sequence[int], unit: np.ndarray, margin: float):
        self.margin, n = margin, len(unit)
        self.maps = []  # per body (16, n): change of its whitened pseudo-inertia per x
        for k, body in enumerate(bodies):
            K = np.zeros((16, n))
            K[:, 10 * k : 10 * k + 10] = _whitened(robot, body)
            self.maps.append(K * unit)

    def nearest(self, R: Any, x: Any) -> Any:
        """x (n,), or a nearby point if the bodies of x are not physically possible."""
        target = min(2.0 * self.margin, 0.5 * (1.0 + self.margin))
        moved, upright = x, R.T[::-1, ::-1]
        for _ in range(MAX_CUTS):
            if not has_symbols(moved) and self.share(moved) == 1.0:
                break
            for K in self.maps:
                B = K.dot(moved).reshape(4, 4)
                least, N = least_eigenvalue(B)
                a = N.ravel().dot(K)
                gap = target - 1.0 - (N * B).sum()  # constraint <N, 1 + B> = target
                along = solved(R, solved(upright, a[::-1])[::-1])
                reach = np.maximum(a.dot(along), 1e-300)
                moved = moved + np.where(1.0 + least < self.margin, np.maximum(gap, 0.0) / reach, 0.0) * along
        return self.share(moved) * moved

    def share(self, x: Any) -> Any:
        """The largest s <= 1 for which the bodies of s x satisfy the margin."""
        share: Any = 1.0
        for K in self.maps:
            down, room = -least_eigenvalue(K.dot(x).reshape(4, 4))[0], 1.0 - self.margin
            share = np.minimum(share, np.where(down > room, room / np.maximum(down, room), 1.0))
        return share


def least_eigenvalue(B: Any) -> tuple[Any, Any]:
    """(x, N): a lower bound x on the smallest eigenvalue of a symmetric (4, 4) matrix B, N = adj(B - x) / its trace.

    Newton's method for det(x - B) starts below all roots. The characteristic polynomial (traces, Faddeev and
    Le Verrier) has only real roots, so that the iteration never passes the first one.
    """
    eye, c, powers = np.eye(4), [], [np.eye(4)]
    for k in range(1, 5):
        A = B.dot(powers[-1])
        c.append(-(A[0, 0] + A[1, 1] + A[2, 2] + A[3, 3]) / k)
        powers.append(A + c[-1] * eye)
    x = -np.sqrt((B * B).sum() + 1e-300)
    for _ in range(MAX_NEWTON_STEPS):
        value = (((x + c[0]) * x + c[1]) * x + c[2]) * x + c[3]
        slope = ((4.0 * x + 3.0 * c[0]) * x + 2.0 * c[1]) * x + c[2]
        falls = slope < 0.0
        move = np.where(falls, value / np.where(falls, slope, -1.0), 0.0)
        x = x - move
        if not has_symbols(move) and abs(move) <= SMALL * abs(x):
            break
    adjugate = ((x * powers[0] + powers[1]) * x + powers[2]) * x + powers[3]  # adj(x - B) = -adj(B - x)
    trace = adjugate[0, 0] + adjugate[1, 1] + adjugate[2, 2] + adjugate[3, 3]
    negative = trace < 0.0
    return x, np.where(negative, adjugate / np.where(negative, trace, -1.0), 0.25 * eye)


def _whitened(robot: Robot, body: int) -> np.ndarray:
    """(16, 10): row-major L^-1 P(dpi) L^-T, where L L^T is the body's nominal pseudo-inertia."""
    own = robot.parameters[body]
    if not inertia.is_physical(own, strict=True):
        raise ArgumentError(f"adapt: body {robot.body_names[body]!r} has parameters that no solid body can have: {own}")
    L = np.linalg.inv(np.linalg.cholesky(inertia.pseudo(own)))
    return (L @ inertia.pseudo(np.eye(10)) @ L.T).reshape(10, 16).T
