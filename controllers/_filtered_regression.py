"""Adaptive sliding laws that also learn from the filtered torque, without measuring accelerations.

Let p = M v = Y_p pi + b and p' = h + tau - F theta with h = C^T v - g = H pi + h_b. Here b and h_b contain known terms
(armature and bodies that are not adapted), and F theta is friction. The torque, low-pass filtered by
lambda / (s + lambda), equals W times the true parameters (Slotine and Li 1989):

    X' = lambda (lambda Y_p + H - X),  X' = lambda (-F - X) for friction,      W = lambda Y_p - X,  W = -X,
    u' = lambda (tau + lambda b + h_b - u),                                    y = u - lambda b.

The initial error of the filters decays: W p_true - y = delta, delta' = -lambda delta. They start at X = lambda Y_p and
u = lambda b of the reference, so that delta is zero if the robot starts on the reference, or at rest.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import generator, number, one_state
from geomctrl.control.contracts import Command, Lyapunov, Reference
from geomctrl.control.plant import Plant
from geomctrl.controllers._adaptive import AdaptiveSliding
from geomctrl.robot import Robot
from geomctrl.terms import regressor
from geomctrl.tracing.numbers import scalar


class Regression(NamedTuple):
    """W (nv, n) and y (nv,) at a state, and the input part of the filter rates (X' (nv, n), u' (nv,))."""

    W: np.ndarray
    y: np.ndarray
    X_input: np.ndarray
    u_input: np.ndarray


def momentum_columns(law: Any, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(Y (nv, n), H (nv, n), b, h (nv,)): momentum Y p + b and its rate H p + h + tau, for the p of an adaptive law."""
    Y, H = regressor.momentum_regressor(law.robot, q, v), regressor.momentum_rate_regressor(law.robot, q, v)
    b, h = Y.dot(law.fixed_parameters) + law.armature * v, H.dot(law.fixed_parameters)
    Y, H = Y[:, law.columns], H[:, law.columns]
    if law.friction is not None:
        F = law.friction.columns(one_state("v", v, law.robot.nv))
        Y, H = np.hstack((Y, 0.0 * F)), np.hstack((H, -F))
    return Y, H, b, h


