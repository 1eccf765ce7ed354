"""Picture of the tracking of each joint: actual and desired position."""

from __future__ import annotations

from matplotlib.figure import Figure

from .samples import Samples, coordinates
from .style import BLUE, DESIRED_STYLE, RED, cells, heading, legend_below, new_figure, style_axes, thinned


def figure(run: Samples) -> Figure:
    """One cell for each joint: coordinate and desired coordinate, and their difference below."""
    names, units, q, desired, error = coordinates(run)
    columns, rows = cells(len(names))
    fig = new_figure(3.6 * columns + 0.4, 2.7 * rows + 0.9, heading(run, "joint tracking"))
    outer = fig.add_gridspec(rows, columns)
    for k, name in enumerate(names):
        heights = (1,) if error is None else (2, 1)
        inner = outer[k // columns, k % columns].subgridspec(len(heights), 1, height_ratios=heights)
        ax = fig.add_subplot(inner[0])
        ax.plot(*thinned(run.t, q[:, k]), color=BLUE, linewidth=1.5, label="actual")
        if desired is not None:
            ax.plot(*thinned(run.t, desired[:, k]), **DESIRED_STYLE, label="desired")
        ax.set_title(name, fontsize=9)
        ax.set_ylabel(units[k], fontsize=8)
        style_axes(ax, run)
        if error is not None:
            ax.tick_params(labelbottom=False)
            ax = fig.add_subplot(inner[1], sharex=ax)
            ax.axhline(0.0, color="0.6", linewidth=0.6)
            ax.plot(*thinned(run.t, 1e3 * error[:, k]), color=RED, linewidth=1.1, label="error")
            ax.set_ylabel(", ".join(f"m{unit}" for unit in units[k].split(", ")), fontsize=8)
            style_axes(ax, run)
        if k // columns == rows - 1 or k + columns >= len(names):
            ax.set_xlabel("time [s]", fontsize=8)
    legend_below(fig)
    return fig
