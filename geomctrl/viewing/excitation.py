"""Picture of an exciting motion: the robot at several times with its surroundings, and its joints against their
limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.cm import viridis  # pyright: ignore[reportAttributeAccessIssue]
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from .style import BLUE, CYCLE, LIMIT, RED, legend_below, new_figure, open_frame, own_style, write_png

MOMENTS = 9  # number of times at which the robot is drawn
POINTS = 72.0  # points per inch


class Motion(NamedTuple):
    """Data of the picture.

    t (N,); curves (N, nv) with their limits (2, nv), by name; ends of the capsules (2, N, capsules, 3) [m] and radii;
    floor [m] or None; boxes (., 6); distances (N,) by name and the required clearance [m]; criteria of random motions
    by name, with that of this motion.
    """

    title: str
    names: Sequence[str]
    t: np.ndarray
    curves: Mapping[str, tuple[np.ndarray, np.ndarray]]
    ends: np.ndarray
    radii: np.ndarray
    floor: float | None
    boxes: np.ndarray
    distances: Mapping[str, np.ndarray]
    clearance: float
    criteria: Mapping[str, tuple[np.ndarray, float]]


@own_style()
def excitation(motion: Motion, path: Path) -> Path:
    """Write the picture as PNG."""
    fig = new_figure(15.0, 9.0, motion.title)
    halves: Any = fig.subfigures(1, 2, width_ratios=(0.95, 1.0))
    left, right = halves
    top, bottom = left.subfigures(2, 1, height_ratios=(2.6, 1.0))
    _draw_robot(top.add_subplot(projection="3d"), motion)
    for ax, (name, (values, own)) in zip(
        np.atleast_1d(bottom.subplots(1, len(motion.criteria))), motion.criteria.items()
    ):
        ax.hist(values, bins=30, color="0.75")
        ax.axvline(own, color=BLUE, lw=2.0)
        ax.set_xlabel(f"{name}; blue: this motion", fontsize=8)
        ax.set_ylabel("random motions", fontsize=8)
        ax.tick_params(labelsize=7)
        open_frame(ax)
    rows = len(motion.curves) + bool(motion.distances)
    axes = np.atleast_1d(right.subplots(rows, 1, sharex=True))
    for ax, (name, (values, limits)) in zip(axes, motion.curves.items()):
        _draw_curves(ax, motion, name, values, limits)
    if motion.distances:
        for colour, (name, d) in zip(CYCLE, motion.distances.items()):
            axes[-1].plot(motion.t, 100.0 * d, color=colour, lw=1.3, label=f"to {name}")
        axes[-1].axhline(100.0 * motion.clearance, **LIMIT)
        axes[-1].set_ylim(bottom=0.0)
        axes[-1].set_ylabel("distance [cm]", fontsize=8)
        axes[-1].legend(fontsize=7, frameon=False, ncols=3, loc="upper right")
    for ax in axes:
        ax.grid(color="0.9", lw=0.7)
        ax.tick_params(labelsize=8)
        open_frame(ax)
    axes[-1].set_xlabel("time [s]", fontsize=9)
    axes[0].set_xlim(motion.t[0], motion.t[-1])
    legend_below(fig) if len(motion.names) <= 12 else None
    return write_png(fig, path)


def _draw_curves(ax: Any, motion: Motion, name: str, values: np.ndarray, limits: np.ndarray) -> None:
    """Draw every joint scaled such that its limits are -1 and 1, because units and sizes differ.

    Joints without limits are scaled by their own maximum.
    """
    finite = np.isfinite(limits).all(axis=0)
    middle = np.where(finite, 0.5 * limits.sum(axis=0), 0.0) if finite.any() else np.zeros(values.shape[1])
    own = np.maximum(np.abs(values).max(axis=0), 1e-12)
    half = np.where(finite, 0.5 * (limits[1] - limits[0]), own)
    for k, joint in enumerate(motion.names):
        ax.plot(motion.t, (values[:, k] - middle[k]) / half[k], color=f"C{k % 10}", lw=1.1, label=joint)
    for side in (-1.0, 1.0):
        ax.axhline(side, **LIMIT)
    ax.set_ylim(-1.12, 1.12)
    unlimited = "" if finite.all() else "; no limit: of its greatest"
    ax.set_ylabel(f"{name}\n/ limit{unlimited}", fontsize=8)


def _draw_robot(ax: Any, motion: Motion) -> None:
    moments = np.linspace(0, len(motion.t) - 1, MOMENTS).round().astype(int)
    points = np.concatenate((motion.ends[:, moments].reshape(-1, 3), motion.boxes.reshape(-1, 3)))
    low, high = points.min(axis=0), points.max(axis=0)
    middle, half = 0.5 * (low + high), 0.55 * (high - low).max()
    inches = 5.0 / (2.0 * half)  # approximate width of the axes in the figure
    for shade, k in zip(np.linspace(0.0, 0.9, MOMENTS), moments):
        for p0, p1, r in zip(motion.ends[0, k], motion.ends[1, k], motion.radii):
            ax.plot(
                *np.stack((p0, p1)).T, color=viridis(shade), alpha=0.35, lw=2.0 * r * inches * POINTS,
                solid_capstyle="round",
            )  # fmt: skip
            ax.plot(*np.stack((p0, p1)).T, color=viridis(shade), lw=1.0)
    tips = motion.ends[1, :, -1]
    ax.plot(*tips.T, color="0.3", lw=0.8)
    if motion.floor is not None:
        x, y = (np.array([middle[i] - half, middle[i] + half]) for i in (0, 1))
        corners = [(x[0], y[0]), (x[1], y[0]), (x[1], y[1]), (x[0], y[1])]
        ax.add_collection3d(Poly3DCollection([[(*c, motion.floor) for c in corners]], color="0.6", alpha=0.25))
    for box in motion.boxes:
        ax.add_collection3d(Poly3DCollection(_faces(box), color=RED, alpha=0.2))
    ax.set_xlim(middle[0] - half, middle[0] + half)
    ax.set_ylim(middle[1] - half, middle[1] + half)
    ax.set_zlim(middle[2] - half, middle[2] + half)
    ax.set_box_aspect((1, 1, 1))
    for axis, name in zip("xyz", "xyz"):
        getattr(ax, f"set_{axis}label")(f"{name} [m]", fontsize=8)
    ax.tick_params(labelsize=7)
    ax.set_title(f"{MOMENTS} moments, first dark, last light", fontsize=9)


def _faces(box: np.ndarray) -> list[np.ndarray]:
    corners = np.array([[box[3 * i + k] for k, i in enumerate(bits)] for bits in np.ndindex(2, 2, 2)])
    quads = ((0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5))
    return [corners[list(q)] for q in quads]
