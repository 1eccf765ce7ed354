"""Exciting trajectories: motions within a robot's limits that tell its base parameters apart."""

from .search import Excitation, optimize
from .trajectory import Trajectory

__all__ = ["Excitation", "Trajectory", "optimize"]
