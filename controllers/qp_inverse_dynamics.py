"""Inverse dynamics as a quadratic program with limits on torque, velocity and position, distances and priorities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, choice, function, instance, listed, number, shown
from geomctrl.control.contracts import Command, Lyapunov, Reference
from geomctrl.control.tuning import Tuning
from geomctrl.controllers._model_based import Law, ModelBased
from geomctrl.controllers._program_torques import ProgramTorques
from geomctrl.controllers._quadratic_program import QuadraticProgram
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.states import require_vectors
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import has_symbols, scalar
from geomctrl.tracing.untraceable import UntraceableError, caller

SLACK_COST = 1e4  # cost per unit of a violated limit


@dataclass(frozen=True, eq=False, repr=False)
class PositionTask(Law):
    """The origin of a frame follows a motion, as `tasks` of `QPInverseDynamics` describes."""

    frame: str
    target: Callable[[float], np.ndarray]
    kp: float = 100.0  # 1/s^2
    kd: float = 20.0  # 1/s
    weight: float = 1.0

    def __post_init__(self):
        function("target", self.target, "t -> (3, 3), position, velocity, acceleration", 1)
        for name in ("kp", "kd", "weight"):
            object.__setattr__(self, name, _positive(name, getattr(self, name)))


@dataclass(frozen=True, eq=False, repr=False)
class Clearance(Law):
    """A frame's origin stays at least `radius` [m] from the point `centre`."""

    frame: str
    centre: ArrayLike
    radius: float

    def __post_init__(self):
        if (centre := checked("centre", self.centre, (3,))).shape != (3,):
            raise ArgumentError(f"centre: expected shape (3,), got {centre.shape}")
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "radius", _positive("radius", self.radius))


