"""The quadrotor of T. Lee, M. Leok, N. H. McClamroch, "Geometric tracking control of a quadrotor UAV on SE(3)", CDC
2010, section V: one rigid body with four thrusts, in axes with z up (the paper's point down: turned by pi about x).
"""

import numpy as np

from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint
from geomctrl.robot import Robot

__all__ = ["quadrotor"]

MASS, MOMENTS = 4.34, (0.0820, 0.0845, 0.1377)  # kg, kg m^2
ARM, DRAG = 0.315, 8.004e-3  # m from the centre to each rotor, m of drag's moment per newton of thrust
ROTORS = ((1, 0, 1), (0, -1, -1), (-1, 0, 1), (0, 1, -1))  # direction of the arm (x, y), sign of drag's moment about z

# (6, 4), the wrench (m, f) on the body at unit thrusts: tau = THRUSTS @ thrusts of the free joint
THRUSTS = np.array([[ARM * y, -ARM * x, DRAG * turn, 0.0, 0.0, 1.0] for x, y, turn in ROTORS]).T
THRUSTS.flags.writeable = False


def quadrotor() -> Robot:
    """Quadrotor on a free joint, with the frames "rotor1" (front, x), "rotor2" (right), "rotor3" and "rotor4" (left).

    Its torques are the body-fixed wrench (m, f) on it, of which rotors give the moment and the force along z: THRUSTS
    (6, 4) of this file times the thrusts, `from geomctrl.models.quadrotor import THRUSTS`.
    """
    body = inertia.from_com(MASS, np.zeros(3), np.diag(MOMENTS))
    frames = []
    for i, (x, y, _) in enumerate(ROTORS, 1):
        T = np.eye(4)
        T[:2, 3] = ARM * x, ARM * y
        frames.append((f"rotor{i}", "body", T))
    return Robot.build([Body("body", None, Joint.free(name="flight"), None, body)], name="quadrotor", frames=frames)
