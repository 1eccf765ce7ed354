"""Sensors, and actuators that act at samples."""

from hostile.calls import Example
from hostile.examples.common import subclasses
from hostile.values import Argument, gain, number, text

from geomctrl import actuators, sensors

TIMES = {
    "dt": number(0.0078125, positive=True, legal="huge"),
    "delay": number(0.015625, negative=False, legal="huge"),
    "seed": Argument(3),
}
ENCODER = {
    "bits": Argument(12),
    "offset": gain([0.25, 0.125], "negative"),
    "noise": Argument([0.25, 0.125], "huge", "negative"),
    "cutoff": number(50.0, positive=True, legal="huge"),
    "name": text("encoder"),
}
SIX = [0.25, 0.125, 0.5, 0.25, 0.125, 0.5]

EXAMPLES = {
    "sensors.Encoder": Example(ENCODER | TIMES),
    "sensors.Encoder#tachometer": Example(
        {
            "resolution": Argument(0.25, "huge", "negative"),
            "tachometer": Argument([0.25, 0.125], "huge", "negative"),
        }
    ),
    "sensors.IMU": Example(
        {
            "frame": text("tip"),
            "bias": gain(SIX, "negative"),
            "noise": Argument(SIX, "huge", "negative"),
            "name": text("imu"),
        }
        | TIMES
    ),
    "sensors.JointTorque": Example(
        {
            "side": "link",
            "bias": gain([0.25, 0.125], "negative"),
            "noise": Argument([0.25, 0.125], "huge", "negative"),
            "name": text("torque"),
        }
        | TIMES
    ),
    "actuators.TransportDelay": Example({"delay": TIMES["delay"]}),
    "actuators.RateLimit": Example({"rate": Argument([0.25, 0.125], "huge inf", "negative")}),
    "sensors.Sensor": Example({"name": text("own")} | TIMES),
}
LEFT_OUT = dict.fromkeys(
    (
        f"sensors.{name}.{method}"
        for name in subclasses(sensors, sensors.Sensor)
        for method in ("check", "outputs", "draws", "start", "measure", "between")
    ),
    "called when a plant is made, and by a running loop, with samples that it made",
)
LEFT_OUT |= dict.fromkeys(
    (
        "actuators.Sampled",
        *(
            f"actuators.{link}.{method}"
            for link in subclasses(actuators, actuators.Sampled)
            for method in ("memory", "output")
        ),
    ),
    "a contract for subclasses, called when a plant is made and by a running loop",
)
