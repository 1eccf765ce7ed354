"""Close the loop: plant + controller + reference -> Run, integrated on the Lie group, with monitors watching.

The state is y = (q, v, z, work) on the product of the robot's configurations, R^nv, the controller's own group and R.
With `control_dt=None` the controller is evaluated at every integrator stage: one ODE on that product, the setting of
the proofs. With a number its command is held between samples, as on hardware.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import ROTATION_TOLERANCE, checked
from geomctrl.errors import ArgumentError, GeomctrlError, IntegrationError, SimulationError
from geomctrl.integrators.driver import steps
from geomctrl.integrators.explicit import rk_step
from geomctrl.integrators.march import check_storing
from geomctrl.integrators.step_control import checked_tolerances
from geomctrl.integrators.tableaus import method as method_named
from geomctrl.lie.groups import Product, Rn
from geomctrl.mechanism.configuration import configuration_group
from geomctrl.mechanism.states import one_configuration
from geomctrl.motion.arguments import duration, step_count
from geomctrl.robot import Robot

from .compiled_loop import checked_choice, machine_for
from .contracts import Command, Controller
from .desired import evaluated_once
from .machine import SAMPLE, STEP, Machine
from .monitors import Monitor, Sample, monitor_list
from .plant import Plant
from .progress import shown
from .record import Record
from .run import Run

MOST_STEPS = 10_000  # of an adaptive method from one sample to the next
CHUNK = 4096  # steps that compiled code takes before others have their turn, some milliseconds
FEW, MOST_STOPS = 10, 20  # compiled code that stops so often within so few steps is left alone
SOON = 1e-12  # s before a change that count as at it, as for `Plant.at`


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
    compiled: bool | str = "auto",
) -> Run:
    """Run the closed loop from (q0, v0) for t_end seconds in steps of dt.

    method: of `integrators`; an adaptive one ("MK54") takes steps of its own from sample to sample, dt apart, with an
    error of at most atol + rtol |x| each, x the coordinates of q, v, the controller's state and the work.
    control_dt: None, or a multiple of dt at which the controller is sampled. monitors: "default", None or
    `monitors.Monitor`s. progress: True for a bar, or a function of the fraction done. every: store each every-th
    sample (and the last); monitors see every one. compiled: "auto" runs what traces in compiled code, where the run is
    long enough for that to pay, and says once why a long one runs in Python; True raises UntraceableError then, with
    file and line; False is Python. The results differ by rounding.

    Raises ArgumentError for bad arguments; SimulationError, whose `run` holds everything up to then, when the state
    stops being finite, the controller returns what no robot can use, or, with strict=True, at the first step at
    which a monitor exceeds its limit.
    """
    choice = checked_choice(compiled)
    plant = plant if isinstance(plant, Plant) else Plant(plant)
    loop = Loop(plant, controller, q0, v0, method, control_dt, dt, rtol, atol)
    n_steps = step_count(t_end, dt)
    check_storing(every, None if isinstance(progress, bool) else progress)
    record = Record(plant, controller, loop.z_shape, monitor_list(monitors), n_steps // int(every) + 2)
    way = Way(loop, record, n_steps, dt, t_end, int(every), strict)
    unstable = np.errstate(over="ignore", invalid="ignore")  # an unstable loop says so itself
    with shown(progress) as report, evaluated_once(), unstable:
        return way.to_end(choice, report)


class Way:
    """The way of a loop from its first sample to its last: in compiled code where there is some, else in Python.

    Compiled code knows results only. Where it has none, a step or a sample is Python's, which has the words, or goes on.
    """

    def __init__(self, loop: Loop, record: Record, n_steps: int, dt: float, t_end: float, every: int, strict: bool):
        self.loop, self.record, self.strict = loop, record, strict
        self.n_steps, self.dt, self.t_end, self.every = n_steps, dt, t_end, every
        self.k, self.next, self.k1 = 0, SAMPLE, loop.rates
        self.machine: Machine | None = None
        self.stops = 0  # of compiled code, one after the other

    @property
    def done(self) -> bool:
        return self.k == self.n_steps and self.next == STEP

    def time(self, k: int) -> float:
        return min(k * self.dt, self.t_end)

    def to_end(self, choice: bool | str, report: Callable[[float], Any]) -> Run:
        """The run. choice: what `simulate` calls `compiled`. Raises SimulationError with everything up to then."""
        with self.kept():
            self.sample()
            report(0.0 if self.n_steps else 1.0)
        self.machine = self.machine_chosen(choice)
        while not self.done:
            with self.kept():
                if not (self.machine and self.advanced(self.machine)):
                    self.in_python()
                if self.machine or self.k % 64 == 0 or self.done:
                    report(self.k / self.n_steps)
            if self.machine and self.compiled_for is not self.loop.now:
                self.machine = self.machine_chosen(choice)
        return self.record.run(f"reached t = {self.t_end:g} s", success=True)

    def in_python(self) -> None:
        """The step that comes next, if one does, and the sample after it."""
        if self.next == STEP:
            t = self.time(self.k)
            self.loop.step(t, min(self.dt, self.t_end - t), self.k1)
            self.k, self.next = self.k + 1, SAMPLE
        self.sample()

    def sample(self) -> None:
        """Sample k: the command, the rates, what the monitors measure, a row of the record."""
        k, loop, record = self.k, self.loop, self.record
        t = self.time(k)
        sample, command, self.k1 = loop.sample(k, t)
        violated = record.add(sample, loop.split(loop.y), command, k % self.every == 0 or k == self.n_steps)
        record.steps = k
        if self.strict and violated is not None:
            raise _broken(*violated, t)
        self.next = STEP

    @contextmanager
    def kept(self) -> Iterator[None]:
        """What is raised in here ends the run, which is kept, be it of a caller's controller, wrench or monitor."""
        try:
            yield
        except Exception as error:
            reason = _reason(error, self.time(self.k), self.dt, self.loop.adaptive)
            known = isinstance(error, SimulationError)
            raise SimulationError(reason, self.record.run(reason, success=False)) from (None if known else error)

    # --- compiled ------------------------------------------------------------------------------------------------

    def machine_chosen(self, choice: bool | str) -> Machine | None:
        self.compiled_for = self.loop.now
        return machine_for(self.loop, self.record, choice, self.strict, self.n_steps)

    def advanced(self, machine: Machine) -> bool:
        """Go on as far as compiled code goes at a time; False where Python has to."""
        last = min(self.k + CHUNK, self.steps_as_it_is())
        if self.next == SAMPLE or last <= self.k:
            return False
        machine.put(0, self.loop, self.record, self.time(self.k), self.k1)
        first = self.k
        self.k, self.next, stopped, rows = machine.run(self.k, last, self.every, self.n_steps, self.dt, self.t_end)
        self.k1 = machine.take(0, self.loop, self.record)
        columns = machine.columns(rows, 0)
        self.record.extend(columns, self.loop.split(columns["y", ""]))
        self.record.steps = self.k - (self.next == SAMPLE)
        self.stops = self.stops + 1 if stopped and self.k - first < FEW else 0
        if self.stops > MOST_STOPS:
            self.machine = None
        return not stopped

    def steps_as_it_is(self) -> int:
        """The step within which, or at whose end, the plant changes next."""
        ahead = [start for start, _ in self.loop.plant.changes if start - SOON > self.time(self.k)]
        if not ahead:
            return self.n_steps
        k = max(int(min(ahead) / self.dt) - 2, self.k)
        while k < self.n_steps and self.time(k + 1) < min(ahead) - SOON:
            k += 1
        return k


