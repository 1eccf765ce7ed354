"""A report's arrays for `geomctrl.viewing`, as files and for its page; matplotlib is imported when one draws."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .estimators.residuals import autocorrelation


@dataclass(frozen=True, eq=False)
class Arrays:
    """What there is to draw: `fits.Joint`s, `fits.Torques` of training and, if any, unseen data, autocorrelations of
    the training residuals, and (`fits.Intervals`, the model's own values, (method, values) or None), if any.
    """

    joints: list[Any]
    parts: list[Any]
    autocorrelations: list[np.ndarray]
    parameters: tuple[Any, np.ndarray, tuple[str, np.ndarray] | None] | None


def arrays(report: Any) -> Arrays:
    """Of an IdentificationReport."""
    from geomctrl.viewing import fits

    e, reference = report.estimate, report.reference
    speeds = {"N m": "rad/s", "N": "m/s"}
    joints = [fits.Joint(name, unit, speeds[unit]) for name, unit in zip(e.model.robot.dof_names, report.units)]
    logs = {"training": report.training} | ({"unseen": report.test} if report.test is not None else {})
    parts = []
    for (title, data), errors in zip(logs.items(), report.errors.values()):
        said = f"{title}: relative error {100 * errors['relative_error']:.2f} %"
        t, tau, predicted, used = e.model.predict(e.x, data)
        parts.append(fits.Torques(said, t, tau, predicted, used, data.v[e.model.rows(data)]))
    residuals = [parts[0].residual(k) for k in range(len(joints))]
    rho = [autocorrelation(r) if len(r) else r for r in residuals]
    if reference is None or reference.std is None:
        return Arrays(joints, parts, rho, None)
    owners = dict(zip(e.model.names, e.model.owners))
    names = [f"{name}  ({owners[name]})" if name in owners else name for name in e.model.base_names]
    crosses = (e.method, e.values) if reference is not e else None
    box = reference.intervals()
    known = fits.Intervals(names, reference.method, reference.values, reference.std, 0.5 * (box[:, 1] - box[:, 0]))
    return Arrays(joints, parts, rho, (known, e.base.projection @ e.model.prior, crosses))


def save(report: Any, folder: Path) -> list[Path]:
    """Write torques.png, residuals.png and, where there are standard deviations, parameters.png."""
    from geomctrl.viewing import identification as view

    drawn = report.drawn
    written = [
        view.torques(drawn.joints, drawn.parts, folder / "torques.png"),
        view.residuals(drawn.joints, drawn.parts, drawn.autocorrelations, folder / "residuals.png"),
    ]
    if drawn.parameters is not None:
        known, given, other = drawn.parameters
        written.append(view.parameters(known, given, other, folder / "parameters.png"))
    return written


def joint_by_joint(report: Any) -> list[list[tuple[str, str]]]:
    """Per joint, (what a picture shows, SVG) of each; see `viewing.identification.joint_pictures`."""
    from geomctrl.viewing import identification as view

    drawn = report.drawn
    return [
        view.joint_pictures(joint, k, drawn.parts, rho)
        for k, (joint, rho) in enumerate(zip(drawn.joints, drawn.autocorrelations))
    ]


def of_parameters(report: Any) -> str | None:
    """SVG of base parameters with their intervals; None without standard deviations."""
    from geomctrl.viewing import identification as view

    drawn = report.drawn
    return None if drawn.parameters is None else view.parameter_picture(*drawn.parameters)
