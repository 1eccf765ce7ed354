"""Numbers with tangents: from them a kernel computes its results and their rates of change.

A number x that moves at the rate dx is the complex x + i STEP dx; products and quotients of such numbers have the rate
of theirs in the imaginary part (the complex step of Squire and Trapp 1998), exact to round-off, since nothing is
subtracted and STEP^2 is below all digits. On symbols it is a pair of them, `tracing.duals`.
"""

from typing import Any

from .primitives import primitive
from .screws import Pose, Twist, cross, rot

STEP = 2.0**-250  # its square vanishes for speeds up to 1e60, and it does not underflow for speeds down to 1e-200


@primitive
def moving(x, dx) -> Any:
    """x + i STEP dx."""
    return complex(x, STEP * dx)


@primitive
def place_of(x):
    """x itself, without its tangent."""
    return x.real


@primitive
def tangent(x):
    return x.imag * (1.0 / STEP)


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
