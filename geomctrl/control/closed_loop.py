"""The closed loop as an ordinary differential equation on a Lie group.

The state is y = (q, v, z, x, work) on the product of the configuration space, R^nv, the controller's group, R^n for the
plant's own state, if it has one, and R. With `control_dt=None` the controller is evaluated at every stage of the
integrator: one ODE on that product, as in stability proofs. With a number, a zero-order hold keeps the command constant
between samples, as on hardware.
"""

from __future__ import annotations

import copy
import functools
import math
from bisect import bisect_right
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from geomctrl.arguments import ROTATION_TOLERANCE, checked, shown
from geomctrl.errors import ArgumentError, GeomctrlError, IntegrationError, SimulationError
from geomctrl.integrators.driver import steps
from geomctrl.integrators.explicit import rk_step
from geomctrl.integrators.step_control import Adaptive, tableau_and_tolerances
from geomctrl.integrators.tableaus import Tableau
from geomctrl.lie.groups import Product, Rn
from geomctrl.mechanism.configuration import configuration_group
from geomctrl.mechanism.states import one_configuration
from geomctrl.motion.trajectory import duration
from geomctrl.robot import Robot

from .contracts import Command, require_controller, require_reference, started, wants_measurements
from .plant import Plant
from .sample import Sample, State
from .sensing import sensing_of
from .sensors.sensor import Truth
from .wrenches import SWITCH_TOLERANCE

FLOAT = np.dtype(float)
NOTHING: Mapping[str, Any] = MappingProxyType({})
MAX_STEPS = 10_000  # of an adaptive method between two samples


