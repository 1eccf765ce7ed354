"""Whether every robot of a box of parameters has a positive definite mass matrix: body by body."""

from __future__ import annotations

import numpy as np

ENTRIES = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))  # of Ixx Ixy Iyy Ixz Iyz Izz


def spatial(p: np.ndarray) -> np.ndarray:
    """The 6 x 6 inertia [[I, [h]], [-[h], m 1]] of the parameters (m, h, I) (10,)."""
    m, (x, y, z) = p[0], p[1:4]
    G = np.zeros((6, 6))
    for value, (i, j) in zip(p[4:], ENTRIES):
        G[i, j] = G[j, i] = value
    H = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    G[:3, 3:], G[3:, :3], G[3:, 3:] = H, H.T, m * np.eye(3)
    return G


def share(lo: np.ndarray, hi: np.ndarray) -> float:
    """The largest e known with G_i(p) >= e G_i(centre) for all bodies i and all p between lo and hi (nbodies, 10).

    Where it is positive, so that 2 T = sum_i V_i . G_i V_i is at least e times that of the centre, so is M(q, p), at
    every q. 2 |x_i x_j| <= x_i^2 + x_j^2 in coordinates in which G(centre) is the unit matrix, parameter by parameter.
    """
    least = np.inf
    for a, b in zip(lo, hi):
        centre, radius = 0.5 * (a + b), 0.5 * (b - a) * (1.0 + 1e-12)
        values, vectors = np.linalg.eigh(spatial(centre))
        if values[0] <= 1e-12 * values[-1]:
            return 0.0
        W = vectors / np.sqrt(values)
        cover = np.zeros((6, 6))
        for k in range(10):
            unit = np.zeros(10)
            unit[k] = radius[k]
            cover += np.abs(W.T @ spatial(unit) @ W)
        least = min(least, 1.0 - float(np.linalg.eigvalsh(cover)[-1]) - 1e-9)
    return least
