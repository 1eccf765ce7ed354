"""Pictures of robots by matplotlib, without a display."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.terms.kinematics import poses

from .shapes import capsules, reach

JOINT = 0.45  # brightness of joints, relative to the links' colour
LIGHT = np.array([0.36, -0.6, 0.71])  # direction of the light source
DARK = 0.5  # brightness of faces without light
LONG, HALVINGS = 0.06, 4  # edge length, relative to the robot's reach, above which triangles are split; how often


def draw_robot(ax: Any, robot: Mechanism, q: np.ndarray, colors: list[str]) -> Poly3DCollection:
    """Draw configurations (k, nq) of a robot as capsules along its tree, with correct occlusion, each in its colour."""
    size, corners, shades = reach(robot), [], []
    for mesh in capsules(robot):
        T = [np.eye(4)] * len(q) if mesh.body < 0 else poses(robot, q, robot.body_names[mesh.body])
        for pose, color in zip(T, to_rgba_array(colors)[:, :3]):
            triangles = _short((mesh.vertices @ pose[:3, :3].T + pose[:3, 3])[mesh.faces], LONG * size)
            corners.append(triangles)
            shades.append(np.outer(_light(triangles), color * (JOINT if mesh.part == "joint" else 1.0)))
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


def picture(robot: Mechanism, q: np.ndarray, colors: list[str], pixels: int = 480) -> np.ndarray:
    """A picture (pixels, pixels, 3) of configurations (k, nq) of a robot, each in its colour, in 8 bits."""
    figure = Figure(figsize=(4.0, 4.0), dpi=pixels / 4.0)
    canvas, size = FigureCanvasAgg(figure), reach(robot)
    ax: Any = figure.add_axes((0.0, 0.0, 1.0, 1.0), projection="3d")
    draw_robot(ax, robot, q, colors)
    middle = np.zeros(3) if robot.joints[0].dof < 6 else poses(robot, q[0], robot.body_names[0])[:3, 3]
    for name, x in zip("xyz", middle):
        getattr(ax, f"set_{name}lim")(x - 0.75 * size, x + 0.75 * size)
    ax.set_box_aspect((1, 1, 1), zoom=1.25)
    ax.view_init(18.0, -60.0)
    ax.set_axis_off()
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
