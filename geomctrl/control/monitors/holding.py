"""`Holding`: whether sampling the controller (zero-order hold) destabilises the loop."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from geomctrl.arguments import tolerance
from geomctrl.tracing.numbers import where

from .lyapunov import HELD_STEP_FRACTION, MIN_VALUE, ROUNDING, uncompiled
from .monitor import HELD, UNRESOLVED, VIOLATED, Finding, Monitor
from .replay import Replay

MAX_PAIRS = 32  # pairs of samples between which a jump of the command is sought


class Holding(Monitor):
    """Rise of the Lyapunov function V above its minimum so far that sampled feedback causes, relative to the largest V.

    A held command differs from the continuous law by the change of the law since the sample. One part of this change
    occurs on the desired motion too; it acts as a disturbance that keeps V from vanishing, and the work it feeds into V
    is subtracted. The rest is feedback, which must not feed more than the law dissipates.

    For a correct law that is sampled fast enough the value is at most about (rate of the loop times control_dt). If the
    sampling is too slow, V grows without bound and the value tends to one. Subtracting what a disturbance feeds is the
    usual bound of input-to-state stability (Sontag 1989; Nesic and Teel 2004 for sampled control).

    Not measured if the plant has sensors, whose errors feed V too.

    Parameters
    ----------
    limit : float
        Largest value that counts as held. Default: 0.5.

    Raises
    ------
    ArgumentError
        If `limit` is negative or not finite.

    Examples
    --------
    >>> import geomctrl as gc
    >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.0, 0.0], kp=50.0, kd=10.0)
    >>> monitors = [gc.monitors.Holding()]
    >>> run = gc.simulate(law.robot, law, [0.1, 0], [0, 0], t_end=0.01, dt=1e-3, control_dt=1e-3, monitors=monitors)
    >>> run.monitors["holding"].verdict
    'held'
    """

    name = "holding"
    description = "rise of the Lyapunov function beyond what holding the desired motion's command feeds, relative"

    def __init__(self, limit: float = 0.5):
        self.limit = tolerance("limit", limit)

    def start(self, plant, controller):
        self.law, self.function = uncompiled(controller), cast(Any, getattr(controller, "lyapunov", None))
        self.last, self.since, self.gain, self.fed = np.nan, -np.inf, 0.0, 0.0
        self.largest, self.lowest, self.command = 0.0, np.inf, np.zeros(plant.inputs)
        return self.function is not None and self.held > 0.0 and not plant.sensors

    def measure(self, sample):
        t, q, v, z, plant = sample.t, sample.q, sample.v, sample.z, sample.plant
        value, desired = self.function(t, q, v, z, plant)[0], sample.desired
        if desired is not None:
            one = where(value == value, 1.0, np.nan)  # keeps the law's arithmetic in a trace even if only time enters
            tau = self.law(t, one * desired[0], one * desired[1], z)[0]
            gain, renewed = self._gain(sample, self.command - tau), t - self.since > (1.0 - 1e-6) * self.held
            self.fed += where(self.since >= 0.0, 0.5 * (t - self.last) / self.held * (self.gain + gain), 0.0)
            self.command = np.where(renewed, tau, self.command)
            self.gain, self.since = where(renewed, 0.0, gain), where(renewed, t, self.since)
        self.last, self.largest = t, max(self.largest, value)
        rest = value - self.fed
        self.lowest = rest if sample.changed else min(self.lowest, rest)
        return where(value == value, (rest - self.lowest) / max(self.largest, MIN_VALUE), np.nan)

    def _gain(self, sample, tau):
        """Change of V in the time between two commands due to torques tau that are added to the command."""
        t, q, v, z, plant = sample.t, sample.q, sample.v, sample.z, sample.plant
        x, held = sample.x, sample.tau
        more = plant.acceleration(t, q, v, held + tau, x) - plant.acceleration(t, q, v, held, x)
        high, low = (self.function(t, q, v + s * self.held * more, z, plant)[0] for s in (0.5, -0.5))
        return high - low  # its rounding is that of V; divided by a short time it would be taken for a difference

    def confirm(self, replay):
        """Compare the rise with what truncation and rounding can add to V."""
        run, result = replay.run, replay.run.monitors[self.name]
        if not np.isfinite(result.worst):
            return Finding(VIOLATED, "V is not finite at a finite state")
        values, V = result.values, run.signals["lyapunov"]
        enough = values > self.limit + 0.25 * (result.worst - self.limit)
        last = int(np.argmax(enough)) if enough.any() else len(values) - 1
        largest = float(np.nanmax(V[: last + 1]))
        t, q, v, z, plant = replay.split(*replay.state(last))
        if largest <= ROUNDING * float(self.function(t, q, -v, z, plant)[0]):
            return Finding(HELD, "V is within rounding of its largest terms")
        rise = values[last] * max(largest, MIN_VALUE)
        if not 4.0 * float(replay._step_error(lambda t, y: self.function(*replay.split(t, y))[0], last)) < rise:
            reason = "the rise is no larger than the integration error"
            return Finding(UNRESOLVED, reason, "halve dt", 0.5 * replay.dt)
        if not self._growth_unheld(replay, last) < 0.5 * rise:
            return Finding(UNRESOLVED, "V also grows without the hold", "see the monitor `lyapunov`")
        if self._jumps(replay, last):
            reason = "the command jumps with the state: the rise may be chatter, which falls with control_dt"
            return Finding(UNRESOLVED, reason, "halve control_dt and compare V")
        fastest, _ = replay._fastest_rate(*replay.state(last))
        advice = f"control_dt below {1.0 / fastest:.1g} s, as the loop's fastest rate is {fastest:.3g} 1/s"
        advice = advice if fastest > 0.0 else ""
        return Finding(VIOLATED, f"holding commands for {self.held:g} s raises V", advice)

    def _growth_unheld(self, replay: Replay, last: int) -> float:
        """Growth of V up to stored sample `last` if the law acted in continuous time, estimated from 32 samples."""
        ks, h, total = np.unique(np.linspace(0, last, 32).astype(int)), HELD_STEP_FRACTION * self.held, 0.0
        for k in ks.tolist():
            t, y = replay.state(k)
            end, plant = replay.after(t, y, h), replay.split(t, y)[-1]
            if end is None:
                return np.inf
            ends = (*replay.loop.split(end), plant), replay.split(t, y)[1:]
            total += max(float(self.function(t + h, *ends[0])[0] - self.function(t, *ends[1])[0]), 0.0) / h
        return total / len(ks) * float(replay.run.t[last] - replay.run.t[0])

    def _jumps(self, replay: Replay, last: int) -> bool:
        """Whether the command jumps between two samples up to `last`, that is changes mostly at one point."""
        run = replay.run
        for k in range(max(last - MAX_PAIRS, 0), last):
            t, q, v, z, plant = replay.split(*replay.state(k))
            robot = plant.robot
            change = robot.difference(q, run.q[k + 1]), run.v[k + 1] - v
            line = np.linspace(0.0, 1.0, 9)
            tau = np.array([self.law(t, robot.integrate(q, x * change[0]), v + x * change[1], z).tau for x in line])
            steps = np.abs(np.diff(tau, axis=0))
            if (steps.max(axis=0) > np.maximum(0.5 * steps.sum(axis=0), 1e-6 * np.abs(tau).max())).any():
                return True
        return False
