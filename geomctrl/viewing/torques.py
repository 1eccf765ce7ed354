"""Picture of the joint torques."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .samples import Samples, coordinate_names, coordinate_units
from .style import BLUE, CYCLE, LIMIT, cells, heading, legend_above, legend_below, new_figure, style_axes, thinned


def figure(run: Samples) -> Figure:
    """Torques, one panel for each joint, with effort limits if they are near."""
    names, units = coordinate_names(run), coordinate_units(run, "N m", "N")
    columns, rows = cells(len(names))
    fig = new_figure(3.6 * columns + 0.4, 1.9 * rows + 0.9, heading(run, "joint torques and forces"))
    effort = run.plant.robot.limits.effort if run.plant is not None else np.full(len(names), np.inf)
    for k, name in enumerate(names):
        ax = fig.add_subplot(rows, columns, k + 1)
        ax.plot(*thinned(run.t, run.applied[:, k]), color=BLUE, linewidth=1.2, label="applied")
        if np.nanmax(np.abs(run.applied[:, k])) > 0.4 * effort[k]:
            for x in (-effort[k], effort[k]):
                ax.axhline(x, **LIMIT, label="effort limit of the model" if x > 0 else None)
        ax.set_title(name, fontsize=9)
        ax.set_ylabel(units[k], fontsize=8)
        style_axes(ax, run)
        if k + columns >= len(names):
            ax.set_xlabel("time [s]", fontsize=8)
    legend_below(fig)
    return fig


def panel(ax: Axes, run: Samples) -> None:
    names, units = coordinate_names(run), coordinate_units(run, "N m", "N")
    largest = np.argsort(-np.nanmax(np.abs(run.applied), axis=0), kind="stable")[:4]
    for colour, k in zip(CYCLE, np.sort(largest)):
        ax.plot(*thinned(run.t, run.applied[:, k]), color=colour, linewidth=1.4, label=names[k])
    ax.set_title("torques, the largest")
    ax.set_ylabel(", ".join(dict.fromkeys(units[k] for k in largest)))
    style_axes(ax, run)
    legend_above(ax, 2)
