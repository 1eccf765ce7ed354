"""The closed loop: contracts of plant, controller and reference, tracking errors, plants, monitors, the loop, runs."""

from .attitude import FlatOutputs
from .contracts import Command, Controller, Desired, Lyapunov, Reference, desired_at
from .elastic_joints import ElasticPlant
from .tracking import (
    AdaptiveLaw,
    Sliding,
    TrackingError,
    adaptive_law,
    error_gradient,
    gain_matrix,
    sliding_energy,
    sliding_variables,
    tracking_error,
)

__all__ = [
    "AdaptiveLaw",
    "Command",
    "Controller",
    "Desired",
    "ElasticPlant",
    "FlatOutputs",
    "Lyapunov",
    "Reference",
    "Sliding",
    "TrackingError",
    "adaptive_law",
    "desired_at",
    "error_gradient",
    "gain_matrix",
    "sliding_energy",
    "sliding_variables",
    "tracking_error",
]
