"""The index-1 equations of constrained motion in any coordinates: stabilisation, projection, reactions.

    M Vdot - J^T lambda = Q,    J Vdot = eta = -Jdot V - 2 alpha J V - beta^2 g                                     (3)

of Mueller and Terze 2013, with the sign for which J^T lambda are the forces of the constraints. In `ConstrainedSystem`
V are the twists of the bodies, in `ClosedLoops` the joint velocities of a robot. Both have constraints between bodies
and share the equations, stabilisation and projection of this module.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import FLOAT64, checked, choice, is_a, number, shown, without_overflow_warnings
from geomctrl.errors import ArgumentError, IntegrationError
from geomctrl.integrators.march import OFF_GROUP
from geomctrl.kernels.maximal import AXES, D_A, D_B, LENGTH, R_B

from .joints import LOWER_PAIRS, Constraint, checked_names
from .rows import set_up_rows

CONSISTENT = 1e-8  # residual [m, or of unit vectors; m/s, 1/s] that a state may have
CONVERGED = 1e-13  # residual at which a projection stops improving positions, times the system's size
NEWTON_STEPS = 50


REDUNDANT = 1e-7  # singular values, relative to the largest, below which a combination of rows is redundant
DOUBTFUL = 1e-2  # and the largest one for which accelerations at an open loop take the rank of the closed loop


class Singular(NamedTuple):
    """The singular value decomposition U s W of M^-1/2 J^T, whose columns are divided by `scale`; s > 0 are kept."""

    U: np.ndarray
    s: np.ndarray
    Wt: np.ndarray  # (m, m)
    scale: np.ndarray  # (m,)

    @classmethod
    def of(cls, A: np.ndarray, scale: np.ndarray) -> Singular:
        scale = np.where(scale > 0.0, scale, 1.0)
        U, s, Wt = np.linalg.svd(A / scale)
        s = s[s > REDUNDANT * s.max(initial=0.0)]
        return cls(U[:, : len(s)], s, Wt, scale)

    def least(self, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(M^1/2 x, multipliers) of least norm with J x = right, as far as the kept rows allow."""
        W = self.Wt[: len(self.s)]
        z = (W @ (right / self.scale)) / self.s
        return self.U @ z, (W.T @ (z / self.s)) / self.scale

    def null(self) -> np.ndarray | None:
        null = self.Wt[len(self.s) :].T / self.scale[:, None]
        return null if null.size else None

    def is_doubtful(self, violation: float) -> bool:
        """Whether a violation of the constraints may be all that makes the last rows independent.

        In an overconstrained mechanism rows depend on one another only where the loop closes. At the stages of an
        integrator they are independent by at most the violation, and a multiplier of that would be arbitrary. Other
        small singular values, as of light bodies, remain where the loop closes.
        """
        return len(self.s) > 0 and bool(self.s[-1] <= min(violation, DOUBTFUL) * self.s[0])

    def truncated(self, rank: int) -> Singular:
        return self._replace(U=self.U[:, :rank], s=self.s[:rank])


