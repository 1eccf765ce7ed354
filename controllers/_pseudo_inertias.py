"""Pseudo-inertias of bodies as adaptive laws move them: numbers, or symbols where a law is traced.

`mechanism.inertia` has the same for people; here nothing is checked. Parameters p (10 n,) of n bodies, P (n, 4, 4).
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

BASIS = inertia.pseudo(np.eye(10))  # P of each parameter alone: P is linear in them
TO_P = BASIS.reshape(10, 16).T
TO_TEN = np.linalg.pinv(TO_P)
# tr(L dP) = g . dp where L = sum_k g_k B_k, B_k dual to the basis: tr(B_j E_k) = 1 if j == k else 0
TO_DUAL = TO_P @ np.linalg.inv(TO_P.T @ TO_P)


def pseudo(p):
    """P of each body."""
    return (p.reshape(-1, 10) @ TO_P.T).reshape(-1, 4, 4)


def ten(P):
    """The ten parameters of each symmetric matrix, in a row (10 n,)."""
    return (P.reshape(-1, 16) @ TO_TEN.T).ravel()


def dual(g):
    """L of each body, symmetric: tr(L dP) = g . dp."""
    return (g.reshape(-1, 10) @ TO_DUAL.T).reshape(-1, 4, 4)


def inverse_and_log_det(P):
    """(P^-1, log det P) of one symmetric matrix; the second infinite where it is not positive definite."""
    minors = [P[0, 0], *(np.linalg.det(P[:k, :k]) for k in (2, 3, 4))]
    good = (minors[0] > 0.0) & (minors[1] > 0.0) & (minors[2] > 0.0) & (minors[3] > 0.0)
    return np.linalg.inv(P), np.where(good, np.log(np.where(good, minors[3], 1.0)), np.inf)


def divergence(true, p):
    """The sum over bodies of log(det P / det P_true) + tr(P^-1 P_true) - 4; infinite where no body has p."""
    total = 0.0
    for P_true, P in zip(pseudo(true), pseudo(p)):
        inverse, size = inverse_and_log_det(P)
        total = total + size - inverse_and_log_det(P_true)[1] + (inverse * P_true).sum() - 4.0
    return total


def natural_gradient(p, g):
    """The rate of the parameters that P' = P L P makes."""
    P = pseudo(p)
    return ten(P @ dual(g) @ P)


def metric_inverse(p):
    """The matrix (10 n, 10 n) of `natural_gradient`, in blocks of ten."""
    blocks, n = [], len(p) // 10
    for i, P in enumerate(pseudo(p)):
        products = (P[:, None, :, None] * P[None, :, None, :]).reshape(16, 16)  # P L P by its entries, P x P
        block = TO_TEN @ products @ TO_DUAL
        blocks.append(np.concatenate((np.zeros((10, 10 * i)), block, np.zeros((10, 10 * (n - 1 - i)))), axis=1))
    return np.concatenate(blocks)


def require_solid(robot: Robot, columns: np.ndarray) -> None:
    """Raise InertiaError unless the bodies with these parameters have extent in all directions."""
    for body in columns[::10] // 10:
        if not inertia.is_physical(robot.parameters[body], strict=True):
            raise InertiaError(
                f"robot: body {robot.body_names[body]!r}: expected extent in all directions, got a pseudo-inertia"
                " that is not positive definite; leave it out of `adapt`"
            )


