"""Exact derivatives of a simulated loop: the chain rule through its Runge-Kutta steps, as they were taken.

The variational equations are linear in what moves, so the derivatives of a sample's interval by its state, its two
commands, the parameters and the delay are made for many samples at once, in arrays; what remains one after the other is
a product of small matrices a sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from .dynamics import Dynamics
from .loop import Running
from .simulation import Piece, Schedule, Trajectory

CHUNK = 256  # samples: their derivatives stay in cache


class Layout(NamedTuple):
    """The columns of derivatives: base parameters, gains, the delay (0 or 1), q0 and v0, the loop's first state."""

    base: int
    gains: int
    delay: int
    first: int
    state: int

    @property
    def size(self) -> int:
        return sum(self)

    def columns(self, name: str) -> slice:
        at = self._fields.index(name)
        return slice(sum(self[:at]), sum(self[: at + 1]))


class Observed(NamedTuple):
    """Derivatives (N, nv, columns) of positions and of shown torques, from sample number `first` on."""

    first: int
    position: np.ndarray
    torque: np.ndarray


def sensitivities(
    dynamics: Dynamics, loop: Running, plan: Schedule, run: Trajectory, gains: Sequence[str], layout: Layout
) -> Iterator[Observed]:
    """The derivatives of a run that `simulated` made, a chunk of samples at a time.

    torque: "commanded" ones are those of the sample itself, shown = 0; what was at work is `plan.shown` samples old.
    """
    n, m, P = run.q.shape[1], run.z.shape[1], layout.size
    S, Z = np.zeros((2 * n, P)), np.zeros((m, P))
    S[:, layout.columns("first")] = np.eye(2 * n)
    Z[:, layout.columns("first")] = loop.start(run.q[0], run.v[0])[1]
    Z[:, layout.columns("state")] = np.eye(m, layout.state)
    oldest = max(piece.lag for piece in plan.pieces)
    past = [np.zeros((n, P))] * (oldest + 1)  # derivatives of commands, the latest first
    for first in range(0, len(run.q), CHUNK):
        at = slice(first, min(first + CHUNK, len(run.q)))
        law = loop.slopes(first, run.q[at], run.v[at], run.z[at], gains)
        pieces = interval_slopes(dynamics, plan, run, at)
        out = Observed(first, *np.empty((2, at.stop - first, n, P)))
        for k in range(at.stop - first):
            both = np.concatenate((S, Z))
            U = law.command[k] @ both
            U[:, layout.columns("gains")] += law.command_by_gains[k]
            Z = law.state[k] @ both
            Z[:, layout.columns("gains")] += law.state_by_gains[k]
            past = [U, *past[:oldest]]
            out.position[k], out.torque[k] = S[:n], U
            for piece, D in zip(plan.pieces, pieces):
                S = D[k, :, : 2 * n] @ S + D[k, :, 2 * n : 3 * n] @ past[piece.lag]
                S[:, layout.columns("base")] += D[k, :, 3 * n : -1]
                if layout.delay:
                    S[:, layout.columns("delay")] += D[k, :, -1:]
        yield out


def interval_slopes(dynamics: Dynamics, plan: Schedule, run: Trajectory, at: slice) -> list[np.ndarray]:
    """Per piece (N, 2 nv, 3 nv + nb + 1): of its end by (q, v) at its start, its command, base parameters, the delay,
    for the samples `at`."""
    out, j = [], 0
    for piece in plan.pieces:
        u, whole = run.command(piece.lag)[at], None
        for _ in range(piece.steps):
            q, v = run.starts[j][:, at]
            D = step_slopes(dynamics, q, v, u, piece)
            n = q.shape[1]
            if whole is None:
                whole = D
            else:
                whole = D[..., : 2 * n] @ whole
                whole[..., 2 * n :] += D[..., 2 * n :]
            j += 1
        assert whole is not None
        out.append(whole)
    return out


def step_slopes(dynamics: Dynamics, q: np.ndarray, v: np.ndarray, u: np.ndarray, piece: Piece) -> np.ndarray:
    """(N, 2 nv, 3 nv + nb + 1) of N Runge-Kutta steps, `simulation.step`, differentiated line by line."""
    (N, n), h, half = q.shape, piece.h, 0.5 * piece.h
    size = 3 * n + dynamics.model.base.size + 1
    dq, dv = np.zeros((2, N, n, size))
    dq[:, range(n), range(n)] = dv[:, range(n), range(n, 2 * n)] = 1.0

    def by_delay(x: np.ndarray, share: float, dx: np.ndarray) -> np.ndarray:
        """dx, with what the length of the step does: d (share h x) / d delay = share slope x."""
        dx[..., -1] += share * piece.slope * x
        return dx

    def accelerated(q, v, dq, dv):
        a = dynamics.acceleration(q, v, u)
        by = dynamics.slopes(q, v, a)
        da = by.by_q @ dq + by.by_v @ dv
        da[..., 2 * n : 3 * n] += by.by_torque
        da[..., 3 * n : -1] += by.by_parameters
        return a, da

    a, da = accelerated(q, v, dq, dv)
    v2, dv2 = v + half * a, by_delay(a, 0.5, dv + half * da)
    a2, da2 = accelerated(q + half * v, v2, by_delay(v, 0.5, dq + half * dv), dv2)
    v3, dv3 = v + half * a2, by_delay(a2, 0.5, dv + half * da2)
    a3, da3 = accelerated(q + half * v2, v3, by_delay(v2, 0.5, dq + half * dv2), dv3)
    v4, dv4 = v + h * a3, by_delay(a3, 1.0, dv + h * da3)
    a4, da4 = accelerated(q + h * v3, v4, by_delay(v3, 1.0, dq + h * dv3), dv4)
    q_end = by_delay(v + 2.0 * (v2 + v3) + v4, 1.0 / 6.0, dq + h / 6.0 * (dv + 2.0 * (dv2 + dv3) + dv4))
    v_end = by_delay(a + 2.0 * (a2 + a3) + a4, 1.0 / 6.0, dv + h / 6.0 * (da + 2.0 * (da2 + da3) + da4))
    return np.concatenate((q_end, v_end), 1)
