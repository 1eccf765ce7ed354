"""Sensors of a plant: what a controller is told of the truth, at samples (`Plant(sensors=...)`; docs/sensors.md)."""

from .encoder import Encoder
from .imu import Imu
from .sensor import Sensor, Truth
from .torque import JointTorque

__all__ = ["Encoder", "Imu", "JointTorque", "Sensor", "Truth"]
