"""The planar two-link arm of every textbook, in the vertical x-z plane."""

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import exactly
from geomctrl.errors import ArgumentError
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint
from geomctrl.robot import Robot

__all__ = ["two_link"]


def two_link(
    lengths: ArrayLike = (1.0, 1.0),
    masses: ArrayLike = (1.0, 1.0),
    coms: ArrayLike | None = None,
    inertias: ArrayLike | None = None,
    *,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
) -> Robot:
    """Two links in the x-z plane; angles count from the horizontal (x) upwards, the second one from the first link.

    lengths [m], masses [kg]; coms: distances of the centres of mass along the links [m], default half the length;
    inertias: about the centres of mass across the plane [kg m^2], default those of slender rods, m l^2 / 12. About its
    own axis, which no motion turns, a link has a tenth of that. Frame "tip" is the end of the second link.

    With a = I1 + I2 + m1 c1^2 + m2 (l1^2 + c2^2), b = m2 l1 c2, d = I2 + m2 c2^2 the textbook terms are

        M = [[a + 2 b cos q2, d + b cos q2], [d + b cos q2, d]],   C = b sin q2 [[-v2, -v1 - v2], [v1, 0]],
        g = 9.81 [(m1 c1 + m2 l1) cos q1 + m2 c2 cos(q1 + q2), m2 c2 cos(q1 + q2)].
    """
    length, mass = _pair("lengths", lengths), _pair("masses", masses)
    com = length / 2.0 if coms is None else _pair("coms", coms)
    I = mass * length**2 / 12.0 if inertias is None else _pair("inertias", inertias)
    if (length <= 0.0).any():
        raise ArgumentError(f"lengths: expected positive numbers, got {length}")
    parameters = [inertia.from_com(m, (c, 0.0, 0.0), np.diag([i / 10.0, i, i])) for m, c, i in zip(mass, com, I)]
    elbow, tip = np.eye(4), np.eye(4)
    elbow[0, 3], tip[0, 3] = length
    bodies = [
        Body("link1", None, Joint.revolute((0, -1, 0), name="joint1"), None, parameters[0]),
        Body("link2", "link1", Joint.revolute((0, -1, 0), name="joint2"), elbow, parameters[1]),
    ]
    return Robot.build(bodies, name="two_link", gravity=gravity, frames=[("tip", "link2", tip)])


def _pair(name, x):
    try:
        return exactly(name, x, (2,))
    except ArgumentError:
        raise ArgumentError(f"{name}: expected two finite numbers, got {x!r:.80}") from None
