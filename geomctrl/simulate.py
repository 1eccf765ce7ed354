"""Close the loop: plant + controller + reference -> Run, integrated on the Lie group, with monitors watching.

The state is y = (q, v, z, work) on the product of the robot's configurations, R^nv, the controller's own group and R.
With `control_dt=None` the controller is evaluated at every integrator stage: one ODE on that product, the setting of
the proofs. With a number its command is held between samples, as on hardware.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .configuration import configuration_group
from .control import Command, Controller, configuration_argument
from .errors import ArgumentError, GeomctrlError, IntegrationError, SimulationError
from .groups import Product, Rn
from .integrators import checked_tolerances, integrate, rk_step
from .integrators import method as method_named
from .monitors import LyapunovDecrease, Monitor, MonitorResult, Sample, monitor_list
from .plant import Plant
from .robot import Robot
from .run import Run

ENDS = 2**31  # `every` of an integration that stores its two ends only


def simulate(
    plant: Plant | Robot,
    controller: Controller,
    q0: ArrayLike,
    v0: ArrayLike,
    t_end: float,
    dt: float,
    method: str = "MK4",
    control_dt: float | None = None,
    monitors: str | Iterable[Monitor] | None = "default",
    progress: bool | Callable[[float], None] = False,
    *,
    strict: bool = False,
    every: int = 1,
    rtol: float | None = None,
    atol: ArrayLike | None = None,
) -> Run:
    """Run the closed loop from (q0, v0) for t_end seconds in steps of dt.

    method: of `integrators`; an adaptive one ("MK54") takes steps of its own from sample to sample, dt apart, with an
    error of at most atol + rtol |x| each, x the coordinates of q, v, the controller's state and the work.
    control_dt: None, or a multiple of dt at which the controller is sampled. monitors: "default", None or
    `monitors.Monitor`s. progress: True for a bar, or a function of the fraction done. every: store each every-th
    sample (and the last); monitors see every one.

    Raises ArgumentError for bad arguments; SimulationError, whose `run` holds everything up to then, when the state
    stops being finite, the controller returns what no robot can use, or, with strict=True, at the first step at
    which a monitor exceeds its limit.
    """
    plant = plant if isinstance(plant, Plant) else Plant(plant)
    loop = _Loop(plant, controller, q0, v0, method, control_dt, dt, rtol, atol)
    n_steps = _step_count(t_end, dt)
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise ArgumentError(f"every: expected a positive integer, got {every!r}")
    record = _Record(loop, monitor_list(monitors), every, n_steps)
    with _bar(progress) as report, np.errstate(over="ignore", invalid="ignore"):  # an unstable loop says so itself
        for k in range(n_steps + 1):
            t = min(k * dt, t_end)
            try:
                sample, k1 = loop.sample(k, t)
                violated = record.add(k, sample, k == n_steps)
                if violated is not None and strict:
                    value = record.values[record.monitors.index(violated)]
                    raise SimulationError(
                        f"strict: monitor {violated.name!r} at t = {t:.6g} s: {violated.what} is {value:.3e},"
                        f" limit {violated.limit:.0e}"
                    )
                if k < n_steps:
                    loop.step(t, min(dt, t_end - t), k1)
            except SimulationError as error:
                raise SimulationError(str(error), record.run(str(error), success=False)) from None
            except GeomctrlError as error:
                why = str(error)
                if isinstance(error, IntegrationError):
                    cause = "too stiff" if loop.adaptive else f"dt = {dt:g} s too long for it"
                    why = f"the closed loop is unstable, or {cause}: {error}"
                reason = f"stopped at t = {t:.6g} s: {why}"
                raise SimulationError(reason, record.run(reason, success=False)) from error
            if k % 64 == 0 or k == n_steps:
                report(k / n_steps)
    return record.run(f"reached t = {t_end:g} s", success=True)


class _Loop:
    """The closed loop as an ODE: its state y, its field, and the step."""

    def __init__(self, plant: Plant, controller, q0, v0, method, control_dt, dt, rtol, atol):
        robot = plant.robot
        self.plant, self.now, self.controller = plant, plant.at(0.0), controller
        q0 = configuration_argument(robot, "q0", q0)
        v0 = np.array(v0, dtype=float)
        if v0.shape != (robot.nv,) or not np.isfinite(v0).all():
            raise ArgumentError(f"v0: expected {robot.nv} finite numbers, got shape {v0.shape}: {v0}")
        z0 = controller.start() if hasattr(controller, "start") else None
        self.z_shape = None if z0 is None else np.shape(z0)
        self.z_group = getattr(controller, "group", None) or Rn(int(np.size(z0)) if z0 is not None else 0)
        self.group = Product(configuration_group(robot), Rn(robot.nv), self.z_group, Rn(1))
        self.dim = self.group.dim
        self.tableau = method_named(method)
        self.adaptive, self.h = self.tableau.b_hat is not None, None  # the first step that an adaptive method tries
        self.tolerances = checked_tolerances(rtol, atol, self.tableau, self.group)
        a, b, c = robot.nq, robot.nq + robot.nv, robot.nq + robot.nv + int(np.size(z0) if z0 is not None else 0)
        self.parts = slice(0, a), slice(a, b), slice(b, c)
        z = np.zeros(0) if z0 is None else np.asarray(z0, dtype=float).ravel()
        self.y = np.concatenate((q0, v0, z, [0.0]))
        self.z_rate = slice(2 * robot.nv, 2 * robot.nv + self.z_group.dim)
        self.hold = _hold_count(control_dt, dt)
        self.command: Command | None = None

    def split(self, y):
        """(q, v, z) as views of the state."""
        q, v, z = self.parts
        if self.z_shape is None:
            return y[q], y[v], None
        return y[q], y[v], (y[z] if len(self.z_shape) == 1 else y[z].reshape(self.z_shape))

    def checked_command(self, t, q, v, z) -> Command:
        command = self.controller(t, q, v, z)
        if not isinstance(command, Command):
            raise SimulationError(f"controller: expected a geomctrl.Command at t = {t:.6g} s, got {command!r:.60}")
        tau = command.tau
        if not (isinstance(tau, np.ndarray) and tau.shape == v.shape and math.isfinite(tau.dot(tau))):
            shape = np.shape(tau)
            what = f"shape {shape}" if shape != v.shape else f"{tau}"
            raise SimulationError(f"controller: expected {len(v)} finite torques at t = {t:.6g} s, got {what}")
        rate = command.z_rate
        if (rate is None) != (self.z_group.dim == 0) or (rate is not None and np.size(rate) != self.z_group.dim):
            got = "None" if rate is None else f"shape {np.shape(rate)}"
            raise SimulationError(
                f"controller: expected z_rate of {self.z_group.dim} numbers at t = {t:.6g} s, got {got}"
            )
        return command

    def field(self, t, y, command=None):
        q, v, z = self.split(y)
        if command is None:
            command = self.command if self.hold else self.controller(t, q, v, z)
        tau, z_rate, _ = command  # pyright: ignore[reportGeneralTypeIssues] (held commands are set by `sample`)
        out = np.empty(self.dim)
        self.now.rate(t, q, v, tau, out)
        if z_rate is not None:
            out[self.z_rate] = z_rate if z_rate.ndim == 1 else z_rate.ravel()
        return out

    def sample(self, k: int, t: float):
        """What happens at the beginning of step k, and the field there."""
        changed = bool(self.plant.changes) and self.plant.at(t).robot is not self.now.robot
        if changed:
            self.now = self.plant.at(t)
        q, v, z = self.split(self.y)
        if not math.isfinite(self.y.dot(self.y)):
            raise SimulationError(f"the closed loop is unstable: the state is not finite at t = {t:.6g} s")
        if not self.hold or k % self.hold == 0:
            self.command = self.checked_command(t, q, v, z)
        assert self.command is not None
        sample = Sample(t, q, v, z, self.command.tau, float(self.y[-1]), self.now, changed, self.group, self.y)
        return sample, self.field(t, self.y, self.command)

    def step(self, t: float, h: float, k1) -> None:
        if not self.adaptive:
            self.y = rk_step(self.field, t, self.y, h, self.tableau, self.group, k1)[0]
            return
        rtol, atol = self.tolerances
        span = (t, t + h)
        taken = integrate(self.field, self.y, span, self.h, self.tableau, self.group, every=ENDS, rtol=rtol, atol=atol)
        if not taken.success:
            raise IntegrationError(taken.reason)
        self.y, self.h = taken.y[-1], h / taken.n_steps


class _Record:
    """Collects samples and monitors' numbers in arrays made for the whole run; makes the Run."""

    def __init__(self, loop: _Loop, monitors: list[Monitor], every: int, n_steps: int):
        self.loop, self.every, self.started = loop, every, time.perf_counter()
        self.monitors = [m for m in monitors if m.start(loop.plant, loop.controller)]
        self.lyapunov = next((m for m in self.monitors if isinstance(m, LyapunovDecrease)), None)
        self.worst, self.t_worst = [-1.0] * len(self.monitors), [0.0] * len(self.monitors)
        self.values: list[float] = []
        self.rows, robot, n = 0, loop.plant.robot, n_steps // every + 2
        self.t, self.q, self.v = np.empty(n), np.empty((n, robot.nq)), np.empty((n, robot.nv))
        self.tau, self.z = np.empty((n, robot.nv)), None if loop.z_shape is None else np.empty((n, *loop.z_shape))
        self.watched, self.promise = np.empty((n, len(self.monitors))), np.empty((n, 2))
        self.signals: dict[str, np.ndarray] = {}
        self.steps = 0

    def add(self, k: int, sample: Sample, final: bool) -> Monitor | None:
        violated = None
        self.values = values = [m.measure(sample) for m in self.monitors]
        for j, value in enumerate(values):  # nan exceeds everything
            if not value <= self.worst[j]:
                self.worst[j], self.t_worst[j] = value, sample.t
                if violated is None and not value <= self.monitors[j].limit:
                    violated = self.monitors[j]
        if k % self.every == 0 or final:
            self._store(sample, values)
        self.steps = k
        return violated

    def _store(self, sample: Sample, values: list[float]) -> None:
        row, command = self.rows, self.loop.command
        assert command is not None
        self.t[row], self.q[row], self.v[row], self.tau[row] = sample.t, sample.q, sample.v, sample.tau
        if self.z is not None:
            self.z[row] = sample.z
        self.watched[row] = values
        if self.lyapunov is not None:
            self.promise[row] = self.lyapunov.value, self.lyapunov.rate
        if row == 0:
            self.signals = {name: np.full((len(self.t), *np.shape(x)), np.nan) for name, x in command.signals.items()}
        for name, column in self.signals.items():
            if name in command.signals:
                column[row] = command.signals[name]
        self.rows += 1

    def run(self, reason: str, success: bool) -> Run:
        n = self.rows
        signals = {name: column[:n] for name, column in self.signals.items()}
        if self.lyapunov is not None:
            signals |= {"lyapunov": self.promise[:n, 0], "lyapunov_rate": self.promise[:n, 1]}
        results = {
            m.name: MonitorResult(m.name, m.what, m.limit, self.watched[:n, j], float(self.worst[j]), self.t_worst[j])
            for j, m in enumerate(self.monitors)
        }
        return Run(
            t=self.t[:n],
            q=self.q[:n],
            v=self.v[:n],
            tau=self.tau[:n],
            z=None if self.z is None else self.z[:n],
            signals=signals,
            monitors=results,
            reason=reason,
            success=success,
            steps=self.steps,
            wall_time=time.perf_counter() - self.started,
            plant=self.loop.plant,
            controller=self.loop.controller,
        )


