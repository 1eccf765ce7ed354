"""Actuators between a controller's command and the joint torques, for `Plant(robot, actuators=[...])`."""

from .actuator import Actuator
from .elasticity import SeriesElasticity
from .lag import Lag
from .limits import Saturation, TorqueSpeedLimits
from .motor import CurrentDrive, DCMotor
from .sampled import RateLimit, Sampled, TransportDelay
from .selection import Selection

__all__ = [
    "Actuator",
    "CurrentDrive",
    "DCMotor",
    "Lag",
    "RateLimit",
    "Sampled",
    "Saturation",
    "Selection",
    "SeriesElasticity",
    "TorqueSpeedLimits",
    "TransportDelay",
]
