"""Models of the loop that moved the robot of a log; fits by simulation run them in place of the real controller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, choice, has_attributes, instance, listed, number, one_or_each, shown
from geomctrl.control.compiled.law_slopes import law_slopes
from geomctrl.control.contracts import (
    Command,
    Controller,
    Desired,
    require_controller,
    require_reference,
    started,
    time,
    wants_measurements,
)
from geomctrl.errors import ArgumentError, SimulationError
from geomctrl.robot import Robot

MAX_TIME = 1e100  # s: products of larger times overflow


class SampledReference:
    """A reference from samples: the cubic spline through q, exactly q at the samples.

    The motion is constant before half a sample before the first, and after half a sample after the last one.

    Parameters
    ----------
    t : array_like, shape (N,)
        Increasing times [s].
    q : array_like, shape (N, nv)
        Desired positions, for joints with one degree of freedom.
    v, a : array_like, shape (N, nv), optional
        Recorded velocities and accelerations. Default: the spline's derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from geomctrl.identification import SampledReference
    >>> t = np.linspace(0.0, 1.0, 11)
    >>> reference = SampledReference(t, np.sin(t)[:, None])
    >>> bool(abs(reference(0.5).q[0] - np.sin(0.5)) < 1e-12)
    True
    """

    def __init__(self, t: ArrayLike, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None):
        from scipy.interpolate import CubicSpline  # slow to import

        times, points = checked("t", t, ()), checked("q", q, ())
        if times.ndim != 1 or len(times) < 2 or (np.diff(times) <= 0.0).any():
            raise ArgumentError(f"t: expected at least two increasing times, got shape {times.shape}")
        if points.ndim != 2 or len(points) != len(times):
            raise ArgumentError(f"q: expected shape ({len(times)}, nv), got {points.shape}")
        self.first, self.last = float(times[0]), float(times[-1])
        self.slack = 0.5 * float(np.median(np.diff(times)))  # samples of loop and log differ by rounding
        if not (np.abs(times) < MAX_TIME).all():
            raise ArgumentError(f"t: expected times below {MAX_TIME:g} s, got {times[0]:g} to {times[-1]:g}")
        spline: Any = CubicSpline(times, points)
        self._curves = [spline, spline.derivative(1), spline.derivative(2)]
        for k, (name, x) in enumerate((("v", v), ("a", a)), start=1):
            if x is not None:
                values = checked(name, x, ())
                if values.shape != points.shape:
                    raise ArgumentError(f"{name}: expected shape {points.shape} as of q, got {values.shape}")
                self._curves[k] = CubicSpline(times, values)

    def _at(self, t: np.ndarray) -> Desired:
        """At times (N,): q, v, a (N, nv) each."""
        t = checked("t", t, ())
        if not t.size:
            raise ArgumentError("t: expected times, got none")
        inside = np.clip(t, self.first, self.last)
        q, v, a = (np.asarray(curve(inside)) for curve in self._curves)
        moving = ((t >= self.first - self.slack) & (t <= self.last + self.slack))[..., None]
        return Desired(q, v * moving, a * moving)

    def __call__(self, t: float) -> Desired:
        return self._at(np.asarray(time(t)))


def along(reference: Any, t: np.ndarray, n: int) -> Desired:
    """A reference at times (N,): q, v, a (N, n) each. Raises ArgumentError if it has another number of joints."""
    if isinstance(reference, SampledReference):
        desired = reference._at(t)
    else:
        rows = [reference(float(x)) for x in t]
        desired = Desired(*(np.array(column, float) for column in zip(*rows)))
    for x in desired:
        if np.shape(x) != (len(t), n):
            raise ArgumentError(f"reference: expected q, v, a of {n} joints, got shape {np.shape(x)[1:]}")
    return desired


GAINS = ("kp", "kd", "ki")


class LoopSlopes(NamedTuple):
    """Derivatives of commands (N, nv) and of next states (N, m), with respect to (q, v, z), columns in that order, and
    to the gains."""

    command: np.ndarray
    state: np.ndarray
    command_by_gains: np.ndarray
    state_by_gains: np.ndarray


class LoopSamples(Protocol):
    """A loop at the samples of one log: its command and next state at sample k, and their derivatives at all
    samples."""

    states: int

    def start(self, q0: np.ndarray, v0: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(the first state z (m,), its derivative with respect to (q0, v0) (m, 2 nv))."""
        ...

    def command(self, k: int, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...

    def slopes(self, first: int, q: np.ndarray, v: np.ndarray, z: np.ndarray, gains: Sequence[str]) -> LoopSlopes:
        """Derivatives at the samples from `first` on, whose states (N, .) are given."""
        ...


@dataclass(frozen=True, eq=False)
class ServoLoop:
    """u = kp (q_d - q) + kd (v_d - v) + ki I + feedforward + gravity, sampled, as in most drives and arms.

    I is the sum of period (q_d - q) over the earlier samples.

    Parameters
    ----------
    reference : callable
        t -> Desired(q, v, a) in the log's time, such as a `SampledReference` of its columns.
    kp, kd : float or array_like (nv,)
        Gains [N m/rad] and [N m s/rad].
    ki : float or array_like (nv,), default 0
        Integral gain [N m/(rad s)].
    period : float, default 1e-3
        Sampling period [s].
    delay : float, default 0
        Time [s] until a command acts.
    velocity : {"true", "differences"} or float, default "true"
        The velocity v: the true one; differences of q one sample apart; or these differences after a first-order
        low-pass filter with this cut-off [Hz].
    feedforward : Robot, optional
        Adds the inverse dynamics of this robot at the desired motion.
    gravity : Robot, optional
        Adds the torques that hold this robot's weight at q.
    torque : {"commanded", "applied"}, default "commanded"
        The log's torques: those commanded at a sample, or those that act at the joints at that time.

    Raises
    ------
    ArgumentError

    Examples
    --------
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> motion = gc.references.Sinusoids(arm, [0.3, 0.5], amplitude=0.4, frequency=0.5)
    >>> loop = gc.identification.ServoLoop(motion, kp=[400, 200], kd=[30, 15], period=0.004)
    >>> loop.kp
    array([400., 200.])
    """

    reference: Any
    kp: ArrayLike
    kd: ArrayLike
    ki: ArrayLike = 0.0
    period: float = 1e-3
    delay: float = 0.0
    velocity: str | float = "true"
    feedforward: Robot | None = None
    gravity: Robot | None = None
    torque: str = "commanded"

    def __post_init__(self):
        require_reference(self.reference)
        for name in GAINS:
            x = checked(name, getattr(self, name), ())
            if x.ndim > 1 or not x.size:
                raise ArgumentError(f"{name}: expected a number or (nv,) numbers, got shape {x.shape}")
            object.__setattr__(self, name, x.copy())
        if len({x.size for x in self.gains.values() if x.ndim}) > 1:
            raise ArgumentError(f"kp, kd, ki: expected as many of each, got {[x.size for x in self.gains.values()]}")
        check_times(self)
        if isinstance(self.velocity, str):
            choice("velocity", self.velocity, ("true", "differences"))
        else:
            number("velocity", self.velocity, '"true", "differences" or a cut-off in Hz > 0', lambda x: x > 0.0)
        for name in ("feedforward", "gravity"):
            if getattr(self, name) is not None:
                instance(name, getattr(self, name), Robot, "a geomctrl.Robot or None")

    @property
    def gains(self) -> dict[str, np.ndarray]:
        """kp, kd and ki as given."""
        return {name: np.asarray(getattr(self, name)) for name in GAINS}

    def _changed(self, **changes: Any) -> ServoLoop:
        """The same loop with these fields changed."""
        return replace(self, **changes)

    def _running(self, robot: Robot, t: np.ndarray) -> LoopSamples:
        """The loop at samples t (N,), for fits."""
        return _Servo(self, robot, t)


class _Servo:
    def __init__(self, loop: ServoLoop, robot: Robot, t: np.ndarray):
        n = self.n = robot.nv
        self.loop = loop
        self.kp, self.kd, self.ki = (one_or_each(name, x, n) for name, x in loop.gains.items())
        for name in ("feedforward", "gravity"):
            own = getattr(loop, name)
            if own is not None and own.nv != n:
                raise ArgumentError(f"{name}: expected a robot of {n} joints, got {own.nv}")
        q, v, a = self.desired = along(loop.reference, t, n)
        self.ahead = np.zeros((len(t), n)) if loop.feedforward is None else loop.feedforward.inverse_dynamics(q, v, a)
        self.differs = loop.velocity != "true"
        self.states = 3 * n if self.differs else n
        cutoff = np.inf if isinstance(loop.velocity, str) else loop.velocity
        self.share = 1.0 - np.exp(-2.0 * np.pi * loop.period * cutoff)  # weight of the newest difference

    def start(self, q0, v0):
        n, eye, none = self.n, np.eye(self.n), np.zeros((self.n, self.n))
        if not self.differs:
            return np.zeros(n), np.zeros((n, 2 * n))
        slope = np.block([[none, none], [eye, -self.loop.period * eye], [none, eye]])
        return np.concatenate((np.zeros(n), q0 - self.loop.period * v0, v0)), slope

    def command(self, k, q, v, z):
        n, period = self.n, self.loop.period
        e = self.desired.q[k] - q
        if self.differs:
            v = z[2 * n :] + self.share * ((q - z[n : 2 * n]) / period - z[2 * n :])
        u = self.kp * e + self.kd * (self.desired.v[k] - v) + self.ki * z[:n] + self.ahead[k]
        if self.loop.gravity is not None:
            u = u + self.loop.gravity.gravity_force(q)
        total = z[:n] + period * e
        return u, np.concatenate((total, q, v)) if self.differs else total

    def slopes(self, first, q, v, z, gains):
        n, m, N, period = self.n, self.states, len(q), self.loop.period
        samples = slice(first, first + N)
        eye, measured = np.eye(n), np.zeros((n, 2 * n + m))
        if self.differs:
            v = z[:, 2 * n :] + self.share * ((q - z[:, n : 2 * n]) / period - z[:, 2 * n :])
            measured[:, :n] = eye * self.share / period
            measured[:, 3 * n : 4 * n] = -eye * self.share / period
            measured[:, 4 * n :] = eye * (1.0 - self.share)
        else:
            measured[:, n : 2 * n] = eye
        e, w = self.desired.q[samples] - q, self.desired.v[samples] - v
        command = np.tile(-self.kd[:, None] * measured, (N, 1, 1))
        command[:, :, :n] -= np.diag(self.kp)
        command[:, :, 2 * n : 3 * n] += np.diag(self.ki)
        if self.loop.gravity is not None:
            still = np.zeros_like(q)
            rates = self.loop.gravity.inverse_dynamics_derivatives(q, still, still)
            command[:, :, :n] += rates.dq
        state = np.zeros((m, 2 * n + m))
        state[:n, :n], state[:n, 2 * n : 3 * n] = -period * eye, eye
        if self.differs:
            state[n : 2 * n, :n], state[2 * n :] = eye, measured
        by = {"kp": e, "kd": w, "ki": z[:, :n]}
        own = [by[name][:, :, None] * eye for name in gains]
        by_gains = np.concatenate(own, -1) if own else np.zeros((N, n, 0))
        return LoopSlopes(command, np.broadcast_to(state, (N, *state.shape)), by_gains, np.zeros((N, m, len(own) * n)))


def check_times(loop: Any) -> None:
    """Check the numbers that every loop has."""
    put = object.__setattr__
    put(loop, "period", number("period", loop.period, "seconds > 0", lambda x: x > 0.0))
    put(loop, "delay", number("delay", loop.delay, "seconds >= 0", lambda x: x >= 0.0))
    choice("torque", loop.torque, ("commanded", "applied"))


def loops_of(value: Any, n: int) -> list[Any]:
    """The loops of n logs: one for all, or one each, with the same gains, period and delay. Raises ArgumentError."""
    loops = listed("loop", value) if isinstance(value, (list, tuple)) else [value] * n
    if len(loops) != n:
        raise ArgumentError(f"loop: expected one, or {n}, one per log, got {len(loops)}")
    for loop in loops:
        if isinstance(loop, type) or not has_attributes(loop, "period", "delay", "torque", "gains", "_running"):
            raise ArgumentError(f"loop: expected a ServoLoop or a ControllerLoop, got {shown(loop)}")
        if (loop.period, loop.delay, loop.torque) != (loops[0].period, loops[0].delay, loops[0].torque):
            raise ArgumentError("loop: expected the same period, delay and torque for every log")
        same = all(np.array_equal(x, loops[0].gains.get(name)) for name, x in loop.gains.items())
        if not same or set(loop.gains) != set(loops[0].gains):
            raise ArgumentError("loop: expected the same gains for every log")
    return loops


@dataclass(frozen=True, eq=False)
class ControllerLoop:
    """A `Controller` that is sampled every `period` seconds; its commands act `delay` seconds later.

    The controller's own parameters are known; the robot and the delay are estimated. Fits by sensitivities need
    derivatives of the law, which must therefore be traceable (`gc.compile`).

    Parameters
    ----------
    controller : Controller
        The law, which is called with the simulated q and v. Its state is a vector or None.
    period : float
        Sampling period [s].
    delay : float
        Time [s] from a sample until its command acts. Default: 0.
    torque : str
        Whether logs hold the torques that were "commanded" or "applied". Default: "commanded".

    Examples
    --------
    >>> import geomctrl as gc
    >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.0, 0.0])
    >>> gc.identification.ControllerLoop(law, period=0.002).delay
    0.0
    """

    controller: Controller
    period: float
    delay: float = 0.0
    torque: str = "commanded"

    def __post_init__(self):
        require_controller(self.controller)
        if getattr(self.controller, "group", None) is not None:
            raise ArgumentError("controller: expected one whose state is a vector or None, got one on a group")
        if wants_measurements(self.controller):
            raise ArgumentError(
                "controller: expected a law of q and v, got one that reads sensors (measurements = True)"
            )
        check_times(self)

    @property
    def gains(self) -> dict[str, np.ndarray]:
        """None."""
        return {}

    def _changed(self, **changes: Any) -> ControllerLoop:
        """The same loop with these fields changed."""
        return replace(self, **changes)

    def _running(self, robot: Robot, t: np.ndarray) -> LoopSamples:
        """The loop at samples t (N,), for fits."""
        return _Law(self, robot, t)


class _Law:
    def __init__(self, loop: ControllerLoop, robot: Robot, t: np.ndarray):
        self.loop, self.robot, self.t = loop, robot, t
        self.law, self.n = loop.controller, robot.nv
        z0 = started(self.law, robot)
        self.stateless = z0 is None
        self.states = 0 if z0 is None else np.size(z0)
        if z0 is not None and np.ndim(z0) != 1:
            raise ArgumentError(f"controller: expected a state that is a vector, got shape {np.shape(z0)}")
        self._slopes: Any = None

    def start(self, q0, v0):
        z0 = started(self.law, self.robot, q0, v0)
        return np.zeros(0) if z0 is None else np.asarray(z0, float), np.zeros((self.states, 2 * self.n))

    def command(self, k, q, v, z):
        command = self.law(float(self.t[k]), q, v, None if self.stateless else z)
        if not isinstance(command, Command) or np.shape(command.tau) != (self.n,):
            raise SimulationError(f"controller: expected a Command of {self.n} torques, got {shown(command)}")
        after = z if command.z_next is None else command.z_next
        return command.tau, after if command.z_rate is None else after + self.loop.period * command.z_rate

    def slopes(self, first, q, v, z, gains):
        if self._slopes is None:
            self._slopes = law_slopes(self.law, self.robot)
        N, n, m = len(q), self.n, self.states
        command, state = np.zeros((N, n, 2 * n + m)), np.zeros((N, m, 2 * n + m))
        for k in range(N):
            slopes = self._slopes(float(self.t[first + k]), q[k], v[k], None if self.stateless else z[k])
            command[k] = slopes["tau"]
            if m:
                state[k] = slopes.get("z_next", np.eye(m, 2 * n + m, 2 * n))
                state[k] += self.loop.period * slopes.get("z_rate", 0.0)
        return LoopSlopes(command, state, np.zeros((N, n, 0)), np.zeros((N, m, 0)))
