"""Write pictures of a run as PNG files, without pyplot and without a display."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from matplotlib.figure import Figure

from geomctrl.arguments import has_attributes, mapped, path_of, shown
from geomctrl.errors import ArgumentError

from . import estimates, lyapunov, monitors, overview, signals, torques, tracking
from .samples import Samples
from .style import own_style, write_png

PICTURES = (".png", ".pdf", ".svg", ".jpg", ".jpeg")  # suffixes that a folder should not have


@own_style()
def plot_run(run: Samples, folder: str | os.PathLike, compare: Mapping[str, Samples] | None = None) -> list[Path]:
    """Draw a run as PNG files: overview, tracking, torques, Lyapunov function, estimates, signals, monitors.

    Parameters
    ----------
    run : Run
        The run. Pictures of data that it does not have are left out.
    folder : str or Path
        The folder to write to.
    compare : mapping of str to Run, optional
        Other runs by name; the overview shows their tracking errors too.

    Returns
    -------
    list of Path
        The files, each written atomically.
    """
    folder = path_of("folder", folder)
    if folder.suffix.lower() in PICTURES and not folder.is_dir():
        one = f"run.plot().savefig({str(folder)!r})"
        raise ArgumentError(f"folder: expected one for several PNG files, got {str(folder)!r}; for the overview: {one}")
    others = mapped("compare", {} if compare is None else compare, "further runs by name")
    for x in others.values():
        _require_run("compare", x)
    _require_samples(run)
    figures: dict[str, Callable[[], Figure | None]] = {
        "overview": lambda: overview.figure(run, compare or {}),
        "tracking": lambda: tracking.figure(run),
        "torques": lambda: torques.figure(run),
        "lyapunov": lambda: lyapunov.figure(run),
        "estimates": lambda: estimates.figure(run),
        "signals": lambda: signals.figure(run),
        "monitors": lambda: monitors.figure(run),
    }
    paths = []
    for name, draw in figures.items():
        drawn = draw()
        if drawn is not None:
            paths.append(write_png(drawn, folder / f"{name}.png"))
    return paths


@own_style()
def run_overview(run: Samples) -> Figure:
    """Return the overview as a figure."""
    _require_samples(run)
    return overview.figure(run, {})


def _require_run(name: str, x: object) -> None:
    if not has_attributes(x, "t", "q", "v", "applied", "monitors"):
        raise ArgumentError(f"{name}: expected a geomctrl.Run, got {shown(x)}")


def _require_samples(run: Samples) -> None:
    _require_run("run", run)
    if len(run.t) < 2:
        raise ArgumentError(f"run: nothing to draw, it has {len(run.t)} samples")
