"""Desired motions with four derivatives, which robots with elastic joints need: harmonics, rest to rest.

They are of joints with one degree of freedom; `references` has motions on any joints, to the second derivative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked
from geomctrl.described import Described
from geomctrl.errors import ArgumentError

from .desired import time


class SmoothReference(Protocol):
    """A desired motion of the links: t -> q and its first four time derivatives, rows of (5, nv)."""

    def __call__(self, t: float) -> np.ndarray: ...


@dataclass(frozen=True, eq=False, repr=False)
class Harmonic(Described):
    """q0 + amplitude sin(2 pi frequency t + phase), (nv,) or numbers each [rad or m, Hz, rad]."""

    q0: ArrayLike
    amplitude: ArrayLike
    frequency: ArrayLike
    phase: ArrayLike = 0.0

    def __post_init__(self):
        n = checked("q0", self.q0, ()).shape
        for name in ("amplitude", "frequency", "phase"):
            if checked(name, getattr(self, name), ()).shape not in ((), n):
                raise ArgumentError(f"{name}: expected a number or {n[0] if n else 1}, as many as q0 has")

    def __call__(self, t: float) -> np.ndarray:
        w = 2.0 * np.pi * np.asarray(self.frequency, float)
        angle = w * time(t) + np.asarray(self.phase, float)
        k = np.arange(5)[:, None]
        sine = np.sin(angle + 0.5 * np.pi * k)  # each derivative leads by a quarter turn
        out = np.zeros((5, np.size(self.q0))) + np.asarray(self.amplitude, float) * w**k * sine
        out[0] += self.q0
        return out


@dataclass(frozen=True, eq=False, repr=False)
class RestToRest(Described):
    """From q0 to q1 in `duration` seconds by the polynomial of degree nine, four derivatives zero at both ends."""

    q0: ArrayLike
    q1: ArrayLike
    duration: float

    def __post_init__(self):
        if checked("q1", self.q1, ()).shape != (shape := checked("q0", self.q0, ()).shape):
            raise ArgumentError(f"q1: expected shape {shape}, that of q0, got {np.shape(self.q1)}")
        if checked("duration", self.duration, ()).shape != () or self.duration <= 0.0:
            raise ArgumentError(f"duration: expected a positive number of seconds, got {self.duration!r:.80}")

    def __call__(self, t: float) -> np.ndarray:
        u = min(max(time(t) / self.duration, 0.0), 1.0)
        s = np.polynomial.Polynomial([0, 0, 0, 0, 0, 126, -420, 540, -315, 70])
        blend = np.array([(s.deriv(k) if k else s)(u) / self.duration**k for k in range(5)])
        out = np.outer(blend, np.subtract(self.q1, self.q0))
        out[0] += self.q0
        return out
