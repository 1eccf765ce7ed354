"""Inverse kinematics: damped Gauss-Newton on the configuration group, within the joint limits, from many start points.

With e the errors of all targets and E their derivative along q exp(dv), a step minimises |e + E dv|^2 + mu |e|^2 |dv|^2
(Levenberg-Marquardt with the damping of Sugihara 2011) over the coordinates that are not held by a limit. mu decreases
after a step that reduces the error, and increases otherwise. If a start point stops improving, a random one replaces
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, count, number, require_rotation, shown
from geomctrl.errors import ArgumentError
from geomctrl.kernels import se3 as se3_kernels
from geomctrl.kernels import so3 as so3_kernels
from geomctrl.lie import se3, so3
from geomctrl.mechanism.configuration import integrate, neutral, random_configuration, single_coordinates
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.mechanism.states import one_configuration
from geomctrl.tracing.numbers import on_symbols
from geomctrl.tracing.untraceable import UntraceableError, caller

from .kinematics import jacobian, pose

MAX_ERROR_FRACTION = 0.99  # a start point is abandoned if more of the error remains after STEPS_PER_CHECK steps
STEPS_PER_CHECK = 8
MU, MIN_MU, MAX_MU = 1e-2, 1e-8, 1e8
LEAST_SHARE = 1e-12  # of E^T E, which is singular for redundant robots


class InverseKinematics(NamedTuple):
    """The result of `inverse_kinematics`: the best of all start points.

    Attributes
    ----------
    q : ndarray, shape (nq,)
        The configuration.
    success : bool
        Whether all errors are within the tolerance.
    residual : float
        The largest error of a target: |rotation vector| [rad] or distance [m].
    iterations : int
        Number of steps, over all start points.
    starts : int
        Number of start points that were tried.
    reason : str
        Why the search ended.
    """

    q: np.ndarray
    success: bool
    residual: float
    iterations: int
    starts: int
    reason: str


class _Target(NamedTuple):
    frame: str
    kind: str  # "pose", "position" or "rotation"
    value: np.ndarray


def inverse_kinematics(
    robot: Mechanism,
    targets: Mapping[str, ArrayLike],
    q0: ArrayLike | None = None,
    *,
    tolerance: float = 1e-9,
    iterations: int = 100,
    starts: int = 50,
    seed: int = 0,
) -> InverseKinematics:
    """Find a configuration that brings frames to targets, within the limits of joints with one degree of freedom.

    Parameters
    ----------
    targets : mapping of str to array_like
        For each frame a pose T_world_frame (4, 4), a position (3,) [m], which leaves the rotation free, or a rotation
        (3, 3), which leaves the position free.
    q0 : array_like, shape (nq,), optional
        First start point. Default: the middle of the joint ranges.
    tolerance : float
        Largest error of a rotation vector [rad] and of a distance [m]. Default 1e-9.
    iterations : int
        Maximum number of steps from one start point. Default 100.
    starts : int
        Maximum number of start points; all but the first are random. Default 50.
    seed : int
        Seed of the random start points. Default 0.

    Returns
    -------
    InverseKinematics
        Check `success`: after a failure a solution may still exist.

    Raises
    ------
    NameNotFoundError
        If there is no such frame.
    ArgumentError
        If another argument is invalid.
    UntraceableError
        If a control law that is being compiled calls it.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.panda()
    >>> target = robot.pose([0.1, -0.5, 0.2, -2.0, 0.3, 1.8, 0.4], "panda_hand_tcp")
    >>> solution = robot.inverse_kinematics({"panda_hand_tcp": target})
    >>> solution.success, np.allclose(robot.pose(solution.q, "panda_hand_tcp"), target)
    (True, True)
    """
    if on_symbols():
        raise UntraceableError(
            f"inverse_kinematics can not be compiled{caller()}, because the number of its iterations depends on the"
            " state: solve before the run, or let the law follow the frame's error"
        )
    require_robot("robot", robot)
    tolerance = number("tolerance", tolerance, "a positive number", lambda x: x > 0.0)
    iterations, starts, seed = count("iterations", iterations, 1), count("starts", starts, 1), count("seed", seed)
    wanted, limits = _targets(robot, targets), _Limits(robot)
    q = limits.middle() if q0 is None else limits.clipped(one_configuration(robot, "q0", q0))
    rng, best, steps, start = np.random.default_rng(seed), None, 0, 0
    for start in range(1, starts + 1):
        q, residual, taken = _descent(robot, wanted, limits, q, tolerance, iterations)
        steps += taken
        if best is None or residual < best[1]:
            best = q, residual
        if residual <= tolerance:
            return InverseKinematics(q, True, residual, steps, start, "converged")
        q = random_configuration(robot, rng)
    assert best is not None
    reason = f"no start of {start} converged to {tolerance:g}; the smallest error is {best[1]:.3g}"
    return InverseKinematics(best[0], False, best[1], steps, start, reason)


def _targets(robot: Mechanism, targets: Any) -> list[_Target]:
    if not isinstance(targets, Mapping) or not targets:
        raise ArgumentError(f"targets: expected {{frame: pose, position or rotation}}, got {shown(targets)}")
    checked_targets = []
    for frame, value in targets.items():
        if robot.frame(frame).body < 0:
            raise ArgumentError(f"targets: {frame!r} is fixed to the world, so no joint moves it")
        name = f"targets: of {frame!r}"
        try:
            shape = np.shape(value)
        except Exception:  # rows of different lengths, or an object whose own conversion fails
            raise ArgumentError(f"{name}: expected numbers, got {shown(value)}") from None
        kinds = {(4, 4): "pose", (3,): "position", (3, 3): "rotation"}
        if shape not in kinds:
            raise ArgumentError(f"{name}: expected a pose (4, 4), position (3,) or rotation (3, 3), got shape {shape}")
        a = checked(name, value, shape)
        if kinds[shape] == "pose":
            a = se3.checked_transform(name, a)
        elif kinds[shape] == "rotation":
            require_rotation(name, a)
        checked_targets.append(_Target(frame, kinds[shape], a))
    return checked_targets


class _Limits:
    """Limits of joints with one degree of freedom: their indices in q and in v, (n,) each, and their values."""

    def __init__(self, robot: Mechanism):
        self.robot = robot
        self.q, self.v = single_coordinates(robot)
        self.lower, self.upper = robot.limits.lower[self.v], robot.limits.upper[self.v]

    def clipped(self, q: np.ndarray) -> np.ndarray:
        q[self.q] = np.clip(q[self.q], self.lower, self.upper)
        return q

    def middle(self) -> np.ndarray:
        q = neutral(self.robot)
        both = np.isfinite(self.lower) & np.isfinite(self.upper)
        q[self.q[both]] = 0.5 * (self.lower[both] + self.upper[both])
        return self.clipped(q)

    def free(self, q: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return a mask (nv,) of the coordinates that are not at a limit that a descent step would cross."""
        free, slope = np.ones(self.robot.nv, dtype=bool), gradient[self.v]
        position = q[self.q]
        free[self.v] = ~(((position <= self.lower) & (slope > 0.0)) | ((position >= self.upper) & (slope < 0.0)))
        return free


