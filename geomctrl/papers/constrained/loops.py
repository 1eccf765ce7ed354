"""Robots with closed kinematic loops, in joint coordinates: a four-bar linkage, a parallel robot.

The robot is the tree that remains after some joints are cut. `Constraint`s between its bodies, or to the world, close
the loops. With the body Jacobians J_b of the tree, the constraints' rows G on body twists become J = G J_b. In joint
coordinates the index-1 equations (`equations`) read

    M vdot + C v + g - J^T lambda = tau,    J vdot = -G Jdot_b v - Gdot V - 2 alpha J v - beta^2 g_loop

Stabilisation and projection are as in maximal coordinates. Matrices are dense because loops are few. A singular value
decomposition of L^-1 J^T, with M = L L^T, determines the rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from geomctrl.arguments import checked, instance, number, shown, without_overflow_warnings
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.kernels import maximal as kernels
from geomctrl.lie.groups import Product, Rn
from geomctrl.mechanism.configuration import configuration_group
from geomctrl.robot import Robot

from .equations import GGL, Baumgarte, Index1System, Singular
from .joints import WORLD, Constraint, bodies_of, checked_items
from .rows import evaluate_user


class _Loops(NamedTuple):
    """The rows at a state, and their factors, with M = L L^T."""

    frames: np.ndarray  # (n + 1, 12)
    V: np.ndarray  # (n + 1, 6)
    J: np.ndarray  # (m, w, 6), on twists
    g: np.ndarray
    gdot: np.ndarray
    bias: np.ndarray
    q: np.ndarray
    v: np.ndarray
    J_b: np.ndarray  # (n + 1, 6, nv): body Jacobians
    J_v: np.ndarray  # (m, nv): J on v
    L: np.ndarray = np.empty((0, 0))
    factors: Any = None  # Singular, of the scaled L^-1 J^T (nv, m)


class ClosedLoops(Index1System):
    """A robot with loops that constraints between its bodies, or to the world, close.

    A state y = (q, v) is an element of `group`; its size is nq + nv.

    Parameters
    ----------
    robot : Robot
        The tree.
    constraints : iterable of Constraint
        Constraints; their bodies are bodies of the robot or "world".
    torque : callable, optional
        torque(t, q, v) -> (nv,), joint torques and forces [N m, N]. Default: none.
    stabilisation : Baumgarte or GGL, optional
        Stabilisation of the constraints. Default: none. `integrate_index1` can project the states instead.
    reference : array_like, shape (nq,), optional
        Configuration in which missing point_b and axis_b of constraints are computed. Default: neutral.

    Raises
    ------
    ArgumentError, ModelError, NameNotFoundError
        If an argument is invalid, with the name of the constraint.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers.constrained import ClosedLoops, Constraint
    >>> arm = gc.models.two_link()  # a bearing at x = 1 m on the ground holds the tip
    >>> pin = Constraint("spherical", "bearing", ("world", "link2"), point=(1.0, 0.0, 0.0), point_b=(1.0, 0.0, 0.0))
    >>> loop = ClosedLoops(arm, [pin])
    >>> y = loop.consistent([1.0, -2.1])  # the nearest triangle, with equal sides: q = (60, -120) degrees
    >>> bool(np.allclose(loop.state(np.radians([60.0, -120.0]))[:2], y[:2]))
    True
    >>> bool(loop.violation(y) < 1e-9), loop.rank(y), loop.accelerations(0.0, y).shape
    (True, 2, (2,))
    >>> loop.field(0.0, y).shape, loop.reactions(0.0, y)["bearing"].shape
    ((4,), (6,))
    >>> bool(np.isclose(loop.energy(loop.project(y)), loop.energy(y)))
    True
    """

    def __init__(
        self,
        robot: Robot,
        constraints: Iterable[Constraint],
        *,
        torque: Callable | None = None,
        stabilisation: Baumgarte | GGL | None = None,
        reference: ArrayLike | None = None,
    ):
        if torque is not None and not callable(torque):
            raise ArgumentError(f"torque: expected a function torque(t, q, v) or None, got {shown(torque)}")
        instance("robot", robot, Robot, "a geomctrl.Robot")
        self.robot, self.torque = robot, torque
        constraints = checked_items("constraints", constraints)
        used = {name for c in constraints if isinstance(c, Constraint) for name in bodies_of(c) if name != WORLD}
        self._bodies = tuple(name for name in robot.body_names if name in used)
        q = robot.neutral() if reference is None else _one("reference", reference, robot.nq)
        poses = np.array([robot.pose(q, name) for name in self._bodies]).reshape(-1, 4, 4)
        super().__init__(self._bodies, poses, constraints, stabilisation)
        self.group, self.velocities = Product(configuration_group(robot), Rn(robot.nv)), (robot.nv,)

    def __repr__(self):
        return f"ClosedLoops({self.robot!r}, {len(self.names)} constraints, {len(self._owner)} rows)"

    def state(self, q: ArrayLike, v: ArrayLike | None = None) -> np.ndarray:
        """Return the state of q and v, which must satisfy the constraints.

        Parameters
        ----------
        q : array_like, shape (nq,)
            Configuration [rad, m].
        v : array_like, shape (nv,), optional
            Velocity [rad/s, m/s]. Default: at rest.

        Returns
        -------
        ndarray, shape (nq + nv,)

        Raises
        ------
        ArgumentError
            If an argument is invalid, or if the state violates a constraint by more than 1e-8; the message has the
            constraint's name and the residual.
        """
        return self._accepted(self._packed(q, v))

    def consistent(self, q: ArrayLike, v: ArrayLike | None = None, free: ArrayLike | None = None) -> np.ndarray:
        """Return the state nearest to (q, v), in the metric M, that satisfies the constraints.

        Parameters
        ----------
        q : array_like, shape (nq,)
            Configuration [rad, m].
        v : array_like, shape (nv,), optional
            Velocity [rad/s, m/s]. Default: at rest.
        free : array_like of bool, shape (nv,), optional
            Velocities that may change. Default: all.

        Returns
        -------
        ndarray, shape (nq + nv,)

        Raises
        ------
        ArgumentError
            If an argument is invalid, or if no such state is near; the message has the constraint's name and the
            residual.
        """
        return self._consistent(self._packed(q, v), free)

    def accelerations(self, t: float, y: ArrayLike) -> np.ndarray:
        """Return the joint accelerations.

        Parameters
        ----------
        t : float
            Time [s].
        y : array_like, shape (size,)
            State.

        Returns
        -------
        ndarray, shape (nv,)
            Accelerations [rad/s^2, m/s^2].

        Raises
        ------
        ArgumentError
            If an argument is invalid, or if the rank is in doubt and no configuration with closed loops is near.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
            return self._accelerate(number("t", t), self._factorised(self._state(y)))[0]

    def rank(self, y: ArrayLike) -> int:
        """Return the number of independent constraint rows.

        Parameters
        ----------
        y : array_like, shape (size,)
            State.

        Returns
        -------
        int
        """
        return len(self._factorised(self._state(y)).factors.s)

    def energy(self, y: ArrayLike) -> np.ndarray:
        """Return the kinetic energy plus the potential energy of gravity.

        Parameters
        ----------
        y : array_like, shape (..., size)
            States.

        Returns
        -------
        ndarray, shape (...,)
            Energy [J].
        """
        y = checked("y", y, self.group.shape)
        return self.robot.energy(y[..., : self.robot.nq], y[..., self.robot.nq :])

    # --- inside: methods of `Index1System` -----------------------------------------------------------------------

    @without_overflow_warnings
    def _evaluate(self, y) -> _Loops:
        q, v = y[: self.robot.nq], y[self.robot.nq :]
        n, m, nv = len(self._bodies), len(self._owner), self.robot.nv
        frames, V, drift = np.zeros((n + 1, 12)), np.zeros((n + 1, 6)), np.zeros((n + 1, 6))
        J_b = np.zeros((n + 1, 6, nv))
        frames[n, [0, 5, 10]] = 1.0
        for i, name in enumerate(self._bodies):
            frames[i] = self.robot.pose(q, name)[:3].ravel()
            J_b[i] = self.robot.jacobian(q, name)
            drift[i] = self.robot.jacobian_rate(q, v, name) @ v
            V[i] = J_b[i] @ v
        J = np.zeros((m, self._table.bodies.shape[1], 6))
        g, gdot, bias = np.empty((3, m))
        kernels.evaluate_rows(frames, V, self._table.index, self._table.data, J, g, gdot, bias)
        for c, rows, numbers in self._table.users:
            evaluate_user(self.constraints[c], rows, numbers, frames, V, J, g, gdot, bias)
        bias += np.einsum("rwi,rwi->r", J, drift[self._table.bodies])
        J_v = np.einsum("rwi,rwij->rj", J, J_b[self._table.bodies])
        return _Loops(frames, V, J, g, gdot, bias, q, v, J_b, J_v)

    def _factorised(self, y) -> _Loops:
        loops = self._evaluate(y)
        try:
            L = np.linalg.cholesky(self.robot.mass_matrix(loops.q))
        except np.linalg.LinAlgError:
            raise ModelError(f"robot {self.robot.name!r}: the mass matrix is not positive definite") from None
        A = solve_triangular(L, loops.J_v.T, lower=True)
        # A row without effect, such as one out of a mechanism's plane, is rounding: compare it with the terms that
        # cancelled.
        bodies = np.abs(solve_triangular(L, loops.J_b.reshape(-1, L.shape[0]).T, lower=True))
        bodies = bodies.reshape(L.shape[0], -1, 6)[:, self._table.bodies]
        scale = np.linalg.norm(np.einsum("jrwi,rwi->jr", bodies, np.abs(loops.J)), axis=0)
        return loops._replace(L=L, factors=Singular.of(A, scale))

    def _accelerate(self, t, rows):
        if rows.factors.is_doubtful(self._relative_violation(rows)):
            closed = self._project_positions(np.concatenate((rows.q, rows.v)))
            rows = rows._replace(factors=rows.factors.truncated(len(closed.factors.s)))
        return super()._accelerate(t, rows)

    def _least(self, rows, right):
        x, multipliers = rows.factors.least(right)
        return solve_triangular(rows.L.T, x, lower=False), multipliers

    def _null(self, rows):
        return rows.factors.null()

    def _row_rates(self, rows, x):
        return rows.J_v @ x

    def _free(self, t, rows):
        tau = np.zeros(self.robot.nv)
        if self.torque is not None:
            tau = _one("torque(t, q, v)", self.torque(t, rows.q.copy(), rows.v.copy()), self.robot.nv)
        return self.robot.forward_dynamics(rows.q, rows.v, tau)

    def _rates(self, rows, moved, Vdot):
        return np.concatenate((moved, Vdot))

    def _moved(self, rows, x, dv):
        q = rows.q if x is None else self.robot.integrate(rows.q, x)
        return np.concatenate((q, rows.v if dv is None else rows.v + dv))

    def _turn(self, x):
        return np.abs(x).max()

    def _dense(self, rows):
        return self.robot.mass_matrix(rows.q), rows.J_v

    def _packed(self, q, v):
        nq, nv = self.robot.nq, self.robot.nv
        return np.concatenate((_one("q", q, nq), np.zeros(nv) if v is None else _one("v", v, nv)))


def _one(name, value, n):
    a = checked(name, value, (n,))
    if a.shape != (n,):
        raise ArgumentError(f"{name}: expected shape ({n},), got {a.shape}")
    return a
