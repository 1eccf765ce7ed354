"""Constraints that users write as functions of poses: checked when a system is built and whenever they are called."""

from __future__ import annotations

import numpy as np

from geomctrl.errors import ArgumentError, ModelError
from geomctrl.lie import se3

JACOBIAN_STEP, JACOBIAN_TOLERANCE = 1e-5, 1e-6  # central differences that a user's Jacobian is compared with


def check_user(c, reference, numbers):
    """The number of rows of a user's constraint, once its function and Jacobian agree at the reference poses."""
    label, k = f"constraint {c.name!r}", len(numbers)
    if len(reference) in numbers or len(set(numbers)) < k or not k:
        raise ModelError(f"{label}: bodies: expected different bodies, not the world, got {c.bodies!r}")
    poses = reference[list(numbers)]
    g = _numbers(label, "function", c.functions.function(poses))
    if g.ndim != 1 or not g.size or not np.isfinite(g).all():
        raise ArgumentError(f"{label}: function: expected (r,) finite numbers, got {g!r:.80}")
    J = user_array(label, "jacobian", c.functions.jacobian(poses), (len(g), k, 6))
    numeric = np.zeros_like(J)
    for i in range(k):
        for x in range(6):
            step = np.zeros((k, 6))
            step[i, x] = JACOBIAN_STEP
            there, back = (
                user_array(label, "function", c.functions.function(poses @ se3.exp(s)), g.shape) for s in (step, -step)
            )
            numeric[:, i, x] = (there - back) / (2.0 * JACOBIAN_STEP)
    error = np.abs(J - numeric).max()
    if error > JACOBIAN_TOLERANCE * max(1.0, np.abs(numeric).max()):
        where = np.unravel_index(np.abs(J - numeric).argmax(), J.shape)
        raise ArgumentError(
            f"{label}: jacobian: differs from the function's differences along body-fixed twists by {error:.3g}:"
            f" row {where[0]}, body {c.bodies[where[1]]!r}, component {where[2]}: {J[where]:.6g}, not"
            f" {numeric[where]:.6g}"
        )
    return len(g)


def evaluate_user(c, at, numbers, frames, V, J, g, gdot, bias):
    """The rows `at` of a holonomic constraint c on the bodies `numbers`, into J, g, gdot and bias."""
    label, k, r = f"constraint {c.name!r}", len(numbers), at.stop - at.start
    T, X = matrices(frames[numbers]), V[numbers]
    g[at] = user_array(label, "function", c.functions.function(T.copy()), (r,))
    J[at, :k] = user_array(label, "jacobian", c.functions.jacobian(T.copy()), (r, k, 6))
    gdot[at] = np.einsum("rki,ki->r", J[at, :k], X)
    if c.functions.bias is not None:
        bias[at] = user_array(label, "bias", c.functions.bias(T.copy(), X.copy()), (r,))
    elif (speed := np.abs(X).max()) > 0.0:
        h = 1e-3 / speed  # fourth order: the error is of the order of 1e-12 V^2 and rounding of 1e-13 V^2
        J1, J_1, J2, J_2 = (
            user_array(label, "jacobian", c.functions.jacobian(T @ se3.exp(s * h * X)), (r, k, 6))
            for s in (1.0, -1.0, 2.0, -2.0)
        )
        Jdot = (8.0 * (J1 - J_1) - (J2 - J_2)) / (12.0 * h)
        bias[at] = np.einsum("rki,ki->r", Jdot, X)
    else:
        bias[at] = 0.0


def _numbers(label, what, value):
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{label}: {what}: expected numbers, got {value!r:.80}") from None


def user_array(label, what, value, shape):
    """value as a new array of that shape: a user's function may reuse its buffer."""
    a = _numbers(label, what, value)
    if a.shape != shape or not np.isfinite(a).all():
        raise ArgumentError(f"{label}: {what}: expected finite numbers of shape {shape}, got {a.shape} {value!r:.60}")
    return a


def matrices(frames):
    """(n, 12) rows of [R | p] as (n, 4, 4)."""
    T = np.zeros((len(frames), 4, 4))
    T[:, :3] = frames.reshape(-1, 3, 4)
    T[:, 3, 3] = 1.0
    return T
