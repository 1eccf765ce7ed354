"""Loads and tools: mass, centre and inertia of what a robot carries, from joint torques or a sensor at its wrist."""

from .load import identify_load
from .report import LoadReport

__all__ = ["LoadReport", "identify_load"]
