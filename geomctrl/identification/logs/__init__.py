"""Robot logs: reading, checks, filters, selection of parts."""

from .dataset import Dataset
from .reading.options import JointMapping, Reading

__all__ = ["Dataset", "JointMapping", "Reading"]
