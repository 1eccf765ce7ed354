"""Every bundled law with its default gains, on several bundled robots."""

import numpy as np
from oracles import without_limits
from postures import AXES, POSTURES

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control import FlatOutputs
from geomctrl.control.elastic_joints import ElasticPlant
from geomctrl.control.references import Harmonic, Sinusoids

ROBOTS = {  # for each law: fixed arms, bodies that rotate or fly, robots on a floating base
    "PDGravity": ("panda", "scara", "satellite", "quadruped"),
    "ComputedTorque": ("ur10", "satellite", "three_spheres"),
    "Passivity": ("panda", "quadrotor", "three_spheres", "quadruped"),
    "ElasticJoint": ("two_link", "puma560"),
    "SlotineLi": ("two_link", "panda", "quadrotor", "three_spheres"),
    "SigmaModification": ("scara", "satellite", "three_spheres"),
    "EModification": ("two_link", "satellite", "ur10"),
    "DeadZone": ("two_link", "satellite"),
    "SmoothProjection": ("scara", "quadrotor"),
    "Composite": ("two_link", "satellite"),
    "ConcurrentLearning": ("cart_pole", "satellite"),
    "DREM": ("two_link", "satellite"),
    "NaturalAdaptation": ("puma560", "quadrotor"),
    "MomentumAdaptation": ("two_link", "satellite"),
    "Robust": ("scara", "ur10", "quadrotor"),
    "SuperTwisting": ("ur10", "satellite"),
    "JointImpedance": ("panda", "satellite", "three_spheres"),
    "OperationalSpace": ("ur10", "two_link", "quadruped"),
    "CartesianImpedance": ("ur10", "scara"),
    "GeometricImpedance": ("ur10", "quadruped"),
    "EnergyTank": ("two_link", "satellite"),
    "MomentumObserver": ("panda", "quadrotor"),
    "OnlineIdentification": ("two_link", "satellite"),
    "AttitudeTracking": ("satellite", "wheeled"),
    "QuadrotorTracking": ("quadrotor", "large quadrotor"),
    "LQR": ("cart_pole", "satellite"),
    "SwingUp": ("cart_pole", "two_link"),
    "QPInverseDynamics": ("two_link", "ur10"),
}
PAIRS = [(law, robot) for law, robots in ROBOTS.items() for robot in robots]

FRAMES = {"two_link": "tip", "quadruped": "FR_foot"}
LEARN = {"SlotineLi", "SigmaModification", "EModification", "DeadZone", "SmoothProjection", "Composite",
         "ConcurrentLearning", "DREM", "NaturalAdaptation", "MomentumAdaptation"}  # fmt: skip


def robot_of(name):
    if name == "wheeled":
        return without_limits(models.satellite(wheels=True))
    if name == "large quadrotor":
        body = models.quadrotor()
        return body.with_parameters(body.parameters * ([2.0] + [1.0] * 3 + [5.0] * 6))
    return without_limits(models.load(name))


def motion_of(name, robot):
    home = np.array(POSTURES[name]) if name in POSTURES else robot.neutral()
    return Sinusoids(robot, home, 0.15, 0.3)


def law_of(law, name):
    """Return the law with its default gains, and the plant."""
    kind, robot = getattr(controllers, law), robot_of(name)
    if law == "QuadrotorTracking":
        outputs = Harmonic((0.0, 0.0, 1.0, 0.2), (0.4, 0.3, 0.3, 0.5), (0.25, 0.2, 0.15, 0.1), (0.0, 1.0, 2.0, 0.3))
        return kind(robot, FlatOutputs(robot, outputs)), gc.Plant(robot)
    if law == "SwingUp":
        return kind(robot, [0.0, 0.0] if name == "cart_pole" else [0.5 * np.pi, 0.0], [0]), gc.Plant(robot)
    if law == "LQR":
        return kind(robot, robot.neutral(), actuated=[0] if name == "cart_pole" else None), gc.Plant(robot)
    motion = motion_of(name, robot)
    if law == "PDGravity":
        return kind(robot, motion(0.3).q), gc.Plant(robot)
    if law == "ElasticJoint":
        smooth = Harmonic(POSTURES[name], 0.3, 0.3)
        return kind(robot, smooth, 5000.0, 0.5), ElasticPlant(robot, 5000.0, 0.5)
    if law in ("MomentumObserver", "EnergyTank"):
        inner = controllers.JointImpedance(robot, motion)
        return kind(inner) if law == "MomentumObserver" else kind(inner, Wind(robot)), gc.Plant(robot)
    if law == "OnlineIdentification":
        return kind(controllers.JointImpedance(robot, motion), period=0.004), gc.Plant(robot)
    if law in ("OperationalSpace", "CartesianImpedance", "GeometricImpedance"):
        axes = {"axes": AXES[name]} if name in AXES else {}
        return kind(robot, motion, FRAMES.get(name, robot.body_names[-1]), **axes), gc.Plant(robot)
    if law not in LEARN:
        return kind(robot, motion), gc.Plant(robot)
    load = 0.1 * float(robot.parameters[:, 0].mean())
    loaded = robot.with_payload(load, (0.05, 0.0, 0.02), 1e-2 * load * np.eye(3))
    last = {"adapt": [robot.body_names[-1]]} if robot.nbodies > 1 else {}
    return kind(robot, motion, **last), gc.Plant(loaded)


class Wind:
    """A torque that adds energy to every joint that moves."""

    def __init__(self, robot):
        self.robot = robot

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(3.0 * v)
