"""A robot model in the loop that moved a log's robot: the simulated motion, by Runge-Kutta steps between samples.

Commands are held: the command of sample k acts from t_k + delay to t_{k+1} + delay. With delay = lag period + part,
0 <= part < period, a sample's interval has two pieces: `part` seconds under the command of sample k - lag - 1, then the
rest under that of k - lag. So the motion depends smoothly on any delay, not on multiples of the period only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from geomctrl.errors import GeomctrlError, SimulationError

from .dynamics import Dynamics
from .loop import Running

FAR = 1e6  # rad, rad/s: no robot is there
MOST = 200  # steps a sample


class Piece(NamedTuple):
    """`steps` steps of `h` seconds under the command of `lag` samples ago; `slope`: dh / d delay."""

    lag: int
    steps: int
    h: float
    slope: float


class Schedule(NamedTuple):
    """The pieces of a sample's interval; shown: how many samples ago the command was made that acts at a sample."""

    period: float
    pieces: tuple[Piece, ...]
    shown: int

    @property
    def lag(self) -> int:
        """Of the last piece."""
        return self.pieces[-1].lag


def schedule(period: float, delay: float, steps: int, moving: bool = False) -> Schedule:
    """steps: a sample, about. moving: with a first piece even where it takes no time, for derivatives by the delay."""
    lag = int(delay / period + 1e-9)
    part = max(delay - lag * period, 0.0)
    part = 0.0 if part < 1e-9 * period else part
    pieces = []
    if part or moving:
        n = max(1, int(np.ceil(steps * part / period - 1e-9)))
        pieces.append(Piece(lag + 1, n, part / n, 1.0 / n))
    n = max(1, int(np.ceil(steps * (1.0 - part / period) - 1e-9)))
    pieces.append(Piece(lag, n, (period - part) / n, -1.0 / n))
    return Schedule(period, tuple(pieces), lag + 1 if part else lag)


def steps_for(dynamics: Dynamics, q: np.ndarray, period: float) -> int:
    """As many steps a sample as friction near standstill asks for at states q (N, nv), so that RK4 follows it."""
    return int(np.clip(np.ceil(period * dynamics.fastest(q)), 1, MOST))


class Trajectory(NamedTuple):
    """What was simulated at N samples: q, v (N, nv), the loop's state z (N, m), its commands u (N, nv); starts: per
    step of a sample's interval q and v (2, N, nv) where it begins; before: the command of all samples before.
    """

    q: np.ndarray
    v: np.ndarray
    z: np.ndarray
    u: np.ndarray
    starts: list[np.ndarray]
    before: np.ndarray

    def command(self, lag: int) -> np.ndarray:
        """u (N, nv) of `lag` samples ago."""
        N = len(self.u)
        early = np.broadcast_to(self.before, (min(lag, N), len(self.before)))
        return np.concatenate((early, self.u[: N - len(early)]))


def simulated(
    dynamics: Dynamics,
    loop: Running,
    plan: Schedule,
    samples: int,
    q0: np.ndarray,
    v0: np.ndarray,
    before: np.ndarray,
    z0: np.ndarray | None = None,
) -> Trajectory:
    """The loop from q0, v0 (nv,) at the first of so many samples; before: the command at work until the first one is.

    Raises SimulationError where it does not stay finite.
    """
    n = len(q0)
    q, v, z = np.array(q0), np.array(v0), loop.start(q0, v0)[0] if z0 is None else z0
    out = Trajectory(
        np.empty((samples, n)), np.empty((samples, n)), np.empty((samples, len(z))), np.empty((samples, n)),
        [np.empty((2, samples, n)) for piece in plan.pieces for _ in range(piece.steps)], before,
    )  # fmt: skip
    with np.errstate(all="ignore"):
        for k in range(samples):
            out.q[k], out.v[k], out.z[k] = q, v, z
            if not (np.abs(q).max() < FAR and np.abs(v).max() < FAR):
                raise SimulationError(f"the simulated loop is unstable after {k * plan.period:.4g} s")
            try:
                out.u[k], z = loop.command(k, q, v, z)
                j = 0
                for lag, steps, h, _ in plan.pieces:
                    u = out.u[k - lag] if k >= lag else before
                    for _ in range(steps):
                        out.starts[j][:, k] = q, v
                        q, v = step(dynamics, q, v, u, h)
                        j += 1
            except SimulationError:
                raise
            except (GeomctrlError, np.linalg.LinAlgError) as error:
                raise SimulationError(f"the simulated loop ends after {k * plan.period:.4g} s: {error}") from error
    return out


def step(dynamics: Dynamics, q: np.ndarray, v: np.ndarray, u: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
    """One step of the classical Runge-Kutta method."""
    half = 0.5 * h
    a = dynamics.acceleration(q, v, u)
    v2 = v + half * a
    a2 = dynamics.acceleration(q + half * v, v2, u)
    v3 = v + half * a2
    a3 = dynamics.acceleration(q + half * v2, v3, u)
    v4 = v + h * a3
    a4 = dynamics.acceleration(q + h * v3, v4, u)
    return q + h / 6.0 * (v + 2.0 * (v2 + v3) + v4), v + h / 6.0 * (a + 2.0 * (a2 + a3) + a4)