def _broken(monitor: Monitor, value: float, t: float) -> SimulationError:
    return SimulationError(
        f"strict: monitor {monitor.name!r} at t = {t:.6g} s: {monitor.what} is {value:.3e}, limit {monitor.limit:.0e}"
    )


def _reason(error: Exception, t: float, dt: float, adaptive: bool) -> str:
    """Why a run ends at time t."""
    if isinstance(error, SimulationError):
        return str(error)
    if isinstance(error, IntegrationError):
        cause = "too stiff" if adaptive else f"dt = {dt:g} s too long for it"
        return f"stopped at t = {t:.6g} s: the closed loop is unstable, or {cause}: {error}"
    if isinstance(error, GeomctrlError):
        return f"stopped at t = {t:.6g} s: {error}"
    return f"stopped at t = {t:.6g} s: {type(error).__name__} in the closed loop: {error}"


class Loop:
    """The closed loop as an ODE: its state y, its field, and the step.

    User code never sees y itself: a sample hands out a copy, which nothing writes on later, and a stage its own array.
    """

    def __init__(self, plant: Plant, controller, q0, v0, method, control_dt, dt, rtol, atol):
        robot = plant.robot
        self.plant, self.now, self.controller = plant, plant.at(0.0), controller
        self.reference = _reference(controller)
        q0, v0 = one_configuration(robot, "q0", q0), checked("v0", v0, (robot.nv,))
        if v0.ndim != 1:
            raise ArgumentError(f"v0: expected one velocity ({robot.nv},), got shape {v0.shape}")
        z0, self.z_group = _start(controller)
        self.z_shape = None if z0 is None else z0.shape
        self.group = Product(configuration_group(robot), Rn(robot.nv), self.z_group, Rn(1))
        self.tableau = method_named(method)
        self.adaptive, self.h = self.tableau.b_hat is not None, None  # the first step that an adaptive method tries
        self.tolerances = checked_tolerances(rtol, atol, self.tableau, self.group)
        z = np.zeros(0) if z0 is None else z0.ravel()
        a, b, c = robot.nq, robot.nq + robot.nv, robot.nq + robot.nv + len(z)
        self.parts = slice(0, a), slice(a, b), slice(b, c)
        self.y = np.concatenate((q0, v0, z, [0.0]))
        dim = self.z_group.dim
        self.rates = np.zeros(self.group.dim)  # (v, vdot, z_rate, power): `field` gives it out, a step copies it
        self.z_rates = self.rates[2 * robot.nv : 2 * robot.nv + dim]
        self.rate_shapes = {(dim,)} if dim else set()
        if dim and z0 is not None and z0.size == dim:  # on a group a rate is a vector of its algebra
            self.rate_shapes.add(z0.shape)
        self.hold = hold_count(control_dt, dt)
        self.command: Command | None = None
        self.changed = False  # the true robot, since the last sample

    def split(self, y):
        """(q, v, z) as views of the state, or of states (n, ...)."""
        q, v, z = self.parts
        if self.z_shape is None:
            return y[..., q], y[..., v], None
        flat = len(self.z_shape) == 1
        return y[..., q], y[..., v], (y[..., z] if flat else y[..., z].reshape(*y.shape[:-1], *self.z_shape))

    def checked_command(self, t, q, v, z) -> Command:
        command = self.controller(t, q, v, z)
        if not isinstance(command, Command):
            raise _no_command(t, command)
        tau, rate, _ = command
        if not (_is_numbers(tau) and tau.shape == v.shape and math.isfinite(tau.dot(tau))):
            got = f"shape {tau.shape}" if _is_numbers(tau) and tau.shape != v.shape else f"{tau!r:.80}"
            wanted = f"tau, an array of {len(v)} finite numbers,"
        elif not (rate is None if not self.rate_shapes else _is_numbers(rate) and rate.shape in self.rate_shapes):
            got = f"shape {rate.shape}" if isinstance(rate, np.ndarray) else f"{rate!r:.60}"
            shapes = " or ".join(map(str, self.rate_shapes))
            wanted = f"z_rate, an array of shape {shapes}," if shapes else "no z_rate, as there is no state,"
        else:
            return command
        raise SimulationError(f"controller: expected {wanted} at t = {t:.6g} s, got {got}")

    def field(self, t, y, command=None):
        """The rates of (q, v, z, work), in an array that the next call writes on."""
        q, v, z = self.split(y)
        if command is None:
            command = self.command if self.hold else self.controller(t, q, v, z)
        if not isinstance(command, Command):
            raise _no_command(t, command)
        tau, z_rate, _ = command
        self.now.rate(t, q, v, tau, self.rates)
        if z_rate is not None:
            self.z_rates[:] = z_rate if z_rate.ndim == 1 else z_rate.ravel()
        elif self.rate_shapes:
            raise SimulationError(f"controller: expected z_rate at t = {t:.6g} s, as at the step's beginning, got None")
        return self.rates

    def sample(self, k: int, t: float):
        """What happens at the beginning of step k, the command then, and the rates."""
        if self.plant.changes:
            self.change(t)
        changed, self.changed = self.changed, False
        y = self.y.copy()
        q, v, z = self.split(y)
        if not math.isfinite(y.dot(y)):
            raise SimulationError(f"the closed loop is unstable: the state is not finite at t = {t:.6g} s")
        if not self.hold or k % self.hold == 0:
            self.command = self.checked_command(t, q, v, z)
        assert self.command is not None
        work, tau = float(y[-1]), self.command.tau
        sample = Sample(t, q, v, z, tau, work, self.now, changed, self.group, y, self.reference)
        return sample, self.command, self.field(t, y, self.command)

    def change(self, t: float) -> None:
        """Let the plant be what it is at time t."""
        plant = self.plant.at(t)
        if plant.robot is not self.now.robot:
            self.now, self.changed = plant, True

    def step(self, t: float, h: float, k1) -> None:
        """From t to t + h, in pieces where the plant changes in between."""
        end = t + h
        for start, _ in self.plant.changes:
            if t + 1e-9 * h < start < end - 1e-9 * h:
                self.advance(t, start - t, k1)
                self.change(start)
                t, k1 = start, None
        self.advance(t, end - t if k1 is None else h, k1)

    def advance(self, t: float, h: float, k1) -> None:
        if not self.adaptive:
            self.y = rk_step(self.field, t, self.y, h, self.tableau, self.group, k1)[0]
            return
        rtol, atol = self.tolerances
        count, first = 0, None if self.h is None else min(self.h, h)
        for count, (at, y) in enumerate(
            steps(self.field, self.y, (t, t + h), first, self.tableau, self.group, rtol=rtol, atol=atol)
        ):
            if count > MOST_STEPS:
                raise IntegrationError(f"more than {MOST_STEPS} steps from t = {t:.6g} s to reach {at:.9g} s")
            self.y = y
        self.h = h / count


