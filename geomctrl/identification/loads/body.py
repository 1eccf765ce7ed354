"""Ten inertial parameters of one rigid body from W pi = b with unit noise: least squares, what of it the motion
determines, and the nearest body that can exist.

The physically consistent estimate is the minimum of a strictly convex, self-concordant function of ten numbers,

    1/2 |W pi - b|^2 + tr(P0^-1 P) - log det P

P the pseudo-inertia, which its logarithm keeps positive definite (Wensing, Kim and Slotine 2018; the log-det distance
of Lee, Wensing and Park 2020), P0 that of a ball of the mass and centre found and an ordinary density. Beside a log,
the distance counts as one measurement with an error of 100 %: it decides what the motion does not excite, and moves
what it does by far less than the standard deviation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geomctrl.identification.errors import SolverError
from geomctrl.identification.estimators.conditioning import POOR
from geomctrl.mechanism import inertia

DENSITY = 2000.0  # kg/m^3, between plastics and steel: a load of unknown shape is that compact
REACH = 0.2  # m, from the frame: where a centre is sought that the motion says nothing of
LIGHTEST = 1e-3  # kg: what stands for the mass where none is seen
Z95 = 1.959963984540054  # of the normal distribution
BASIS = inertia.pseudo(np.eye(10))  # P = sum_k pi_k BASIS_k


@dataclass(frozen=True, eq=False)
class Body:
    """`parameters` (10,): the body; `least_squares` (10,): without constraints, with `covariance` (10, 10) of what the
    motion determines; `null` (10, k): directions, in the natural units `scale` (10,), of which it says nothing;
    `distance`: twice what the constraint costs in 1/2 |W pi - b|^2, about chi-square of 10 where a body fits.
    """

    parameters: np.ndarray
    least_squares: np.ndarray
    covariance: np.ndarray
    null: np.ndarray
    scale: np.ndarray
    distance: float

    def interval(self, value: float, gradient: np.ndarray) -> tuple[float, float]:
        """95 %, of a function of the parameters with this value and gradient (10,); infinite where the motion leaves it
        open.
        """
        g = gradient * self.scale
        if self.null.size and np.abs(g @ self.null).max() > 1e-6 * max(np.linalg.norm(g), 1e-300):
            return -np.inf, np.inf
        half = Z95 * float(np.sqrt(max(gradient @ self.covariance @ gradient, 0.0)))
        return value - half, value + half

    def quantities(self) -> dict[str, np.ndarray]:
        """95 % intervals: "mass" (2,), "centre" (3, 2), "inertia" (3, 3, 2) about the centre of mass, and of the ten
        "parameters" (10, 2), all of least squares.
        """
        pi = self.least_squares
        each = np.array([self.interval(pi[k], row) for k, row in enumerate(np.eye(10))])
        m, h = pi[0], pi[1:4]
        if m == 0.0:
            return {"mass": each[0], "centre": _open(3), "inertia": _open(3, 3), "parameters": each}
        c = h / m
        centre = [self.interval(c[k], np.concatenate(([-c[k] / m], np.eye(3)[k] / m, np.zeros(6)))) for k in range(3)]
        about = inertia.com_tensor(pi)
        moments = [[self.interval(about[i, j], _about_centre(m, h, i, j)) for j in range(3)] for i in range(3)]
        return {"mass": each[0], "centre": np.array(centre), "inertia": np.array(moments), "parameters": each}


def estimated(W: np.ndarray, b: np.ndarray) -> Body:
    """The body of W pi = b (unit noise). Raises SolverError where Newton's method does not end."""
    scale, null = np.ones(10), np.zeros((10, 0))
    pi, covariance = np.zeros(10), np.zeros((10, 10))
    for _ in range(3):  # the natural units need the mass, and the mass, to be judged, the units
        pi, covariance, null = _least_squares(W, b, scale)
        mass = max(abs(pi[0]), LIGHTEST)
        scale = mass * np.array([1.0] + [REACH] * 3 + [REACH**2] * 6)
    prior = _ball(max(pi[0], LIGHTEST), _centre(W, b, scale))
    body = _nearest(W, b, prior, scale)
    pi = pi + scale * (null @ (null.T @ ((body - pi) / scale)))  # of what is open, the body's
    cost = np.linalg.norm(W @ body - b) ** 2 - np.linalg.norm(W @ pi - b) ** 2
    return Body(body, pi, covariance, null, scale, float(max(cost, 0.0)))


