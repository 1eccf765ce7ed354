"""Robots in matplotlib's axes of three dimensions, for pictures in print; figures that are shown, or written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgba_array
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from numpy.typing import ArrayLike

from geomctrl.arguments import path_of
from geomctrl.errors import ArgumentError
from geomctrl.files import whole
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.mechanism.states import as_batch
from geomctrl.terms.kinematics import poses

from .shapes import capsules, reach

JOINT = 0.45  # the colour of joints, of that of links
LIGHT = np.array([0.36, -0.6, 0.71])  # where it comes from
DARK = 0.5  # of the colour is left where no light falls
LONG, HALVINGS = 0.06, 4  # an edge, per reach of the robot, above which a triangle is cut in two, and how often


def draw_robot(ax: Any, robot: Mechanism, q: ArrayLike, color: Any = "0.85") -> Poly3DCollection:
    """The robot, made of capsules along its tree, in axes with `projection="3d"`.

    q (nq,), or (k, nq): so many of it in one picture, of which near ones hide far ones. color: of the links, as
    matplotlib takes colours, one or k of them; joints are darker. Raises ArgumentError.
    """
    require_robot("robot", robot)
    _, (q,) = as_batch(robot, q=q)
    colours = to_rgba_array(color)[:, :3]
    if len(colours) not in (1, len(q)):
        raise ArgumentError(f"color: expected one colour or {len(q)}, got {len(colours)}")
    size, corners, shades = reach(robot), [], []
    for mesh in capsules(robot):
        T = np.eye(4)[None] if mesh.body < 0 else poses(robot, q, robot.body_names[mesh.body])
        for pose, colour in zip(T, colours if len(colours) > 1 else np.repeat(colours, len(T), axis=0)):
            triangles = _short((mesh.vertices @ pose[:3, :3].T + pose[:3, 3])[mesh.faces], LONG * size)
            corners.append(triangles)
            shades.append(np.outer(_light(triangles), colour * (JOINT if mesh.part == "joint" else 1.0)))
    shades = np.concatenate(shades)
    drawn = Poly3DCollection(np.concatenate(corners), facecolors=shades, edgecolors=shades, linewidths=0.4)
    ax.add_collection3d(drawn)
    return drawn


def _short(corners: np.ndarray, length: float) -> np.ndarray:
    """Triangles (n, 3, 3) cut until their edges are short: matplotlib sorts whole ones by their distance."""
    for _ in range(HALVINGS):
        edges = np.linalg.norm(corners - np.roll(corners, -1, axis=1), axis=2)  # from a corner to the next
        long = edges.max(1) > length
        corner = edges[long].argmax(1)[:, None] + np.arange(3)
        a, b, c = np.take_along_axis(corners[long], (corner % 3)[..., None], axis=1).swapaxes(0, 1)
        middle = 0.5 * (a + b)
        corners = np.concatenate([corners[~long], np.stack([a, middle, c], 1), np.stack([middle, b, c], 1)])
    return corners


def _light(corners: np.ndarray) -> np.ndarray:
    """How bright triangles (n, 3, 3) are."""
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    size = np.linalg.norm(normal, axis=1)
    facing = (normal @ LIGHT) / np.where(size > 0.0, size, 1.0)
    return DARK + (1.0 - DARK) * (0.5 + 0.5 * facing)


def show_space(ax: Any, low: ArrayLike, high: ArrayLike, elevation: float = 18.0, azimuth: float = -60.0) -> None:
    """Axes of three dimensions without walls: the box from low (3,) to high (3,) [m], equal scales, seen from there.

    elevation and azimuth are in degrees. To be called last: what is drawn is no longer cut off at the edges of the
    square that matplotlib makes of these axes.
    """
    low, high = np.asarray(low, float), np.asarray(high, float)
    for name, a, b in zip("xyz", low, high):
        getattr(ax, f"set_{name}lim")(a, b)
    ax.set_box_aspect(high - low, zoom=1.25)
    ax.view_init(elevation, azimuth)
    ax.set_axis_off()
    for drawn in (*ax.lines, *ax.collections, *ax.texts):
        drawn.set_clip_on(False)
        drawn.set_in_layout(False)  # its box is that of what it was before the projection


def show(path: str | Path) -> Path | None:
    """The current figure in a window where there is a screen, and written to `path` where there is none.

    Its folder is made. Returns the path of what was written, None where a window was shown. Raises ArgumentError.
    """
    path = path_of("path", path)
    if matplotlib.get_backend().lower() not in ("agg", "pdf", "svg", "ps", "cairo", "template"):
        plt.show()
        return None
    with whole(path) as file:
        plt.gcf().savefig(file, format=path.suffix.removeprefix(".") or "png")
    return path
