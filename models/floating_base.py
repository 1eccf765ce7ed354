"""Bundled robots with a floating base: three_spheres, quadruped, satellite, quadrotor."""

import numpy as np

from geomctrl.arguments import flag
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint
from geomctrl.robot import Robot

SPHERE_MASS, SPHERE_MOMENT, SPACING = 10.0, 4.0, 2.0  # kg, kg m^2, m


def three_spheres() -> Robot:
    """Floating chain of three spheres, 10 kg and 4 kg m^2 each, 2 m apart, without gravity: free base, then z, then x.

    Returns
    -------
    Robot

    Notes
    -----
    Source: J. Park and W.-K. Chung, "Geometric integration on Euclidean group with application to articulated multibody
    systems", IEEE T-RO 21(5), 2005, section VI.

    The paper's Fig. 3 does not show the full geometry. It is completed here such that the paper's tables are
    reproduced: kinetic energy 16.96, linear momentum (0, 24, 0) and angular momentum (33.6, 0, 51.2) at the initial
    state of the first simulation.

    Examples
    --------
    >>> import geomctrl as gc
    >>> gc.models.three_spheres().nv
    8
    """
    sphere = inertia.from_com(SPHERE_MASS, np.zeros(3), SPHERE_MOMENT * np.eye(3))
    second, third = np.eye(4), np.eye(4)
    second[0, 3], third[2, 3] = SPACING, -SPACING
    bodies = [
        Body("sphere1", None, Joint.free(name="base"), None, sphere),
        Body("sphere2", "sphere1", Joint.revolute((0, 0, 1), (-SPACING, 0, 0), name="joint1"), second, sphere),
        Body("sphere3", "sphere2", Joint.revolute((1, 0, 0), (0, 0, SPACING), name="joint2"), third, sphere),
    ]
    return Robot.build(bodies, name="three_spheres", gravity=np.zeros(3))


HIP_X, HIP_Y, THIGH_Y, LEG = 0.1805, 0.047, 0.0838, 0.2  # m
EFFORT, VELOCITY = 33.5, 21.0  # N m, rad/s
RANGES = {  # rad
    "hip": (-0.8028514559173915, 0.8028514559173915),
    "thigh": (-1.0471975511965976, 4.1887902047863905),
    "calf": (-2.6965336943312392, -0.9162978572970231),
}
LEGS = {"FR": (1, -1), "FL": (1, 1), "RR": (-1, -1), "RL": (-1, 1)}  # front or rear, left or right


def quadruped() -> Robot:
    """Unitree A1 quadruped, 6 + 12 degrees of freedom, with the frames "FR_foot", "FL_foot", "RR_foot" and "RL_foot".

    Returns
    -------
    Robot

    Notes
    -----
    Source: Unitree's a1_description (unitree_ros, a1.urdf; BSD-3), as distributed in example-robot-data. The file has
    no rotor inertias. Each foot is fixed to its calf and merged into it.

    Examples
    --------
    >>> import geomctrl as gc
    >>> gc.models.quadruped().nv
    18
    """
    trunk = _inertia(6.0, (0.0, 0.0041, -0.0005), (0.0158533, -3.66e-5, 0.0377999, -6.11e-5, -2.75e-5, 0.0456542))
    imu = _inertia(0.001, (0.0, 0.0, 0.0), (1e-4, 0.0, 1e-4, 0.0, 0.0, 1e-4))
    bodies = [
        Body("trunk", None, Joint.free(name="root_joint"), None, trunk),
        Body("imu_link", "trunk", Joint.fixed(), None, imu),
    ]
    for leg, (x, y) in LEGS.items():
        bodies += _leg(leg, x, y)
    return Robot.build(bodies, name="quadruped")


def _leg(leg, x, y):
    hip = _inertia(
        0.696, (-0.003311 * x, 0.000635 * y, 3.1e-5),
        (0.000469246, -9.409e-6 * x * y, 0.00080749, -3.42e-7 * x, -4.66e-7 * y, 0.000552929),
    )  # fmt: skip
    thigh = _inertia(
        1.013, (-0.003237, -0.022327 * y, -0.027326),
        (0.005529065, 4.825e-6 * y, 0.005139339, 0.000343869, 2.2448e-5 * y, 0.001367788),
    )  # fmt: skip
    calf = _inertia(
        0.166, (0.006435, 0.0, -0.107388), (0.002997972, 0.0, 0.003014022, -0.000141163, 0.0, 3.2426e-5)
    )  # fmt: skip
    foot = _inertia(0.06, (0.0, 0.0, 0.0), (9.6e-6, 0.0, 9.6e-6, 0.0, 0.0, 9.6e-6))
    pitch = (0, 1, 0)
    return [
        Body(f"{leg}_hip", "trunk", _joint(leg, "hip", (1, 0, 0)), _at(HIP_X * x, HIP_Y * y, 0.0), hip),
        Body(f"{leg}_thigh", f"{leg}_hip", _joint(leg, "thigh", pitch), _at(0.0, THIGH_Y * y, 0.0), thigh),
        Body(f"{leg}_calf", f"{leg}_thigh", _joint(leg, "calf", pitch), _at(0.0, 0.0, -LEG), calf),
        Body(f"{leg}_foot", f"{leg}_calf", Joint.fixed(), _at(0.0, 0.0, -LEG), foot),
    ]


