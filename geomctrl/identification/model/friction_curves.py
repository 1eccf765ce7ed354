"""Friction beyond Coulomb and viscous: sigmoid and Stribeck curves by least squares, and friction models of plants.

The amplitudes of curves are linear and join the regressor; the speeds at which a curve bends are not. Variable
projection (Golub and Pereyra 1973) finds them: for given speeds all linear parameters, including the inertial ones, are
eliminated exactly. A small problem in the speeds remains, one for each actuator, with an exact Jacobian (Kaufman's).
The result is a model with fixed speeds, which is linear again, for any estimator.

A friction model of a plant that is linear in its parameters is given as one of the columns of a `RegressorModel`. Those
of other models, for example LuGre, are found by `fit_friction`, which simulates the model's state along measured
velocities and compares its torque with the difference of measured torques and inverse dynamics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import (
    checked,
    choice,
    exactly,
    function,
    instance,
    listed,
    number,
    shown,
    without_overflow_warnings,
)
from geomctrl.control.friction.model import FrictionModel
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import ExcitationError
from geomctrl.identification.logs import Dataset

from .columns import SHAPES, Curve, chosen_actuators
from .regressor_model import RegressorModel

MAX_ROWS = 20_000  # largest number of samples in the nonlinear part; the linear part uses all


@dataclass(frozen=True, eq=False)
class CurveFit:
    """The result of `fit_curves`.

    Attributes
    ----------
    model : RegressorModel
        The model with the curves.
    speeds, std : ndarray
        Speed of each curve and its standard deviation [rad/s].
    errors : tuple of float
        |residual| / |tau| without and with the curves.
    at_bound : ndarray of bool
        Speeds that stopped at a bound, so that the log does not determine them.
    """

    model: RegressorModel
    speeds: np.ndarray
    std: np.ndarray
    errors: tuple[float, float]
    at_bound: np.ndarray


def fit_curves(
    model: RegressorModel,
    data: Dataset,
    shape: str = "sigmoid",
    actuators: Sequence[int] | None = None,
    start: float | None = None,
    bounds: tuple[float, float] | None = None,
) -> CurveFit:
    """Add a friction curve to each actuator and find its speed by nonlinear least squares.

    Parameters
    ----------
    model : RegressorModel
        The model without these curves.
    data : Dataset
        A filtered log.
    shape : {"sigmoid", "stribeck"}
        Default "sigmoid".
    actuators : sequence of int, optional
        Actuator numbers. Default: all.
    start : float, optional
        First guess of all speeds [rad/s]. Default: a quarter of each actuator's maximum speed for a sigmoid, a
        twentieth for Stribeck's curve.
    bounds : tuple of float, optional
        Bounds of the speeds [rad/s]. Default: from three times the model's smoothing to twice the maximum speed.

    Returns
    -------
    CurveFit

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.identification import Curve, Dataset, RegressorModel, fit_curves
    >>> arm, rng = gc.models.two_link(), np.random.default_rng(0)
    >>> q, v, a = rng.normal(size=(3, 400, 2))
    >>> tau = arm.inverse_dynamics(q, v, a) + 2.0 * np.tanh(v / 0.5)
    >>> log = Dataset(np.arange(400) / 100.0, q, tau, v=v, a=a)
    >>> fit_curves(RegressorModel(arm, smoothing=0.01), log, "sigmoid").model.size
    28
    """
    from scipy.optimize import least_squares

    minimise: Any = least_squares
    instance("model", model, RegressorModel, "a RegressorModel")
    n = len(model.transmission)
    numbers = np.arange(n) if actuators is None else chosen_actuators("actuators", listed("actuators", actuators), n)
    if not len(numbers):
        raise ArgumentError(f"actuators: expected numbers from 0 to {n - 1}, got none")
    choice("shape", shape, SHAPES)
    model._check(data)
    start = None if start is None else number("start", start, "a speed > 0", lambda x: x > 0.0)
    bounds = (0.0, np.inf) if bounds is None else _bounds(bounds)
    guess, low, high = _guess(model, data, shape, numbers, start, bounds)
    projected = _Projected(model, data, shape, numbers)
    solution = minimise(
        projected.residual,
        np.log(guess),
        projected.jacobian,
        bounds=(np.log(low), np.log(high)),
        x_scale="jac",
        max_nfev=60,
    )
    speeds = np.exp(solution.x)
    curves = (*model.curves, *projected.curves(speeds))
    errors = float(np.linalg.norm(projected.tau)), float(np.linalg.norm(projected.residual(solution.x)))
    at_bound = np.minimum(speeds / low, high / speeds) < 1.02  # the solver stays inside the bounds, but stops near them
    std = speeds * projected.std_of_logarithms(solution.x)
    return CurveFit(model._with_options(curves=curves), speeds, std, errors, at_bound)


def _bounds(bounds) -> tuple[float, float]:
    ends = checked("bounds", bounds, (2,), finite=False)
    low, high = ends.ravel()[:2].tolist()
    if ends.ndim != 1 or not 0.0 <= low < high:
        raise ArgumentError(f"bounds: expected two speeds, 0 <= low < high, got {shown(bounds)}")
    return low, high


def _guess(model, data, shape, numbers, start, bounds) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(first speeds, lower, upper bounds)."""
    fastest = np.abs(np.asarray(data.v) @ model.transmission[numbers].T).max(0)
    if not (fastest > 0.0).all():
        raise ExcitationError(
            f"actuator {int(numbers[np.argmin(fastest)]) + 1} never moves: its friction can not be seen"
        )
    low, high = bounds
    low, high = np.maximum(low, np.maximum(3.0 * model.smoothing, 0.005 * fastest)), np.minimum(high, 2.0 * fastest)
    if not (low < high).all():
        raise ArgumentError(f"bounds: nothing left between {low} and {high} rad/s")
    guess = start if start is not None else fastest * (0.25 if shape == "sigmoid" else 0.05)
    return np.clip(np.broadcast_to(guess, numbers.shape), 1.01 * low, 0.99 * high), low, high


