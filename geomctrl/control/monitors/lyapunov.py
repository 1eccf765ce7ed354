"""`LyapunovDecrease`: whether the controller's Lyapunov function decreases."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from geomctrl.arguments import shown, tolerance
from geomctrl.control.contracts import moved, wants_measurements
from geomctrl.errors import ArgumentError
from geomctrl.tracing.numbers import possible, scalar, where

from .monitor import HELD, UNRESOLVED, VIOLATED, Finding, Monitor
from .refinement import STAYS, UNDECIDED, VANISHES, extrapolated, refined
from .replay import Replay

MIN_VALUE = 1e-12  # smallest reference value of V for relative growth, in its SI unit
MAX_STEPS = 64  # steps that are repeated for confirmation, worst first
MAX_PARTS_OF_ALL = 1500  # total parts of these steps
ROUNDING = 16.0 * np.finfo(float).eps  # relative to the largest terms of V, per step
NOISE_SIGMAS = 16.0
HELD_STEP_FRACTION = 0.125  # of control_dt: the step for confirming dV/dt of a sampled law, and its scale


class LyapunovDecrease(Monitor):
    """Growth of the Lyapunov function V over one step, relative to the largest V so far.

    V is evaluated with the true robot. A change of the true robot changes V itself and does not count as growth.
    Neither does rounding near V = 0: the smallest reference is 1e-12 in the SI unit of V. If the law has an `allowance`
    c, only growth beyond c times the time counts.

    With `control_dt`, V of a correct law may grow: along the loop V' is the law's rate plus
    dV/dy . (f(held command) - f(current command)), and a proof in continuous time does not cover the second term. The
    monitor therefore tests the first term alone: dV/dt at each sample along the vector field with the law's current
    command, times control_dt, if positive. The change of V through `z_next` is included. `Holding` tests the second.

    A value beyond the limit is confirmed by the order test: the step is repeated from the same state in 1, 2, 4, ... 64
    parts. Decrease of V is a property of each state, independent of earlier truncation. Growth that remains under
    refinement belongs to the law; growth that vanishes with the order of the method belongs to the integrator.

    Parameters
    ----------
    limit : float
        Largest value that counts as held. Default: 1e-8.

    Raises
    ------
    ArgumentError
        If `limit` is negative or not finite.

    Examples
    --------
    >>> import geomctrl as gc
    >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.0, 0.0], kp=50.0, kd=10.0)
    >>> monitor = gc.monitors.LyapunovDecrease()
    >>> run = gc.simulate(law.robot, law, [0.1, 0.0], [0.0, 0.0], t_end=0.01, dt=1e-3, monitors=[monitor])
    >>> run.monitors["lyapunov"].verdict
    'held'
    """

    name = "lyapunov"
    grown = "growth of the Lyapunov function in one step, relative"
    grown_unheld = "growth of the Lyapunov function in control_dt if the law were not held, relative"
    description = grown

    def __init__(self, limit: float = 1e-8):
        self.limit = tolerance("limit", limit)

    def start(self, plant, controller):
        self.function: Any = getattr(controller, "lyapunov", None)
        self.allowance: Any = getattr(controller, "allowance", None)
        self.last, self.largest, self.since = np.inf, 0.0, 0.0
        self.worst, self.t_suspect, self.largest_suspect = 0.0, np.nan, np.nan
        self.y_last: Any = None
        self.y_suspect: Any = None  # state at the beginning of the worst step
        self.signals = {"lyapunov": np.nan, "lyapunov_rate": np.nan}
        self.law: Any = uncompiled(controller) if self.held > 0.0 and not wants_measurements(controller) else None
        self.description = self.grown if self.law is None else self.grown_unheld
        return self.function is not None

    def measure(self, sample):
        answer = self.function(sample.t, sample.q, sample.v, sample.z, sample.plant)
        if not hasattr(answer, "__len__") or len(answer) != 2:
            raise ArgumentError(f"controller: expected lyapunov to return a pair, V and its rate, got {shown(answer)}")
        value, rate = answer
        self.signals = {"lyapunov": value, "lyapunov_rate": rate}
        allowed = 0.0 if self.allowance is None else scalar(self.allowance(sample.plant))
        if self.law is None:
            growth = 0.0 if sample.changed else max(value - self.last - allowed * (sample.t - self.since), 0.0)
        else:
            growth = max(self._growth_unheld(sample, value) - allowed * self.held, 0.0)
        self.largest, self.last = max(self.largest, value), value
        share = where(value == value, growth / max(self.largest, MIN_VALUE), np.nan)
        self._remember(sample, share)
        self.since = sample.t
        return share

    def _remember(self, sample, share):
        """Store the state at the beginning of the step with the largest relative growth."""
        y = sample.state.y + 0.0
        if self.y_last is None:  # the first sample
            self.y_last = self.y_suspect = y
        t, start = (self.since, self.y_last) if self.law is None else (sample.t, y)
        worse = share > self.worst
        self.worst, self.t_suspect = where(worse, share, self.worst), where(worse, t, self.t_suspect)
        self.largest_suspect = where(worse, self.largest, self.largest_suspect)
        self.y_suspect, self.y_last = np.where(worse, start, self.y_suspect), y

    def _growth_unheld(self, sample, value):
        """control_dt dV/dt along the law, by a fourth-order difference along a curve with the loop's velocity.

        The difference uses past times, as a reference may not exist after the end of the run. Nothing is measured in
        the first half period, because the reference may not exist before the start either."""
        t, q, v, z, plant = sample.t, sample.q, sample.v, sample.z, sample.plant
        late = t > 0.49 * self.held
        if not possible(late):
            return 0.0
        tau, z_rate, _, z_next = self.law(t, q, v, z)
        a, change = plant.acceleration(t, q, v, tau, sample.x), 25.0 * value
        for k, weight in ((1, -48.0), (2, 36.0), (3, -16.0), (4, 3.0)):
            h = -0.125 * k * self.held
            before = max(t + h, 0.0), plant.robot.integrate(q, h * v), v + h * a, moved(self.law, z, h, z_rate)
            change += weight * self.function(*before, plant)[0]
        jump = 0.0 if z_next is None else self.function(t, q, v, z_next, plant)[0] - value
        return where(late, max(change * (8.0 / 12.0) + jump, 0.0), 0.0)

    def confirm(self, replay):
        values = replay.run.monitors[self.name].values
        if not np.isfinite(replay.run.monitors[self.name].worst):
            return Finding(VIOLATED, "V is not finite at a finite state")
        if self.held > 0.0 and self.law is None:
            reason = "the law acts on measurements, whose errors feed V as well as the law may"
            return Finding(UNRESOLVED, reason, "judge the law on the true state")
        findings, budget = [], MAX_PARTS_OF_ALL
        for step in self._steps_to_repeat(replay, values):
            repeated = _RepeatedStep(self, replay, step)
            findings.append(repeated.finding())
            budget -= repeated.parts
            if findings[-1].verdict == VIOLATED or budget < 0:
                break
        severity = {HELD: 0, UNRESOLVED: 1, VIOLATED: 2}
        return max(findings, key=lambda f: (severity[f.verdict], -np.nan_to_num(f.dt, nan=np.inf)))

    def _steps_to_repeat(self, replay: Replay, values: np.ndarray) -> list[Step]:
        """The steps to repeat: the worst of all, and those of stored samples beyond the limit."""
        run, held, steps = replay.run, self.law is not None, []
        largest = np.fmax.accumulate(run.signals["lyapunov"])
        if np.isfinite(self.t_suspect):
            y = np.array(self.y_suspect, float)
            steps.append(Step(float(self.t_suspect), y, float(self.largest_suspect)))
        for k in replay.beyond(self)[:MAX_STEPS]:
            before = max(k - 1, 0) if not held and run.t[k] - run.t[k - 1] < 1.5 * replay.dt else k
            steps.append(Step(*replay.state(before), float(largest[k])))
        return steps


def uncompiled(controller: Any) -> Any:
    """The controller without its own compilation, because the whole loop is compiled."""
    return getattr(controller, "uncompiled", controller)


class Step(NamedTuple):
    """A step in which V may grow: its time and initial state, and the largest V of the run so far."""

    t: float
    y: np.ndarray
    largest: float


class _RepeatedStep:
    """Order test of one step."""

    def __init__(self, monitor: LyapunovDecrease, replay: Replay, step: Step):
        self.monitor, self.replay, self.step, self.parts = monitor, replay, step, 0
        self.held = monitor.law is not None
        self.h, self.scale = (
            (HELD_STEP_FRACTION * monitor.held, 1.0 / HELD_STEP_FRACTION) if self.held else (replay.dt, 1.0)
        )
        self.state = replay.split(step.t, step.y)
        self.plant = self.state[-1]
        self.first = self.value(self.state)
        allowance = 0.0 if monitor.allowance is None else scalar(monitor.allowance(self.plant))
        self.rate, self.jump = allowance, self._jump()

    def value(self, state: tuple) -> float:
        return float(self.monitor.function(*state[:-1], self.plant)[0])

    def _jump(self) -> float:
        """Change of V through the update z_next of a sampled law."""
        if not self.held:
            return 0.0
        t, q, v, z, _ = self.state
        z_next = self.monitor.law(t, q, v, z).z_next
        return 0.0 if z_next is None else self.value((t, q, v, z_next, self.plant)) - self.first

    def growth(self, parts: int, stretch: float = 1.0) -> float:
        """Growth of V beyond the allowance if the step is divided into the given number of parts."""
        self.parts += parts
        t, h = self.step.t, stretch * self.h
        y = self.replay.after(t, self.step.y, h, parts)
        if y is None:
            return np.inf
        grown = self.value((t + h, *self.replay.loop.split(y), self.plant)) - self.first - self.rate * h
        return self.scale * grown + self.jump

    def noise(self, parts: int) -> float:
        """Rounding error of the growth, from sixth differences (More and Wild 2011) over steps 1e-7 apart.

        Differences of V along a line are added, because a state that hardly moves shows no rounding."""
        t, q, v, z, plant = self.state
        u = 1e-7 * np.random.default_rng(0).normal(size=v.shape)
        line = [
            1.4 * self.scale * self.value((t, plant.robot.integrate(q, j * u), v + j * u, z, plant)) for j in range(10)
        ]
        rows = line, [self.growth(parts, 1.0 + 1e-7 * j) for j in range(10)]
        return max(float(np.sqrt(np.mean(np.diff(row, 6) ** 2) / 924.0)) for row in rows)

    def finding(self) -> Finding:
        allowed, order = self.monitor.limit * max(self.step.largest, MIN_VALUE), self.replay.order
        outcome, growths, _ = refined(self.growth, allowed, order)
        if outcome != VANISHES and np.isfinite(growths).all():
            allowed += NOISE_SIGMAS * max(self.noise(1), self.noise(2 ** (len(growths) - 1)))
            confirmed = outcome
            outcome = extrapolated(growths, allowed, order).outcome
            outcome = UNDECIDED if outcome == STAYS != confirmed else outcome
        since = f"in the step from t = {self.step.t:.6g} s"
        if outcome == STAYS:
            reason = f"V grows by {growths[-1]:.2g} {since}, {growths[-1] / allowed:.2g} times what is allowed"
            return Finding(VIOLATED, f"{reason}, also in {2 ** (len(growths) - 1)} parts")
        if outcome == UNDECIDED:
            return Finding(UNRESOLVED, f"growth of V {since} does not settle as the step is refined", "halve dt")
        t, q, v, z, plant = self.state
        terms = max(self.step.largest, self.value((t, q, -v, z, plant)))
        if growths[0] <= max(allowed, ROUNDING * terms):
            return Finding(HELD, "growth is within rounding of the largest terms of V")
        if self.held:
            return Finding(HELD, "V does not grow along the law's own motion")
        return self._truncation(growths, allowed, terms, since)

    def _truncation(self, growths: list[float], allowed: float, terms: float, since: str) -> Finding:
        """Finding for truncation: the step that resolves it, and why it has to be that short."""
        order, dt = self.replay.order, self.replay.dt
        if self.replay.adaptive:
            return Finding(UNRESOLVED, f"V grows {since} by integration error", "lower rtol and atol")
        enough = tested = next(dt / 2**j for j, x in enumerate(growths) if x <= allowed)
        if np.isfinite(growths[:2]).all():
            rate = np.log2(max(abs(growths[0] / growths[1]), 2.0)) + 1.0 if growths[1] else order + 1.0
            if self.step.largest < 1e-6 * terms:  # V is of the order of the squared truncation error
                rate, allowed = 2.0 * order + 1.0, self.monitor.limit * MIN_VALUE
            enough = min(enough, 0.9 * dt * (allowed / growths[0]) ** (1.0 / rate))
        fastest, stable = self.replay._fastest_rate(self.step.t, self.step.y)
        if stable < dt:
            share = stable / dt
            reason = f"the loop, whose fastest rate is {fastest:.3g} 1/s, is too stiff for dt = {dt:g} s"
            advice = f"dt at most {stable:.2g} s, or damping gains at most {share:.2g} times theirs"
            return Finding(UNRESOLVED, reason, advice, min(tested, 0.9 * stable))
        return Finding(UNRESOLVED, f"V grows {since} by integration error", f"dt = {enough:.1g} s", enough)
