"""Friction models, and their fits."""

import numpy as np
from hostile.calls import Example
from hostile.examples.common import subclasses
from hostile.values import Argument, gain, number

import geomctrl as gc

TWO = np.array([0.25, 0.5])
SMOOTHING = number(0.25, positive=True)
PLAIN = gc.Friction(TWO, 0.25, 0.125)
T = np.linspace(0.0, 1.0, 9)
V = np.array([[0.5], [0.25], [0.125], [0.25], [0.5], [0.75], [0.5], [0.25], [0.5]])
MODELS = subclasses(gc.friction, gc.friction.FrictionModel)
METHODS = (
    *("torque", "start", "state_rate", "stored_energy", "dissipation", "columns", "parameters", "check", "power"),
)


def viscous(x):
    return gc.Friction(x[0])


EXAMPLES = {
    "Friction": Example({"viscous": gain(TWO, "shape"), "coulomb": gain(TWO, "shape"), "smoothing": SMOOTHING}),
    "friction.Stribeck": Example(
        {
            "coulomb": gain(TWO, "shape"),
            "static": gain(2.0 * TWO, "shape"),
            "speed": gain(TWO, "shape"),
            "viscous": gain(TWO, "shape"),
            "smoothing": SMOOTHING,
        }
    ),
    "friction.AsymmetricCoulomb": Example(
        {"forward": gain(TWO, "shape"), "backward": gain(TWO, "shape"), "smoothing": SMOOTHING}
    ),
    "friction.LoadDependent": Example({"coefficient": gain(TWO, "shape"), "smoothing": SMOOTHING}),
    "friction.LuGre": Example(
        {
            "stiffness": gain(TWO, "shape"),
            "coulomb": gain(TWO, "shape"),
            "static": gain(2.0 * TWO, "shape"),
            "speed": gain(TWO, "shape"),
            "damping": gain(TWO, "shape"),
            "viscous": gain(TWO, "shape"),
        }
    ),
    "friction.Dahl": Example({"stiffness": gain(TWO, "shape"), "coulomb": gain(TWO, "shape")}),
    "identification.fit_friction": Example(
        {
            "make": viscous,
            "start": gain(np.array([0.5]), "shape"),
            "t": T,
            "v": V,
            "torque": gain(0.25 * V, "negative"),
            "load": Argument(0.5 * V, "none"),
        },
        compare=False,
    ),
}
LEFT_OUT = {
    **dict.fromkeys((f"friction.{model}.{method}" for model in MODELS for method in METHODS), "called by plants"),
    **dict.fromkeys((f"Friction.{method}" for method in METHODS), "called by plants"),
    "friction.FrictionModel": "a contract for subclasses",
    "FrictionFit": "made by fit_friction",
}