class Loop:
    """The closed loop as an ODE: its state y, its vector field and one step.

    Arrays that user code receives are read-only and are never modified later.
    """

    def __init__(self, plant: Plant, controller, q0, v0, dt, control_dt=None, method: str | Tableau | Adaptive = "MK4"):
        robot = plant.robot
        self.plant, self.now, self.controller = plant, plant.at(0.0), controller
        self.piece = self.piece_at(0.0)
        require_controller_of(controller, robot)
        reference = getattr(controller, "reference", None)
        self.reference = None if reference is None else require_reference(reference, robot, "controller.reference")
        q0, v0 = one_configuration(robot, "q0", q0), checked("v0", v0, (robot.nv,))
        if v0.ndim != 1:
            raise ArgumentError(f"v0: expected one velocity ({robot.nv},), got shape {v0.shape}")
        z0, self.z_group = _start(controller, robot, q0, v0)
        x0 = plant._state_at_start(q0, v0)
        nx = 0 if x0 is None else len(x0)
        self.z_shape = None if z0 is None else z0.shape
        self.group = _group_of_states(configuration_group(robot), robot.nv, self.z_group, nx)
        self.method, self.h = method, None  # h is the first step size that an adaptive method tries
        self.tableau, *self.tolerances = tableau_and_tolerances(method, self.group)
        self.adaptive = self.tableau.b_hat is not None
        z = np.zeros(0) if z0 is None else z0.ravel()
        a, b, c = robot.nq, robot.nq + robot.nv, robot.nq + robot.nv + len(z)
        self.parts = slice(0, a), slice(a, b), slice(b, c)
        self.plants = None if x0 is None else slice(c, c + nx)  # position of x in y
        self.y = np.concatenate((q0, v0, z, np.zeros(0) if x0 is None else x0, [0.0]))
        self.inputs, self.tau_shapes = plant.inputs, {(plant.inputs,)}
        dim = self.z_group.dim
        self.rates = np.zeros(self.group.dim)  # (v, vdot, z_rate, x', power): result of `field`, reused by each call
        self.z_rates = self.rates[2 * robot.nv : 2 * robot.nv + dim]
        self.plant_rates = self.rates if x0 is None or not dim else np.zeros(2 * robot.nv + nx + 1)
        self.rate_shapes = {(dim,)} if dim else set()
        if dim and z0 is not None and z0.size == dim:  # on R^n a rate may also have the shape of z
            self.rate_shapes.add(z0.shape)
        self.next_shapes = {self.z_shape} if dim else set()
        self.hold = hold_count(control_dt, dt)
        self.sensing = sensing_of(plant, control_dt, dt, lambda name, period: hold_count(period, dt, name))
        self.with_measurements = wants_measurements(controller)
        self.driven = self.sensing is not None and bool(self.sensing.links)
        self.u = np.zeros(plant.inputs)  # output of the sampled actuators
        if self.with_measurements and not plant.sensors:
            raise ArgumentError("controller: it wants measurements, but the plant has no sensors: Plant(sensors=...)")
        self.command: Command | None = None  # of the last sample
        self.latest: Command | None = None  # of the last stage
        self.changed = False  # whether the true robot changed since the last sample

    def copied(self) -> Loop:
        """A copy that can step independently: the two share no array that one of them modifies."""
        own = copy.copy(self)
        own.rates = np.zeros_like(self.rates)
        own.plant_rates = own.rates if self.plant_rates is self.rates else np.zeros_like(self.plant_rates)
        first = 2 * self.plant.robot.nv
        own.z_rates = own.rates[first : first + self.z_group.dim]
        return own

    def split(self, y):
        """(q, v, z) as views of one state y or of states (n, ...)."""
        q, v, z = self.parts
        if self.z_shape is None:
            return y[..., q], y[..., v], None
        flat = len(self.z_shape) == 1
        return y[..., q], y[..., v], (y[..., z] if flat else y[..., z].reshape(*y.shape[:-1], *self.z_shape))

    def plant_state(self, y):
        """x as a view of one state y or of states (n, ...); None without a plant state."""
        return None if self.plants is None else y[..., self.plants]

    def call_law(self, law: Any, t, q, v, z, measured: Any = None) -> Any:
        """Call the law with the measured q and v if the plant has sensors, else with the true ones."""
        if self.sensing is None:
            return law(t, q, v, z)
        y = self.sensing.measured if measured is None else measured
        arguments = t, y.get("q", q), y.get("v", v), z
        return law(*arguments, y) if self.with_measurements else law(*arguments)

    def evaluated(self, t, q, v, z) -> Command:
        """The command with checked shapes. Samples check for finite values at once; stages leave that to `step`."""
        command = self.call_law(self.controller, t, q, v, z)
        if type(command) is Command:
            tau, rate, _, z_next = command
            if _fits(tau, self.tau_shapes):
                if z_next is None:
                    if _fits(rate, self.rate_shapes) if self.rate_shapes else rate is None:
                        return command
                elif self.hold and _fits(z_next, self.next_shapes) and (rate is None or _fits(rate, self.rate_shapes)):
                    return command
        raise self.problem(t, command)

    def problem(self, t, command: Any) -> SimulationError:
        """The error that describes what is wrong with a command."""
        if not isinstance(command, Command):
            wanted, got, shapes = "a geomctrl.Command", command, None
        elif not (_fits(command.tau, self.tau_shapes) and np.isfinite(command.tau).all()):
            wanted, got, shapes = f"tau, an array of {self.inputs} finite numbers,", command.tau, self.tau_shapes
        elif not self.rate_shapes:
            which = "z_rate" if command.z_next is None else "z_next"
            wanted, got, shapes = f"no {which}, as there is no state,", getattr(command, which), {None}
        elif command.z_next is not None and not self.hold:
            return SimulationError(
                "controller: its state is updated at samples (z_next): expected control_dt, got None"
            )
        elif not (command.z_next is None or (_fits(command.z_next, self.next_shapes) and _is_finite(command.z_next))):
            wanted, got = f"z_next, finite numbers of shape {self.z_shape},", command.z_next
            shapes = self.next_shapes
        else:
            among = " or ".join(map(str, self.rate_shapes))
            wanted, got, shapes = f"z_rate, finite numbers of shape {among},", command.z_rate, self.rate_shapes
        received = f"{shown(got)}"
        if shapes is not None and isinstance(got, np.ndarray) and got.shape not in shapes:
            received = f"shape {got.shape}"
        return SimulationError(f"controller: expected {wanted} at t = {t:.6g} s, got {received}")

    def raise_about_command(self, t, command: Command | None) -> None:
        """After a failed step, raise IntegrationError about the command if it contains values that are not finite."""
        if command is not None and not _has_finite_numbers(command):
            raise IntegrationError(str(self.problem(t, command))) from None

    def field(self, t, y, command: Any = None):
        """The rates of (q, v, z, x, work), in an array that the next call overwrites."""
        y.setflags(write=False)
        q, v, z = self.split(y)
        if command is None:
            command = self.latest = self.command if self.hold else self.evaluated(t, q, v, z)
        tau, z_rate, _, _ = command
        if self.driven:
            tau = self.u
        try:
            self._plant_rate(t, q, v, tau, y)
        except GeomctrlError:
            self.raise_about_command(t, command)
            raise
        if z_rate is not None:
            self.z_rates[:] = z_rate if z_rate.ndim == 1 else z_rate.ravel()
        return self.rates

    def _plant_rate(self, t, q, v, tau, y) -> None:
        if self.plants is None:
            self.now.rate(t, q, v, tau, self.rates)
            return
        out, rates = self.plant_rates, self.rates
        self.now.rate(t, q, v, tau, out, y[self.plants])
        if out is not rates:  # z_rate lies between vdot and x' in rates
            n = 2 * len(v)
            rates[:n], rates[n + len(self.z_rates) :] = out[:n], out[n:]

    def sample(self, k: int, t: float):
        """Evaluate sensors and controller at the beginning of step k. Returns the sample, the command and the rates."""
        if self.plant.switches:
            self.change(t)
        changed, self.changed = self.changed, False
        y = self.y
        y.setflags(write=False)
        q, v, z = self.split(y)
        if not math.isfinite(y.dot(y)):
            raise IntegrationError("the state is not finite")
        measured: Any = NOTHING
        if self.sensing is not None:
            tau = np.zeros(self.inputs) if k == 0 or self.command is None else self.command.tau
            truth = Truth(t, q, v, self.sensing.at_work(tau) if k else tau, self.plant_state(y), self.now)
            self.sensing.renew(k, truth)
            measured = self.sensing.measured
        if not self.hold or k % self.hold == 0:
            self.command = self.commanded(t, q, v, z)
        command: Any = self.command
        x = self.plant_state(y)
        applied = self.now._applied(t, q, v, self.drive(t, q, v, command.tau, x), x)
        state = State(q, v, z, x, float(y[-1]), y)
        sample = Sample(t, state, command, self.now, applied, changed, self.reference, measured)
        return sample, command, self.field(t, y, command)

    def drive(self, t, q, v, tau, x):
        """The output of the sampled actuators for a new command."""
        if self.sensing is not None and self.driven:
            self.sensing.drive(Truth(t, q, v, tau, x, self.now))
            self.u = tau = self.sensing.at_work(tau)
        return tau

    def commanded(self, t, q, v, z) -> Command:
        """The command at a sample, copied because plant and monitors read it while the law may reuse its arrays."""
        command = self.evaluated(t, q, v, z)
        if not _has_finite_numbers(command):
            raise self.problem(t, command)
        tau, z_rate, signals, z_next = command
        tau = tau.copy()
        tau.setflags(write=False)
        if self.hold:
            z_rate, z_next = (x if x is None else x.copy() for x in (z_rate, z_next))
        if z_rate is None:
            self.z_rates[:] = 0.0
        return Command(tau, z_rate, signals, z_next)

    def renew(self, k: int) -> None:
        """Update the controller's state to z_next of sample k, after all monitors have seen the sample."""
        z_next = self.command.z_next if self.command is not None and self.hold and k % self.hold == 0 else None
        if z_next is not None:
            self.y = self.y.copy()
            self.y[self.parts[2]] = z_next.ravel()

    def piece_at(self, t: float) -> int:
        """Number of switches of the plant up to time t."""
        return bisect_right(self.plant.switches, t + SWITCH_TOLERANCE)

    def change(self, t: float) -> None:
        """Replace the plant by the one that is valid at time t."""
        piece = self.piece_at(t)
        if piece != self.piece:
            before, self.now, self.piece = self.now, self.plant.at(t), piece
            self.changed = self.changed or self.now.robot is not before.robot

    def step(self, t: float, h: float, k1) -> None:
        """Integrate from t to t + h, stopping at each switch of the plant."""
        end = t + h
        for start in self.plant.switches:
            if t + SWITCH_TOLERANCE < start < end - SWITCH_TOLERANCE:
                self.advance(t, start - t, k1)
                self.change(start)
                t, k1 = start, None
        self.advance(t, end - t if k1 is None else h, k1)

    def advance(self, t: float, h: float, k1) -> None:
        try:
            self._advance(t, h, k1)
        except IntegrationError:
            self.raise_about_command(t, self.latest)
            raise

    def _advance(self, t: float, h: float, k1) -> None:
        if not self.adaptive:
            self.y = rk_step(self.field, t, self.y, h, self.tableau, self.group, k1)[0]
            return
        count, first = 0, None if self.h is None else min(self.h, h)
        for count, (reached, y) in enumerate(steps(self.field, self.y, (t, t + h), first, self.method, self.group)):
            if count > MAX_STEPS:
                raise IntegrationError(f"more than {MAX_STEPS} steps from t = {t:.6g} s to reach {reached:.9g} s")
            self.y = y
        self.h = h / count


