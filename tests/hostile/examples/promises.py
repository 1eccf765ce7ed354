"""geomctrl.testing: kinds of promise, of a loop that keeps them: a mass on a slider under PD control."""

import numpy as np
from hostile.calls import Example
from hostile.examples.common import path
from hostile.values import Argument, number, once

import geomctrl as gc
from geomctrl.mechanism import inertia
from geomctrl.testing.stability import InputToState

MASS = gc.Body(
    "mass", None, gc.Joint.prismatic([1.0, 0.0, 0.0]), np.eye(4), inertia.from_com(2.0, np.zeros(3), np.eye(3))
)
SLIDER = gc.Robot.build([MASS], gravity=(0.0, 0.0, 0.0))
P = np.array([[66.0, 4.0], [4.0, 2.0]])


class PD:
    """V = 1/2 x . P x, x = (q, v)."""

    q_d = np.zeros(1)

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(-50.0 * q - 8.0 * v)

    def lyapunov(self, t, q, v, z, plant):
        a = (-50.0 * q - 8.0 * v) / 2.0
        value = 33.0 * q.dot(q) + 4.0 * q.dot(v) + v.dot(v)
        return gc.Lyapunov(value, 66.0 * q.dot(v) + 4.0 * v.dot(v) + 4.0 * q.dot(a) + 2.0 * v.dot(a))


def power(t, q, v, z, plant):
    return v.dot(v) + 25.0 * q.dot(q)


def output(t, q, v, z):
    return v


def rate(rates):
    return rates.slope


def make(point):
    return SLIDER, PD()


LAW, X = PD(), np.array([0.5])
SEARCH = {"region": number(0.5, positive=True), "search": 8, "seed": 1}
LOOP = {"controller": LAW, "plant": SLIDER}
ALONE = {"controller": Argument(LAW, "none"), "plant": SLIDER}
RUNS = {"runs": 1}
RTOL = {"rtol": number(1e-6, negative=False)}
STATE = {"t": number(0.5, negative=False), "q": X, "v": X, "z": None}
PORT = {"storage": power, "port": "joints"}
INPUTS = {"port": "joints", "share": Argument(0.5, "", "huge negative")}
PERIOD = number(0.03125, positive=True)
LEVEL = {"level": number(0.125, negative=False), "horizon": number(0.0625, positive=True)}
TUBE = once(lambda: gc.testing.reach(SLIDER, LAW, (np.array([0.4, 0.0]), np.array([0.5, 0.1])), 0.25))
BOUNDS = Argument((np.array([-1.0, -1.0]), np.array([1.0, 1.0])))
HOLD = number(0.00390625, positive=True)
SAMPLED = {
    "controller": LAW,
    "plant": SLIDER,
    "box": Argument((0.5, 0.5)),
    "outside": Argument((0.45, 0.45), "number"),
    "budget": 2000,
}


def remaining(t, q, v, z, plant):
    """The distance to the boundary of an ellipse."""
    return 0.5 - 25.0 * q.dot(q) - v.dot(v)


