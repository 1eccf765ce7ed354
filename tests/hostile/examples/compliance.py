"""Compliance: impedances, operational space, the energy tank, the momentum observer; poses' errors and quaternions."""

import numpy as np
from hostile.calls import Example
from hostile.examples.common import FRAME, REFERENCE, ROBOT, Q, T, V, rng
from hostile.examples.controllers import FRICTION, GAIN, PLANT, TUNING
from hostile.values import Argument, gain, number

import geomctrl as gc
from geomctrl import controllers, models, se3, so3
from geomctrl.control.references import hold

R, X = so3.exp((0.25, -0.5, 0.75)), np.array([0.25, -0.5, 0.75, 1.0, 0.5, -2.0])
SIX = models.ur10()
POSTURE = np.array([0.25, -1.0, 1.5, -0.75, -1.25, 0.5])
TOOL = SIX.body_names[-1]
HELD = hold(SIX, POSTURE)
TIME = number(0.25)
ANY = Argument(None, "all")  # a law without a state ignores it
IMPEDANCE = controllers.JointImpedance(ROBOT, REFERENCE)
SPACE = controllers.OperationalSpace(ROBOT, REFERENCE, FRAME, axes="xz")
CARTESIAN = controllers.CartesianImpedance(ROBOT, REFERENCE, FRAME, axes="xz")
GEOMETRIC = controllers.GeometricImpedance(SIX, HELD, TOOL)
OBSERVER = controllers.MomentumObserver(controllers.JointImpedance(SIX, HELD), frame=TOOL)
TANK = controllers.EnergyTank(controllers.PDGravity(ROBOT, Q), IMPEDANCE)
TASK = {"frame": FRAME, "axes": "xz", "posture": (25.0, 10.0)}

EXAMPLES = {
    "groups.SE3.pose_error": Example({"T": T, "T_d": se3.exp(X), "form": "geometric"}),
    "Robot.inverse_kinematics": Example(
        {
            "targets": {FRAME: ROBOT.pose(Q, FRAME)[:3, 3]},
            "q0": Q + 0.125,
            "tolerance": number(1e-9, positive=True, legal="huge"),
            "iterations": Argument(50),
            "starts": Argument(3),
            "seed": Argument(0),
        },
        ROBOT,
        compare=False,
    ),
    "controllers.JointImpedance": Example(
        {
            "robot": ROBOT,
            "reference": REFERENCE,
            "stiffness": GAIN,
            "damping": GAIN,
            "inertia": GAIN,
            "external": lambda t, q, v: 0.0 * v,
            "friction": FRICTION,
        }
    ),
    "controllers.JointImpedance.tuned": Example({"tuning": TUNING}),
    "controllers.OperationalSpace": Example({"robot": ROBOT, "reference": REFERENCE, **TASK, "kp": GAIN, "kd": GAIN}),
    "controllers.CartesianImpedance": Example(
        {"robot": ROBOT, "reference": REFERENCE, **TASK, "stiffness": GAIN, "damping": GAIN}
    ),
    "controllers.GeometricImpedance": Example(
        {
            "robot": SIX,
            "reference": HELD,
            "frame": TOOL,
            "stiffness": gain(np.arange(1.0, 7.0)),
            "damping": gain(np.arange(1.0, 7.0)),
            "posture": (25.0, 10.0),
        }
    ),
    "controllers.MomentumObserver": Example(
        {
            "law": IMPEDANCE,
            "gain": GAIN,
            "friction": FRICTION,
            "threshold": Argument(np.array([1.0, 2.0]), "huge", "negative"),
            "frame": FRAME,
        }
    ),
    "controllers.EnergyTank": Example(
        {
            "passive": controllers.PDGravity(ROBOT, Q),
            "active": IMPEDANCE,
            "start": number(1.0, positive=True),
            "lowest": number(0.125, negative=False),
            "full": number(2.0, positive=True, legal="huge"),
            "margin": number(0.125, positive=True, legal="huge"),
            "recovered": number(0.5, negative=False),
        }
    ),
}
for law, q, v, z in (
    (IMPEDANCE, Q, V, ANY),
    (SPACE, Q, V, ANY),
    (CARTESIAN, Q, V, ANY),
    (GEOMETRIC, POSTURE, X, ANY),
    (OBSERVER, POSTURE, X, X),
    (TANK, Q, V, np.array([0.5])),
):
    name = f"controllers.{type(law).__name__}"
    plant = PLANT if law.robot is ROBOT else gc.Plant(SIX)
    looked_at = Argument(plant, "all") if law is SPACE else plant  # whose V does not depend on the plant
    at_start = {"q0": Argument(q, "none"), "v0": Argument(v, "none")} if law in (OBSERVER, TANK) else {}
    EXAMPLES[f"{name}.start"] = Example(at_start, law)
    EXAMPLES[f"{name}.__call__"] = Example({"t": TIME, "q": q, "v": v, "z": z}, law)
    EXAMPLES[f"{name}.lyapunov"] = Example({"t": TIME, "q": q, "v": v, "z": z, "plant": looked_at}, law)
    if law not in (OBSERVER, TANK):
        EXAMPLES[f"{name}.error"] = Example({"t": TIME, "q": q, "v": v}, law)
    else:
        EXAMPLES[f"{name}.true_parameters"] = Example({"plant": Argument(plant, "all")}, law)
        EXAMPLES[f"{name}.sample_state"] = Example({"rng": rng(), "plant": Argument(plant, "all")}, law, compare=False)
NO_LAMBDA, PIECE = "of laws with Lambda only", "a step of the law, with what the law computed"
LEFT_OUT = {"controllers.JointImpedance.sliding": NO_LAMBDA}
for law in ("OperationalSpace", "CartesianImpedance", "GeometricImpedance"):
    LEFT_OUT[f"controllers.{law}.sliding"] = NO_LAMBDA
