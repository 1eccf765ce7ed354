"""A run in pictures: PNG files, drawn off screen. Nothing here touches pyplot or a display.

Colours are Okabe and Ito's, which the colour-blind tell apart. What was wished for or promised is black and dashed.
"""

from __future__ import annotations

import io
import os
import tempfile
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from geomctrl.errors import ArgumentError

if TYPE_CHECKING:
    from geomctrl.control.run import Run

BLUE, ORANGE, GREEN, PINK, SKY, RED = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00",
)  # fmt: skip
CYCLE = (BLUE, ORANGE, GREEN, PINK, SKY, RED, "0.55")
WANTED: dict[str, Any] = {"color": "black", "linestyle": (0, (4, 2)), "linewidth": 1.1}
LIMIT: dict[str, Any] = {"color": RED, "linestyle": ":", "linewidth": 1.3}
DPI = 110
PARAMETERS = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
KINDS = (("mass [kg]", slice(0, 1)), ("first moment [kg m]", slice(1, 4)), ("inertia [kg m²]", slice(4, 10)))
MOST_BODIES = 8
SHOWN = 5000  # samples a line is drawn through


def plot_run(run: Run, folder: str | os.PathLike, compare: Mapping[str, Run] | None = None) -> list[Path]:
    """Draw a run as PNG files in `folder`: overview, tracking, torques, Lyapunov function, estimates, monitors.

    What the run does not have is left out. `compare`: further runs by name, whose tracking error is drawn beside this
    one's in the overview. Each file is written whole or not at all. Returns the files written.
    """
    if len(run.t) < 2:
        raise ArgumentError(f"run: nothing to draw, it has {len(run.t)} samples")
    figures: dict[str, Callable[[], Figure | None]] = {
        "overview": lambda: overview(run, compare or {}),
        "tracking": lambda: tracking(run),
        "torques": lambda: torques(run),
        "lyapunov": lambda: lyapunov(run),
        "estimates": lambda: estimates(run),
        "monitors": lambda: monitors(run),
    }
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, draw in figures.items():
        figure = draw()
        if figure is not None:
            paths.append(_write(figure, folder / f"{name}.png"))
    return paths


# --- figures ---------------------------------------------------------------------------------------------------


def overview(run: Run, compare: Mapping[str, Run]) -> Figure:
    """The story at a glance: tracking, its error, torques, the Lyapunov function, an estimate, the monitors."""
    fig = _figure(13.0, 7.4, _title(run))
    axes = fig.subplots(2, 3)
    _draw_chosen(axes[0, 0], run)
    _draw_error_norms(axes[0, 1], run, compare)
    _draw_torques(axes[0, 2], run)
    _draw_lyapunov(axes[1, 0], run)
    _draw_mass(axes[1, 1], run)
    _draw_margins(axes[1, 2], run)
    for ax in axes.flat:
        ax.set_title(ax.get_title(), fontsize=10)
        ax.tick_params(labelsize=8)
        if ax is not axes[1, 2]:
            ax.set_xlabel("time [s]", fontsize=9)
    return fig


