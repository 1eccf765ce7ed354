"""Operational space control: a frame tracks with unit inertia, the posture follows in its null space (Khatib 1987)."""

from __future__ import annotations

from numpy.typing import ArrayLike

from geomctrl.control.contracts import Command, Lyapunov, Reference
from geomctrl.control.tracking import gain_matrix
from geomctrl.controllers._task_space import TaskSpace
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import scalar


class OperationalSpace(TaskSpace):
    """Operational space control: tau = J^T Lambda (A* - Jdot v) + N^T M a_0 + C v + g,   A* = A_d - Kd W - Kp E.

    Parameters
    ----------
    robot : Robot
        The model.
    reference : Reference
        A joint-space motion. The pose of the frame along it is the task.
    frame : str
        Name of the frame.
    kp : float, (m,) or (m, m)
        Kp [1/s^2], symmetric positive definite, angular part first; m = 6 or the number of axes. Default: 100.
    kd : float, (m,) or (m, m)
        Kd [1/s], likewise. Default: 20.
    axes : str, optional
        "xyz" or a part of it: the task is the position of the frame along these world axes, and its rotation is free.
        For robots that can not rotate the frame independently.
    posture : (kp, kd)
        Gains of the posture in the null space [1/s^2, 1/s], each a float, (nv,) or (nv, nv). Default: 25 and 10.

    Raises
    ------
    ArgumentError
        If a gain has the wrong shape or is not positive definite, or if `reference` is not a motion of this robot.
    NameNotFoundError
        If the robot has no frame of a given name.

    Notes
    -----
    (Khatib 1987.)

    V = 1/2 W . W + 1/2 E . Kp E,   V' = - W . Kd W

    with Lambda = (J M^-1 J^T)^-1, the projector N onto the dynamically consistent null space of J,
    E = log(T_d^-1 T) (with `axes` p - p_d) and the error W of the frame's body-fixed twist. Kp E denotes the gradient
    of 1/2 E . Kp E. In the null space the posture follows the reference with a_0 = a_d - kd w - kp e, which V does not
    contain.

    Valid away from singular configurations of J and for rotation errors below pi.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> reference = gc.references.hold(robot, np.array([0.3, 0.8]))
    >>> law = gc.controllers.OperationalSpace(robot, reference, "tip", axes="xz")
    >>> tau = law(0.0, np.array([0.3, 0.8]), np.zeros(2), law.start()).tau  # at rest on the reference
    >>> bool(np.allclose(tau, robot.gravity_force(np.array([0.3, 0.8]))))
    True
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
        return Command(self._torques(t, q, v, task, A, X, self._inertia(q, G)), None, {"W": task.W})

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        task = self._task(t, q, v)
        U, _ = self._potential(task.E, self.kp)
        return Lyapunov(scalar(0.5 * task.W.dot(task.W)) + U, -scalar(task.W.dot(self.kd).dot(task.W)))
