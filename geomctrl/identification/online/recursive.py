"""Recursive least squares for a regressor model: one sample at a time, with forgetting, in square-root form.

Without accelerations, the filtered regression of the torque is computed sample by sample. The momentum p = M v = Y_p x
satisfies p' = H x + tau - F x (H x = C^T v - g; F x are friction, offsets and springs). Between two samples, `period` T
apart, with the torque held as drives hold it and the trapezoidal rule for the rest,

    (Y_p,k - Y_p,k-1 - T/2 (H_k + H_k-1 - F_k - F_k-1)) x = T tau_k-1 + O(T^3),

which is linear in x and low-passed by W_k = alpha W_k-1 + (1 - alpha) / T (the bracket), alpha = exp(-bandwidth T); y_k
likewise. W x = y is the torque filtered by bandwidth / (s + bandwidth) (Slotine and Li 1989), for sampled signals.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, choice, instance, number, one_or_each, positive
from geomctrl.errors import ArgumentError
from geomctrl.identification.estimators.least_squares import prior_of
from geomctrl.identification.model.compressed import Compressed
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.robot import Robot
from geomctrl.terms import regressor

from .square_root import forgotten, forgotten_along, taken_in

LARGEST = 1e150  # the squares of larger numbers can not be represented


class MomentumFilter:
    """Computes W (nv, size) and y (nv,) of a `RegressorModel` from samples of q, v and tau; bandwidth [1/s], period
    [s].
    """

    def __init__(self, model: RegressorModel, bandwidth: float, period: float):
        self.model, self.period, self.alpha = model, period, float(np.exp(-bandwidth * period))
        n = model.robot.nv
        self.W, self.y = np.zeros((n, model.size)), np.zeros(n)
        self.end: np.ndarray | None = None  # Y_p + T/2 (H - F) of the last sample
        self.momentum, self.torque = np.zeros(n), np.zeros(n)

    def pushed(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """(W, y) at this sample, whose torque tau acts from now on; None at the first."""
        Y, rate = self._columns(q, v)
        armature_momentum = self.model.known_armature * v
        half = 0.5 * self.period * rate
        first = self.end is None
        if self.end is not None:
            share = (1.0 - self.alpha) / self.period
            self.W = self.alpha * self.W + share * (Y - half - self.end)
            self.y = self.alpha * self.y + share * (self.period * self.torque - armature_momentum + self.momentum)
        self.end, self.torque, self.momentum = Y + half, np.array(tau, float), armature_momentum
        return None if first else (self.W, self.y)

    def _columns(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Y_p and H - F, (nv, size) each."""
        model, robot = self.model, self.model.robot
        Y, rate = np.zeros((2, robot.nv, model.size))
        Y[:, : model.inertial] = regressor.momentum_regressor(robot, q, v)
        rate[:, : model.inertial] = regressor.momentum_rate_regressor(robot, q, v)
        still = model.regressor(q[None], v[None], np.zeros((1, robot.nv)))[0]
        moving = model.regressor(q[None], v[None], v[None])[0]
        rotors = model.by_kind["rotor"]
        Y[:, rotors] = moving[:, rotors]
        rate[:, model.inertial :] = -still[:, model.inertial :]
        return Y, rate


MIN_SINGULAR_VALUE = 1e-10  # relative singular value of R, columns scaled, below which a direction is undetermined


