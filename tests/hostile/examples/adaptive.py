"""Adaptive and robust controllers, and the regressors that they are made of."""

import numpy as np
from hostile.calls import Example
from hostile.examples.common import REFERENCE, ROBOT, Q, V, rng
from hostile.examples.controllers import FRICTION, GAIN, TUNING
from hostile.values import Argument, gain, number

import geomctrl as gc
from geomctrl import controllers

T, PLANT = number(0.25), gc.Plant(ROBOT, FRICTION)
POSITIVE = {name: number(0.5, positive=True) for name in ("sigma", "nu", "width", "radius", "rate", "eps", "rho")}
POSITIVE |= {name: number(0.5, positive=True) for name in ("bandwidth", "weight", "forgetting", "follow")}
SLIDING = {"robot": ROBOT, "reference": REFERENCE, "Lambda": GAIN, "K": GAIN}
ESTIMATING = {**SLIDING, "Gamma": gain(np.full(10, 0.5))}
BODY = {"adapt": ["link2"]}
LAWS = {  # for each class its own arguments, and those for the options of `SlotineLi`
    "SigmaModification": ({"sigma": POSITIVE["sigma"]}, BODY),
    "EModification": ({"nu": POSITIVE["nu"]}, BODY),
    "DeadZone": ({"width": POSITIVE["width"]}, BODY),
    "SmoothProjection": ({"radius": POSITIVE["radius"]}, BODY),
    "Composite": ({"weight": POSITIVE["weight"]}, {**BODY, "bandwidth": POSITIVE["bandwidth"]}),
    "MomentumAdaptation": ({"potential": "quadratic", "follow": POSITIVE["follow"], "rate": POSITIVE["rate"]}, BODY),
    "ConcurrentLearning": ({"weight": POSITIVE["weight"], "forgetting": POSITIVE["forgetting"]}, BODY),
    "DREM": ({}, {**BODY, "forgetting": POSITIVE["forgetting"]}),
}
EXAMPLES = {
    "controllers.NaturalAdaptation": Example({**SLIDING, **BODY, "rate": POSITIVE["rate"], "form": "ploen"}),
    "controllers.NaturalAdaptation#friction": Example({"robot": ROBOT, "reference": REFERENCE, "friction": FRICTION}),
    "controllers.Robust": Example(
        {**SLIDING, "rho": POSITIVE["rho"], "eps": POSITIVE["eps"], "form": "ploen", "strict": False}
    ),
    "controllers.SuperTwisting": Example(
        {
            "robot": ROBOT,
            "reference": REFERENCE,
            "Lambda": GAIN,
            "rate": gain(np.array([5.0, 6.0])),
            "friction": FRICTION,
        }
    ),
}
EXAMPLES |= {f"controllers.{name}": Example({**ESTIMATING, **own, **more}) for name, (own, more) in LAWS.items()}
LEFT_OUT = {}
MADE = [getattr(controllers, name)(ROBOT, REFERENCE, adapt=["link2"]) for name in LAWS]
MADE += [getattr(controllers, name)(ROBOT, REFERENCE) for name in ("NaturalAdaptation", "Robust", "SuperTwisting")]
for law in MADE:
    name, z, public = f"controllers.{type(law).__name__}", law.start(), dir(law)
    at = {"t": T, "q": Q, "v": V, "z": Argument(None, "all") if z is None else z}
    plant = {"plant": PLANT}
    EXAMPLES[f"{name}.start"] = Example({}, law)
    EXAMPLES[f"{name}.tuned"] = Example({"tuning": TUNING})
    for method in ("error", "sliding"):
        EXAMPLES[f"{name}.{method}"] = Example({"t": T, "q": Q, "v": V}, law)
    for method, arguments in {
        "__call__": at,
        "lyapunov": {**at, **plant},
        "allowance": plant,
        "true_parameters": plant,
        "settled": {"t": T, **plant},
        "sample_state": {"rng": rng(), **plant},
        "estimate": {"z": z},
        "strict_energy": {"s": V, "z": z},
    }.items():
        if method in public:
            EXAMPLES[f"{name}.{method}"] = Example(arguments, law, compare=method != "sample_state")
EXAMPLES |= {
    # c is the same for all samples
    "controllers.Robust.allowance": Example({"plant": Argument(PLANT, "all")}, MADE[-2]),
}
