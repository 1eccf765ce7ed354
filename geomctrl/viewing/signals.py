"""Pictures of the signals that the controller recorded, by name."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from .samples import Samples
from .style import CYCLE, cells, heading, new_figure, style_axes, thinned

SHOWN_ELSEWHERE = ("lyapunov", "lyapunov_rate", "e")  # signals that other pictures show
MAX_SIGNALS = 24
MAX_LINES = 8  # largest number of entries of one signal; those that change most are drawn


def figure(run: Samples) -> Figure | None:
    """A panel for each signal without a picture of its own; for an array the entries that change most."""
    drawn = {name: x for name, x in run.signals.items() if name not in SHOWN_ELSEWHERE and np.size(x)}
    if not drawn:
        return None
    columns, rows = cells(min(len(drawn), MAX_SIGNALS))
    note = "" if len(drawn) <= MAX_SIGNALS else f" (the first {MAX_SIGNALS} of {len(drawn)})"
    fig = new_figure(4.2 * columns, 2.6 * rows + 0.8, heading(run, f"signals{note}"))
    axes = fig.subplots(rows, columns, squeeze=False).ravel()
    for ax, (name, x) in zip(axes, drawn.items()):
        entries = np.reshape(np.asarray(x, float), (len(run.t), -1))
        moved = np.nan_to_num(np.ptp(entries, axis=0), nan=np.inf)
        shown = sorted(np.argsort(-moved, kind="stable")[:MAX_LINES].tolist())
        for j, k in enumerate(shown):
            label = None if entries.shape[1] == 1 else f"[{k}]"
            ax.plot(*thinned(run.t, entries[:, k]), color=CYCLE[j % len(CYCLE)], linewidth=1.3, label=label)
        ax.set_title(name, fontsize=9, loc="left")
        style_axes(ax, run)
        if entries.shape[1] > 1:
            ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7, frameon=False, handlelength=1.2)
    for ax in axes[len(drawn) :]:
        ax.set_axis_off()
    for ax in axes[max(len(drawn) - columns, 0) : len(drawn)]:
        ax.set_xlabel("time [s]", fontsize=8)
    return fig
