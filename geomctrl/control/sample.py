"""The closed loop at the beginning of a step, as monitors and measures see it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from .contracts import Desired
from .desired import desired_at
from .plant import Plant


class Sample(NamedTuple):
    """The closed loop at the beginning of a step: what a monitor sees, to be read only."""

    t: float
    q: np.ndarray
    v: np.ndarray
    z: Any
    tau: np.ndarray  # the command
    work: float  # energy fed in since the start [J]
    plant: Plant  # as it is now
    changed: bool  # the true robot changed at this sample
    group: Any
    y: np.ndarray  # the state as one element of `group`
    reference: Any = None  # the controller's, if it has one
    signals: Mapping[str, Any] = MappingProxyType({})  # of the command
    x: Any = None  # the plant's own state
    applied: Any = None  # the joint torques (nv,) that its actuators make of the command
    measured: Mapping[str, Any] = MappingProxyType({})  # by the plant's sensors; all else here is the truth

    @property
    def desired(self) -> Desired | None:
        """The desired motion at t, evaluated once for law, monitors and record; None without a reference."""
        return None if self.reference is None else desired_at(self.reference, self.t)
