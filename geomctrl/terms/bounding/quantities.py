"""What is bounded: convex functions f of arrays A(q) that are linear in the inertial parameters.

f(A) is the largest <G, A> over a set of arrays G; `support` gives it with its G, so that <G, A(q')> at another q' or of
other bodies is never above f there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from geomctrl.kernels.curvature import christoffel_symbols
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.terms import derivatives, dynamics
from geomctrl.terms.batches import over_states

SWEEPS = 40  # of the alternating search for a tensor's norm


class Measure(NamedTuple):
    """array(robot, q (batch, nq)) -> A (batch, ...); support(A) -> f(A) (batch,) and G; `bound` = sign f."""

    array: Callable[[Mechanism, np.ndarray], np.ndarray]
    support: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    sign: float = 1.0

    def value(self, robot: Mechanism, q: np.ndarray) -> np.ndarray:
        """f(A(q)) (batch,)."""
        return self.support(self.array(robot, q))[0]


def measures(form: dynamics.Form) -> dict[str, Measure]:
    """By the names of the constants."""
    return {
        "m1": Measure(dynamics.mass_matrix, lambda A: _eigenvalue(-A), -1.0),
        "m2": Measure(dynamics.mass_matrix, _eigenvalue),
        "k_C": Measure(lambda robot, q: coriolis_tensor(robot, q, form), trilinear_norm),
        "k_g": Measure(gravity_derivative, _spectral_norm),
        "g": Measure(dynamics.gravity_force, _length),
    }


def coriolis_tensor(robot: Mechanism, q: np.ndarray, form: dynamics.Form) -> np.ndarray:
    """T (batch, nv, nv, nv) with C(q, v)_kj = sum_i T_ijk v_i."""
    if form == "christoffel":
        return over_states(robot, christoffel_symbols, q=q)
    n = robot.nv
    rates = np.tile(np.eye(n), (len(q), 1))
    C = dynamics.coriolis_matrix(robot, np.repeat(q, n, axis=0), rates, form)
    return C.reshape(len(q), n, n, n).swapaxes(-1, -2)


def gravity_derivative(robot: Mechanism, q: np.ndarray) -> np.ndarray:
    """dg/dq (batch, nv, nv)."""
    rest = np.zeros((len(q), robot.nv))
    return derivatives.inverse_dynamics_derivatives(robot, q, rest, rest).dq


def _eigenvalue(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The greatest of symmetric matrices; of -M, the least one's negative, G then being of -A."""
    values, U = np.linalg.eigh(A)
    u = U[..., -1]
    return values[:, -1], u[:, :, None] * u[:, None, :]


def _spectral_norm(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    u, s, vt = np.linalg.svd(A)
    return s[:, 0], u[:, :, :1] * vt[:, :1, :]


def _length(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.linalg.norm(A, axis=1)
    return lengths, A / np.where(lengths > 0.0, lengths, 1.0)[:, None]


def trilinear_norm(T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(T(x, y, z), x y z) of unit vectors that (nearly) make it the largest, T (batch, n, n, n): never above the norm.

    By turns from the first vectors of an unfolding's singular value decomposition.
    """
    n = T.shape[-1]
    best, where = np.full(len(T), -1.0), np.zeros(T.shape)
    U = np.linalg.svd(T.reshape(len(T), n, n * n), full_matrices=False)[0]
    for c in range(min(n, 3)):
        x, value = U[:, :, c], np.zeros(len(T))
        for _ in range(SWEEPS):
            u, s, vt = np.linalg.svd(np.einsum("bijk,bi->bjk", T, x))
            y, z, before, value = u[:, :, 0], vt[:, 0], value, s[:, 0]
            better = value > best
            best[better] = value[better]
            where[better] = np.einsum("bi,bj,bk->bijk", x[better], y[better], z[better])
            if (value - before <= 1e-9 * value).all():
                break
            x = np.einsum("bijk,bj,bk->bi", T, y, z)
            length = np.linalg.norm(x, axis=1, keepdims=True)
            x = x / np.where(length > 0.0, length, 1.0)
    return best, where