@functools.lru_cache(maxsize=64)
def _group_of_states(configurations: Any, nv: int, z_group: Any, nx: int) -> Product:
    return Product(configurations, Rn(nv), z_group, *([Rn(nx)] if nx else []), Rn(1))


def require_controller_of(controller: Any, robot: Robot) -> None:
    """Raise ArgumentError unless it is a controller, and its model has the joints of the robot."""
    require_controller(controller)
    model = getattr(controller, "robot", None)
    if not isinstance(model, Robot):
        return
    sizes = f"{model.nv} velocity coordinates ({model.name!r})", f"the plant {robot.nv} ({robot.name!r})"
    if (model.nq, model.nv) != (robot.nq, robot.nv):
        raise ArgumentError(
            f"controller: its model `robot` has {sizes[0]}, {sizes[1]}: expected the same joints. A law that"
            " converts q, v and tau for a reduced model must store that model under another attribute name"
        )
    if (model.is_rotational != robot.is_rotational).any():
        k = int(np.argmax(model.is_rotational != robot.is_rotational))
        kinds = ("turns" if r.is_rotational[k] else "slides" for r in (model, robot))
        raise ArgumentError(
            f"controller: its model {model.name!r} has other joints than the plant {robot.name!r}: expected the same"
            f" kinds, got {model.dof_names[k]!r}, which {next(kinds)}, for {robot.dof_names[k]!r}, which {next(kinds)}"
        )


