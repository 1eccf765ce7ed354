"""Couplings that the model does not declare: what a joint leaves unexplained goes with another joint's motion.

To each joint's rows the motion and torque of another are added, v_j, friction's step at v_j, a_j and tau_j, and the
squared error that they would take away is computed exactly, with all parameters fitted again: what of the new columns
is orthogonal to the regressor, against the residual.
"""

from __future__ import annotations

import numpy as np

from geomctrl.identification.findings import Finding
from geomctrl.identification.model.columns import coulomb

from .evidence import POOR, Evidence, FreeFit
from .rows import ROWS, Rows

CHANCE = 1e-3  # that any pair of joints seems as coupled by chance
COLUMNS = 4  # of another joint's motion
SURE, LIKELY = 0.2, 0.1  # of a joint's torques that it takes away
DISTINCT = 1e-3  # eigenvalue of the new columns, of unit length, below which the regressor holds them already


def couplings(evidence: Evidence, rows: Rows, fit: FreeFit) -> list[Finding]:
    """The couplings that take away the most, one a pair of joints."""
    if not fit.weights.any():
        return []
    found = _taken(rows.regressor(evidence.model), _motion(evidence, rows.v, rows.a), rows.torques(evidence.model),
                   rows.used, fit)  # fmt: skip
    if found and rows is evidence.rows:  # again as the estimator sees them; mistakes undone it knows nothing of
        found = _taken(*_low_passed(evidence), evidence.free)
    return [_doubt(evidence, i, j, torque, share) for i, j, torque, share in found]


def _doubt(evidence: Evidence, i: int, j: int, torque: float, share: float) -> Finding:
    a, b = (evidence.names[k] for k in (i, j))
    seen = (
        f"{100 * torque:.3g} % of the torques of {a!r}, {100 * min(share, 1.0):.0f} % of what is left of them squared,"
        f" go with velocity, acceleration or torque of {b!r}"
    )
    advice = (
        f"Are {a!r} and {b!r} coupled? Give their motors' matrix as --gears, and --transmission where friction acts;"
        " else look for what else links them: cables, a spring, the order of columns"
    )
    return Finding("coupling", seen, advice, torque >= SURE)


def _motion(evidence: Evidence, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """(n, nv, 3): per joint its velocity, friction's step there, and its acceleration."""
    return np.stack((v, coulomb(v, evidence.model.smoothing), a), -1)


def _low_passed(evidence: Evidence) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(Y of the base parameters, motion, torques, used) at some rows of the training data, all filtered alike."""
    model, data = evidence.model, evidence.training
    total, parts = len(model.rows(data)), []
    kept, done = max(1, total // ROWS), 0

    def columns(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> list[np.ndarray]:
        return [model.regressor(q, v, a)[..., model.base.columns], _motion(evidence, v, a)]

    for (Y, motion), tau, mask, _ in model.stream(data, columns):
        some = slice(-done % kept, None, kept)
        parts.append((Y[some], motion[some], tau[some], mask[some]))
        done += len(tau)
    Y, motion, tau, mask = (np.concatenate(part) for part in zip(*parts))
    return Y, motion, tau, mask


def _taken(Y, motion, torques, used, fit: FreeFit) -> list[tuple[int, int, float, float]]:
    """(joint, other joint, part of its torques, share of its squared residual) that matter, the largest first."""
    share = explained(Y, motion, torques, used * fit.weights)
    torque = fit.relative[:, None] * np.sqrt(np.minimum(share, 1.0))
    sure = _probability(share, fit.freedom[:, None]) * len(share) * (len(share) - 1) < CHANCE
    found, seen = [], set()
    for i, j in zip(*np.unravel_index(np.argsort(-torque, axis=None), torque.shape)):
        pair = frozenset((int(i), int(j)))
        if torque[i, j] >= LIKELY and sure[i, j] and not pair & seen:
            seen |= pair
            found.append((int(i), int(j), float(torque[i, j]), float(share[i, j])))
    return found


def _probability(share: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """That so much or more of a squared residual is taken away by chance: F test of COLUMNS new ones."""
    from scipy.stats import f

    left = np.maximum(freedom - COLUMNS, 1.0)
    return f.sf(share / COLUMNS * left / np.maximum(1.0 - share, 1e-12), COLUMNS, left)


def explained(Y: np.ndarray, motion: np.ndarray, torques: np.ndarray, w: np.ndarray) -> np.ndarray:
    """(nv, nv): the share of joint i's squared residual that columns of joint j's motion in its rows would take.

    Y (n, nv, nb), motion (n, nv, 3), torques (n, nv), weights w (n, nv), 0 where a torque is not used.
    """
    n = torques.shape[1]
    A = (Y * w[..., None]).transpose(1, 0, 2)
    Q = _orthonormal(A.reshape(-1, A.shape[-1]))
    b = (torques * w).T.ravel()
    r = (b - Q @ (Q.T @ b)).reshape(n, -1)
    Q, out = Q.reshape(n, -1, Q.shape[1]), np.zeros((n, n))
    for i in range(n):
        left = float(r[i] @ r[i])
        for j in range(n):
            if i == j or left == 0.0:
                continue
            Z = np.concatenate((motion[:, j], torques[:, [j]]), -1) * w[:, [i]]
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
