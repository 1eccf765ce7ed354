"""An identification in pictures: torques over time, residuals, parameters with their intervals.

Everything comes as arrays, so that nothing here knows an estimate or a report. Drawn with matplotlib's objects (no
pyplot state); each function writes one file and returns its path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from .style import write_png

MEASURED, PREDICTED, RESIDUAL = "#1f4e79", "#e07b00", "#7f7f7f"
MOST = 4000  # points a curve


@dataclass(frozen=True)
class Joint:
    """A joint's name and the unit of its torque."""

    name: str
    unit: str


@dataclass(frozen=True, eq=False)
class Torques:
    """Torques (N, nv) of one log at times t (N,) [s]; used: False where a sample was left out."""

    title: str
    t: np.ndarray
    measured: np.ndarray
    predicted: np.ndarray
    used: np.ndarray


@dataclass(frozen=True, eq=False)
class Intervals:
    """Estimates by `method` with their standard deviations."""

    names: Sequence[str]
    method: str
    values: np.ndarray
    std: np.ndarray


def torques(joints: Sequence[Joint], parts: Sequence[Torques], path: Path) -> Path:
    """Measured against predicted torque per joint, the parts (training and unseen data) side by side."""
    figure = Figure(figsize=(6.5 * len(parts), 1.7 * len(joints) + 0.8), layout="constrained")
    axes = figure.subplots(len(joints), len(parts), squeeze=False, sharex="col")
    for column, part in zip(axes.T, parts):
        for k, (ax, joint) in enumerate(zip(column, joints)):
            _draw_torque(ax, part, k)
            ax.set_ylabel(f"{joint.name}\n[{joint.unit}]", fontsize=8)
        column[0].set_title(part.title + (", grey: not used" if not part.used.all() else ""))
        column[-1].set_xlabel("time [s]")
    axes[0, 0].legend(ncols=3, fontsize=7, loc="upper right")
    return write_png(figure, path)


def _draw_torque(ax, part: Torques, k: int) -> None:
    step = max(1, len(part.t) // MOST)
    t, tau, predicted = part.t[::step], part.measured[::step, k], part.predicted[::step, k]
    interval = np.median(np.diff(part.t)) if len(part.t) > 1 else np.inf
    holes = np.diff(t, prepend=part.t[0]) > 1.5 * step * interval
    unused = ~part.used[::step, k]
    for y, color, label in (
        (tau, MEASURED, "measured"),
        (predicted, PREDICTED, "predicted"),
        (tau - predicted, RESIDUAL, "difference"),
    ):
        ax.plot(t, np.where(holes | unused, np.nan, y), color=color, lw=1.0, label=label)
    if unused.any():
        ax.fill_between(t, 0, 1, where=unused, transform=ax.get_xaxis_transform(), color="0.92", lw=0)
    ax.grid(alpha=0.3)


def residuals(
    joints: Sequence[Joint], values: Sequence[np.ndarray], autocorrelations: Sequence[np.ndarray], path: Path
) -> Path:
    """Histogram of each joint's residuals beside a Gaussian of the same RMS, and their autocorrelation."""
    figure = Figure(figsize=(9.0, 1.7 * len(joints) + 0.8), layout="constrained")
    axes = figure.subplots(len(joints), 2, squeeze=False)
    for (left, right), joint, r, rho in zip(axes, joints, values, autocorrelations):
        if len(r) == 0:
            continue
        spread = max(float(np.sqrt(np.mean(r**2))), 1e-12)
        left.hist(r, bins=60, density=True, color=MEASURED, alpha=0.75)
        x = np.linspace(-4 * spread, 4 * spread, 200)
        left.plot(x, np.exp(-0.5 * (x / spread) ** 2) / (spread * np.sqrt(2 * np.pi)), color=PREDICTED, lw=1.2)
        left.set_ylabel(joint.name, fontsize=8)
        left.set_yticks([])
        right.plot(rho[:101], color=MEASURED, lw=1.0)
        right.axhspan(-1.96 / np.sqrt(len(r)), 1.96 / np.sqrt(len(r)), color=PREDICTED, alpha=0.3, lw=0)
        right.set_ylim(-1.05, 1.05)
        right.grid(alpha=0.3)
    axes[0, 0].set_title("training residuals, and a Gaussian about 0 of their RMS", fontsize=9)
    axes[0, 1].set_title("autocorrelation, and the 95 % band of white noise", fontsize=9)
    axes[-1, 0].set_xlabel("residual " + " or ".join(sorted({f"[{joint.unit}]" for joint in joints})))
    axes[-1, 1].set_xlabel("lag [rows]")
    return write_png(figure, path)


def parameters(known: Intervals, given: np.ndarray, other: tuple[str, np.ndarray] | None, path: Path) -> Path:
    """Parameters with their 95 % intervals, the model's own beside, and those of another (method, values) if any."""
    std = np.maximum(known.std, 1e-300)
    size = np.maximum(np.abs(known.values), 3.0 * std)
    figure = Figure(figsize=(9.0, 0.2 * len(known.names) + 1.2), layout="constrained")
    ax = figure.subplots()
    y = np.arange(len(known.names))[::-1]
    ax.errorbar(known.values / size, y, xerr=1.96 * std / size, fmt="o", ms=3.5, lw=1.2, color=MEASURED, capsize=2,
                label=f"{known.method}, 95 %")  # fmt: skip
    if other is not None:
        ax.plot(other[1] / size, y, "x", ms=5.0, mew=1.5, color=PREDICTED, label=other[0], zorder=3)
    ax.plot(given / size, y, "|", ms=6.0, color="0.55", label="model given", zorder=0)
    ax.set_yticks(y, [name if len(name) < 60 else name[:56] + " ..." for name in known.names], fontsize=6)
    ax.set_xlim(-1.8, 1.8)
    ax.set_ylim(-1, len(known.names))
    ax.set_xlabel("value, relative to the greater of |value| and three standard deviations")
    ax.grid(alpha=0.3)
    ax.legend(fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return write_png(figure, path)
