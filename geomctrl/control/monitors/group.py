"""Membership of the group that the state lives on."""

from __future__ import annotations

from geomctrl.arguments import tolerance
from geomctrl.tracing.arrays import scalar

from .monitor import Monitor


class GroupResidual(Monitor):
    """|R^T R - 1| of the poses in q and of a controller state that lives on a group."""

    name = "group"
    what = "|R^T R - 1|"

    def __init__(self, limit: float = 1e-9):
        self.limit = tolerance("limit", limit)

    def start(self, plant, controller):
        self.trivial = plant.robot.nq == plant.robot.nv and getattr(controller, "group", None) is None
        return True

    def measure(self, sample):
        return 0.0 if self.trivial else scalar(sample.group.residual(sample.y))
