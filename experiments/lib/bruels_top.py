"""The heavy top of Bruels, Cardona and Arnold 2012 (Mech. Mach. Theory 48, section 5), in two sets of coordinates."""

from __future__ import annotations

import numpy as np

import geomctrl as gc
from geomctrl import inertia
from geomctrl.papers.constrained.joints import ConstrainedBody, Constraint
from geomctrl.papers.constrained.maximal import ConstrainedSystem

MASS, I_COM = 15.0, np.diag([0.234375, 0.46875, 0.234375])  # kg, kg m^2
X0 = np.array([0.0, 1.0, 0.0])  # m, from the pivot to the centre of mass
OMEGA0 = np.array([0.0, 150.0, -4.61538])  # rad/s
ENERGY = 5435.69679086555  # J
T_END = 0.8  # s
REFERENCE = np.array([-0.418162424317115, 0.907207967946476, -0.045977057144384])  # m, at T_END


def top(group) -> tuple[ConstrainedSystem, np.ndarray]:
    """The system and its first state."""
    pose = np.eye(4)
    pose[:3, 3] = X0
    body = ConstrainedBody("top", inertia.from_com(MASS, (0, 0, 0), I_COM), pose)
    system = ConstrainedSystem(
        [body], [Constraint("spherical", "pivot", ("world", "top"), point=(0, 0, 0))], group=group
    )
    return system, system.state(None, [[*OMEGA0, *np.cross(OMEGA0, X0)]])


def robot() -> gc.Robot:
    """The same in relative coordinates; the body's frame is at the pivot."""
    return gc.Robot.build([gc.Body("top", None, gc.Joint.spherical(), None, inertia.from_com(MASS, X0, I_COM))])
