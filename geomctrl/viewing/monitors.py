"""Pictures of the monitors: measurements of the properties that the proof needs."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .samples import Samples, Verdict
from .style import GREEN, LIMIT, ORANGE, RED, heading, new_figure, open_frame, show_placeholder, style_axes

COLOURS = {True: GREEN, False: RED, None: ORANGE}


def figure(run: Samples) -> Figure | None:
    """The monitors' values with their limits."""
    if not run.monitors:
        return None
    results = list(run.monitors.values())
    more = 0.2 * sum(bool(m.explanation) for m in results)
    fig = new_figure(10.0, 1.9 * len(results) + 0.9 + more, heading(run, "monitors (logarithmic: zeros at the bottom)"))
    axes = fig.subplots(len(results), 1, sharex=True, squeeze=False)[:, 0]
    for ax, m in zip(axes, results):
        look = {"color": COLOURS[m.ok], "linewidth": 0.0, "marker": ".", "markersize": 2.0}
        if 0.0 < m.limit < np.inf:
            floor = min(1e-17, m.limit * 1e-8)
            ax.semilogy(run.t, np.where(np.isnan(m.values), np.nan, np.maximum(m.values, floor)), **look)
            top = max(m.limit, m.worst if np.isfinite(m.worst) else m.limit)
            ax.set_ylim(floor * 0.3, top * 100.0)
            ax.yaxis.get_major_locator().set_params(numticks=6)
        else:  # a distance to a limit, or a quantity without limit, is not an error
            ax.plot(run.t, m.values, **look)
            ax.margins(y=0.2)
        if np.isfinite(m.limit):
            _draw_limit(ax, m.limit)
        caption = f"{m.name}: {m.description}: worst {_short(m.worst, 1)} at {m.t_worst:.4g} s, {m.verdict}"
        if m.explanation:
            caption += "\n" + textwrap.shorten(m.explanation, 150, placeholder=" ...")
        ax.set_title(caption, fontsize=9, loc="left", color="black" if m.ok else COLOURS[m.ok])
        style_axes(ax, run)
    axes[-1].set_xlabel("time [s]")
    return fig


def _draw_limit(ax: Axes, limit: float) -> None:
    ax.axhline(limit, **LIMIT)
    look: dict[str, Any] = {"ha": "right", "va": "bottom", "fontsize": 8, "color": RED}
    ax.text(0.995, limit, f"limit {_short(limit)}", transform=ax.get_yaxis_transform(), **look)


def _short(x: float, digits: int = 0) -> str:
    return f"{x:.{digits + 1}g}" if x == 0.0 or 0.1 <= abs(x) < 1e3 else f"{x:.{digits}e}"


def _decades(m: Verdict) -> float:
    """Decades by which the worst value exceeds its limit; distances to a limit may be zero or negative."""
    if not np.isfinite(m.worst):
        return 9.0
    if not 0.0 < m.limit < np.inf:  # without a positive limit there is no ratio
        return 0.0 if m.ok else 2.0
    return float(np.log10(max(m.worst, 1e-9 * m.limit) / m.limit))


def panel(ax: Axes, run: Samples) -> None:
    """Distance of each monitor's worst value from its limit."""
    if not run.monitors:
        show_placeholder(ax, "no monitors")
        return
    results = list(run.monitors.values())[::-1]
    margin = [_decades(m) for m in results]
    y = np.arange(len(results))
    ax.barh(y, margin, color=[COLOURS[m.ok] for m in results], height=0.42)
    ax.axvline(0.0, **LIMIT)
    low, high = min(-10.0, *margin), max(2.0, *margin)
    ax.set_xlim(low * 1.05, high * 1.15)
    ax.set_ylim(-0.6, len(results) - 0.25)
    for k, m in enumerate(results):
        worst = "exactly 0" if m.worst == 0.0 else f"worst {_short(m.worst, 0 if m.limit > 0.0 else 1)}"
        caption = f"{m.name}: {worst}, limit {_short(m.limit)}: {m.verdict}"
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        ax.text(low, k + 0.26, caption, fontsize=8.5, va="bottom", color="black" if m.ok else COLOURS[m.ok], bbox=box)
    ax.set_yticks([])
    ax.set_xlabel("log10(worst / limit); dotted: the limit")
    ax.set_title("properties behind the proof")
    ax.grid(axis="x", color="0.9")
    open_frame(ax)
