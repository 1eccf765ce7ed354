"""Integration on groups: integrators, rollout."""

import numpy as np
from hostile.calls import Example
from hostile.examples.common import BODY, ROBOT, A, Q, V, words
from hostile.values import Argument, gain, number

import geomctrl as gc
from geomctrl import groups, integrators

GROUP, Y0 = groups.SO3(), np.eye(3)


def field(t, y):
    return np.array([0.5, 0.25, 1.0]) + 0.0 * t


def fraction(done):
    return None


def height(t, y):
    return y[0, 0] - 0.5


INTERPOLANT = np.array([[1.0, -0.5], [0.0, 0.5], [0.0, 0.0]])  # u(theta) = h (theta F1 + theta^2 (F2 - F1) / 2)
STEP = number(0.125, positive=True)
ACROSS = {"t_end": number(0.5, positive=True), "dt": STEP, "every": Argument(1), "progress": fraction}
START = {"robot": ROBOT, "q0": Q, "v0": V}
METHOD = "MK4"
FREE = gc.Robot.build([gc.Body("body", None, gc.Joint.free(), None, BODY)])
FREE_START = {"robot": FREE, "q0": FREE.neutral(), "v0": np.ones(6), "tau": Argument(np.ones(6), "none")}
FORM = "momentum_form"

EXAMPLES = {
    "integrators.integrate": Example(
        {
            "field": field,
            "y0": Y0,
            "t_span": np.array([0.0, 0.5]),
            "h": number(0.125, negative=False),
            "method": METHOD,
            "group": GROUP,
            "every": Argument(1),
            "events": [integrators.Event(height)],
            "dense": True,
            "progress": fraction,
        }
    ),
    "integrators.steps": Example(
        {
            "field": field,
            "y0": Y0,
            "t_span": np.array([0.0, 0.5]),
            "h": Argument(0.125, "none", "negative"),
            "method": "MK54",
            "group": GROUP,
        }
    ),
    "integrators.Adaptive": Example(
        {"method": "MK54", "rtol": number(1e-6, negative=False), "atol": gain(np.full(3, 1e-6), "objects shape")}
    ),
    "integrators.step": Example({"method": METHOD, "field": field, "t": 0.25, "y": Y0, "h": 0.125, "group": GROUP}),
    "integrators.methods": Example(),
    "integrators.Tableau": Example(
        {
            "name": words("Heun"),
            "order": Argument(2),
            "A": np.array([[0.0, 0.0], [1.0, 0.0]]),
            "b": np.array([0.5, 0.5]),
            "c": np.array([0.0, 1.0]),
            "b_hat": np.array([1.0, 0.0, 0.0]),
            "interpolant": Argument(INTERPOLANT, "shape"),
            "family": "MK",
        }
    ),
    "integrators.Event": Example(
        {
            "function": height,
            "terminal": True,
            "direction": Argument(1, "negative huge fraction"),
            "name": words("height"),
        }
    ),
    "rollout": Example({**START, "tau": Argument(A, "none"), **ACROSS, "method": METHOD}),
    "rollout#variational": Example({**START, "tau": Argument(A, "none"), **ACROSS, "method": "variational"}),
    "rollout#momentum": Example({**FREE_START, **ACROSS, "method": FORM, "tableau": METHOD}),
}
RESULT = "made by integrate, which says what is in it"
LEFT_OUT = {
    "Solution": RESULT,
    "integrators.Event.__call__": "calls the user's function with what the integrator hands it",
    "Trajectory": "made by rollout",
}