def _start(controller: Any, robot: Robot, q0: np.ndarray, v0: np.ndarray) -> tuple[np.ndarray | None, Any]:
    """The initial state of the controller, or None, and the group it lives on."""
    z0 = started(controller, robot, q0, v0)
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


def _fits(x: Any, shapes: set) -> bool:
    return isinstance(x, np.ndarray) and (x.dtype is FLOAT or x.dtype.kind in "fiu") and x.shape in shapes


def _has_finite_numbers(command: Command) -> bool:
    return all(x is None or _is_finite(x) for x in (command.tau, command.z_rate, command.z_next))


def _is_finite(x: np.ndarray) -> bool:
    """Whether all numbers are finite; the second test is for numbers whose sum of squares overflows."""
    x = x if x.ndim == 1 else x.ravel()
    return math.isfinite(x.dot(x)) or bool(np.isfinite(x).all())


def hold_count(control_dt: float | None, dt: float, name: str = "control_dt") -> int:
    """`control_dt` (or the argument called `name`) in steps of dt; 0 for None, continuous time."""
    if control_dt is None:
        return 0
    control_dt, dt = duration(name, control_dt), duration("dt", dt)
    steps = control_dt / dt
    count = round(steps) if math.isfinite(steps) else 0
    if count < 1 or abs(steps - count) > 1e-6:
        raise ArgumentError(f"{name}: expected a multiple of dt = {dt:g} s, got {control_dt:g}")
    return count