def _descent(
    robot: Mechanism, targets: list[_Target], limits: _Limits, q: np.ndarray, tolerance: float, max_steps: int
) -> tuple[np.ndarray, float, int]:
    """Return (q, residual, steps): iterate from q until the errors are within the tolerance or stop decreasing."""
    e, residual = _errors(robot, targets, q)
    cost, mu, history = float(e @ e), MU, [np.inf] * STEPS_PER_CHECK
    for step in range(max_steps):
        if residual <= tolerance or cost > MAX_ERROR_FRACTION**2 * history[step] or mu > MAX_MU:
            return q, residual, step
        history.append(cost)
        E = _derivative(robot, targets, q)
        gradient = E.T @ e
        free = limits.free(q, gradient)
        E, dv = E[:, free], np.zeros(robot.nv)
        H = E.T @ E
        H += (mu * cost + LEAST_SHARE * np.trace(H)) * np.eye(len(H))
        dv[free] = np.linalg.solve(H, -gradient[free])
        moved = limits.clipped(integrate(robot, q, dv))
        e_moved, residual_moved = _errors(robot, targets, moved)
        lower = float(e_moved @ e_moved)
        if lower < cost:
            q, e, residual, cost, mu = moved, e_moved, residual_moved, lower, max(MIN_MU, 0.1 * mu)
        else:
            mu *= 10.0
    return q, residual, max_steps


def _errors(robot: Mechanism, targets: list[_Target], q: np.ndarray) -> tuple[np.ndarray, float]:
    """Return all errors in one column, and the largest error of a target."""
    errors, largest = [], 0.0
    for frame, kind, value in targets:
        T = pose(robot, q, frame)
        if kind == "pose":
            e = _log(se3_kernels, se3.inverse_of(value) @ T)
            off = [e[:3], T[:3, 3] - value[:3, 3]]
        else:
            e = T[:3, 3] - value if kind == "position" else _log(so3_kernels, value.T @ T[:3, :3])
            off = [e]
        largest = max(largest, *(float(np.sqrt(x @ x)) for x in off))
        errors.append(e)
    return np.concatenate(errors), largest


def _log(group: Any, a: np.ndarray) -> np.ndarray:
    """Return `se3.log` or `so3.log` without checks, which take ten times as long."""
    return group.log_many(a[None])[0]


def _derivative(robot: Mechanism, targets: list[_Target], q: np.ndarray) -> np.ndarray:
    """Return the derivative of all errors along q exp(dv) at dv = 0."""
    rows = []
    for frame, kind, value in targets:
        if kind == "position":
            rows.append(jacobian(robot, q, frame, "hybrid")[3:])
            continue
        T, J = pose(robot, q, frame), jacobian(robot, q, frame)
        if kind == "pose":
            rows.append(se3.dexp_inv(-_log(se3_kernels, se3.inverse_of(value) @ T)) @ J)
        else:
            rows.append(so3.dexp_inv(-_log(so3_kernels, value.T @ T[:3, :3])) @ J[:3])
    return np.concatenate(rows)