class Index1System(ABC):
    """Base class of systems with constraints, `ConstrainedSystem` and `ClosedLoops`.

    A subclass sets `group`, of the states, and `velocities`, the shape of its public velocities, and implements the
    abstract methods in its coordinates V. Their argument `rows` has the bodies' frames (n + 1, 12) and twists V (n + 1,
    6), the world's last; J (m, w, 6) on these twists, g, gdot = J V and bias = Jdot V, (m,) each, in the order of
    `_table`; and v, the velocities in the system's own coordinates.
    """

    group: Any
    velocities: tuple[int, ...]

    def __init__(
        self,
        bodies: Sequence[str],
        poses: np.ndarray,
        constraints: tuple[Constraint, ...],
        stabilisation: Baumgarte | GGL | None,
    ):
        self.constraints = constraints
        self.names = checked_names("constraint", self.constraints, Constraint)
        if stabilisation is not None and not is_a(stabilisation, (Baumgarte, GGL)):
            raise ArgumentError(f"stabilisation: expected None, Baumgarte or GGL, got {shown(stabilisation)}")
        self.stabilisation = stabilisation
        self._table = set_up_rows(bodies, poses, self.constraints)
        self._owner = self._table.owner
        self.length = max([1.0, *np.abs(poses[:, :3, 3]).ravel(), *np.abs(self._table.data).ravel()])

    # --- methods of a subclass -----------------------------------------------------------------------------------

    @abstractmethod
    def state(self, *args: Any) -> np.ndarray:
        """The state of positions and velocities.

        Raises ArgumentError, with the constraint's name and the residual, unless both satisfy the constraints to 1e-8.
        """

    @abstractmethod
    def consistent(self, *args: Any, free: ArrayLike | None = None) -> np.ndarray:
        """The state nearest to positions and velocities that satisfies the constraints, in the metric of the kinetic
        energy; `free` marks the velocities that may change, default all.

        Raises ArgumentError, with the constraint's name and the residual, where there is none.
        """

    @abstractmethod
    def accelerations(self, t: float, y: ArrayLike) -> np.ndarray:
        """The rates of the public velocities."""

    @abstractmethod
    def rank(self, y: ArrayLike) -> int:
        """The number of independent constraint rows."""

    @abstractmethod
    def energy(self, y: ArrayLike) -> np.ndarray:
        """Kinetic and gravity's potential energy (...,) [J] of states (..., size)."""

    @abstractmethod
    def _evaluate(self, y) -> Any:
        """The rows at a state."""

    @abstractmethod
    def _factorised(self, y) -> Any:
        """The rows with the factors that the methods below need."""

    @abstractmethod
    def _least(self, rows, right) -> tuple[np.ndarray, np.ndarray]:
        """(x, multipliers): x = M^-1 J^T multipliers with J x = right in the independent rows."""

    @abstractmethod
    def _null(self, rows) -> np.ndarray | None:
        """Columns (m, k) that span the null space of J^T; None where it is zero."""

    @abstractmethod
    def _row_rates(self, rows, x) -> np.ndarray:
        """J x (m,)."""

    @abstractmethod
    def _free(self, t, rows) -> np.ndarray:
        """Vdot without constraints."""

    @abstractmethod
    def _rates(self, rows, moved, Vdot) -> np.ndarray:
        """The field on `group` with poses moving along `moved`."""

    @abstractmethod
    def _moved(self, rows, x, dv) -> np.ndarray:
        """The state with poses moved along x and velocities changed by dv; either may be None."""

    @abstractmethod
    def _turn(self, x) -> float:
        """The largest angle [rad], or joint coordinate, by which x moves anything."""

    @abstractmethod
    def _dense(self, rows) -> tuple[np.ndarray, np.ndarray]:
        """M and J as matrices for the public velocities."""

    # --- the equations -------------------------------------------------------------------------------------------

    def field(self, t: float, y: np.ndarray) -> np.ndarray:
        """Return the derivative of the state in the Lie algebra, as `integrators.integrate` needs it.

        Parameters
        ----------
        t : float
            Time [s].
        y : ndarray, shape (size,)
            State.

        Returns
        -------
        ndarray, shape (group.dim,)

        Raises
        ------
        IntegrationError
            If a function of the user fails; the message has the time.
        """
        t = number("t", t)
        try:
            rows = self._factorised(self._shaped(y))
            Vdot, _ = self._accelerate(t, rows)
        except ArgumentError as error:
            raise IntegrationError(f"{error}, at t = {t:.9g}") from error
        moved = rows.v
        if isinstance(self.stabilisation, GGL):
            moved = moved - self._least(rows, rows.gdot + self.stabilisation.rate * rows.g)[0]
        return self._rates(rows, moved, Vdot)

    def _accelerate(self, t, rows):
        """(Vdot, multipliers (m,)) of (3)."""
        eta = -rows.bias
        if isinstance(self.stabilisation, Baumgarte):
            eta -= 2.0 * self.stabilisation.damping * rows.gdot + self.stabilisation.stiffness**2 * rows.g
        elif isinstance(self.stabilisation, GGL):
            eta -= self.stabilisation.rate * rows.gdot
        return self._solve(t, rows, eta)

    def _solve(self, t, rows, eta):
        """(Vdot, multipliers) of M Vdot - J^T lambda = Q, J Vdot = eta."""
        free = self._free(t, rows)
        right = eta - self._row_rates(rows, free)
        if not np.isfinite(right).all():
            raise ArgumentError("y: expected a state with finite accelerations, got one whose constraints overflow")
        change, multipliers = self._least(rows, right)
        return free + change, multipliers

    def reactions(self, t: float, y: ArrayLike) -> dict[str, np.ndarray]:
        """Return the wrench that each constraint exerts on its body b; body a receives the opposite wrench.

        With redundant constraints the wrenches are not unique: the multipliers of least norm are used.

        Parameters
        ----------
        t : float
            Time [s].
        y : array_like, shape (size,)
            State.

        Returns
        -------
        dict of str to ndarray
            By name of the constraint: the wrench (6,) about the constraint's point, in the axes of b [N m, N]. For a
            holonomic constraint of k bodies: wrenches (k, 6) about the origins of the bodies, in their axes.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
            t, rows = number("t", t), self._factorised(self._state(y))
            multipliers = self._accelerate(t, rows)[1]
        wrenches = rows.J * self._least_norm(rows, multipliers)[:, None, None]
        out = {}
        for c, name in enumerate(self.names):
            mine = np.flatnonzero(self._owner == c)
            sums = wrenches[mine].sum(axis=0)
            if self.constraints[c].kind == "holonomic":
                out[name] = sums[: len(self.constraints[c].bodies)]
            else:
                m, f = sums[1, :3], sums[1, 3:]
                out[name] = np.concatenate((m - np.cross(self._table.data[mine[0], R_B:D_A], f), f))
        return out

    def _least_norm(self, rows, multipliers):
        """The multipliers without their part in the null space of J^T."""
        null = self._null(rows)
        if null is None:
            return multipliers
        return multipliers - null @ np.linalg.lstsq(null, multipliers, rcond=None)[0]

    # --- violation -----------------------------------------------------------------------------------------------

    @without_overflow_warnings
    def violation(self, y: ArrayLike, of: Literal["position", "velocity"] = "position") -> np.ndarray:
        """Return the norm of each constraint's residual g, or of its rate J V.

        Parameters
        ----------
        y : array_like, shape (..., size)
            States.
        of : {"position", "velocity"}
            Residual g [m, or 1 for unit vectors] or rate J V [m/s, or 1/s]. Default: "position".

        Returns
        -------
        ndarray, shape (..., number of constraints)
            Norms in the order of `names`.
        """
        choice("of", of, ("position", "velocity"))
        y, key = checked("y", y, self.group.shape), "g" if of == "position" else "gdot"
        out = np.zeros((int(np.prod(y.shape[:-1])), len(self.names)))
        for row, state in zip(out, y.reshape(-1, y.shape[-1])):
            np.add.at(row, self._owner, getattr(self._evaluate(state), key) ** 2)
        return np.sqrt(out).reshape(*y.shape[:-1], len(self.names))

    def _relative_violation(self, rows) -> float:
        return float(np.abs(rows.g).max(initial=0.0)) / self.length

    def _worst(self, values):
        k = int(np.abs(values).argmax())
        c = self.constraints[self._owner[k]]
        return f"constraint {c.name!r} ({c.kind}): residual {np.abs(values[k]):.3g}"

    def _state(self, y):
        y = checked("y", y, self.group.shape)
        if y.shape != self.group.shape:
            raise ArgumentError(f"y: expected one state of shape {self.group.shape}, got {y.shape}")
        if (off := self.group.residual(y)) > OFF_GROUP:
            raise ArgumentError(f"y: expected rotations, got |R^T R - 1| = {off:.3g}")
        return y

    @without_overflow_warnings
    def _shaped(self, y):
        """y in the form for kernels; its rotations are not checked."""
        fits = type(y) is np.ndarray and y.shape == self.group.shape and y.dtype is FLOAT64
        return y if fits and math.isfinite(y.dot(y)) else self._state(y)

    def _accepted(self, y):
        """Return y if it satisfies the constraints. Raises ArgumentError, with the constraint's name and residual."""
        rows = self._evaluate(y)
        speed = max(1.0, np.abs(rows.V).max())
        for values, quantity, unit, size in (
            (rows.g, "positions", "m", self.length),
            (rows.gdot, "velocities", "m/s", speed),
        ):
            if np.abs(values).max(initial=0.0) > CONSISTENT * size:
                raise ArgumentError(
                    f"{quantity} violate {self._worst(values)} [{unit} or 1]; `consistent` projects them"
                )
        self._check_branch(rows)
        return y

    def _check_branch(self, rows):
        """Check the direction of axes: perpendicular ones also allow the opposite direction of the joint's axes."""
        R = rows.frames.reshape(-1, 3, 4)[:, :, :3]
        for c, constraint in enumerate(self.constraints):
            if len(LOWER_PAIRS.get(constraint.kind, ((), ()))[1]) < 2:
                continue
            mine = np.flatnonzero((self._owner == c) & (self._table.index[:, 0] == AXES))
            _, a, b = self._table.index[mine[0]]
            x, y, z = (
                self._table.data[mine[0], D_A:D_B],
                self._table.data[mine[1], D_A:D_B],
                self._table.data[mine[0], D_B:LENGTH],
            )
            if (R[a] @ np.cross(x, y)) @ (R[b] @ z) < 0.0:
                raise ArgumentError(
                    f"constraint {constraint.name!r} ({constraint.kind}): its axes in the two bodies are opposite"
                )

    # --- projection ----------------------------------------------------------------------------------------------

    def project(self, y: ArrayLike) -> np.ndarray:
        """Project the positions, then the velocities of a state onto the constraints, along M^-1 J^T.

        Parameters
        ----------
        y : array_like, shape (size,)
            State.

        Returns
        -------
        ndarray, shape (size,)

        Raises
        ------
        ArgumentError
            If an argument is invalid, or if no such state is near; the message has the constraint's name and the
            residual.
        """
        return self._projected(self._state(y))

    def _projected(self, y: np.ndarray) -> np.ndarray:
        """`project` without checks."""
        return self._project_velocities(self._project_positions(y))

    def _consistent(self, y, free):
        """The nearest state on the constraints; free: the velocity components that may change, or None for all."""
        rows = self._project_positions(y)
        self._check_branch(rows)
        return self._project_velocities(rows) if free is None else self._change_velocities(rows, free)

    def _project_positions(self, y):
        """The rows, factorised, at the nearest poses on the constraints."""
        rows = self._factorised(y)
        for _ in range(NEWTON_STEPS):
            size = np.abs(rows.g).max(initial=0.0)
            if size <= CONVERGED * self.length:
                break
            step = -self._least(rows, rows.g)[0]
            step /= max(1.0, 2.0 * self._turn(step))  # not more than half a radian
            for scale in 0.5 ** np.arange(12):
                trial = self._factorised(self._moved(rows, scale * step, None))
                if np.abs(trial.g).max() < size:
                    break
            else:  # no step helps: at rounding, or at the minimum of contradicting constraints
                break
            rows = trial
        if np.abs(rows.g).max(initial=0.0) > CONSISTENT * self.length:
            raise ArgumentError(
                f"no consistent configuration near the one given: the nearest still violates {self._worst(rows.g)}"
                " [m or 1]; constraints that contradict one another, or a start too far off"
            )
        return rows

    def _project_velocities(self, rows):
        """The state at these rows with its velocities projected."""
        change = -self._least(rows, rows.gdot)[0]
        # once more, against the rounding of a large change
        change -= self._least(rows, rows.gdot + self._row_rates(rows, change))[0]
        return self._moved(rows, None, change)

    @without_overflow_warnings
    def _change_velocities(self, rows, free):
        """The same, but only velocities in the mask `free` change."""
        try:
            mask: Any = np.asarray(free)
        except Exception:  # of the object itself, or of lists of different lengths
            mask = np.zeros(0)
        if mask.dtype != bool or mask.shape != self.velocities or np.ma.is_masked(free):
            raise ArgumentError(f"free: expected booleans of shape {self.velocities}, got {shown(free)}")
        mask, (M, J) = mask.ravel(), self._dense(rows)
        root = np.linalg.cholesky(np.linalg.inv(M[np.ix_(mask, mask)]))
        change = np.zeros(mask.size)
        change[mask] = root @ np.linalg.lstsq(J[:, mask] @ root, -rows.gdot, rcond=1e-12)[0]
        y, left = self._moved(rows, None, change), rows.gdot + J @ change
        speed = max(1.0, np.abs(self._evaluate(y).V).max())
        if np.abs(left).max(initial=0.0) > CONSISTENT * speed:
            raise ArgumentError(f"velocities: the components held fixed contradict {self._worst(left)} [m/s or 1/s]")
        return y


