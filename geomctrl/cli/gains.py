"""Gains that are given on the command line, and where a run with the rule's gains starts.

The rule that all controllers share is `geomctrl.control.tuning`'s, and each says what it makes of it.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np

from geomctrl.control.contracts import Reference
from geomctrl.control.tuning import Design
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot

START = 0.01  # rad/s or m/s, largest initial velocity error


def start(robot: Robot, motion: Reference, rule: Design) -> tuple[np.ndarray, np.ndarray]:
    """(q0, v0): on the motion, with a small velocity error to remove in the direction that K damps most slowly.

    In that direction no fast mode is excited, which a step of dt would follow less well.
    """
    q, v, _ = motion(0.0)
    root = np.sqrt(rule.kappa * rule.D)
    slowest = np.linalg.eigh(robot.mass_matrix(q) / np.outer(root, root))[1][:, -1] / root
    return q, v + START * slowest / np.abs(slowest).max()


def parse_gains(controller: str, known: Collection[str], text: str | None) -> dict[str, float]:
    """ "Lambda=8,kappa=30" as a dict, checked against the gains that the controller is known to have."""
    gains: dict[str, float] = {}
    for part in (text or "").replace(" ", "").split(","):
        if not part:
            continue
        name, _, number = part.partition("=")
        if name not in known:
            raise ArgumentError(f"gains: {controller} has no gain {name!r}; known: {', '.join(known)}")
        try:
            gains[name] = float(number)
        except ValueError:
            raise ArgumentError(f"gains: expected {name}=number, got {part!r}") from None
        if not (math.isfinite(gains[name]) and gains[name] > 0.0):
            raise ArgumentError(f"gains: {name}: expected a positive number, got {number}")
    return gains
