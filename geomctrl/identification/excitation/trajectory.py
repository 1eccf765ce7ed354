"""Motions that are linear in their coefficients: finite Fourier series and quintic splines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, count
from geomctrl.control.contracts import Desired, time


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

    def derivative(self, order: int, t: ArrayLike) -> np.ndarray:
        """(N, nv): the derivative of this order, from 0 to 5, at times t (N,); the jerk is of order 3."""
        order, t = count("order", order, 0, 5), np.atleast_1d(checked("t", t, ()))
        return basis_functions(self.kind, self.duration, len(self.coefficients), t, order + 1)[-1] @ self.coefficients

    def bounds(self, order: int) -> np.ndarray:
        """(nv,) bounds of the size of the derivative of this order, from 1 to 5, at all times: of a series, the sum of
        its harmonics' amplitudes; of a spline, its greatest coefficient, as B-splines are positive and add up to 1.
        """
        order = count("order", order, 1, 5)
        if self.kind == "fourier":
            s, c = np.split(self.coefficients[1:], 2)
            w = 2.0 * np.pi * np.arange(1, len(s) + 1) / self.duration
            return (w[:, None] ** order * np.hypot(s, c)).sum(axis=0)
        spline = _splines(self.duration, len(self.coefficients)).derivative(order)
        size = np.abs(spline.c @ self.coefficients)
        return size[: len(spline.t) - spline.k - 1].max(axis=0)

    def __call__(self, t: float) -> Desired:
        t = time(t)
        inside = 0.0 <= t <= self.duration
        q, v, a = (x[0] for x in self.at(min(max(t, 0.0), self.duration)))
        return Desired(q, v, a) if inside else Desired(q, np.zeros_like(q), np.zeros_like(q))


def basis_functions(kind: str, duration: float, nk: int, t: np.ndarray, orders: int = 3) -> np.ndarray:
    """(orders, N, nk): basis functions and their time derivatives up to order `orders` - 1."""
    if kind == "fourier":
        w = 2.0 * np.pi * np.arange(1, (nk - 1) // 2 + 1) / duration
        out = np.zeros((orders, len(t), nk))
        out[0, :, 0] = 1.0
        for k in range(orders):
            phase = np.outer(t, w) + 0.5 * k * np.pi  # a derivative turns sine and cosine by a quarter
            out[k, :, 1:] = np.hstack((w**k * np.sin(phase), w**k * np.cos(phase)))
        return out
    spline = _splines(duration, nk)
    return np.stack([spline(t), *(spline.derivative(k)(t) for k in range(1, orders))])


def _splines(duration: float, nk: int) -> Any:
    from scipy.interpolate import BSpline

    inner = np.linspace(0.0, duration, nk - 4)[1:-1]
    knots = np.concatenate((np.zeros(6), inner, np.full(6, duration)))
    return BSpline(knots, np.eye(nk), 5)
