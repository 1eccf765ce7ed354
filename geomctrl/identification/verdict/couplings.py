"""Couplings that the model does not declare: what a joint leaves unexplained goes with another joint's motion.

To each joint's rows the motion and torque of another are added, v_j, friction's step at v_j, a_j and tau_j, and the
squared error that they would take away is computed exactly, with all parameters fitted again: what of the new columns
is orthogonal to the regressor, against the residual.
"""

from __future__ import annotations

import numpy as np

from geomctrl.identification.columns import coulomb
from geomctrl.identification.doubts import Doubt

from .evidence import POOR, Evidence, FreeFit, Rows

SHARE = 0.4  # of a joint's squared residual that another joint has to take away
SURE, LIKELY = 0.2, 0.1  # of a joint's torques that it takes away
DISTINCT = 1e-3  # eigenvalue of the new columns, of unit length, below which the regressor holds them already


def couplings(evidence: Evidence, rows: Rows, fit: FreeFit) -> list[Doubt]:
    """The couplings that take away the most, one a pair of joints."""
    share = explained(evidence, rows, fit)
    torque = fit.relative[:, None] * np.sqrt(np.minimum(share, 1.0))
    found, seen = [], set()
    for i, j in zip(*np.unravel_index(np.argsort(-torque, axis=None), torque.shape)):
        pair = frozenset((int(i), int(j)))
        if torque[i, j] < LIKELY or share[i, j] < SHARE or pair & seen:
            continue
        seen |= pair
        a, b = (evidence.names[k] for k in (i, j))
        found.append(
            Doubt(
                "coupling",
                f"{100 * torque[i, j]:.3g} % of the torques of {a!r}, {100 * min(share[i, j], 1.0):.0f} % of what is"
                f" left of them squared, go with velocity, acceleration or torque of {b!r}",
                f"Are {a!r} and {b!r} coupled? Give their motors' matrix as --gears, and --transmission where friction"
                " acts; else look for what else links them: cables, a spring, the order of columns",
                bool(torque[i, j] >= SURE),
            )
        )
    return found


def explained(evidence: Evidence, rows: Rows, fit: FreeFit) -> np.ndarray:
    """(nv, nv): the share of joint i's squared residual that columns of joint j's motion in its rows would take."""
    model, n = evidence.model, evidence.model.robot.nv
    w, torques = fit.weights * rows.used, rows.torques(model)
    Y = (model.regressor(rows.q, rows.v, rows.a)[..., model.base.columns] * w[..., None]).transpose(1, 0, 2)
    Q = _orthonormal(Y.reshape(-1, Y.shape[-1]))
    b = (torques * w).T.ravel()
    r = (b - Q @ (Q.T @ b)).reshape(n, -1)
    Q, out = Q.reshape(n, -1, Q.shape[1]), np.zeros((n, n))
    for i in range(n):
        left = float(r[i] @ r[i])
        for j in range(n):
            if i == j or left == 0.0:
                continue
            Z = np.stack((rows.v[:, j], coulomb(rows.v[:, j], model.smoothing), rows.a[:, j], torques[:, j]), -1)
            Z = Z * w[:, [i]]
            Z = Z / np.maximum(np.linalg.norm(Z, axis=0), 1e-300)
            P = Q[i].T @ Z
            values, V = np.linalg.eigh(Z.T @ Z - P.T @ P)  # of the columns' part orthogonal to the regressor
            inverse = np.where(values > DISTINCT, 1.0 / np.maximum(values, DISTINCT), 0.0)
            out[i, j] = np.sum((V.T @ (Z.T @ r[i])) ** 2 * inverse) / left
    return out


def _orthonormal(A: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(A, axis=0)
    U, s, _ = np.linalg.svd(A / np.where(length > 0.0, length, 1.0), full_matrices=False)
    return U[:, s > POOR * s[0]]
