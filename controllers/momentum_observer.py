"""Momentum observer: estimates external torques from the generalised momentum, next to any law (De Luca 2006)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, generator, one_state
from geomctrl.control.contracts import Command, Controller, Lyapunov
from geomctrl.control.friction.model import FrictionModel, friction_of_law
from geomctrl.control.plant import Plant
from geomctrl.control.tracking import gain_matrix
from geomctrl.controllers._component import (
    goal,
    rate_of,
    rest_of,
    sampled,
    size_of,
    start_of,
    state_at_start,
    wrapped_law,
)
from geomctrl.controllers._model_based import Law, true_robot
from geomctrl.errors import ArgumentError
from geomctrl.terms import derivatives, operational_space
from geomctrl.tracing.numbers import scalar


class MomentumObserver(Law):
    """A law with an observer that estimates the external joint torques as a residual r.

    Parameters
    ----------
    law : Controller
        A controller with a model `robot` and a vector state or no state. Its command is passed on.
    gain : float, (nv,) or (nv, nv)
        K [1/s], symmetric positive definite, the bandwidth of the estimate.
    friction : FrictionModel, optional
        Friction of the model.
    threshold : float or (nv,), optional
        Residual above which contact is reported [N m, N].
    frame : str, optional
        Frame of the signal "wrench".

    Raises
    ------
    ArgumentError
        If `law` can not be wrapped, if `gain` is not positive definite, or if a threshold is not positive.
    NameNotFoundError
        If the robot has no frame of a given name.

    Notes
    -----
    With p = M v

    p^' = tau + C^T v - g - friction(v) + r,   r = K (p - p^),   hence r' = K (tau_ext - r)

    (De Luca and others 2006; Haddadin, De Luca and Albu-Schaeffer 2017), from q, v and the commanded torque, in O(n)
    without M and C. The observer adds these signals to those of the law:

    residual   r (nv,) [N m]
    contact    1 if some |r_i| > threshold_i, else 0 (with a threshold)
    wrench     (6,) with a frame: the wrench in frame axes, angular part first, that corresponds to r,
               Lambda J M^-1 r; exact if one wrench at this frame is the only external force. J must have full row rank.

    The state z is that of the law followed by p^ (nv,), which starts at M v0, so that r starts at zero.

    V = V of the law + 1/2 |p - p^|^2 / m,   V' = V' of the law - (p - p^) . K (p - p^) / m without external forces,

    where m [kg m^2] is the mean diagonal entry of M at the neutral configuration. V vanishes with p^ = M v.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link()
    >>> law = gc.controllers.MomentumObserver(gc.controllers.PDGravity(arm, [0.0, 0.0]), 50.0, threshold=2.0)
    >>> z = law.start(np.zeros(2), np.zeros(2))
    >>> float(law(0.0, np.zeros(2), np.zeros(2), z).signals["contact"])
    0.0
    """

    def __init__(
        self,
        law: Controller,
        gain: ArrayLike = 50.0,
        *,
        friction: FrictionModel | None = None,
        threshold: ArrayLike | None = None,
        frame: str | None = None,
    ):
        self.law = wrapped_law("law", law)
        self.robot, n = self.law.robot, self.law.robot.nv
        self.gain = gain_matrix("gain", gain, n)
        if frame is not None and self.robot.frame(frame).body < 0:
            raise ArgumentError(f"frame: {frame!r} is fixed to the world: no wrench moves it")
        self.threshold = None if threshold is None else _threshold(threshold, n)
        self.friction, self.frame, self.size = friction_of_law(friction, n), frame, size_of(self.law)
        self.mass = float(np.diagonal(self.robot.mass_matrix(self.robot.neutral())).mean())
        goal(self, self.law)

    def start(self, q0: ArrayLike | None = None, v0: ArrayLike | None = None) -> np.ndarray:
        """The law's state, and M v0, for a robot at q0 (nq,), v0 (nv,) (default: neutral and at rest)."""
        q0, v0 = state_at_start(self.robot, q0, v0)
        own, momentum = start_of(self.law, q0, v0), np.zeros(self.robot.nv)
        if v0 is not None:
            momentum = self.robot.mass_matrix_product(self.robot.neutral() if q0 is None else q0, v0)
        return np.concatenate((own, momentum))

    def _split(self, z):
        z = one_state("z", z, self.size + self.robot.nv)
        return (z[: self.size] if self.size else None), z[self.size :]

    def _residual(self, q: np.ndarray, v: np.ndarray, z: np.ndarray) -> np.ndarray:
        """r (nv,) [N m] at a state."""
        return self.gain.dot(self.robot.mass_matrix_product(q, v) - self._split(z)[1])

    def _wrench(self, q: np.ndarray, residual: np.ndarray) -> np.ndarray:
        """The wrench (6,) at `frame`, in its axes, that corresponds to a residual (nv,)."""
        if self.frame is None:
            raise ArgumentError("frame: expected the name of a frame when the observer was created, got None")
        residual = one_state("residual", residual, self.robot.nv)
        F = self.robot.jacobian(q, self.frame).dot(self.robot.mass_matrix_solve(q, residual))
        return operational_space.inertia(self.robot, q, self.frame).dot(F)

    def __call__(self, t, q, v, z):
        own, estimate = self._split(z)
        command = self.law(t, q, v, own)
        r = self.gain.dot(self.robot.mass_matrix_product(q, v) - estimate)
        rate = command.tau + derivatives.coriolis_transpose_product(self.robot, q, v) - self.robot.gravity_force(q) + r
        if self.friction is not None:
            rate = rate - self.friction.torque(one_state("v", v, self.robot.nv), command.tau)
        signals = {**command.signals, "residual": r}
        if self.threshold is not None:
            signals["contact"] = scalar(np.where((np.abs(r) - self.threshold).max() > 0.0, 1.0, 0.0))
        if self.frame is not None:
            signals["wrench"] = self._wrench(q, r)
        return Command(command.tau, np.concatenate((rate_of(command), rate)), signals)

    def true_parameters(self, plant: Plant) -> np.ndarray:
        """z with V = 0 for a robot at rest."""
        return np.concatenate((rest_of(self.law, plant), np.zeros(self.robot.nv)))

    def sample_state(self, rng: np.random.Generator, plant: Plant) -> np.ndarray | None:
        """A random state of the law, and random momenta; None if the law has no set of admissible states."""
        own = sampled(self.law, generator("rng", rng), plant)
        return None if own is None else np.concatenate((own, self.mass * rng.normal(size=self.robot.nv)))

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        own, estimate = self._split(z)
        V, rate = self.law.lyapunov(t, q, v, own, plant)
        off = true_robot(plant).mass_matrix_product(q, v) - estimate
        V, rate = V + scalar(0.5 * off.dot(off)) / self.mass, rate - scalar(off.dot(self.gain.dot(off))) / self.mass
        return Lyapunov(V, rate)


def _threshold(x: ArrayLike, n: int) -> np.ndarray:
    a = checked("threshold", x, ())
    if a.shape not in ((), (n,)) or not (a > 0.0).all():
        raise ArgumentError(f"threshold: expected a positive number or ({n},) of them, got {a}")
    return np.array(np.broadcast_to(a, n))
