"""Linear-quadratic regulation about an equilibrium by exact linearisation, also for underactuated robots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, number, shown
from geomctrl.control.contracts import Command, Lyapunov
from geomctrl.control.references import hold
from geomctrl.control.tracking import gain_matrix
from geomctrl.controllers._model_based import ModelBased
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.configuration import ConfigurationGroup
from geomctrl.mechanism.states import one_configuration
from geomctrl.robot import Robot
from geomctrl.terms.derivatives import linearize
from geomctrl.tracing.numbers import scalar

MIN_RATE_FRACTION = 0.1  # fraction of the linearisation's decay rate that the nonlinear loop is required to reach
DIRECTIONS, RADII = 4000, np.geomspace(1e-2, 1e2, 81)  # samples for the region of attraction


class LQR(ModelBased):
    """LQR: tau = g(q_d) - K x at the driven joints, x = (log(q_d^-1 q), v), for the cost integral x . Q x + u . R u.

    Parameters
    ----------
    robot : Robot
        The model.
    q_d : array (nq,)
        An equilibrium: gravity requires no torque at joints that are not driven.
    Q : float, (2 nv,) or (2 nv, 2 nv)
        State weight, positive definite.
    R : float, (m,) or (m, m)
        Input weight of the m driven joints, positive definite.
    actuated : sequence of int, optional
        Velocity coordinates of the driven joints, their positions in `robot.dof_names`; default all.
    level : float, optional
        Level of V that bounds the region. Default: 0.8 of the largest level below which the bound on V' holds for the
        model at samples along 4000 directions in 81 sizes. This is sampled, not proved.

    Raises
    ------
    ArgumentError
        If a weight is not positive definite, if q_d is no equilibrium or can not be stabilised by the driven joints, or
        if the level is not positive.

    Notes
    -----
    V = x . S x,   V' <= -1/10 x . (Q + K^T R K) x        where V < level

    S solves the Riccati equation (python-control) of `derivatives.linearize` at (q_d, 0). For the linearisation V' is
    ten times the bound. {V < level} is invariant, and errors in it decrease exponentially. Angles of revolute joints
    without limits are equivalent modulo 2 pi.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> law = gc.controllers.LQR(robot, np.zeros(2), level=1.0)
    >>> tau = law(0.0, np.zeros(2), np.zeros(2), law.start()).tau  # at rest on the reference
    >>> bool(np.allclose(tau, robot.gravity_force(np.zeros(2))))
    True
    """

    def __init__(
        self,
        robot: Robot,
        q_d: ArrayLike,
        Q: ArrayLike = 1.0,
        R: ArrayLike = 0.1,
        actuated: Sequence[int] | None = None,
        level: float | None = None,
    ):
        self.q_d = q = one_configuration(robot, "q_d", q_d)
        super().__init__(robot, hold(robot, q))
        n = robot.nv
        self.B = selection(robot, actuated)
        self.Q, R = gain_matrix("Q", Q, 2 * n), gain_matrix("R", R, self.B.shape[1])
        gravity = robot.gravity_force(q)
        self.tau_d = self.B @ self.B.T @ gravity
        residual = np.abs(gravity - self.tau_d).max()
        if residual > 1e-6 * (1.0 + np.abs(gravity).max()):
            raise ArgumentError(
                f"q_d: expected an equilibrium, got {residual:.6g} N m of gravity at joints that are not driven"
            )
        turning = np.concatenate([np.full(j.dof, j.kind == "revolute") for j in robot.coupling.independent_joints])
        self.endless = turning & np.isinf(robot.limits.lower) & np.isinf(robot.limits.upper)
        import control  # imported here because it takes longer than all of geomctrl

        A, M_inverse, _ = linearize(robot, q, np.zeros(n), self.tau_d)
        try:
            K, self.S, _ = control.lqr(A, M_inverse @ self.B, self.Q, R)
        except Exception as error:  # of slycot or scipy, depending on the solver
            raise ArgumentError(f"actuated: expected joints that stabilise q_d, got {actuated}: {error}") from None
        self.K = self.B @ K
        self.loss = MIN_RATE_FRACTION * (self.Q + K.T @ R @ K)
        if level is None:
            level = 0.8 * self._sampled_level()
        self.level = number("level", level, "a positive number", lambda x: x > 0.0)

    def _state(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """x (2 nv,)."""
        e = self.error(t, q, v).e
        return np.concatenate((np.where(self.endless, np.arctan2(np.sin(e), np.cos(e)), e), v))

    def __call__(self, t, q, v, z):
        x = self._state(t, q, v)
        return Command(self.tau_d - self.K @ x, None, {"e": x[: len(v)], "V": scalar(x.dot(self.S).dot(x))})

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        x = self._state(t, q, v)
        return Lyapunov(scalar(x.dot(self.S).dot(x)), -scalar(x.dot(self.loss).dot(x)))

    def in_domain(self, t: float, q: np.ndarray, v: np.ndarray):
        """Whether V < level; a symbolic condition if the state is symbolic."""
        x = self._state(t, q, v)
        return scalar(x.dot(self.S).dot(x)) < self.level

    def _sampled_level(self) -> float:
        """The largest V up to which the bound holds in all sampled directions."""
        robot, n, group = self.robot, self.robot.nv, ConfigurationGroup(self.robot)
        x = np.random.default_rng(0).normal(size=(DIRECTIONS, 2 * n))
        x /= np.sqrt(np.einsum("ka,ab,kb->k", x, self.S, x))[:, None]  # V = 1
        held, unit = np.ones(DIRECTIONS, bool), np.inf
        q_d = np.broadcast_to(self.q_d, (DIRECTIONS, robot.nq))
        for r in RADII:
            y = r * x
            held &= ~(np.abs(np.where(self.endless, y[:, :n], 0.0)) > np.pi).any(axis=1)
            q = robot.integrate(q_d, y[:, :n])
            a = robot.forward_dynamics(q, y[:, n:], self.tau_d - y @ self.K.T)
            e_rate = group.dexp_inv_mul(-y[:, :n], y[:, n:])
            slope = 2.0 * np.einsum("ka,ab,kb->k", y, self.S, np.hstack((e_rate, a)))
            held &= slope <= -np.einsum("ka,ab,kb->k", y, self.loss, y) * (1.0 - 1e-9)
            if not held.all():
                return float(unit) ** 2 if np.isfinite(unit) else 0.0
            unit = r
        return float(RADII[-1]) ** 2


def selection(robot: Robot, actuated: Sequence[int] | None) -> np.ndarray:
    """B (nv, m), which maps torques of the driven joints to all joints. Raises ArgumentError for `actuated`."""
    n = robot.nv
    if actuated is None:
        return np.eye(n)
    try:
        numbers = checked("actuated", actuated, ())
    except ArgumentError:  # names of joints, for example
        numbers = np.empty(0)
    wanted = numbers.ndim == 1 and numbers.size > 0 and np.isin(numbers, np.arange(n)).all()
    if not wanted or len(set(numbers.tolist())) < len(numbers):
        raise ArgumentError(
            f"actuated: expected different velocity coordinates from 0 to {n - 1}, the positions of joints in"
            f" robot.dof_names = {shown(robot.dof_names)}, got {shown(actuated)}"
        )
    return np.eye(n)[:, numbers.astype(int)]
