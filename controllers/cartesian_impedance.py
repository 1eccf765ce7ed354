"""Cartesian impedance control: a spring and a damper on a frame, the robot's own inertia there (Ott 2008)."""

from __future__ import annotations

from numpy.typing import ArrayLike

from geomctrl.control.contracts import Reference
from geomctrl.controllers._task_space import TaskImpedance
from geomctrl.robot import Robot


class CartesianImpedance(TaskImpedance):
    """Lambda W' + 1/2 Lambda' W + D W + dU = F_ext on the frame, the posture in its null space (Ott 2008)

    V = 1/2 W . Lambda W + U,   U = 1/2 E . K E,   V' = - W . D W + W . F_ext

    with E = log(T_d^-1 T), W the error of the frame's body-fixed twist, Lambda = (J M^-1 J^T)^-1 as it is: no force
    need be measured. tau = J^T F + N^T M a_0 + C v + g with F = Lambda (A_d - Jdot v) - 1/2 Lambda' W - D W - dU: what
    couples the task to its null space is cancelled, so that the port (F_ext, W) is passive whatever the posture does
    there. The posture follows the reference with a_0 = a_d - kd w - kp e, `posture` = (kp, kd); V does not see it.

    reference, frame, axes: as for `OperationalSpace`. stiffness K [N m/rad, N/m], damping D [N m s/rad, N s/m]:
    numbers, (m,) or symmetric positive definite (m, m), angular part first; by default 100/s^2 and 20/s times the
    diagonal of Lambda where the reference starts.

    Holds away from singular configurations of J, and for rotations less than pi off.
    """

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        frame: str,
        stiffness: ArrayLike | None = None,
        damping: ArrayLike | None = None,
        *,
        axes: str | None = None,
        posture: tuple[ArrayLike, ArrayLike] = (25.0, 10.0),
    ):
        super().__init__(robot, reference, frame, axes, posture)
        self.stiffness = self._task_gain("stiffness", stiffness, 100.0)
        self.damping = self._task_gain("damping", damping, 20.0)