class FilteredAdaptation(AdaptiveSliding):
    """`AdaptiveSliding` with filters: state z = (p, X, u, `more` numbers of a subclass). bandwidth: lambda [1/s]."""

    GAINS: ClassVar = {**AdaptiveSliding.GAINS, "bandwidth": "1/s, of the filters"}
    more = 0  # number of further states of a subclass

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        Lambda: ArrayLike | None = None,
        K: ArrayLike | None = None,
        Gamma: ArrayLike | None = None,
        *,
        bandwidth: float = 20.0,
        **options: Any,
    ):
        super().__init__(robot, reference, Lambda, K, Gamma, **options)
        self.bandwidth = number("bandwidth", bandwidth, "a positive number [1/s]", lambda x: x > 0.0)
        self.K_inverse = np.linalg.inv(self.K)
        self.fixed_parameters = self.kept.copy()
        self.fixed_parameters[self.columns] = 0.0
        self.armature = robot.armature

    def start(self):
        """The nominal parameters, and filters in the state of the reference, where W and delta are zero."""
        q, v, _ = self._desired(0.0)
        of = self._regression(q, v, self._with_filters(self.p0))
        return self._with_filters(self.p0, of.W, -of.y)

    def _with_filters(self, p, X: ArrayLike = 0.0, u: ArrayLike = 0.0, more: ArrayLike = 0.0):
        """The state z with these parts."""
        n, nv = len(self.p0), self.robot.nv
        parts = ((X, n * nv), (u, nv), (more, self.more))
        return np.concatenate((p, *(np.broadcast_to(np.ravel(x), size) for x, size in parts)))

    def _split(self, z):
        """(p, X, u, more)."""
        n, nv = len(self.p0), self.robot.nv
        z = one_state("z", z, n + n * nv + nv + self.more)
        return z[:n], z[n : n + n * nv].reshape(nv, n), z[n + n * nv : n + n * nv + nv], z[n + n * nv + nv :]

    def _state(self, z):
        n, nv = len(self.p0), self.robot.nv
        return (
            z if isinstance(z, np.ndarray) and z.shape == (n,) else one_state("z", z, n + n * nv + nv + self.more)[:n]
        )

    def _regression(self, q, v, z) -> Regression:
        lam, (_, X, u, _) = self.bandwidth, self._split(z)
        Y, H, b, h_b = momentum_columns(self, q, v)
        return Regression(lam * Y - X, u - lam * b, lam * Y + H, lam * b + h_b)

    def __call__(self, t, q, v, z):
        p, X, u, more = self._split(z)
        tau, g, e, s = self._law(t, q, v, p)
        of = self._regression(q, v, z)
        filters = (self.bandwidth * (of.X_input - X)).ravel(), self.bandwidth * (tau + of.u_input - u)
        rate, memory = self._learning(g, p, of, more)
        return Command(tau, np.concatenate((rate, *filters, memory)), {"e": e, "s": s})

    def _learning(self, g, p, of: Regression, more):
        """(p', rate of the further states), for g = Y^T s."""
        raise NotImplementedError

    def _unknown(self, q, v, z, plant: Plant):
        """(W (nv, n), delta (nv,)) at a state, computed from the true parameters."""
        of = self._regression(q, v, z)
        return of.W, of.W.dot(self._true(plant)) - of.y

    def true_parameters(self, plant: Plant) -> np.ndarray:
        """Return the plant's parameters, with filters in steady state at the beginning of the reference.

        Parameters
        ----------
        plant : Plant
            The true plant.

        Returns
        -------
        array
            A state of the controller.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> robot = gc.models.two_link()
        >>> law = gc.controllers.Composite(robot, gc.references.hold(robot, np.zeros(2)))
        >>> heavier = robot.with_payload(1.0)
        >>> bool(np.allclose(law.estimate(law.true_parameters(gc.Plant(heavier))), heavier.parameters))
        True
        """
        return self.settled(0.0, plant)

    def settled(self, t: float, plant: Plant) -> np.ndarray:
        """Return the state with V = 0 on the reference.

        Parameters
        ----------
        t : float
            Time [s].
        plant : Plant
            The true plant.

        Returns
        -------
        array
            A state of the controller; filters are in steady state if the reference rests at that time.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> robot = gc.models.two_link()
        >>> law, plant = gc.controllers.Composite(robot, gc.references.hold(robot, np.zeros(2))), gc.Plant(robot)
        >>> z = law.settled(0.0, plant)
        >>> float(law.lyapunov(0.0, np.zeros(2), np.zeros(2), z, plant)[0])
        0.0
        """
        q, v, _ = self._desired(t)
        true = self._true(plant)
        of = self._regression(q, v, self._with_filters(true))
        W = of.W - of.X_input
        return self._with_filters(true, of.X_input, W.dot(true) - of.y, self._settled_memory(W, true))

    def _settled_memory(self, W, true) -> np.ndarray:
        return np.zeros(self.more)

    def sample_state(self, rng: np.random.Generator, plant: Plant) -> np.ndarray:
        """Return random estimates and filter states for tests.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness.
        plant : Plant
            The true plant.

        Returns
        -------
        array
            A state of the controller; the states of the filters need not correspond to a motion.

        Examples
        --------
        >>> import numpy as np
        >>> import geomctrl as gc
        >>> robot = gc.models.two_link()
        >>> law = gc.controllers.Composite(robot, gc.references.hold(robot, np.zeros(2)))
        >>> z = law.sample_state(np.random.default_rng(0), gc.Plant(robot))
        >>> z.shape == law.start().shape
        True
        """
        generator("rng", rng)
        true, nv = self._true(plant), self.robot.nv
        size = np.where(true != 0.0, np.abs(true), np.median(np.abs(true)))
        p = true + 0.5 * size * rng.normal(size=true.shape)
        X = 5.0 * rng.normal(size=(nv, len(p)))
        u = -X.dot(true) + rng.normal(size=nv)
        return self._with_filters(p, X, u, self._sampled_memory(rng, true))

    def _sampled_memory(self, rng: np.random.Generator, true) -> np.ndarray:
        return np.zeros(self.more)


