"""`JointStops`: mechanical stops at joint limits, modelled as dissipative springs; also the springs of joints."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import per_coordinate
from geomctrl.described import ReadableRepr
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.configuration import single_coordinates
from geomctrl.mechanism.mechanism import require_robot
from geomctrl.other_names import named_arguments
from geomctrl.robot import Robot


class Bounds(NamedTuple):
    """Joints with a position range: velocity coordinates, indices in q, and limits (n,) each [rad, m]."""

    dofs: np.ndarray
    places: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def bounded(robot: Robot) -> Bounds:
    """The joints of a robot that have a range; one of its ends may be infinite."""
    limits = robot.limits
    places, dofs = single_coordinates(robot)
    ranged = np.isfinite(limits.lower[dofs]) | np.isfinite(limits.upper[dofs])
    places, dofs = places[ranged], dofs[ranged]
    return Bounds(dofs, places, limits.lower[dofs], limits.upper[dofs])


@named_arguments()
@dataclass(frozen=True, eq=False, repr=False)
class JointStops(ReadableRepr):
    """Stops at the position limits of the robot's joints. Beyond a limit they exert, towards the range, the torque

        k p max(1 + c p', 0)

    with the penetration p [rad, m] (Hunt and Crossley 1975 with exponent 1).

    Parameters
    ----------
    stiffness : float or (nv,)
        k > 0 [N m/rad, N/m].
    dissipation : float or (nv,)
        c >= 0 [s/rad, s/m].

    Notes
    -----
    The torque is continuous and never pulls. An impact at speed s loses approximately the fraction c s of the speed.
    The integration step should be small compared with sqrt(inertia / k).

    Examples
    --------
    >>> import geomctrl as gc
    >>> plant = gc.Plant(gc.models.scara(), stops=gc.JointStops(1e5, dissipation=1.0))
    >>> plant.stops
    JointStops(stiffness=100000, dissipation=1)
    """

    stiffness: ArrayLike
    dissipation: ArrayLike = 0.0
    _at: Any = field(init=False, repr=False, default=None)

    def __post_init__(self):
        positive = per_coordinate("stiffness", self.stiffness, "a positive number", lambda x: x > 0.0)
        object.__setattr__(self, "stiffness", positive)
        dissipation = per_coordinate("dissipation", self.dissipation, "a number, not negative", lambda x: x >= 0.0)
        object.__setattr__(self, "dissipation", dissipation)

    def _of(self, robot: Robot) -> JointStops:
        """The stops at the limits of this robot's joints. Raises ArgumentError if no joint has limits."""
        require_robot("robot", robot)
        for name in ("stiffness", "dissipation"):
            shape = np.shape(getattr(self, name))
            if shape not in ((), (robot.nv,)):
                raise ArgumentError(f"stops: {name}: expected a number or ({robot.nv},) numbers, got shape {shape}")
        bounds = bounded(robot)
        if not bounds.dofs.size:
            raise ArgumentError(f"stops: no joint of {robot.name!r} has a limit of its position")
        own, dofs = copy.copy(self), np.eye(robot.nv)[bounds.dofs]
        for name in ("stiffness", "dissipation"):
            object.__setattr__(own, name, np.broadcast_to(getattr(self, name), robot.nv)[bounds.dofs].copy())
        object.__setattr__(own, "_at", (bounds, dofs))
        return own

    def _torque(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Torques on the joints (nv,)."""
        (_, places, lower, upper), dofs = self._at
        q, v = q[places], dofs @ v
        k, c = np.asarray(self.stiffness), np.asarray(self.dissipation)
        below = k * np.maximum(lower - q, 0.0) * np.maximum(1.0 - c * v, 0.0)
        above = k * np.maximum(q - upper, 0.0) * np.maximum(1.0 + c * v, 0.0)
        return (below - above) @ dofs


def joint_springs(robot: Robot) -> tuple[np.ndarray, np.ndarray] | None:
    """(K, b) of the spring torque q K - b, (nq, nv) and (nv,); None if no joint has a spring."""
    if not robot.springs.stiffness.any():
        return None
    K = np.zeros((robot.nq, robot.nv))
    places, dofs = single_coordinates(robot)
    K[places, dofs] = robot.springs.stiffness[dofs]
    return K, robot.springs.stiffness * robot.springs.rest