class QPInverseDynamics(ModelBased):
    """tau = M a + C v + g for the acceleration a closest to the tasks that satisfies the limits.

    Parameters
    ----------
    robot : Robot
        The model, with joints of one degree of freedom. Its `limits` are the limits of the program.
    reference : Reference
        The desired joint motion.
    kp, kd : float or (nv,)
        Gains of the joint motion [1/s^2, 1/s]; default as for `ComputedTorque`.
    tasks : sequence of (frame, target) or (frame, target, kp, kd, weight)
        Motions of the origins of frames: target(t) returns position, velocity and acceleration in the world, the rows
        of an array (3, 3); J a + Jdot v = x_d'' - kd (x' - x_d') - kp (x - x_d). The defaults are kp = 100 1/s^2,
        kd = 20 1/s and the weight 1.
    clearances : sequence of (frame, centre, radius)
        The origin of the frame stays at least `radius` [m] away from the point `centre` (3,) [m] of the world.
    priority : {"strict", "weights"}
        "strict": first clearances and limits, second position tasks, third the joint motion; a second program preserves
        the results of the first. "weights": one program; the joint motion has weight 1.
    rate : float
        Rate of the barrier functions of position limits and clearances [1/s]; velocity limits use rate' = 2 rate.
    share : float
        Fraction of the model's efforts that may be used, greater than 0 and at most 1.

    Raises
    ------
    ArgumentError
        For joints with several degrees of freedom, invalid tasks, gains that are not positive, and a `share` outside of
        (0, 1].

    Notes
    -----
    minimise   |a - a_d + kd w + kp e|^2 + sum_tasks weight |J a + Jdot v - x_want''|^2 + 1e4 s . 1 + |s|^2
    subject to |M a + C v + g| <= effort,                                              hard: always possible
               a <=  rate' (v_max - v),  a <= -2 rate v + rate^2 (q_max - q),  likewise below,  up to s >= 0
               h'' + 2 rate h' + rate^2 h >= 0,  h = |x - centre| - radius of each clearance,     up to s >= 0

    The last three are control barrier functions, exponential ones for positions and distances (Ames et al. 2019; Nguyen
    and Sreenath 2016). With s = 0 the limits hold for all times if h >= 0 and h' + rate h >= 0 at the start. If the
    torque limits allow no such a, s is positive: the program always has a solution. The signal "slack" is the largest
    s.

    The unconstrained solution is tried first. If no limit is active and there is no position task, the law is therefore
    identical to `ComputedTorque`, whose V = 1/2 w . w + 1/2 e . kp e with V' = -w . kd w is valid only there. The
    signal "active" is 1 if a program was solved. With active limits the tracking degrades. Torque limits hold exactly,
    the others up to the effect of sampling.

    Clarabel keeps one program and updates its numbers at each call. Loops with this law run in Python, also in sweeps:
    `compiled=True` and `geomctrl.compile` raise UntraceableError, unless the robot has no limits and there is no
    clearance and no strict priority, so that the law never solves a program.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> law = gc.controllers.QPInverseDynamics(arm, gc.references.hold(arm, [0.5, 0.2]), kp=25.0, kd=10.0)
    >>> tau = law(0.0, np.array([0.4, 0.2]), np.zeros(2), None).tau
    >>> free = gc.controllers.ComputedTorque(arm, gc.references.hold(arm, [0.5, 0.2]), kp=25.0, kd=10.0)
    >>> bool(np.allclose(tau, free(0.0, np.array([0.4, 0.2]), np.zeros(2), None).tau))  # no limit is active
    True
    """

    GAINS: ClassVar = {"kp": "1/s^2", "kd": "1/s"}

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        kp: ArrayLike | None = None,
        kd: ArrayLike | None = None,
        *,
        tasks: Iterable[Sequence[Any]] = (),
        clearances: Iterable[Sequence[Any]] = (),
        priority: str = "weights",
        rate: float = 20.0,
        share: float = 1.0,
    ):
        super().__init__(robot, reference)
        require_vectors("robot", robot)
        n = robot.nv
        self.kp, self.kd = self._gain("kp", kp, lambda rule: rule.kp), self._gain("kd", kd, lambda rule: rule.kd)
        self.tasks = _all_of("tasks", tasks, PositionTask, "(frame, target[, kp, kd, weight])")
        self.clearances = _all_of("clearances", clearances, Clearance, "(frame, centre, radius)")
        for x in (*self.tasks, *self.clearances):
            robot.frame(x.frame)  # raises NameNotFoundError for an unknown frame
        self.strict = choice("priority", priority, ("weights", "strict")) == "strict" and bool(self.tasks)
        self.rate = _positive("rate", rate)
        share = number("share", share, "a fraction greater than 0 and at most 1", lambda x: 0.0 < x <= 1.0)
        self.effort = share * np.asarray(robot.limits.effort, float)
        bounds = self.effort, robot.limits.velocity, robot.limits.lower, robot.limits.upper
        self._solves = self.strict or bool(self.clearances) or bool(np.isfinite(bounds).any())
        soft = n + len(self.clearances)
        self._programs = [QuadraticProgram(n, soft, 0, SLACK_COST)]
        if self.strict:
            self._programs.append(QuadraticProgram(n, soft, 3 * len(self.tasks), SLACK_COST))

    @classmethod
    def tuned(cls, tuning: Tuning) -> QPInverseDynamics:
        """kp = kappa_i Lambda, kd = kappa_i + Lambda."""
        instance("tuning", tuning, Tuning, "a Tuning")
        return cls(tuning.robot, tuning.motion, tuning.kp, tuning.kd)

    def __call__(self, t, q, v, z):
        if self._solves and has_symbols(q):
            raise UntraceableError(
                f"Clarabel solves a quadratic program for the limits, which compiled code can not call{caller()}: use"
                " compiled=False, gc.simulate instead of gc.compile, or a law without limits such as ComputedTorque"
            )
        error, n = self.error(t, q, v), self.robot.nv
        wanted = error.a_d - self.kd.dot(error.w) - self.kp.dot(error.e)
        rows = [self._position_rows(task, t, q, v) for task in self.tasks]
        M, bias = self.robot.mass_matrix(q), self.robot.inverse_dynamics(q, v, np.zeros(n))
        lower, upper = self._box(q, v)
        G, least = self._clearance_rows(q, v)
        a, slack, active = self._solve(wanted, rows, M, bias, lower, upper, G, least)
        tau = self.robot.inverse_dynamics(q, v, a)
        if active:
            tau = np.clip(tau, -self.effort, self.effort)  # removes the solver's tolerance of 1e-8
        return Command(tau, None, {"e": error.e, "slack": slack, "active": float(active)})

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        error = self.error(t, q, v)
        e, w = error.e, error.w
        return Lyapunov(scalar(0.5 * (w.dot(w) + e.dot(self.kp).dot(e))), -scalar(w.dot(self.kd).dot(w)))

    def _solve(self, wanted, rows, M, bias, lower, upper, G, least) -> tuple[np.ndarray, float, bool]:
        """(a, the largest slack, whether a limit is active or a second program was solved)."""
        n = self.robot.nv
        J, b = (np.concatenate(x) for x in zip(*rows)) if rows else (np.zeros((0, n)), np.zeros(0))
        H, f = np.eye(n) * (1e-6 if self.strict else 1.0), wanted * (1e-6 if self.strict else 1.0)
        H, f = H + J.T @ J, f + J.T @ b
        a = wanted if not rows else np.linalg.solve(H, f)
        torque = M @ a + bias
        fits = (
            (np.abs(torque) <= self.effort).all()
            and (lower <= a).all()
            and (a <= upper).all()
            and (G @ a >= least).all()
        )
        if fits and not self.strict:
            return a, 0.0, False
        inside = M, bias, self.effort, lower, upper, G, least
        slack = 0.0
        if not fits:
            a, slack = self._programs[0].solve(H, f, *inside)
        if self.strict:
            a, slack = self._programs[1].solve(np.eye(n), wanted, *inside, J, J @ a)
        return a, slack, True

    def _box(self, q, v) -> tuple[np.ndarray, np.ndarray]:
        """Bounds (nv,) on the acceleration that keep velocities and positions within their limits."""
        upper, lower = self._limits(q, v)
        return np.array([max(x, default=-np.inf) for x in lower]), np.array([min(x, default=np.inf) for x in upper])

    def _limits(self, q, v) -> tuple[list[list[Any]], list[list[Any]]]:
        """Upper and lower bounds of each acceleration, of those limits that exist."""
        limits, r = self.robot.limits, self.rate
        sides = ((limits.velocity, limits.upper), (-limits.velocity, limits.lower))
        upper, lower = (
            [
                [2.0 * r * (speed[i] - v[i])] * bool(np.isfinite(speed[i]))
                + [r * (r * (end[i] - q[i]) - 2.0 * v[i])] * bool(np.isfinite(end[i]))
                for i in range(self.robot.nv)
            ]
            for speed, end in sides
        )
        return upper, lower

    def _program_torques(self) -> ProgramTorques:
        """All torques that satisfy the limits of the program."""
        own = ("__call__", "_solve", "_box", "_limits")  # a subclass may command other torques
        if any(getattr(type(self), name) is not getattr(QPInverseDynamics, name) for name in own):
            raise ArgumentError(
                f"controller: expected a QPInverseDynamics, got a {type(self).__name__} with its own law"
            )
        return ProgramTorques(self, SLACK_COST)

    def _position_rows(self, task: PositionTask, t, q, v) -> tuple[np.ndarray, np.ndarray]:
        """(J, b) with desired J a = b, times the square root of the weight."""
        x, J, drift = self._point(task.frame, q, v)
        target = np.asarray(task.target(t), float)
        if target.shape != (3, 3):
            raise ArgumentError(f"target: of task {task.frame!r}: expected shape (3, 3), got {target.shape}")
        b = target[2] - task.kd * (J @ v - target[1]) - task.kp * (x - target[0]) - drift
        root = np.sqrt(task.weight)
        return root * J, root * b

    def _clearance_rows(self, q, v) -> tuple[np.ndarray, np.ndarray]:
        """(G (clearances, nv), least): G a >= least maintains the distances."""
        G, least = np.zeros((len(self.clearances), len(v))), np.zeros(len(self.clearances))
        for k, c in enumerate(self.clearances):
            x, J, drift = self._point(c.frame, q, v)
            distance = max(float(np.linalg.norm(x - c.centre)), 1e-9)
            normal, velocity = (x - c.centre) / distance, J @ v
            rate = normal @ velocity
            curving = (velocity @ velocity - rate**2) / distance
            G[k] = normal @ J
            least[k] = -(normal @ drift + curving + 2.0 * self.rate * rate + self.rate**2 * (distance - c.radius))
        return G, least

    def _point(self, frame: str, q, v) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A frame's origin x (3,), J (3, nv) with x' = J v, and J' v (3,)."""
        J = self.robot.jacobian(q, frame, "hybrid")[3:]
        drift = self.robot.jacobian_rate(q, v, frame, "hybrid")[3:] @ v
        return self.robot.pose(q, frame)[:3, 3], J, drift


def _all_of(name: str, x: Any, kind: type, expected: str) -> tuple:
    items = [listed(name, one, f"tuples {expected}") for one in listed(name, x, f"tuples {expected}")]
    fewest = sum(field.default is MISSING for field in fields(kind))
    for item in items:
        if not (fewest <= len(item) <= len(fields(kind)) and isinstance(item[0], str)):
            raise ArgumentError(f"{name}: expected tuples {expected}, got {shown(item)}")
    return tuple(kind(*item) for item in items)


def _positive(name: str, x: Any) -> float:
    return number(name, x, "a positive number", lambda x: x > 0.0)
