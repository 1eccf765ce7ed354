"""Passivity-based tracking: Slotine and Li's law with known parameters."""

from __future__ import annotations

from typing import ClassVar

from numpy.typing import ArrayLike

from geomctrl.arguments import instance
from geomctrl.control.contracts import Command, Lyapunov, Reference
from geomctrl.control.friction import FrictionModel
from geomctrl.control.tuning import RATES, Tuning
from geomctrl.controllers._model_based import ModelBased
from geomctrl.robot import Robot
from geomctrl.terms.dynamics import Form, form_number


class Passivity(ModelBased):
    """Passivity-based tracking: tau = M a_ref + C v_ref + g - K s [+ friction(v)].

    v_ref = v_d - Lambda e is the reference velocity, a_ref its time derivative, and s = v - v_ref.

    Parameters
    ----------
    robot : Robot
        The model.
    reference : Reference
        The desired motion.
    Lambda : float, (nv,) or (nv, nv)
        Lambda [1/s], symmetric positive definite. Default: 5.
    K : float, (nv,) or (nv, nv)
        K [N m s/rad, N s/m], symmetric positive definite. Default: 20 1/s or more times each joint's mean inertia, see
        "Gains" on the page "Control laws" of the documentation.
    friction : FrictionModel, optional
        Friction that the law compensates. Default: none, whatever friction the model or the plant has.
    form : {"ploen", "christoffel", "adjoint"}
        The Coriolis matrix C; Mdot - 2C is skew-symmetric for all of them.
    strict : bool
        If True, use a Lyapunov function of the whole state, for joints with one degree of freedom. Lambda K must be
        symmetric.

    Raises
    ------
    ArgumentError
        If a gain has the wrong shape or is not positive definite, or if `reference` is not a motion of this robot.

    Notes
    -----
    (Slotine and Li 1987; Ploen 1999 section 1.)

    V = 1/2 s . M s,   V' = - s . K s   because s . (Mdot - 2C) s = 0

    This V vanishes wherever s does. With `strict` (Slotine and Li 1991) and w = v - v_d,

    V = 1/2 s . M s + e . Lambda K e,   V' = - s . K s + 2 e . Lambda K e'  =  - w . K w - e . Lambda K Lambda e,

    which certificates of regions of attraction need.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> reference = gc.references.hold(robot, np.zeros(2))
    >>> law = gc.controllers.Passivity(robot, reference)
    >>> tau = law(0.0, np.zeros(2), np.zeros(2), law.start()).tau  # at rest on the reference
    >>> bool(np.allclose(tau, robot.gravity_force(np.zeros(2))))
    True
    """

    GAINS: ClassVar = RATES

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        Lambda: ArrayLike | None = None,
        K: ArrayLike | None = None,
        friction: FrictionModel | None = None,
        form: Form = "ploen",
        strict: bool = False,
    ):
        super().__init__(robot, reference, friction)
        form_number(form)
        self.Lambda, self.K = self._sliding_gains(Lambda, K)
        self.form: Form = form
        self.stiffness, self.strict = self._strict_stiffness(strict, self.K), strict

    @classmethod
    def tuned(cls, tuning: Tuning) -> Passivity:
        """Lambda, and K = kappa_i D_i."""
        instance("tuning", tuning, Tuning, "a Tuning")
        return cls(tuning.robot, tuning.motion, tuning.Lambda, tuning.K)

    def __call__(self, t, q, v, z):
        x = self.sliding(t, q, v)
        tau = self.robot.inverse_dynamics(q, v, x.a_ref, x.v_ref, form=self.form) - self.K.dot(x.s)
        return Command(self._compensated(v, tau), None, {"e": x.e, "s": x.s})

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        return self._sliding_lyapunov(t, q, v, plant, self.K, self.stiffness if self.strict else None)