def _reference(controller: Any) -> Any:
    """The controller's reference, if it has one."""
    if not callable(controller) or isinstance(controller, type):
        raise ArgumentError(f"controller: expected a geomctrl.Controller, got {controller!r:.60}")
    reference = getattr(controller, "reference", None)
    if reference is not None and not callable(reference):
        raise ArgumentError(f"controller: expected a reference t -> Desired(q, v, a), got {reference!r:.60}")
    return reference


def _start(controller) -> tuple[np.ndarray | None, Any]:
    """The controller's own state at the start, or None, and its group."""
    z0 = controller.start() if hasattr(controller, "start") else None
    group = getattr(controller, "group", None)
    if z0 is None:
        if group is not None:
            raise ArgumentError(f"controller: its state is in {group!r}, but start() returned None")
        return None, Rn(0)
    if group is None:
        z0 = checked("controller.start()", z0, ())
        return z0, Rn(z0.size)
    z0 = checked("controller.start()", z0, group.shape)
    if z0.shape != group.shape or not group.residual(z0) < ROTATION_TOLERANCE:
        raise ArgumentError(f"controller: expected start() to return an element of {group!r}, got {z0}")
    return z0, group


def _is_numbers(x) -> TypeGuard[np.ndarray]:
    return isinstance(x, np.ndarray) and x.dtype.kind in "fiu"


def _no_command(t, command) -> SimulationError:
    return SimulationError(f"controller: expected a geomctrl.Command at t = {t:.6g} s, got {command!r:.60}")


def hold_count(control_dt: float | None, dt: float) -> int:
    """Steps between samples of the controller, 0 for a continuous one."""
    if control_dt is None:
        return 0
    control_dt, dt = duration("control_dt", control_dt), duration("dt", dt)
    count = round(control_dt / dt)
    if count < 1 or abs(control_dt / dt - count) > 1e-6:
        raise ArgumentError(f"control_dt: expected a multiple of dt = {dt:g} s, got {control_dt:g}")
    return count
