"""A report's pictures, as files and for its page; matplotlib is imported when one is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.identification.estimators.residuals import autocorrelation

from .numbers import ReportNumbers


@dataclass(frozen=True, eq=False)
class Pictures:
    """What there is to draw: `fits.Joint`s, `fits.Torques` of training and, if any, unseen data, autocorrelations of
    the training residuals, and (`fits.Intervals`, the model's own values, (method, values) or None), if any.
    """

    joints: list[Any]
    parts: list[Any]
    autocorrelations: list[np.ndarray]
    parameters: tuple[Any, np.ndarray, tuple[str, np.ndarray] | None] | None

    @classmethod
    def of(cls, report: ReportNumbers) -> Pictures:
        from geomctrl.viewing import fits

        e, reference = report.estimate, report.reference
        speeds = {"N m": "rad/s", "N": "m/s"}
        joints = [fits.Joint(name, unit, speeds[unit]) for name, unit in zip(e.model.robot.dof_names, report.units)]
        logs = {"training": report.training} | ({"unseen": report.test} if report.test is not None else {})
        parts = []
        for (title, data), errors in zip(logs.items(), report.errors.values()):
            heading = f"{title}: relative error {100 * errors['relative_error']:.2f} %"
            t, tau, predicted, used = e.model.predict(e.x, data)
            assert data.v is not None
            parts.append(fits.Torques(heading, t, tau, predicted, used, data.v[e.model.rows(data)]))
        residuals = [parts[0].residual(k) for k in range(len(joints))]
        rho = [autocorrelation(r) if len(r) else r for r in residuals]
        box = None if reference is None else reference.intervals()
        if reference is None or reference.std is None or box is None:
            return cls(joints, parts, rho, None)
        owners = dict(zip(e.model.names, e.model.owners))
        names = [f"{name}  ({owners[name]})" if name in owners else name for name in e.model.base_names]
        crosses = (e.method, e.values) if reference is not e else None
        half = 0.5 * (box[:, 1] - box[:, 0])
        intervals = fits.Intervals(names, reference.method, reference.values, reference.std, half)
        return cls(joints, parts, rho, (intervals, e.base.projection @ e.model.prior, crosses))

    def save(self, folder: Path) -> list[Path]:
        """Write torques.png, residuals.png and, where there are standard deviations, parameters.png."""
        from geomctrl.viewing import identification as view

        written = [
            view.torques(self.joints, self.parts, folder / "torques.png"),
            view.residuals(self.joints, self.parts, self.autocorrelations, folder / "residuals.png"),
        ]
        if self.parameters is not None:
            written.append(view.parameters(*self.parameters, folder / "parameters.png"))
        return written

    def joint_by_joint(self) -> list[list[tuple[str, str]]]:
        """Per joint, (what a picture shows, SVG) of each; see `viewing.identification.joint_pictures`."""
        from geomctrl.viewing import identification as view

        return [
            view.joint_pictures(joint, k, self.parts, rho)
            for k, (joint, rho) in enumerate(zip(self.joints, self.autocorrelations))
        ]

    def of_parameters(self) -> str | None:
        """SVG of base parameters with their intervals; None without standard deviations."""
        from geomctrl.viewing import identification as view

        return None if self.parameters is None else view.parameter_picture(*self.parameters)
