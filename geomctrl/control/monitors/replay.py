"""`Replay`: repeats single steps of a run from its stored samples, so that monitors can confirm violations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from geomctrl.control.closed_loop import Loop
from geomctrl.control.contracts import Command
from geomctrl.errors import IntegrationError
from geomctrl.integrators.step_control import Adaptive

from .monitor import UNRESOLVED, Finding, Monitor

MAX_COORDINATES = 150  # largest state for which the fastest rate is computed
MIN_RTOL = 1e-13  # of an adaptive method; with a smaller one rounding looks like truncation
UNSTABLE_FACTOR = 1.0 + 1e-6  # amplification factor above which a step is unstable


class Continuous:
    """The continuous law behind a sampled one: its current command and rate, without z_next."""

    def __init__(self, law: Any, dim: int):
        self.law, self.dim = law, dim

    def __call__(self, t, q, v, z):
        command = self.law(t, q, v, z)
        rate = np.zeros(self.dim) if command.z_rate is None and self.dim else command.z_rate
        return Command(command.tau, rate)


class Replay:
    """The stored samples of a run, and its loop, which can repeat steps from any state.

    The law is evaluated at every stage with the true q and v, even if the run held its command or used sensors. run:
    the run so far; dt: its step [s]; order: that of the integration method.
    """

    def __init__(self, run: Any, loop: Loop, dt: float):
        self.run, self.dt, self.order = run, dt, loop.tableau.order
        self.hold, self.loop, self.adaptive = loop.hold, loop.copied(), loop.adaptive
        own = self.loop
        if loop.hold:
            own.controller = Continuous(getattr(loop.controller, "uncompiled", loop.controller), loop.z_group.dim)
        own.hold, own.sensing, own.driven, own.with_measurements = 0, None, False, False
        self._tolerances = loop.tolerances

    def beyond(self, monitor: Monitor) -> list[int]:
        """Indices of the stored samples beyond a monitor's limit, worst first."""
        values = self.run.monitors[monitor.name].values
        ks = np.flatnonzero(~(values <= monitor.limit))
        return ks[np.argsort(-np.nan_to_num(values[ks], nan=np.inf), kind="stable")].tolist()

    def state(self, k: int) -> tuple[float, np.ndarray]:
        """(t, y) of stored sample k."""
        run = self.run
        z, x = (np.zeros(0) if a is None else a[k].ravel() for a in (run.z, run.x))
        return float(run.t[k]), np.concatenate((run.q[k], run.v[k], z, x, [0.0]))

    def split(self, t: float, y: np.ndarray) -> tuple:
        """(t, q, v, z, plant) of a state, the arguments of a Lyapunov function."""
        self.loop.change(t)
        return t, *self.loop.split(y), self.loop.now

    def after(self, t: float, y: np.ndarray, h: float, parts: int = 1, tau: np.ndarray | None = None) -> Any:
        """The state after time h in the given number of steps, with tau held or the law acting; None if a step fails.

        An adaptive method uses tolerances that decrease with the number of parts.
        """
        loop = self.loop
        loop.change(t)
        loop.y, loop.hold = y, 0 if tau is None else 1
        loop.command = None if tau is None else Command(tau)
        loop.z_rates[:] = 0.0
        if loop.adaptive:
            rtol, atol = float(self._tolerances[0]), self._tolerances[1]
            finer = min(float(parts) ** self.order, max(rtol / MIN_RTOL, 1.0)) if rtol else float(parts) ** self.order
            loop.h, loop.method = None, Adaptive(loop.tableau, rtol / finer, atol / finer)
        try:
            for j in range(parts):
                loop.step(t + j * h / parts, h / parts, None)
        except IntegrationError:
            return None
        finally:
            loop.hold = 0
        return loop.y

    def _step_error(self, number: Callable[[float, np.ndarray], Any], last: int) -> Any:
        """Bound on the error that truncation adds to a function of the state up to stored sample `last`.

        It is the mean change from halving the step, over 32 steps, times the number of steps."""
        ks, total = np.unique(np.linspace(0, max(last - 1, 0), 32).astype(int)), 0.0
        for k in ks.tolist():
            t, y = self.state(k)
            ends = [self.after(t, y, self.dt, parts, self.run.tau[k] if self.hold else None) for parts in (1, 2)]
            if any(end is None for end in ends):
                return np.inf
            total = total + np.abs(np.subtract(*(number(t + self.dt, end) for end in ends)))
        return total / len(ks) * (float(self.run.t[last]) - float(self.run.t[0])) / self.dt

    def _fastest_rate(self, t: float, y: np.ndarray) -> tuple[float, float]:
        """The largest eigenvalue of the loop at a state [1/s], and the longest stable step [s]; nan if not computed.

        A step is stable if it amplifies no decaying eigenvector."""
        loop = self.loop
        dim = loop.group.dim - 1
        if loop.adaptive or dim > MAX_COORDINATES:
            return np.nan, np.nan
        loop.change(t)
        J, eps = np.empty((dim, dim)), 1e-6
        for j in range(dim):
            ends = (loop.group.advance(y, s * eps * np.eye(dim + 1)[j]) for s in (1.0, -1.0))
            plus, minus = (loop.field(t, end).copy() for end in ends)
            J[:, j] = (plus - minus)[:-1] / (2.0 * eps)
        if not np.isfinite(J).all():
            return np.nan, np.nan
        rates = np.linalg.eigvals(J)
        fastest, decaying = float(np.abs(rates).max()), rates[rates.real < 0.0]
        steps = np.geomspace(1e-2, 10.0, 200) / max(fastest, 1e-12)
        grows = np.array([self._grows(h * decaying) for h in steps])
        if not grows.any():
            return fastest, np.inf
        low, high = steps[max(int(np.argmax(grows)) - 1, 0)], steps[int(np.argmax(grows))]
        for _ in range(30):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self._grows(middle * decaying) else (middle, high)
        return fastest, float(low)

    def _grows(self, x: np.ndarray) -> bool:
        return bool((np.abs(self._amplification(x)) > UNSTABLE_FACTOR).any())

    def _amplification(self, x: np.ndarray) -> np.ndarray:
        """The method's stability function 1 + x b . (1 - x A)^-1 1."""
        A, b = self.loop.tableau.A_classical, self.loop.tableau.b_classical
        total, stage = np.ones_like(x), np.ones((*x.shape, len(b)), x.dtype)
        for i in range(1, len(b)):
            stage[..., i] = 1.0 + x * (stage[..., :i] @ A[i, :i])
        return total + x * (stage @ b)


def confirm(run: Any, monitors: Iterable[Monitor], loop: Loop, dt: float) -> None:
    """Store the findings of monitors that are beyond their limits in the results of a run."""
    for m in monitors:
        result = run.monitors[m.name]
        if len(result.values) and not result.worst <= result.limit:
            run.monitors[m.name] = replace(result, finding=finding(m, Replay(run, loop, dt)))


def finding(monitor: Monitor, replay: Replay) -> Finding:
    """The finding of a monitor; UNRESOLVED if confirmation raises an exception, because it repeats user code."""
    try:
        return monitor.confirm(replay)
    except Exception as error:
        return Finding(UNRESOLVED, f"the steps could not be repeated: {type(error).__name__}: {error!s:.120}")
