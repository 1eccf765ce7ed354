"""What is checked while a loop runs: the properties the stability proofs rely on.

A monitor measures one number a step, which should not exceed its limit. A `Run` keeps the numbers and the verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np

from geomctrl.arguments import checked, choice, listed, number, tolerance
from geomctrl.compiler.kernel_traces import run
from geomctrl.described import Described
from geomctrl.errors import ArgumentError
from geomctrl.kernels import skewness as kernels
from geomctrl.terms.dynamics import form_number
from geomctrl.terms.skewness import residual_of, residual_of_terms
from geomctrl.tracing.arrays import has_symbols, possible, scalar
from geomctrl.tracing.symbols import where

from .contracts import Desired, moved, wants_measurements
from .desired import desired_at
from .plant import Plant
from .stops import bounded

LIMITED = {"position": ("q", "rad or m"), "velocity": ("v", "rad/s or m/s"), "effort": ("applied", "N m or N")}


class Sample(NamedTuple):
    """The closed loop at the beginning of a step: what a monitor sees, to be read only."""

    t: float
    q: np.ndarray
    v: np.ndarray
    z: Any
    tau: np.ndarray  # the command
    work: float  # energy fed in since the start [J]
    plant: Plant  # as it is now
    changed: bool  # the true robot changed at this sample
    group: Any
    y: np.ndarray  # the state as one element of `group`
    reference: Any = None  # the controller's, if it has one
    signals: Mapping[str, Any] = MappingProxyType({})  # of the command
    x: Any = None  # the plant's own state
    applied: Any = None  # the joint torques (nv,) that its actuators make of the command
    measured: Mapping[str, Any] = MappingProxyType({})  # by the plant's sensors; all else here is the truth

    @property
    def desired(self) -> Desired | None:
        """The desired motion at t, evaluated once for law, monitors and record; None without a reference."""
        return None if self.reference is None else desired_at(self.reference, self.t)


class Monitor(Described):
    """One property. The implementer's contract:

    1. `name` and `what` (a sentence) say what is measured, `limit` what it may not exceed; nan counts as exceeding. A
       limit is a number; infinity is one for what is only recorded, which those below refuse.
    2. `start(plant, controller)` is called once before a run and returns whether the property applies to it.
    3. `measure(sample)` returns the number at this step; it must not change the sample.
    4. Optionally `signals` are further numbers by name, for the run to keep: `start` names them, `measure` renews them.
    5. A run sets `held` before `start`: for how long the loop holds a command [s], 0 where the law acts all the time.
    """

    name = "monitor"
    what = ""
    limit = 0.0
    held = 0.0
    signals: Mapping[str, float] = MappingProxyType({})

    def start(self, plant: Plant, controller: Any) -> bool:
        return True

    def measure(self, sample: Sample) -> float:
        raise NotImplementedError


class Skew(Monitor):
    """|N + N^T|, N = Mdot - 2C, at the states visited, relative to max(|Mdot|, 2 |C|, |M| |v|), by entries.

    C is the controller's own where it has a `coriolis_matrix`; else that of its model, or of the plant, in the
    controller's `form`. Mdot is the rate of the model's mass matrix along the motion, which shares no sum with C. Also
    measured is whether C is a Coriolis matrix: C v + g against the recursion of Newton and Euler, and, unless it is
    the controller's own, M s + C s + g against that with a reference velocity, s being the command's signal "s", or v.
    """

    name = "skew"
    what = "asymmetry of Mdot - 2C, error of C v, relative"

    def __init__(self, limit: float = 1e-10):
        self.limit = tolerance("limit", limit)

    def start(self, plant, controller):
        self.coriolis = getattr(controller, "coriolis_matrix", None)
        self.model = getattr(controller, "robot", plant.robot)
        self.form: Any = getattr(controller, "form", "ploen")
        form_number(self.form)
        return True

    def measure(self, sample):
        q, v = sample.q, sample.v
        if self.coriolis is not None:
            C = self.coriolis(q, v)
            return residual_of(self.model, q, v, C if has_symbols(C) else np.array(C, float))
        s: Any = sample.signals.get("s")
        s = v if np.shape(s) != v.shape else s if has_symbols(s) else np.array(s, float)
        return residual_of_terms(self.model, q, v, s, self.form)


def skew_residual(M: np.ndarray, Mdot: np.ndarray, C: np.ndarray, v: np.ndarray) -> float:
    """How far N = Mdot - 2C is from skew: |N + N^T| over max(|Mdot|, 2 |C|, |M| |v|), by entries, C being zero at some.

    Matrices (nv, nv) and v (nv,) of one state; infinite where one of them is not finite.
    """
    M, arrays = checked("M", M, (), finite=False), []
    n = M.shape[-1] if M.ndim else 0
    for name, x, shape in (("M", M, (n, n)), ("Mdot", Mdot, (n, n)), ("C", C, (n, n)), ("v", v, (n,))):
        arrays.append(checked(name, x, shape, finite=False))
        if arrays[-1].ndim != len(shape):
            raise ArgumentError(f"{name}: expected shape {shape}, got {np.shape(x)}")
    return run(kernels.skew_residual, *arrays)


class EnergyBalance(Monitor):
    """|H(t) - H(0) - work fed in| relative to the largest energy or work so far: what the integrator loses.

    H is the robot's energy and what the plant stores beside it: in its actuators' springs, rotors and coils.
    Lifting the robot by a centimetre is the least energy it is compared with.
    """

    name = "energy"
    what = "energy balance H(t) - H(0) - integral of power, relative"

    def __init__(self, limit: float = 1e-6):
        self.limit = tolerance("limit", limit)

    def start(self, plant, controller):
        weight = plant.robot.parameters[:, 0].sum() * np.linalg.norm(plant.robot.gravity)
        self.beside = plant.stores_energy
        self.baseline, self.work0, self.scale, self.drift = None, 0.0, max(0.01 * weight, 1e-3), 0.0
        return True

    def measure(self, sample):
        H = scalar(sample.plant.robot.energy(sample.q, sample.v))
        if self.beside:
            H = H + sample.plant.energy_beside(sample.q, sample.x)
        if self.baseline is None:
            self.baseline = H
        elif sample.changed:  # the load brings its own energy: count afresh, but keep what was lost before
            self.baseline, self.work0 = H - self.drift, sample.work
        self.drift = H - self.baseline - (sample.work - self.work0)
        self.scale = max(self.scale, abs(H - self.baseline), abs(sample.work - self.work0))
        return abs(self.drift) / self.scale


class LyapunovDecrease(Monitor):
    """How much the controller's Lyapunov function grew since the last step, relative to its largest value so far.

    It is evaluated with the true robot. A change of the true robot changes the function, and is not counted as growth;
    nor is round-off about a V that is zero: the least value compared with is 1e-12 in the function's SI unit. Of a law
    with an `allowance`, growth counts beyond that times the time only.

    Where commands are held (`control_dt`), V of a law that is right grows now and then: along the loop V' is the law's
    plus dV/dy . (f(held command) - f(the law's command now)), and no proof of a continuous law speaks of the second
    part. So the first is judged by itself: dV/dt at each sample along the field of the plant under the law's command
    of that moment, times control_dt, where it is positive; what `z_next` does to V is part of it. `Holding` judges the
    second.
    """

    name = "lyapunov"
    grown = "growth of the Lyapunov function in one step, relative"
    grown_unheld = "growth of the Lyapunov function in control_dt if the law were not held, relative"
    what = grown

    def __init__(self, limit: float = 1e-8):
        self.limit = tolerance("limit", limit)

    def start(self, plant, controller):
        self.function: Any = getattr(controller, "lyapunov", None)
        self.allowance: Any = getattr(controller, "allowance", None)
        self.last, self.largest, self.since = np.inf, 0.0, 0.0
        self.signals = {"lyapunov": np.nan, "lyapunov_rate": np.nan}
        self.law: Any = _law(controller) if self.held > 0.0 and not wants_measurements(controller) else None
        self.what = self.grown if self.law is None else self.grown_unheld
        return self.function is not None

    def measure(self, sample):
        value, rate = self.function(sample.t, sample.q, sample.v, sample.z, sample.plant)
        self.signals = {"lyapunov": value, "lyapunov_rate": rate}
        allowed = 0.0 if self.allowance is None else scalar(self.allowance(sample.plant))
        if self.law is None:
            growth = 0.0 if sample.changed else max(value - self.last - allowed * (sample.t - self.since), 0.0)
        else:
            growth = max(self._growth_unheld(sample, value) - allowed * self.held, 0.0)
        self.largest, self.last, self.since = max(self.largest, value), value, sample.t
        return where(value == value, growth / max(self.largest, 1e-12), np.nan)

    def _growth_unheld(self, sample, value):
        """control_dt dV/dt along the law: a difference of fourth order over half a period, along a curve through the
        state with the loop's velocity. It looks back, as a reference may not be known after the run's end, or before
        its beginning: there nothing is measured."""
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


class Holding(Monitor):
    """What holding the feedback feeds: how far V rose above its lowest so far, less what holding the command that
    keeps the desired motion has fed since, relative to the largest V so far.

    A held command is off by what the law's changed since: by what it would have changed on the desired motion too, a
    disturbance that keeps V from vanishing, and by the feedback's part, which must not outweigh what the law takes.
    For a law that is right and sampled fast this is about (rate of the loop times control_dt) or less; where V grows
    by itself, as the law is held too long, it goes to one. V less what a disturbance feeds is the usual bound of
    systems that are input-to-state stable (Sontag 1989; Nesic and Teel 2004 for laws that are held).

    Not measured where the plant has sensors, whose errors feed V too.
    """

    name = "holding"
    what = "rise of the Lyapunov function beyond what holding the desired motion's command feeds, relative"

    def __init__(self, limit: float = 0.5):
        self.limit = tolerance("limit", limit)

    def start(self, plant, controller):
        self.law, self.function = _law(controller), cast(Any, getattr(controller, "lyapunov", None))
        self.last, self.since, self.power, self.fed = np.nan, -np.inf, 0.0, 0.0
        self.largest, self.lowest, self.kept = 0.0, np.inf, np.zeros(plant.inputs)
        return self.function is not None and self.held > 0.0 and not plant.sensors

    def measure(self, sample):
        t, q, v, z, plant = sample.t, sample.q, sample.v, sample.z, sample.plant
        value, desired = self.function(t, q, v, z, plant)[0], sample.desired
        if desired is not None:
            one = where(value == value, 1.0, np.nan)  # a trace takes what is of time alone for the law's own arithmetic
            tau = self.law(t, one * desired[0], one * desired[1], z)[0]
            power, renewed = self._power(sample, self.kept - tau), t - self.since > (1.0 - 1e-6) * self.held
            self.fed += where(self.since >= 0.0, 0.5 * (t - self.last) * (self.power + power), 0.0)
            self.kept = np.where(renewed, tau, self.kept)
            self.power, self.since = where(renewed, 0.0, power), where(renewed, t, self.since)
        self.last, self.largest = t, max(self.largest, value)
        rest = value - self.fed
        self.lowest = rest if sample.changed else min(self.lowest, rest)
        return where(value == value, (rest - self.lowest) / max(self.largest, 1e-12), np.nan)

    def _power(self, sample, tau):
        """dV/dt through torques tau added to the command."""
        t, q, v, z, plant = sample.t, sample.q, sample.v, sample.z, sample.plant
        x, held = sample.x, sample.tau
        more = plant.acceleration(t, q, v, held + tau, x) - plant.acceleration(t, q, v, held, x)
        high, low = (self.function(t, q, v + s * self.held * more, z, plant)[0] for s in (0.5, -0.5))
        return (high - low) / self.held


def _law(controller: Any) -> Any:
    """The controller as it was written: one that is compiled by itself is no part of a loop that is compiled whole."""
    return getattr(controller, "uncompiled", controller)


class GroupResidual(Monitor):
    """|R^T R - 1| of the poses in q and of a controller state that lives on a group."""

    name = "group"
    what = "|R^T R - 1|"

    def __init__(self, limit: float = 1e-9):
        self.limit = tolerance("limit", limit)

    def start(self, plant, controller):
        self.trivial = plant.robot.nq == plant.robot.nv and getattr(controller, "group", None) is None
        return True

    def measure(self, sample):
        return 0.0 if self.trivial else scalar(sample.group.residual(sample.y))


class JointLimits(Monitor):
    """By how much a joint is beyond a limit of its model, at most, in the limit's unit; negative where all are within.

    of: "position", "velocity" or "effort", the torque that is applied to the joint. Reported, not enforced: that is
    what `JointStops` do, at which the position's does not apply, and `actuators.TorqueLimits`.
    """

    def __init__(self, limit: float = 0.0, of: str = "position"):
        self.of, self.limit = choice("of", of, LIMITED), tolerance("limit", limit)
        self.field, unit = LIMITED[of]
        self.name, self.what = f"{of}_limits", f"{of} beyond a joint's limit, {unit}"

    def start(self, plant, controller):
        if self.of == "position":
            _, self.places, self.lower, self.upper = bounded(plant.robot)
            return plant.stops is None and len(self.places) > 0
        limits = getattr(plant.robot.limits, self.of)
        self.places = np.flatnonzero(np.isfinite(limits))
        self.lower, self.upper = -limits[self.places], limits[self.places]
        return len(self.places) > 0

    def measure(self, sample):
        x = getattr(sample, self.field)[self.places]
        return scalar(np.maximum(self.lower - x, x - self.upper).max())


@dataclass(frozen=True)
class MonitorResult:
    """One monitor's verdict over a run: its values at the stored samples, the worst of all steps and when.

    A run that ended before its first sample has measured nothing: then `worst` is nan, and nothing is said to hold.
    """

    name: str
    what: str
    limit: float
    values: np.ndarray
    worst: float
    t_worst: float

    @property
    def ok(self) -> bool:
        return bool(self.worst <= self.limit)

    @property
    def verdict(self) -> str:
        """In a word: held, VIOLATED, or not measured."""
        return "not measured" if not len(self.values) else "held" if self.ok else "VIOLATED"

    def __str__(self):
        if not len(self.values):
            return f"{self.name}: {self.what}: {self.verdict}"
        worst = f"worst {self.worst:.2e} at t = {self.t_worst:.4g} s, limit {self.limit:.0e}"
        return f"{self.name}: {self.what}: {worst}: {self.verdict}"


def default_monitors() -> list[Monitor]:
    """Skew symmetry, energy balance, Lyapunov decrease, what holding commands does to it, group membership, and the
    limits of joints' positions, velocities and efforts. A non-finite state always ends a run."""
    return [
        *(Skew(), EnergyBalance(), LyapunovDecrease(), Holding(), GroupResidual()),
        *(JointLimits(of=x) for x in LIMITED),
    ]


def monitor_list(monitors: str | Iterable[Monitor] | None) -> list[Monitor]:
    """The monitors meant by "default", None or an iterable of them."""
    if monitors is None:
        return []
    if isinstance(monitors, str):
        if monitors != "default":
            raise ArgumentError(f"monitors: expected 'default', None or Monitors, got {monitors!r}")
        return default_monitors()
    try:
        chosen = listed("monitors", monitors)
    except ArgumentError:
        raise ArgumentError(f"monitors: expected 'default', None or Monitors, got {monitors!r:.60}") from None
    for m in chosen:
        if not isinstance(m, Monitor):
            raise ArgumentError(f"monitors: expected geomctrl.monitors.Monitor, got {m!r:.60}")
        if not (isinstance(m.limit, float) and m.limit == np.inf):
            number(f"monitors: limit of {m.name!r}", m.limit)
    names = [m.name for m in chosen]
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError(f"monitors: {names.count(name)} are named {name!r}; give each a name of its own")
    return chosen