def _joint(leg, part, axis):
    lower, upper = RANGES[part]
    name = f"{leg}_{part}_joint"
    return Joint.revolute(axis, name=name, lower=lower, upper=upper, velocity=VELOCITY, effort=EFFORT)


def _at(*position):
    T = np.eye(4)
    T[:3, 3] = position
    return T


def _inertia(mass, com, I):
    """Ten parameters from I = (Ixx, Ixy, Iyy, Ixz, Iyz, Izz) about the centre of mass."""
    return inertia.from_com(mass, com, np.array(I)[inertia.SYMMETRIC])


HUB_MASS, HUB_MOMENTS = 750.0, (900.0, 800.0, 600.0)  # kg, kg m^2
WHEEL, SPEED, MOMENTUM, TORQUE = 12.0, 6000.0 * 2.0 * np.pi / 60.0, 100.0, 0.2  # kg, rad/s, N m s, N m


def satellite(wheels: bool = False) -> Robot:
    """Satellite that rotates about its centre of mass without gravity; v is the body-fixed angular velocity.

    Parameters
    ----------
    wheels : bool
        Add three reaction wheels, joints "wheel1" to "wheel3" about x, y and z through the centre of mass. A torque on
        a wheel turns the hub the other way. q then holds the twelve numbers of the spherical joint and three angles.
        Default False.

    Returns
    -------
    Robot

    Raises
    ------
    ArgumentError
        If `wheels` is not True or False.

    Notes
    -----
    Hub (750 kg): Basilisk's scenarioAttitudeFeedbackRW (University of Colorado, AVS laboratory; ISC). Wheels: Honeywell
    HR16 with 100 N m s at 6000 1/min, from Basilisk's simIncludeRW: 12 kg, at most 0.2 N m. The moment of a wheel about
    an axis across the spin axis is 0.6 of its spin moment; Basilisk uses 0.5, which is a flat disc.

    Examples
    --------
    >>> import geomctrl as gc
    >>> gc.models.satellite(wheels=True).joint_names
    ('attitude', 'wheel1', 'wheel2', 'wheel3')
    """
    bodies = [Body("hub", None, Joint.spherical(name="attitude"), None, _about_the_centre(HUB_MASS, HUB_MOMENTS))]
    if flag("wheels", wheels):
        spin = MOMENTUM / SPEED
        for i, axis in enumerate(np.eye(3), 1):
            joint = Joint.revolute(axis, name=f"wheel{i}", velocity=SPEED, effort=TORQUE)
            parameters = _about_the_centre(WHEEL, np.where(axis == 1.0, spin, 0.6 * spin))
            bodies.append(Body(f"wheel{i}", "hub", joint, None, parameters))
    return Robot.build(bodies, name="satellite", gravity=np.zeros(3))


def _about_the_centre(mass, moments):
    return inertia.from_com(mass, np.zeros(3), np.diag(moments))


QUADROTOR_MASS, QUADROTOR_MOMENTS = 4.34, (0.0820, 0.0845, 0.1377)  # kg, kg m^2
ARM = 0.315  # m from the centre to each rotor
ROTORS = ((1, 0), (0, -1), (-1, 0), (0, 1))  # direction of the arm (x, y)


def quadrotor() -> Robot:
    """Quadrotor on a free joint, with the frames "rotor1" (front, x), "rotor2" (right), "rotor3" and "rotor4" (left).

    The generalised force is the body-fixed wrench (m, f). A rotor at (x, y) with the thrust F produces the wrench
    (y F, -x F, +-c F, 0, 0, F); its drag has c = 8.004e-3 m, with the sign + for rotors 1 and 3, - for 2 and 4.

    Returns
    -------
    Robot

    Notes
    -----
    Source: T. Lee, M. Leok, N. H. McClamroch, "Geometric tracking control of a quadrotor UAV on SE(3)", CDC 2010,
    section V: one rigid body with four thrusts. Axes here have z up; the paper's z points down (rotation by pi about
    x).

    Examples
    --------
    >>> import geomctrl as gc
    >>> gc.models.quadrotor().nq, gc.models.quadrotor().nv
    (12, 6)
    """
    body = inertia.from_com(QUADROTOR_MASS, np.zeros(3), np.diag(QUADROTOR_MOMENTS))
    frames = []
    for i, (x, y) in enumerate(ROTORS, 1):
        T = np.eye(4)
        T[:2, 3] = ARM * x, ARM * y
        frames.append((f"rotor{i}", "body", T))
    return Robot.build([Body("body", None, Joint.free(name="flight"), None, body)], name="quadrotor", frames=frames)
