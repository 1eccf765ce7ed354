"""Plots of a fit to a log, one function for each kind of axes: torques, residuals, parameters with intervals.

All data are arrays, so this module depends on no estimate or report. `identification` combines the axes, for files and
web pages. Names are drawn literally: a dollar sign does not start a formula.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

INK, GRID, SHADE = "#0a0b0c", "#dcdddf", "#ebecee"
MEASURED, PREDICTED, RESIDUAL, UNSEEN = "#1f6fb4", "#e07b00", "#7d7f83", "#c2417f"
POINTS = 1200  # points of a curve: minimum and maximum in each of half as many intervals
MAX_VECTOR_DOTS = 400  # largest number of dots that are drawn as shapes in an SVG; more are rasterised
LAGS = 100
BINS = 24  # bins of velocity, with equal numbers of samples
AXIS_RANGE = 1.8  # range of the parameter axis, in units of their sizes


@dataclass(frozen=True)
class Joint:
    """A joint's name, and the units of its torque and velocity."""

    name: str
    unit: str
    speed: str = "rad/s"


@dataclass(frozen=True, eq=False)
class Torques:
    """Torques (N, nv) of one log at times t (N,) [s]; used: False for samples that were left out; velocity (N, nv)."""

    title: str
    t: np.ndarray
    measured: np.ndarray
    predicted: np.ndarray
    used: np.ndarray
    velocity: np.ndarray

    def residual(self, k: int) -> np.ndarray:
        """Residuals of joint k at the used samples."""
        used = self.used[:, k]
        return self.measured[used, k] - self.predicted[used, k]


@dataclass(frozen=True, eq=False)
class Intervals:
    """Estimates by `method` with their standard deviations; `half`: half of their 95 % intervals, by default
    Gaussian.
    """

    names: Sequence[str]
    method: str
    values: np.ndarray
    std: np.ndarray
    half: np.ndarray | None = None


def style(ax: Axes) -> None:
    ax.grid(color=GRID, linewidth=0.7)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(INK)
    ax.tick_params(labelsize=7.5, colors=INK)
    ax.xaxis.label.set_color(INK)
    ax.yaxis.label.set_color(INK)


# --- over time -----------------------------------------------------------------------------------------------------


def torque(ax: Axes, part: Torques, k: int) -> None:
    """Measured and predicted torque of joint k."""
    tau, predicted = part.measured[:, k], part.predicted[:, k]
    _curve(ax, part, k, tau, color=MEASURED, lw=1.1, label="measured")
    _curve(ax, part, k, predicted, color=PREDICTED, lw=1.0, label="predicted")
    _frame(ax, part, k, np.stack((tau, predicted), -1))


def difference(ax: Axes, part: Torques, k: int) -> None:
    """Measured minus predicted torque of joint k, with its RMS."""
    r = part.measured[:, k] - part.predicted[:, k]
    _curve(ax, part, k, r, color=RESIDUAL, lw=0.9, label="measured - predicted")
    used = part.residual(k)
    rms = float(np.sqrt(np.mean(used**2))) if len(used) else 0.0
    if len(used):
        for y in (-rms, rms):
            ax.axhline(y, color=INK, lw=0.7, ls=(0, (4, 3)), label=f"RMS {rms:.3g}" if y > 0.0 else None)
    _frame(ax, part, k, r[:, None], rms)


