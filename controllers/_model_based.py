"""`ModelBased`: the base class of bundled controllers, with model, reference, default gains and error variables."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import flag, instance, is_a, one_state, shown
from geomctrl.control.contracts import Desired, Lyapunov, Reference, desired_at, require_reference
from geomctrl.control.friction.model import FrictionModel, friction_of_law
from geomctrl.control.plant import Plant
from geomctrl.control.subclass_checks import require_called
from geomctrl.control.tracking import (
    Sliding,
    TrackingError,
    gain_matrix,
    sliding_energy,
    sliding_variables,
    tracking_error,
)
from geomctrl.control.tuning import Design, design
from geomctrl.described import ReadableRepr
from geomctrl.errors import ArgumentError
from geomctrl.mechanism.states import require_vectors
from geomctrl.other_names import named_arguments
from geomctrl.robot import Robot
from geomctrl.tracing.numbers import scalar

rule = lru_cache(maxsize=8)(design)  # cached because several laws are often created for the same robot


class Law(ReadableRepr):
    """Base class of bundled laws. Overriding a public method that the law never calls raises ArgumentError."""

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if not cls.__module__.startswith(__package__ or ""):
            require_called(cls, __package__ or "")
        else:
            for name in {"__call__", "lyapunov"} & vars(cls).keys():
                setattr(cls, name, named_arguments()(vars(cls)[name]))


class ModelBased(Law):
    """A controller with a nominal model and a reference; without state unless a subclass defines one."""

    Lambda: np.ndarray

    def __init__(self, robot: Robot, reference: Reference, friction: FrictionModel | None = None):
        if not is_a(robot, Robot):
            raise ArgumentError(f"robot: expected a geomctrl.Robot, got {shown(robot)}")
        self.robot, self.reference = robot, require_reference(reference, robot)
        self.friction = friction_of_law(friction, robot.nv)

    def _gain(self, name: str, gain: ArrayLike | None, of_rule: Callable[[Design], ArrayLike]) -> np.ndarray:
        """The gain matrix (nv, nv): the user's value, or the default of `control.tuning` for None."""
        return gain_matrix(name, of_rule(rule(self.robot)) if gain is None else gain, self.robot.nv)

    def _sliding_gains(self, Lambda: ArrayLike | None, K: ArrayLike | None) -> tuple[np.ndarray, np.ndarray]:
        """Lambda and K (nv, nv); defaults for None."""
        return self._gain("Lambda", Lambda, lambda rule: rule.Lambda), self._gain("K", K, lambda rule: rule.K)

    def _strict_stiffness(self, strict: bool, K: np.ndarray) -> np.ndarray:
        """Lambda K (nv, nv) of the strict Lyapunov function."""
        stiffness = self.Lambda @ K
        if flag("strict", strict):
            require_vectors("strict", self.robot)
            if not np.allclose(stiffness, stiffness.T, rtol=1e-12, atol=0.0):
                raise ArgumentError(f"strict: expected Lambda and K whose product is symmetric, got {stiffness}")
        return stiffness

    def _sliding_lyapunov(
        self, t: float, q: np.ndarray, v: np.ndarray, plant: Plant, K: np.ndarray, stiffness: np.ndarray | None
    ) -> Lyapunov:
        """V = 1/2 s . M s and V' = - s . K s; with the stiffness Lambda K, both with the terms of e in addition."""
        energy, loss = sliding_energy(self.robot, true_robot(plant), q, v, self._desired(t), self.Lambda, K)
        if stiffness is None:
            return Lyapunov(energy, -loss)
        error = self.error(t, q, v)
        force = stiffness.dot(error.e)
        return Lyapunov(energy + scalar(error.e.dot(force)), 2.0 * scalar(force.dot(error.e_rate)) - loss)

    def _compensated(self, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """tau plus the friction torque at velocities v."""
        return tau if self.friction is None else tau + self.friction.torque(one_state("v", v, self.robot.nv), tau)

    def start(self):
        return None

    def _desired(self, t: float) -> Desired:
        """The reference at time t; repeated calls at one time evaluate it once."""
        return desired_at(self.reference, t)

    def error(self, t: float, q: np.ndarray, v: np.ndarray) -> TrackingError:
        """Return the tracking errors at a state.

        Parameters
        ----------
        t : float
            Time [s].
        q, v : array_like, shape (nq,), (nv,)
            State of the robot.

        Returns
        -------
        TrackingError
            Named tuple (e, w, e_rate, v_d, a_d): errors of q and v, the rate of e, and the desired velocity and
            acceleration.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> robot = gc.models.two_link()
        >>> law = gc.controllers.Passivity(robot, gc.references.hold(robot, np.zeros(2)))
        >>> law.error(0.0, [0.1, 0.0], [0.0, 0.0]).e
        array([0.1, 0. ])
        """
        return tracking_error(self.robot, q, v, self._desired(t))

    def sliding(self, t: float, q: np.ndarray, v: np.ndarray) -> Sliding:
        """Return Slotine and Li's variables at a state.

        Parameters
        ----------
        t : float
            Time [s].
        q, v : array_like, shape (nq,), (nv,)
            State of the robot.

        Returns
        -------
        Sliding
            Named tuple (e, v_ref, a_ref, s): v_ref = v_d - Lambda e, its rate, and s = v - v_ref.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> robot = gc.models.two_link()
        >>> law = gc.controllers.Passivity(robot, gc.references.hold(robot, np.zeros(2)), Lambda=5.0)
        >>> law.sliding(0.0, [0.1, 0.0], [0.0, 0.0]).s  # Lambda e
        array([0.5, 0. ])
        """
        return sliding_variables(self.robot, q, v, self._desired(t), self.Lambda)


def true_robot(plant: Plant) -> Robot:
    """The plant's current robot, with which Lyapunov functions are evaluated."""
    return instance("plant", plant, Plant, "a geomctrl.Plant").robot
