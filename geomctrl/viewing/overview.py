"""Overview of a run in six panels: tracking, its error, torques, the Lyapunov function, an estimate, the monitors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import estimates, lyapunov, monitors, torques
from .samples import Samples, controller_name, coordinates, error_of
from .style import (
    BLUE,
    CYCLE,
    DESIRED_STYLE,
    GREEN,
    ORANGE,
    PINK,
    heading,
    legend_above,
    new_figure,
    show_placeholder,
    style_axes,
    thinned,
)


def figure(run: Samples, compare: Mapping[str, Samples]) -> Figure:
    """Overview: tracking, its error, torques, the Lyapunov function, an estimate, the monitors."""
    more = "lyapunov" in run.signals or run.monitors or (run.z is not None and run.z.size)
    fig = new_figure(13.0, 7.4 if more else 3.9, heading(run))
    axes = fig.subplots(2 if more else 1, 3, squeeze=False)
    _draw_coordinates(axes[0, 0], run)
    error_panel(axes[0, 1], run, compare)
    torques.panel(axes[0, 2], run)
    if more:
        lyapunov.panel(axes[1, 0], run)
        estimates.panel(axes[1, 1], run)
        monitors.panel(axes[1, 2], run)
    for ax in axes.flat:
        ax.set_title(ax.get_title(), fontsize=10)
        ax.tick_params(labelsize=8)
        if not ax.get_xlabel():
            ax.set_xlabel("time [s]", fontsize=9)
    return fig


def _draw_coordinates(ax: Axes, run: Samples) -> None:
    """At most four joints, those that move most."""
    names, units, q, desired, _ = coordinates(run)
    moved = np.nan_to_num(np.ptp(q, axis=0))
    chosen = np.sort(np.argsort(-moved, kind="stable")[:4])
    for colour, k in zip(CYCLE, chosen):
        ax.plot(*thinned(run.t, q[:, k]), color=colour, linewidth=2.0, label=names[k])
        if desired is not None:
            ax.plot(*thinned(run.t, desired[:, k]), **DESIRED_STYLE)
    ax.set_title("joints that move most (dashed: desired)")
    ax.set_ylabel(", ".join(dict.fromkeys(units[k] for k in chosen)))
    style_axes(ax, run)
    legend_above(ax, 2)


def error_panel(ax: Axes, run: Samples, compare: Mapping[str, Samples] | None = None) -> None:
    runs = {controller_name(run): run, **(compare or {})}
    top, bottom = 0.0, np.inf
    for colour, (name, other) in zip((BLUE, ORANGE, GREEN, PINK), runs.items()):
        error = error_of(other)
        if error is None:
            continue
        norm = np.linalg.norm(error, axis=1)
        rms = float(np.sqrt((norm**2).mean()))
        label = f"{name}, RMS {rms:.2g}"
        ax.semilogy(*thinned(other.t, np.maximum(norm, 1e-12)), color=colour, linewidth=1.6, label=label)
        seen = norm[norm > 0.0]
        if len(seen):
            top, bottom = max(top, seen.max()), min(bottom, np.quantile(seen, 0.05))
    if top == 0.0:
        show_placeholder(ax, "no reference to track" if top == bottom else "no tracking error")
        return
    ax.set_ylim(bottom / 3.0, top * 2.0)
    ax.set_title("tracking error, all joints")
    ax.set_ylabel("|e| [rad, m]")
    style_axes(ax, run)
    legend_above(ax, 1)
