"""Closed loops: plants, controller and reference interfaces, tracking errors, monitors, simulation and its results."""

from .attitude import FlatOutputs
from .contracts import Command, Controller, Desired, Lyapunov, Reference, desired_at
from .elastic_joints import ElasticPlant
from .rebuilding import arguments, with_arguments

__all__ = [
    "Command",
    "Controller",
    "Desired",
    "ElasticPlant",
    "FlatOutputs",
    "Lyapunov",
    "Reference",
    "arguments",
    "desired_at",
    "with_arguments",
]