def tracking(run: Run) -> Figure:
    """One cell a joint: coordinate and desired, and their difference below."""
    names, units, q, desired, error = _coordinates(run)
    columns, rows = _grid(len(names))
    fig = _figure(3.6 * columns + 0.4, 2.7 * rows + 0.9, _title(run, "joint tracking"))
    outer = fig.add_gridspec(rows, columns)
    for k, name in enumerate(names):
        heights = (1,) if error is None else (2, 1)
        inner = outer[k // columns, k % columns].subgridspec(len(heights), 1, height_ratios=heights)
        ax = fig.add_subplot(inner[0])
        ax.plot(*_thin(run.t, q[:, k]), color=BLUE, linewidth=1.5, label="actual")
        if desired is not None:
            ax.plot(*_thin(run.t, desired[:, k]), **WANTED, label="desired")
        ax.set_title(name, fontsize=9)
        ax.set_ylabel(units[k], fontsize=8)
        _style(ax, run)
        if error is not None:
            ax.tick_params(labelbottom=False)
            ax = fig.add_subplot(inner[1], sharex=ax)
            ax.axhline(0.0, color="0.6", linewidth=0.6)
            ax.plot(*_thin(run.t, 1e3 * error[:, k]), color=RED, linewidth=1.1, label="error")
            ax.set_ylabel(f"m{units[k]}", fontsize=8)
            _style(ax, run)
        if k // columns == rows - 1 or k + columns >= len(names):
            ax.set_xlabel("time [s]", fontsize=8)
    _legend_below(fig)
    return fig


def torques(run: Run) -> Figure:
    """Torques, one panel a joint, with effort limits where they are near."""
    names, units = _names(run), _units(run, "N m", "N")
    columns, rows = _grid(len(names))
    fig = _figure(3.6 * columns + 0.4, 1.9 * rows + 0.9, _title(run, "joint torques and forces"))
    effort = run.plant.robot.limits.effort if run.plant is not None else np.full(len(names), np.inf)
    for k, name in enumerate(names):
        ax = fig.add_subplot(rows, columns, k + 1)
        ax.plot(*_thin(run.t, run.tau[:, k]), color=BLUE, linewidth=1.2, label="commanded")
        if np.nanmax(np.abs(run.tau[:, k])) > 0.4 * effort[k]:
            for x in (-effort[k], effort[k]):
                ax.axhline(x, **LIMIT, label="effort limit of the model (not enforced)" if x > 0 else None)
        ax.set_title(name, fontsize=9)
        ax.set_ylabel(units[k], fontsize=8)
        _style(ax, run)
        if k + columns >= len(names):
            ax.set_xlabel("time [s]", fontsize=8)
    _legend_below(fig)
    return fig


def lyapunov(run: Run) -> Figure | None:
    """V, and its promised rate against the numerical derivative of V along the run."""
    if "lyapunov" not in run.signals:
        return None
    fig = _figure(9.0, 7.2, _title(run, "Lyapunov function"))
    top, middle, bottom = fig.subplots(3, 1, sharex=True, height_ratios=(2, 2, 1.2))
    _draw_lyapunov(top, run)
    promised, numerical = run.signals["lyapunov_rate"], _numerical_rate(run)
    top.set_title("")
    falls = np.nanmax(np.concatenate((promised, numerical)), initial=-np.inf) <= 0.0
    sign = -1.0 if falls else 1.0
    middle.plot(*_thin(run.t, sign * numerical), color=ORANGE, linewidth=2.6, label="numerical, along the run")
    middle.plot(*_thin(run.t, sign * promised), **WANTED, label="promised by the proof")
    size = np.nanmax(np.abs(np.concatenate((promised, numerical))), initial=0.0)
    if falls and size > 0.0:
        middle.set_yscale("log")
        middle.set_ylim(max(np.nanmin(np.where(promised < 0.0, -promised, size)), 1e-8 * size) / 2.0, 2.0 * size)
    elif size > 0.0:
        middle.set_yscale("symlog", linthresh=1e-3 * size)
        middle.axhline(0.0, color="0.6", linewidth=0.8)
    middle.set_ylabel("rate of decrease -V' [V/s]" if falls else "rate V' [V/s]")
    middle.legend(loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=2, fontsize=8, frameon=False)
    bottom.semilogy(*_thin(run.t, np.maximum(np.abs(numerical - promised), 1e-300)), color=RED, linewidth=1.0)
    seen = np.abs(numerical - promised)
    seen = seen[np.isfinite(seen) & (seen > 0.0)]
    if len(seen):
        bottom.set_ylim(np.quantile(seen, 0.02) / 3.0, seen.max() * 3.0)
    bottom.set_ylabel("|difference| [V/s]")
    bottom.set_xlabel("time [s]")
    for ax in (middle, bottom):
        _style(ax, run)
    return fig


def estimates(run: Run) -> Figure | None:
    """The controller's state: parameter estimates, grouped by body where the controller says so, and the truth."""
    if run.z is None or run.z.ndim != 2 or run.z.shape[1] == 0:
        return None
    truth = _truth(run)
    columns = getattr(run.controller, "columns", None)
    if columns is None or run.plant is None:
        return _plain_state(run, truth)
    groups, left_out = _bodies_shown(run, truth, np.asarray(columns))
    friction = run.z.shape[1] - len(columns)
    rows = len(groups) + (1 if friction else 0)
    note = f" ({left_out} bodies whose estimates move least left out)" if left_out else ""
    fig = _figure(13.0, 2.1 * rows + 1.3, _title(run, f"parameter estimates{note}"))
    axes = fig.subplots(rows, 3, squeeze=False)
    for r, (body, members) in enumerate(groups):
        for ax, (kind, which) in zip(axes[r], KINDS):
            inside = [k for k in members if which.start <= columns[k] % 10 < which.stop]
            _draw_estimates(ax, run, truth, inside, [PARAMETERS[columns[k] % 10] for k in inside])
            if inside:
                ax.set_title(f"{run.plant.robot.body_names[body]}: {kind}", fontsize=9)
    if friction:
        nv = friction // 2
        for ax, kind, start in zip(axes[-1], ("viscous friction [N m s/rad]", "Coulomb friction [N m]"), (0, nv)):
            inside = list(range(len(columns) + start, len(columns) + start + nv))
            _draw_estimates(ax, run, truth, inside, list(_names(run)) if nv <= 8 else [])
            ax.set_title(kind, fontsize=9)
        axes[-1, 2].set_axis_off()
    for ax in axes[-1]:
        ax.set_xlabel("time [s]", fontsize=8)
    _style_legend_line(fig, truth is not None)
    return fig


def monitors(run: Run) -> Figure | None:
    """What the monitors measured, with their limits."""
    if not run.monitors:
        return None
    results = list(run.monitors.values())
    fig = _figure(10.0, 1.9 * len(results) + 0.9, _title(run, "monitors (zeros at the bottom)"))
    axes = fig.subplots(len(results), 1, sharex=True, squeeze=False)[:, 0]
    for ax, m in zip(axes, results):
        floor = min(1e-17, m.limit * 1e-8)
        values = np.where(np.isnan(m.values), np.nan, np.maximum(m.values, floor))
        ax.semilogy(run.t, values, color=GREEN if m.ok else RED, linewidth=0.0, marker=".", markersize=2.0)
        ax.axhline(m.limit, **LIMIT)
        ax.text(
            0.995,
            m.limit,
            f"limit {m.limit:.0e}",
            transform=ax.get_yaxis_transform(),
            ha="right",
            va="bottom",
            fontsize=8,
            color=RED,
        )
        top = max(m.limit, m.worst if np.isfinite(m.worst) else m.limit)
        ax.set_ylim(floor * 0.3, top * 100.0)
        ax.yaxis.get_major_locator().set_params(numticks=6)
        said = f"{m.name}: {m.what}: worst {m.worst:.1e} at {m.t_worst:.4g} s, {'held' if m.ok else 'VIOLATED'}"
        ax.set_title(said, fontsize=9, loc="left", color="black" if m.ok else RED)
        _style(ax, run)
    axes[-1].set_xlabel("time [s]")
    return fig


# --- panels ----------------------------------------------------------------------------------------------------


def _draw_chosen(ax: Axes, run: Run) -> None:
    """The joints that move most, at most four."""
    names, units, q, desired, _ = _coordinates(run)
    moved = np.nan_to_num(np.ptp(q, axis=0))
    chosen = np.sort(np.argsort(-moved, kind="stable")[:4])
    for colour, k in zip(CYCLE, chosen):
        ax.plot(*_thin(run.t, q[:, k]), color=colour, linewidth=2.0, label=names[k])
        if desired is not None:
            ax.plot(*_thin(run.t, desired[:, k]), **WANTED)
    ax.set_title("joints that move most (dashed: desired)")
    ax.set_ylabel(" / ".join(dict.fromkeys(units[k] for k in chosen)))
    _style(ax, run)
    _legend(ax, 2)


def _draw_error_norms(ax: Axes, run: Run, compare: Mapping[str, Run]) -> None:
    runs = {_controller_name(run): run, **compare}
    top, bottom = 0.0, np.inf
    for colour, (name, other) in zip((BLUE, ORANGE, GREEN, PINK), runs.items()):
        error = other.tracking_error() if other.controller is not None else None
        if error is None:
            continue
        norm = np.linalg.norm(error, axis=1)
        rms = float(np.sqrt((norm**2).mean()))
        label = f"{name}, RMS {rms:.2g}"
        ax.semilogy(*_thin(other.t, np.maximum(norm, 1e-12)), color=colour, linewidth=1.6, label=label)
        seen = norm[norm > 0.0]
        if len(seen):
            top, bottom = max(top, seen.max()), min(bottom, np.quantile(seen, 0.05))
    if top == 0.0:
        _nothing(ax, "no reference to track" if top == bottom else "no tracking error")
        return
    ax.set_ylim(bottom / 3.0, top * 2.0)
    ax.set_title("tracking error, all joints")
    ax.set_ylabel("|e| [rad, m]")
    _style(ax, run)
    _legend(ax, 1)


def _draw_torques(ax: Axes, run: Run) -> None:
    names, units = _names(run), _units(run, "N m", "N")
    largest = np.argsort(-np.nanmax(np.abs(run.tau), axis=0), kind="stable")[:4]
    for colour, k in zip(CYCLE, np.sort(largest)):
        ax.plot(*_thin(run.t, run.tau[:, k]), color=colour, linewidth=1.4, label=names[k])
    ax.set_title("torques, the largest")
    ax.set_ylabel(" / ".join(dict.fromkeys(units[k] for k in largest)))
    _style(ax, run)
    _legend(ax, 2)


def _draw_lyapunov(ax: Axes, run: Run) -> None:
    V = run.signals.get("lyapunov")
    if V is None or not np.isfinite(V).any() or np.nanmax(V) <= 0.0:
        _nothing(ax, "no Lyapunov function")
        return
    verdict = run.monitors.get("lyapunov")
    falls = "grows at changes of the load only" if run.plant is not None and run.plant.changes else "never grows"
    said = "" if verdict is None else f" ({falls})" if verdict.ok else " (grows)"
    ax.plot(*_thin(run.t, V), color=BLUE, linewidth=1.8)
    positive = V[V > 0.0]
    if positive.max() > 5.0 * positive.min():
        ax.set_yscale("log")
        ax.set_ylim(max(positive.min(), 1e-8 * positive.max()) / 2.0, 2.0 * positive.max())
    else:
        ax.set_ylim(0.0, 1.08 * positive.max())
    ax.set_title("Lyapunov function V" + said)
    ax.set_ylabel("V")
    _style(ax, run)


def _draw_mass(ax: Axes, run: Run) -> None:
    """The estimate of the mass that the model has most wrong, or what else there is of z."""
    truth, columns = _truth(run), getattr(run.controller, "columns", None)
    if run.z is None or run.z.ndim != 2 or run.z.shape[1] == 0:
        _nothing(ax, "no adaptation")
        return
    if truth is None or columns is None or run.plant is None:
        for k in range(min(4, run.z.shape[1])):
            ax.plot(*_thin(run.t, run.z[:, k]), color=CYCLE[k], label=f"z[{k}]")
        ax.set_title("controller's state")
    else:
        kinds, wrong = np.asarray(columns) % 10, np.abs(truth[-1] - run.z[0])[: len(columns)]
        shown = np.flatnonzero(kinds == 0) if (kinds == 0).any() else np.arange(len(kinds))
        k = int(shown[np.argmax(wrong[shown])])
        name, body = PARAMETERS[kinds[k]], run.plant.robot.body_names[columns[k] // 10]
        ax.plot(*_thin(run.t, run.z[:, k]), color=BLUE, linewidth=1.8, label=f"estimate of {name}, {body}")
        ax.plot(*_thin(run.t, truth[:, k]), **WANTED, label="true")
        ax.axhline(run.z[0, k], color=ORANGE, linewidth=1.3, label="nominal model")
        ax.set_title("the most wrong parameter" if kinds[k] else "mass estimate [kg]")
    _style(ax, run)
    _legend(ax, 1)


def _draw_margins(ax: Axes, run: Run) -> None:
    """How far below or above its limit each monitor's worst value is."""
    if not run.monitors:
        _nothing(ax, "no monitors")
        return
    results = list(run.monitors.values())[::-1]
    margin = [np.log10(max(m.worst, 1e-9 * m.limit) / m.limit) if np.isfinite(m.worst) else 9.0 for m in results]
    y = np.arange(len(results))
    ax.barh(y, margin, color=[GREEN if m.ok else RED for m in results], height=0.42)
    ax.axvline(0.0, **LIMIT)
    low, high = min(-10.0, *margin), max(2.0, *margin)
    ax.set_xlim(low * 1.05, high * 1.15)
    ax.set_ylim(-0.6, len(results) - 0.25)
    for k, m in enumerate(results):
        said = "exactly 0" if m.worst == 0.0 else f"worst {m.worst:.0e}"
        said = f"{m.name}: {said}, limit {m.limit:.0e}: {'held' if m.ok else 'VIOLATED'}"
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        ax.text(low, k + 0.26, said, fontsize=8.5, va="bottom", color="black" if m.ok else RED, bbox=box)
    ax.set_yticks([])
    ax.set_xlabel("log10(worst / limit); dotted: the limit")
    ax.set_title("properties behind the proof")
    ax.grid(axis="x", color="0.9")
    _frame(ax)


def _draw_estimates(ax: Axes, run: Run, truth: np.ndarray | None, members: list[int], labels: list[str]) -> None:
    if not members or run.z is None:
        ax.set_axis_off()
        return
    for j, k in enumerate(members):
        colour = CYCLE[j % len(CYCLE)]
        ax.plot(*_thin(run.t, run.z[:, k]), color=colour, linewidth=1.5, label=labels[j] if j < len(labels) else None)
        if truth is not None:
            ax.plot(*_thin(run.t, truth[:, k]), color=colour, linewidth=1.2, linestyle=(0, (4, 2)))
    _style(ax, run)
    if labels and labels != ["m"]:
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7, frameon=False, handlelength=1.2)


def _plain_state(run: Run, truth: np.ndarray | None) -> Figure:
    z = run.z
    assert z is not None
    fig = _figure(9.0, 4.5, _title(run, "controller's state z"))
    ax = fig.subplots()
    _draw_estimates(ax, run, truth, list(range(z.shape[1])), [f"z[{k}]" for k in range(min(z.shape[1], 12))])
    ax.set_xlabel("time [s]")
    return fig


# --- what is drawn ---------------------------------------------------------------------------------------------


def _coordinates(run: Run):
    """(names, units, q, desired, error) per velocity coordinate; poses relative to the first sample, as logarithms."""
    if run.plant is None:
        names = [f"q[{k}]" for k in range(run.q.shape[1])]
        return names, [""] * len(names), run.q, None, None
    robot, want = run.plant.robot, run.desired()
    q, desired = _relative(robot, run.q[0], run.q), None if want is None else _relative(robot, run.q[0], want.q)
    return list(_names(run)), _units(run, "rad", "m"), q, desired, run.tracking_error()


def _relative(robot, start, q):
    x = robot.difference(np.broadcast_to(start, q.shape), q)
    for joint, s, v in zip(robot.joints, robot.q_slices, robot.v_slices):
        if joint.dof == 1:
            x[:, v] = q[:, s]
    return x


def _names(run: Run) -> tuple[str, ...]:
    return run.plant.robot.dof_names if run.plant is not None else tuple(f"joint {k}" for k in range(run.tau.shape[1]))


def _units(run: Run, turning: str, sliding: str) -> list[str]:
    if run.plant is None:
        return [""] * run.tau.shape[1]
    return [turning if turns else sliding for turns in run.plant.robot.turning]


def _truth(run: Run) -> np.ndarray | None:
    """What z would be if the controller knew the plant, at each sample (n, nz); None if nobody can say."""
    if run.plant is None or not hasattr(run.controller, "true_parameters") or run.z is None:
        return None
    starts = [0.0, *(t for t, _ in run.plant.changes)]
    rows = [run.controller.true_parameters(run.plant.at(t)) for t in starts]
    return np.array(rows)[np.searchsorted(starts, run.t + 1e-12, side="right") - 1]


def _bodies_shown(run: Run, truth: np.ndarray | None, columns: np.ndarray) -> tuple[list[tuple[int, list[int]]], int]:
    """(body, its places in z) of the bodies whose estimates move most, in the robot's order; how many are left out."""
    z = run.z
    assert z is not None
    groups = {int(b): [k for k in range(len(columns)) if columns[k] // 10 == b] for b in np.unique(columns // 10)}
    moved = np.ptp(np.nan_to_num(z), axis=0) + (0.0 if truth is None else np.abs(truth[-1] - z[0]))
    most = sorted(groups, key=lambda b: -moved[groups[b]].max())[:MOST_BODIES]
    return [(b, groups[b]) for b in sorted(most)], len(groups) - len(most)


def _numerical_rate(run: Run) -> np.ndarray:
    """dV/dt by central differences; nan at the ends and beside a change of the true robot, where V jumps."""
    V = run.signals["lyapunov"]
    with np.errstate(all="ignore"):
        rate = np.gradient(V, run.t)
    rate[[0, -1]] = np.nan
    for t, _ in run.plant.changes if run.plant is not None else ():
        k = int(np.searchsorted(run.t, t - 1e-12))
        rate[max(k - 1, 0) : k + 1] = np.nan
    return rate


def _thin(t: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    step = max(1, len(t) // SHOWN)
    keep = np.r_[np.arange(0, len(t) - 1, step), len(t) - 1]
    return t[keep], x[keep]


def _controller_name(run: Run) -> str:
    return type(run.controller).__name__ if run.controller is not None else "run"


def _title(run: Run, what: str = "") -> str:
    robot = run.plant.robot.name if run.plant is not None else ""
    title = "  ·  ".join(p for p in (robot, _controller_name(run), what) if p)
    return title if run.success else f"{title}\n{textwrap.fill(run.reason, 80, max_lines=3)}"


# --- style -----------------------------------------------------------------------------------------------------


def _figure(width: float, height: float, title: str) -> Figure:
    fig = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    fig.suptitle(title, fontsize=11)
    return fig


def _grid(n: int) -> tuple[int, int]:
    """(columns, rows)."""
    columns = n if n <= 3 else 2 if n == 4 else 3 if n <= 6 else 4 if n <= 16 else 6
    return columns, -(-n // columns)


def _style(ax: Axes, run: Run) -> None:
    ax.set_xlim(run.t[0], run.t[-1])
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.grid(color="0.9", linewidth=0.7)
    ax.tick_params(labelsize=8)
    _frame(ax)
    for t, _ in run.plant.changes if run.plant is not None else ():
        ax.axvline(t, color="0.35", linewidth=0.9, linestyle=(0, (1, 1.5)))
    if ax.get_yscale() == "linear":
        ax.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useOffset=False)
        ax.yaxis.get_offset_text().set_fontsize(7)


def _frame(ax: Axes) -> None:
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _legend(ax: Axes, columns: int) -> None:
    """Above the data: the axis is stretched to make room."""
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


def _legend_below(fig: Figure) -> None:
    found = {}
    for ax in fig.axes:
        for handle, label in zip(*ax.get_legend_handles_labels()):
            found.setdefault(label, handle)
    fig.legend(found.values(), found.keys(), loc="outside lower center", ncols=len(found), fontsize=9, frameon=False)


def _style_legend_line(fig: Figure, truth: bool) -> None:
    if truth:
        fig.supxlabel("solid: estimate, dashed: true", fontsize=9)


def _nothing(ax: Axes, said: str) -> None:
    ax.text(0.5, 0.5, said, ha="center", va="center", color="0.5", transform=ax.transAxes)
    ax.set_axis_off()


def _write(figure: Figure, path: Path) -> Path:
    FigureCanvasAgg(figure)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as f:
            f.write(buffer.getvalue())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return path
