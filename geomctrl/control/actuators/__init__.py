"""Actuators between a controller's command and the joint torques, for `Plant(robot, actuators=[...])`."""

from typing import TYPE_CHECKING

from geomctrl.other_names import unknown_names

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

if not TYPE_CHECKING:  # type checkers report unknown names themselves
    __getattr__ = unknown_names(__name__, __all__)
