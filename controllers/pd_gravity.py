"""PD control with gravity compensation (Takegaki and Arimoto 1981): regulation to a configuration.

With compensation of g(q) every Kp > 0 works. With the constant g(q_d) instead (Tomei 1991; Kelly, Santibanez and Loria
2005) the potential 1/2 e . Kp e + U(q) - U(q_d) - g(q_d) . e has a Hessian between lambda_min(Kp) - k_g and
lambda_max(Kp) + k_g, with k_g >= |dg/dq| everywhere. If lambda_min(Kp) > k_g, it is strictly convex, and q_d is the
only equilibrium and globally asymptotically stable. For much smaller Kp there may be further equilibria.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from geomctrl.arguments import flag, instance
from geomctrl.control.contracts import Command, Lyapunov
from geomctrl.control.references import hold
from geomctrl.control.tracking import joint_forces
from geomctrl.control.tuning import Tuning
from geomctrl.controllers._model_based import ModelBased, true_robot
from geomctrl.mechanism.states import one_configuration, require_vectors
from geomctrl.robot import Robot
from geomctrl.terms.bounds import Bounds
from geomctrl.tracing.numbers import scalar

SHARE_OF_DAMPING = 0.05  # cross term c relative to the slowest rate of M^-1 Kd


class PDGravity(ModelBased):
    """PD control with gravity compensation: tau = g(q) - Kp e - Kd v,  e = log(q_d^-1 q).

    Parameters
    ----------
    robot : Robot
        The model.
    q_d : array (nq,)
        The desired configuration.
    kp : float, (nv,) or (nv, nv)
        Kp [N m/rad, N/m], symmetric positive definite. Default: 100 1/s^2 or more times each joint's mean inertia,
        see "Gains" on the page "Control laws" of the documentation.
    kd : float, (nv,) or (nv, nv)
        Kd [N m s/rad, N s/m], symmetric positive definite. Default: 25 1/s or more times each joint's mean inertia.
    constant : bool
        If True, tau = g(q_d) - Kp e - Kd v, for joints with one degree of freedom.
    strict : bool
        If True, use a Lyapunov function with V' < 0 at every state except the equilibrium, for joints with one degree
        of freedom. Certificates of regions of attraction need it.

    Raises
    ------
    ArgumentError
        If a gain has the wrong shape or is not positive definite, or if `q_d` does not fit the robot.

    Notes
    -----
    V = 1/2 v . M v + 1/2 e . Kp e,   V' = - v . Kd v        (with LaSalle: e -> 0)

    With `constant`, V has the additional term U(q) - U(q_d) - g(q_d) . e with the potential energy U. It is positive
    definite if `gravity_margin()` is positive.

    With `strict`, V has a cross term (Kelly, Santibanez and Loria 2005; Tomei 1991), with w = v + c e and
    c = min eig M(q_d)^-1 Kd / 20:

    V = 1/2 w . M w + 1/2 e . (Kp + c Kd) e,   V' = - v . Kd v - c e . Kp e + c w . (M v + C e)

    The last term is dominated by the others if c |e| is small compared with the damping; `testing.certify_lyapunov`
    proves this on a box. On joints with several degrees of freedom Kp e denotes the gradient of 1/2 e . Kp e.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.5, 0.2], kp=50.0, kd=10.0)
    >>> run = gc.simulate(law.robot, law, np.zeros(2), np.zeros(2), t_end=5.0, dt=1e-3)
    >>> bool(np.abs(run.q[-1] - [0.5, 0.2]).max() < 0.05)
    True
    """

    GAINS: ClassVar = {"kp": "1/s^2, times D", "kd": "1/s, times D"}

    def __init__(
        self,
        robot: Robot,
        q_d: ArrayLike,
        kp: ArrayLike | None = None,
        kd: ArrayLike | None = None,
        *,
        constant: bool = False,
        strict: bool = False,
    ):
        super().__init__(robot, hold(robot, one_configuration(robot, "q_d", q_d)))
        self.constant, self.strict = flag("constant", constant), flag("strict", strict)
        if constant:
            require_vectors("constant", robot, "a constant generalised force has no potential there")
        self.kp = self._gain("kp", kp, lambda rule: rule.kp * rule.D)
        self.kd = self._gain("kd", kd, lambda rule: rule.kd * rule.D)
        self.mixed = 0.0
        if strict:
            require_vectors("strict", robot)
            slowest = eigh(self.kd, robot.mass_matrix(self._desired(0.0).q), eigvals_only=True)[0]
            self.weightless = robot.with_gravity((0.0, 0.0, 0.0))
            self.mixed = SHARE_OF_DAMPING * float(slowest)

    @classmethod
    def tuned(cls, tuning: Tuning) -> PDGravity:
        """kp = kappa_i Lambda D_i, kd = (kappa_i + Lambda) D_i; q_d is the last configuration of the motion."""
        instance("tuning", tuning, Tuning, "a Tuning")
        q_d, D = tuning.motion(tuning.seconds).q, tuning.rule.D
        return cls(tuning.robot, q_d, tuning.kp * D, tuning.kd * D)

    def __call__(self, t, q, v, z):
        e = self.error(t, q, v).e
        tau = (
            self.robot.gravity_force(self._desired(t).q if self.constant else q)
            - joint_forces(self.robot, e, self.kp.dot(e))
            - self.kd.dot(v)
        )
        return Command(tau, None, {"e": e, "s": v + self.mixed * e} if self.strict else {"e": e})

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        e, c = self.error(t, q, v).e, self.mixed
        robot, q_d = true_robot(plant), self._desired(t).q
        w = v + c * e if self.strict else v
        value = scalar(robot.kinetic_energy(q, w)) + 0.5 * e.dot(self.kp).dot(e)
        rate = -scalar(np.dot(v, self.kd.dot(v)))
        if self.strict:
            value = value + 0.5 * c * e.dot(self.kd).dot(e)
            force = self.weightless.inverse_dynamics(q, v, v, e)  # M v + C e
            rate = rate + c * scalar(np.dot(w, force) - np.dot(e, self.kp.dot(e)))
        if self.constant:
            value = value + scalar(robot.potential_energy(q)) - scalar(robot.potential_energy(q_d))
            value = value - np.dot(self.robot.gravity_force(q_d), e)
            if self.strict:
                rate = rate + c * scalar(np.dot(e, self.robot.gravity_force(q_d) - self.robot.gravity_force(q)))
        return Lyapunov(scalar(value), rate)

    def gravity_margin(self, bounds: Bounds | None = None) -> float:
        """Return lambda_min(Kp) - k_g, the margin by which the springs outweigh gravity.

        Parameters
        ----------
        bounds : Bounds, optional
            Bounds on the model, which contain k_g. Default: `robot.bounds()`, within the joint limits.

        Returns
        -------
        float
            [N m/rad, N/m]. If it is positive, q_d is the only equilibrium in the range of the bounds, and V is positive
            definite. Without `constant`, k_g is zero.

        Examples
        --------
        >>> import geomctrl as gc
        >>> law = gc.controllers.PDGravity(gc.models.two_link(), [0.5, 0.2], kp=50.0, kd=10.0, constant=True)
        >>> 0.0 < law.gravity_margin() < 50.0
        True
        """
        if bounds is not None:
            instance("bounds", bounds, Bounds, "what robot.bounds() gives")
        smallest = float(np.linalg.eigvalsh(self.kp)[0])
        if not self.constant:
            return smallest
        return smallest - (bounds or self.robot.bounds()).k_g.value