def _step_count(t_end: float, dt: float) -> int:
    for name, x in (("t_end", t_end), ("dt", dt)):
        if not (isinstance(x, (int, float, np.number)) and math.isfinite(x) and x > 0.0):
            raise ArgumentError(f"{name}: expected a positive number of seconds, got {x!r}")
    if dt > t_end:
        raise ArgumentError(f"dt: expected a step no longer than t_end = {t_end:g} s, got {dt:g}")
    whole = t_end / dt
    return round(whole) if abs(whole - round(whole)) < 1e-6 else math.ceil(whole)


def _hold_count(control_dt: float | None, dt: float) -> int:
    """Steps between samples of the controller, 0 for a continuous one."""
    if control_dt is None:
        return 0
    count = round(control_dt / dt)
    if count < 1 or abs(control_dt / dt - count) > 1e-6:
        raise ArgumentError(f"control_dt: expected a multiple of dt = {dt:g} s, got {control_dt:g}")
    return count


class _bar:
    """A progress bar, a caller's function, or nothing."""

    def __init__(self, progress):
        self.progress = progress

    def __enter__(self) -> Callable[[float], Any]:
        self.live = None
        if callable(self.progress):
            return self.progress
        if not self.progress:
            return lambda fraction: None
        from rich.progress import Progress

        live = self.live = Progress(transient=True)
        live.start()
        task = live.add_task("simulating", total=1.0)
        return lambda fraction: live.update(task, completed=fraction)

    def __exit__(self, *exc):
        if self.live is not None:
            self.live.stop()
