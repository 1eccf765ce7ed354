"""The plant: the true robot with its actuators, friction, springs, stops, changing loads and external wrenches."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from geomctrl.arguments import FLOAT64, checked, instance, one_state
from geomctrl.described import Described
from geomctrl.errors import ArgumentError
from geomctrl.kernels import plant as kernels
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import scalar

from .actuators.actuator import Actuator
from .actuators.chain import Chain, chain_of
from .changes import checked_changes
from .contracts import time
from .friction.combined import friction_of, state_size
from .friction.coulomb import kernel_coefficients
from .sensing import checked_sensors
from .sensors.sensor import Sensor
from .stops import JointStops, joint_springs
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
    """The true robot: M vdot + C v + g + friction + springs(q) + stops(q, v) = tau + sum_i Jac_i^T f_ext_i.

    Parameters
    ----------
    robot : Robot
        The robot; its joints' springs act, stiffness (q - rest) each.
    friction : FrictionModel, list of FrictionModel, "model" or None
        "model" is the damping and friction of the robot's model file.
    f_ext : Wrench, Contact, function or list of these, optional
        External wrenches. A function (t, q, v) returns them (nbodies, 6), on the bodies and in body frames; its
        attribute `switches` lists the times at which it is not smooth.
    changes : sequence of (time, Robot)
        From that time on that robot is the true one (a load gripped or dropped). All have the same joints.
    actuators : Actuator or sequence of Actuator
        What makes the joint torques tau of the command, in order from the command on; default tau is the command.
    sensors : Sensor or sequence of Sensor
        What measures, at samples, the q and v that a controller receives.
    stops : JointStops, optional
        Stops at the limits of the joints' positions. Without, monitors report what goes beyond the limits.

    Notes
    -----
    Integrators step exactly on all times at which the plant changes, `switches`. For another plant derive a class:

    1. `net_torque(t, q, v, tau, x)` returns the torques (nv,) that move the robot but for friction, from the actuators'
       tau (nv,): tau less springs and stops, which `super().net_torque(...)` is. Override it for anything that acts at
       the joints: acceleration, rate, power, and compiled loops follow from it. It has no side effects and writes on
       none of its arguments. `friction` is subtracted from what it returns.
    2. A plant with a continuous state x of its own on R^n overrides two: `start(q0, v0)`, the state (n,) it begins with
       where the robot does, and `state_rate(t, q, v, tau, x)`, its rate. x is None without one.
    3. A plant that stores energy in x, or a potential in q, overrides two: `stored_energy(q, x)` [J], and
       `storage_power(t, q, v, tau, x)` [W], what flows into the store: in from outside, less what goes to the robot as
       net torque, less what is lost. The energy balance of a run then checks the one against the other.
    4. Only a plant that is not the equation above overrides these two: `acceleration(t, q, v, tau, x=None)`, tau here
       being the command, and `power(t, q, v, tau, x=None)`; `net_torque` is not asked then. With both, and to save
       time, also `rate(t, q, v, tau, out, x=None)`.
    5. One class overrides the methods that belong together; creating the class raises ArgumentError otherwise, and
       where a method takes other arguments. `__init__` calls this class's.
    6. To be compiled, methods use Python, numpy and math on numbers and arrays, as a law does. Attributes are set by
       `__init__` and never change.

    The state of the whole plant, `Run.x` and a monitor's `sample.x`, is its own x, then that of its friction, then the
    actuators' in their order.
    """

    robot: Robot
    friction: Any = "model"  # a FrictionModel, several, "model" for the robot's own, or None; here one of the first
    f_ext: Any = None
    changes: Sequence[tuple[float, Robot]] = ()
    actuators: Sequence[Actuator] | Actuator = field(default=(), kw_only=True)
    sensors: Sequence[Sensor] | Sensor = field(default=(), kw_only=True)
    stops: JointStops | None = field(default=None, kw_only=True)
    switches: tuple[float, ...] = field(init=False, repr=False)  # times [s] at which it becomes another
    _friction_states: int = field(init=False, repr=False)
    _coefficients: np.ndarray | None = field(init=False, repr=False)  # of the kernel: see `kernel_coefficients`
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
        friction, nv = friction_of(self.friction, self.robot), self.robot.nv
        put = object.__setattr__
        put(self, "f_ext", external_wrenches(self.robot, self.f_ext))
        put(self, "changes", checked_changes(self.robot, self.changes))
        times = {*(t for t, _ in self.changes), *getattr(self.f_ext, "switches", ())}
        put(self, "switches", tuple(sorted(times)))
        put(self, "_chain", chain_of(self.actuators, nv))
        put(self, "actuators", self._chain.links if self._chain else ())
        put(self, "friction", friction)
        put(self, "_friction_states", state_size(friction, nv))
        rows = kernel_coefficients(friction, nv)
        put(self, "_coefficients", rows)
        put(self, "_coulomb", int(rows is not None and rows[1].any()))
        stops = self.stops
        if stops is not None:
            stops = instance("stops", stops, JointStops, "geomctrl.JointStops or None").of(self.robot)
        put(self, "_stops", stops)
        put(self, "_springs", joint_springs(self.robot))
        put(self, "sensors", checked_sensors(self))

    def at(self, t: float) -> Plant:
        """The plant as it is from time t on, until the next change."""
        t, robot = time(t), self.robot
        if not self.switches:
            return self
        for start, changed in self.changes:
            if t >= start - SWITCH_TOLERANCE:
                robot = changed
        plant = copy.copy(self)  # a subclass keeps what it adds
        for name, value in (("robot", robot), ("changes", ()), ("switches", ()), ("_springs", joint_springs(robot))):
            object.__setattr__(plant, name, value)
        if isinstance(self.f_ext, ExternalWrenches):
            object.__setattr__(plant, "f_ext", self.f_ext.at(t))
        if self.stops is not None:
            object.__setattr__(plant, "_stops", self.stops.of(robot))
        return plant

    # --- sizes and states ----------------------------------------------------------------------------------------

    @property
    def friction_parameters(self) -> np.ndarray:
        """The parameters of its friction as one vector: (viscous, coulomb) (2 nv,) of a `Friction`, zero without any.

        Raises ArgumentError for friction that is not linear in its parameters.
        """
        if self._coefficients is not None:
            return self._coefficients[:2].ravel()
        return self.friction.parameters(self.robot.nv)

    @property
    def inputs(self) -> int:
        """How many numbers a command has: nv, or what the first actuator takes."""
        return self._chain.inputs if self._chain else self.robot.nv

    @property
    def has_state(self) -> bool:
        """Whether it, its friction or one of its actuators has a continuous state."""
        return overrides(type(self), Plant, "start") or bool(self._other_states)

    @property
    def stores_energy(self) -> bool:
        """Whether it, its friction or one of its actuators stores energy."""
        others = (self._chain and any(self._chain.storing)) or (self.friction and self.friction.stores_energy)
        return overrides(type(self), Plant, "stored_energy") or bool(others)

    @property
    def _other_states(self) -> int:
        """The numbers of the state that are not a subclass's own: friction's and the actuators'."""
        return self._friction_states + (self._chain.states if self._chain else 0)

    def start(self, q0: np.ndarray, v0: np.ndarray) -> np.ndarray | None:
        """The state of its own (n,) that a subclass begins with; None without one."""
        return None

    @property
    def sampled_actuators(self) -> tuple[Any, ...]:
        """Those that act at samples, the first of all."""
        return () if self._chain is None else self._chain.links[: self._chain.sampled]

    def state_at_start(self, q0: np.ndarray, v0: np.ndarray) -> np.ndarray | None:
        """The whole state x (nx,), see `Plant`, where the robot begins with q0, v0; None without any."""
        q0, v0, parts = one_state("q0", q0, self.robot.nq), one_state("v0", v0, self.robot.nv), []
        if overrides(type(self), Plant, "start"):
            begun: Any = self.start(q0, v0)
            own = checked(f"{type(self).__name__}.start(q0, v0)", begun, ())
            if own.ndim != 1 or not own.size:
                raise ArgumentError(f"{type(self).__name__}.start(q0, v0): expected a vector, got shape {own.shape}")
            parts.append(own)
        if self._friction_states:
            parts.append(np.asarray(self.friction.start(v0), float))  # pyright: ignore[reportOptionalMemberAccess]
        if self._chain is not None and self._chain.states:
            parts.append(self._chain.start(v0))
        return np.concatenate(parts) if parts else None

    def _split(self, x: Any) -> tuple[Any, Any, Any]:
        """(its own, friction's, the actuators') of the state."""
        if x is None or not self._other_states:
            return x, None, None
        a = len(x) - self._other_states
        b = a + self._friction_states
        return (x[:a] if a else None), (x[a:b] if b > a else None), (x[b:] if len(x) > b else None)

    # --- what acts ------------------------------------------------------------------------------------------------

    def _applied(self, t, q, v, tau, x):
        """The joint torques (nv,) that the actuators make of the command tau (inputs,)."""
        return tau if self._chain is None else self._chain.torque(t, tau, v, self._split(x)[2])

    def net_torque(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, x: Any) -> np.ndarray:
        """tau (nv,) less what springs and stops take."""
        if self._springs is not None:
            stiffness, preload = self._springs
            tau = tau - (q @ stiffness - preload)
        if self._stops is not None:
            tau = tau + self._stops.torque(q, v)
        return tau

    def _net(self, t, q, v, tau, x):
        """The torques (nv,) that move the robot under the command tau, friction included."""
        own, bristles, theirs = self._split(x)
        if self._chain is not None:
            tau = self._chain.torque(t, tau, v, theirs)
        return self._less_friction(t, q, v, tau, own, bristles)

    def _less_friction(self, t, q, v, tau, own, bristles):
        net = self.net_torque(t, q, v, tau, own)
        return net if self.friction is None else net - self.friction.torque(v, self._load(q, tau), bristles)

    def _load(self, q, tau):
        """What the actuators transmit to the joints, on which friction may depend."""
        return tau

    def _stored_by_friction(self, q, v, tau, bristles):
        """What flows into the store of friction [W]; 0.0 of friction without one."""
        friction: Any = self.friction
        if friction is None or not friction.stores_energy:
            return 0.0
        load = self._load(q, tau)
        return friction.power(v, load, bristles) - friction.dissipation(v, load, bristles)

    def state_rate(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, x: Any) -> Any:
        """The rate (n,) of a subclass's own state."""
        return None

    def stored_energy(self, q: np.ndarray, x: Any) -> float:
        """What a subclass's own state, or its springs, store [J]."""
        return 0.0

    def storage_power(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, x: Any) -> float:
        """What flows into that [W]."""
        return 0.0

    def _energy_beside(self, q: np.ndarray, x: Any) -> float:
        """What the plant stores beside the robot's own energy, its actuators' among it [J]."""
        own, bristles, theirs = self._split(x)
        energy = self.stored_energy(q, own)
        if self.friction is not None and self.friction.stores_energy:
            energy = energy + self.friction.stored_energy(bristles)
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

        In one kernel call where nothing external, no spring, no stop, no subclass and no friction but `Friction` acts.
        """
        kind, (own, bristles, theirs) = type(self), self._split(x)
        command, stored, n = tau, 0.0, self.robot.nv
        if self._chain is not None:
            tau, rates, stored = self._chain.driven(t, tau, v, theirs)
            if rates is not None:
                out[-1 - len(rates) : -1] = rates
        if own is not None:
            out[2 * n : 2 * n + len(own)] = self.state_rate(t, q, v, tau, own)
        if bristles is not None:
            first = 2 * n + (0 if own is None else len(own))
            out[first : first + len(bristles)] = self.friction.state_rate(v, self._load(q, tau), bristles)  # pyright: ignore[reportOptionalMemberAccess]
        if kind.acceleration is not Plant.acceleration:
            out[:n], out[n : 2 * n] = v, self.acceleration(t, q, v, command, x)
            out[-1] = self.power(t, q, v, command, x)
            return
        if not self._in_kernel(q, v, tau, out):
            net = self._less_friction(t, q, v, tau, own, bristles)
            out[:n], out[n : 2 * n] = v, self._accelerated(t, q, v, net)
            out[-1] = self._fed(t, q, v, net)
            stored = stored + self._stored_by_friction(q, v, tau, bristles)
        if kind.storage_power is not Plant.storage_power:
            stored = stored + self.storage_power(t, q, v, tau, own)
        out[-1] += stored

    def _in_kernel(self, q, v, tau, out) -> bool:
        """`rate` without a state's, in one call; False where that can not be."""
        others = (self.f_ext, self._springs, self._stops)
        if type(self).net_torque is not Plant.net_torque or others != (None,) * 3 or self._coefficients is None:
            return False
        rate = self.robot._code.at(kernels.plant_rate, self._coulomb)(q, v, tau, self._coefficients)
        if rate is None:
            return False
        out[: len(rate) - 1], out[-1] = rate[:-1], rate[-1]
        return True

    def power(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, x: Any = None) -> float:
        """What flows into the robot's own energy and into what is stored beside it, in watts."""
        t, q, v, tau, x = self._arguments(t, q, v, tau, x)
        own, bristles, theirs = self._split(x)
        stored = 0.0
        if self._chain is not None:
            tau, _, stored = self._chain.driven(t, tau, v, theirs)
        power = self._fed(t, q, v, self._less_friction(t, q, v, tau, own, bristles)) + stored
        power = power + self._stored_by_friction(q, v, tau, bristles) + self.storage_power(t, q, v, tau, own)
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
        a, states = checked("x", x, ()), self._other_states
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
        parts = [*plant.actuators, *([plant.friction] if plant._friction_states else [])] or [plant]
        whose = ", ".join(type(part).__name__ for part in parts)
        raise ArgumentError(
            f"{name}: expected one without a state of its own, got one with ({whose}): promises are about q, v and z"
        )
    return plant
