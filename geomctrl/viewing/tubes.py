"""Picture of a tube: enclosures of states over time, with sampled motions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from .style import BLUE, new_figure, own_style

Patch = tuple[float, float, np.ndarray, np.ndarray]  # start, end, lower and upper bounds


@own_style()
def figure(names: Sequence[str], patches: Sequence[Patch], motions: Any, title: str) -> Figure:
    """One panel per state. motions: (t (m,), x (samples, m, states)), or None."""
    columns = 2 if len(names) > 3 else 1
    rows = -(-len(names) // columns)
    fig = new_figure(4.6 * columns + 1.4, 1.7 * rows + 1.0, title)
    axes = np.atleast_1d(fig.subplots(rows, columns, sharex=True)).T.ravel()
    for k, (ax, name) in enumerate(zip(axes, names)):
        corners = [[(a, lo[k]), (b, lo[k]), (b, hi[k]), (a, hi[k])] for a, b, lo, hi in patches]
        ax.add_collection(
            PolyCollection(corners, facecolor=BLUE, alpha=0.3 if len(patches) < 2000 else 0.05, linewidth=0)
        )
        if motions is not None:
            t, x = motions
            ax.plot(t, x[:, :, k].T, color="black", linewidth=0.5)
        ax.autoscale_view()
        ax.set_ylabel(name)
        ax.grid(color="0.9", linewidth=0.7)
    for ax in axes[len(names) :]:
        ax.set_visible(False)
    for ax in axes[rows - 1 :: rows]:
        ax.set_xlabel("time [s]")
    return fig