class _Projected:
    """The residual after elimination of all linear parameters, as a function of log(speeds)."""

    def __init__(self, model: RegressorModel, data: Dataset, shape: str, actuators: np.ndarray):
        self.model, self.data, self.shape, self.actuators = model, data, shape, actuators
        self.keep = max(1, -(-len(model._rows(data)) // MAX_ROWS))
        base = model.base.columns
        chunks = model._stream(data, lambda q, v, a: [model.regressor(q, v, a)[..., base]])
        parts = [(Y[:: self.keep], t[:: self.keep], m[:: self.keep]) for (Y,), t, m, _ in chunks]
        fixed, tau, self.use = (np.concatenate([x.reshape(-1, *x.shape[2:]) for x in column]) for column in zip(*parts))
        fixed, tau = fixed[self.use], tau[self.use]
        scale = np.linalg.norm(fixed, axis=0)
        U, s, _ = np.linalg.svd(fixed / np.where(scale > 0.0, scale, 1.0), full_matrices=False)
        self.U = U[:, s > 1e-10 * s[0]]
        self.tau = self._outside(tau) / np.linalg.norm(tau)
        self._last: tuple[bytes, tuple[np.ndarray, np.ndarray]] | None = None

    def curves(self, speeds: np.ndarray) -> list[Curve]:
        return [Curve(int(k), self.shape, float(s)) for k, s in zip(self.actuators, speeds)]

    def residual(self, theta: np.ndarray) -> np.ndarray:
        return self._solved(theta)[0]

    def jacobian(self, theta: np.ndarray) -> np.ndarray:
        return self._solved(theta)[1]

    def std_of_logarithms(self, theta: np.ndarray) -> np.ndarray:
        residual, J = self._solved(theta)
        variance = residual @ residual / max(len(residual) - self.U.shape[1] - 2 * len(self.actuators), 1)
        return np.sqrt(np.diag(np.linalg.pinv(J.T @ J)) * variance)

    def _outside(self, x):
        """The part that the linear columns can not explain."""
        return x - self.U @ (self.U.T @ x)

    def _columns(self, speeds):
        """Columns of the curves for unit amplitudes, and their derivatives with respect to log(speed)."""
        T, smoothing = self.model.transmission, self.model.smoothing
        curves = self.curves(speeds)

        def values(q, v, a):
            speed = v @ T.T
            parts = [
                f(speed[:, [c.actuator]], smoothing) * T[c.actuator]
                for c in curves
                for f in (c._torque, c._torque_by_log_speed)
            ]
            return [np.stack(parts, -1)]

        rows = self.model._stream(self.data, values)
        F = np.concatenate([Y[:: self.keep].reshape(-1, Y.shape[-1]) for (Y,), _, _, _ in rows])[self.use]
        return self._outside(F[:, 0::2]), self._outside(F[:, 1::2])

    def _solved(self, theta):
        """(residual, its Jacobian, Kaufman's); cached, because the solver requests them one after the other."""
        key = theta.tobytes()
        if self._last is None or self._last[0] != key:
            F, dF = self._columns(np.exp(theta))
            Q, R = np.linalg.qr(F)
            c = np.linalg.lstsq(R, Q.T @ self.tau, rcond=1e-10)[0]
            slope = -(dF * c)
            self._last = key, (self.tau - F @ c, slope - Q @ (Q.T @ slope))
        return self._last[1]


# --- friction models of plants ---------------------------------------------------------------------------------------


def _torques(friction: FrictionModel, t: np.ndarray, v: np.ndarray, load: np.ndarray) -> np.ndarray:
    x, out = friction.start(v[0]), np.empty(v.shape)
    for k in range(len(t)):
        out[k] = friction.torque(v[k], load[k], x)
        if x is not None and k + 1 < len(t):
            x = _advanced(friction, x, t[k + 1] - t[k], v[k : k + 2], load[k : k + 2])
    return out


def _advanced(friction: FrictionModel, x: Any, dt: float, v: np.ndarray, load: np.ndarray) -> Any:
    """The state after a sample, in steps that change it by an eighth at most."""
    fastest = 0.0
    for end in (0, 1):
        change = np.abs(friction.state_rate(v[end], load[end], x) - friction.state_rate(v[end], load[end], 0.0 * x))
        fastest = max(fastest, float((change / np.maximum(np.abs(x), 1e-300)).max()))
    steps = min(max(int(np.ceil(8.0 * dt * fastest)), 1), 100)
    h = dt / steps
    for j in range(steps):
        first, middle = ((1.0 - s) * v[0] + s * v[1] for s in (j / steps, (j + 0.5) / steps))
        loads = [(1.0 - s) * load[0] + s * load[1] for s in (j / steps, (j + 0.5) / steps)]
        half = x + 0.5 * h * np.asarray(friction.state_rate(first, loads[0], x))
        x = x + h * np.asarray(friction.state_rate(middle, loads[1], half))
    return x


@dataclass(frozen=True, eq=False)
class FrictionFit:
    """`model` with the estimated parameters x; std, their standard deviations for white noise; error, the root mean
    square of the residual torques [N m, N]; reason, why the search ended."""

    model: FrictionModel
    x: np.ndarray
    std: np.ndarray
    error: float
    reason: str


@without_overflow_warnings
def fit_friction(
    make: Callable[[np.ndarray], FrictionModel],
    start: ArrayLike,
    t: ArrayLike,
    v: ArrayLike,
    torque: ArrayLike,
    load: ArrayLike | None = None,
) -> FrictionFit:
    """Estimate positive parameters of a friction model, with or without a state, from measured friction torques.

    Parameters
    ----------
    make : function
        Returns the model with parameters x (p,), for example `lambda x: LuGre(*x)`. If it raises ArgumentError, only
        the trial ends.
    start : (p,)
        Initial parameters, > 0; the search uses their logarithms.
    t, v : (N,), (N, nv)
        Times [s] and measured joint velocities [rad/s, m/s].
    torque : (N, nv)
        Friction torques [N m, N]: the measured torques minus the inverse dynamics of the robot.
    load : (N, nv), optional
        Torques that the actuators transmit, for models that depend on them; default zero.

    Returns
    -------
    FrictionFit

    Raises
    ------
    ArgumentError
        An argument is invalid, or `make(start)` fails.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> t = np.linspace(0.0, 2.0, 400)
    >>> v = np.sin(np.pi * t)[:, None]
    >>> torque = np.array([gc.Friction(0.5, 2.0, smoothing=0.1).torque(x) for x in v])
    >>> result = gc.identification.fit_friction(lambda x: gc.Friction(*x, smoothing=0.1), [1.0, 1.0], t, v, torque)
    >>> np.round(result.x, 4)
    array([0.5, 2. ])
    """
    from scipy.optimize import least_squares  # slow to import

    function("make", make, "of the parameters (p,)", 1)
    first = checked("start", start, ())
    if first.ndim != 1 or not first.size or (first <= 0.0).any():
        raise ArgumentError(f"start: expected parameters (p,) > 0, got {shown(start)}")
    t, v, load = _motion(t, v, load)
    torque = exactly("torque", torque, v.shape)
    instance("make", make(first), FrictionModel, "a function that returns a FrictionModel").check(v.shape[1])
    worst = 1e3 * float(np.abs(torque).max()) + 1.0

    def residual(theta: np.ndarray) -> np.ndarray:
        try:
            error = _torques(make(np.exp(theta)), t, v, load) - torque
        except ArgumentError:
            return np.full(torque.size, worst)
        return np.clip(np.nan_to_num(error, nan=worst), -worst, worst).ravel()

    minimise: Any = least_squares
    solution = minimise(residual, np.log(first), x_scale="jac", max_nfev=100)
    x, J = np.exp(solution.x), solution.jac
    variance = 2.0 * solution.cost / max(torque.size - len(x), 1)
    std = x * np.sqrt(np.diag(np.linalg.pinv(J.T @ J)) * variance)
    error = float(np.sqrt(2.0 * solution.cost / torque.size))
    return FrictionFit(make(x), x, std, error, str(solution.message))


def _motion(t: ArrayLike, v: ArrayLike, load: ArrayLike | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """t (N,), v and load (N, nv), checked."""
    times = checked("t", t, ())
    if times.ndim != 1 or len(times) < 2 or not (np.diff(times) > 0.0).all():
        raise ArgumentError(f"t: expected times (N,) that increase, got {shown(t)}")
    velocities = checked("v", v, ())
    if velocities.ndim != 2 or len(velocities) != len(times):
        raise ArgumentError(f"v: expected shape ({len(times)}, nv), got {velocities.shape}")
    return times, velocities, np.zeros(velocities.shape) if load is None else exactly("load", load, velocities.shape)
