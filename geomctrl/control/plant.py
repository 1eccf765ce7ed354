"""`Plant`: the true robot with actuators, sensors, friction, springs, stops, changing loads and external forces."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from geomctrl.arguments import FLOAT64, checked, instance, is_a, one_state, shown, without_overflow_warnings
from geomctrl.described import ReadableRepr
from geomctrl.errors import ArgumentError
from geomctrl.kernels import plant as kernels
from geomctrl.other_names import OF_PLANT, named_arguments
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import scalar

from .actuators.actuator import Actuator
from .actuators.chain import Chain, chain_of
from .changes import checked_changes
from .contracts import time
from .friction.combined import friction_of, state_size
from .friction.coulomb import kernel_coefficients
from .plant_export import PlantExport
from .plant_state import PlantState
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


@named_arguments(OF_PLANT)
@dataclass(frozen=True, eq=False, repr=False)
class Plant(PlantState, PlantExport, ReadableRepr):
    """The true robot: M vdot + C v + g + friction + springs(q) + stops(q, v) = tau + sum_i Jac_i^T f_ext_i.

    Parameters
    ----------
    robot : Robot
        The true robot. Its joint springs exert stiffness (q - rest).
    friction : FrictionModel, list of FrictionModel, "model" or None
        Joint friction. "model" uses the damping and friction of the robot's model file; None means no friction.
    f_ext : Wrench, Contact, function or list of these, optional
        External wrenches. A function (t, q, v) returns the wrenches (nbodies, 6) on the bodies in body frames. Its
        attribute `switches` lists the times [s] at which it is not smooth.
    changes : sequence of (time, Robot)
        From each time [s] on, that robot is the true one (a load gripped or dropped). All have the same joints.
    actuators : Actuator or sequence of Actuator
        From command to joint torques tau, in the order of the signal path. By default tau equals the command.
    sensors : Sensor or sequence of Sensor
        Sensors whose outputs replace q and v in the calls of the controller.
    stops : JointStops, optional
        Mechanical stops at the position limits. Without stops, a monitor reports positions beyond the limits.

    Raises
    ------
    ArgumentError
        If an argument does not fit the robot, or a subclass breaks rules 1 to 5.

    Notes
    -----
    Integrators step exactly to the times in `switches`, where the plant changes. The state of the whole plant, `Run.x`
    and `Sample.x`, consists of a subclass's own state x, then that of friction, then those of the actuators in order.
    A subclass describes another plant and follows these rules:

    1. `net_torque(t, q, v, tau, x)` returns the torques (nv,) that move the robot, without friction, from the actuator
       torques tau (nv,). The base class subtracts springs and adds stops. Override it for anything that acts at the
       joints: acceleration, rate, power and compiled loops use it. It has no side effects and modifies no argument.
    2. For a continuous state x on R^n override both `start(q0, v0)`, the initial state (n,), and
       `state_rate(t, q, v, tau, x)`, its time derivative. Without such a state x is None.
    3. To store energy in x, or to add a potential in q, override both `stored_energy(q, x)` [J] and
       `storage_power(t, q, v, tau, x)` [W], the power into the store: input from outside minus the power delivered to
       the robot as net torque and the losses. The energy balance of a run checks one against the other.
    4. Only if the equation of motion itself differs, override `acceleration(t, q, v, tau, x=None)`, where tau is the
       command, and `power(t, q, v, tau, x=None)`; `net_torque` is then unused. Overriding `rate` too saves time.
    5. Override both methods of a pair and keep their argument names; otherwise creating the class raises ArgumentError.
       `__init__` calls that of this class.
    6. To be compiled, methods use Python, numpy and math on numbers and arrays, as a controller does. Attributes are
       set in `__init__` and never change.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> plant = gc.Plant(gc.models.two_link(), friction=gc.Friction(viscous=0.1))
    >>> q, v, tau, out = np.zeros(2), np.ones(2), np.zeros(2), np.zeros(5)
    >>> plant.rate(0.0, q, v, tau, out)  # v, vdot and power
    >>> bool(np.allclose(out, [*v, *plant.acceleration(0.0, q, v, tau), plant.power(0.0, q, v, tau)]))
    True
    >>> plant.net_torque(0.0, q, v, tau, None), plant.at(1.0) is plant
    (array([0., 0.]), True)
    """

    robot: Robot
    friction: Any = "model"  # __post_init__ replaces it by one FrictionModel or None
    f_ext: Any = None
    changes: Sequence[tuple[float, Robot]] = ()
    actuators: Sequence[Actuator] | Actuator = field(default=(), kw_only=True)
    sensors: Sequence[Sensor] | Sensor = field(default=(), kw_only=True)
    stops: JointStops | None = field(default=None, kw_only=True)
    switches: tuple[float, ...] = field(init=False, repr=False)  # times [s] at which the plant changes
    _friction_states: int = field(init=False, repr=False)
    _coefficients: np.ndarray | None = field(init=False, repr=False)  # of the kernel: see `kernel_coefficients`
    _coulomb: int = field(init=False, repr=False)
    _springs: tuple[np.ndarray, np.ndarray] | None = field(init=False, repr=False)
    _stops: JointStops | None = field(init=False, repr=False)
    _chain: Chain | None = field(init=False, repr=False)

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        require_together(cls, "start", "state_rate", why="the initial value of a state and its time derivative")
        require_together(cls, "stored_energy", "storage_power", why="an energy and the power that flows into it")
        require_together(cls, "acceleration", "power", why="an equation of motion; `net_torque` alone defines both")
        if overrides(cls, Plant, "rate") and not overrides(cls, Plant, "acceleration"):
            raise ArgumentError(
                f"{cls.__name__}: overrides `rate` without `acceleration` and `power`: they belong together;"
                " `net_torque` alone defines all three"
            )
        for name, arguments in SIGNATURES.items():
            require_arguments(cls, name, arguments)

    def __post_init__(self):
        if not is_a(self.robot, Robot):
            raise ArgumentError(f"robot: expected a geomctrl.Robot, got {shown(self.robot)}")
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
            stops = instance("stops", stops, JointStops, "geomctrl.JointStops or None")._of(self.robot)
        put(self, "_stops", stops)
        put(self, "_springs", joint_springs(self.robot))
        put(self, "sensors", checked_sensors(self))

    def at(self, t: float) -> Plant:
        """Return the plant at time t, constant until its next change.

        Parameters
        ----------
        t : float
            Time [s].

        Returns
        -------
        Plant

        Raises
        ------
        ArgumentError
            If `t` is not a finite number.

        Examples
        --------
        >>> import geomctrl as gc
        >>> arm = gc.models.two_link()
        >>> plant = gc.Plant(arm, changes=[(0.5, arm.with_payload(1.0))])  # grips 1 kg after half a second
        >>> float(plant.at(1.0).robot.parameters[:, 0].sum())
        3.0
        """
        t, robot = time(t), self.robot
        if not self.switches:
            return self
        for start, changed in self.changes:
            if t >= start - SWITCH_TOLERANCE:
                robot = changed
        plant = copy.copy(self)  # keeps the attributes that a subclass adds
        for name, value in (("robot", robot), ("changes", ()), ("switches", ()), ("_springs", joint_springs(robot))):
            object.__setattr__(plant, name, value)
        if isinstance(self.f_ext, ExternalWrenches):
            object.__setattr__(plant, "f_ext", self.f_ext.at(t))
        if self.stops is not None:
            object.__setattr__(plant, "_stops", self.stops._of(robot))
        return plant

    @property
    def friction_parameters(self) -> np.ndarray:
        """Parameters of its friction as one vector: (viscous, coulomb) (2 nv,) of a `Friction`; zeros without friction.

        Raises
        ------
        ArgumentError
            If the friction is not linear in its parameters.

        Examples
        --------
        >>> import geomctrl as gc
        >>> gc.Plant(gc.models.two_link(), gc.Friction(viscous=0.1, coulomb=0.5)).friction_parameters
        array([0.1, 0.1, 0.5, 0.5])
        """
        if self._coefficients is not None:
            return self._coefficients[:2].ravel()
        return self.friction.parameters(self.robot.nv)

    @property
    def inputs(self) -> int:
        """Number of inputs of a command: nv, or the inputs of the first actuator.

        Examples
        --------
        >>> import geomctrl as gc
        >>> gc.Plant(gc.models.two_link()).inputs
        2
        """
        return self._chain.inputs if self._chain else self.robot.nv

    @property
    def has_state(self) -> bool:
        """Whether a subclass, the friction or an actuator has a continuous state.

        Examples
        --------
        >>> import geomctrl as gc
        >>> gc.Plant(gc.models.two_link()).has_state
        False
        """
        return overrides(type(self), Plant, "start") or bool(self._other_states)

    @property
    def stores_energy(self) -> bool:
        """Whether a subclass, the friction or an actuator stores energy.

        Examples
        --------
        >>> import geomctrl as gc
        >>> gc.Plant(gc.models.two_link()).stores_energy
        False
        """
        others = (self._chain and any(self._chain.storing)) or (self.friction and self.friction.stores_energy)
        return overrides(type(self), Plant, "stored_energy") or bool(others)

    @property
    def _other_states(self) -> int:
        """Number of states of friction and actuators."""
        return self._friction_states + (self._chain.states if self._chain else 0)

    @property
    def sampled_actuators(self) -> tuple[Any, ...]:
        """Actuators that act at samples; they are the first of the chain.

        Examples
        --------
        >>> import geomctrl as gc
        >>> gc.Plant(gc.models.two_link(), actuators=gc.actuators.TransportDelay(0.01)).sampled_actuators
        (TransportDelay(delay=0.01),)
        """
        return () if self._chain is None else self._chain.links[: self._chain.sampled]

    def _state_at_start(self, q0: np.ndarray, v0: np.ndarray) -> np.ndarray | None:
        """Initial state x (nx,) of the whole plant for a robot that starts at q0, v0; None without any."""
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
        """(state of the subclass, of friction, of the actuators)."""
        if x is None or not self._other_states:
            return x, None, None
        a = len(x) - self._other_states
        b = a + self._friction_states
        return (x[:a] if a else None), (x[a:b] if b > a else None), (x[b:] if len(x) > b else None)

    def _applied(self, t, q, v, tau, x):
        """The joint torques (nv,) that the actuators produce from the command tau (inputs,)."""
        return tau if self._chain is None else self._chain.torque(t, tau, v, self._split(x)[2])

    def net_torque(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, x: Any) -> np.ndarray:
        """Return the torques that move the robot, without friction: tau minus springs plus stops (rule 1).

        Parameters
        ----------
        t : float
            Time [s].
        q, v, tau : ndarray, shape (nq,), (nv,), (nv,)
            State, and torques [N m or N] of the actuators.
        x : ndarray, shape (n,), or None
            State of a subclass.

        Returns
        -------
        ndarray, shape (nv,)

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> plant, zero = gc.Plant(gc.models.two_link()), np.zeros(2)
        >>> plant.net_torque(0.0, zero, zero, np.array([1.0, 2.0]), None)
        array([1., 2.])
        """
        if self._springs is not None:
            stiffness, preload = self._springs
            tau = tau - (q @ stiffness - preload)
        if self._stops is not None:
            tau = tau + self._stops._torque(q, v)
        return tau

    def _net(self, t, q, v, tau, x):
        """The torques (nv,) that move the robot under the command tau, with friction subtracted."""
        own, bristles, theirs = self._split(x)
        if self._chain is not None:
            tau = self._chain.torque(t, tau, v, theirs)
        return self._less_friction(t, q, v, tau, own, bristles)

    def _less_friction(self, t, q, v, tau, own, bristles):
        net = self.net_torque(t, q, v, tau, own)
        return net if self.friction is None else net - self.friction.torque(v, self._load(q, tau), bristles)

    def _load(self, q, tau):
        """The torques (nv,) that the actuators transmit, on which friction may depend."""
        return tau

    def _stored_by_friction(self, q, v, tau, bristles):
        """Power into the energy store of the friction [W]; 0.0 without one."""
        friction: Any = self.friction
        if friction is None or not friction.stores_energy:
            return 0.0
        load = self._load(q, tau)
        return friction.power(v, load, bristles) - friction.dissipation(v, load, bristles)

    def _energy_outside_robot(self, q: np.ndarray, x: Any) -> float:
        """Energy [J] stored outside the robot: in a subclass, friction and actuators."""
        own, bristles, theirs = self._split(x)
        energy = self.stored_energy(q, own)
        if self.friction is not None and self.friction.stores_energy:
            energy = energy + self.friction.stored_energy(bristles)
        return energy if self._chain is None else energy + self._chain.stored_energy(theirs)

    def acceleration(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, x: Any = None) -> np.ndarray:
        """Return vdot under a command.

        Parameters
        ----------
        t : float
            Time [s].
        q, v, tau : array_like, shape (nq,), (nv,), (inputs,)
            State and command.
        x : ndarray, shape (nx,), optional
            State of the whole plant, such as `run.x[0]`, if it has one.

        Returns
        -------
        ndarray, shape (nv,)

        Raises
        ------
        ArgumentError
            If an array has the wrong shape or an entry that is not finite.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> plant, zero = gc.Plant(gc.models.two_link()), np.zeros(2)
        >>> np.allclose(plant.acceleration(0.0, zero, zero, plant.robot.gravity_force(zero)), 0.0)
        True
        """
        t, q, v, tau, x = self._arguments(t, q, v, tau, x)
        return self._accelerated(t, q, v, self._net(t, q, v, tau, x))

    def _accelerated(self, t, q, v, net):
        if self.f_ext is None:
            return self.robot.forward_dynamics(q, v, net)
        return self.robot.forward_dynamics(q, v, net, self.f_ext(t, q, v))

    def rate(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, out: np.ndarray, x: Any = None) -> None:
        """Write v and vdot (2 nv numbers), the rate of x and, last, the power into out.

        If only `Friction` acts besides the command, one kernel call computes everything. Arguments are not checked.

        Parameters
        ----------
        t : float
            Time [s].
        q, v, tau : ndarray, shape (nq,), (nv,), (inputs,)
            State and command.
        out : ndarray, shape (2 nv + nx + 1,)
            Where the result is written.
        x : ndarray, shape (nx,), optional
            State of the whole plant, such as `run.x[0]`, if it has one.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> plant, zero, out = gc.Plant(gc.models.two_link().with_gravity([0.0, 0.0, 0.0])), np.zeros(2), np.zeros(5)
        >>> plant.rate(0.0, zero, np.array([1.0, 2.0]), zero, out)
        >>> out[:2]  # the velocity
        array([1., 2.])
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
            out[-1] = self._external_power(t, q, v, net)
            stored = stored + self._stored_by_friction(q, v, tau, bristles)
        if kind.storage_power is not Plant.storage_power:
            stored = stored + self.storage_power(t, q, v, tau, own)
        out[-1] += stored

    def _in_kernel(self, q, v, tau, out) -> bool:
        """Whether one kernel call could compute v, vdot and power; they are then in out."""
        others = (self.f_ext, self._springs, self._stops)
        if type(self).net_torque is not Plant.net_torque or others != (None,) * 3 or self._coefficients is None:
            return False
        rate = self.robot._code.at(kernels.plant_rate, self._coulomb)(q, v, tau, self._coefficients)
        if rate is None:
            return False
        out[: len(rate) - 1], out[-1] = rate[:-1], rate[-1]
        return True

    @without_overflow_warnings
    def power(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, x: Any = None) -> float:
        """Return the power into the robot's energy and all other stored energy [W].

        Parameters
        ----------
        t : float
            Time [s].
        q, v, tau : array_like, shape (nq,), (nv,), (inputs,)
            State and command.
        x : ndarray, shape (nx,), optional
            State of the whole plant, such as `run.x[0]`, if it has one.

        Returns
        -------
        float

        Raises
        ------
        ArgumentError
            If an array has the wrong shape or an entry that is not finite.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> plant, zero = gc.Plant(gc.models.two_link()), np.zeros(2)
        >>> plant.power(0.0, zero, np.array([1.0, 1.0]), np.array([2.0, 3.0]))  # [W]
        5.0
        """
        t, q, v, tau, x = self._arguments(t, q, v, tau, x)
        own, bristles, theirs = self._split(x)
        stored = 0.0
        if self._chain is not None:
            tau, _, stored = self._chain.driven(t, tau, v, theirs)
        power = self._external_power(t, q, v, self._less_friction(t, q, v, tau, own, bristles)) + stored
        power = power + self._stored_by_friction(q, v, tau, bristles) + self.storage_power(t, q, v, tau, own)
        if type(power) is float and not (math.isfinite(power) and math.isfinite(q.dot(q))):
            for name, a in (("q", q), ("v", v), ("tau", tau)):
                checked(name, a, a.shape)
        return power

    def _external_power(self, t, q, v, net):
        """Power of net torques and external wrenches [W]."""
        return scalar(v.dot(self._pushed(t, q, v, net)))

    def _pushed(self, t, q, v, tau) -> np.ndarray:
        """tau plus the joint torques of external wrenches."""
        if self.f_ext is None:
            return tau
        zero = np.zeros_like(v)
        held = self.robot.inverse_dynamics(q, zero, zero, f_ext=self.f_ext(t, q, v))
        return tau + self.robot.gravity_force(q) - held

    def _arguments(self, t, q, v, tau, x):
        """The arguments, checked; arrays from a running loop pass, because the kernels check their values."""
        if x is not None or self.has_state:
            x = self._checked_state(x)
        robot, inputs = self.robot, self.inputs
        arrays = type(q) is type(v) is type(tau) is np.ndarray and q.dtype is v.dtype is tau.dtype is FLOAT64
        arrays = arrays and type(t) is float and t - t == 0.0 and self._chain is None  # a lag would not read tau
        if arrays and q.shape == (robot.nq,) and v.shape == (robot.nv,) and tau.shape == (inputs,):
            return t, q, v, tau, x
        n, nq = robot.nv, robot.nq
        return time(t), one_state("q", q, nq), one_state("v", v, n), one_state("tau", tau, inputs), x

    def _checked_state(self, x):
        """x, checked against the plant's state."""
        if not self.has_state:
            raise ArgumentError(f"x: expected None, as the plant has no state of its own, got {shown(x)}")
        if x is None:
            raise ArgumentError("x: expected the plant's own state, such as run.x[0], got None")
        a, states = checked("x", x, ()), self._other_states
        own = overrides(type(self), Plant, "start")
        if a.ndim != 1 or (len(a) <= states if own else len(a) != states):
            raise ArgumentError(f"x: expected shape ({f'more than {states}' if own else states},), got {a.shape}")
        return a


def plant_of(name: str, x: object, *, state: bool = True) -> Plant:
    """x, or `Plant(x)` of a robot. Raises ArgumentError otherwise; state=False allows no plant with a state."""
    if is_a(x, Robot):
        return Plant(x)
    plant = instance(name, x, Plant, "a geomctrl.Plant or a Robot")
    if plant.has_state and not state:
        parts = [*plant.actuators, *([plant.friction] if plant._friction_states else [])] or [plant]
        whose = ", ".join(type(part).__name__ for part in parts)
        raise ArgumentError(
            f"{name}: expected one without a state of its own, got one with ({whose}): only q, v and z are states here"
        )
    return plant
