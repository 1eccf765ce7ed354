"""Pictures of a sweep: a heat map for each measure, or a line or dots for a one-dimensional space."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from geomctrl.arguments import has_attributes, path_of, shown
from geomctrl.errors import ArgumentError

from .style import BLUE, new_figure, open_frame, own_style, show_placeholder, write_png

MAP = "viridis"
MISSING_VALUE_COLOUR = "0.85"  # colour of runs without a value
MAX_TICK_LABELS = 30  # largest number of ticks with strings
MIN_LOGARITHMIC_RATIO = 30.0  # ratio of largest to smallest positive value above which a scale is logarithmic


@own_style()
def plot_sweep(table: Any, folder: str | os.PathLike) -> list[Path]:
    """Draw each measure of a sweep as a PNG file.

    Parameters
    ----------
    table : xarray.Dataset
        The result of `geomctrl.sweep`.
    folder : str or Path
        The folder to write to.

    Returns
    -------
    list of Path
        The files.

    Notes
    -----
    With more than two dimensions the two longest are drawn. Over the others, and over the axes of a measure that is an
    array, the maximum is taken.
    """
    folder = path_of("folder", folder)
    if not has_attributes(table, "data_vars", "sizes", "variables") or "run" not in table:
        raise ArgumentError(f"table: expected what geomctrl.sweep returns, got {shown(table)}")
    measures = [name for name, x in table.data_vars.items() if x.dtype.kind == "f" and name != "t_reached"]
    return [write_png(figure(table, name), folder / f"{name}.png") for name in measures]


def figure(table: Any, name: str) -> Figure:
    """One measure over the parameter space."""
    dims = sorted((dim for dim in table["run"].dims if table.sizes[dim] > 1), key=lambda dim: -table.sizes[dim])[:2]
    shown = [dim for dim in table["run"].dims if dim in dims]
    others = [dim for dim in table[name].dims if dim not in shown]
    values = table[name].transpose(*shown, *others).values
    values = np.fmax.reduce(values.reshape(*values.shape[: len(shown)], -1), axis=-1)
    over = [dim for dim in others if table.sizes[dim] > 1]
    fig = new_figure(6.4, 4.6, label(table, name) + (f"\nlargest over {', '.join(over)}" if over else ""))
    ax = fig.add_subplot()
    if not np.isfinite(values).any() or not shown:
        show_placeholder(ax, "no run has a number" if shown else f"{float(values):.4g}")
    elif len(shown) == 2:
        _heat_map(fig, ax, table, shown, values)
    else:
        _along(fig, ax, table, shown[0], values)
    return fig


def label(table: Any, name: str) -> str:
    """A parameter or measure with its units."""
    units = table[name].attrs.get("units", "1") if name in table.variables else "1"
    return name if units == "1" else f"{name} [{units}]"


def _heat_map(fig: Figure, ax: Axes, table: Any, dims: list[str], values: np.ndarray) -> None:
    y, x = (_places(table, dim) for dim in dims)
    mesh = ax.pcolormesh(_edges(x), _edges(y), np.ma.masked_invalid(values), cmap=MAP, norm=_colours(values))
    ax.set_facecolor(MISSING_VALUE_COLOUR)
    fig.colorbar(mesh, ax=ax)
    _describe(ax, "x", table, dims[1], x)
    _describe(ax, "y", table, dims[0], y)
    if np.isnan(values).any():
        ax.set_title("grey: runs without a number", fontsize=8, color="0.4")


def _along(fig: Figure, ax: Axes, table: Any, dim: str, values: np.ndarray) -> None:
    """Draw over the values of the dimension, or listed samples as dots over the first two parameters."""
    listed = [name for name, x in table.coords.items() if x.dims == (dim,) and name != dim and x.dtype.kind in "fiu"]
    open_frame(ax)
    if dim in table.coords or len(listed) < 2:
        name = dim if dim in table.coords or not listed else listed[0]
        places = _places(table, name)
        ax.plot(places, values, color=BLUE, linestyle="-" if name == dim else "none", marker="o", markersize=3)
        _describe(ax, "x", table, name, places)
        return
    x, y = (table[name].values for name in listed[:2])
    ax.scatter(x[np.isnan(values)], y[np.isnan(values)], color=MISSING_VALUE_COLOUR, s=14)
    fig.colorbar(ax.scatter(x, y, c=np.ma.masked_invalid(values), cmap=MAP, norm=_colours(values), s=18), ax=ax)
    _describe(ax, "x", table, listed[0], x)
    _describe(ax, "y", table, listed[1], y)


def _places(table: Any, name: str) -> np.ndarray:
    """Positions of the values of a dimension or parameter: increasing numbers as they are, others by their index."""
    if name not in table.coords:
        return np.arange(table.sizes[name])
    values = table[name].values
    if values.dtype.kind not in "fiu":
        return np.arange(len(values))
    steps = np.diff(values.astype(float))
    in_order = (steps > 0).all() or (steps < 0).all()
    return values if in_order or table[name].dims != (name,) else np.arange(len(values))


def _edges(places: np.ndarray) -> np.ndarray:
    """Edges of cells around the values, halfway between them on the axis."""
    x = np.log(places) if _geometric(places) else places.astype(float)
    middle = (x[1:] + x[:-1]) / 2.0
    edges = np.concatenate(([2.0 * x[0] - middle[0]], middle, [2.0 * x[-1] - middle[-1]]))
    return np.exp(edges) if _geometric(places) else edges


def _geometric(places: np.ndarray) -> bool:
    """Whether positive values cover a large range and their steps grow with them, as those of `np.geomspace`."""
    if places.dtype.kind != "f" or not (places > 0).all() or places.max() <= MIN_LOGARITHMIC_RATIO * places.min():
        return False
    steps = np.abs(np.diff(np.sort(places)))
    return bool(steps[len(steps) // 2 :].sum() > 3.0 * steps[: (len(steps) + 1) // 2].sum())


def _colours(values: np.ndarray) -> Any:
    """The colour scale of the values: logarithmic if they are positive and cover a large range."""
    finite = values[np.isfinite(values)]
    wide = len(finite) and finite.min() > 0.0 and finite.max() > MIN_LOGARITHMIC_RATIO * finite.min()
    return LogNorm(finite.min(), finite.max()) if wide else None


def _describe(ax: Axes, letter: str, table: Any, name: str, places: np.ndarray) -> None:
    """Label and scale of an axis, and tick labels for values that are not numbers."""
    ax.set(**{f"{letter}label": label(table, name)})
    values = table[name].values if name in table.coords else places
    if not np.array_equal(values, places):
        if len(values) <= MAX_TICK_LABELS:
            ax.set(**{f"{letter}ticks": places, f"{letter}ticklabels": [str(x) for x in values]})
    elif _geometric(places):
        ax.set(**{f"{letter}scale": "log"})
