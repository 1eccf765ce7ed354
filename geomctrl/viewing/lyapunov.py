"""Picture of the Lyapunov function of the controller's proof, and its promised rate."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .samples import Samples
from .style import BLUE, DESIRED_STYLE, ORANGE, RED, heading, new_figure, show_placeholder, style_axes, thinned


def figure(run: Samples) -> Figure | None:
    """V, and its promised rate against the numerical derivative of V along the run."""
    if "lyapunov" not in run.signals:
        return None
    fig = new_figure(9.0, 7.2, heading(run, "Lyapunov function"))
    top, middle, bottom = fig.subplots(3, 1, sharex=True, height_ratios=(2, 2, 1.2))
    panel(top, run)
    promised, numerical = run.signals["lyapunov_rate"], _numerical_rate(run)
    top.set_title("")
    falls = np.nanmax(np.concatenate((promised, numerical)), initial=-np.inf) <= 0.0
    sign = -1.0 if falls else 1.0
    middle.plot(*thinned(run.t, sign * numerical), color=ORANGE, linewidth=2.6, label="numerical, along the run")
    middle.plot(*thinned(run.t, sign * promised), **DESIRED_STYLE, label="promised by the proof")
    size = np.nanmax(np.abs(np.concatenate((promised, numerical))), initial=0.0)
    if falls and size > 0.0:
        middle.set_yscale("log")
        middle.set_ylim(max(np.nanmin(np.where(promised < 0.0, -promised, size)), 1e-8 * size) / 2.0, 2.0 * size)
    elif size > 0.0:
        middle.set_yscale("symlog", linthresh=1e-3 * size)
        middle.axhline(0.0, color="0.6", linewidth=0.8)
    middle.set_ylabel("rate of decrease -V' [V/s]" if falls else "rate V' [V/s]")
    middle.legend(loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=2, fontsize=8, frameon=False)
    bottom.semilogy(*thinned(run.t, np.maximum(np.abs(numerical - promised), 1e-300)), color=RED, linewidth=1.0)
    seen = np.abs(numerical - promised)
    seen = seen[np.isfinite(seen) & (seen > 0.0)]
    if len(seen):
        bottom.set_ylim(np.quantile(seen, 0.02) / 3.0, seen.max() * 3.0)
    bottom.set_ylabel("|difference| [V/s]")
    bottom.set_xlabel("time [s]")
    for ax in (middle, bottom):
        style_axes(ax, run)
    return fig


def panel(ax: Axes, run: Samples) -> None:
    V = run.signals.get("lyapunov")
    if V is None or not np.isfinite(V).any() or np.nanmax(V) <= 0.0:
        show_placeholder(ax, "no Lyapunov function")
        return
    verdict = run.monitors.get("lyapunov")
    falls = "grows at changes of the load only" if run.plant is not None and run.plant.changes else "never grows"
    verdicts = {True: falls, False: "grows", None: "growth unresolved"}
    verdict_text = "" if verdict is None else f" ({verdicts[verdict.ok]})"
    ax.plot(*thinned(run.t, V), color=BLUE, linewidth=1.8)
    positive = V[V > 0.0]
    if positive.max() > 5.0 * positive.min():
        ax.set_yscale("log")
        ax.set_ylim(max(positive.min(), 1e-8 * positive.max()) / 2.0, 2.0 * positive.max())
    else:
        ax.set_ylim(0.0, 1.08 * positive.max())
    ax.set_title("Lyapunov function V" + verdict_text)
    ax.set_ylabel("V")
    style_axes(ax, run)


def _numerical_rate(run: Samples) -> np.ndarray:
    """dV/dt by central differences; nan at the ends and at changes of the true robot, where V jumps."""
    V = run.signals["lyapunov"]
    with np.errstate(all="ignore"):
        rate = np.gradient(V, run.t)
    rate[[0, -1]] = np.nan
    for t, _ in run.plant.changes if run.plant is not None else ():
        k = int(np.searchsorted(run.t, t - 1e-12))
        rate[max(k - 1, 0) : k + 1] = np.nan
    return rate
