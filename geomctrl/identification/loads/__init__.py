"""Loads and tools: mass, centre and inertia of what a robot carries, from joint torques or a sensor at its wrist."""

from .load import WristSensor, identify_load
from .report import LoadReport

__all__ = ["LoadReport", "WristSensor", "identify_load"]