def random_bodies(rng: np.random.Generator, p, spread: float = 0.2):
    """Other bodies about those with parameters p, by linear maps that are that far from the identity."""
    T = np.eye(4) + spread * rng.normal(size=(len(p) // 10, 4, 4))
    return ten(T @ pseudo(p) @ T.swapaxes(1, 2))


CUTS = 8
ROUNDS = 30  # of Newton's method from the left, each of which goes a quarter of the way to the least root, or more

SMALL = 1e-15


class NearestBodies:
    """Of parameters p = p0 + unit x, ten for each of `bodies` first; margin: of the model's own pseudo-inertias."""

    def __init__(self, robot: Robot, bodies: Sequence[int], unit: np.ndarray, margin: float):
        self.margin, n = margin, len(unit)
        self.maps = []  # per body (16, n): the change of its whitened pseudo-inertia, row by row, of x
        for k, body in enumerate(bodies):
            K = np.zeros((16, n))
            K[:, 10 * k : 10 * k + 10] = _whitened(robot, body)
            self.maps.append(K * unit)

    def nearest(self, R: Any, x: Any) -> Any:
        """x (n,), or if its bodies can not be, what is near it and can."""
        target = min(2.0 * self.margin, 0.5 * (1.0 + self.margin))
        moved, upright = x, R.T[::-1, ::-1]
        for _ in range(CUTS):
            if not has_symbols(moved) and self.share(moved) == 1.0:
                break
            for K in self.maps:
                B = K.dot(moved).reshape(4, 4)
                least, N = least_eigenvalue(B)
                a = N.ravel().dot(K)
                gap = target - 1.0 - (N * B).sum()  # <N, 1 + B> is to be the target
                along = solved(R, solved(upright, a[::-1])[::-1])
                reach = np.maximum(a.dot(along), 1e-300)
                moved = moved + np.where(1.0 + least < self.margin, np.maximum(gap, 0.0) / reach, 0.0) * along
        return self.share(moved) * moved

    def share(self, x: Any) -> Any:
        """The greatest s <= 1 at which the bodies of s x are inside the margin."""
        share: Any = 1.0
        for K in self.maps:
            down, room = -least_eigenvalue(K.dot(x).reshape(4, 4))[0], 1.0 - self.margin
            share = np.minimum(share, np.where(down > room, room / np.maximum(down, room), 1.0))
        return share


def least_eigenvalue(B: Any) -> tuple[Any, Any]:
    """(x, N): x the least eigenvalue of a symmetric matrix (4, 4) or a little less, N = adj(B - x) / its trace.

    By Newton's method for det(x - B) from where no root is smaller: the characteristic polynomial, by traces (Faddeev
    and Le Verrier), has real roots only, so that the method never passes the first.
    """
    eye, c, powers = np.eye(4), [], [np.eye(4)]
    for k in range(1, 5):
        A = B.dot(powers[-1])
        c.append(-(A[0, 0] + A[1, 1] + A[2, 2] + A[3, 3]) / k)
        powers.append(A + c[-1] * eye)
    x = -np.sqrt((B * B).sum() + 1e-300)
    for _ in range(ROUNDS):
        value = (((x + c[0]) * x + c[1]) * x + c[2]) * x + c[3]
        slope = ((4.0 * x + 3.0 * c[0]) * x + 2.0 * c[1]) * x + c[2]
        falls = slope < 0.0
        move = np.where(falls, value / np.where(falls, slope, -1.0), 0.0)
        x = x - move
        if not has_symbols(move) and abs(move) <= SMALL * abs(x):
            break
    adjugate = ((x * powers[0] + powers[1]) * x + powers[2]) * x + powers[3]  # of x - B, so -1 times that of B - x
    trace = adjugate[0, 0] + adjugate[1, 1] + adjugate[2, 2] + adjugate[3, 3]
    negative = trace < 0.0
    return x, np.where(negative, adjugate / np.where(negative, trace, -1.0), 0.25 * eye)


def _whitened(robot: Robot, body: int) -> np.ndarray:
    """(16, 10): L^-1 P(dpi) L^-T row by row, with L L^T the body's own pseudo-inertia."""
    own = robot.parameters[body]
    if not inertia.is_physical(own, strict=True):
        raise ArgumentError(f"adapt: body {robot.body_names[body]!r} of the model is no solid body: {own}")
    L = np.linalg.inv(np.linalg.cholesky(inertia.pseudo(own)))
    return (L @ inertia.pseudo(np.eye(10)) @ L.T).reshape(10, 16).T
