"""The bundled control laws."""

import functools

import numpy as np
from hostile.calls import Example
from hostile.examples.common import REFERENCE, ROBOT, A, Q, V, rng
from hostile.values import Argument, Fresh, gain, number

import geomctrl as gc
from geomctrl import controllers
from geomctrl.control.references import Harmonic
from geomctrl.control.tuning import Design, Tuning

FRICTION = gc.Friction(0.5, 0.25, 0.125)
RULE = Design(np.ones(2), 5.0, 20.0 * np.ones(2), 25.0, 0.001)
TUNING = Tuning(ROBOT, REFERENCE, RULE, 2.0)
GAIN = gain(np.array([5.0, 6.0]))
PD, PASSIVE = controllers.PDGravity(ROBOT, Q), controllers.Passivity(ROBOT, REFERENCE, friction=FRICTION)
CONSTANT = controllers.PDGravity(ROBOT, Q, constant=True)


@functools.cache
def known_bounds():
    return ROBOT.bounds(method="closed form")


TORQUE = controllers.ComputedTorque(ROBOT, REFERENCE)
ADAPTIVE = controllers.SlotineLi(ROBOT, REFERENCE, friction=FRICTION, minimum_mass=0.25)
ELASTIC = controllers.ElasticJoint(ROBOT, Harmonic(Q, 0.5, 0.25), 100.0, 0.5)
PLANT = gc.Plant(ROBOT, FRICTION)
Z = ADAPTIVE.start()
T = number(0.25)
EXAMPLES = {
    "controllers.classes": Example({"tuned": True}),
    "controllers.PDGravity": Example(
        {"robot": ROBOT, "q_d": Q, "kp": GAIN, "kd": GAIN, "constant": Argument(False), "strict": Argument(False)}
    ),
    "controllers.PDGravity.gravity_margin": Example({"bounds": Fresh(known_bounds)}, CONSTANT),
    "controllers.ComputedTorque": Example(
        {"robot": ROBOT, "reference": REFERENCE, "kp": GAIN, "kd": GAIN, "friction": FRICTION, "strict": True}
    ),
    "controllers.Passivity": Example(
        {
            "robot": ROBOT,
            "reference": REFERENCE,
            "Lambda": GAIN,
            "K": GAIN,
            "friction": FRICTION,
            "form": "ploen",
            "strict": False,
        }
    ),
    "controllers.SlotineLi": Example(
        {
            "robot": ROBOT,
            "reference": REFERENCE,
            "Lambda": GAIN,
            "K": GAIN,
            "Gamma": gain(np.full(10, 0.5)),
            "adapt": ["link2"],
            "minimum_mass": number(0.25, positive=True),
            "rate": number(2.0, positive=True),
            "form": "ploen",
        }
    ),
    "controllers.SlotineLi#friction": Example({"robot": ROBOT, "reference": REFERENCE, "friction": FRICTION}),
    "controllers.ElasticJoint": Example(
        {
            "robot": ROBOT,
            "reference": Harmonic(Q, 0.5, 0.25),
            "stiffness": gain(np.array([100.0, 50.0])),
            "rotor": gain(np.array([0.5, 0.25])),
            "bandwidth": gain(np.array([10.0, 5.0])),
        }
    ),
}
for law in (PD, TORQUE, PASSIVE, ADAPTIVE, ELASTIC):
    name = f"controllers.{type(law).__name__}"
    state = {"q": Q, "v": V} if law is not ELASTIC else {"q": np.tile(Q, 2), "v": np.tile(V, 2)}
    own = Z if law is ADAPTIVE else Argument(None, "all")  # a law without a state ignores it
    plant = PLANT if law is not ELASTIC else gc.control.ElasticPlant(ROBOT, 100.0, 0.5)
    EXAMPLES[f"{name}.start"] = Example({}, law)
    EXAMPLES[f"{name}.__call__"] = Example({"t": T, **state, "z": own}, law)
    # whose V does not depend on the plant
    looked_at = plant if law not in (TORQUE, ELASTIC) else Argument(plant, "all")
    EXAMPLES[f"{name}.lyapunov"] = Example({"t": T, **state, "z": own, "plant": looked_at}, law)
    if law is not ELASTIC:
        EXAMPLES[f"{name}.tuned"] = Example({"tuning": TUNING})
        EXAMPLES[f"{name}.error"] = Example({"t": T, "q": Q, "v": V}, law)
for law in (PASSIVE, ADAPTIVE):
    EXAMPLES[f"controllers.{type(law).__name__}.sliding"] = Example({"t": T, "q": Q, "v": V}, law)
EXAMPLES |= {
    "controllers.SlotineLi.estimate": Example({"z": Z}, ADAPTIVE),
    "controllers.SlotineLi.sample_state": Example({"rng": rng(), "plant": PLANT}, ADAPTIVE, compare=False),
    "controllers.SlotineLi.true_parameters": Example({"plant": PLANT}, ADAPTIVE),
    "controllers.ElasticJoint.reference": Example({"t": T}, ELASTIC),
    "controllers.ComputedTorque.acceleration": Example({"t": T, "q": Q, "v": V, "z": Argument(None, "all")}, TORQUE),
}
assert A.size
NO_LAMBDA = "of laws with Lambda only"
PIECE = "a step of the law, with what the law computed"
LEFT_OUT = {
    "controllers.ComputedTorque.sliding": NO_LAMBDA,
    "controllers.PDGravity.sliding": NO_LAMBDA,
    "controllers.ElasticJoint.errors": PIECE,
}
