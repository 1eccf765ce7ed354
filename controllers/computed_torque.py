"""Computed torque control: feedback linearisation with the inverse dynamics."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import flag, instance
from geomctrl.control.contracts import Command, Lyapunov, Reference
from geomctrl.control.friction import FrictionModel
from geomctrl.control.tracking import joint_forces
from geomctrl.control.tuning import Tuning
from geomctrl.controllers._model_based import ModelBased
from geomctrl.mechanism.states import require_vectors
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import scalar


class ComputedTorque(ModelBased):
    """Computed torque: tau = M (a_d - Kd w - Kp e) + C v + g [+ friction(v)]; with the true model w' = -Kd w - Kp e.

    Parameters
    ----------
    robot : Robot
        The model.
    reference : Reference
        The desired motion.
    kp : float, (nv,) or (nv, nv)
        Kp [1/s^2], symmetric positive definite. Default: 100 or more, higher for joints with little inertia, see
        "Gains" on the page "Control laws" of the documentation.
    kd : float, (nv,) or (nv, nv)
        Kd [1/s], symmetric positive definite. Default: 25 or more.
    friction : FrictionModel, optional
        Friction that the law compensates. Default: none, whatever friction the model or the plant has.
    strict : bool
        If True, use a Lyapunov function with V' < 0 at every state except the equilibrium, for joints with one degree
        of freedom.

    Raises
    ------
    ArgumentError
        If a gain has the wrong shape or is not positive definite, or if `reference` is not a motion of this robot.

    Notes
    -----
    (Bejczy 1974; Luh, Walker and Paul 1980, in operational space.) With the velocity error w

    V = 1/2 w . w + 1/2 e . Kp e,   V' = - w . Kd w          (with LaSalle: e, w -> 0)

    and with `strict`

    V = 1/2 w . w + 1/2 e . (Kp + c Kd) e + c e . w,   V' = - w . (Kd - c) w - c e . Kp e,   c = min eig Kd / 2

    On joints with several degrees of freedom Kp e denotes the gradient of 1/2 e . Kp e.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> motion = gc.references.Quintic(robot, np.zeros(2), [0.5, 0.2], duration=1.0)
    >>> law = gc.controllers.ComputedTorque(robot, motion)
    >>> run = gc.simulate(robot, law, np.zeros(2), np.zeros(2), t_end=1.0, dt=1e-3)
    >>> bool(run.tracking_rms().max() < 1e-3)
    True
    """

    GAINS: ClassVar = {"kp": "1/s^2", "kd": "1/s"}

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        kp: ArrayLike | None = None,
        kd: ArrayLike | None = None,
        friction: FrictionModel | None = None,
        strict: bool = False,
    ):
        super().__init__(robot, reference, friction)
        self.kp, self.kd = self._gain("kp", kp, lambda rule: rule.kp), self._gain("kd", kd, lambda rule: rule.kd)
        self.strict = flag("strict", strict)
        if strict:
            require_vectors("strict", robot)
        self.mixed = 0.5 * float(np.linalg.eigvalsh(self.kd)[0])

    @classmethod
    def tuned(cls, tuning: Tuning) -> ComputedTorque:
        """kp = kappa_i Lambda, kd = kappa_i + Lambda."""
        instance("tuning", tuning, Tuning, "a Tuning")
        return cls(tuning.robot, tuning.motion, tuning.kp, tuning.kd)

    def acceleration(self, t, q, v, z):
        """Return the acceleration that the law commands, which the robot achieves if the model is exact.

        Parameters
        ----------
        t : float
            Time [s].
        q, v : array_like, shape (nq,), (nv,)
            State of the robot.
        z : object
            Not used; the law has no state.

        Returns
        -------
        ndarray, shape (nv,)
            Acceleration [rad/s^2 or m/s^2].

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> robot = gc.models.two_link()
        >>> law = gc.controllers.ComputedTorque(robot, gc.references.hold(robot, np.zeros(2)), kp=4.0, kd=4.0)
        >>> bool(np.allclose(law.acceleration(0.0, np.array([0.1, 0.0]), np.zeros(2), None), [-0.4, 0.0]))
        True
        """
        return self._acceleration(self.error(t, q, v))

    def _acceleration(self, error):
        return error.a_d - self.kd.dot(error.w) - joint_forces(self.robot, error.e, self.kp.dot(error.e))

    def __call__(self, t, q, v, z):
        error = self.error(t, q, v)
        tau = self.robot.inverse_dynamics(q, v, self._acceleration(error))
        return Command(self._compensated(v, tau), None, {"e": error.e})

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        error = self.error(t, q, v)
        e, w = error.e, error.w
        V, loss = scalar(0.5 * w.dot(w) + 0.5 * e.dot(self.kp).dot(e)), scalar(w.dot(self.kd).dot(w))
        if not self.strict:
            return Lyapunov(V, -loss)
        V = V + self.mixed * scalar(0.5 * e.dot(self.kd).dot(e) + e.dot(w))
        return Lyapunov(V, self.mixed * scalar(w.dot(w) - e.dot(self.kp).dot(e)) - loss)