def _least_squares(W, b, scale) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(pi, its covariance, directions not determined in units of `scale`)."""
    R: Any = np.linalg.qr(np.column_stack((W * scale, b)), mode="r")
    _, s, Vt = np.linalg.svd(R[:, :-1])
    seen = s > POOR * s[0] if s[0] > 0.0 else np.zeros(10, bool)
    V, inverse = Vt[seen].T, 1.0 / s[seen]
    half = scale[:, None] * V * inverse
    pi = half @ (half.T @ (W.T @ b))
    return pi, half @ half.T, Vt[~seen].T


def _centre(W, b, scale) -> np.ndarray:
    """First moments and inertia held near zero, in natural units, so that what is open is at the frame's origin."""
    ridge = np.diag(np.concatenate(([0.0], 1.0 / scale[1:])))
    pi = np.linalg.lstsq(np.vstack((W, ridge)), np.concatenate((b, np.zeros(10))), rcond=None)[0]
    return pi[1:4] / pi[0] if pi[0] > 0.0 else np.zeros(3)


def _ball(mass: float, centre: np.ndarray) -> np.ndarray:
    radius = (3.0 * mass / (4.0 * np.pi * DENSITY)) ** (1.0 / 3.0)
    return inertia.from_com(mass, centre, 0.4 * mass * radius**2 * np.eye(3))


def _nearest(W, b, prior, scale) -> np.ndarray:
    """The module's function with the distance's weight falling from where the prior is the answer to 1: each minimum is
    near the one before, and Newton's method takes few steps (path following: Nesterov and Nemirovskii 1994).
    """
    R, y = W * scale, prior / scale
    basis, P0 = BASIS * scale[:, None, None], inertia.pseudo(prior)
    pull = np.einsum("ij,kij->k", np.linalg.inv(P0), basis)
    weight = max(1.0, float(np.sum((R @ y - b) ** 2)))
    while weight > 1.0:
        y = _minimum(R / np.sqrt(weight), b / np.sqrt(weight), basis, pull, y, 1e-2)
        weight *= 0.1
    return _minimum(R, b, basis, pull, y, 1e-6) * scale


def _minimum(R, b, basis, pull, y, close: float) -> np.ndarray:
    """Newton's method on 1/2 |R y - b|^2 + pull y - log det P(y) from y, to a decrement of `close`; steps are halved
    until they are inside and descend.
    """

    def value(y):
        sign, logarithm = np.linalg.slogdet(P := np.einsum("k,kij->ij", y, basis))
        inside = sign > 0.0 and np.linalg.eigvalsh(P)[0] > 0.0
        return 0.5 * np.sum((R @ y - b) ** 2) + pull @ y - logarithm if inside else np.inf

    decrement = np.inf
    for _ in range(200):
        inverse = np.linalg.inv(np.einsum("k,kij->ij", y, basis))
        X = np.einsum("ij,kjl->kil", inverse, basis)
        gradient = R.T @ (R @ y - b) + pull - np.einsum("kii->k", X)
        step = -np.linalg.solve(R.T @ R + np.einsum("kij,lji->kl", X, X), gradient)
        decrement, t = float(np.sqrt(max(-gradient @ step, 0.0))), 1.0
        if decrement > 0.25:  # within, whole steps stay inside
            now = value(y)
            while t > 1e-12 and value(y + t * step) > now - 0.1 * t * decrement**2:
                t *= 0.5
        y = y + t * step
        if decrement < close:
            return y
    raise SolverError(
        f"the nearest body was not found: Newton's decrement is {decrement:.3g} after 200 steps; see the log's units"
    )


def _about_centre(m, h, i, j) -> np.ndarray:
    """Gradient of entry (i, j) of I - (|h|^2 1 - h h^T) / m by the ten parameters."""
    out, same = np.zeros(10), float(i == j)
    out[0] = (h @ h * same - h[i] * h[j]) / m**2
    out[1:4] = -2.0 * h * same / m
    out[1 + i] += h[j] / m
    out[1 + j] += h[i] / m
    out[4 + inertia.SYMMETRIC[i, j]] = 1.0
    return out


def _open(*shape: int) -> np.ndarray:
    return np.broadcast_to([-np.inf, np.inf], (*shape, 2)).copy()
