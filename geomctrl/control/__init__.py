"""The closed loop: contracts of plant, controller and reference, tracking errors, plants, monitors, the loop, runs."""

from .attitude import FlatOutputs
from .contracts import Command, Controller, Desired, Lyapunov, Reference, desired_at
from .elastic_joints import ElasticPlant
from .tracking import sliding_variables, tracking_error

__all__ = [
    "Command",
    "Controller",
    "Desired",
    "ElasticPlant",
    "FlatOutputs",
    "Lyapunov",
    "Reference",
    "desired_at",
    "sliding_variables",
    "tracking_error",
]
