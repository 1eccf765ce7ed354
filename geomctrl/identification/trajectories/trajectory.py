"""Motions that are linear in their coefficients: finite Fourier series and quintic splines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked
from geomctrl.control.contracts import Desired
from geomctrl.control.desired import time


@dataclass(frozen=True, eq=False)
class Trajectory:
    """q(t) = sum_k basis_k(t) coefficients[k] (nk, nv) on [0, duration]; it holds still before and after.

    A `Reference`: call it with a time for Desired(q, v, a). kind: "fourier" (periodic) or "spline".
    """

    kind: str
    duration: float
    coefficients: np.ndarray

    def basis(self, t: ArrayLike) -> np.ndarray:
        """(3, N, nk): the basis and its first two time derivatives."""
        return basis_functions(self.kind, self.duration, len(self.coefficients), np.atleast_1d(checked("t", t, ())))

    def at(self, t: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, v, a (N, nv) at times t (N,)."""
        q, v, a = self.basis(t) @ self.coefficients
        return q, v, a

    def __call__(self, t: float) -> Desired:
        t = time(t)
        inside = 0.0 <= t <= self.duration
        q, v, a = (x[0] for x in self.at(min(max(t, 0.0), self.duration)))
        return Desired(q, v, a) if inside else Desired(q, np.zeros_like(q), np.zeros_like(q))


def basis_functions(kind: str, duration: float, nk: int, t: np.ndarray) -> np.ndarray:
    """(3, N, nk): basis functions, first and second derivatives."""
    if kind == "fourier":
        harmonics = np.arange(1, (nk - 1) // 2 + 1)
        w = 2.0 * np.pi * harmonics / duration
        s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        one, zero = np.ones((len(t), 1)), np.zeros((len(t), 1))
        rows = [np.hstack((one, s, c)), np.hstack((zero, w * c, -w * s)), np.hstack((zero, -(w**2) * s, -(w**2) * c))]
        return np.stack(rows)
    from scipy.interpolate import BSpline

    inner = np.linspace(0.0, duration, nk - 4)[1:-1]
    knots = np.concatenate((np.zeros(6), inner, np.full(6, duration)))
    spline = BSpline(knots, np.eye(nk), 5)
    return np.stack([spline(t), spline.derivative(1)(t), spline.derivative(2)(t)])
