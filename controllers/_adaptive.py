"""`AdaptiveSliding`: the base class of adaptive sliding laws, with their torque, parameters and adaptation gains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import FLOAT64, checked, instance, listed, number, one_state, shown
from geomctrl.control.contracts import Command, Reference
from geomctrl.control.friction import Friction, FrictionModel
from geomctrl.control.friction.model import friction_of_law
from geomctrl.control.plant import Plant
from geomctrl.control.tracking import adaptive_law, gain_matrix, sliding_energy
from geomctrl.control.tuning import RATES, Tuning
from geomctrl.controllers._model_based import ModelBased, true_robot
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.mechanism import inertia
from geomctrl.robot import Robot
from geomctrl.terms.base_parameters import base_parameters
from geomctrl.terms.dynamics import Form, form_number
from geomctrl.tracing.numbers import scalar

RATE = 20.0  # default rate of adaptation; lowered if a step can not follow it


class AdaptiveSliding(ModelBased):
    """Base class for tau = Y(q, v, a_ref, v_ref) p + armature a_ref - K s with an estimate p; subclasses define p'.

    v_ref = v_d - Lambda e and s = v - v_ref, as in `Passivity`. The state z is the estimate of the adapted parameters.

    Parameters
    ----------
    robot : Robot
        The nominal model. It provides the kinematics, the armature (assumed exact) and the initial estimate p_0.
    reference : Reference
        The desired motion.
    Lambda, K : float, (nv,) or (nv, nv)
        As in `Passivity`, with the same defaults.
    Gamma : float, (n,) or (n, n)
        Adaptation gain, symmetric positive definite. The default scales `rate` by the mass and size of each body.
    adapt : "links", "base" or list of str
        Adapted parameters: "links" means ten of each body; a list names bodies, and all others keep the model's values;
        "base" means the base parameters of the robot in the reference-velocity dynamics.
    friction : Friction, optional
        If given, its viscous and Coulomb coefficients (nv each) are adapted too, starting from these values.
    rate : float
        Scale of the default Gamma [1/s].
    """

    GAINS: ClassVar = {**RATES, "rate": "adaptation rate"}

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        Lambda: ArrayLike | None = None,
        K: ArrayLike | None = None,
        Gamma: ArrayLike | None = None,
        *,
        adapt: str | Sequence[str] = "links",
        friction: FrictionModel | None = None,
        rate: float = 1.0,
        form: Form = "ploen",
    ):
        super().__init__(robot, reference, friction)
        friction_of_law(friction, robot.nv, linear=True)
        form_number(form)
        rate = number("rate", rate, "a positive number", lambda x: x > 0.0)
        self.Lambda, self.K = self._sliding_gains(Lambda, K)
        self.form: Form = form
        nominal = robot.parameters.ravel()
        self.columns, self.projection = _adapted(robot, adapt, form)
        self.nominal = nominal[self.columns] if self.projection is None else self.projection @ nominal
        # values of parameters that are not adapted
        self.kept = nominal if self.projection is None else np.zeros_like(nominal)
        self.p0 = self.nominal if friction is None else np.concatenate((self.nominal, friction.parameters(robot.nv)))
        units = squared_units(robot, self.projection)
        units = units[self.columns] if self.projection is None else units
        self.units = np.concatenate((units, np.ones(len(self.p0) - len(self.nominal))))
        if Gamma is None:
            Gamma = rate * self.units
        self.Gamma = gain_matrix("Gamma", Gamma, len(self.p0))
        diagonal = np.diag(self.Gamma)
        decoupled = np.array_equal(np.diag(diagonal), self.Gamma)  # products with a diagonal Gamma are elementwise
        self.minus_gamma = -diagonal if decoupled else None
        self._inverse: Any = None if decoupled else np.linalg.inv(self.Gamma)

    @property
    def Gamma_inverse(self) -> np.ndarray:
        """The inverse of Gamma, shape (n, n)."""
        return self._weighted(np.eye(len(self.p0)))

    @classmethod
    def tuned(cls, tuning: Tuning) -> Self:
        """Return the law with gains for a robot.

        Parameters
        ----------
        tuning : object
            Model, motion and gains, as `geomctrl track` passes them: rule 9 of `geomctrl.Controller`.

        Returns
        -------
        Controller
            Lambda and K = kappa_i D_i as for `Passivity`; the fastest `rate` that a step can follow; zero friction.

        Examples
        --------
        >>> import geomctrl as gc
        >>> from geomctrl.control.tuning import Tuning, design
        >>> robot = gc.models.two_link()
        >>> hold = gc.references.hold(robot, [0.0, 0.0])
        >>> law = gc.controllers.Composite.tuned(Tuning(robot, hold, design(robot), seconds=1.0))
        >>> law.K.shape
        (2, 2)
        """
        instance("tuning", tuning, Tuning, "a Tuning")
        load = [tuning.load_body or tuning.robot.body_names[-1]]
        options: dict[str, Any] = {"adapt": load if tuning.adapt == "load" else tuning.adapt}
        options |= {name: gain for name, gain in tuning.gains.items() if name not in AdaptiveSliding.GAINS}
        if tuning.friction is not None:
            zero = np.zeros(tuning.robot.nv)
            options["friction"] = Friction(zero, zero, tuning.friction.smoothing)

        def law(rate: float) -> Self:
            return cls(tuning.robot, tuning.motion, tuning.Lambda, tuning.K, rate=rate, **options)

        if "rate" in tuning.gains:
            return law(tuning.gains["rate"])
        return law(_adaptation_rate(law(RATE), tuning.rule.dt, tuning.seconds))

    def _stable_fraction(self, Y: np.ndarray, M: np.ndarray, dt: float) -> float:
        """Fraction of Gamma for which the dynamics of adaptation, M s'' = - Y Gamma Y^T s, is slower than 1 / dt."""
        fastest = float(np.linalg.eigvals(np.linalg.solve(M, Y @ self.Gamma @ Y.T)).real.max())
        return 1.0 / max(fastest * dt**2, 1e-300)

    def start(self):
        """The parameters of the nominal model."""
        return self.p0.copy()

    def _state(self, z):
        """z as an array with the shape of `start()`, or as symbols; numbers are not checked."""
        if type(z) is np.ndarray and z.dtype is FLOAT64 and z.shape == self.p0.shape:
            return z
        return one_state("z", z, len(self.p0))

    def _parameters(self, z):
        if len(self.columns) == len(self.kept):
            return z if self.friction is None else self._state(z)[: len(self.columns)]
        z, p = self._state(z), np.array(self.kept)
        p[self.columns] = z[: len(self.columns)]
        return p

    def _law(self, t, q, v, z):
        """(tau (nv,), Y^T s of the adapted parameters, e, s), with friction columns, computed in O(n) without Y."""
        desired, p = self._desired(t), self._parameters(z)
        try:
            tau, g, e, s = adaptive_law(self.robot, p, q, v, desired, self.Lambda, self.K, self.form)
        except ArgumentError:
            checked("z", self._state(z), self.p0.shape)  # p has a shape error only if z has one
            raise
        if len(self.columns) < len(g):
            g = g[self.columns]
        if self.friction is not None:
            z, columns = self._state(z), self.friction.columns(one_state("v", v, self.robot.nv))
            if type(z) is np.ndarray and not math.isfinite(z.dot(z)):
                checked("z", z, z.shape)
            tau, g = tau + columns.dot(z[len(self.columns) :]), np.concatenate((g, s.dot(columns)))
        return tau, g, e, s

    def __call__(self, t, q, v, z):
        tau, g, e, s = self._law(t, q, v, z)
        return Command(tau, self._rate(g, s, z), {"e": e, "s": s})

    def _rate(self, g, s, z):
        """p', for g = Y^T s."""
        raise NotImplementedError

    def _gradient(self, g):
        """-Gamma g."""
        return self.minus_gamma * g if self.minus_gamma is not None else -self.Gamma.dot(g)

    def true_parameters(self, plant) -> np.ndarray:
        """The true parameters of the plant, the value of z that the estimate should reach."""
        return self._true(plant)

    def _true(self, plant) -> np.ndarray:
        """The adapted parameters of the plant."""
        p = true_robot(plant).parameters.ravel()
        p = p[self.columns] if self.projection is None else self.projection.dot(p)
        if self.friction is None:
            return p
        friction = plant.friction_parameters
        if len(p) + len(friction) != len(self.p0):
            raise ArgumentError(
                f"plant: expected friction with the parameters of {self.friction!r}, got {plant.friction!r}"
            )
        return np.concatenate((p, friction))

    def estimate(self, z) -> np.ndarray:
        """Return the inertial parameters of all bodies with an estimate inserted.

        Parameters
        ----------
        z : array (n,)
            State of the controller.

        Returns
        -------
        array (nbodies, 10)

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> robot = gc.models.two_link()
        >>> law = gc.controllers.Composite(robot, gc.references.hold(robot, np.zeros(2)))
        >>> bool(np.allclose(law.estimate(law.start()), robot.parameters))  # starts with the model's
        True
        """
        return np.array(self._parameters(checked("z", self._state(z), self.p0.shape))).reshape(-1, 10)

    def _sliding_energy(self, t, q, v, z, plant):
        """(1/2 s . M s + 1/2 |p - p_true|^2, s . K s), terms of the Lyapunov functions of these laws."""
        energy, loss = sliding_energy(self.robot, true_robot(plant), q, v, self._desired(t), self.Lambda, self.K)
        value = energy + 0.5 * self._squared(z, plant)
        if type(value) is float and not math.isfinite(value):
            checked("z", z, self.p0.shape)
        return value, loss

    def _squared(self, z, plant: Plant):
        """|p - p_true|^2 in the norm of Gamma^-1."""
        error = self._state(z) - self._true(plant)
        return scalar(error.dot(self._weighted(error)))

    def _weighted(self, error):
        """Gamma^-1 error, by a division, with which proofs know that Gamma^-1 Gamma = 1."""
        return (error.T / -self.minus_gamma).T if self.minus_gamma is not None else self._inverse.dot(error)


