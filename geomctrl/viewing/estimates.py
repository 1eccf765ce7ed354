"""Pictures of the controller's state: parameter estimates, and the true values if they are known."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .samples import Samples, coordinate_names, true_state
from .style import (
    BLUE,
    CYCLE,
    DESIRED_STYLE,
    ORANGE,
    heading,
    legend_above,
    new_figure,
    show_placeholder,
    style_axes,
    thinned,
)

PARAMETERS = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
KINDS = (("mass [kg]", slice(0, 1)), ("first moment [kg m]", slice(1, 4)), ("inertia [kg m²]", slice(4, 10)))
MOST_BODIES = 8


def figure(run: Samples) -> Figure | None:
    """The controller's state: parameter estimates, grouped by body if the controller defines it, and the true
    values.
    """
    if run.z is None or run.z.ndim != 2 or run.z.shape[1] == 0:
        return None
    truth = true_state(run)
    columns = getattr(run.controller, "columns", None)
    if columns is None or run.plant is None:
        return _plain_state(run, truth)
    groups, left_out = _bodies_shown(run, truth, np.asarray(columns))
    friction = run.z.shape[1] - len(columns)
    rows = len(groups) + (1 if friction else 0)
    note = f" ({left_out} bodies whose estimates move least left out)" if left_out else ""
    fig = new_figure(13.0, 2.1 * rows + 1.3, heading(run, f"parameter estimates{note}"))
    axes = fig.subplots(rows, 3, squeeze=False)
    for r, (body, members) in enumerate(groups):
        for ax, (kind, which) in zip(axes[r], KINDS):
            inside = [k for k in members if which.start <= columns[k] % 10 < which.stop]
            _draw(ax, run, truth, inside, [PARAMETERS[columns[k] % 10] for k in inside])
            if inside:
                ax.set_title(f"{run.plant.robot.body_names[body]}: {kind}", fontsize=9)
    if friction:
        nv = friction // 2
        for ax, kind, start in zip(axes[-1], ("viscous friction [N m s/rad]", "Coulomb friction [N m]"), (0, nv)):
            inside = list(range(len(columns) + start, len(columns) + start + nv))
            _draw(ax, run, truth, inside, list(coordinate_names(run)) if nv <= 8 else [])
            ax.set_title(kind, fontsize=9)
        axes[-1, 2].set_axis_off()
    for ax in axes[-1]:
        ax.set_xlabel("time [s]", fontsize=8)
    if truth is not None:
        fig.supxlabel("solid: estimate, dashed: true", fontsize=9)
    return fig


def panel(ax: Axes, run: Samples) -> None:
    """The estimate of the mass with the largest model error, or another part of z."""
    truth, columns = true_state(run), getattr(run.controller, "columns", None)
    if run.z is None or run.z.ndim != 2 or run.z.shape[1] == 0:
        show_placeholder(ax, "no adaptation")
        return
    if truth is None or columns is None or run.plant is None:
        for k in range(min(4, run.z.shape[1])):
            ax.plot(*thinned(run.t, run.z[:, k]), color=CYCLE[k], label=f"z[{k}]")
        ax.set_title("controller's state")
    else:
        kinds, wrong = np.asarray(columns) % 10, np.abs(truth[-1] - run.z[0])[: len(columns)]
        shown = np.flatnonzero(kinds == 0) if (kinds == 0).any() else np.arange(len(kinds))
        k = int(shown[np.argmax(wrong[shown])])
        name, body = PARAMETERS[kinds[k]], run.plant.robot.body_names[columns[k] // 10]
        ax.plot(*thinned(run.t, run.z[:, k]), color=BLUE, linewidth=1.8, label=f"estimate of {name}, {body}")
        ax.plot(*thinned(run.t, truth[:, k]), **DESIRED_STYLE, label="true")
        ax.axhline(run.z[0, k], color=ORANGE, linewidth=1.3, label="nominal model")
        ax.set_title("the most wrong parameter" if kinds[k] else "mass estimate [kg]")
    style_axes(ax, run)
    legend_above(ax, 1)


def _plain_state(run: Samples, truth: np.ndarray | None) -> Figure:
    z = run.z
    assert z is not None
    fig = new_figure(9.0, 4.5, heading(run, "controller's state z"))
    ax = fig.subplots()
    _draw(ax, run, truth, list(range(z.shape[1])), [f"z[{k}]" for k in range(min(z.shape[1], 12))])
    ax.set_xlabel("time [s]")
    return fig


def _draw(ax: Axes, run: Samples, truth: np.ndarray | None, members: list[int], labels: list[str]) -> None:
    if not members or run.z is None:
        ax.set_axis_off()
        return
    for j, k in enumerate(members):
        colour = CYCLE[j % len(CYCLE)]
        ax.plot(*thinned(run.t, run.z[:, k]), color=colour, linewidth=1.5, label=labels[j] if j < len(labels) else None)
        if truth is not None:
            ax.plot(*thinned(run.t, truth[:, k]), color=colour, linewidth=1.2, linestyle=(0, (4, 2)))
    style_axes(ax, run)
    if labels and labels != ["m"]:
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=7, frameon=False, handlelength=1.2)


def _bodies_shown(
    run: Samples, truth: np.ndarray | None, columns: np.ndarray
) -> tuple[list[tuple[int, list[int]]], int]:
    """(body, its indices in z) of the bodies whose estimates change most, in the robot's order; number of others."""
    z = run.z
    assert z is not None
    groups = {int(b): [k for k in range(len(columns)) if columns[k] // 10 == b] for b in np.unique(columns // 10)}
    moved = np.ptp(np.nan_to_num(z), axis=0) + (0.0 if truth is None else np.abs(truth[-1] - z[0]))
    shown = sorted(groups, key=lambda b: -moved[groups[b]].max())[:MOST_BODIES]
    return [(b, groups[b]) for b in sorted(shown)], len(groups) - len(shown)
