"""Bodies, joints, robots and their inertia."""

import numpy as np
from hostile.calls import Example
from hostile.examples.common import BODY, FRAME, ROBOT, A, Q, T, V, rng, words
from hostile.values import Argument, gain, number, text

from geomctrl import Body, Joint, Robot, inertia

AXIS, POINT = np.array([0.0, 1.0, 0.0]), np.array([0.5, 0.0, -0.25])
JOINT = Joint.revolute(AXIS, POINT, name="hinge")
LIMIT = Argument(2.0, "inf")  # an infinite limit means no limit
OPTIONS = {
    "name": text("hinge", "none"),
    "lower": Argument(-1.0, "inf"),
    "upper": Argument(1.0, "inf"),
    "velocity": Argument(2.0, "inf", "negative"),
    "effort": Argument(2.0, "inf", "negative"),
    "damping": number(0.5, negative=False),
    "friction": number(0.25, negative=False),
}
SPRING = {"stiffness": number(1.5, negative=False), "rest": number(0.25)}
MOTOR = {"armature": number(0.5, negative=False), "gear_ratio": Argument(-3.0)}
TWO = np.stack((BODY, 2.0 * BODY))
SCREWS = np.array([[0.0, 0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.5, 0.0, 0.0]])
HOMES = np.stack((np.eye(4), T))

EXAMPLES = {
    "Body": Example({"name": words("b"), "parent": text("a", "none"), "joint": JOINT, "placement": T, "inertia": BODY}),
    "Coupling": Example({"joint": words("a"), "follows": {"b": -2.0}, "offset": number(0.25)}),
    "Joint": Example({"kind": "revolute", "S": JOINT.S, **OPTIONS, **SPRING, **MOTOR}),
    "Joint.revolute": Example({"axis": AXIS, "point": POINT, **OPTIONS}),
    "Joint.prismatic": Example({"axis": AXIS, **OPTIONS}),
    "Joint.helical": Example({"axis": AXIS, "point": POINT, "pitch": 0.25, **OPTIONS}),
    "Joint.cylindrical": Example({"axis": AXIS, "point": POINT, **OPTIONS}),
    "Joint.planar": Example({"normal": AXIS, **OPTIONS}),
    "Joint.spherical": Example({"point": POINT, **OPTIONS}),
    "Joint.free": Example(OPTIONS),
    "Joint.fixed": Example({"name": text("weld", "none")}),
    "Joint.with_motor": Example({"rotor": number(0.25, negative=False), "gear_ratio": Argument(-3.0)}, JOINT),
    "Joint.from_screw": Example({"screw": SCREWS[1], **OPTIONS}),
    "Robot": Example(
        {
            "name": words("robot"),
            "body_names": ROBOT.body_names,
            "parents": (-1, 0),
            "joints": ROBOT.joints,
            "placements": HOMES,
            "parameters": TWO,
            "gravity": POINT,
            "frames": ROBOT.frames,
            "origin": ROBOT.origin,
            "couplings": [],
        }
    ),
    "Robot.build": Example(
        {
            "bodies": [Body("a", None, JOINT, None, BODY)],
            "name": words("r"),
            "gravity": POINT,
            "frames": [("tip", "a", T)],
            "couplings": [],
            "physical": True,
        }
    ),
    "Robot.from_dh": Example(
        {
            "a": Q,
            "alpha": V,
            "d": A,
            "theta": Q,
            "convention": "standard",
            "inertias": TWO,
            "prismatic": [1],
            "name": words("dh"),
            "gravity": POINT,
        }
    ),
    "Robot.from_screws": Example(
        {"screws": SCREWS, "homes": HOMES, "inertias": TWO, "parents": [-1, 0], "name": words("s"), "gravity": POINT}
    ),
    "JointCoupling.tree_configuration": Example({"q": Q}, ROBOT.coupling),
    "Robot.with_armature": Example({"armature": gain(np.array([0.25, 0.5]))}, ROBOT),
    "Robot.with_gravity": Example({"gravity": POINT}, ROBOT),
    "Robot.with_parameters": Example({"parameters": TWO, "physical": True}, ROBOT),
    "Robot.with_payload": Example(
        {"mass": number(1.0, positive=True), "com": POINT, "I_com": np.diag([0.5, 0.5, 0.25]), "frame": FRAME}, ROBOT
    ),
    "Robot.frame": Example({"name": FRAME}, ROBOT),
    "Robot.joint": Example({"name": "joint1"}, ROBOT),
    "Robot.neutral": Example({}, ROBOT),
    "Robot.random_configuration": Example({"rng": rng()}, ROBOT),
    "Robot.integrate": Example({"q": Q, "dv": V}, ROBOT),
    "Robot.difference": Example({"q0": Q, "q1": V}, ROBOT),
    "inertia.from_com": Example(
        {"mass": Argument(2.0, "shape empty"), "com": POINT, "I_com": np.diag([0.5, 0.5, 0.25])}
    ),
    "inertia.tensor": Example({"parameters": BODY}),
    "inertia.com": Example({"parameters": BODY}),
    "inertia.com_tensor": Example({"parameters": BODY}),
    "inertia.spatial": Example({"parameters": BODY}),
    "inertia.pseudo": Example({"parameters": BODY}),
    "inertia.from_pseudo": Example({"P": inertia.pseudo(BODY)}),
    "inertia.transform": Example({"T": T, "parameters": BODY}),
    "inertia.violation": Example({"parameters": Argument(BODY, "nan inf")}),  # the function returns a description
    "inertia.is_physical": Example({"parameters": BODY, "strict": True}),
    "inertia.divergence": Example({"parameters": BODY, "prior": 2.0 * BODY}),
}
assert isinstance(ROBOT, Robot)
LEFT_OUT = {
    "JointCoupling": "made by Robot.coupling alone",
    "Mechanism": "the base class of Robot, which is what users make",
    "Mechanism.frame": "Robot.frame",
    "Mechanism.joint": "Robot.joint",
}
