"""Constrained bodies in maximal coordinates, on SE(3)^n, (SO(3) x R^3)^n or a mix chosen body by body.

Mueller and Terze 2013. The state y = (q, velocities) is in G x R^6n (26), (29); its field solves the index-1 equations

    M Vdot - J^T lambda = Q,    J Vdot = eta = -Jdot V - 2 alpha J V - beta^2 g                                     (3)

(with the sign that makes J^T lambda the wrenches the constraints exert on the bodies). The equations are set up in
body-fixed twists on either group, so that the groups differ in nothing but the update of the poses; the velocity of a
body on SO(3) x R^3 is (omega, pdot), pdot in inertial axes (20). Baumgarte's alpha and beta are zero by default: then
the constraints drift, which is the paper's subject.

Redundant rows are found, as often as the equations are set up, by what the rows before them leave (`multipliers`), and
left out; the motion is unique, and of the multipliers `reactions` takes those of least norm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array, csr_array

from . import inertia as _inertia
from . import integrators, multipliers, se3
from .arrays import checked, require_rotation
from .constraints import (
    LOWER_PAIRS,
    ConstrainedBody,
    Constraint,
    checked_group,
    checked_names,
    checked_parameters,
    checked_pose,
    evaluate_user,
    matrices,
    set_up_rows,
)
from .errors import ArgumentError, GeomctrlError, IntegrationError, ModelError
from .groups import SE3, Product, Rn, SO3xR3
from .multipliers import AXES, D_A, D_B, LENGTH, R_B

__all__ = ["GGL", "Baumgarte", "ConstrainedBody", "ConstrainedSystem", "Constraint", "integrate"]

REDUNDANT = 1e-10  # sin^2 of the angle between a row and the span of the others, below which it is left out
CONSISTENT = 1e-8  # residual [m, or of unit vectors; m/s, 1/s] that a state may have
CONVERGED = 1e-13  # residual at which a projection stops improving positions, times the system's size
NEWTON_STEPS = 50


@dataclass(frozen=True)
class Baumgarte:
    """gddot + 2 damping gdot + stiffness^2 g = 0 in place of gddot = 0; both [1/s], damping = stiffness is critical."""

    damping: float
    stiffness: float

    def __post_init__(self):
        for key in ("damping", "stiffness"):
            value = getattr(self, key)
            if not (isinstance(value, int | float | np.number) and np.isfinite(value) and value >= 0.0):
                raise ArgumentError(f"Baumgarte: {key}: expected a number >= 0 [1/s], got {value!r}")


@dataclass(frozen=True)
class GGL:
    """Stabilisation in the manner of Gear, Gupta and Leimkuhler 1985: a second multiplier in the kinematic equation.

    q^-1 qdot = V - M^-1 J^T mu with J (q^-1 qdot) = -rate g, and J Vdot = -Jdot V - rate J V. With rate = 0 [1/s] the
    position constraint is the invariant of the ODE itself; with rate > 0 both levels are also attracted.
    """

    rate: float = 0.0

    def __post_init__(self):
        if not (isinstance(self.rate, int | float | np.number) and np.isfinite(self.rate) and self.rate >= 0.0):
            raise ArgumentError(f"GGL: rate: expected a number >= 0 [1/s], got {self.rate!r}")


class _States(Product):
    """Product(pose groups ..., Rn(6 n)), whose advance and dexp_inv_mul take all bodies in one call."""

    _layout: np.ndarray

    def __init__(self, groups, layout):
        super().__init__(*groups, Rn(6 * len(groups)))
        self.__dict__["_layout"] = layout

    def advance(self, y, x):
        if not (type(y) is type(x) is np.ndarray and y.shape == self.shape and x.shape == (self.dim,)):
            return super().advance(y, x)
        out = np.empty(y.shape)
        multipliers.advance_bodies(self._layout, _contiguous(y), _contiguous(x), out)
        return out

    def dexp_inv_mul(self, x, y):
        if not (type(y) is type(x) is np.ndarray and y.shape == x.shape == (self.dim,)):
            return super().dexp_inv_mul(x, y)
        out = np.empty(x.shape)
        multipliers.dexp_inv_bodies(self._layout, _contiguous(x), _contiguous(y), out)
        return out

    def __repr__(self):
        return super().__repr__() if len(self.groups) < 8 else f"the group of states of {len(self.groups) - 1} bodies"


def _contiguous(x):
    return np.require(x, np.float64, ["C", "W"])


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


class ConstrainedSystem:
    """Bodies and the constraints between them: states, field, multipliers.

    group: SE3() or SO3xR3() for the bodies that name none. gravity (3,) [m/s^2]. wrench(t, poses (n, 4, 4),
    twists (n, 6)) -> (n, 6): what else acts, about the bodies' origins in their axes. stabilisation: None, `Baumgarte`
    or `GGL`; projection is a matter of the time step (`integrate`).

    A state y is an element of `group`; `field(t, y)` is what `integrators.integrate` takes. `names` are the
    constraints', in the order given; `length` [m] is what tolerances are relative to, at least 1.
    Raises ModelError, InertiaError, NameNotFoundError or ArgumentError, naming the body or the constraint.
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
        self.bodies, self.constraints = tuple(bodies), tuple(constraints)
        if not self.bodies:
            raise ModelError("bodies: expected at least one")
        self.body_names = checked_names("body", self.bodies, ConstrainedBody)
        self.names = checked_names("constraint", self.constraints, Constraint)
        if stabilisation is not None and not isinstance(stabilisation, Baumgarte | GGL):
            raise ArgumentError(f"stabilisation: expected None, Baumgarte or GGL, got {stabilisation!r:.80}")
        self.stabilisation, self.wrench = stabilisation, wrench
        self.gravity = checked("gravity", gravity, (3,)).copy()
        if self.gravity.shape != (3,):
            raise ArgumentError(f"gravity: expected shape (3,), got {self.gravity.shape}")
        groups = [checked_group(b, SE3() if group is None else group) for b in self.bodies]
        sizes = [np.prod(g.shape) for g in groups]
        offsets = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        self._layout = np.array([(k, isinstance(g, SE3)) for k, g in zip(offsets, groups)], dtype=np.int64)
        self.group = _States(groups, self._layout)
        self.parameters = np.array([checked_parameters(b) for b in self.bodies])
        self._M = _inertia.spatial(self.parameters)
        self._M_inv = np.concatenate((np.linalg.inv(self._M), np.zeros((1, 6, 6))))
        self.reference = np.array([checked_pose(f"body {b.name!r}: pose", b.pose) for b in self.bodies])
        self._still = np.zeros((len(self.bodies), 6))
        table = set_up_rows(self.body_names, self.reference, self.constraints)
        self._index, self._data, self._row_bodies, self._owner, self._users = table[:5]
        self._pairs, self._first, self._start = table.skyline
        self._m = len(self._index)
        self._size = int(self._start[-1] + self._m) if self._m else 0
        self.length = max([1.0, *np.abs(self.reference[:, :3, 3]).ravel(), *np.abs(self._data).ravel()])

    def __repr__(self):
        return f"ConstrainedSystem({len(self.bodies)} bodies, {len(self.names)} constraints, {self._m} rows)"

    # --- states --------------------------------------------------------------------------------------------------

    def state(self, poses: ArrayLike | None = None, velocities: ArrayLike | None = None) -> np.ndarray:
        """The state of poses (n, 4, 4), or None for the reference's, and body-fixed twists (n, 6), or None for rest.

        Raises ArgumentError, with the constraint's name and the residual, unless both satisfy the constraints to 1e-8.
        """
        y = self._packed(poses, velocities)
        rows = self._evaluate(y)
        for values, what, unit in ((rows.g, "positions", "m"), (rows.gdot, "velocities", "m/s")):
            size = self.length if what == "positions" else max(1.0, np.abs(rows.V).max())
            if self._m and np.abs(values).max() > CONSISTENT * size:
                raise ArgumentError(f"{what} violate {self._worst(values)} [{unit} or 1]; `consistent` projects them")
        self._check_branch(y)
        return y

    def consistent(
        self, poses: ArrayLike | None = None, velocities: ArrayLike | None = None, free: ArrayLike | None = None
    ) -> np.ndarray:
        """The nearest state that satisfies the constraints, in the metric of the kinetic energy.

        free (n, 6) bool: the velocity components that may change; None is all. Raises ArgumentError, with the
        constraint's name and the residual, where there is none.
        """
        y = self._project_positions(self._packed(poses, velocities))
        self._check_branch(y)
        if free is None:
            return self._project_velocities(y)
        mask = np.asarray(free)
        if mask.dtype != bool or mask.shape != (len(self.bodies), 6):
            raise ArgumentError(f"free: expected booleans of shape ({len(self.bodies)}, 6), got {free!r:.80}")
        rows = self._factorised(y)
        J = self._dense_jacobian(rows)
        V = rows.V[:-1].ravel()
        M = np.zeros((V.size, V.size))
        for i, block in enumerate(self._M):
            M[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = block
        root = np.linalg.cholesky(np.linalg.inv(M[np.ix_(mask.ravel(), mask.ravel())]))
        change = root @ np.linalg.lstsq(J[:, mask.ravel()] @ root, -rows.gdot, rcond=1e-12)[0]
        V[mask.ravel()] += change
        left = rows.gdot + J[:, mask.ravel()] @ change
        if self._m and np.abs(left).max() > CONSISTENT * max(1.0, np.abs(V).max()):
            raise ArgumentError(f"velocities: the components held fixed contradict {self._worst(left)} [m/s or 1/s]")
        return self._packed(self.poses(y), V.reshape(-1, 6))

    def project(self, y: ArrayLike) -> np.ndarray:
        """y with its poses, then its velocities, brought back to the constraints along M^-1 J^T."""
        return self._project_velocities(self._project_positions(self._state(y)))

    def poses(self, y: ArrayLike) -> np.ndarray:
        """(..., n, 4, 4) of states (..., size)."""
        y = checked("y", y, self.group.shape, finite=False)
        T = np.zeros((*y.shape[:-1], len(self.bodies), 4, 4))
        T[..., :3, :] = y[..., self._layout[:, :1] + np.arange(12)].reshape(*T.shape[:-2], 3, 4)
        T[..., 3, 3] = 1.0
        return T

    def twists(self, y: ArrayLike) -> np.ndarray:
        """Body-fixed twists (..., n, 6) of states (..., size), whichever group their bodies are on."""
        y = checked("y", y, self.group.shape, finite=False)
        V = y[..., -6 * len(self.bodies) :].reshape(*y.shape[:-1], -1, 6).copy()
        mixed = self._layout[:, 1] == 0
        R = self.poses(y)[..., mixed, :3, :3]
        V[..., mixed, 3:] = (R.swapaxes(-1, -2) @ V[..., mixed, 3:, None])[..., 0]
        return V

    def violation(self, y: ArrayLike) -> np.ndarray:
        """|g| (..., number of constraints) of states (..., size), in the order of `names` [m, or of unit vectors]."""
        return self._norms(y, "g")

    def velocity_violation(self, y: ArrayLike) -> np.ndarray:
        """|J V| (..., number of constraints) [m/s or 1/s]."""
        return self._norms(y, "gdot")

    def kinetic_energy(self, y: ArrayLike) -> np.ndarray:
        """(...,) [J]."""
        V = self.twists(y)
        return 0.5 * np.einsum("...ni,nij,...nj->...", V, self._M, V)

    def energy(self, y: ArrayLike) -> np.ndarray:
        """Kinetic and gravity's potential energy (...,) [J]."""
        T = self.poses(y)
        m, h = self.parameters[:, 0], self.parameters[:, 1:4]
        moment = np.einsum("...nij,nj->...i", T[..., :3, :3], h) + np.einsum("n,...ni->...i", m, T[..., :3, 3])
        return self.kinetic_energy(y) - moment @ self.gravity

    def momentum(self, y: ArrayLike) -> np.ndarray:
        """(..., 6): about the inertial origin, in inertial axes, angular part first."""
        T = self.poses(y)
        P = np.einsum("nij,...nj->...ni", self._M, self.twists(y))
        m, f = ((T[..., :3, :3] @ part[..., None])[..., 0] for part in (P[..., :3], P[..., 3:]))
        return np.concatenate((m + np.cross(T[..., :3, 3], f), f), axis=-1).sum(axis=-2)

    # --- dynamics ------------------------------------------------------------------------------------------------

    def field(self, t: float, y: np.ndarray) -> np.ndarray:
        """The derivative (group.dim,) of the state y in the Lie algebra: what `integrators` integrate."""
        rows = self._factorised(y)
        Vdot, _ = self._accelerate(t, rows)
        moved = rows.V
        if isinstance(self.stabilisation, GGL):
            mu = rows.gdot + self.stabilisation.rate * rows.g
            multipliers.solve(rows.L, rows.d, self._first, self._start, mu)
            moved = rows.V.copy()
            multipliers.add_reactions(rows.JM, self._row_bodies, -mu, moved)
        out = np.empty(self.group.dim)
        multipliers.pack_rates(self._layout, rows.frames, rows.V, moved, Vdot, out)
        return out

    def accelerations(self, t: float, y: ArrayLike) -> np.ndarray:
        """Rates (n, 6) of the body-fixed twists."""
        return self._accelerate(t, self._factorised(self._state(y)))[0][:-1]

    def reactions(self, t: float, y: ArrayLike) -> dict[str, np.ndarray]:
        """The wrench (6,) that each constraint exerts on its body b, about its point there and in b's axes [N m, N].

        Body a gets the opposite. A holonomic constraint gives (k, 6), about the k bodies' origins in their axes. With
        redundant constraints the wrenches are not unique: these have the multipliers of least norm.
        """
        rows = self._factorised(self._state(y))
        multiplier = self._least_norm(rows, self._accelerate(t, rows)[1])
        wrenches = rows.J * multiplier[:, None, None]
        out = {}
        for c, name in enumerate(self.names):
            mine = np.flatnonzero(self._owner == c)
            sums = wrenches[mine].sum(axis=0)
            if self.constraints[c].kind == "holonomic":
                out[name] = sums[: len(self.constraints[c].bodies)]
            else:
                m, f = sums[1, :3], sums[1, 3:]
                out[name] = np.concatenate((m - np.cross(self._data[mine[0], R_B:D_A], f), f))
        return out

    def rank(self, y: ArrayLike) -> int:
        """The number of independent rows: a row at an angle below 1e-5 to those before it does not count."""
        return int((self._factorised(self._state(y)).d > 0.0).sum())

    def redundant(self, y: ArrayLike) -> list[str]:
        """Names of the constraints of which rows are redundant beside those before them, in order of elimination."""
        lost = set(self._owner[self._factorised(self._state(y)).d == 0.0].tolist())
        return [name for c, name in enumerate(self.names) if c in lost]

    def residual(self, y: ArrayLike) -> np.ndarray:
        """g (rows,), in the order of `names` [m, or of unit vectors]."""
        return self._evaluate(self._state(y)).g[np.argsort(self._owner, kind="stable")]

    def jacobian(self, y: ArrayLike) -> np.ndarray:
        """J (rows, 6 n), dense, its rows in the order of `names`: d/dt g = J V with body-fixed twists V."""
        J = self._dense_jacobian(self._evaluate(self._state(y)))
        return J[np.argsort(self._owner, kind="stable")]

    # --- inside --------------------------------------------------------------------------------------------------

    def _evaluate(self, y) -> _Rows:
        n, m = len(self.bodies), self._m
        frames, V = np.empty((n + 1, 12)), np.empty((n + 1, 6))
        J = np.zeros((m, self._row_bodies.shape[1], 6))
        g, gdot, bias = np.empty((3, m))
        multipliers.unpack(_contiguous(y), self._layout, frames, V)
        multipliers.evaluate_rows(frames, V, self._index, self._data, J, g, gdot, bias)
        for c, at, numbers in self._users:
            evaluate_user(self.constraints[c], at, numbers, frames, V, J, g, gdot, bias)
        return _Rows(frames, V, J, g, gdot, bias, *([np.empty(0)] * 3))

    def _factorised(self, y) -> _Rows:
        rows = self._evaluate(y)
        JM, L, d = np.empty(rows.J.shape), np.empty(self._size), np.empty(self._m)
        layout = self._pairs, self._first, self._start
        multipliers.factorise(rows.J, self._row_bodies, self._M_inv, *layout, REDUNDANT, JM, L, d)
        return rows._replace(JM=JM, L=L, d=d)

    def _accelerate(self, t, rows):
        """(Vdot (n + 1, 6), multipliers (m,)) of (3)."""
        eta = -rows.bias
        if isinstance(self.stabilisation, Baumgarte):
            eta -= 2.0 * self.stabilisation.damping * rows.gdot + self.stabilisation.stiffness**2 * rows.g
        elif isinstance(self.stabilisation, GGL):
            eta -= self.stabilisation.rate * rows.gdot
        return self._solve(t, rows, eta)

    def _solve(self, t, rows, eta):
        """(Vdot, multipliers) of M Vdot - J^T lambda = Q, J Vdot = eta."""
        applied = self._still if self.wrench is None else self._applied(t, rows)
        Vdot, lam = np.empty(rows.V.shape), np.empty(self._m)
        arguments = rows.frames, rows.V, self.parameters, self._M_inv, self.gravity, applied, Vdot
        multipliers.free_accelerations(*arguments)
        multipliers.row_rates(rows.J, self._row_bodies, Vdot, lam)
        lam = eta - lam
        multipliers.solve(rows.L, rows.d, self._first, self._start, lam)
        multipliers.add_reactions(rows.JM, self._row_bodies, lam, Vdot)
        return Vdot, lam

    def corrected(self, t: float, y: np.ndarray, Vdot: np.ndarray, weight: float) -> tuple[np.ndarray, np.ndarray]:
        """One iteration of an implicit method: Vdot (n + 1, 6) of M Vdot - J^T lambda = Q at y, with lambda such that
        poses that move by weight [s^2] times its change satisfy the constraints to first order; and its velocity
        coordinates' rate (6 n,). The last row of Vdot is the world's, zero.
        """
        rows = self._factorised(y)
        eta = np.empty(self._m)
        multipliers.row_rates(rows.J, self._row_bodies, Vdot, eta)
        new, _ = self._solve(t, rows, eta - rows.g / weight)
        out = np.empty(self.group.dim)
        multipliers.pack_rates(self._layout, rows.frames, rows.V, rows.V, new, out)
        return new, out[len(out) // 2 :]

    def _applied(self, t, rows):
        assert self.wrench is not None
        W = np.asarray(self.wrench(t, matrices(rows.frames[:-1]), rows.V[:-1].copy()), dtype=float)
        if W.shape != self._still.shape:
            raise ArgumentError(f"wrench must return shape {self._still.shape}, got {W.shape}, at t = {t:.9g}")
        return np.ascontiguousarray(W)

    def _least_norm(self, rows, lam):
        """lam without its part in the null space of J^T, which a vector per redundant row spans."""
        dropped = np.flatnonzero(rows.d == 0.0)
        if not len(dropped):
            return lam
        wide = self._sparse_jacobian(rows, rows.J)
        gram = (wide @ self._sparse_jacobian(rows, rows.JM).T).tocsc()
        null = np.zeros((self._m, len(dropped)))
        for column, k in zip(null.T, dropped):
            z = -gram[:, [k]].toarray().ravel()
            multipliers.solve(rows.L, rows.d, self._first, self._start, z)
            column[:] = z
            column[k] = 1.0
        return lam - null @ np.linalg.lstsq(null, lam, rcond=None)[0]

    def _sparse_jacobian(self, rows, values):
        m = len(values)
        at = np.broadcast_to(np.arange(m)[:, None, None], values.shape)
        columns = 6 * self._row_bodies[:, :, None] + np.arange(6)
        shape = (m, 6 * (len(self.bodies) + 1))
        wide = csr_array(coo_array((values.ravel(), (at.ravel(), columns.ravel())), shape=shape))
        return wide[:, : 6 * len(self.bodies)]

    def _dense_jacobian(self, rows):
        return self._sparse_jacobian(rows, rows.J).toarray()

    def _project_positions(self, y):
        rows = self._factorised(y)
        for _ in range(NEWTON_STEPS if self._m else 0):
            size = np.abs(rows.g).max()
            if size <= CONVERGED * self.length:
                break
            mu = rows.g.copy()
            multipliers.solve(rows.L, rows.d, self._first, self._start, mu)
            step = np.zeros(rows.V.shape)
            multipliers.add_reactions(rows.JM, self._row_bodies, -mu, step)
            step = step[:-1] / max(1.0, 2.0 * np.abs(step[:, :3]).max())  # not more than half a radian
            T, V = matrices(rows.frames[:-1]), rows.V[:-1]
            for scale in 0.5 ** np.arange(12):
                trial = self._factorised(self._pack(T @ se3.exp(scale * step), V))
                if np.abs(trial.g).max() < size:
                    break
            else:  # no step helps: rounding, or as near as the constraints come to one another
                break
            rows = trial
        if self._m and np.abs(rows.g).max() > CONSISTENT * self.length:
            raise ArgumentError(
                f"no consistent configuration near the one given: the nearest still violates {self._worst(rows.g)}"
                " [m or 1]; constraints that contradict one another, or a start too far off"
            )
        return self._pack(matrices(rows.frames[:-1]), rows.V[:-1])

    def _project_velocities(self, y):
        rows = self._factorised(y)
        for _ in range(2):  # the second sweep removes what rounding left of a large correction
            mu = np.empty(self._m)
            multipliers.row_rates(rows.J, self._row_bodies, rows.V, mu)
            multipliers.solve(rows.L, rows.d, self._first, self._start, mu)
            multipliers.add_reactions(rows.JM, self._row_bodies, -mu, rows.V)
        return self._pack(matrices(rows.frames[:-1]), rows.V[:-1])

    def _pack(self, T, V):
        """The state of poses (n, 4, 4) and body-fixed twists (n, 6)."""
        y = np.empty(self.group.shape)
        for (at, on_se3), pose in zip(self._layout, T):
            y[at : at + 12] = pose[:3].ravel()
            if on_se3:
                y[at + 12 : at + 16] = 0.0, 0.0, 0.0, 1.0
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
        require_rotation("poses", T[:, :3, :3])
        return self._pack(T, V)

    def _state(self, y):
        y = checked("y", y, self.group.shape)
        if y.shape != self.group.shape:
            raise ArgumentError(f"y: expected one state of shape {self.group.shape}, got {y.shape}")
        return y

    def _norms(self, y, key):
        y = checked("y", y, self.group.shape)
        out = np.zeros((int(np.prod(y.shape[:-1])), len(self.names)))
        for row, state in zip(out, y.reshape(-1, y.shape[-1])):
            np.add.at(row, self._owner, getattr(self._evaluate(state), key) ** 2)
        return np.sqrt(out).reshape(*y.shape[:-1], len(self.names))

    def _worst(self, values):
        k = int(np.abs(values).argmax())
        c = self.constraints[self._owner[k]]
        return f"constraint {c.name!r} ({c.kind}): residual {np.abs(values[k]):.3g}"

    def _check_branch(self, y):
        """Perpendicular axes also hold with the joint's axes opposite."""
        T = np.concatenate((self.poses(y)[:, :3, :3], np.eye(3)[None]))
        for c, constraint in enumerate(self.constraints):
            if len(LOWER_PAIRS.get(constraint.kind, ((), ()))[1]) < 2:
                continue
            mine = np.flatnonzero((self._owner == c) & (self._index[:, 0] == AXES))
            _, a, b = self._index[mine[0]]
            x, y_, z = self._data[mine[0], D_A:D_B], self._data[mine[1], D_A:D_B], self._data[mine[0], D_B:LENGTH]
            if (T[a] @ np.cross(x, y_)) @ (T[b] @ z) < 0.0:
                raise ArgumentError(
                    f"constraint {constraint.name!r} ({constraint.kind}): its axes in the two bodies are opposite"
                )


def integrate(
    system: ConstrainedSystem,
    y0: ArrayLike,
    t_span: tuple[float, float],
    h: float,
    method: Any = "MK4",
    *,
    project: bool = False,
    every: int = 1,
    **options: Any,
) -> integrators.Solution:
    """`integrators.integrate` of the system's field, its options included.

    project: bring positions and velocities back to the constraints after every step (fixed-step methods only, and no
    further options). Raises as `integrators.integrate` does, and IntegrationError when a projection fails.
    """
    if not project:
        return integrators.integrate(system.field, y0, t_span, h, method, system.group, every=every, **options)
    tableau = integrators.method(method)
    if tableau.b_hat is not None or options:
        raise ArgumentError(
            f"project: needs a fixed-step method and no further options, got {tableau.name}, {sorted(options)}"
        )
    walk = integrators.steps(system.field, y0, t_span, h, tableau, system.group)  # checks the arguments
    t, y = next(walk)
    walk.close()
    t0, t_end = map(float, t_span)
    n = max(1, int(np.ceil((t_end - t0) / h - 1e-9)))
    samples = [(t, y, 0.0)]

    def solution(success, reason):
        times, states, lengths = (np.array(column) for column in zip(*samples))
        count = len(tableau.c) * k
        return integrators.Solution(times, states, lengths, count, k, 0, success, reason, [], [])

    k = 0
    try:
        for k in range(1, n + 1):
            t_next = t_end if k == n else t0 + k * h
            y = system.project(integrators.step(tableau, system.field, t, y, t_next - t, system.group))
            if k % every == 0 or k == n:
                samples.append((t_next, y, t_next - t))
            t = t_next
    except GeomctrlError as error:
        raise IntegrationError(f"{error}, at t = {t:.9g}", solution(False, str(error))) from None
    return solution(True, f"reached t_end = {t_end:.9g}")
