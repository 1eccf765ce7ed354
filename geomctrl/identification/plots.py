"""Plots of an identification: torques over time, residuals, parameters with their intervals.

Each takes a report and a path, draws with matplotlib's objects (no pyplot state) and returns whether there was
something to draw.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .report import IdentificationReport

MEASURED, PREDICTED, RESIDUAL = "#1f4e79", "#e07b00", "#7f7f7f"
MOST = 4000  # points a curve


def torques(report: IdentificationReport, path: str | Path) -> bool:
    """Measured against predicted torque per joint, training and unseen data side by side."""
    from matplotlib.figure import Figure

    e = report.estimate
    parts = [("training", report.training)] + ([("unseen", report.test)] if report.test is not None else [])
    n = e.model.robot.nv
    figure = Figure(figsize=(6.5 * len(parts), 1.7 * n + 0.8), layout="constrained")
    axes = figure.subplots(n, len(parts), squeeze=False, sharex="col")
    for column, (title, data) in zip(axes.T, parts):
        t, tau, predicted, mask = e.model.predict(e.x, data)
        step = max(1, len(t) // MOST)
        holes = (
            np.diff(t[::step], prepend=t[0]) > 1.5 * step * np.median(np.diff(t)) if len(t) > 1 else np.zeros(1, bool)
        )
        for k, ax in enumerate(column):
            for y, color, label in (
                (tau, MEASURED, "measured"),
                (predicted, PREDICTED, "predicted"),
                (tau - predicted, RESIDUAL, "difference"),
            ):
                line = np.where(holes, np.nan, y[::step, k])
                ax.plot(t[::step], line, color=color, lw=1.0, label=label)
            unused = ~mask[::step, k]
            if unused.any():
                ax.fill_between(t[::step], 0, 1, where=unused, transform=ax.get_xaxis_transform(), color="0.92", lw=0)
            ax.set_ylabel(f"{e.model.robot.dof_names[k]}\n{_units(e.model.robot)[k]}", fontsize=8)
            ax.grid(alpha=0.3)
        part = report.errors["training" if title == "training" else "test"]
        column[0].set_title(
            f"{title}: relative error {100 * part['relative_error']:.2f} %"
            + (", grey: not used" if not mask.all() else "")
        )
        column[-1].set_xlabel("time [s]")
    axes[0, 0].legend(ncols=3, fontsize=7, loc="upper right")
    figure.savefig(path, dpi=110)
    return True


def _units(robot) -> list[str]:
    """Of every joint's torque."""
    return ["[N m]" if column[:3].any() else "[N]" for joint in robot.joints for column in joint.S.T]


def residuals(report: IdentificationReport, path: str | Path) -> bool:
    """Histogram of each joint's residuals beside a Gaussian of the same RMS, and their autocorrelation."""
    from matplotlib.figure import Figure

    from .estimators import autocorrelation

    e = report.estimate
    _, tau, predicted, mask = e.model.predict(e.x, report.training)
    n = e.model.robot.nv
    figure = Figure(figsize=(9.0, 1.7 * n + 0.8), layout="constrained")
    axes = figure.subplots(n, 2, squeeze=False)
    for k, (left, right) in enumerate(axes):
        r = (tau - predicted)[mask[:, k], k]
        if len(r) == 0:
            continue
        spread = max(float(np.sqrt(np.mean(r**2))), 1e-12)
        left.hist(r, bins=60, density=True, color=MEASURED, alpha=0.75)
        x = np.linspace(-4 * spread, 4 * spread, 200)
        left.plot(x, np.exp(-0.5 * (x / spread) ** 2) / (spread * np.sqrt(2 * np.pi)), color=PREDICTED, lw=1.2)
        left.set_ylabel(e.model.robot.dof_names[k], fontsize=8)
        left.set_yticks([])
        rho = autocorrelation(r)[:101]
        right.plot(rho, color=MEASURED, lw=1.0)
        right.axhspan(-1.96 / np.sqrt(len(r)), 1.96 / np.sqrt(len(r)), color=PREDICTED, alpha=0.3, lw=0)
        right.set_ylim(-1.05, 1.05)
        right.grid(alpha=0.3)
    axes[0, 0].set_title("training residuals, and a Gaussian about 0 of their RMS", fontsize=9)
    axes[0, 1].set_title("autocorrelation, and the 95 % band of white noise", fontsize=9)
    axes[-1, 0].set_xlabel("residual " + " or ".join(sorted(set(_units(e.model.robot)))))
    axes[-1, 1].set_xlabel("lag [rows]")
    figure.savefig(path, dpi=110)
    return True


def parameters(report: IdentificationReport, path: str | Path) -> bool:
    """Base parameters with their 95 % intervals, or those of least squares beside, and the model given."""
    from matplotlib.figure import Figure

    e = report.estimate
    reference = report.reference
    if reference is None or reference.std is None:
        return False
    names, std = e.model.base_names, np.maximum(reference.std, 1e-300)
    owners = dict(zip(e.model.names, e.model.owners))
    names = [f"{name}  ({owners[name]})" if name in owners else name for name in names]
    size = np.maximum(np.abs(reference.values), 3.0 * std)
    figure = Figure(figsize=(9.0, 0.2 * len(names) + 1.2), layout="constrained")
    ax = figure.subplots()
    y = np.arange(len(names))[::-1]
    ax.errorbar(reference.values / size, y, xerr=1.96 * std / size, fmt="o", ms=3.5, lw=1.2, color=MEASURED, capsize=2,
                label=f"{reference.method}, 95 %")  # fmt: skip
    if reference is not e:
        ax.plot(e.values / size, y, "x", ms=5.0, mew=1.5, color=PREDICTED, label=e.method, zorder=3)
    given = e.base.projection @ e.model.prior / size
    ax.plot(given, y, "|", ms=6.0, color="0.55", label="model given", zorder=0)
    ax.set_yticks(y, [name if len(name) < 60 else name[:56] + " ..." for name in names], fontsize=6)
    ax.set_xlim(-1.8, 1.8)
    ax.set_ylim(-1, len(names))
    ax.set_xlabel("value, relative to the greater of |value| and three standard deviations")
    ax.grid(alpha=0.3)
    ax.legend(fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    figure.savefig(path, dpi=110)
    return True
