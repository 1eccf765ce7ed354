"""Drives: what torque a motor's current makes."""

from .gains import DriveGains, KnownLoad, drive_gains

__all__ = ["DriveGains", "KnownLoad", "drive_gains"]
