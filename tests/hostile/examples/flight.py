"""Flying and underactuated robots, their laws and references, and inverse dynamics as a program."""

import functools

import numpy as np
from hostile.calls import Example
from hostile.examples.common import REFERENCE, ROBOT, Q
from hostile.values import Argument, Fresh, gain, number

from geomctrl import controllers, models, references
from geomctrl.control import FlatOutputs
from geomctrl.control.references import RestToRest

UP, CART = np.zeros(2), models.cart_pole()
SATELLITE, BODY = models.satellite(), models.quadrotor()
STILL = references.hold(SATELLITE, SATELLITE.neutral())
OUTPUTS = RestToRest(np.zeros(4), np.ones(4), 2.0)
FLIGHT = FlatOutputs(BODY, OUTPUTS)
TURNING = controllers.AttitudeTracking(SATELLITE, STILL)
POSITIVE = number(2.0, positive=True)


@functools.cache
def catch():
    return controllers.LQR(CART, UP, actuated=[0], level=1.0)


EXAMPLES = {
    "models.satellite#wheels": Example({"wheels": True}),
    "control.FlatOutputs": Example({"robot": BODY, "outputs": OUTPUTS}),
    "control.FlatOutputs.__call__": Example({"t": number(0.25)}, FLIGHT),
    "controllers.AttitudeTracking": Example(
        {"robot": SATELLITE, "reference": STILL, "kR": POSITIVE, "kOmega": POSITIVE, "c": number(1e-6, positive=True)}
    ),
    "controllers.QuadrotorTracking": Example(
        {
            "robot": BODY,
            "reference": FLIGHT,
            "kx": POSITIVE,
            "kv": POSITIVE,
            "kR": POSITIVE,
            "kOmega": POSITIVE,
            "psi": number(0.5, positive=True),
            "reach": POSITIVE,
            "acceleration": number(2.0, negative=False),
        }
    ),
    "controllers.LQR": Example(
        {
            "robot": ROBOT,
            "q_d": Q,
            "Q": gain(1.0),
            "R": gain(0.5),
            "actuated": Argument([0, 1], "none"),
            "level": POSITIVE,
        }
    ),
    "controllers.SwingUp": Example(
        {
            "robot": CART,
            "q_d": Argument(UP),
            "actuated": Argument([0]),
            "kE": number(1.0, positive=True),
            "kD": number(4.0, positive=True),
            "kP": POSITIVE,
            "kv": POSITIVE,
            "catch": Fresh(catch),
        }
    ),
    "controllers.QPInverseDynamics": Example(
        {
            "robot": ROBOT,
            "reference": REFERENCE,
            "kp": gain(np.array([5.0, 6.0])),
            "kd": gain(np.array([5.0, 6.0])),
            "tasks": (),
            "clearances": (),
            "priority": "weights",
            "rate": POSITIVE,
            "share": Argument(1.0, "", "huge negative"),
        }
    ),
}

for _name, _law in (("AttitudeTracking", TURNING), ("QuadrotorTracking", controllers.QuadrotorTracking(BODY, FLIGHT))):
    EXAMPLES[f"controllers.{_name}.start"] = Example({}, _law)

BY_THE_LOOP = "called with what a loop or `testing` has checked"
PIECE = "a part of the law, for those who look at its proof; arguments as the loop hands them over"
NO_LAMBDA = "this law has no Lambda"
INHERITED = "of all laws; examples of those of `Passivity`"
LEFT_OUT = {
    "controllers.AttitudeTracking.in_domain": PIECE,
    "controllers.LQR.in_domain": PIECE,
    "controllers.LQR.start": INHERITED,
    "controllers.QPInverseDynamics.start": INHERITED,
    "controllers.QPInverseDynamics.tuned": "as `Passivity.tuned`",
    "controllers.QuadrotorTracking.in_domain": PIECE,
    "controllers.SwingUp.start": INHERITED,
}
for _name in ("AttitudeTracking", "LQR", "QPInverseDynamics", "QuadrotorTracking", "SwingUp"):
    LEFT_OUT |= {f"controllers.{_name}.{method}": BY_THE_LOOP for method in ("__call__", "lyapunov")}
    if _name != "QuadrotorTracking":
        LEFT_OUT[f"controllers.{_name}.error"] = INHERITED
        LEFT_OUT[f"controllers.{_name}.sliding"] = NO_LAMBDA
