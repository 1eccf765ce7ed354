"""`Selection`: a constant matrix from inputs to joint torques, for underactuated robots and coupled drives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, frozen, listed, shown
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.mechanism.mechanism import require_robot
from geomctrl.other_names import named_arguments
from geomctrl.robot import Robot

from .actuator import Actuator


@named_arguments()
@dataclass(frozen=True, eq=False, repr=False)
class Selection(Actuator):
    """tau = B u with a constant matrix B.

    Parameters
    ----------
    B : array_like, shape (outputs, inputs)
        Speeds transform by B^T, so that power is the same on both sides.

    Raises
    ------
    ArgumentError
        If `B` is no matrix of finite numbers.

    Notes
    -----
    Examples are an underactuated arm (fewer columns than rows), a quadrotor (the wrench of four thrusts on its body), a
    legged robot (`Selection.joints`: the identity below six rows of zeros), and coupled drives.

    Examples
    --------
    >>> import geomctrl as gc
    >>> cart_pole = gc.models.cart_pole()
    >>> gc.Plant(cart_pole, actuators=gc.actuators.Selection([[1.0], [0.0]])).inputs  # only the cart is driven
    1
    """

    B: ArrayLike

    def __post_init__(self):
        B = checked("B", self.B, ())
        if B.ndim != 2 or not B.size:
            raise ArgumentError(f"B: expected a matrix (outputs, inputs), got shape {B.shape}")
        object.__setattr__(self, "B", frozen(B))

    @classmethod
    def joints(cls, robot: Robot, names: Iterable[str] | None = None) -> Selection:
        """One input for each velocity coordinate of the named joints, in that order.

        Parameters
        ----------
        robot : Robot
            The robot.
        names : iterable of str, optional
            Names of joints. Default: all joints except free ones, that is legs and arms without the base.

        Returns
        -------
        Selection

        Raises
        ------
        NameNotFoundError
            If the robot has no joint with that name.

        Examples
        --------
        >>> import geomctrl as gc
        >>> gc.actuators.Selection.joints(gc.models.cart_pole(), gc.models.cart_pole().joint_names[:1]).B
        array([[1.],
               [0.]])
        """
        require_robot("robot", robot)
        if names is None:
            chosen = [joint.name for joint in robot.coupling.independent_joints if joint.kind != "free"]
        else:
            chosen = listed("names", names)
        for name in chosen:
            if not isinstance(name, str) or name not in robot.joint_names:
                raise NameNotFoundError(
                    f"names: expected joints of {robot.name!r}, {', '.join(robot.joint_names)}, got {shown(name)}"
                )
            if name in {c.joint for c in robot.couplings}:
                raise ArgumentError(f"names: {name!r} is coupled to other joints and has no drive of its own")
            if chosen.count(name) > 1:
                raise ArgumentError(f"names: {name!r} occurs {chosen.count(name)} times")
        identity = np.eye(robot.nv)
        if not chosen:
            raise ArgumentError("names: expected joints, got none")
        return cls(np.hstack([identity[:, robot.v_slices[robot.joint_names.index(name)]] for name in chosen]))

    def inputs(self, outputs: int) -> int:
        rows, columns = np.shape(self.B)
        if rows != outputs:
            raise ArgumentError(f"B: expected {outputs} rows, one per output, got shape {(rows, columns)}")
        return columns

    def torque(self, t, u, w, x):
        return self.B @ u

    def speed(self, w, x):
        return w @ self.B
