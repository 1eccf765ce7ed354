"""Loop closures on a robot in relative coordinates: a four-bar, a parallel robot.

The robot is the tree that is left when joints are cut; `Constraint`s close the loops again between its bodies, or to
the world. With the body Jacobians J_b of the tree, the constraints' rows G on body twists become J = G J_b, and the
index-1 equations (Mueller and Terze 2013 (3), in joint coordinates) are

    M vdot + C v + g - J^T lambda = tau,    J vdot = -G Jdot_b v - Gdot V - 2 alpha J v - beta^2 g_loop

Closures are few, so the algebra is dense: a singular value decomposition of L^-1 J^T, M = L L^T, with rows of unit
length, decides the rank; multipliers are those of least norm in these units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from . import multipliers
from .arrays import checked
from .configuration import configuration_group
from .constrained import CONSISTENT, CONVERGED, NEWTON_STEPS, Baumgarte
from .constraints import WORLD, Constraint, checked_names, evaluate_user, set_up_rows
from .errors import ArgumentError
from .groups import Product, Rn
from .multipliers import D_A, R_B
from .robot import Robot

__all__ = ["ClosedLoops"]

REDUNDANT = 1e-7  # singular values of unit rows, relative to the largest, below which a combination is redundant


class _Loops(NamedTuple):
    J: np.ndarray  # (m, nv)
    rows: np.ndarray  # (m, w, 6): on body twists
    g: np.ndarray
    gdot: np.ndarray
    bias: np.ndarray  # Jdot v


class ClosedLoops:
    """A robot with loops closed by constraints between its bodies (by name) or to the world.

    torque(t, q, v) -> (nv,) [N m, N], or None. stabilisation: None or `Baumgarte`. reference (nq,): the configuration
    in which a constraint's point_b and axis_b, where not given, are found; None is neutral. States y = (q, v) are
    elements of `group`; integrate `field` with `integrators.integrate`.
    Raises as `ConstrainedSystem` does.
    """

    def __init__(
        self,
        robot: Robot,
        constraints: Iterable[Constraint],
        *,
        torque: Callable | None = None,
        stabilisation: Baumgarte | None = None,
        reference: ArrayLike | None = None,
    ):
        self.robot, self.constraints = robot, tuple(constraints)
        self.names = checked_names("constraint", self.constraints, Constraint)
        if stabilisation is not None and not isinstance(stabilisation, Baumgarte):
            raise ArgumentError(f"stabilisation: expected None or Baumgarte, got {stabilisation!r:.80}")
        self.torque, self.stabilisation = torque, stabilisation
        self.group = Product(configuration_group(robot), Rn(robot.nv))
        used = {name for c in self.constraints for name in c.bodies if name != WORLD}
        self._bodies = tuple(name for name in robot.body_names if name in used)
        q = robot.neutral() if reference is None else _one("reference", reference, robot.nq)
        poses = np.array([robot.pose(q, name) for name in self._bodies]).reshape(-1, 4, 4)
        self._table = set_up_rows(self._bodies, poses, self.constraints)

    def __repr__(self):
        return f"ClosedLoops({self.robot!r}, {len(self.names)} constraints, {len(self._table.index)} rows)"

    def state(self, q: ArrayLike, v: ArrayLike | None = None) -> np.ndarray:
        """(q, v) as one element. Raises ArgumentError, naming the constraint, unless both satisfy the constraints."""
        q, v = self._checked(q, v)
        loops = self._evaluate(q, v)
        for values, what, scale in ((loops.g, "positions", 1.0), (loops.gdot, "velocities", max(1.0, np.abs(v).max()))):
            if values.size and np.abs(values).max() > CONSISTENT * scale:
                raise ArgumentError(f"{what} violate {self._worst(values)}; `consistent` projects them")
        return np.concatenate((q, v))

    def consistent(self, q: ArrayLike, v: ArrayLike | None = None) -> np.ndarray:
        """The nearest state on the constraints, in the metric M. Raises ArgumentError where there is none."""
        q, v = self._checked(q, v)
        for _ in range(NEWTON_STEPS):
            loops = self._evaluate(q, v)
            size = np.abs(loops.g).max(initial=0.0)
            if size <= CONVERGED:
                break
            step = -self._least(q, loops.J, loops.g)[0]
            step /= max(1.0, 2.0 * np.abs(step).max())
            for scale in 0.5 ** np.arange(12):
                trial = self.robot.integrate(q, scale * step)
                if np.abs(self._evaluate(trial, v).g).max() < size:
                    break
            else:
                break
            q = trial
        loops = self._evaluate(q, v)
        if np.abs(loops.g).max(initial=0.0) > CONSISTENT:
            raise ArgumentError(
                f"no consistent configuration near the one given: the nearest still violates {self._worst(loops.g)}"
            )
        return np.concatenate((q, v - self._least(q, loops.J, loops.gdot)[0]))

    def field(self, t: float, y: np.ndarray) -> np.ndarray:
        """(v, vdot) at a state y: what `integrators` integrate."""
        q, v = y[: self.robot.nq], y[self.robot.nq :]
        return np.concatenate((v, self._accelerate(t, q, v)[0]))

    def accelerations(self, t: float, y: ArrayLike) -> np.ndarray:
        """vdot (nv,)."""
        return self._accelerate(t, *self._split(y))[0]

    def reactions(self, t: float, y: ArrayLike) -> dict[str, np.ndarray]:
        """The wrench (6,) each closure exerts on its body b, about its point there and in b's axes [N m, N].

        A holonomic constraint gives (k, 6), about its bodies' origins.
        """
        q, v = self._split(y)
        _, lam, loops = self._accelerate(t, q, v)
        out: dict[str, np.ndarray] = {}
        for c, name in enumerate(self.names):
            mine = np.flatnonzero(self._table.owner == c)
            sums = np.einsum("rwi,r->wi", loops.rows[mine], lam[mine])
            if self.constraints[c].kind == "holonomic":
                out[name] = sums[: len(self.constraints[c].bodies)]
            else:
                m, f = sums[1, :3], sums[1, 3:]
                out[name] = np.concatenate((m - np.cross(self._table.data[mine[0], R_B:D_A], f), f))
        return out

    def violation(self, y: ArrayLike) -> np.ndarray:
        """|g| (..., number of constraints) of states (..., nq + nv) [m, or of unit vectors]."""
        y = checked("y", y, self.group.shape)
        out = np.zeros((int(np.prod(y.shape[:-1])), len(self.names)))
        for row, state in zip(out, y.reshape(-1, y.shape[-1])):
            np.add.at(row, self._table.owner, self._evaluate(*self._split(state)).g ** 2)
        return np.sqrt(out).reshape(*y.shape[:-1], len(self.names))

    def rank(self, y: ArrayLike) -> int:
        """The number of independent rows."""
        q, v = self._split(y)
        return self._least(q, self._evaluate(q, v).J, np.zeros(len(self._table.index)))[2]

    def energy(self, y: ArrayLike) -> np.ndarray:
        """(...,) [J]."""
        y = checked("y", y, self.group.shape)
        return self.robot.energy(y[..., : self.robot.nq], y[..., self.robot.nq :])

    # --- inside --------------------------------------------------------------------------------------------------

    def _evaluate(self, q, v) -> _Loops:
        n, m, nv = len(self._bodies), len(self._table.index), self.robot.nv
        frames, V, J_b, drift = (
            np.zeros((n + 1, 12)),
            np.zeros((n + 1, 6)),
            np.zeros((n + 1, 6, nv)),
            np.zeros((n + 1, 6)),
        )
        frames[n, [0, 5, 10]] = 1.0
        for i, name in enumerate(self._bodies):
            frames[i] = self.robot.pose(q, name)[:3].ravel()
            J_b[i] = self.robot.jacobian(q, name)
            drift[i] = self.robot.jacobian_rate(q, v, name) @ v
            V[i] = J_b[i] @ v
        rows = np.zeros((m, self._table.bodies.shape[1], 6))
        g, gdot, bias = np.empty((3, m))
        multipliers.evaluate_rows(frames, V, self._table.index, self._table.data, rows, g, gdot, bias)
        for c, at, numbers in self._table.users:
            evaluate_user(self.constraints[c], at, numbers, frames, V, rows, g, gdot, bias)
        J = np.einsum("rwi,rwij->rj", rows, J_b[self._table.bodies])
        bias = bias + np.einsum("rwi,rwi->r", rows, drift[self._table.bodies])
        return _Loops(J, rows, g, gdot, bias)

    def _least(self, q, J, right):
        """(x, lambda, rank): x = M^-1 J^T lambda of least kinetic energy with J x = right."""
        L = np.linalg.cholesky(self.robot.mass_matrix(q))
        A = solve_triangular(L, J.T, lower=True)  # (nv, m)
        length = np.linalg.norm(A, axis=0)
        length[length == 0.0] = 1.0
        U, s, Wt = np.linalg.svd(A / length, full_matrices=False)
        rank = int((s > REDUNDANT * s.max(initial=0.0)).sum())
        U, s, Wt = U[:, :rank], s[:rank], Wt[:rank]
        z = (Wt @ (right / length)) / s
        return solve_triangular(L.T, U @ z, lower=False), (Wt.T @ (z / s)) / length, rank

    def _accelerate(self, t, q, v):
        nv = self.robot.nv
        tau = np.zeros(nv) if self.torque is None else checked("torque(t, q, v)", self.torque(t, q, v), (nv,))
        free = self.robot.forward_dynamics(q, v, tau)
        loops = self._evaluate(q, v)
        eta = -loops.bias
        if self.stabilisation is not None:
            eta -= 2.0 * self.stabilisation.damping * loops.gdot + self.stabilisation.stiffness**2 * loops.g
        change, lam, _ = self._least(q, loops.J, eta - loops.J @ free)
        return free + change, lam, loops

    def _checked(self, q, v):
        nq, nv = self.robot.nq, self.robot.nv
        return _one("q", q, nq), np.zeros(nv) if v is None else _one("v", v, nv)

    def _split(self, y) -> Any:
        y = _one("y", y, self.group.shape[0])
        return y[: self.robot.nq], y[self.robot.nq :]

    def _worst(self, values):
        k = int(np.abs(values).argmax())
        c = self.constraints[self._table.owner[k]]
        return f"constraint {c.name!r} ({c.kind}): residual {np.abs(values[k]):.3g}"


def _one(name, value, n):
    a = checked(name, value, (n,))
    if a.shape != (n,):
        raise ArgumentError(f"{name}: expected shape ({n},), got {a.shape}")
    return a