@dataclass(frozen=True)
class Baumgarte:
    """Stabilisation by Baumgarte: gddot + 2 damping gdot + stiffness^2 g = 0 replaces gddot = 0.

    Parameters
    ----------
    damping, stiffness : float
        Rates [1/s], not negative. Equal values give critical damping.

    Examples
    --------
    >>> from geomctrl.papers.constrained import Baumgarte
    >>> Baumgarte(damping=20.0, stiffness=20.0).damping
    20.0
    """

    damping: float
    stiffness: float

    def __post_init__(self):
        _check_rates(self, "damping", "stiffness")


@dataclass(frozen=True)
class GGL:
    """Stabilisation of Gear, Gupta and Leimkuhler 1985: a second multiplier in the kinematic equation.

    q^-1 qdot = V - M^-1 J^T mu with J (q^-1 qdot) = -rate g, and J Vdot = -Jdot V - rate J V.

    Parameters
    ----------
    rate : float
        Rate [1/s] at which violations of positions and velocities decay. With the default 0 the equations keep g = 0
        but do not reduce a violation.

    Examples
    --------
    >>> from geomctrl.papers.constrained import GGL
    >>> GGL(rate=10.0).rate
    10.0
    """

    rate: float = 0.0

    def __post_init__(self):
        _check_rates(self, "rate")


def _check_rates(stabilisation, *keys):
    for key in keys:
        label = f"{type(stabilisation).__name__}: {key}"
        rate = number(label, getattr(stabilisation, key), "a number >= 0 [1/s]", lambda x: x >= 0.0)
        object.__setattr__(stabilisation, key, rate)
