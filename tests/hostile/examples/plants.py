"""Actuators, stops, plants that have both, monitors of limits."""

from dataclasses import replace

import numpy as np
from hostile.calls import Example
from hostile.examples.common import ROBOT, A, Q, V, subclasses
from hostile.values import Argument, gain, number

import geomctrl as gc
from geomctrl import actuators

LIMITED = replace(ROBOT, joints=tuple(replace(j, lower=-1.0, upper=1.0, effort=9.0) for j in ROBOT.joints))
TWO = np.array([0.5, 0.25])
LAG, STOPS = actuators.Lag(TWO), gc.JointStops(100.0, 0.5)
LAGGING = gc.Plant(LIMITED, actuators=LAG, stops=STOPS)
NOW = {"t": number(0.25), "q": Q, "v": V, "tau": A, "x": TWO}
EXAMPLES = {
    "JointStops": Example({"stiffness": gain(TWO, "shape"), "dissipation": gain(TWO, "shape")}),
    "Plant#actuated": Example(
        {"robot": LIMITED, "actuators": Argument([LAG], "empty"), "stops": Argument(STOPS, "none")}
    ),
    "Plant.acceleration#lagging": Example(NOW, LAGGING),
    "Plant.power#lagging": Example(NOW, LAGGING),
    "actuators.CurrentDrive": Example(
        {"torque_constant": gain(TWO, "negative shape"), "gear_ratio": gain(TWO, "negative shape")}
    ),
    "actuators.DCMotor": Example(
        {
            "torque_constant": gain(TWO, "negative shape"),
            "resistance": gain(TWO, "shape"),
            "inductance": gain(TWO, "shape"),
            "gear_ratio": gain(TWO, "negative shape"),
        }
    ),
    "actuators.Lag": Example(
        {
            "time_constant": gain(TWO, "shape"),
            "rate": gain(TWO, "shape none"),
            "initial": gain(TWO, "negative shape"),
        }
    ),
    "actuators.Selection": Example({"B": gain(np.array([[1.0], [0.5]]), "shape")}),
    "actuators.Selection.joints": Example(
        {"robot": ROBOT, "names": Argument(list(ROBOT.joint_names[:1]), "none")}, compare=False
    ),
    "actuators.SeriesElasticity": Example(
        {
            "stiffness": gain(TWO, "shape"),
            "rotor": gain(TWO, "shape"),
            "damping": gain(TWO, "shape"),
            "friction": gain(TWO, "shape"),
            "backlash": gain(0.01 * TWO, "shape"),
        }
    ),
    "actuators.Saturation": Example({"upper": gain(TWO, "inf"), "lower": gain(-TWO, "inf none negative")}),
    "actuators.TorqueSpeedLimits": Example(
        {"stall": gain(TWO, "shape"), "no_load": gain(TWO, "shape"), "peak": gain(TWO, "shape none")}
    ),
    "monitors.JointLimits": Example({"of": "position", "limit": number(1e-6, negative=False)}),
}
LINKS = subclasses(actuators, actuators.Actuator)
LEFT_OUT = {"actuators.Actuator": "a contract for subclasses"} | dict.fromkeys(
    (
        *(
            f"actuators.{link}.{method}"
            for link in LINKS
            for method in ("inputs", "start", "torque", "state_rate", "speed", "stored_energy", "storage_power")
        ),
        *(
            f"{plant}.{method}"
            for plant in ("Plant", "control.ElasticPlant")
            for method in ("start", "net_torque", "state_rate", "stored_energy", "storage_power")
        ),
    ),
    "called by a running loop, with what it made",
)
