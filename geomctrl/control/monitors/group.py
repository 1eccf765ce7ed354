"""`GroupResidual`: whether rotations in the state remain orthogonal."""

from __future__ import annotations

import numpy as np

from geomctrl.arguments import tolerance
from geomctrl.lie.groups import Product
from geomctrl.mechanism.configuration import configuration_group
from geomctrl.tracing.numbers import scalar

from .monitor import Monitor


class GroupResidual(Monitor):
    """|R^T R - 1| of the poses in q, and of a controller state that lives on a group.

    Parameters
    ----------
    limit : float
        Largest value that counts as held. Default: 1e-9.

    Raises
    ------
    ArgumentError
        If `limit` is negative or not finite.

    Examples
    --------
    >>> import geomctrl as gc
    >>> body = gc.models.satellite()
    >>> law = gc.controllers.AttitudeTracking(body, gc.references.hold(body, body.neutral()))
    >>> monitors = [gc.monitors.GroupResidual()]
    >>> run = gc.simulate(body, law, body.neutral(), [0.1, 0.0, 0.0], t_end=0.01, dt=1e-3, monitors=monitors)
    >>> run.monitors["group"].verdict
    'held'
    """

    name = "group"
    description = "|R^T R - 1|"

    def __init__(self, limit: float = 1e-9):
        self.limit = tolerance("limit", limit)

    def start(self, plant, controller):
        own = getattr(controller, "group", None)
        self.group = configuration_group(plant.robot)
        self.trivial = plant.robot.nq == plant.robot.nv and own is None
        self.product = None if own is None else Product(self.group, own)
        return True

    def measure(self, sample):
        if self.trivial:
            return 0.0
        if self.product is None:
            return scalar(self.group.residual(sample.q))
        return scalar(self.product.residual(np.concatenate((sample.q, sample.z.ravel()))))
