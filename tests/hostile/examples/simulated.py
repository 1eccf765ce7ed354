"""Fits by simulating the loop, recursive least squares, and what identifies beside a law."""

import functools

import numpy as np
from hostile.calls import Example
from hostile.examples.common import REFERENCE, ROBOT, A, Q, V, rng
from hostile.values import Argument, Fresh, gain, number

import geomctrl as gc
from geomctrl import controllers
from geomctrl.identification import (
    Dataset,
    RecursiveLeastSquares,
    RegressorModel,
    SampledReference,
    ServoLoop,
)
from geomctrl.identification.output_error import didim

PERIOD = 0.005
T = PERIOD * np.arange(160)
MODEL = RegressorModel(ROBOT, smoothing=0.25)
SPEEDS = np.array([3.0, 5.0])
DESIRED = 0.5 * np.sin(np.outer(T, SPEEDS))
RATES = 0.5 * SPEEDS * np.cos(np.outer(T, SPEEDS))
MOTION = SampledReference(T, DESIRED, RATES)
LOOP = ServoLoop(MOTION, 40.0, 4.0, period=PERIOD)
LAW = controllers.ComputedTorque(ROBOT, REFERENCE)
ACCELERATIONS = -0.5 * SPEEDS**2 * np.sin(np.outer(T, SPEEDS))


@functools.cache
def log() -> Dataset:
    x = MODEL.prior
    x[MODEL.positive] = 0.25
    noise = 0.01 * np.random.default_rng(0).standard_normal(DESIRED.shape)
    return Dataset(T, DESIRED, MODEL.torque(x, DESIRED, RATES, ACCELERATIONS) + noise)


@functools.cache
def found():
    return didim(MODEL, log(), LOOP, iterations=1, estimator="ridge", options={"strength": 0.01})


def recursive(**options) -> RecursiveLeastSquares:
    rls = RecursiveLeastSquares(MODEL, **options)
    rls.update(DESIRED, RATES, ACCELERATIONS, log().tau)
    return rls


FITTED = {"start": MODEL, "logs": log(), "loop": LOOP}
COMMON = {"iterations": 1, "tolerance": number(0.02, positive=True, legal="huge")}
GAINS = {"kp": gain(np.array([100.0, 50.0]), "negative"), "kd": gain(np.array([20.0, 10.0]), "negative")}
ONLINE = controllers.OnlineIdentification(LAW, period=0.01)

EXAMPLES = {
    "identification.SampledReference": Example({"t": T, "q": DESIRED, "v": RATES, "a": ACCELERATIONS}),
    "identification.SampledReference.__call__": Example({"t": number(0.25)}, MOTION),
    "identification.ServoLoop": Example(
        {
            "reference": MOTION,
            **GAINS,
            "ki": gain(np.array([1.0, 2.0]), "negative"),
            "period": number(0.02, positive=True, legal="huge"),
            "delay": number(0.01, negative=False, legal="huge"),
            "velocity": number(20.0, positive=True, legal="huge"),
            "feedforward": ROBOT,
            "gravity": ROBOT,
            "torque": "applied",
        }
    ),
    "identification.ControllerLoop": Example(
        {
            "controller": LAW,
            "period": number(0.02, positive=True, legal="huge"),
            "delay": number(0.01, negative=False, legal="huge"),
            "torque": "applied",
        }
    ),
    "identification.closed_loop_fit.didim": Example(
        {
            **FITTED,
            **COMMON,
            "estimator": "ridge",
            "cutoff": number(10.0, positive=True),
            "decimate": Argument(2),
            "options": Argument({"strength": 0.01}),
            "settle": number(0.1, negative=False, legal="huge"),
        }
    ),
    "identification.closed_loop_fit.cloe": Example(
        {**FITTED, **COMMON, "gains": ["kp"], "delay": True, "positions": True}
    ),
    "identification.closed_loop_fit": Example({**FITTED, "method": "cloe"}),
    "OutputErrorFit.intervals": Example({"level": number(0.5, positive=True)}, Fresh(found)),
    "OutputErrorFit.value": Example({"name": "fv1"}, Fresh(found)),
    "OutputErrorFit.deviation": Example({"name": "fv1"}, Fresh(found)),
    "identification.RecursiveLeastSquares": Example(
        {
            "model": MODEL,
            "forgetting": number(0.98, positive=True),
            "rule": "directional",
            "prior": MODEL.prior,
            "deviation": gain(np.full(MODEL.base.size, 0.5), "negative"),
            "noise": gain(np.array([0.5, 0.25])),
            "bandwidth": number(20.0, positive=True, legal="huge"),
            "period": number(0.02, positive=True, legal="huge"),
        }
    ),
    "identification.RecursiveLeastSquares.update": Example(
        {"q": Q, "v": V, "a": A, "tau": np.array([1.0, 2.0])}, Fresh(recursive)
    ),
    "controllers.OnlineIdentification": Example(
        {
            "law": LAW,
            "adapt": ["link2"],
            "period": number(0.01, positive=True, legal="huge"),
            "bandwidth": number(20.0, positive=True, legal="huge"),
            "memory": number(0.5, positive=True, legal="huge"),
            "deviation": number(0.5, positive=True, legal="huge"),
            "noise": gain(np.array([0.5, 0.25])),
            "friction": gc.Friction(0.5, 0.25, 0.125),
            "margin": number(0.125, positive=True),
        }
    ),
    "controllers.OnlineIdentification.start": Example({"q0": Q, "v0": V}, ONLINE),
    "controllers.OnlineIdentification.sample_state": Example(
        {"rng": rng(), "plant": Argument(gc.Plant(ROBOT), "all")}, ONLINE, compare=False
    ),
}
LEFT_OUT = {
    **{
        f"controllers.OnlineIdentification.{name}": "as of MomentumObserver, whose state it has in the place of its own"
        for name in ("__call__", "lyapunov", "true_parameters")
    },
}
