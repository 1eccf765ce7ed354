"""Style of the pictures: colours, axes with a common time, headings, legends.

Colours are those of Okabe and Ito, which colour-blind people can distinguish. Desired and promised values are black and
dashed.
"""

from __future__ import annotations

import contextlib
import io
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter, MaxNLocator

from geomctrl.files import whole

from .samples import Samples, controller_name

BLUE, ORANGE, GREEN, PINK, SKY, RED = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00",
)  # fmt: skip
CYCLE = (BLUE, ORANGE, GREEN, PINK, SKY, RED, "0.55")
DESIRED_STYLE: dict[str, Any] = {"color": "black", "linestyle": (0, (4, 2)), "linewidth": 1.1}
LIMIT: dict[str, Any] = {"color": RED, "linestyle": ":", "linewidth": 1.3}
DPI = 110
MAX_LINE_SAMPLES = 5000  # largest number of samples of a line


@contextlib.contextmanager
def own_style() -> Iterator[None]:
    """Use matplotlib's defaults in this context: the caller's style could move titles or draw white text on white."""
    with mpl.rc_context():
        mpl.rcdefaults()
        yield


class Picture(Figure):
    """A figure that a notebook shows although pyplot does not manage it. Its texts are drawn literally."""

    def draw(self, renderer: Any) -> None:
        _do_not_typeset(self)
        super().draw(renderer)

    @own_style()
    def _repr_png_(self) -> bytes:
        FigureCanvasAgg(self)
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=DPI)
        return file.getvalue()


def _do_not_typeset(figure: Figure) -> None:
    """Draw text between dollar signs literally, because names can contain them; except powers of ten on axes."""
    axes = [axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]
    texts = figure.findobj(Text)
    powers = [axis for axis in axes if not isinstance(axis.get_major_formatter(), FixedFormatter)]
    ticks = [tick for axis in powers for tick in (*axis.majorTicks, *axis.minorTicks)]
    numbers = {id(text) for tick in ticks for text in (tick.label1, tick.label2)}
    for text in texts:
        if isinstance(text, Text) and id(text) not in numbers:
            text.set_parse_math(False)


def new_figure(width: float, height: float, title: str) -> Figure:
    fig = Picture(figsize=(width, height), layout="constrained", facecolor="white")
    fig.suptitle(title, fontsize=11)
    return fig


def cells(n: int) -> tuple[int, int]:
    """Number of (columns, rows) for n panels."""
    columns = n if n <= 3 else 2 if n == 4 else 3 if n <= 6 else 4 if n <= 16 else 6
    return columns, -(-n // columns)


def style_axes(ax: Axes, run: Samples) -> None:
    ax.set_xlim(run.t[0], run.t[-1])
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.grid(color="0.9", linewidth=0.7)
    ax.tick_params(labelsize=8)
    open_frame(ax)
    for t, _ in run.plant.changes if run.plant is not None else ():
        ax.axvline(t, color="0.35", linewidth=0.9, linestyle=(0, (1, 1.5)))
    if ax.get_yscale() == "linear":
        ax.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useOffset=False)
        ax.yaxis.get_offset_text().set_fontsize(7)


def open_frame(ax: Axes) -> None:
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def legend_above(ax: Axes, columns: int) -> None:
    """Draw the legend above the data, by extending the axis."""
    _, labels = ax.get_legend_handles_labels()
    if not labels:
        return
    rows = -(-len(labels) // columns)
    low, high = ax.get_ylim()
    room = 0.09 * rows + 0.03
    if ax.get_yscale() == "log":
        ax.set_ylim(low, high * (high / low) ** (room / (1.0 - room)))
    else:
        ax.set_ylim(low, high + (high - low) * room / (1.0 - room))
    ax.legend(loc="upper left", ncols=columns, fontsize=8, frameon=False, borderaxespad=0.1)


def legend_below(fig: Figure) -> None:
    entries: dict[str, Any] = {}
    for ax in fig.axes:
        for handle, label in zip(*ax.get_legend_handles_labels()):
            entries.setdefault(label, handle)
    look = {"loc": "outside lower center", "fontsize": 9, "frameon": False}
    fig.legend(entries.values(), entries.keys(), ncols=len(entries), **look)


def show_placeholder(ax: Axes, text: str) -> None:
    ax.text(0.5, 0.5, text, ha="center", va="center", color="0.5", transform=ax.transAxes)
    ax.set_axis_off()


def thinned(t: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    step = max(1, len(t) // MAX_LINE_SAMPLES)
    keep = np.r_[np.arange(0, len(t) - 1, step), len(t) - 1]
    return t[keep], x[keep]


def heading(run: Samples, subject: str = "") -> str:
    robot = run.plant.robot.name if run.plant is not None else ""
    title = "  ·  ".join(p for p in (robot, controller_name(run), subject) if p)
    return title if run.success else f"{title}\n{textwrap.fill(run.reason, 80, max_lines=3)}"


@own_style()
def write_png(figure: Figure, path: Path) -> Path:
    FigureCanvasAgg(figure)
    with whole(path) as file:
        figure.savefig(file, format="png", dpi=DPI)
    return path
