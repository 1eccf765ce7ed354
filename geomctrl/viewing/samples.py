"""Protocols of the closed-loop data that pictures need, and their meaning on a robot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from geomctrl.mechanism.configuration import joint_coordinates


class Verdict(Protocol):
    """The result of a monitor.

    Its values at the samples (n,), the worst of all steps and its time, the verdict as a word with an explanation, and
    ok: True if the property held, False if not, None if unresolved.
    """

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def limit(self) -> float: ...
    @property
    def values(self) -> np.ndarray: ...
    @property
    def worst(self) -> float: ...
    @property
    def t_worst(self) -> float: ...
    @property
    def ok(self) -> bool | None: ...
    @property
    def verdict(self) -> str: ...
    @property
    def explanation(self) -> str: ...


class Motion(Protocol):
    """Configurations q (n, nq) at the samples."""

    @property
    def q(self) -> np.ndarray: ...


class ExternalLoad(Protocol):
    """External loads at one place, in world axes: point, force and moment (n, 3) at n samples."""

    @property
    def point(self) -> np.ndarray: ...
    @property
    def force(self) -> np.ndarray: ...
    @property
    def moment(self) -> np.ndarray: ...


class Samples(Protocol):
    """Samples of a closed loop, one row each: t (n,), q (n, nq), v and the torques `applied` (n, nv), z (n, ...) or
    None, signals.

    Data that are None are left out of the pictures: `desired`, the reference motion; `plant`, with its `robot`,
    `changes` and `at(t)`; `controller`, whose `columns` and `true_parameters(plant)` define what z estimates.
    """

    @property
    def t(self) -> np.ndarray: ...
    @property
    def q(self) -> np.ndarray: ...
    @property
    def v(self) -> np.ndarray: ...
    @property
    def applied(self) -> np.ndarray: ...
    @property
    def z(self) -> np.ndarray | None: ...
    @property
    def signals(self) -> Mapping[str, np.ndarray]: ...
    @property
    def monitors(self) -> Mapping[str, Verdict]: ...
    @property
    def desired(self) -> Motion | None: ...
    @property
    def plant(self) -> Any: ...
    @property
    def controller(self) -> Any: ...
    @property
    def reason(self) -> str: ...
    @property
    def success(self) -> bool: ...
    def tracking_error(self) -> np.ndarray | None: ...
    def external_forces(self, at: Any = None) -> Sequence[ExternalLoad]: ...


def coordinates(run: Samples):
    """(names, units, q, desired, error) for each velocity coordinate.

    A free joint has the rotation vector from the first sample on and the position [m]; other joints with several
    degrees of freedom the logarithm from there on. Without a robot the entries of q are used.
    """
    want = run.desired
    if run.plant is None:
        names = [f"q[{k}]" for k in range(run.q.shape[1])]
        units = coordinate_units(run, "rad", "m") if alike(run) else [""] * len(names)
        return names, units, run.q, None if want is None else want.q, error_of(run)
    robot = run.plant.robot
    q, desired = _relative(robot, run.q[0], run.q), None if want is None else _relative(robot, run.q[0], want.q)
    return list(coordinate_names(run)), coordinate_units(run, "rad", "m"), q, desired, run.tracking_error()


def alike(run: Samples) -> bool:
    """Whether q has one entry for each of v, because no joint has several degrees of freedom."""
    return run.q.shape[1] == run.v.shape[1]


def error_of(run: Samples) -> np.ndarray | None:
    """The tracking error (n, nv), None if it can not be computed."""
    return run.tracking_error() if run.plant is not None or alike(run) else None


def _relative(robot, start, q):
    x = robot.difference(np.broadcast_to(start, q.shape), q)
    for joint, s, v in joint_coordinates(robot):
        if joint.dof == 1:
            x[:, v] = q[:, s]
        elif joint.dof == 6:
            x[:, v] = np.hstack([_without_jumps(x[:, v][:, :3]), q[:, s].reshape(-1, 3, 4)[:, :, 3]])
    return x


def _without_jumps(turned: np.ndarray) -> np.ndarray:
    """Rotation vectors (n, 3) plus whole turns, each the nearest to the previous one."""
    angle = np.linalg.norm(turned, axis=1)
    axis = turned / np.maximum(angle, 1e-12)[:, None]
    out = turned.copy()
    for k in range(1, len(out)):
        turns = np.round((axis[k] @ out[k - 1] - angle[k]) / (2.0 * np.pi))
        out[k] += 2.0 * np.pi * turns * axis[k]
    return out


def coordinate_names(run: Samples) -> tuple[str, ...]:
    return run.plant.robot.dof_names if run.plant is not None else tuple(f"joint {k}" for k in range(run.v.shape[1]))


def coordinate_units(run: Samples, turning: str, sliding: str) -> list[str]:
    if run.plant is None:
        return [f"{turning}, {sliding}"] * run.v.shape[1]
    return [turning if turns else sliding for turns in run.plant.robot.is_rotational]


def true_state(run: Samples) -> np.ndarray | None:
    """The true value of z at each sample (n, nz), for a controller that knows the plant; None if it is not defined."""
    if run.plant is None or not hasattr(run.controller, "true_parameters") or run.z is None:
        return None
    starts = [0.0, *(t for t, _ in run.plant.changes)]
    rows = [run.controller.true_parameters(run.plant.at(t)) for t in starts]
    return np.array(rows)[np.searchsorted(starts, run.t + 1e-12, side="right") - 1]


def controller_name(run: Samples) -> str:
    return type(run.controller).__name__ if run.controller is not None else "run"
