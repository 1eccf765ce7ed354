"""Bodies and robots under constraints."""

import numpy as np
from hostile.calls import Example
from hostile.examples.common import BODY, ROBOT, Q, T, V, words
from hostile.values import Argument, number

from geomctrl import groups
from geomctrl.papers.constrained import (
    GGL,
    Baumgarte,
    ClosedLoops,
    ConstrainedBody,
    ConstrainedSystem,
    Constraint,
)
from geomctrl.papers.constrained.joints import HolonomicFunctions

POINT, AXIS = np.array([0.5, 0.0, -0.25]), np.array([0.0, 1.0, 0.0])
PIN = Constraint(
    "revolute", "pin", ("world", "bar"), point=np.zeros(3), point_b=np.array([-0.5, 0.0, 0.0]), axis=AXIS, axis_b=AXIS
)
FREE = np.array([[1.0, 0.0, 0.0, 0.5], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
BAR = ConstrainedBody("bar", BODY, FREE)
SYSTEM = ConstrainedSystem([BAR], [PIN], stabilisation=Baumgarte(1.0, 1.0))
Y = SYSTEM.consistent(None, [[0.0, 0.5, 0.0, 0.0, 0.0, 0.0]])
LENGTH = 1.5
LOOP = Constraint("distance", "rod", ("world", "link2"), point=POINT, point_b=2.0 * POINT, length=LENGTH)
LOOPS = ClosedLoops(ROBOT, [LOOP])
YL = LOOPS.consistent(Q, V)
T_SPAN = np.array([0.0, 0.015625])
STEP = number(0.0078125, positive=True)


def function(poses):
    return np.array([poses[0][0, 3]])


def jacobian(poses):
    return np.array([[0.0, 0.0, 0.0, 1.0, 0.0, 0.0]])


def wrench(t, poses, twists):
    return np.zeros((1, 6))


EXAMPLES = {
    "constrained.Baumgarte": Example(
        {"damping": number(1.0, negative=False), "stiffness": number(1.0, negative=False)}
    ),
    "constrained.GGL": Example({"rate": number(0.5, negative=False)}),
    "constrained.ConstrainedBody": Example({"name": words("bar"), "inertia": BODY, "pose": T, "group": groups.SE3()}),
    "constrained.ConstrainedSystem": Example(
        {
            "bodies": [BAR],
            "constraints": Argument([PIN], "empty"),
            "group": groups.SE3(),
            "gravity": POINT,
            "wrench": wrench,
            "stabilisation": Baumgarte(1.0, 1.0),
        }
    ),
    "constrained.ClosedLoops": Example(
        {
            "robot": ROBOT,
            "constraints": Argument([LOOP], "empty"),
            "torque": lambda t, q, v: np.zeros(2),
            "stabilisation": GGL(),
            "reference": Q,
        }
    ),
    "constrained.Constraint": Example(
        {
            "kind": "distance",
            "name": words("rod"),
            "bodies": ("world", "bar"),
            "point": POINT,
            "point_b": POINT,
            "length": number(1.5, positive=True),
        }
    ),
    "constrained.Constraint#axes": Example(
        {"kind": "universal", "name": words("cross"), "bodies": ("world", "bar"), "axis": AXIS, "axis_b": POINT}
    ),
    "constrained.Constraint#hinge": Example(
        {"kind": "revolute", "name": words("hinge"), "bodies": ["world", "bar"], "point": POINT, "axis": AXIS}
    ),
    "constrained.Constraint#holonomic": Example(
        {
            "kind": "holonomic",
            "name": words("own"),
            "bodies": ("bar",),
            "functions": HolonomicFunctions(function, jacobian, lambda poses, twists: np.zeros(1)),
        }
    ),
    "constrained.Constraint.holonomic": Example(
        {
            "name": words("own"),
            "bodies": ["bar"],
            "function": function,
            "jacobian": jacobian,
            "bias": lambda poses, twists: np.zeros(1),
        }
    ),
    "constrained.integrate_index1": Example(
        {
            "system": SYSTEM,
            "y0": Y,
            "t_span": T_SPAN,
            "h": STEP,
            "method": "MK4",
            "project": True,
            "every": Argument(1),
        }
    ),
    "constrained.integrate_index3": Example(
        {
            "system": ConstrainedSystem([BAR], [PIN]),
            "y0": Y,
            "t_span": T_SPAN,
            "h": STEP,
            "rho": number(0.5, negative=False),
            "every": Argument(1),
            "representation": "spatial",
        }
    ),
    "constrained.ConstrainedSystem.state": Example({"poses": SYSTEM.poses(Y), "velocities": SYSTEM.twists(Y)}, SYSTEM),
    "constrained.ConstrainedSystem.consistent": Example(
        {"poses": T[None], "velocities": np.ones((1, 6)), "free": Argument(np.ones((1, 6), bool), forms=False)}, SYSTEM
    ),
    "constrained.ClosedLoops.state": Example({"q": YL[:2], "v": YL[2:]}, LOOPS),
    "constrained.ClosedLoops.consistent": Example(
        {"q": Q, "v": V, "free": Argument(np.ones(2, bool), forms=False)}, LOOPS
    ),
}
OF_STATES = (
    "energy",
    "jacobian",
    "kinetic_energy",
    "momentum",
    "poses",
    "project",
    "rank",
    "redundant",
    "residual",
    "twists",
    "violation",
)
for owner, system, y in (("ConstrainedSystem", SYSTEM, Y), ("ClosedLoops", LOOPS, YL)):
    for method in OF_STATES:
        if hasattr(system, method):
            of = {"of": "velocity"} if method == "violation" else {}
            EXAMPLES[f"constrained.{owner}.{method}"] = Example({"y": y, **of}, system)
    for method in ("accelerations", "field", "reactions"):
        EXAMPLES[f"constrained.{owner}.{method}"] = Example({"t": number(0.25), "y": y}, system)
LEFT_OUT: dict[str, str] = {}
