"""`Filtering` with the numbers that depend on a log: cut-offs and thinning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomctrl.identification.findings import Finding
from geomctrl.identification.logs import Dataset, filters, signals
from geomctrl.identification.logs.samples import derive
from geomctrl.identification.model.regressor_model import RegressorModel
from geomctrl.identification.settings import Filtering
from geomctrl.robot import Robot

from .cutoffs import Cutoffs, TooShort, choose_cutoffs

SETTLING = 1.5  # periods of a low-pass: its response is down to 3 %, and what it makes of an end to below noise


@dataclass(frozen=True)
class LogFilter:
    """Cut-offs [Hz] of positions and torques, rows of which one is kept, whether measured velocities are used."""

    settings: Filtering
    cutoff: float
    torque_cutoff: float
    decimate: int
    measured_velocities: bool = True

    @classmethod
    def of(cls, settings: Filtering, data: Dataset, chosen: Cutoffs | None = None) -> LogFilter:
        """For a log; chosen: the cut-offs where none are given, default the motion's bandwidth."""
        if settings.cutoff is not None or chosen is None:
            cutoff = torque_cutoff = settings.cutoff if settings.cutoff is not None else signals.motion_bandwidth(data)
            velocities = True
        else:
            cutoff, torque_cutoff, velocities = chosen.cutoff, chosen.torque_cutoff, chosen.measured_velocities
        torque_cutoff = torque_cutoff if settings.torque_cutoff is None else settings.torque_cutoff
        filters.require_cutoff(cutoff, data.rate)
        filters.require_cutoff(torque_cutoff, data.rate, "torque_cutoff")
        decimate = settings.decimate
        if decimate is None:
            decimate = max(1, int(data.rate / (4.0 * torque_cutoff)))
            decimate -= decimate % min(decimate, signals.thinning(data.rate, cutoff, torque_cutoff))
        return cls(settings, cutoff, torque_cutoff, decimate, velocities)

    def without_saturation(self, data: Dataset, robot: Robot) -> Dataset:
        effort = np.where(robot.limits.effort > 0.0, robot.limits.effort, np.inf)  # URDF files say 0 for "not known"
        if not (self.settings.saturation and np.isfinite(effort).any()):
            return data
        return data.without_saturation(effort, widen=0.5 / self.torque_cutoff)

    def without_outliers(self, data: Dataset) -> Dataset:
        return data if self.settings.outliers is None else data.without_outliers(self.settings.outliers)

    def without_standstill(self, data: Dataset) -> Dataset:
        if self.settings.standstill is None:
            return data.without_rest()
        return data if self.settings.standstill == 0.0 else data.without_standstill(self.settings.standstill)

    def filtered(self, data: Dataset) -> Dataset:
        """Low-passed and thinned, rows masked where the filters have not settled."""
        if not self.measured_velocities and data.v is not None:
            data = derive(data, v=None, history=(*data.history, "measured velocities are not used"))
        out = data.filtered(
            self.cutoff, torque_cutoff=self.torque_cutoff, alike=self.settings.alike, decimate=self.decimate
        )
        return out.without_edges(SETTLING / min(self.cutoff, self.torque_cutoff))


def chosen_cutoffs(settings: Filtering, model: RegressorModel, data: Dataset) -> tuple[Cutoffs | None, list[Finding]]:
    """(cut-offs chosen from the torques of a log that are trusted; what is doubtful about them).

    None where a cut-off is given, and where the log is too short. Raises DataError, ArgumentError.
    """
    if settings.cutoff is not None:
        return None, []
    first = LogFilter.of(settings, data)
    try:
        chosen = choose_cutoffs(model, first.without_outliers(first.without_saturation(data, model.robot)))
    except TooShort as error:
        return None, [Finding("cutoff", str(error), "Record longer, or give a cut-off (identify: --cutoff)")]
    return chosen, chosen.findings()
