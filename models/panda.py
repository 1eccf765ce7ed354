"""The Franka Emika Panda.

Inertial parameters: C. Gaz, M. Cognetti, A. Oliva, P. Robuffo Giordano, A. De Luca, "Dynamic identification of the
Franka Emika Panda robot with retrieval of feasible parameters using penalty-based optimization", IEEE RA-L 4(4), 2019,
as distributed in franka_ros' franka_description (inertial.yaml): mass, centre of mass and inertia about it, per link;
identified without the hand, and physically consistent. Kinematics and limits: Franka Control Interface documentation,
"Robot and interface specifications". Hand: franka_description (0.73 kg; the fingers' 2 x 15 g included, closed).

The identified friction is a sigmoid in the velocity, which `damping` and `friction` of a joint can not express: both
are zero here.
"""

import numpy as np

from geomctrl.arguments import flag
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint
from geomctrl.robot import Robot

__all__ = ["panda"]

#     x        y       z      turn about x  lower    upper    velocity effort
JOINTS = (
    (0.0, 0.0, 0.333, 0, -2.8973, 2.8973, 2.175, 87.0),
    (0.0, 0.0, 0.0, -1, -1.7628, 1.7628, 2.175, 87.0),
    (0.0, -0.316, 0.0, 1, -2.8973, 2.8973, 2.175, 87.0),
    (0.0825, 0.0, 0.0, 1, -3.0718, -0.0698, 2.175, 87.0),
    (-0.0825, 0.384, 0.0, -1, -2.8973, 2.8973, 2.61, 12.0),
    (0.0, 0.0, 0.0, 1, -0.0175, 3.7525, 2.61, 12.0),
    (0.088, 0.0, 0.0, 1, -2.8973, 2.8973, 2.61, 12.0),
)
#     mass      centre of mass                       Ixx       Ixy        Iyy      Ixz       Iyz        Izz about it
MASSES = (
    (4.970684, (0.003875, 0.002081, -0.04762), (0.70337, -0.000139, 0.70661, 0.006772, 0.019169, 0.009117)),
    (0.646926, (-0.003141, -0.02872, 0.003495), (0.007962, -0.003925, 0.02811, 0.010254, 0.000704, 0.025995)),
    (3.228604, (0.027518, 0.039252, -0.066502), (0.037242, -0.004761, 0.036155, -0.011396, -0.012805, 0.01083)),
    (3.587895, (-0.05317, 0.104419, 0.027454), (0.025853, 0.007796, 0.019552, -0.001332, 0.008641, 0.028323)),
    (1.225946, (-0.011953, 0.041065, -0.038437), (0.035549, -0.002117, 0.029474, -0.004037, 0.000229, 0.008627)),
    (1.666555, (0.060149, -0.014117, -0.010517), (0.001964, 0.000109, 0.004354, -0.001158, 0.000341, 0.005433)),
    (0.735522, (0.010517, -0.004252, 0.061597), (0.012516, -0.000428, 0.010027, -0.001196, -0.000741, 0.004815)),
)
FLANGE = 0.107  # m, along z of link 7
TCP = 0.1034  # m, along z of the hand
FINGERS = 0.0584  # m, along z of the hand


def panda(hand: bool = False) -> Robot:
    """Panda arm, 7R, with the frames "panda_link8" (the flange), "panda_hand" and "panda_hand_tcp".

    hand=True adds the mass of Franka's gripper with its fingers closed. Joints "panda_joint1" to "panda_joint7"; at
    zero the arm is stretched up, which joint 4's range does not allow: a usual pose is
    (0, -pi/4, 0, -3 pi/4, 0, pi/2, pi/4).
    """
    flag("hand", hand)
    bodies = []
    for i, ((x, y, z, turn, lower, upper, velocity, effort), (m, com, I)) in enumerate(zip(JOINTS, MASSES), 1):
        placement = np.array([[1, 0, 0, x], [0, 1 - abs(turn), -turn, y], [0, turn, 1 - abs(turn), z], [0, 0, 0, 1.0]])
        joint = Joint.revolute(
            (0, 0, 1), name=f"panda_joint{i}", lower=lower, upper=upper, velocity=velocity, effort=effort
        )
        parameters = inertia.from_com(m, com, np.array(I)[inertia.SYMMETRIC])
        bodies.append(Body(f"panda_link{i}", f"panda_link{i - 1}" if i > 1 else None, joint, placement, parameters))
    flange, mount = _offset(FLANGE), _turned(-np.pi / 4)
    if hand:
        bodies += [
            Body("panda_link8", "panda_link7", Joint.fixed(), flange),
            Body("panda_hand", "panda_link8", Joint.fixed(), mount, _gripper()),
        ]
        frames = [("panda_hand_tcp", "panda_hand", _offset(TCP))]
    else:
        frames = [
            ("panda_link8", "panda_link7", flange),
            ("panda_hand", "panda_link7", flange @ mount),
            ("panda_hand_tcp", "panda_link7", flange @ mount @ _offset(TCP)),
        ]
    return Robot.build(bodies, name="panda", frames=frames)


def _gripper():
    finger = inertia.from_com(0.015, (0.0, 0.0, FINGERS), np.diag([2.375e-6, 2.375e-6, 0.75e-6]))
    return inertia.from_com(0.73, (-0.01, 0.0, 0.03), np.diag([0.001, 0.0025, 0.0017])) + 2.0 * finger


def _offset(z):
    T = np.eye(4)
    T[2, 3] = z
    return T


def _turned(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])
