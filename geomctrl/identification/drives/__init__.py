"""Drives: what torque a motor's current makes."""

from .gains import drive_gains
from .report import DriveGains

__all__ = ["DriveGains", "drive_gains"]
