"""Estimates moved to bodies that there can be, along what is known least: arithmetic without branches, for laws.

With the estimate x, information R^T R and N >= 0 of trace 1, every body has <N, P> >= margin in coordinates in which
the model's pseudo-inertia is 1. Where the least eigenvalue of P falls below, N = adj(P - x), which is w w^T of its
eigenvector w but for what x is off it, gives the half-space that is violated most; x goes to its border along
(R^T R)^-1 a, the nearest point in the metric of the covariance. A few such cuts (the method of successive projections),
and what is still missing on the straight way back to the model: the result is always a body.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from geomctrl.errors import ArgumentError
from geomctrl.identification.online.square_root import solved
from geomctrl.mechanism import inertia
from geomctrl.robot import Robot
from geomctrl.tracing.arrays import has_symbols

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
