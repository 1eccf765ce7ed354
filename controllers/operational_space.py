"""Operational space control: a frame moves as if it had unit mass, the posture in its null space (Khatib 1987)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.control.contracts import Command, Lyapunov, Reference
from geomctrl.control.tracking import gain_matrix
from geomctrl.controllers._task_space import TaskSpace
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import scalar


class OperationalSpace(TaskSpace):
    """tau = J^T Lambda (A* - Jdot v) + N^T M a_0 + C v + g,   A* = A_d - Kd W - Kp E   (Khatib 1987)

    V = 1/2 W . W + 1/2 E . Kp E,   V' = - W . Kd W

    with Lambda = (J M^-1 J^T)^-1, N the dynamically consistent null space of J, E = log(T_d^-1 T) and W the error of
    the frame's body-fixed twist; Kp E stands for the gradient of 1/2 E . Kp E. In the null space the posture follows
    the reference with a_0 = a_d - kd w - kp e, `posture` = (kp, kd); V does not see it.

    reference: a motion of the joints; the frame's pose along it is the task. frame: its name. axes: "xyz" or some of
    them: the frame's position along these axes of the world is the task, e = p - p_d, and its rotation is left free;
    for robots that can not turn a frame freely. kp [1/s^2], kd [1/s]: numbers, (m,) or symmetric positive definite
    (m, m), m = 6 or the number of axes, angular part first.

    Holds away from singular configurations of J, and for rotations less than pi off.
    """

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        frame: str,
        kp: ArrayLike = 100.0,
        kd: ArrayLike = 20.0,
        *,
        axes: str | None = None,
        posture: tuple[ArrayLike, ArrayLike] = (25.0, 10.0),
    ):
        super().__init__(robot, reference, frame, axes, posture)
        self.kp, self.kd = gain_matrix("kp", kp, self.m), gain_matrix("kd", kd, self.m)

    def __call__(self, t, q, v, z):
        task = self._task(t, q, v)
        X, G = self._mobility(self.robot, q, task.J)
        A = task.A_d - self.kd.dot(task.W) - self._potential(task.E, self.kp)[1]
        return Command(self._torques(t, q, v, task, A, X, np.linalg.inv(G)), None, {"W": task.W})

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        task = self._task(t, q, v)
        U, _ = self._potential(task.E, self.kp)
        return Lyapunov(scalar(0.5 * task.W.dot(task.W)) + U, -scalar(task.W.dot(self.kd).dot(task.W)))