def _adapted(robot: Robot, adapt: str | Sequence[str], form: Form) -> tuple[np.ndarray, np.ndarray | None]:
    """(Indices of the adapted columns, the matrix from all parameters to the adapted ones if these are not a part)."""
    if isinstance(adapt, str) and adapt == "base":
        base = base_parameters(robot, form)
        return base.columns, base.projection
    bodies = range(robot.nbodies) if isinstance(adapt, str) and adapt == "links" else numbers_of_bodies(robot, adapt)
    return np.concatenate([np.arange(10 * i, 10 * i + 10) for i in bodies]), None


def numbers_of_bodies(robot: Robot, names: Sequence[str]) -> list[int]:
    expected = "'links', 'base' or a list of body names"
    if not (names := listed("adapt", names, expected)):
        raise ArgumentError(f"adapt: expected {expected}, got none")
    for name in names:
        if not isinstance(name, str) or name not in robot.body_names:
            bodies = ", ".join(map(repr, robot.body_names))
            raise NameNotFoundError(f"adapt: no body named {shown(name)}; known: {bodies}")
    return sorted(robot.body_names.index(name) for name in names)


def squared_units(robot: Robot, projection: np.ndarray | None = None) -> np.ndarray:
    """Squares of the natural units of parameters, (m, m l, m l^2) of the robot's mean body.

    projection: the matrix from all parameters to these. Gains proportional to the units adapt all estimates at
    comparable relative rates.
    """
    m, second_moments = float(robot.parameters[:, 0].mean()), inertia.pseudo(robot.parameters)[:, :3, :3]
    l = float(np.sqrt(np.mean(np.trace(second_moments, axis1=1, axis2=2)) / max(m, 1e-9)))
    unit = np.array([1.0] + [l] * 3 + [l * l] * 6)
    weights = np.tile(unit**2, robot.nbodies)
    return weights if projection is None else (projection**2 @ weights) / np.maximum((projection**2).sum(1), 1e-12)


def _adaptation_rate(law: AdaptiveSliding, dt: float, seconds: float) -> float:
    """RATE, reduced if a step of dt can not follow the adaptation along the motion."""
    share = 1.0
    for t in np.linspace(0.0, seconds, 40):
        q, v, a = law.reference(t)
        Y = law.robot.regressor(q, v, a, v, law.form)[:, law.columns]
        if law.friction is not None:
            Y = np.hstack((Y, law.friction.columns(v)))
        share = min(share, law._stable_fraction(Y, law.robot.mass_matrix(q), dt))
    return RATE * share