@dataclass(frozen=True, eq=False)
class RecursiveData(Compressed):
    """The data of recursive least squares in the form that estimators accept: R (rows of base parameters) and d.

    Only the sum of residuals over all joints is known: `residuals` and `norms` distribute it evenly.
    """

    R: np.ndarray
    d: np.ndarray
    unexplained: float
    size: float

    @cached_property
    def _projection(self) -> np.ndarray:
        model: Any = self.model
        return model.base.projection

    def system(self, weights: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
        """(A, b): |A x - b|^2 is the weighted sum of squares of the samples."""
        if weights is not None and not np.allclose(weights, 1.0):
            raise ArgumentError("weights: expected None, because samples were already weighted in `update`")
        A = np.vstack((self.R @ self._projection, np.zeros(len(self._projection[0]))))
        return A, np.append(self.d, np.sqrt(self.unexplained))

    def residuals(self, x: np.ndarray) -> np.ndarray:
        n = len(self.counts)
        off = self.R @ (self._projection @ x) - self.d
        return np.full(n, np.sqrt((off @ off + self.unexplained) / n))

    @property
    def norms(self) -> np.ndarray:
        return np.full(len(self.counts), np.sqrt(self.size / len(self.counts)))

    def __add__(self, other: Compressed) -> Compressed:
        raise ArgumentError("other: data of recursive least squares can not be added to other logs")


class RecursiveLeastSquares:
    """Recursive least squares for the base parameters of a model, by QR updates of the square-root information matrix.

    Parameters
    ----------
    model : RegressorModel
        The model.
    forgetting : float
        Factor for the weight of all older samples at each new one, 0 < forgetting <= 1. 1 weighs all samples equally:
        the estimate is that of least squares.
    rule : {"exponential", "directional"}
        "exponential" forgets uniformly. "directional" forgets only in directions with new information (Cao and Schwartz
        2000), so that the estimate persists while the robot is at rest.
    prior : array_like, shape (size,), optional
        Prior parameters x. Default: the model's.
    deviation : float or array_like, shape (nb,), optional
        Standard deviation of the base parameters from the prior, in their units. Exponential forgetting then converges
        to the prior's information and the covariance stays bounded (stabilised forgetting, Kulhavy and Zarrop 1993).
        Default: no prior.
    noise : float or array_like, shape (nv,)
        Standard deviation of the torques [N m], which weighs the joints. Its scale matters only relative to a prior.
    bandwidth, period : float, optional
        Bandwidth [1/s] and sampling period [s]: `update` then needs no accelerations but filters momenta, with torques
        held between samples.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.identification import RecursiveLeastSquares, RegressorModel
    >>> arm, rng = gc.models.two_link().with_payload(0.5), np.random.default_rng(0)
    >>> estimator = RecursiveLeastSquares(RegressorModel(gc.models.two_link()))
    >>> q, v, a = rng.normal(size=(3, 50, 2))
    >>> estimator.update(q, v, a, arm.inverse_dynamics(q, v, a)).shape  # base parameters
    (12,)
    """

    def __init__(
        self,
        model: RegressorModel,
        *,
        forgetting: float = 1.0,
        rule: str = "exponential",
        prior: ArrayLike | None = None,
        deviation: ArrayLike | None = None,
        noise: ArrayLike = 1.0,
        bandwidth: float | None = None,
        period: float | None = None,
    ):
        self.model = instance("model", model, RegressorModel, "a RegressorModel")
        self.forgetting = number("forgetting", forgetting, "a number above 0, at most 1", lambda x: 0.0 < x <= 1.0)
        self.rule = choice("rule", rule, ("exponential", "directional"))
        self.prior, nb, n = prior_of(model, prior), model.base.size, model.robot.nv
        self.noise = one_or_each("noise", noise, n, "a number > 0", positive)
        self.R0 = np.zeros((nb, nb))
        if deviation is not None:
            deviations = one_or_each("deviation", deviation, nb, "a number > 0", positive, "base parameter")
            self.R0 = np.diag(1.0 / deviations)
        self.R, self.d = self.R0.copy(), self.R0 @ self.beta0
        self.samples, self.rows, self.unexplained, self.size = 0, 0.0, 0.0, 0.0
        self.filter = None
        if (bandwidth is None) != (period is None):
            raise ArgumentError("bandwidth, period: expected both, or none for samples with accelerations")
        if bandwidth is not None and period is not None:
            bandwidth = number("bandwidth", bandwidth, "a positive number [1/s]", lambda x: x > 0.0)
            period = number("period", period, "seconds > 0", lambda x: x > 0.0)
            self.filter = MomentumFilter(model, bandwidth, period)

    @property
    def beta0(self) -> np.ndarray:
        """Base parameters (nb,) of the prior."""
        return self.model.base.projection @ self.prior

    # --- samples ------------------------------------------------------------------------------------------------

    def update(self, q: ArrayLike, v: ArrayLike, a: ArrayLike | None, tau: ArrayLike) -> np.ndarray:
        """Process one sample, or several, and return the estimate.

        Parameters
        ----------
        q, v, tau : array_like, shape (n,) or (N, n)
            Configurations, velocities and joint torques of one sample or several.
        a : array_like, shape (n,) or (N, n), or None
            Accelerations; None if momenta are filtered (`bandwidth`).

        Returns
        -------
        ndarray, shape (nb,)
            Base parameters after these samples.
        """
        robot = self.model.robot
        names = {"q": (q, robot.nq), "v": (v, robot.nv), "tau": (tau, robot.nv)}
        if self.filter is None:
            if a is None:
                raise ArgumentError("a: expected accelerations, got None: give bandwidth and period to do without")
            names["a"] = (a, robot.nv)
        elif a is not None:
            raise ArgumentError("a: expected None, because `bandwidth` filters momenta instead of accelerations")
        arrays = {name: np.atleast_2d(checked(name, x, (n,))) for name, (x, n) in names.items()}
        N = len(arrays["q"])
        for name, x in arrays.items():
            if x.ndim != 2 or len(x) != N:
                raise ArgumentError(f"{name}: expected {N} samples, as of q, got shape {x.shape}")
        if self.filter is None:
            self._regressed(arrays["q"], arrays["v"], arrays["a"], arrays["tau"])
        else:
            for q_k, v_k, tau_k in zip(arrays["q"], arrays["v"], arrays["tau"]):
                regression = self.filter.pushed(q_k, v_k, tau_k)
                if regression is not None:
                    self._take(regression[0][:, self.model.base.columns], regression[1])
        return self.values

    def _regressed(self, q, v, a, tau) -> None:
        armature_torques, columns = a * self.model.known_armature, self.model.base.columns
        for first in range(0, len(q), 256):
            s = slice(first, first + 256)
            Y = self.model.regressor(q[s], v[s], a[s])[..., columns]
            if self.forgetting == 1.0:  # all samples at once: the same result up to rounding
                self._take(Y.reshape(-1, Y.shape[-1]), (tau[s] - armature_torques[s]).ravel(), len(Y))
                continue
            for W, y in zip(Y, tau[s] - armature_torques[s]):
                self._take(W, y)

    def _take(self, W: np.ndarray, y: np.ndarray, samples: int = 1) -> None:
        noise = np.tile(self.noise, samples)
        W, y, keep = W / noise[:, None], y / noise, self.forgetting
        if not max(np.abs(W).max(initial=0.0), np.abs(y).max(initial=0.0)) < LARGEST:
            raise ArgumentError(f"q, v, a, tau: expected regressors and torques below {LARGEST:g}, got larger ones")
        if keep < 1.0:
            if self.rule == "directional":
                self.R, self.d = forgotten_along(self.R, self.d, W, keep)
            else:
                now = self.values
                self.R, self.d = forgotten(self.R, self.d, keep)
                if self.R0.any():
                    floor = np.sqrt(1.0 - keep) * self.R0
                    self.R, self.d, _ = taken_in(self.R, self.d, floor, floor @ now)
        self.R, self.d, left = taken_in(self.R, self.d, W, y)
        self.unexplained = keep * self.unexplained + left
        self.size, self.rows = keep * self.size + float(y @ y), keep * self.rows + len(y)
        self.samples += samples

    # --- results --------------------------------------------------------------------------------------------------

    def _determined_svd(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(U, s, Vt, column lengths) of R = U s Vt diag(lengths), for the directions that are determined."""
        length = np.linalg.norm(self.R, axis=0)
        length = np.where(length > 0.0, length, 1.0)
        U, s, Vt = np.linalg.svd(self.R / length)
        seen = s > MIN_SINGULAR_VALUE * max(s[0], 1e-300)
        return U[:, seen], s[seen], Vt[seen], length

    @property
    def values(self) -> np.ndarray:
        """Base parameters (nb,); those of the prior in directions that are not determined yet."""
        U, s, Vt, length = self._determined_svd()
        return self.beta0 + Vt.T @ ((U.T @ (self.d - self.R @ self.beta0)) / s) / length

    @property
    def variance(self) -> float:
        """Variance of the residuals in units of `noise` squared: 1 if `noise` is right; nan with too few samples."""
        freedom = self.rows - len(self.R)
        return self.unexplained / freedom if freedom > 0.0 else np.nan

    @property
    def covariance(self) -> np.ndarray:
        """Covariance (nb, nb) of `values` for torque noise of standard deviation `noise` [N m]; infinite if
        undetermined.

        Multiply it by `variance` for noise of the size of the residuals.
        """
        _, s, Vt, length = self._determined_svd()
        half = (Vt.T / s) / length[:, None]
        out = half @ half.T
        if len(s) < len(length):
            unseen = 1.0 - (Vt**2).sum(0) > 1e-6
            out[unseen, :] = out[:, unseen] = 0.0
            out[unseen, unseen] = np.inf
        return out

    @property
    def std(self) -> np.ndarray:
        """Standard deviations of `values`, from `covariance`."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def x(self) -> np.ndarray:
        """Full parameters (size,) with these `values`, as close to the prior as possible."""
        return self.model.base.lift(self.values, self.prior)

    @property
    def robot(self) -> Robot:
        """The model's robot with the inertial parameters of `x`, whether a rigid body can have them or not."""
        return self.model.robot.with_parameters(self.x[: self.model.inertial], physical=False)

    @property
    def remembered(self) -> Compressed:
        """The processed data, for any estimator that accepts compressed logs: `fit(model, rls.remembered,
        "consistent")` finds the nearest parameters that rigid bodies can have, in the metric of the covariance.
        """
        n = self.model.robot.nv
        counts = np.full(n, max(int(self.rows / n), 1))
        return RecursiveData(self.model, (), counts, self.R, self.d, self.unexplained, self.size)
