"""Cartesian impedance control: a spring and a damper at a frame, with the robot's natural inertia (Ott 2008)."""

from __future__ import annotations

from numpy.typing import ArrayLike

from geomctrl.control.contracts import Reference
from geomctrl.controllers._task_space import TaskImpedance
from geomctrl.robot import Robot


class CartesianImpedance(TaskImpedance):
    """Impedance at a frame: Lambda W' + 1/2 Lambda' W + D W + dU = F_ext, with the posture in the null space.

    Parameters
    ----------
    robot : Robot
        The model.
    reference : Reference
        A joint-space motion. The pose of the frame along it is the desired pose.
    frame : str
        Name of the frame.
    stiffness : float, (m,) or (m, m)
        K [N m/rad, N/m], symmetric positive definite, angular part first; m = 6 or the number of axes. Default: 100/s^2
        times the diagonal of Lambda at the start of the reference.
    damping : float, (m,) or (m, m)
        D [N m s/rad, N s/m], likewise. Default: 20/s times that diagonal.
    axes : str, optional
        "xyz" or a part of it: the task is the position of the frame along these world axes, and its rotation is free.
        Default: position and rotation.
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
    (Ott 2008.)

    V = 1/2 W . Lambda W + U,   U = 1/2 E . K E,   V' = - W . D W + W . F_ext

    with E = log(T_d^-1 T), the error W of the frame's body-fixed twist and Lambda = (J M^-1 J^T)^-1. The inertia is not
    shaped, so that no force measurement is needed. tau = J^T F + N^T M a_0 + C v + g with
    F = Lambda (A_d - Jdot v) - 1/2 Lambda' W - D W - dU cancels the coupling between task and null space. The port
    (F_ext, W) is therefore passive for any motion in the null space. There the posture follows the reference with
    a_0 = a_d - kd w - kp e, `posture` = (kp, kd), which V does not contain.

    Valid away from singular configurations of J and for rotation errors below pi.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> reference = gc.references.hold(robot, np.array([0.3, 0.8]))
    >>> law = gc.controllers.CartesianImpedance(robot, reference, "tip", axes="xz")
    >>> tau = law(0.0, np.array([0.3, 0.8]), np.zeros(2), law.start()).tau  # at rest on the reference
    >>> bool(np.allclose(tau, robot.gravity_force(np.array([0.3, 0.8]))))
    True
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