def envelope(t: np.ndarray, x: np.ndarray, points: int = POINTS) -> tuple[np.ndarray, np.ndarray]:
    """Samples for a line that keeps every peak: for long signals the minimum and maximum of each bin, alternating."""
    if len(t) <= points:
        return t, x
    edges = np.linspace(0, len(t), points // 2 + 1).astype(int)
    keep = []
    for a, b in pairwise(edges):
        keep += sorted((a + int(np.argmin(x[a:b])), a + int(np.argmax(x[a:b]))))
    return t[keep], x[keep]


def pieces(t: np.ndarray) -> list[slice]:
    """Slices between gaps in time."""
    step = np.diff(t)
    cuts = np.flatnonzero(step > 1.5 * np.median(step)) + 1 if len(step) else []
    return [slice(int(a), int(b)) for a, b in zip([0, *cuts], [*cuts, len(t)])]


def runs(where: np.ndarray) -> list[tuple[int, int]]:
    """[start, stop) of each sequence of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], where, [False])).astype(int)))
    return list(zip(edges[0::2].tolist(), edges[1::2].tolist()))


def _curve(ax: Axes, part: Torques, k: int, x: np.ndarray, **look: Any) -> None:
    """One line, interrupted at gaps and at unused samples of joint k."""
    ts, xs = [np.nan], [np.nan]
    for whole, (a, b) in product(pieces(part.t), runs(part.used[:, k])):
        piece = slice(max(whole.start, a), min(whole.stop, b))
        if piece.start >= piece.stop:
            continue
        t, y = envelope(part.t[piece], x[piece], max(4, POINTS * (piece.stop - piece.start) // len(part.t)))
        ts += [*t, t[-1]]
        xs += [*y, np.nan]
    ax.plot(ts[1:], xs[1:], **look)


def _frame(ax: Axes, part: Torques, k: int, shown: np.ndarray, least: float = -np.inf) -> None:
    """Fit the axis to all used samples and +-least; note the number of unused samples, which are shaded, outside."""
    used = part.used[:, k]
    style(ax)
    _short_ticks(ax, "y")
    if not used.all():
        for start, stop in runs(~used):
            ax.axvspan(part.t[start], part.t[min(stop, len(part.t) - 1)], color=SHADE, lw=0, zorder=0)
    if not used.any():
        return
    low, high = min(float(shown[used].min()), -least), max(float(shown[used].max()), least)
    room = 0.06 * (high - low) or 1e-9 * max(abs(low), 1.0)
    low, high = low - room, high + room
    ax.set_ylim(low, high)
    beyond = int(((shown < low) | (shown > high)).any(1).sum())
    if beyond:
        remark = f"{beyond} unused beyond, to {np.abs(shown[~used]).max():.2g}"
        # above the axes, where there is no curve, between the axis exponent on the left and the legend on the right
        ax.text(0.08, 1.02, remark, transform=ax.transAxes, va="bottom", fontsize=6.5, color=INK)


def _short_ticks(ax: Axes, axis: Literal["x", "y"]) -> None:
    """Few tick labels, with a common power of ten where numbers are small or large."""
    of = ax.xaxis if axis == "x" else ax.yaxis
    of.set_major_locator(MaxNLocator(5))
    ax.ticklabel_format(axis=axis, style="sci", scilimits=(-3, 4), useOffset=False)
    of.get_offset_text().set(fontsize=7, color=INK)


# --- residuals -----------------------------------------------------------------------------------------------------


def over_velocity(ax: Axes, parts: Sequence[Torques], joint: Joint, k: int) -> None:
    """Residuals of joint k over its velocity, and their mean in bins: errors of the friction model show here."""
    style(ax)
    _short_ticks(ax, "y")
    for part, color in zip(parts, (MEASURED, UNSEEN)):
        used = part.used[:, k]
        v, r = part.velocity[used, k], part.residual(k)
        if not len(v):
            continue
        ax.plot(v, r, ".", ms=2.2, color=color, alpha=0.35, rasterized=len(v) > MAX_VECTOR_DOTS, zorder=1)
        centres, mean = binned(v, r)
        cut = int(np.searchsorted(centres, 0.0))
        centres, mean = np.insert(centres, cut, 0.0), np.insert(mean, cut, np.nan)
        label = f"{part.title.split(':')[0]}, mean in bins"
        ax.plot(centres, mean, "o-", ms=2.5, lw=1.3, color=color, label=label, zorder=2)
    ax.set_xlabel(f"velocity [{joint.speed}]", fontsize=8)


def binned(v: np.ndarray, r: np.ndarray, bins: int = BINS) -> tuple[np.ndarray, np.ndarray]:
    """(mean velocity, mean residual) of bins with similar numbers of samples; no bin contains both signs of
    velocity.
    """
    order = np.argsort(v, kind="stable")
    split = int(np.searchsorted(v[order], 0.0))
    groups = []
    for side in (order[:split], order[split:]):
        n = min(round(bins * len(side) / len(v)), len(side) // 5)
        groups += [g for g in np.array_split(side, max(1, n)) if len(g)]
    return np.array([v[g].mean() for g in groups]), np.array([r[g].mean() for g in groups])


def histogram(ax: Axes, r: np.ndarray) -> None:
    """Histogram of residuals, with a zero-mean Gaussian of the same RMS."""
    style(ax)
    ax.grid(visible=False)
    ax.set_yticks([])
    _short_ticks(ax, "x")
    if not len(r):
        return
    spread = max(float(np.sqrt(np.mean(r**2))), 1e-12)
    ax.hist(r, bins=60, density=True, histtype="stepfilled", color=MEASURED, alpha=0.75)
    x = np.linspace(-4 * spread, 4 * spread, 200)
    gauss = np.exp(-0.5 * (x / spread) ** 2) / (spread * np.sqrt(2 * np.pi))
    ax.plot(x, gauss, color=PREDICTED, lw=1.2, label="Gaussian of this RMS")


def autocorrelation(ax: Axes, rho: np.ndarray, samples: int) -> None:
    """Autocorrelation of residuals, with the 95 % band of white noise with this number of samples."""
    style(ax)
    if not samples:
        return
    ax.plot(rho[: LAGS + 1], color=MEASURED, lw=1.1)
    band = 1.96 / np.sqrt(samples)
    ax.axhspan(-band, band, color=PREDICTED, alpha=0.3, lw=0, label="95 % of white noise")
    ax.set_ylim(-1.05, 1.05)


# --- parameters ----------------------------------------------------------------------------------------------------


def intervals(
    ax: Axes, estimate: Intervals, nominal: np.ndarray, other: tuple[str, np.ndarray] | None, letters: int
) -> None:
    """Parameters with their 95 % intervals, the model's values, and those of another method (method, values) if given.

    The unit is the size of each parameter: the maximum of |value| and three standard deviations, so that every interval
    fits. Values outside the axis are arrows at its end with a number [sizes].
    """
    style(ax)
    std = np.maximum(estimate.std, 1e-300)
    half = 1.96 * std if estimate.half is None else estimate.half
    size = np.maximum(np.abs(estimate.values), 3.0 * std)
    y = np.arange(len(estimate.names))[::-1]
    ax.errorbar(estimate.values / size, y, xerr=half / size, fmt="o", ms=3.5, lw=1.2, color=MEASURED, capsize=2,
                label=f"{estimate.method}, 95 %")  # fmt: skip
    if other is not None:
        _marks(ax, other[1] / size, y, PREDICTED, "x", other[0])
    _marks(ax, nominal / size, y, RESIDUAL, "|", "model given")
    ax.set_yticks(y, [shortened(name, letters) for name in estimate.names], fontsize=6)
    ax.set_xlim(-AXIS_RANGE - 0.35, AXIS_RANGE + 0.35)
    ax.set_ylim(-1, len(estimate.names))
    ax.set_xlabel("in sizes: the greater of |value| and 3 std", fontsize=8)


def _marks(ax: Axes, x: np.ndarray, y: np.ndarray, color: str, mark: str, label: str) -> None:
    outside = np.abs(x) > AXIS_RANGE
    ax.plot(x[~outside], y[~outside], mark, ms=5.5, mew=1.5, color=color, label=label, zorder=3)
    for value, height in zip(x[outside], y[outside]):
        side = 1.0 if value > 0.0 else -1.0
        ax.plot(side * AXIS_RANGE, height, ">" if side > 0.0 else "<", ms=4.5, color=color, zorder=3)
        ax.annotate(f"{value:.3g}", (side * AXIS_RANGE, height), (side * 4, 0), textcoords="offset points",
                    ha="left" if side > 0.0 else "right", va="center", fontsize=5.5, color=color)  # fmt: skip


def shortened(name: str, letters: int) -> str:
    return name if len(name) < letters else name[: letters - 4] + " ..."
