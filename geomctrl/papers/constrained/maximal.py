"""Constrained bodies in maximal coordinates: Mueller and Terze 2013. Each body is on SE(3) or on SO(3) x R^3.

The state y = (q, velocities) is in G x R^6n (26), (29). Its field solves the index-1 equations (3) of `equations`, in
which J^T lambda are the wrenches that the constraints exert on the bodies. The equations use body-fixed twists for both
groups, so the groups differ only in the update of the poses. The velocity of a body on SO(3) x R^3 is (omega, pdot),
with pdot in inertial axes (20). Without stabilisation the constraints drift, which is the subject of the paper.

Redundant rows depend on the rows before them (`kernels.maximal`); they are detected and left out whenever the equations
are set up. Without pivoting, rows that are nearly dependent lose accuracy. In a system with loops they are resolved by
the singular values of M^-1/2 J^T instead. The motion is unique; `reactions` uses the multipliers of least norm. The
dependence is measured in the metric M^-1, so a body that is held only by a body 1e10 times lighter counts as free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_array

from geomctrl.arguments import checked, number, require_rotation, shown, without_overflow_warnings
from geomctrl.errors import ArgumentError, ModelError
from geomctrl.kernels import maximal as kernels
from geomctrl.lie import se3
from geomctrl.lie.checked_group import block_diagonal
from geomctrl.lie.groups import SE3, Product, Rn, SO3xR3
from geomctrl.mechanism import inertia as _inertia

from .equations import DOUBTFUL, GGL, Baumgarte, Index1System, Singular
from .joints import (
    ConstrainedBody,
    Constraint,
    checked_group,
    checked_items,
    checked_names,
    checked_parameters,
    checked_pose,
)
from .rows import evaluate_user, matrices

REDUNDANT = 1e-10  # sin^2 of the angle between a row and the span of the others, below which it is left out
ILL_CONDITIONED = 1e-6  # the same, below which systems with loops use a singular value decomposition


class _States(Product):
    """Product(pose groups ..., Rn(6 n)) with `advance` and `dexp_inv_mul` for all bodies in one call."""

    _layout: np.ndarray

    def __init__(self, groups, layout):
        super().__init__(*groups, Rn(6 * len(groups)))
        self.__dict__["_layout"] = layout

    def advance(self, y, x):
        if not (type(y) is type(x) is np.ndarray and y.shape == self.shape and x.shape == (self.dim,)):
            return super().advance(y, x)
        out = np.empty(y.shape)
        kernels.advance_bodies(self._layout, _contiguous(y), _contiguous(x), out)
        return out

    def dexp_inv_mul(self, x, y):
        if not (type(y) is type(x) is np.ndarray and y.shape == x.shape == (self.dim,)):
            return super().dexp_inv_mul(x, y)
        out = np.empty(x.shape)
        kernels.dexp_inv_bodies(self._layout, _contiguous(x), _contiguous(y), out)
        return out

    def __repr__(self):
        return super().__repr__() if len(self.groups) < 8 else f"the group of states of {len(self.groups) - 1} bodies"


def _contiguous(x):
    """Return x in the form for kernels; np.require takes as long as a kernel, so it is called only if needed."""
    return x if x.flags.carray and x.dtype == np.float64 else np.require(x, np.float64, ["C", "W"])


class _Rows(NamedTuple):
    """The constraints at a state, in the order of elimination, and the factors of their Gram matrix."""

    frames: np.ndarray  # (n + 1, 12)
    V: np.ndarray  # (n + 1, 6)
    J: np.ndarray  # (m, w, 6)
    g: np.ndarray
    gdot: np.ndarray
    bias: np.ndarray
    JM: np.ndarray  # J M^-1
    L: np.ndarray
    d: np.ndarray  # 0 where redundant
    factors: Singular | None = None  # instead of L and d, where these would lose accuracy

    @property
    def v(self):
        return self.V


class ConstrainedSystem(Index1System):
    """Bodies in maximal coordinates and the constraints between them.

    A state y is an element of `group`, and `field(t, y)` is an argument of `integrators.integrate`. `names` are the
    names of the constraints in their order. Tolerances are relative to `length` [m], which is at least 1.

    Parameters
    ----------
    bodies : iterable of ConstrainedBody
        The n bodies.
    constraints : iterable of Constraint
        Constraints between the bodies, or to "world".
    group : SE3 or SO3xR3, optional
        Group of bodies without their own. Default: SE3().
    gravity : array_like, shape (3,)
        Gravitational acceleration [m/s^2]. Default: (0, 0, -9.81).
    wrench : callable, optional
        wrench(t, poses (n, 4, 4), twists (n, 6)) -> (n, 6), further wrenches about the origins of the bodies, in their
        axes [N m, N]. Default: none.
    stabilisation : Baumgarte or GGL, optional
        Stabilisation of the constraints. Default: none. `integrate_index1` can project the states instead.

    Raises
    ------
    ArgumentError, ModelError, InertiaError, NameNotFoundError
        If an argument is invalid, with the name of the body or the constraint.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.papers.constrained import ConstrainedBody, ConstrainedSystem, Constraint
    >>> rod = gc.inertia.from_com(1.0, [0.0, 0.0, -0.5], 0.1 * np.eye(3))
    >>> pin = Constraint("spherical", "pin", ("world", "rod"))
    >>> system = ConstrainedSystem([ConstrainedBody("rod", rod)], [pin])
    >>> y = system.consistent(None, [[0.0, 2.0, 0.0, 0.0, 0.0, 0.0]])
    >>> system.poses(y).shape, system.twists(y)[0, :3], system.jacobian(y).shape
    ((1, 4, 4), array([0., 2., 0.]), (3, 6))
    >>> system.residual(y), system.momentum(y)[:3].round(9) + 0.0  # I_yy about the pin is 0.35 kg m^2
    (array([0., 0., 0.]), array([0. , 0.7, 0. ]))
    """

    def __init__(
        self,
        bodies: Iterable[ConstrainedBody],
        constraints: Iterable[Constraint],
        *,
        group: SE3 | SO3xR3 | None = None,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
        wrench: Callable | None = None,
        stabilisation: Baumgarte | GGL | None = None,
    ):
        self.bodies = checked_items("bodies", bodies)
        if not self.bodies:
            raise ModelError("bodies: expected at least one")
        self.body_names = checked_names("body", self.bodies, ConstrainedBody)
        self.reference = np.array([checked_pose(f"body {b.name!r}: pose", b.pose) for b in self.bodies])
        super().__init__(self.body_names, self.reference, checked_items("constraints", constraints), stabilisation)
        if wrench is not None and not callable(wrench):
            raise ArgumentError(f"wrench: expected a function wrench(t, poses, twists) or None, got {shown(wrench)}")
        self.wrench = wrench
        self.gravity = checked("gravity", gravity, (3,)).copy()
        if self.gravity.shape != (3,):
            raise ArgumentError(f"gravity: expected shape (3,), got {self.gravity.shape}")
        groups = [checked_group(b, SE3() if group is None else group) for b in self.bodies]
        sizes = [np.prod(g.shape) for g in groups]
        offsets = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        self._layout = np.array([(k, isinstance(g, SE3)) for k, g in zip(offsets, groups)], dtype=np.int64)
        self.group = _States(groups, self._layout)
        self.velocities = (len(self.bodies), 6)
        self.parameters = np.array([checked_parameters(b) for b in self.bodies])
        self._M = _inertia.spatial(self.parameters)
        self._M_inv = np.concatenate((np.linalg.inv(self._M), np.zeros((1, 6, 6))))
        self._roots = np.linalg.inv(np.linalg.cholesky(self._M))  # roots^T roots = M^-1
        self._has_loops = len(self.constraints) > len(self.bodies)
        self._still = np.zeros(self.velocities)
        self._row_bodies = self._table.bodies
        self._pairs, self._first, self._start = self._table.skyline
        self._m = len(self._table.index)
        self._size = int(self._start[-1] + self._m) if self._m else 0

    def __repr__(self):
        return f"ConstrainedSystem({len(self.bodies)} bodies, {len(self.names)} constraints, {self._m} rows)"

    def state(self, poses: ArrayLike | None = None, velocities: ArrayLike | None = None) -> np.ndarray:
        """Return the state of poses and twists, which must satisfy the constraints.

        Parameters
        ----------
        poses, velocities : array_like, shape (n, 4, 4) and (n, 6), optional
            Poses and body-fixed twists [rad/s, m/s]. Default: the reference poses, and zero.

        Returns
        -------
        ndarray, shape (size,)

        Raises
        ------
        ArgumentError
            If an argument is invalid, or if the state violates a constraint by more than 1e-8; the message has the
            constraint's name and the residual.
        """
        return self._accepted(self._packed(poses, velocities))

    def consistent(
        self, poses: ArrayLike | None = None, velocities: ArrayLike | None = None, free: ArrayLike | None = None
    ) -> np.ndarray:
        """Return the nearest state that satisfies the constraints, in the metric of the kinetic energy.

        Parameters
        ----------
        poses, velocities : array_like, shape (n, 4, 4) and (n, 6), optional
            Poses and body-fixed twists [rad/s, m/s]. Default: the reference poses, and zero.
        free : array_like of bool, shape (n, 6), optional
            Velocity components that may change. Default: all.

        Returns
        -------
        ndarray, shape (size,)

        Raises
        ------
        ArgumentError
            If an argument is invalid, or if no such state is near; the message names the constraint.
        """
        return self._consistent(self._packed(poses, velocities), free)

    def poses(self, y: ArrayLike) -> np.ndarray:
        """Return the poses of the bodies.

        Parameters
        ----------
        y : array_like, shape (..., size)
            States.

        Returns
        -------
        ndarray, shape (..., n, 4, 4)
        """
        y = checked("y", y, self.group.shape)
        T = np.zeros((*y.shape[:-1], len(self.bodies), 4, 4))
        T[..., :3, :] = y[..., self._layout[:, :1] + np.arange(12)].reshape(*T.shape[:-2], 3, 4)
        T[..., 3, 3] = 1.0
        return T

    def twists(self, y: ArrayLike) -> np.ndarray:
        """Return the body-fixed twists of the bodies, for both groups.

        Parameters
        ----------
        y : array_like, shape (..., size)
            States.

        Returns
        -------
        ndarray, shape (..., n, 6)
            Twists [rad/s, m/s].
        """
        y = checked("y", y, self.group.shape)
        V = y[..., -6 * len(self.bodies) :].reshape(*y.shape[:-1], len(self.bodies), 6).copy()
        mixed = self._layout[:, 1] == 0
        R = self.poses(y)[..., mixed, :3, :3]
        V[..., mixed, 3:] = (R.swapaxes(-1, -2) @ V[..., mixed, 3:, None])[..., 0]
        return V

    def energy(self, y: ArrayLike) -> np.ndarray:
        """Return the kinetic energy plus the potential energy of gravity (...,) [J]."""
        T, V = self.poses(y), self.twists(y)
        kinetic = 0.5 * np.einsum("...ni,nij,...nj->...", V, self._M, V)
        m, h = self.parameters[:, 0], self.parameters[:, 1:4]
        moment = np.einsum("...nij,nj->...i", T[..., :3, :3], h) + np.einsum("n,...ni->...i", m, T[..., :3, 3])
        return kinetic - moment @ self.gravity

    @without_overflow_warnings
    def momentum(self, y: ArrayLike) -> np.ndarray:
        """Return the total momentum about the world's origin, in inertial axes.

        Parameters
        ----------
        y : array_like, shape (..., size)
            States.

        Returns
        -------
        ndarray, shape (..., 6)
            Angular [N m s], then linear momentum [N s].
        """
        T = self.poses(y)
        P = np.einsum("nij,...nj->...ni", self._M, self.twists(y))
        m, f = ((T[..., :3, :3] @ part[..., None])[..., 0] for part in (P[..., :3], P[..., 3:]))
        return np.concatenate((m + np.cross(T[..., :3, 3], f), f), axis=-1).sum(axis=-2)

    def accelerations(self, t: float, y: ArrayLike) -> np.ndarray:
        """Return the rates (n, 6) of the body-fixed twists [rad/s^2, m/s^2]."""
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
            return self._accelerate(number("t", t), self._factorised(self._state(y)))[0][:-1]

    def rank(self, y: ArrayLike) -> int:
        """Return the number of independent rows: a row at an angle below 1e-5 to those before it does not count."""
        return self._rank(self._factorised(self._state(y)))

    def _rank(self, rows: _Rows) -> int:
        return int((rows.d > 0.0).sum()) if rows.factors is None else len(rows.factors.s)

    def residual(self, y: ArrayLike) -> np.ndarray:
        """Return the residuals g of the constraints.

        Parameters
        ----------
        y : array_like, shape (size,)
            State.

        Returns
        -------
        ndarray, shape (rows,)
            Residuals in the order of `names` [m, or 1 for unit vectors].
        """
        return self._evaluate(self._state(y)).g[np.argsort(self._owner, kind="stable")]

    def jacobian(self, y: ArrayLike) -> np.ndarray:
        """Return the dense Jacobian J of the constraints: d/dt g = J V with body-fixed twists V.

        Parameters
        ----------
        y : array_like, shape (size,)
            State.

        Returns
        -------
        ndarray, shape (rows, 6 n)
            Rows in the order of `names`.
        """
        J = self._dense_jacobian(self._evaluate(self._state(y)))
        return J[np.argsort(self._owner, kind="stable")]

    def _corrected(self, t: float, y: np.ndarray, Vdot: np.ndarray, weight: float) -> np.ndarray:
        """Return Vdot (n + 1, 6) of M Vdot - J^T lambda = Q at y, for one iteration of an implicit method.

        lambda is such that poses that move by weight [s^2] times the change of Vdot satisfy the constraints to first
        order. The last row belongs to the world and is zero.
        """
        rows = self._of_closed_loops(self._factorised(self._shaped(y)))
        return self._solve(t, rows, self._row_rates(rows, Vdot) - rows.g / weight)[0]

    def _velocity_rates(self, y: np.ndarray, Vdot: np.ndarray) -> np.ndarray:
        """Return the rates (6 n,) of the state's velocities from those of the body-fixed twists, Vdot (n + 1, 6)."""
        n, out = len(self.bodies), np.empty(self.group.dim)
        frames, V = np.empty((n + 1, 12)), np.empty((n + 1, 6))
        kernels.unpack(_contiguous(y), self._layout, frames, V)
        kernels.pack_rates(self._layout, frames, V, V, Vdot, out)
        return out[6 * n :]

    # --- methods of `Index1System` -----------------------------------------------------------------------

    def _evaluate(self, y) -> _Rows:
        n, m = len(self.bodies), self._m
        frames, V = np.empty((n + 1, 12)), np.empty((n + 1, 6))
        J = np.zeros((m, self._row_bodies.shape[1], 6))
        g, gdot, bias = np.empty((3, m))
        kernels.unpack(_contiguous(y), self._layout, frames, V)
        kernels.evaluate_rows(frames, V, self._table.index, self._table.data, J, g, gdot, bias)
        for c, rows, numbers in self._table.users:
            evaluate_user(self.constraints[c], rows, numbers, frames, V, J, g, gdot, bias)
        empty = np.empty(0)
        return _Rows(frames, V, J, g, gdot, bias, empty, empty, empty)

    def _factorised(self, y) -> _Rows:
        rows = self._evaluate(y)
        JM, L, d = np.empty(rows.J.shape), np.empty(self._size), np.empty(self._m)
        layout = self._pairs, self._first, self._start
        least = kernels.factorise_rows(rows.J, self._row_bodies, self._M_inv, *layout, REDUNDANT, JM, L, d)
        rows = rows._replace(JM=JM, L=L, d=d)
        if self._has_loops and least < (10.0 * DOUBTFUL) ** 2:
            violation = min(self._relative_violation(rows), DOUBTFUL)
            if least >= max(ILL_CONDITIONED, (10.0 * violation) ** 2):
                return rows
            A = np.einsum("nij,rnj->nir", self._roots, self._dense_jacobian(rows).reshape(self._m, -1, 6))
            A = A.reshape(-1, self._m)
            rows = rows._replace(factors=Singular.of(A, np.linalg.norm(A, axis=0)))
        return rows

    def _accelerate(self, t, rows):
        return super()._accelerate(t, self._of_closed_loops(rows))

    def _of_closed_loops(self, rows: _Rows) -> _Rows:
        """The rows with the rank that they have where the loops close, if the violation leaves it in doubt."""
        if rows.factors is None or not rows.factors.is_doubtful(self._relative_violation(rows)):
            return rows
        closed = self._project_positions(self._pack(matrices(rows.frames[:-1]), rows.V[:-1]))
        return rows._replace(factors=rows.factors.truncated(self._rank(closed)))

    def _least(self, rows, right):
        if rows.factors is not None:
            z, lam = rows.factors.least(right)
            x = np.einsum("nji,nj->ni", self._roots, z.reshape(-1, 6))
            return np.concatenate((x, np.zeros((1, 6)))), lam
        lam, x = right.copy(), np.zeros(rows.V.shape)
        kernels.solve_rows(rows.L, rows.d, self._first, self._start, lam)
        kernels.add_reactions(rows.JM, self._row_bodies, lam, x)
        return x, lam

    def _null(self, rows):
        """Return one vector of the null space for each redundant row."""
        if rows.factors is not None:
            return rows.factors.null()
        dropped = np.flatnonzero(rows.d == 0.0)
        if not len(dropped):
            return None
        wide = self._sparse_jacobian(rows.J)
        gram = (wide @ self._sparse_jacobian(rows.JM).T).tocsc()
        null = np.zeros((self._m, len(dropped)))
        for column, k in zip(null.T, dropped):
            z = -gram[:, [k]].toarray().ravel()
            kernels.solve_rows(rows.L, rows.d, self._first, self._start, z)
            column[:] = z
            column[k] = 1.0
        return null

    def _row_rates(self, rows, x):
        out = np.empty(self._m)
        kernels.row_rates(rows.J, self._row_bodies, x, out)
        return out

    def _free(self, t, rows):
        applied, Vdot = self._still if self.wrench is None else self._applied(t, rows), np.empty(rows.V.shape)
        arguments = rows.frames, rows.V, self.parameters, self._M_inv, self.gravity, applied, Vdot
        kernels.free_accelerations(*arguments)
        return Vdot

    def _applied(self, t, rows):
        assert self.wrench is not None
        W = checked("wrench(t, poses, twists)", self.wrench(t, matrices(rows.frames[:-1]), rows.V[:-1].copy()), (6,))
        if W.shape != self._still.shape:
            raise ArgumentError(f"wrench must return shape {self._still.shape}, got {W.shape}, at t = {t:.9g}")
        return W

    def _rates(self, rows, moved, Vdot):
        out = np.empty(self.group.dim)
        kernels.pack_rates(self._layout, rows.frames, rows.V, moved, Vdot, out)
        return out

    def _moved(self, rows, x, dv):
        T, V = matrices(rows.frames[:-1]), rows.V[:-1]
        T = T if x is None else T @ se3.exp(x[:-1])
        return self._pack(T, V if dv is None else V + dv.reshape(-1, 6)[: len(V)])

    def _turn(self, x):
        return np.abs(x[:, :3]).max()

    def _dense(self, rows):
        return block_diagonal(*self._M), self._dense_jacobian(rows)

    def _sparse_jacobian(self, values):
        m = len(values)
        rows = np.broadcast_to(np.arange(m)[:, None, None], values.shape)
        columns = 6 * self._row_bodies[:, :, None] + np.arange(6)
        shape = (m, 6 * (len(self.bodies) + 1))
        wide = csr_array(coo_array((values.ravel(), (rows.ravel(), columns.ravel())), shape=shape))
        return wide[:, : 6 * len(self.bodies)]

    def _dense_jacobian(self, rows):
        return self._sparse_jacobian(rows.J).toarray()

    def _pack(self, T, V):
        """Return the state of poses (n, 4, 4) and body-fixed twists (n, 6)."""
        y = np.empty(self.group.shape)
        for (first, on_se3), pose in zip(self._layout, T):
            y[first : first + 12] = pose[:3].ravel()
            if on_se3:
                y[first + 12 : first + 16] = 0.0, 0.0, 0.0, 1.0
        u = y[-6 * len(T) :].reshape(-1, 6)
        u[:] = V
        mixed = self._layout[:, 1] == 0
        u[mixed, 3:] = (T[mixed, :3, :3] @ V[mixed, 3:, None])[..., 0]
        return y

    def _packed(self, poses, velocities):
        n = len(self.bodies)
        T = self.reference if poses is None else checked("poses", poses, (n, 4, 4))
        V = self._still if velocities is None else checked("velocities", velocities, (n, 6))
        for name, a, shape in (("poses", T, (n, 4, 4)), ("velocities", V, (n, 6))):
            if a.shape != shape:
                raise ArgumentError(f"{name}: expected shape {shape}, got {a.shape}")
        if np.abs(T[:, 3] - (0.0, 0.0, 0.0, 1.0)).max() > 0.0:
            raise ArgumentError(f"poses: expected transforms, with 0, 0, 0, 1 in the last row, got {T[:, 3]}")
        require_rotation("poses", T[:, :3, :3])
        return self._pack(T, V)
