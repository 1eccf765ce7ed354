"""Spong's robust law: constant nominal parameters, with a bounded correction for their uncertainty."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import instance, number
from geomctrl.control.contracts import Command, Lyapunov, Reference
from geomctrl.control.plant import Plant
from geomctrl.control.tracking import adaptive_law
from geomctrl.control.tuning import RATES, Tuning
from geomctrl.controllers._adaptive import squared_units
from geomctrl.controllers._model_based import ModelBased, true_robot
from geomctrl.robot import Robot
from geomctrl.terms.dynamics import Form, form_number

DEFAULT_UNCERTAINTY = 0.1  # default uncertainty relative to the mass of the mean body
LAYER = 4.0  # smallest default width, relative to that for which u is as steep as K
SAGITTA = (0.5 * (math.sqrt(5.0) - 1.0)) ** 2.5  # maximum of x - x^2 / sqrt(x^2 + 1)


class Robust(ModelBased):
    """Robust tracking: tau = Y(q, v, a_ref, v_ref) (p_0 + u) + armature a_ref - K s with a bounded correction u.

    Parameters
    ----------
    robot : Robot
        The nominal model with parameters p_0.
    reference : Reference
        The desired motion.
    Lambda, K : float, (nv,) or (nv, nv)
        As for `Passivity`.
    rho : float, optional
        Bound on the parameter error [kg]; default a tenth of the mean body's mass, times the square root of the number
        of bodies.
    eps : float, optional
        Width of the boundary layer [W/kg]. By default u adds at most a quarter of K to the slope of the torque in s, at
        random postures, velocities of about 1 rad/s or m/s and accelerations of Lambda times that.
    form : {"ploen", "christoffel", "adjoint"}
        As for `Passivity`.
    strict : bool
        Whether V and its rate have the terms of e that they have for `Passivity`, too.

    Raises
    ------
    ArgumentError
        If a gain has the wrong shape or is not positive definite, or if `reference` is not a motion of this robot.

    Notes
    -----
    (Spong 1992, "On the robust control of robot manipulators".) v_ref and s are those of `Passivity`. The correction u
    compensates parameters with |p_true - p_0| <= rho in the norm |x|^2 = x . D^-1 x, where D contains the squares of
    the natural units of the parameters (`SlotineLi`). With w = D^1/2 Y^T s

    u = - rho D^1/2 w / sqrt(|w|^2 + eps^2)

    is Spong's - rho w / |w| with a smooth boundary layer. Because |w| - |w|^2 / sqrt(|w|^2 + eps^2) <= 0.3003 eps,

    V = 1/2 s . M s,   V' = - s . K s - w . D^-1/2 (p_true - p_0 - u) <= - s . K s + c,   c = 0.3003 rho eps.

    V decreases below c / (2 lambda), where lambda is the smallest eigenvalue of M^-1 K. No parameter is estimated, and
    no excitation is needed. `lyapunov` returns the rate without c, and `allowance` returns c.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> reference = gc.references.hold(robot, np.zeros(2))
    >>> law = gc.controllers.Robust(robot, reference)
    >>> tau = law(0.0, np.zeros(2), np.zeros(2), law.start()).tau  # at rest on the reference
    >>> bool(np.allclose(tau, robot.gravity_force(np.zeros(2))))
    True
    """

    GAINS: ClassVar = {**RATES, "rho": "kg, uncertainty", "eps": "W/kg, boundary layer"}

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        Lambda: ArrayLike | None = None,
        K: ArrayLike | None = None,
        rho: float | None = None,
        eps: float | None = None,
        *,
        form: Form = "ploen",
        strict: bool = False,
    ):
        super().__init__(robot, reference)
        self.form: Form = form
        form_number(form)
        self.Lambda, self.K = self._sliding_gains(Lambda, K)
        self.stiffness, self.strict = self._strict_stiffness(strict, self.K), strict
        mean = float(robot.parameters[:, 0].mean())
        rho = DEFAULT_UNCERTAINTY * mean * float(np.sqrt(robot.nbodies)) if rho is None else rho
        self.rho = number("rho", rho, "a positive number [kg]", lambda x: x > 0.0)
        self.p0 = robot.parameters.ravel().copy()
        self.D = squared_units(robot)
        eps = LAYER * self.rho * self._steepest() if eps is None else eps
        self.eps = number("eps", eps, "a positive number [W/kg]", lambda x: x > 0.0)

    def _steepest(self) -> float:
        """The largest eigenvalue of K^-1 Y D Y^T at random states."""
        robot, rng = self.robot, np.random.default_rng(0)
        q = np.array([robot.random_configuration(rng) for _ in range(50)])
        v = rng.normal(size=(50, robot.nv))
        Y = robot.regressor(q, v, rng.normal(size=v.shape) @ self.Lambda)
        return float(np.linalg.eigvals(np.linalg.solve(self.K, Y * self.D @ Y.swapaxes(1, 2))).real.max())

    @classmethod
    def tuned(cls, tuning: Tuning) -> Robust:
        """Lambda, and K = kappa_i D_i; rho and eps by default."""
        instance("tuning", tuning, Tuning, "a Tuning")
        rho, eps = tuning.gains.get("rho"), tuning.gains.get("eps")
        return cls(tuning.robot, tuning.motion, tuning.Lambda, tuning.K, rho, eps)

    def __call__(self, t, q, v, z):
        desired = self._desired(t)
        g = adaptive_law(self.robot, self.p0, q, v, desired, self.Lambda, self.K, self.form).YTs
        u = -self.rho * self.D * g / np.sqrt(self.D.dot(g * g) + self.eps**2)
        tau, _, e, s = adaptive_law(self.robot, self.p0 + u, q, v, desired, self.Lambda, self.K, self.form)
        return Command(tau, None, {"e": e, "s": s})

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        return self._sliding_lyapunov(t, q, v, plant, self.K, self.stiffness if self.strict else None)

    def allowance(self, plant: Plant) -> float:
        """c [W], the bound on V' minus the rate of `lyapunov`, for plants with `distance` <= rho."""
        return SAGITTA * self.rho * self.eps

    def _distance(self, plant: Plant) -> float:
        """|p_true - p_0| [kg]; the proof requires at most rho."""
        off = true_robot(plant).parameters.ravel() - self.p0
        return float(np.sqrt(off.dot(off / self.D)))
