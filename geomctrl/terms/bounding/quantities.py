"""What is bounded, at configurations: eigenvalues of M, norms of C, dg/dq and g."""

from __future__ import annotations

import numpy as np

from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.terms import curvature, derivatives, dynamics

SWEEPS = 40  # of the alternating search for a tensor's norm


def coriolis_tensor(robot: Mechanism, q: np.ndarray, form: dynamics.Form) -> np.ndarray:
    """T (..., nv, nv, nv) with C(q, v)_kj = sum_i T_ijk v_i."""
    if form == "christoffel":
        return curvature.christoffel_symbols(robot, q)
    n = robot.nv
    rates = np.broadcast_to(np.eye(n), (*q.shape[:-1], n, n)).reshape(-1, n)
    C = dynamics.coriolis_matrix(robot, np.repeat(q.reshape(-1, robot.nq), n, axis=0), rates, form)
    return C.reshape(*q.shape[:-1], n, n, n).swapaxes(-1, -2)


def gravity_derivative(robot: Mechanism, q: np.ndarray) -> np.ndarray:
    """dg/dq (..., nv, nv)."""
    rest = np.zeros((*q.shape[:-1], robot.nv))
    return derivatives.inverse_dynamics_derivatives(robot, q, rest, rest).dq


def least_eigenvalue(robot: Mechanism, q: np.ndarray) -> np.ndarray:
    return np.linalg.eigvalsh(dynamics.mass_matrix(robot, q))[..., 0]


def greatest_eigenvalue(robot: Mechanism, q: np.ndarray) -> np.ndarray:
    return np.linalg.eigvalsh(dynamics.mass_matrix(robot, q))[..., -1]


def gravity_stiffness(robot: Mechanism, q: np.ndarray) -> np.ndarray:
    return np.linalg.norm(gravity_derivative(robot, q), 2, axis=(-2, -1))


def gravity_norm(robot: Mechanism, q: np.ndarray) -> np.ndarray:
    return np.linalg.norm(dynamics.gravity_force(robot, q), axis=-1)


def trilinear_norm(T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(T(x, y, z), (x, y, z)) of unit vectors that (nearly) make it the largest, T (batch, n, n, n): (batch,) and
    (batch, 3, n). Never above the norm: by turns from the first vectors of an unfolding's singular value decomposition.
    """
    n = T.shape[-1]
    best, where = np.full(len(T), -1.0), np.zeros((len(T), 3, n))
    U = np.linalg.svd(T.reshape(len(T), n, n * n), full_matrices=False)[0]
    for c in range(min(n, 3)):
        x, value = U[:, :, c], np.zeros(len(T))
        for _ in range(SWEEPS):
            u, s, vt = np.linalg.svd(np.einsum("bijk,bi->bjk", T, x))
            y, z, before, value = u[:, :, 0], vt[:, 0], value, s[:, 0]
            better = value > best
            best[better] = value[better]
            where[better] = np.stack((x, y, z), axis=1)[better]
            if (value - before <= 1e-9 * value).all():
                break
            x = np.einsum("bijk,bj,bk->bi", T, y, z)
            length = np.linalg.norm(x, axis=1, keepdims=True)
            x = x / np.where(length > 0.0, length, 1.0)
    return best, where


def coriolis_norm(robot: Mechanism, q: np.ndarray, form: dynamics.Form) -> np.ndarray:
    """sup |C(q, x) y| over unit vectors."""
    return trilinear_norm(coriolis_tensor(robot, q, form))[0]
