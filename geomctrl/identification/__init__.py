"""Identification of robots from data."""

from .base_parameters import BaseParameters, base_parameters, exact_base_parameters

__all__ = ["BaseParameters", "base_parameters", "exact_base_parameters"]
