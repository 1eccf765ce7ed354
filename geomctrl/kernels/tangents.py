"""Numbers with tangents, with which a kernel computes its results and their rates of change.

A number x that moves at the rate dx is the complex number x + i h dx with h = TANGENT_STEP. Products and quotients of
such numbers have their rate, times h, in the imaginary part (the complex step of Squire and Trapp 1998). The rate is
exact to round-off, because nothing is subtracted and h^2 is below all digits. On symbols such a number is a pair of
them, see `tracing.duals`.
"""

from typing import Any

from .primitives import primitive
from .screws import Pose, Twist, cross, rot

# Its square vanishes for speeds up to 1e60, and it does not underflow for speeds down to 1e-200.
TANGENT_STEP = 2.0**-250


@primitive
def moving(x, dx) -> Any:
    """x + i TANGENT_STEP dx."""
    return complex(x, TANGENT_STEP * dx)


@primitive
def place_of(x):
    """x without its tangent."""
    return x.real


@primitive
def tangent(x):
    return x.imag * (1.0 / TANGENT_STEP)


@primitive
def moving_vector(x, dx):
    return moving(x[0], dx[0]), moving(x[1], dx[1]), moving(x[2], dx[2])


@primitive
def moving_twist(X, dX):
    return Twist(moving_vector(X.w, dX.w), moving_vector(X.v, dX.v))


@primitive
def moving_pose(T, X):
    """T exp(X t) at t = 0: R' = R [w], p' = R v."""
    R, w = T.R, X.w
    rows = moving_vector(R[0], cross(R[0], w)), moving_vector(R[1], cross(R[1], w)), moving_vector(R[2], cross(R[2], w))
    return Pose(rows, moving_vector(T.p, rot(R, X.v)))
