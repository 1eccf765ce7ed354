"""Pictures of an identification: PNG files, and SVG of each joint for a web page.

They use matplotlib's objects without pyplot's state. A function with a path writes one file and returns the path.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from . import fits
from .embedded import inline_svg
from .fits import Intervals, Joint, Torques
from .style import Picture, own_style, write_png

__all__ = ["Intervals", "Joint", "Torques", "joint_pictures", "parameter_picture", "parameters", "residuals", "torques"]

WIDE, NARROW = 60, 30  # characters of a parameter's name: in a file, and in a page that also fits phones


@own_style()
def torques(joints: Sequence[Joint], parts: Sequence[Torques], path: Path) -> Path:
    """Measured and predicted torque, and their difference on a separate axis, for each joint; training and unseen data
    side by side.
    """
    figure = Picture(figsize=(6.5 * len(parts), 2.9 * len(joints) + 0.8), layout="constrained")
    heights = [1.7, 1.0] * len(joints)
    axes = figure.subplots(2 * len(joints), len(parts), squeeze=False, sharex="col", height_ratios=heights)
    for column, part in zip(axes.T, parts):
        for k, joint in enumerate(joints):
            upper, lower = column[2 * k : 2 * k + 2]
            fits.torque(upper, part, k)
            fits.difference(lower, part, k)
            upper.set_ylabel(f"{joint.name}\n[{joint.unit}]", fontsize=8)
            lower.set_ylabel(f"difference\n[{joint.unit}]", fontsize=8)
        heading = part.title + (", grey: not used" if not part.used.all() else "")
        column[0].set_title(heading, loc="right", fontsize=9)
        column[-1].set_xlabel("time [s]")
    _figure_legend(figure, axes[0, 0])
    return write_png(figure, path)


@own_style()
def residuals(
    joints: Sequence[Joint], parts: Sequence[Torques], autocorrelations: Sequence[np.ndarray], path: Path
) -> Path:
    """For each joint: residuals over velocity of all parts; histogram and autocorrelation of the first part."""
    figure = Picture(figsize=(13.0, 1.9 * len(joints) + 0.8), layout="constrained")
    axes = figure.subplots(len(joints), 3, squeeze=False)
    for k, (row, joint, rho) in enumerate(zip(axes, joints, autocorrelations)):
        r = parts[0].residual(k)
        fits.over_velocity(row[0], parts, joint, k)
        fits.histogram(row[1], r)
        fits.autocorrelation(row[2], rho, len(r))
        row[0].set_ylabel(f"{joint.name}\n[{joint.unit}]", fontsize=8)
        row[1].set_xlabel(f"residual [{joint.unit}]", fontsize=8)
    _figure_legend(figure, axes[0, 0])
    axes[0, 0].set_title("residuals over velocity", fontsize=9)
    axes[0, 1].set_title("training residuals, and a Gaussian about 0 of their RMS", fontsize=9)
    axes[0, 2].set_title("their autocorrelation, and the 95 % band of white noise", fontsize=9)
    axes[-1, 2].set_xlabel("lag [samples]", fontsize=8)
    return write_png(figure, path)


@own_style()
def parameters(estimate: Intervals, nominal: np.ndarray, other: tuple[str, np.ndarray] | None, path: Path) -> Path:
    """Parameters with their 95 % intervals; see `fits.intervals`."""
    return write_png(_intervals(estimate, nominal, other, 9.0, WIDE), path)


# --- for a web page ------------------------------------------------------------------------------------------------


@own_style()
def parameter_picture(estimate: Intervals, nominal: np.ndarray, other: tuple[str, np.ndarray] | None) -> str:
    """The picture of `parameters` as SVG."""
    return inline_svg(_intervals(estimate, nominal, other, 5.4, NARROW), "Parameters with their 95 % intervals")


@own_style()
def joint_pictures(
    joint: Joint, k: int, parts: Sequence[Torques], autocorrelation: np.ndarray
) -> list[tuple[str, str]]:
    """(title, SVG) for joint k: torques of each part, residuals over velocity, their histogram and autocorrelation."""
    out = []
    for part in parts:
        figure = _page_figure(2.9, top=0.92, bottom=0.14, hspace=0.32)
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[1.7, 1.0])
        fits.torque(upper, part, k)
        fits.difference(lower, part, k)
        upper.set_ylabel(f"torque [{joint.unit}]", fontsize=8)
        lower.set_ylabel(f"difference [{joint.unit}]", fontsize=8)
        lower.set_xlabel("time [s]", fontsize=8)
        _legend(upper)
        _legend(lower)
        label = part.title.split(":")[0]
        caption = f"{label}, over time" + (" (grey: not used)" if not part.used[:, k].all() else "")
        out.append((caption, inline_svg(figure, f"{joint.name}, {caption}: measured, predicted, their difference")))
    figure = _page_figure(2.1, top=0.89, bottom=0.2)
    ax = figure.subplots()
    fits.over_velocity(ax, parts, joint, k)
    ax.set_ylabel(f"difference [{joint.unit}]", fontsize=8)
    _legend(ax)
    out.append(("residual over velocity", inline_svg(figure, f"{joint.name}: residuals over velocity")))
    figure = _page_figure(2.1, top=0.89, bottom=0.2, left=0.05, wspace=0.2)
    left, right = figure.subplots(1, 2)
    fits.histogram(left, parts[0].residual(k))
    fits.autocorrelation(right, autocorrelation, len(parts[0].residual(k)))
    left.set_xlabel(f"residual [{joint.unit}]", fontsize=8)
    right.set_xlabel("lag [samples]", fontsize=8)
    _legend(left)
    _legend(right)
    label = "training residuals: histogram and autocorrelation"
    out.append((label, inline_svg(figure, f"{joint.name}, {label}")))
    return out


def _page_figure(height: float, left: float = 0.125, **margins: float) -> Figure:
    """A figure with given margins, because computing them would take as long as the drawing."""
    figure = Picture(figsize=(5.4, height))
    figure.subplots_adjust(left=left, right=0.965, **margins)  # the label of the last tick extends beyond the axes
    return figure


def _figure_legend(figure: Figure, ax) -> None:
    """The legend of one axes, above the figure."""
    handles, labels = ax.get_legend_handles_labels()
    if labels:
        figure.legend(handles, labels, loc="outside upper left", ncols=len(labels), fontsize=8, frameon=False)


def _legend(ax) -> None:
    if ax.get_legend_handles_labels()[1]:
        ax.legend(fontsize=7, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False,
                  borderaxespad=0.1, labelcolor=fits.INK)  # fmt: skip


def _intervals(estimate, nominal, other, width: float, letters: int) -> Figure:
    figure = Picture(figsize=(width, 0.2 * len(estimate.names) + 1.2), layout="constrained")
    ax = figure.subplots()
    fits.intervals(ax, estimate, nominal, other, letters)
    ax.legend(fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False, labelcolor=fits.INK)
    return figure
