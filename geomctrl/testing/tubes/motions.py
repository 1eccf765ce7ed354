"""Sampled motions of a closed loop, for counterexamples and pictures: integrated without the code of the proofs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from .equations import LoopEquations
from .steps import sample_times

TIMES = 201  # at which motions are sampled
RTOL, ATOL = 1e-10, 1e-12


@dataclass(frozen=True, eq=False)
class Motion:
    """One motion: times `t` (m,), states `x` (m, n), its inertial `parameters`, and the `time` of a violation.

    Held commands follow the state.
    """

    t: np.ndarray
    x: np.ndarray
    parameters: np.ndarray
    time: float
    value: float

    def __str__(self) -> str:
        return f"t = {self.time:.6g} s, value {self.value:.9g}, of the motion from x = {self.x[0].tolist()}"


class Motions:
    """Motions from corners and random points of a box: `t` (m,), `x` (samples, m, n), held commands at the end."""

    def __init__(
        self, equations: LoopEquations, lower: np.ndarray, upper: np.ndarray, t_end: float, samples: int = 64,
        seed: int = 0,
    ):  # fmt: skip
        rng, n = np.random.default_rng(seed), len(lower)
        self.equations, self.start = equations, rng.uniform(lower, upper, (samples, n))
        corners = samples // 2
        self.start[:corners] = np.where(rng.random((corners, n)) < 0.5, lower, upper)
        self.t = np.linspace(0.0, t_end, TIMES) if t_end > 0.0 else np.zeros(1)

    @cached_property
    def x(self) -> np.ndarray:
        """nan after the time where a motion does not exist any more."""
        e, (samples, _) = self.equations, self.start.shape
        parameters, n = self.start[:, e.n :], e.n

        def command(t: float, y: np.ndarray) -> np.ndarray:
            inputs = e.with_command(y.reshape(samples, n), parameters, np.full((samples, 1), t))
            return inputs[:, n : n + e.commands]

        def rates(t: float, y: np.ndarray, held: np.ndarray) -> np.ndarray:
            state = np.hstack([y.reshape(samples, n), held, parameters, np.full((samples, 1), t)])
            return e.evaluated(e.rates[:n], state).ravel()

        x, held = _integrated(self.start[:, :n].ravel(), self.t, e.control_dt, command, rates, 1e-8, 1e-10)
        return np.concatenate([x.reshape(-1, samples, n), held], 2).transpose(1, 0, 2)

    def outside(self, expressions: Sequence[Any], lower: ArrayLike, upper: ArrayLike, start: float) -> Motion | None:
        """A motion with an expression beyond its limits after `start`, confirmed by the law and the plant in Python."""
        samples, times, states = self.x.shape
        low, high = np.asarray(lower, float), np.asarray(upper, float)
        t, parameters = np.tile(self.t, samples), self.start[:, self.equations.n :]
        state = np.hstack([self.x.reshape(-1, states), np.repeat(parameters, times, 0), t[:, None]])
        values = self.equations.evaluated(list(expressions), state)
        excess = np.maximum(values - high, low - values)
        excess[(t < start) | np.isnan(excess).any(1)] = -np.inf
        k, i = divmod(int(np.argmax(excess)), len(expressions))
        if not excess[k, i] > 0.0:
            return None
        return self._confirmed(k // times, float(t[k]), expressions[i], float(low[i]), float(high[i]))

    def _confirmed(self, sample: int, time: float, expression: Any, lower: float, upper: float) -> Motion | None:
        """The motion, if two integrations of the Python loop agree that it violates the limits."""
        e, x0, p = self.equations, self.start[sample, : self.equations.n], self.start[sample, self.equations.n :]
        plant, values, x = e.plant_with(p), [], np.zeros((0, e.n))
        times = np.append(self.t[self.t < time], time)

        def command(t: float, y: np.ndarray) -> np.ndarray:
            return e.python_command(t, y) if e.commands else np.zeros(0)

        def rates(t: float, y: np.ndarray, held: np.ndarray) -> np.ndarray:
            return e.python_rates(t, y, plant, held if e.commands else None)

        for rtol in (1e3 * RTOL, RTOL):
            x = np.hstack(_integrated(x0, times, e.control_dt, command, rates, rtol, ATOL))
            if np.isnan(x[-1, : e.n]).any():
                return None
            if time in sample_times(e.control_dt, self.t[-1])[:-1]:
                x[-1, e.n :] = command(time, x[-1, : e.n])  # which is held next
            state = np.concatenate([x[-1], p, [time]])
            values.append(float(e.evaluated([expression], state[None])[0, 0]))
        error = 10.0 * abs(values[1] - values[0]) + 1e-9 * max(1.0, abs(values[1]))
        if values[1] - upper > error or lower - values[1] > error:
            parameters = plant.robot.parameters
            return Motion(times[: len(x)], x, parameters, time, values[1])
        return None


def _integrated(
    start: np.ndarray, times: np.ndarray, control_dt: float | None, command: Any, rates: Any, rtol: float, atol: float
) -> tuple[np.ndarray, np.ndarray]:
    """States (m, n) and held commands (m, ...) at `times`, which begin with 0; nan after the end of existence."""
    first, end = command(0.0, start), float(times[-1])
    x, held = np.full((len(times), len(start)), np.nan), np.full((len(times), *first.shape), np.nan)
    x[0], held[0] = start, first
    y = start
    for t, until in itertools.pairwise(sample_times(control_dt, end).tolist()):
        u = command(t, y)
        if not np.isfinite(rates(t, y, u)).all():
            break  # no motion from here; solve_ivp would not end
        inside = (times >= t) & ((times < until) | (until == end))
        grid = np.append(times[inside & (times < until)], until)
        solution = solve_ivp(lambda t, y, u=u: rates(t, y, u), (t, until), y, "DOP853", grid, rtol=rtol, atol=atol)
        reached = solution.y.T[: int(inside.sum())]
        places = np.flatnonzero(inside)[: len(reached)]
        x[places], held[places] = reached, u
        if not solution.success:
            break
        y = solution.y[:, -1]
    return x, held
