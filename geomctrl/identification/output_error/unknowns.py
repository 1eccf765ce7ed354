"""The unknowns of a closed-loop output error fit as one vector; the error and its derivatives at a value of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from geomctrl.identification.model.compressed import triangle

from .didim import prepared
from .experiment import Experiment, Part
from .simulation import Layout, Schedule, Trajectory, sensitivities


class State(NamedTuple):
    """A simulation at the unknowns theta: errors [(rows, channels)], measured minus simulated, for each part."""

    theta: np.ndarray
    experiment: Experiment
    dynamics: Any
    plan: Schedule
    runs: list[Trajectory]
    errors: list[np.ndarray]


@dataclass(eq=False)
class Unknowns:
    """theta: base parameters, then the named gains (nv each), the delay if `delay`, then for each part q0, v0 and the
    loop's first state. Channels: torques, then positions if `positions`. x0: fixes parameters outside the base.
    """

    setup: Experiment
    x0: np.ndarray
    gains: tuple[str, ...]
    delay: bool
    positions: bool
    steps: int = 1

    def __post_init__(self):
        model, n = self.setup.model, self.setup.model.robot.nv
        self.n, self.shared = n, model.base.size + n * len(self.gains) + self.delay
        own = [2 * n + part.loop.states for part in self.setup.parts]
        ends = np.cumsum([self.shared, *own])
        self.own = [slice(a, b) for a, b in pairwise(ends)]
        self.size, self.channels = int(ends[-1]), n * (1 + self.positions)
        self.names = [*model.base_names, *(f"{g}{k + 1}" for g in self.gains for k in range(n))]
        self.names += ["delay"] * self.delay
        self.names += [f"beginning of part {i + 1}" for i, s in enumerate(self.own) for _ in range(s.stop - s.start)]

    def first(self) -> np.ndarray:
        """theta with the experiment's own values."""
        loop = self.setup.loop
        gains = [np.broadcast_to(loop.gains[name], self.n) for name in self.gains]
        own = [np.concatenate((p.q0, p.v0, np.zeros(p.loop.states))) for p in self.setup.parts]
        delay = [[loop.delay]] * self.delay
        return np.concatenate([self.setup.model.base.projection @ self.x0, *gains, *delay, *own])

    def changes(self, theta: np.ndarray) -> dict[str, Any]:
        """The loop's fields at theta."""
        nb = self.setup.model.base.size
        changes: dict[str, Any] = {
            g: theta[nb + self.n * k : nb + self.n * (k + 1)].copy() for k, g in enumerate(self.gains)
        }
        return changes | ({"delay": float(theta[self.shared - 1])} if self.delay else {})

    def parameters(self, theta: np.ndarray) -> np.ndarray:
        """The model's x (size,)."""
        base = self.setup.model.base
        return base.lift(theta[: base.size], self.x0)

    def at(self, theta: np.ndarray) -> State:
        """The simulation at theta. Raises SimulationError, ArgumentError if there is none."""
        changes = self.changes(theta)
        loops = tuple(loop._changed(**changes) for loop in self.setup.loops)
        changed = self.setup.with_loop(**changes) if self.gains else replace(self.setup, loops=loops)
        dynamics, plan, self.steps = prepared(changed, self.parameters(theta), self.steps, self.delay)
        runs, errors = [], []
        for part, columns in zip(changed.parts, self.own):
            own = theta[columns]
            q0, v0 = own[: self.n], own[self.n : 2 * self.n]
            run = part.run(dynamics, plan, q0, v0, part.loop.start(q0, v0)[0] + own[2 * self.n :])
            runs.append(run)
            torque = part.tau - run.command(self.shown(plan))[part.rows]
            error = np.where(part.mask, torque, 0.0)
            errors.append(np.concatenate((error, part.q - run.q[part.rows]), 1) if self.positions else error)
        return State(theta, changed, dynamics, plan, runs, errors)

    def shown(self, plan: Schedule) -> int:
        """Age in samples of the torques in the logs."""
        return 0 if self.setup.loop.torque == "commanded" else plan.shown

    def slopes(self, state: State) -> Iterator[tuple[int, slice, np.ndarray]]:
        """(part, its rows, derivatives of simulated channels (rows, channels, size)), a chunk of rows at a time."""
        base, n = self.setup.model.base.size, self.n
        for i, (part, run, own) in enumerate(zip(state.experiment.parts, state.runs, self.own)):
            layout = Layout(base, n * len(self.gains), int(self.delay), 2 * n, part.loop.states)
            shown = self.shown(state.plan)
            late = np.zeros((shown, n, layout.size))
            for slopes in sensitivities(state.dynamics, part.loop, state.plan, run, self.gains, layout):
                torque = np.concatenate((late, slopes.torque))
                late = torque[len(torque) - shown :]
                rows = slice(*np.searchsorted(part.rows, (slopes.first, slopes.first + len(slopes.position))))
                at_rows = part.rows[rows] - slopes.first
                D = torque[at_rows] * part.mask[rows][..., None]
                D = np.concatenate((D, slopes.position[at_rows]), 1) if self.positions else D
                wide = np.zeros((*D.shape[:2], self.size))
                wide[..., : self.shared], wide[..., own] = D[..., : self.shared], D[..., self.shared :]
                yield i, rows, wide

    def factors(self, state: State) -> list[np.ndarray]:
        """For each channel the triangular factor of [derivatives, error]."""
        out = [np.zeros((0, self.size + 1))] * self.channels
        for i, rows, D in self.slopes(state):
            error = state.errors[i][rows]
            for c in range(self.channels):
                new = np.column_stack((D[:, c], error[:, c]))
                out[c] = triangle(np.asfortranarray(np.vstack((out[c], new))))
        return out

    def scores(self, state: State, weights: np.ndarray) -> list[np.ndarray]:
        """For each part (rows, size): each row's contribution to the gradient, sum_c weights_c^2 D_c error_c."""
        out = [np.zeros((len(e), self.size)) for e in state.errors]
        for i, rows, D in self.slopes(state):
            out[i][rows] = np.einsum("rcp,rc->rp", D, state.errors[i][rows] * weights**2)
        return out

    def used(self) -> np.ndarray:
        """Number of rows for each channel (channels,)."""
        torques = sum(part.mask.sum(0) for part in self.setup.parts)
        rows = np.full(self.n, sum(len(part.t) for part in self.setup.parts))
        return np.concatenate((torques, rows)) if self.positions else np.asarray(torques)

    def sizes(self) -> np.ndarray:
        """Root mean square of the measurements, for each channel."""

        def measured(part: Part) -> np.ndarray:
            tau = np.where(part.mask, part.tau, 0.0)
            return np.concatenate((tau, part.q - part.q.mean(0)), 1) if self.positions else tau

        return rms([measured(part) for part in self.setup.parts], self.used())


def rms(errors: Sequence[np.ndarray], counts: np.ndarray) -> np.ndarray:
    """Root mean squares, for each channel (channels,)."""
    return np.sqrt(sum((e**2).sum(0) for e in errors) / np.maximum(counts, 1))
