"""Sensors, for `Plant(sensors=...)`: encoders, inertial units, joint torques. See docs/how-to/sensors.md."""

from typing import TYPE_CHECKING

from geomctrl.other_names import unknown_names

from .encoder import Encoder
from .imu import IMU
from .sensor import Sensor, Truth
from .torque import JointTorque

__all__ = ["IMU", "Encoder", "JointTorque", "Sensor", "Truth"]

if not TYPE_CHECKING:  # type checkers report unknown names themselves
    __getattr__ = unknown_names(__name__, __all__)
