"""Draw robots in matplotlib's 3D axes, for pictures in print."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from numpy.typing import ArrayLike

from geomctrl.errors import ArgumentError
from geomctrl.mechanism.mechanism import Mechanism, require_robot
from geomctrl.mechanism.states import as_batch
from geomctrl.terms.kinematics import poses

from .shapes import capsules, reach

JOINT = 0.45  # brightness of joints, relative to the links' colour
LIGHT = np.array([0.36, -0.6, 0.71])  # direction of the light source
DARK = 0.5  # brightness of faces without light
LONG, HALVINGS = 0.06, 4  # edge length, relative to the robot's reach, above which triangles are split; how often


def draw_robot(ax: Any, robot: Mechanism, q: ArrayLike, color: Any = "0.85") -> Poly3DCollection:
    """Draw a robot as capsules along its tree, in axes with `projection="3d"`.

    Parameters
    ----------
    ax : Axes3D
        matplotlib's axes.
    robot : Robot
        The robot.
    q : array_like, shape (nq,) or (k, nq)
        One configuration, or k configurations that are drawn together, with correct occlusion.
    color : optional
        Colour of the links, or k colours, as matplotlib accepts them; joints are darker. Default "0.85".

    Returns
    -------
    Poly3DCollection

    Raises
    ------
    ArgumentError
        If an argument is invalid.
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
    """Triangles (n, 3, 3), split until their edges are short: matplotlib sorts whole triangles by distance."""
    for _ in range(HALVINGS):
        edges = np.linalg.norm(corners - np.roll(corners, -1, axis=1), axis=2)  # from each corner to the next
        long = edges.max(1) > length
        corner = edges[long].argmax(1)[:, None] + np.arange(3)
        a, b, c = np.take_along_axis(corners[long], (corner % 3)[..., None], axis=1).swapaxes(0, 1)
        middle = 0.5 * (a + b)
        corners = np.concatenate([corners[~long], np.stack([a, middle, c], 1), np.stack([middle, b, c], 1)])
    return corners


def _light(corners: np.ndarray) -> np.ndarray:
    """Brightness of triangles (n, 3, 3)."""
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    size = np.linalg.norm(normal, axis=1)
    facing = (normal @ LIGHT) / np.where(size > 0.0, size, 1.0)
    return DARK + (1.0 - DARK) * (0.5 + 0.5 * facing)


def show_space(ax: Any, low: ArrayLike, high: ArrayLike, elevation: float = 18.0, azimuth: float = -60.0) -> None:
    """Show 3D axes without walls: the box from low (3,) to high (3,) [m], with equal scales.

    elevation and azimuth of the camera are in degrees. Call it last: the drawing is then no longer clipped to the
    square of the axes.
    """
    low, high = np.asarray(low, float), np.asarray(high, float)
    for name, a, b in zip("xyz", low, high):
        getattr(ax, f"set_{name}lim")(a, b)
    ax.set_box_aspect(high - low, zoom=1.25)
    ax.view_init(elevation, azimuth)
    ax.set_axis_off()
    for drawn in (*ax.lines, *ax.collections, *ax.texts):
        drawn.set_clip_on(False)
        drawn.set_in_layout(False)  # its bounding box does not account for the projection


def picture(robot: Mechanism, q: ArrayLike, color: Any = "0.85", pixels: int = 480) -> np.ndarray:
    """A picture (pixels, pixels, 3) of a robot at one or more configurations, as for `draw_robot`, in 8 bits."""
    figure = Figure(figsize=(4.0, 4.0), dpi=pixels / 4.0)
    canvas, size = FigureCanvasAgg(figure), reach(robot)
    ax: Any = figure.add_axes((0.0, 0.0, 1.0, 1.0), projection="3d")
    draw_robot(ax, robot, q, color)
    middle = np.zeros(3) if robot.joints[0].dof < 6 else poses(robot, np.atleast_2d(q)[0], robot.body_names[0])[:3, 3]
    show_space(ax, middle - 0.75 * size, middle + 0.75 * size)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
