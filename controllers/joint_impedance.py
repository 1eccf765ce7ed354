"""Joint impedance control: a spring and a damper about a desired motion in joint space (Hogan 1985)."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, function, instance
from geomctrl.control.contracts import Command, Lyapunov, Reference
from geomctrl.control.friction import FrictionModel
from geomctrl.control.tracking import gain_matrix, joint_forces
from geomctrl.control.tuning import Tuning
from geomctrl.controllers._model_based import ModelBased, true_robot
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import scalar


class JointImpedance(ModelBased):
    """Joint impedance: tau = M a_d + C v_d + g - K e - D w [+ friction(v)], or with a desired inertia B.

    Parameters
    ----------
    robot : Robot
        The model.
    reference : Reference
        The desired motion.
    stiffness : float, (nv,) or (nv, nv)
        K [N m/rad, N/m], symmetric positive definite; default 100/s^2 times the diagonal of M (or B) at the start of
        the reference.
    damping : float, (nv,) or (nv, nv)
        D [N m s/rad, N s/m], likewise; default 20/s times that diagonal.
    inertia : float, (nv,) or (nv, nv), optional
        Desired constant inertia B [kg m^2, kg]; None keeps the robot's inertia.
    external : callable, optional
        Measured external torque, (t, q, v) -> (nv,) [N m, N], for `inertia`. Without it tau_ext = 0 is assumed.
    friction : FrictionModel, optional
        Friction that the law compensates. Default: none, whatever friction the model or the plant has.

    Raises
    ------
    ArgumentError
        If a gain has the wrong shape or is not positive definite, or if `reference` is not a motion of this robot.

    Notes
    -----
    (Hogan 1985; Ott 2008, in joint space; with tau_ext = 0 the PD+ law of Paden and Panja 1988.) With w = v - v_d the
    loop is passive at the port (tau_ext, w):

    M w' + C w + D w + K e = tau_ext,   V = 1/2 w . M w + 1/2 e . K e,   V' = - w . D w + w . tau_ext

    With `inertia` B

    tau = M (a_d - B^-1 (D w + K e - tau_ext)) + C v + g - tau_ext,   B w' + D w + K e = tau_ext,
    V = 1/2 w . B w + 1/2 e . K e,   V' = - w . D w + w . tau_ext

    Without a measured torque, contact then appears as B M^-1 tau_ext, and passivity at that port is not guaranteed. On
    joints with several degrees of freedom K e denotes the gradient of 1/2 e . K e. The law has no state.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> reference = gc.references.hold(robot, np.zeros(2))
    >>> law = gc.controllers.JointImpedance(robot, reference)
    >>> tau = law(0.0, np.zeros(2), np.zeros(2), law.start()).tau  # at rest on the reference
    >>> bool(np.allclose(tau, robot.gravity_force(np.zeros(2))))
    True
    """

    GAINS: ClassVar = {"kp": "1/s^2, times D", "kd": "1/s, times D"}

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        stiffness: ArrayLike | None = None,
        damping: ArrayLike | None = None,
        inertia: ArrayLike | None = None,
        external: Callable[[float, np.ndarray, np.ndarray], np.ndarray] | None = None,
        friction: FrictionModel | None = None,
    ):
        super().__init__(robot, reference, friction)
        self.inertia = None if inertia is None else gain_matrix("inertia", inertia, robot.nv)
        self._mobility = None if self.inertia is None else np.linalg.inv(self.inertia)
        if external is not None:
            function("external", external, "(t, q, v) -> torques (nv,)", 3)
            if inertia is None:
                raise ArgumentError("external: expected None without `inertia`, which needs no external torque")
        self.external = external
        unit = np.diagonal(robot.mass_matrix(self._desired(0.0).q) if self.inertia is None else self.inertia)
        self.stiffness = gain_matrix("stiffness", 100.0 * unit if stiffness is None else stiffness, robot.nv)
        self.damping = gain_matrix("damping", 20.0 * unit if damping is None else damping, robot.nv)

    @classmethod
    def tuned(cls, tuning: Tuning) -> JointImpedance:
        """K = kappa_i Lambda D_i and D = (kappa_i + Lambda) D_i, with the natural inertia."""
        instance("tuning", tuning, Tuning, "a Tuning")
        D = tuning.rule.D
        return cls(tuning.robot, tuning.motion, tuning.kp * D, tuning.kd * D)

    def __call__(self, t, q, v, z):
        error = self.error(t, q, v)
        force = self.damping.dot(error.w) + joint_forces(self.robot, error.e, self.stiffness.dot(error.e))
        if self._mobility is None:
            tau = self.robot.inverse_dynamics(q, v, error.a_d, error.v_d) - force
        else:
            pushed = np.zeros(self.robot.nv) if self.external is None else self._pushed(t, q, v)
            a = error.a_d - self._mobility.dot(force - pushed)
            tau = self.robot.inverse_dynamics(q, v, a) - pushed
        return Command(self._compensated(v, tau), None, {"e": error.e})

    def _pushed(self, t, q, v):
        assert self.external is not None
        return checked("external", self.external(t, q, v), (self.robot.nv,))

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        """V and its rate without external forces."""
        e, w = (error := self.error(t, q, v)).e, error.w
        robot = true_robot(plant)
        kinetic = robot.kinetic_energy(q, w) if self.inertia is None else 0.5 * w.dot(self.inertia).dot(w)
        V = scalar(kinetic) + scalar(0.5 * e.dot(self.stiffness).dot(e))
        return Lyapunov(V, -scalar(w.dot(self.damping).dot(w)))
