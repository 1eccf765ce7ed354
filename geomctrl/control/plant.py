"""The plant: the true robot with its actuators, friction, springs, stops, changing loads and external wrenches.

No model need equal it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from geomctrl.arguments import FLOAT64, checked, instance, listed, one_state
from geomctrl.described import Described
from geomctrl.errors import ArgumentError
from geomctrl.kernels import plant as kernels
from geomctrl.mechanism.configuration import single_coordinates
from geomctrl.robot import Robot
from geomctrl.tracing.arrays import scalar

from .actuators.actuator import Actuator
from .actuators.chain import Chain, chain_of
from .desired import time
from .friction import Friction
from .sensing import checked_sensors
from .sensors.sensor import Sensor
from .stops import JointStops
from .subclass_checks import overrides, require_arguments, require_together
from .wrenches import SWITCH_TOLERANCE, ExternalWrenches, external_wrenches

SIGNATURES = {
    "net_torque": "t, q, v, tau, x",
    "start": "q0, v0",
    "state_rate": "t, q, v, tau, x",
    "stored_energy": "q, x",
    "storage_power": "t, q, v, tau, x",
}


@dataclass(frozen=True, eq=False, repr=False)
class Plant(Described):
    """The true robot: M vdot + C v + g + friction(v) + springs(q) + stops(q, v) = tau + sum_i Jac_i^T f_ext_i.

    tau are the joint torques that `actuators` make of the command, or the command itself without them: one
    `actuators.Actuator` or several, in order from the command on. Springs are those of the robot's joints, stiffness
    (q - rest) each; few robots have any. friction: a `Friction`, "model" for the damping and friction of the robot's
    model file, or None. stops: `JointStops` at the limits of the joints' positions; without, monitors report what goes
    beyond them. f_ext: a `Wrench`, a `Contact`, a function (t, q, v) of the wrenches (nbodies, 6) on the bodies, in
    body frames, or a list of these; a function's attribute `switches` lists the times at which it is not smooth.
    changes: (time, robot) pairs; from that time on that robot is the true one (a load gripped or dropped); all must
    have the same joints. Integrators step on all such times exactly: `switches`. sensors: one or several of
    `geomctrl.sensors`, what a controller is told of the truth, at samples.

    Another plant is a subclass. Its implementer's contract:

    1. `net_torque(t, q, v, tau, x)` returns the torques (nv,) that move the robot, from the actuators' tau (nv,): tau
       less friction, springs and stops, which `super().net_torque(...)` is. Override it for anything that acts at the
       joints: acceleration, rate, power, and compiled loops follow from it. No side effects, and nothing is written on.
    2. A plant with a continuous state x of its own on R^n overrides two: `start(q0, v0)`, the state (n,) it begins with
       where the robot does, and `state_rate(t, q, v, tau, x)`, its rate. x is None without one.
    3. A plant that stores energy in x, or a potential in q, overrides two: `stored_energy(q, x)` [J], and
       `storage_power(t, q, v, tau, x)` [W], what flows into the store: in from outside, less what goes to the robot as
       net torque, less what is lost. The energy balance of a run then checks the one against the other.
    4. Only a plant that is not the equation above overrides these two: `acceleration(t, q, v, tau, x=None)`, tau here
       being the command, and `power(t, q, v, tau, x=None)`; `net_torque` is not asked then. With both, and to save
       time, also `rate(t, q, v, tau, out, x=None)`.
    5. What belongs together is overridden together, by one class: that is looked at when the class is made, and so is
       with which arguments its methods can be called. `__init__` calls this class's.
    6. To be compiled, methods use numpy without branches on numbers, as a controller's law does; what they know are
       attributes, set by `__init__` and never again.

    The state of the whole plant, `Run.x` and a monitor's `sample.x`, is its own x, then the actuators' in their order.
    """

    robot: Robot
    friction: Friction | str | None = "model"
    f_ext: Any = None
    changes: Sequence[tuple[float, Robot]] = ()
    actuators: Sequence[Actuator] | Actuator = field(default=(), kw_only=True)
    sensors: Sequence[Sensor] | Sensor = field(default=(), kw_only=True)
    stops: JointStops | None = field(default=None, kw_only=True)
    switches: tuple[float, ...] = field(init=False, repr=False)  # times [s] at which it becomes another
    _law: Friction | None = field(init=False, repr=False)
    _coefficients: np.ndarray = field(init=False, repr=False)
    _coulomb: int = field(init=False, repr=False)
    _springs: tuple[np.ndarray, np.ndarray] | None = field(init=False, repr=False)
    _stops: JointStops | None = field(init=False, repr=False)
    _chain: Chain | None = field(init=False, repr=False)

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        require_together(cls, "start", "state_rate", why="the beginning of a state of its own and its rate")
        require_together(cls, "stored_energy", "storage_power", why="an energy and what flows into it")
        require_together(cls, "acceleration", "power", why="what moves the robot; `net_torque` alone gives both")
        if overrides(cls, Plant, "rate") and not overrides(cls, Plant, "acceleration"):
            raise ArgumentError(
                f"{cls.__name__}: overrides `rate` without `acceleration` and `power`: they belong together;"
                " `net_torque` alone gives all three"
            )
        for name, arguments in SIGNATURES.items():
            require_arguments(cls, name, arguments)

    def __post_init__(self):
        if not isinstance(self.robot, Robot):
            raise ArgumentError(f"robot: expected a geomctrl.Robot, got {self.robot!r:.60}")
        law, nv = self._checked_friction(), self.robot.nv
        put = object.__setattr__
        put(self, "f_ext", external_wrenches(self.robot, self.f_ext))
        put(self, "changes", self._checked_changes())
        times = {*(t for t, _ in self.changes), *getattr(self.f_ext, "switches", ())}
        put(self, "switches", tuple(sorted(times)))
        put(self, "_chain", chain_of(self.actuators, nv))
        put(self, "actuators", self._chain.links if self._chain else ())
        put(self, "friction", law)
        put(self, "_law", law)
        law = Friction() if law is None else law
        rows = np.append(law.parameters(nv), np.full(nv, float(law.smoothing))).reshape(3, nv)
        put(self, "_coefficients", rows)
        put(self, "_coulomb", int(rows[1].any()))
        stops = self.stops
        if stops is not None:
            stops = instance("stops", stops, JointStops, "geomctrl.JointStops or None").of(self.robot)
        put(self, "_stops", stops)
        put(self, "_springs", _springs(self.robot))
        put(self, "sensors", checked_sensors(self))

    def _checked_friction(self) -> Friction | None:
        law, robot = self.friction, self.robot
        if isinstance(law, str) and law == "model":
            any_ = robot.damping.any() or robot.friction.any()
            law = Friction(robot.damping, robot.friction) if any_ else None
        if law is not None and not isinstance(law, Friction):
            raise ArgumentError(f"friction: expected a Friction, 'model' or None, got {self.friction!r}")
        if law is not None:
            law.check(robot.nv)
        return law

    def _checked_changes(self) -> tuple[tuple[float, Robot], ...]:
        try:
            pairs = [(t, robot) for t, robot in listed("changes", self.changes)]
        except (TypeError, ValueError):
            raise ArgumentError(f"changes: expected (time, robot) pairs, got {self.changes!r:.80}") from None
        for t, robot in pairs:
            if not (isinstance(t, int | float | np.number) and math.isfinite(t) and isinstance(robot, Robot)):
                raise ArgumentError(f"changes: expected a finite time and a geomctrl.Robot, got {t} and {robot!r:.60}")
            if not _same_joints(robot, self.robot):
                raise ArgumentError(f"changes: the robot from t = {t:g} on has other joints than the first")
        return tuple(sorted(((float(t), robot) for t, robot in pairs), key=lambda pair: pair[0]))

    def at(self, t: float) -> Plant:
        """The plant as it is from time t on, until the next change."""
        t, robot = time(t), self.robot
        if not self.switches:
            return self
        for start, changed in self.changes:
            if t >= start - SWITCH_TOLERANCE:
                robot = changed
        plant = copy.copy(self)  # a subclass keeps what it adds
        object.__setattr__(plant, "robot", robot)
        object.__setattr__(plant, "changes", ())
        object.__setattr__(plant, "switches", ())
        if isinstance(self.f_ext, ExternalWrenches):
            object.__setattr__(plant, "f_ext", self.f_ext.at(t))
        object.__setattr__(plant, "_springs", _springs(robot))
        if self.stops is not None:
            object.__setattr__(plant, "_stops", self.stops.of(robot))
        return plant

    # --- sizes and states ----------------------------------------------------------------------------------------

    @property
    def friction_parameters(self) -> np.ndarray:
        """(viscous, coulomb) as one vector (2 nv,), zero without friction."""
        return self._coefficients[:2].ravel()

    @property
    def inputs(self) -> int:
        """How many numbers a command has: nv, or what the first actuator takes."""
        return self._chain.inputs if self._chain else self.robot.nv

    @property
    def has_state(self) -> bool:
        """Whether it, or one of its actuators, has a continuous state of its own."""
        return overrides(type(self), Plant, "start") or bool(self._chain and self._chain.states)

    @property
    def stores_energy(self) -> bool:
        """Whether it, or one of its actuators, stores energy."""
        return overrides(type(self), Plant, "stored_energy") or bool(self._chain and any(self._chain.storing))

    def start(self, q0: np.ndarray, v0: np.ndarray) -> np.ndarray | None:
        """The state of its own (n,) that a subclass begins with; None without one."""
        return None

    @property
    def sampled_actuators(self) -> tuple[Any, ...]:
        """Those that act at samples, the first of all."""
        return () if self._chain is None else self._chain.links[: self._chain.sampled]

    def state_at_start(self, q0: np.ndarray, v0: np.ndarray) -> np.ndarray | None:
        """The whole state x (nx,), its own and the actuators', where the robot begins with q0, v0; None without any."""
        q0, v0, parts = one_state("q0", q0, self.robot.nq), one_state("v0", v0, self.robot.nv), []
        if overrides(type(self), Plant, "start"):
            begun: Any = self.start(q0, v0)
            own = checked(f"{type(self).__name__}.start(q0, v0)", begun, ())
            if own.ndim != 1 or not own.size:
                raise ArgumentError(f"{type(self).__name__}.start(q0, v0): expected a vector, got shape {own.shape}")
            parts.append(own)
        if self._chain is not None and self._chain.states:
            parts.append(self._chain.start(v0))
        return np.concatenate(parts) if parts else None

    def _split(self, x: Any) -> tuple[Any, Any]:
        """(its own, the actuators') of the state."""
        if x is None or self._chain is None or not self._chain.states:
            return x, None
        n = len(x) - self._chain.states
        return (x[:n] if n else None), x[n:]

    # --- what acts ------------------------------------------------------------------------------------------------

    def applied_torque(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, x: Any = None) -> np.ndarray:
        """The joint torques (nv,) that the actuators make of the command tau (inputs,)."""
        t, q, v, tau, x = self._arguments(t, q, v, tau, x)
        for name, a in (("q", q), ("v", v), ("tau", tau)):
            checked(name, a, a.shape)
        return self.applied(t, q, v, tau, x)

    def applied(self, t, q, v, tau, x):
        """`applied_torque`, of what is known to be a state."""
        return tau if self._chain is None else self._chain.torque(t, tau, v, self._split(x)[1])

    def net_torque(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, x: Any) -> np.ndarray:
        """tau (nv,) less what friction, springs and stops take."""
        if self._law is not None:
            tau = tau - self._law.acting(v)
        if self._springs is not None:
            stiffness, preload = self._springs
            tau = tau - (q @ stiffness - preload)
        if self._stops is not None:
            tau = tau + self._stops.torque(q, v)
        return tau

    def _net(self, t, q, v, tau, x):
        own, theirs = self._split(x)
        if self._chain is not None:
            tau = self._chain.torque(t, tau, v, theirs)
        return self.net_torque(t, q, v, tau, own)

    def state_rate(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, x: Any) -> Any:
        """The rate (n,) of a subclass's own state."""
        return None

    def stored_energy(self, q: np.ndarray, x: Any) -> float:
        """What a subclass's own state, or its springs, store [J]."""
        return 0.0

    def storage_power(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, x: Any) -> float:
        """What flows into that [W]."""
        return 0.0

    def energy_beside(self, q: np.ndarray, x: Any) -> float:
        """What the plant stores beside the robot's own energy, its actuators' among it [J]."""
        own, theirs = self._split(x)
        energy = self.stored_energy(q, own)
        return energy if self._chain is None else energy + self._chain.stored_energy(theirs)

    # --- equations of motion --------------------------------------------------------------------------------------

    def acceleration(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, x: Any = None) -> np.ndarray:
        """vdot (nv,) under the command tau (inputs,), in the state x (nx,) of a plant that has one."""
        t, q, v, tau, x = self._arguments(t, q, v, tau, x)
        return self._accelerated(t, q, v, self._net(t, q, v, tau, x))

    def _accelerated(self, t, q, v, net):
        if self.f_ext is None:
            return self.robot.forward_dynamics(q, v, net)
        return self.robot.forward_dynamics(q, v, net, self.f_ext(t, q, v))

    def rate(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, out: np.ndarray, x: Any = None) -> None:
        """v and `acceleration` into the first 2 nv places of out, the rate of x into the next, `power` into the last.

        In one kernel call where nothing external, no spring, no stop and no subclass acts.
        """
        kind, (own, theirs) = type(self), self._split(x)
        command, stored, n = tau, 0.0, self.robot.nv
        if self._chain is not None:
            tau, rates, stored = self._chain.driven(t, tau, v, theirs)
            if rates is not None:
                out[-1 - len(rates) : -1] = rates
        if own is not None:
            out[2 * n : 2 * n + len(own)] = self.state_rate(t, q, v, tau, own)
        if kind.acceleration is not Plant.acceleration:
            out[:n], out[n : 2 * n] = v, self.acceleration(t, q, v, command, x)
            out[-1] = self.power(t, q, v, command, x)
            return
        if not self._in_kernel(q, v, tau, out):
            net = self.net_torque(t, q, v, tau, own)
            out[:n], out[n : 2 * n] = v, self._accelerated(t, q, v, net)
            out[-1] = self._fed(t, q, v, net)
        if kind.storage_power is not Plant.storage_power:
            stored = stored + self.storage_power(t, q, v, tau, own)
        out[-1] += stored

    def _in_kernel(self, q, v, tau, out) -> bool:
        """`rate` without a state's, in one call; False where that can not be."""
        plain = type(self).net_torque is Plant.net_torque and self._springs is None and self._stops is None
        if not plain or self.f_ext is not None:
            return False
        rate = self.robot._code.at(kernels.plant_rate, self._coulomb)(q, v, tau, self._coefficients)
        if rate is None:
            return False
        out[: len(rate) - 1], out[-1] = rate[:-1], rate[-1]
        return True

    def power(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, x: Any = None) -> float:
        """What flows into the robot's own energy and into what is stored beside it, in watts."""
        t, q, v, tau, x = self._arguments(t, q, v, tau, x)
        own, theirs = self._split(x)
        stored = 0.0
        if self._chain is not None:
            tau, _, stored = self._chain.driven(t, tau, v, theirs)
        power = self._fed(t, q, v, self.net_torque(t, q, v, tau, own)) + stored
        power = power + self.storage_power(t, q, v, tau, own)
        if type(power) is float and not (math.isfinite(power) and math.isfinite(q.dot(q))):
            for name, a in (("q", q), ("v", v), ("tau", tau)):
                checked(name, a, a.shape)
        return power

    def _fed(self, t, q, v, net):
        """The power of net torques and external wrenches."""
        if self.f_ext is not None:
            zero = np.zeros_like(v)
            held = self.robot.inverse_dynamics(q, zero, zero, f_ext=self.f_ext(t, q, v))
            net = net + self.robot.gravity_force(q) - held
        return scalar(v.dot(net))

    def _arguments(self, t, q, v, tau, x):
        """t, q, v, tau, x, as they are where a loop gave them: then the terms look at their values; else checked."""
        if x is not None or self.has_state:
            x = self._checked_state(x)
        robot, inputs = self.robot, self.inputs
        arrays = type(q) is type(v) is type(tau) is np.ndarray and q.dtype is v.dtype is tau.dtype is FLOAT64
        arrays = arrays and type(t) is float and t - t == 0.0 and self._chain is None  # what has a lag looks not at tau
        if arrays and q.shape == (robot.nq,) and v.shape == (robot.nv,) and tau.shape == (inputs,):
            return t, q, v, tau, x
        n, nq = robot.nv, robot.nq
        return time(t), one_state("q", q, nq), one_state("v", v, n), one_state("tau", tau, inputs), x

    def _checked_state(self, x):
        """The state x of a plant that has one."""
        if not self.has_state:
            raise ArgumentError(f"x: expected None, as the plant has no state of its own, got {x!r:.60}")
        if x is None:
            raise ArgumentError("x: expected the plant's own state, as of state_at_start, got None")
        a, states = checked("x", x, ()), self._chain.states if self._chain else 0
        own = overrides(type(self), Plant, "start")
        if a.ndim != 1 or (len(a) <= states if own else len(a) != states):
            raise ArgumentError(f"x: expected shape ({f'more than {states}' if own else states},), got {a.shape}")
        return a


