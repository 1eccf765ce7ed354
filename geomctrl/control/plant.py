"""The plant: the true robot with friction, springs, changing loads and external wrenches; no model need equal it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import FLOAT64, checked, count, frozen, function, instance, number
from geomctrl.compiler.arrays import scalar
from geomctrl.errors import ArgumentError
from geomctrl.kernels import plant as kernels
from geomctrl.robot import Robot

from .desired import time


@dataclass(frozen=True, eq=False)
class Friction:
    """Joint friction: viscous v + coulomb tanh(v / smoothing), (nv,) each or a number [N m s/rad, N m, rad/s].

    The smooth Coulomb law keeps the closed loop an ordinary differential equation; `smoothing` is the speed at which
    76 % of the Coulomb torque acts.
    """

    viscous: ArrayLike = 0.0
    coulomb: ArrayLike = 0.0
    smoothing: float = 0.01
    _shape: tuple[int, ...] = field(init=False, repr=False)  # of velocities; () where joints share their numbers

    def __post_init__(self):
        for name in ("viscous", "coulomb"):
            x = checked(name, getattr(self, name), ())
            if x.ndim > 1 or not x.size or (x < 0.0).any():
                raise ArgumentError(f"{name}: expected a number or (nv,) numbers, not negative, got {x}")
            object.__setattr__(self, name, frozen(x))
        object.__setattr__(self, "_shape", np.shape(self.viscous) or np.shape(self.coulomb))
        object.__setattr__(
            self, "smoothing", number("smoothing", self.smoothing, "a positive speed", lambda x: x > 0.0)
        )

    def torque(self, v: np.ndarray) -> np.ndarray:
        """The torque that friction takes from the joints, (..., nv)."""
        return self.acting(checked("v", v, self._shape))

    def acting(self, v: np.ndarray) -> np.ndarray:
        """`torque`, of what is known to be velocities."""
        if type(v) is not np.ndarray or v.dtype is not FLOAT64:
            v = checked("v", v, self._shape)
        return np.asarray(self.viscous) * v + np.asarray(self.coulomb) * np.tanh(v / self.smoothing)

    def columns(self, v: np.ndarray) -> np.ndarray:
        """(nv, 2 nv): torque is columns @ (viscous, coulomb), linear in its parameters like the regressor."""
        return self.acting_columns(one_state("v", v, *(self._shape or np.shape(v)[:1] or (0,))))

    def acting_columns(self, v: np.ndarray) -> np.ndarray:
        """`columns`, of what is known to be velocities."""
        if type(v) is not np.ndarray or v.dtype is not FLOAT64:
            v = checked("v", v, self._shape)
        return np.hstack((np.diag(v), np.diag(np.tanh(v / self.smoothing))))

    def parameters(self, nv: int) -> np.ndarray:
        """(viscous, coulomb) as one vector (2 nv,)."""
        self.check(nv)
        return np.concatenate((np.broadcast_to(self.viscous, nv), np.broadcast_to(self.coulomb, nv)))

    def check(self, nv: int) -> None:
        """Raise ArgumentError unless this is the friction of a robot with nv velocity coordinates."""
        count("nv", nv)
        for name in ("viscous", "coulomb"):
            shape = np.shape(getattr(self, name))
            if shape not in ((), (nv,)):
                raise ArgumentError(f"friction: {name}: expected a number or ({nv},) numbers, got shape {shape}")


@dataclass(frozen=True, eq=False)
class Plant:
    """The true robot: M vdot + C v + g + friction(v) + springs(q) = tau + sum_i Jac_i^T f_ext_i.

    Springs are those of the robot's joints, stiffness (q - rest) each; few robots have any. friction: a `Friction`, or
    "model" for the damping and friction of the robot's model file. f_ext(t, q, v): wrenches
    (nbodies, 6) on the bodies, in body frames. changes: (time, robot) pairs; from that time on that robot is the true
    one (a load gripped or dropped); all must have the same joints.
    """

    robot: Robot
    friction: Friction | str | None = None
    f_ext: Callable[[float, np.ndarray, np.ndarray], np.ndarray] | None = None
    changes: Sequence[tuple[float, Robot]] = ()
    _law: Friction | None = field(init=False, repr=False)
    _coefficients: np.ndarray = field(init=False, repr=False)
    _coulomb: int = field(init=False, repr=False)
    _springs: tuple[np.ndarray, np.ndarray] | None = field(init=False, repr=False)

    def __post_init__(self):
        if not isinstance(self.robot, Robot):
            raise ArgumentError(f"robot: expected a geomctrl.Robot, got {self.robot!r:.60}")
        law = self.friction
        if isinstance(law, str) and law == "model":
            law = Friction(self.robot.damping, self.robot.friction)
        if law is not None and not isinstance(law, Friction):
            raise ArgumentError(f"friction: expected a Friction, 'model' or None, got {self.friction!r}")
        if law is not None:
            law.check(self.robot.nv)
        if self.f_ext is not None:
            function("f_ext", self.f_ext, "of (t, q, v)")
        object.__setattr__(self, "changes", self._checked_changes())
        object.__setattr__(self, "friction", law)
        object.__setattr__(self, "_law", law)
        law = Friction() if law is None else law
        nv = self.robot.nv
        rows = np.append(law.parameters(nv), np.full(nv, float(law.smoothing))).reshape(3, nv)
        object.__setattr__(self, "_coefficients", rows)
        object.__setattr__(self, "_coulomb", int(rows[1].any()))
        object.__setattr__(self, "_springs", _springs(self.robot))

    @property
    def friction_parameters(self) -> np.ndarray:
        """(viscous, coulomb) as one vector (2 nv,), zero without friction."""
        return self._coefficients[:2].ravel()

    def _checked_changes(self) -> tuple[tuple[float, Robot], ...]:
        try:
            pairs = [(t, robot) for t, robot in self.changes]
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
        for start, changed in self.changes:
            if t >= start - 1e-12:
                robot = changed
        if robot is self.robot:
            return self
        plant = copy.copy(self)  # a subclass keeps what it adds
        object.__setattr__(plant, "robot", robot)
        object.__setattr__(plant, "changes", ())
        object.__setattr__(plant, "_springs", _springs(robot))
        return plant

    def acceleration(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """vdot (nv,) under joint torques tau."""
        return self._acceleration(*self._arguments(t, q, v, tau))

    def _acceleration(self, t, q, v, tau):
        tau = self._net(q, v, tau)
        if self.f_ext is None:
            return self.robot.forward_dynamics(q, v, tau)
        return self.robot.forward_dynamics(q, v, tau, self.f_ext(t, q, v))

    def _net(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """tau less what friction and springs take."""
        if self._law is not None:
            tau = tau - self._law.acting(v)
        if self._springs is not None:
            stiffness, preload = self._springs
            tau = tau - (q @ stiffness - preload)
        return tau

    def rate(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray, out: np.ndarray) -> None:
        """v and `acceleration` into the first 2 nv places of out, `power` into its last, in one kernel call where
        nothing external and no spring acts.

        A subclass that adds torques overrides all three, without calling this one.
        """
        if self.f_ext is None and self._springs is None:
            rate = self.robot._code.at(kernels.plant_rate, self._coulomb)(q, v, tau, self._coefficients)
            if rate is not None:
                out[: len(rate) - 1], out[-1] = rate[:-1], rate[-1]
                return
        self._rate(t, q, v, tau, out)

    def _rate(self, t, q, v, tau, out):
        n = self.robot.nv
        out[:n], out[n : 2 * n], out[-1] = v, self.acceleration(t, q, v, tau), self.power(t, q, v, tau)

    def power(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> float:
        """What motors, friction, springs and external wrenches feed into the robot's own energy, in watts."""
        t, q, v, tau = self._arguments(t, q, v, tau)
        power = self._power(t, q, v, tau)
        if type(power) is float and not (math.isfinite(power) and math.isfinite(q.dot(q))):
            for name, x in (("q", q), ("v", v), ("tau", tau)):
                checked(name, x, x.shape)
        return power

    def _power(self, t, q, v, tau):
        tau = self._net(q, v, tau)
        if self.f_ext is not None:
            zero = np.zeros_like(v)
            held = self.robot.inverse_dynamics(q, zero, zero, f_ext=self.f_ext(t, q, v))
            tau = tau + self.robot.gravity_force(q) - held
        return scalar(v.dot(tau))

    def _arguments(self, t, q, v, tau):
        """t, q, v, tau, as they are where a loop gave them: then the terms look at their values; else checked."""
        arrays = type(q) is type(v) is type(tau) is np.ndarray and q.dtype is v.dtype is tau.dtype is FLOAT64
        if arrays and type(t) is float and t - t == 0.0 and len(q) == self.robot.nq and v.shape == tau.shape:
            return t, q, v, tau
        n, nq = self.robot.nv, self.robot.nq
        return time(t), one_state("q", q, nq), one_state("v", v, n), one_state("tau", tau, n)


