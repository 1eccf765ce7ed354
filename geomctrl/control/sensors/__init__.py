"""Sensors, for `Plant(sensors=...)`: encoders, inertial units, joint torques. See docs/how-to/sensors.md."""

from .encoder import Encoder
from .imu import IMU
from .sensor import Sensor, Truth
from .torque import JointTorque

__all__ = ["IMU", "Encoder", "JointTorque", "Sensor", "Truth"]
