"""Friction beyond Coulomb's and viscous: sigmoids and Stribeck's curve, found by nonlinear least squares.

The amplitudes are linear and join the regressor; the speeds at which a curve bends are not. They are found by variable
projection (Golub and Pereyra 1973): for given speeds all linear parameters, inertial ones included, are eliminated
exactly, and what remains is a small problem in the speeds, one an actuator, with an exact Jacobian (Kaufman's). The
result is a model with those speeds fixed, linear again, for any estimator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomctrl.errors import ArgumentError

from .dataset import Dataset
from .errors import ExcitationError
from .model import Curve, RegressorModel

ROWS = 20_000  # samples the nonlinear part looks at; the linear one sees them all


@dataclass(frozen=True, eq=False)
class CurveFit:
    """`model`: with the curves found; `speeds`, `std` [rad/s]: one a curve; `errors`: |residual| / |tau| without,
    with them; `at_bound`: which speeds stopped at a bound, so that the log does not determine them.
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
    """Add one friction curve to each of `actuators` (default all) and find its speed within `bounds` [rad/s].

    start: first guess of all speeds; default: a quarter of each actuator's greatest speed for a sigmoid, a twentieth
    for Stribeck's. Default bounds: from three times the model's smoothing to twice the greatest speed.
    """
    from scipy.optimize import least_squares

    minimise: Any = least_squares

    T = model.transmission
    at = np.arange(len(T)) if actuators is None else np.array(list(actuators), int)
    if not len(at) or at.min() < 0 or at.max() >= len(T):
        raise ArgumentError(f"actuators: expected numbers from 0 to {len(T) - 1}, got {actuators}")
    if shape not in ("sigmoid", "stribeck"):
        raise ArgumentError(f"shape: expected 'sigmoid' or 'stribeck', got {shape!r}")
    model.check(data)
    fastest = np.abs(np.asarray(data.v) @ T[at].T).max(0)
    if not (fastest > 0.0).all():
        raise ExcitationError(f"actuator {int(at[np.argmin(fastest)]) + 1} never moves: its friction can not be seen")
    low, high = bounds or (0.0, np.inf)
    low, high = np.maximum(low, np.maximum(3.0 * model.smoothing, 0.005 * fastest)), np.minimum(high, 2.0 * fastest)
    if not (low < high).all():
        raise ArgumentError(f"bounds: nothing left between {low} and {high} rad/s")
    if start is not None and not (np.isfinite(start) and start > 0.0):
        raise ArgumentError(f"start: expected a speed > 0, got {start}")
    guess = start if start is not None else fastest * (0.25 if shape == "sigmoid" else 0.05)
    guess = np.clip(np.broadcast_to(guess, at.shape), 1.01 * low, 0.99 * high)

    keep = max(1, -(-len(model.rows(data)) // ROWS))
    use = np.concatenate([m[::keep].ravel() for _, _, m, _ in model.stream(data, lambda q, v, a: [])])
    base = model.base.columns
    fixed, tau = (
        np.concatenate(x)[use]
        for x in zip(
            *((Y[::keep][..., base].reshape(-1, len(base)), t[::keep].ravel()) for Y, t, _, _ in model.chunks(data))
        )
    )
    scale = np.linalg.norm(fixed, axis=0)
    U = np.linalg.svd(fixed / np.where(scale > 0.0, scale, 1.0), full_matrices=False)
    U = U[0][:, U[1] > 1e-10 * U[1][0]]
    size = np.linalg.norm(tau)

    def outside(x):  # the part that the linear columns can not explain
        return x - U @ (U.T @ x)

    tau = outside(tau) / size

    def columns(speeds):
        curves = [Curve(int(k), shape, s) for k, s in zip(at, speeds)]

        def values(q, v, a):
            speed = v @ T.T
            parts = [
                f(speed[:, [c.actuator]], model.smoothing) * T[c.actuator]
                for c in curves
                for f in (c.torque, c.torque_by_log_speed)
            ]
            return [np.stack(parts, -1)]

        F = np.concatenate([Y[::keep].reshape(-1, Y.shape[-1]) for (Y,), _, _, _ in model.stream(data, values)])[use]
        return outside(F[:, 0::2]), outside(F[:, 1::2])

    memory: dict[bytes, tuple] = {}

    def solve(theta):
        key = theta.tobytes()
        if key not in memory:
            memory.clear()
            F, dF = columns(np.exp(theta))
            Q, R = np.linalg.qr(F)
            c = np.linalg.lstsq(R, Q.T @ tau, rcond=1e-10)[0]
            slope = -(dF * c)
            memory[key] = (tau - F @ c, slope - Q @ (Q.T @ slope))
        return memory[key]

    solution = minimise(
        lambda x: solve(x)[0],
        np.log(guess),
        lambda x: solve(x)[1],
        bounds=(np.log(low), np.log(high)),
        x_scale="jac",
        max_nfev=60,
    )
    residual, J = solve(solution.x)
    speeds = np.exp(solution.x)
    variance = residual @ residual / max(len(residual) - U.shape[1] - 2 * len(at), 1)
    std = speeds * np.sqrt(np.diag(np.linalg.pinv(J.T @ J)) * variance)
    curves = (*model.curves, *(Curve(int(k), shape, float(s)) for k, s in zip(at, speeds)))
    errors = float(np.linalg.norm(tau)), float(np.linalg.norm(residual))
    at_bound = np.minimum(speeds / low, high / speeds) < 1.02  # the solver stays inside, and stops near
    return CurveFit(model.with_options(curves=curves), speeds, std, errors, at_bound)