def plant_of(name: str, x: object) -> Plant:
    """x, or the plant of a robot alone; raises ArgumentError, naming the argument `name`, for anything else."""
    if isinstance(x, Robot):
        return Plant(x)
    return instance(name, x, Plant, "a geomctrl.Plant or a Robot")


def one_state(name: str, x: ArrayLike, n: int) -> np.ndarray:
    """n finite numbers, or symbols; errors name the argument `name`."""
    a = checked(name, x, (n,))
    if a.ndim != 1:
        raise ArgumentError(f"{name}: expected shape ({n},), got {a.shape}")
    return a


def _springs(robot: Robot) -> tuple[np.ndarray, np.ndarray] | None:
    """(K, b) of the springs' torque q K - b, (nq, nv) and (nv,); None where no joint has one."""
    if not robot.stiffness.any():
        return None
    K = np.zeros((robot.nq, robot.nv))
    for joint, q, v in zip(robot.joints, robot.q_slices, robot.v_slices):
        if joint.dof == 1:
            K[q, v] = robot.stiffness[v]
    return K, robot.stiffness * robot.rest


def _same_joints(a: Robot, b: Robot) -> bool:
    return (
        a.parents == b.parents
        and np.array_equal(a.coupling_matrix, b.coupling_matrix)
        and np.array_equal(a.placements, b.placements)
        and all(np.array_equal(i.S, j.S) for i, j in zip(a.joints, b.joints))
    )
