"""Validation of `Plant(changes=...)`: times at which another robot becomes the true one (loads gripped or dropped)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from geomctrl.arguments import is_a, listed, shown
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot


def checked_changes(robot: Robot, changes: Any) -> tuple[tuple[float, Robot], ...]:
    """(time, robot) pairs sorted by time. Raises ArgumentError unless all robots have the joints of the first."""
    try:
        pairs = [(t, changed) for t, changed in listed("changes", changes)]
    except (TypeError, ValueError):
        raise ArgumentError(f"changes: expected (time, robot) pairs, got {shown(changes)}") from None
    for t, changed in pairs:
        if not (isinstance(t, int | float | np.number) and math.isfinite(t) and is_a(changed, Robot)):
            raise ArgumentError(f"changes: expected a finite time and a geomctrl.Robot, got {t} and {shown(changed)}")
        if not _same_joints(changed, robot):
            raise ArgumentError(f"changes: the robot from t = {t:g} on has other joints than the first")
    return tuple(sorted(((float(t), changed) for t, changed in pairs), key=lambda pair: pair[0]))


def _same_joints(a: Robot, b: Robot) -> bool:
    return (
        a.parents == b.parents
        and np.array_equal(a.coupling.matrix, b.coupling.matrix)
        and np.array_equal(a.placements, b.placements)
        and all(np.array_equal(i.S, j.S) for i, j in zip(a.joints, b.joints))
    )