def plant_of(name: str, x: object, *, state: bool = True) -> Plant:
    """x, or the plant of a robot alone; raises ArgumentError, naming the argument `name`, for anything else.

    state: whether it may have a continuous state of its own.
    """
    if isinstance(x, Robot):
        return Plant(x)
    plant = instance(name, x, Plant, "a geomctrl.Plant or a Robot")
    if plant.has_state and not state:
        whose = ", ".join(type(link).__name__ for link in plant.actuators) or type(plant).__name__
        raise ArgumentError(
            f"{name}: expected one without a state of its own, got one with ({whose}): promises are about q, v and z"
        )
    return plant


def _springs(robot: Robot) -> tuple[np.ndarray, np.ndarray] | None:
    """(K, b) of the springs' torque q K - b, (nq, nv) and (nv,); None where no joint has one."""
    if not robot.springs.stiffness.any():
        return None
    K = np.zeros((robot.nq, robot.nv))
    places, dofs = single_coordinates(robot)
    K[places, dofs] = robot.springs.stiffness[dofs]
    return K, robot.springs.stiffness * robot.springs.rest


def _same_joints(a: Robot, b: Robot) -> bool:
    return (
        a.parents == b.parents
        and np.array_equal(a.coupling.matrix, b.coupling.matrix)
        and np.array_equal(a.placements, b.placements)
        and all(np.array_equal(i.S, j.S) for i, j in zip(a.joints, b.joints))
    )
