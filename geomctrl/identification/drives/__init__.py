"""Identification of drive gains: torque per motor current."""

from .gains import DriveGains, KnownLoad, drive_gains

__all__ = ["DriveGains", "KnownLoad", "drive_gains"]
