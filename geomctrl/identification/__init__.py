"""Identification of robots from data: base parameters so far."""

from .base_parameters import BaseParameters, base_parameters

__all__ = ["BaseParameters", "base_parameters"]
