"""Drives: what torque a motor's current makes."""

from .gains import DriveGains, drive_gains

__all__ = ["DriveGains", "drive_gains"]
