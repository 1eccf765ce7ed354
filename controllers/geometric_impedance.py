"""Geometric impedance control: impedance with a potential function on SE(3) instead of coordinates (Seo 2023)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.control.contracts import Reference
from geomctrl.controllers._task_space import TaskImpedance
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import scalar


class GeometricImpedance(TaskImpedance):
    """Impedance at a frame: Lambda W' + 1/2 Lambda' W + D W + f_G = F_ext, with a potential on SE(3).

    Parameters
    ----------
    robot : Robot
        The model.
    reference : Reference
        A joint-space motion. The pose of the frame along it is the desired pose.
    frame : str
        Name of the frame.
    stiffness : float, (6,) or (6, 6)
        K [N m/rad, N/m], symmetric positive definite, angular part first, without coupling of rotation and translation.
        Its rotational block K_o is the stiffness near the desired pose. Default: 100/s^2 times the diagonal of Lambda
        at the start of the reference.
    damping : float, (6,) or (6, 6)
        D [N m s/rad, N s/m], symmetric positive definite, angular part first. Default: 20/s times that diagonal.
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
    (J. Seo, N. P. S. Prakash, A. Rose, J. Choi, R. Horowitz, "Geometric impedance control on SE(3) for robotic
    manipulators", IFAC World Congress 2023.)

    V = 1/2 W . Lambda W + U,   V' = - W . D W + W . F_ext
    U = tr(K_R (1 - R_e)) + 1/2 p_e . K_p p_e,   f_G = ((K_R R_e - R_e^T K_R)^vee, R_e^T K_p p_e)

    with T_e = T_d^-1 T = (R_e, p_e), K_R = tr(K_o) / 2 - K_o, the error W of the frame's body-fixed twist, and the
    gradient f_G of U. U is smooth at every rotation and left-invariant. It equals the spring 2 eps . K_o eps in the
    vector part of the unit quaternion of R_e (Caccavale and others 1999). At a rotation error of pi f_G may vanish:
    such poses are unstable equilibria, which no continuous law on SO(3) avoids (Bhat and Bernstein 2000).

    Valid away from singular configurations of J. The law has no state.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.panda()
    >>> q = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
    >>> law = gc.controllers.GeometricImpedance(robot, gc.references.hold(robot, q), "panda_hand")
    >>> tau = law(0.0, q, np.zeros(7), None).tau  # at the goal it compensates gravity
    >>> bool(np.allclose(tau, robot.gravity_force(q)))
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
        posture: tuple[ArrayLike, ArrayLike] = (25.0, 10.0),
    ):
        super().__init__(robot, reference, frame, None, posture)
        self.stiffness = self._task_gain("stiffness", stiffness, 100.0)
        self.damping = self._task_gain("damping", damping, 20.0)
        if self.stiffness[:3, 3:].any():
            raise ArgumentError(
                "stiffness: expected no coupling of rotation and translation, because the potential has none"
            )
        K_o = self.stiffness[:3, :3]
        self.K_R = 0.5 * np.trace(K_o) * np.eye(3) - K_o

    def _potential(self, E, K):
        """(U, f_G (6,)) at E = T_d^-1 T."""
        R, p, K_p = E[:3, :3], E[:3, 3], K[3:, 3:]
        KR = self.K_R.dot(R)
        S, pull = KR - KR.T, K_p.dot(p)
        U = np.trace(self.K_R) - np.trace(KR) + 0.5 * p.dot(pull)
        return scalar(U), np.concatenate((np.stack((S[2, 1], S[0, 2], S[1, 0])), R.T.dot(pull)))
