"""Logs of robots: reading, checks, filters, parts."""

from .dataset import Dataset
from .reading import JointMapping, Reading

__all__ = ["Dataset", "JointMapping", "Reading"]