BARRIER = once(lambda: gc.testing.certify_barrier(remaining, LAW, SLIDER, BOUNDS.value, budget=1))
HELD = once(lambda: gc.testing.certify_sampled(LAW, SLIDER, (0.5, 0.5), 2.0**-8, outside=(0.45, 0.45), budget=1))
OVER = {"make": make, "over": {"kp": (1.0, 2.0)}, "measure": rate}
EXAMPLES = {
    "testing.assert_exponential": Example(
        {**LOOP, "rate": number(0.5, positive=True), **SEARCH, **RUNS, **RTOL}, forms=["rate", "rtol"]
    ),
    "testing.exponential_rate": Example({**LOOP, **SEARCH}, forms=["region"]),
    "testing.assert_input_to_state_stable": Example(
        {**LOOP, "gain": number(8.0, negative=False), **INPUTS, **SEARCH, **RUNS, **RTOL}, forms=["gain", "share"]
    ),
    "testing.input_to_state_gain": Example({**LOOP, **INPUTS, **SEARCH}, forms=["share"]),
    "testing.Region": Example(
        {
            "spread": number(0.5, positive=True),
            "domain": Argument({"q": (-0.5, 0.5)}, "none"),
            "equilibrium": Argument(np.array([0.0]), "all"),  # checked with the robot and the law
        }
    ),
    "testing.Runs": Example({"count": 1, "duration": number(0.5, positive=True), "dt": number(0.125, positive=True)}),
    "testing.Port": Example(
        {"at": Argument("joints", "string shape"), "largest": number(2.0, positive=True), "output": output}
    ),
    "InputToState.bound": Example({"disturbance": number(1.0, negative=False)}, InputToState(1.0, 0.5)),
    "testing.assert_passive_port": Example(
        {**ALONE, **PORT, "nu": number(-0.5), "rho": number(0.5), **SEARCH, **RTOL}, forms=["nu", "rho"]
    ),
    "testing.passivity_index": Example({**ALONE, **PORT, **SEARCH}, forms=["region"]),
    "testing.assert_contracting": Example(
        {**LOOP, "metric": P, "rate": number(0.5), **SEARCH, **RTOL}, forms=["metric", "rate"]
    ),
    "testing.contraction_rate": Example({**LOOP, "metric": P, **SEARCH}, forms=["region"]),
    "testing.assert_sampled": Example({**LOOP, "control_dt": PERIOD, **LEVEL, **SEARCH, **RTOL}),
    "testing.sampled_level": Example({**LOOP, "control_dt": PERIOD, "horizon": LEVEL["horizon"], **SEARCH}),
    "testing.largest_control_dt": Example(
        {**LOOP, **LEVEL, "shortest": PERIOD, "longest": number(0.0625, positive=True), **SEARCH, **RTOL},
        forms=["shortest", "longest"],
    ),
    "testing.Tube.save": Example({"path": path("tube.npz")}, TUBE),
    "testing.reach": Example(
        {
            "plant": SLIDER,
            "controller": LAW,
            "initial_box": BOUNDS,
            "t_end": number(0.25, positive=True),
            "parameters": number(0.125, negative=False),
            "control_dt": number(0.125, positive=True),
            "budget": 1,
            "progress": Argument(False, "all"),
        },
        forms=["t_end", "parameters"],
        compare=False,
    ),
    "testing.Tube.box": Example(
        {"time": number(0.125, negative=False), "until": Argument(0.25, "none", "negative")}, TUBE
    ),
    "testing.Tube.stays": Example(
        {
            "signal": "q[0]",
            "upper": Argument(1.0, "none huge"),
            "lower": Argument(-1.0, "none negative"),
            "start": number(0.125, negative=False),
            "end": Argument(0.25, "none", "negative"),
        },
        TUBE,
        compare=False,
    ),
    "testing.Tube.inside": Example({"box": BOUNDS, "time": number(0.25, negative=False)}, TUBE, compare=False),
    "testing.Tube.plot": Example({"signals": Argument(["q[0]"], "none"), "samples": 2}, TUBE, compare=False),
    "testing.Tube.summary": Example({}, TUBE),
    "testing.certify_barrier": Example(
        {
            "barrier": Argument(remaining, "none"),
            "controller": LAW,
            "plant": SLIDER,
            "box": BOUNDS,
            "parameters": number(0.125, negative=False),
            "control_dt": None,
            "budget": 200,
            "progress": Argument(False, "all"),
        },
        forms=["parameters"],
        compare=False,
    ),
    "BarrierCertificate.save": Example({"path": path("barrier.npz")}, BARRIER, compare=False),
    "SampledCertificate.save": Example({"path": path("held.npz")}, HELD, compare=False),
    "testing.find_lyapunov": Example(
        {
            **LOOP,
            "box": (0.5, 0.5),
            "degree": 2,
            "budget": 16,
            "progress": Argument(False, "none"),
        },
        forms=["degree"],
        compare=False,
    ),
    "testing.certify_sampled": Example(
        {**SAMPLED, "control_dt": HOLD, "progress": Argument(False, "all")}, compare=False
    ),
    "testing.largest_certified_control_dt": Example(
        {**SAMPLED, "shortest": HOLD, "longest": number(0.00421875, positive=True)}, forms=["shortest"]
    ),
    "testing.worst_case": Example(
        {**OVER, "level": number(0.125, negative=False), "points": 1, **SEARCH}, forms=["level"]
    ),
    "testing.assert_robust": Example({**OVER, "limit": number(1.0), "points": 1, **SEARCH}, forms=["limit"]),
}
BY_THE_ENVIRONMENT = "called with what gymnasium_env has checked"
LEFT_OUT = {
    "testing.Tube": "made by testing.reach",
    "TubeCheck": "made by a Tube",
    "SampledCertificate": "made by certify_sampled",
    "BarrierCertificate": "made by certify_barrier",
    "BarrierCertificate.command": BY_THE_ENVIRONMENT,
    "BarrierCertificate.require_cover": BY_THE_ENVIRONMENT,
    "BarrierCertificate.require_safe": BY_THE_ENVIRONMENT,
    "FoundLyapunov": "made by find_lyapunov",
    "Robustness": "made by what it is the result of",
}
