"""Curves of a run over one time axis, as SVG, with the data that a moving cursor needs."""

from __future__ import annotations

import io
import json

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from . import lyapunov, overview, torques
from .samples import Samples
from .style import CYCLE, LIMIT, legend_above, new_figure, own_style, show_placeholder, style_axes, thinned

WIDTH, HEIGHT = 5.2, 2.1  # of a panel, inches


def curves(run: Samples) -> tuple[str, str]:
    """Return (SVG element, JSON list of panels) with tracking error, torques, V and monitors, as far as the run has
    them.

    Each panel has left, right, top, bottom in SVG coordinates, and the time at left and right.
    """
    panels = [overview.error_panel] * (run.desired is not None) + [torques.panel]
    panels += [lyapunov.panel] * ("lyapunov" in run.signals) + [monitor_panel] * bool(run.monitors)
    with (
        own_style(),
        mpl.rc_context({"svg.fonttype": "none", "path.simplify_threshold": 0.5, "font.family": "sans-serif"}),
    ):
        fig = new_figure(WIDTH, HEIGHT * len(panels), "")
        fig.suptitle("")
        axes = fig.subplots(len(panels), 1, squeeze=False)[:, 0]
        for ax, draw in zip(axes, panels):
            draw(ax, run)
            ax.set_title(ax.get_title(), fontsize=9)
        axes[-1].set_xlabel("time [s]", fontsize=8)
        file = io.StringIO()
        fig.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    svg = text[text.index("<svg") :]
    width, height = 72.0 * fig.get_size_inches()
    places = []
    for ax in axes:
        box, (first, last) = ax.get_position(), ax.get_xlim()
        if ax.axison:
            edges = {"left": box.x0 * width, "right": box.x1 * width, "top": (1 - box.y1) * height}
            places.append(edges | {"bottom": (1 - box.y0) * height, "first": float(first), "last": float(last)})
    return svg, json.dumps(places)


def monitor_panel(ax: Axes, run: Samples) -> None:
    """How far every monitor with a tolerance is below it, in decades."""
    shown = [m for m in run.monitors.values() if 0.0 < m.limit < np.inf and len(m.values)]
    if not shown:
        show_placeholder(ax, "no monitors")
        return
    for colour, m in zip(CYCLE, shown):
        share = np.maximum(np.abs(m.values) / m.limit, 1e-9)
        ax.semilogy(*thinned(run.t, share), color=colour, linewidth=1.2, label=m.name)
    ax.axhline(1.0, **LIMIT)
    ax.set_title("monitors, as a share of their limits")
    style_axes(ax, run)
    legend_above(ax, 4)
