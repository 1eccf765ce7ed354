"""What is asked of a robot whose numbers go into a file, before and after, and inertias as files hold them."""

import numpy as np

from geomctrl.errors import ArgumentError, ModelError
from geomctrl.mechanism import inertia
from geomctrl.robot import Robot

__all__ = ["central", "require_arrived", "require_body", "require_same"]

ROUNDING = 1e-9  # of the largest number of a body


def require_same(label: str, own: Robot, robot: Robot) -> None:
    """Raises ArgumentError unless a file's robot is this one but for inertias, friction and limits."""
    for what in ("body_names", "joint_names", "parents"):
        a, b = getattr(own, what), getattr(robot, what)
        if a != b:
            raise ArgumentError(f"{label}: robot: is not of this file: expected {what} {a}, got {b}")
    for body, joint, theirs, M, given in zip(
        own.body_names, own.joints, robot.joints, own.placements, robot.placements
    ):
        same = joint.kind == theirs.kind and np.allclose(joint.S, theirs.S, atol=ROUNDING)
        if not same or not np.allclose(M, given, atol=ROUNDING):
            raise ArgumentError(f"{label}: robot: is not of this file: joint or placement of {body!r} is another")


def require_arrived(label: str, back: Robot, robot: Robot, hint: str) -> None:
    """Raises ModelError unless the file that was made has the robot's inertias."""
    scale = np.abs(robot.parameters).max(1) + np.abs(back.parameters).max(1) + 1e-300
    off = np.abs(back.parameters - robot.parameters).max(1) / scale
    if (off > ROUNDING).any():
        k = int(np.argmax(off))
        raise ModelError(
            f"{label}: body {robot.body_names[k]!r}: the file would be read with other inertias than were written, off"
            f" by {off[k]:.3g}: {hint}"
        )


def require_body(label: str, name: str, pi: np.ndarray) -> None:
    """Raises ModelError for an inertia that neither file can hold, whose centre of mass is nowhere."""
    if pi[0] <= 0.0 and pi.any():
        raise ModelError(f"{label}: body {name!r}: can not hold a mass of {pi[0]:g} kg with a first moment or inertia")


def central(pi: np.ndarray) -> tuple[str, str, dict[str, float]]:
    """(centre of mass, mass, inertia about it as ixx, ixy, ...), as texts that read back to the same numbers."""
    I, axes = inertia.com_tensor(pi), "xyz"
    moments = {f"i{a}{b}": float(I[axes.index(a), axes.index(b)]) for a, b in ("xx", "xy", "xz", "yy", "yz", "zz")}
    return numbers(pi[1:4] / pi[0]), repr(float(pi[0])), moments


def numbers(x) -> str:
    return " ".join(repr(float(a)) for a in x)
