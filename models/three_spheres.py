"""The floating three-body chain of J. Park and W.-K. Chung, "Geometric integration on Euclidean group with application
to articulated multibody systems", IEEE T-RO 21(5), 2005, section VI: three solid spheres, a free base.

The paper's Fig. 3, which hides the geometry, is completed so that its tables come out: kinetic energy 16.96, linear
momentum (0, 24, 0) and angular momentum (33.6, 0, 51.2) at the first run's initial state.
"""

import numpy as np

from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint
from geomctrl.robot import Robot

__all__ = ["three_spheres"]

MASS, MOMENT, SPACING = 10.0, 4.0, 2.0  # kg, kg m^2, m


def three_spheres() -> Robot:
    """Three spheres, 10 kg and 4 kg m^2 each, 2 m apart, without gravity: free base, then z, then x."""
    sphere = inertia.from_com(MASS, np.zeros(3), MOMENT * np.eye(3))
    second, third = np.eye(4), np.eye(4)
    second[0, 3], third[2, 3] = SPACING, -SPACING
    bodies = [
        Body("sphere1", None, Joint.free(name="base"), None, sphere),
        Body("sphere2", "sphere1", Joint.revolute((0, 0, 1), (-SPACING, 0, 0), name="joint1"), second, sphere),
        Body("sphere3", "sphere2", Joint.revolute((1, 0, 0), (0, 0, SPACING), name="joint2"), third, sphere),
    ]
    return Robot.build(bodies, name="three_spheres", gravity=np.zeros(3))
