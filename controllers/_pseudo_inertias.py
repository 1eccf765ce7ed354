"""Pseudo-inertias of bodies as adaptive laws move them: numbers, or symbols where a law is traced.

`mechanism.inertia` has the same for people; here nothing is checked. Parameters p (10 n,) of n bodies, P (n, 4, 4).
"""

from __future__ import annotations

import numpy as np

from geomctrl.errors import InertiaError
from geomctrl.mechanism import inertia
from geomctrl.robot import Robot

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
