"""Fewer, more or other inputs than joints: tau = B u."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, frozen, listed
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.mechanism.mechanism import require_robot
from geomctrl.robot import Robot

from .actuator import Actuator


@dataclass(frozen=True, eq=False, repr=False)
class Selection(Actuator):
    """tau = B u, with a constant B (outputs, inputs): which joints are driven, and by what.

    An underactuated arm has a B with less columns than rows, a quadrotor the wrench of its four thrusts on the body, a
    walking robot the identity below six rows of zeros: `Selection.joints`. Gears and coupled drives are a B, too.
    Speeds go the other way, B^T w, so that power is the same on both sides.
    """

    B: ArrayLike

    def __post_init__(self):
        B = checked("B", self.B, ())
        if B.ndim != 2 or not B.size:
            raise ArgumentError(f"B: expected a matrix (outputs, inputs), got shape {B.shape}")
        object.__setattr__(self, "B", frozen(B))

    @classmethod
    def joints(cls, robot: Robot, names: Iterable[str] | None = None) -> Selection:
        """Drives the joints of those names, in that order, each velocity coordinate of theirs by an input.

        names: default all joints but free ones: legs and arms, not the base. Raises NameNotFoundError.
        """
        require_robot("robot", robot)
        if names is None:
            chosen = [joint.name for joint in robot.coupling.independent_joints if joint.kind != "free"]
        else:
            chosen = listed("names", names)
        for name in chosen:
            if not isinstance(name, str) or name not in robot.joint_names:
                raise NameNotFoundError(
                    f"names: expected joints of {robot.name!r}, {', '.join(robot.joint_names)}, got {name!r:.60}"
                )
            if name in {c.joint for c in robot.couplings}:
                raise ArgumentError(f"names: {name!r} follows other joints: nothing drives it by itself")
            if chosen.count(name) > 1:
                raise ArgumentError(f"names: {name!r} is there {chosen.count(name)} times")
        identity = np.eye(robot.nv)
        if not chosen:
            raise ArgumentError("names: expected joints, got none")
        return cls(np.hstack([identity[:, robot.v_slices[robot.joint_names.index(name)]] for name in chosen]))

    def inputs(self, outputs: int) -> int:
        rows, columns = np.shape(self.B)
        if rows != outputs:
            raise ArgumentError(f"B: expected {outputs} rows, one an output, got shape {(rows, columns)}")
        return columns

    def torque(self, t, u, w, x):
        return self.B @ u

    def speed(self, w, x):
        return w @ self.B
