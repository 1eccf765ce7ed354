"""Bundled robots on a fixed base: two_link, puma560, panda, ur10, scara, cart_pole."""

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import exactly, flag, shown
from geomctrl.errors import ArgumentError
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint
from geomctrl.robot import Robot


def two_link(
    lengths: ArrayLike = (1.0, 1.0),
    masses: ArrayLike = (1.0, 1.0),
    coms: ArrayLike | None = None,
    inertias: ArrayLike | None = None,
    *,
    gravity: ArrayLike = (0.0, 0.0, -9.81),
) -> Robot:
    """Planar arm with two links in the vertical x-z plane: the textbook example.

    Angle q1 is measured from the horizontal x axis upwards, q2 from the first link. The frame "tip" is at the end of
    the second link.

    Parameters
    ----------
    lengths : array_like, shape (2,)
        Link lengths [m], default (1, 1).
    masses : array_like, shape (2,)
        Link masses [kg], default (1, 1).
    coms : array_like, shape (2,), optional
        Distance of each centre of mass along its link [m]. Default: half the length.
    inertias : array_like, shape (2,), optional
        Moments of inertia about the centres of mass, for rotation in the plane [kg m^2]. Default: slender rods,
        m l^2 / 12. About its own axis, about which it does not rotate, each link has a tenth of that.
    gravity : array_like, shape (3,)
        Gravitational acceleration [m/s^2], default (0, 0, -9.81).

    Returns
    -------
    Robot

    Raises
    ------
    ArgumentError
        If an argument does not consist of two finite numbers, or a length is not positive.

    Notes
    -----
    With a = I1 + I2 + m1 c1^2 + m2 (l1^2 + c2^2), b = m2 l1 c2 and d = I2 + m2 c2^2 the textbook terms are

        M = [[a + 2 b cos q2, d + b cos q2], [d + b cos q2, d]],   C = b sin q2 [[-v2, -v1 - v2], [v1, 0]],
        g = 9.81 [(m1 c1 + m2 l1) cos q1 + m2 c2 cos(q1 + q2), m2 c2 cos(q1 + q2)].

    Examples
    --------
    >>> import geomctrl as gc
    >>> arm = gc.models.two_link(lengths=(0.5, 0.4), masses=(3.0, 2.0))
    >>> arm.mass_matrix([0.0, 0.0]).shape
    (2, 2)
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
        raise ArgumentError(f"{name}: expected two finite numbers, got {shown(x)}") from None


#       alpha    a        d       lower upper effort armature  (modified DH: before the joint; degrees; N m; kg m^2)
PUMA_LINKS = (
    (0.0, 0.0, 0.0, -160, 160, 97.6, 1.14),
    (-90.0, 0.0, 0.2435, -225, 45, 186.4, 4.71),
    (0.0, 0.4318, -0.0934, -45, 225, 89.4, 0.827),
    (90.0, -0.0203, 0.4331, -110, 170, 24.2, 0.200),
    (-90.0, 0.0, 0.0, -100, 100, 20.1, 0.179),
    (90.0, 0.0, 0.0, -266, 266, 21.3, 0.193),
)
#       mass   centre of mass           principal moments about it
PUMA_MASSES = (
    (13.0, (0.0, 0.0, 0.0), (0.35, 0.35, 0.35)),
    (17.40, (0.068, 0.006, -0.016), (0.130, 0.524, 0.539)),
    (4.80, (0.0, -0.070, 0.014), (0.070, 0.0125, 0.082)),
    (0.82, (0.0, 0.0, -0.019), (1.8e-3, 1.8e-3, 1.3e-3)),
    (0.34, (0.0, 0.0, 0.0), (0.3e-3, 0.3e-3, 0.4e-3)),
    (0.09, (0.0, 0.0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3)),
)


def puma560() -> Robot:
    """PUMA 560, 6R, including the reflected inertia of its motors. Zero: upper arm along x, forearm up.

    Returns
    -------
    Robot

    Notes
    -----
    Source: B. Armstrong, O. Khatib, J. Burdick, "The explicit dynamic model and inertial parameters of the PUMA 560
    arm", ICRA 1986, in its modified Denavit-Hartenberg frames.

    Masses, centres of mass and inertias are the measured values of the paper (Tables 4 to 6), taken from Corke's
    Robotics Toolbox (mdl_puma560akb, mdl_puma560), with two changes:

    - Link 3: the published moments (0.066, 0.0125, 0.086) violate the triangle inequality; this model uses
      (0.070, 0.0125, 0.082). (mdl_puma560akb has 0.066 for the last moment, which differs from the paper's constant
      I6 = 0.333 by 6 %; the value here differs by 1 %.)
    - Link 1: the paper measures only its inertia about the vertical axis (0.35) and no mass. No other parameter of link
      1 affects the motion. Its mass of 13 kg, on the axis, and the isotropic inertia 0.35 are assumptions.

    As in the paper's explicit model, the reflected motor inertia is added to the diagonal of M (`armature` of the
    joints), where it dominates from joint 2 on; `puma560().with_armature(0.0)` is the arm without motors. The paper's
    constants I1 = 1.43 and I3 = 1.38 of M11 do not follow from its tables, which give 1.56 and 1.60; the constants of
    M12, M13, M22, M23, M33, of the wrist's diagonal and of gravity do.

    Joint ranges: Corke's toolbox (after Wang and Chen 1991), with the signs of this convention. Efforts: Table 7 of the
    paper.

    Examples
    --------
    >>> import geomctrl as gc
    >>> gc.models.puma560().nv
    6
    """
    bodies = []
    for i, ((alpha, a, d, lower, upper, effort, armature), (m, com, moments)) in enumerate(
        zip(PUMA_LINKS, PUMA_MASSES, strict=True), 1
    ):
        c, s = round(np.cos(np.radians(alpha))), round(np.sin(np.radians(alpha)))
        placement = np.array([[1, 0, 0, a], [0, c, -s, -s * d], [0, s, c, c * d], [0, 0, 0, 1.0]])
        joint = Joint.revolute(
            (0, 0, 1),
            name=f"joint{i}",
            lower=np.radians(lower),
            upper=np.radians(upper),
            effort=effort,
            armature=armature,
        )
        parameters = inertia.from_com(m, com, np.diag(moments))
        bodies.append(Body(f"link{i}", f"link{i - 1}" if i > 1 else None, joint, placement, parameters))
    return Robot.build(bodies, name="puma560")


#     x        y       z      turn about x  lower    upper    velocity effort
PANDA_JOINTS = (
    (0.0, 0.0, 0.333, 0, -2.8973, 2.8973, 2.175, 87.0),
    (0.0, 0.0, 0.0, -1, -1.7628, 1.7628, 2.175, 87.0),
    (0.0, -0.316, 0.0, 1, -2.8973, 2.8973, 2.175, 87.0),
    (0.0825, 0.0, 0.0, 1, -3.0718, -0.0698, 2.175, 87.0),
    (-0.0825, 0.384, 0.0, -1, -2.8973, 2.8973, 2.61, 12.0),
    (0.0, 0.0, 0.0, 1, -0.0175, 3.7525, 2.61, 12.0),
    (0.088, 0.0, 0.0, 1, -2.8973, 2.8973, 2.61, 12.0),
)
#     mass      centre of mass                       Ixx       Ixy        Iyy      Ixz       Iyz        Izz about it
PANDA_MASSES = (
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
    """Franka Emika Panda, 7R, with the frames "panda_link8" (flange), "panda_hand" and "panda_hand_tcp".

    The joints are "panda_joint1" to "panda_joint7". At q = 0 the arm points straight up, which violates the range of
    joint 4. A common pose is (0, -pi/4, 0, -3 pi/4, 0, pi/2, pi/4).

    Parameters
    ----------
    hand : bool
        Add the mass of Franka's gripper with closed fingers. Default False.

    Returns
    -------
    Robot

    Raises
    ------
    ArgumentError
        If `hand` is not True or False.

    Notes
    -----
    Inertial parameters: C. Gaz, M. Cognetti, A. Oliva, P. Robuffo Giordano, A. De Luca, "Dynamic identification of the
    Franka Emika Panda robot with retrieval of feasible parameters using penalty-based optimization", IEEE RA-L 4(4),
    2019, as distributed in franka_ros' franka_description (inertial.yaml): mass, centre of mass and inertia about it
    for each link, identified without the hand and physically consistent. Kinematics and limits: Franka Control
    Interface documentation, "Robot and interface specifications". Hand: franka_description (0.73 kg, which includes the
    closed fingers, 2 x 15 g).

    The identified friction is a sigmoid of the velocity. The joint properties `damping` and `friction` can not express
    it, so both are zero here.

    Examples
    --------
    >>> import geomctrl as gc
    >>> gc.models.panda().joint_names[0]
    'panda_joint1'
    """
    flag("hand", hand)
    bodies = []
    for i, ((x, y, z, turn, lower, upper, velocity, effort), (m, com, I)) in enumerate(
        zip(PANDA_JOINTS, PANDA_MASSES), 1
    ):
        placement = np.array([[1, 0, 0, x], [0, 1 - abs(turn), -turn, y], [0, turn, 1 - abs(turn), z], [0, 0, 0, 1.0]])
        joint = Joint.revolute(
            (0, 0, 1), name=f"panda_joint{i}", lower=lower, upper=upper, velocity=velocity, effort=effort
        )
        parameters = inertia.from_com(m, com, np.array(I)[inertia.SYMMETRIC])
        bodies.append(Body(f"panda_link{i}", f"panda_link{i - 1}" if i > 1 else None, joint, placement, parameters))
    flange, mount = _at_z(FLANGE), _turned(-np.pi / 4)
    if hand:
        bodies += [
            Body("panda_link8", "panda_link7", Joint.fixed(), flange),
            Body("panda_hand", "panda_link8", Joint.fixed(), mount, _gripper()),
        ]
        frames = [("panda_hand_tcp", "panda_hand", _at_z(TCP))]
    else:
        frames = [
            ("panda_link8", "panda_link7", flange),
            ("panda_hand", "panda_link7", flange @ mount),
            ("panda_hand_tcp", "panda_link7", flange @ mount @ _at_z(TCP)),
        ]
    return Robot.build(bodies, name="panda", frames=frames)


def _gripper():
    finger = inertia.from_com(0.015, (0.0, 0.0, FINGERS), np.diag([2.375e-6, 2.375e-6, 0.75e-6]))
    return inertia.from_com(0.73, (-0.01, 0.0, 0.03), np.diag([0.001, 0.0025, 0.0017])) + 2.0 * finger


def _at_z(z):
    T = np.eye(4)
    T[2, 3] = z
    return T


def _turned(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])


#    link            joint            axis  quarter turn about y, origin [m]            limit  velocity effort
UR10_JOINTS = (
    ("shoulder_link", "shoulder_pan_joint", "z", 0, (0.0, 0.0, 0.1273), 2 * np.pi, 2.16, 330.0),
    ("upper_arm_link", "shoulder_lift_joint", "y", 1, (0.0, 0.220941, 0.0), 2 * np.pi, 2.16, 330.0),
    ("forearm_link", "elbow_joint", "y", 0, (0.0, -0.1719, 0.612), np.pi, 3.15, 150.0),
    ("wrist_1_link", "wrist_1_joint", "y", 1, (0.0, 0.0, 0.5723), 2 * np.pi, 3.2, 54.0),
    ("wrist_2_link", "wrist_2_joint", "z", 0, (0.0, 0.1149, 0.0), 2 * np.pi, 3.2, 54.0),
    ("wrist_3_link", "wrist_3_joint", "y", 0, (0.0, 0.0, 0.1157), 2 * np.pi, 3.2, 54.0),
)
#     mass   COM along z  Ixx = Iyy        Izz about it
UR10_MASSES = (
    (7.778, 0.0, 0.0314743125769, 0.021875625),
    (12.93, 0.306, 0.421753803798, 0.036365625),
    (3.87, 0.28615, 0.111069694097, 0.010884375),
    (1.96, 0.0, 0.0051082479567, 0.0055125),
    (1.96, 0.0, 0.0051082479567, 0.0055125),
    (0.202, 0.0, 0.000526462289415, 0.000568125),
)
AXES = {"y": (0, 1, 0), "z": (0, 0, 1)}


def ur10() -> Robot:
    """Universal Robots UR10, 6R, in the frames of its URDF, with the frames "ee_link" (x out of the flange) and "tool0"
    (z out).

    Returns
    -------
    Robot

    Notes
    -----
    Source: ur_description of ROS-Industrial's universal_robot (ur10.urdf.xacro; K. Hawkins and others). Masses, centres
    of mass and limits come from the manufacturer; inertias are those of solid cylinders of the links' size. The
    inertias of real arms differ: identify them before you use the model on hardware.

    Examples
    --------
    >>> import geomctrl as gc
    >>> gc.models.ur10().joint_names[0]
    'shoulder_pan_joint'
    """
    bodies, parent = [], None
    for (link, name, axis, turn, origin, limit, velocity, effort), (m, z, Ixx, Izz) in zip(UR10_JOINTS, UR10_MASSES):
        placement = np.array([[1 - turn, 0, turn, 0], [0, 1, 0, 0], [-turn, 0, 1 - turn, 0], [0, 0, 0, 1.0]])
        placement[:3, 3] = origin
        joint = Joint.revolute(AXES[axis], name=name, lower=-limit, upper=limit, velocity=velocity, effort=effort)
        bodies.append(Body(link, parent, joint, placement, inertia.from_com(m, (0, 0, z), np.diag([Ixx, Ixx, Izz]))))
        parent = link
    ee = np.array([[0, -1, 0, 0], [1, 0, 0, 0.0922], [0, 0, 1, 0], [0, 0, 0, 1.0]])
    tool = np.array([[1, 0, 0, 0], [0, 0, 1, 0.0922], [0, -1, 0, 0], [0, 0, 0, 1.0]])
    return Robot.build(bodies, name="ur10", frames=[("ee_link", "wrist_3_link", ee), ("tool0", "wrist_3_link", tool)])


HEIGHT, ARM1, ARM2 = 0.387, 0.325, 0.275  # m
ARM_WIDTH, ARM_HEIGHT = 0.12, 0.10  # m
MASS1, MASS2, SLIDE, QUILL = 8.0, 6.0, 0.5, 1.5  # kg
QUILL_LENGTH, QUILL_RADIUS = 0.35, 0.015  # m


def scara() -> Robot:
    """SCARA arm, RRPR, with the joints "shoulder", "elbow", "lift" (positive down) and "roll" (about the downward
    axis).

    The frame "tool" is at the lower end of the quill, with z down.

    Returns
    -------
    Robot

    Notes
    -----
    The geometry is that of the Adept Cobra 600: two rotating arms and a quill that slides and rotates. Geometry and
    joint ranges: Corke's Robotics Toolbox (Cobra600). The manufacturer publishes no inertial parameters, so the masses
    are assumptions that are plausible for a robot of this size. The arms are solid boxes, the quill is a solid
    cylinder.

    Examples
    --------
    >>> import geomctrl as gc
    >>> gc.models.scara().joint_names
    ('shoulder', 'elbow', 'lift', 'roll')
    """
    deg = np.pi / 180.0
    down = np.diag([1.0, -1.0, -1.0, 1.0])
    base, reach, tool = np.eye(4), np.eye(4), np.eye(4)
    base[2, 3], reach[0, 3], tool[2, 3] = HEIGHT, ARM1, QUILL_LENGTH / 2
    wrist = down.copy()
    wrist[0, 3] = ARM2
    z = (0, 0, 1)
    bodies = [
        Body(
            "arm1", None, Joint.revolute(z, name="shoulder", lower=-50 * deg, upper=50 * deg), base, _box(MASS1, ARM1)
        ),
        Body(
            "arm2", "arm1", Joint.revolute(z, name="elbow", lower=-88 * deg, upper=88 * deg), reach, _box(MASS2, ARM2)
        ),
        Body("slide", "arm2", Joint.prismatic(z, name="lift", lower=0.0, upper=0.21), wrist, _rod(SLIDE)),
        Body("quill", "slide", Joint.revolute(z, name="roll"), None, _rod(QUILL)),
    ]
    return Robot.build(bodies, name="scara", frames=[("tool", "quill", tool)])


def _box(mass, length):
    moments = np.array([ARM_WIDTH**2 + ARM_HEIGHT**2, length**2 + ARM_HEIGHT**2, length**2 + ARM_WIDTH**2])
    return inertia.from_com(mass, (length / 2, 0.0, 0.0), mass / 12 * np.diag(moments))


def _rod(mass):
    across = QUILL_LENGTH**2 / 12 + QUILL_RADIUS**2 / 4
    return inertia.from_com(mass, np.zeros(3), mass * np.diag([across, across, QUILL_RADIUS**2 / 2]))


CART, POLE, LENGTH = 1.0, 0.1, 1.0  # kg, kg, m; the pole is a uniform rod
RANGE, FORCE = 2.4, 10.0  # m, N


def cart_pole() -> Robot:
    """Cart along x (joint "cart") with a pole about y (joint "pole"): zero is upright, a positive angle leans towards
    +x.

    Only the cart is actuated: tau = (force, 0). The frame "tip" is at the end of the pole.

    Returns
    -------
    Robot

    Notes
    -----
    With the distance c = 0.5 m to the centre of mass and J = 0.1 kg (1 m)^2 / 3 the textbook terms are

        M = [[1.1, 0.1 c cos q2], [0.1 c cos q2, J]],   C v = (-0.1 c sin(q2) v2^2, 0),   g = (0, -0.1 9.81 c sin q2).

    Source: A. G. Barto, R. S. Sutton, C. W. Anderson, "Neuronlike adaptive elements that can solve difficult learning
    control problems", IEEE Trans. Systems, Man, and Cybernetics 13(5), 1983, without its friction.

    Examples
    --------
    >>> import geomctrl as gc
    >>> gc.models.cart_pole().joint_names
    ('cart', 'pole')
    """
    rod = POLE * LENGTH**2 / 12.0
    cart = inertia.from_com(CART, np.zeros(3), 0.01 * np.eye(3))  # the cart does not rotate: its inertia has no effect
    pole = inertia.from_com(POLE, (0.0, 0.0, 0.5 * LENGTH), np.diag([rod, rod, 0.1 * rod]))
    tip = np.eye(4)
    tip[2, 3] = LENGTH
    slide = Joint.prismatic((1, 0, 0), name="cart", lower=-RANGE, upper=RANGE, effort=FORCE)
    bodies = [
        Body("cart", None, slide, None, cart),
        Body("pole", "cart", Joint.revolute((0, 1, 0), name="pole"), None, pole),
    ]
    return Robot.build(bodies, name="cart_pole", frames=[("tip", "pole", tip)])