class RememberingAdaptation(FilteredAdaptation):
    """`FilteredAdaptation` with a memory Phi (n, n), eta (n,), omega of the past regression, with forgetting [1/s]:

    Phi' = W^T K^-1 W - forgetting Phi,  eta' = W^T K^-1 y - forgetting eta,  omega' = y . K^-1 y - forgetting omega

    Hence Phi p_true = eta except for the initial error of the filters (Kreisselmeier 1977). That error is bounded by
    D = p_true . Phi p_true - 2 p_true . eta + omega with D' = delta . K^-1 delta - forgetting D, which satisfies
    x . Phi x + 2 x . (Phi p_true - eta) + D >= 0 for all x. weight: of the memory in p', see the subclasses.
    """

    def __init__(
        self,
        robot: Robot,
        reference: Reference,
        Lambda: ArrayLike | None = None,
        K: ArrayLike | None = None,
        Gamma: ArrayLike | None = None,
        *,
        weight: float = 5.0,
        forgetting: float = 1.0,
        **options: Any,
    ):
        super().__init__(robot, reference, Lambda, K, Gamma, **options)
        self.weight = number("weight", weight, "a positive number [1/s]", lambda x: x > 0.0)
        self.forgetting = number("forgetting", forgetting, "a positive number [1/s]", lambda x: x > 0.0)
        self.more = len(self.p0) ** 2 + len(self.p0) + 1

    def _memory(self, more):
        """(Phi, eta, omega)."""
        n = len(self.p0)
        return more[: n * n].reshape(n, n), more[n * n : n * n + n], more[-1]

    def _learning(self, g, p, of, more):
        Phi, eta, _ = self._memory(more)
        scaled = of.W.T.dot(self.K_inverse)
        seen = (scaled.dot(of.W).ravel(), scaled.dot(of.y), [of.y.dot(self.K_inverse).dot(of.y)])
        return self._gradient(g) - self._pull(p, Phi, eta), np.concatenate(seen) - self.forgetting * more

    def _pull(self, p, Phi, eta):
        """The contribution of the memory to -p'."""
        raise NotImplementedError

    def _bound(self) -> float:
        """weight times the factor of D in the bound on V'."""
        raise NotImplementedError

    def lyapunov(self, t, q, v, z, plant) -> Lyapunov:
        value, loss = self._sliding_energy(t, q, v, z, plant)
        p, _, _, more = self._split(z)
        Phi, eta, omega = self._memory(more)
        true, delta = self._true(plant), self._unknown(q, v, z, plant)[1]
        D = scalar(true.dot(Phi).dot(true) - 2.0 * true.dot(eta) + omega)
        coming = 0.5 * scalar(delta.dot(self.K_inverse).dot(delta)) / self.bandwidth
        learnt = scalar(self._weighted(p - true).dot(self._pull(p, Phi, eta)))
        return Lyapunov(value + self._bound() / self.forgetting * (D + coming), -loss - learnt - self._bound() * D)

    def _settled_memory(self, W, true) -> np.ndarray:
        Phi = W.T.dot(self.K_inverse).dot(W) / self.forgetting
        return np.concatenate((Phi.ravel(), Phi.dot(true), [true.dot(Phi).dot(true)]))

    def _sampled_memory(self, rng: np.random.Generator, true) -> np.ndarray:
        W = rng.normal(size=(len(true) + 1, len(true)))
        y = W.dot(true) + 0.1 * rng.normal(size=len(W))
        return np.concatenate((W.T.dot(W).ravel(), W.T.dot(y), [y.dot(y)]))
