"""Draw triangles with a depth buffer: small pictures of robots without a browser, in a hundredth of a second.

A picture is drawn with four times as many pixels and then reduced.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy.ndimage import gaussian_filter

FINE = 2  # pixels drawn for one, each way
LIGHT = np.array([0.35, -0.45, 0.85]) / np.linalg.norm([0.35, -0.45, 0.85])  # towards it
FLOOR, LINE, SHADE = np.array([1.0, 1.0, 1.0]), np.array([0.86, 0.87, 0.88]), 0.16


class Camera:
    """A camera at `position` that looks at `target` [m], with a field of view [rad] over the height of its picture."""

    def __init__(self, position, target, field: float, height: int, width: int):
        self.height, self.width = FINE * height, FINE * width
        self.position = np.asarray(position, float)
        z = (np.asarray(target, float) - self.position) / np.linalg.norm(target - self.position)
        x = np.cross(z, [0.0, 0.0, 1.0])
        x /= np.linalg.norm(x)
        self.axes = np.stack([x, np.cross(z, x), z])
        self.focal = 0.5 * self.height / np.tan(0.5 * field)

    def seen(self, points: np.ndarray) -> np.ndarray:
        """Column, row and depth (n, 3) of points (n, 3)."""
        p = (points - self.position) @ self.axes.T
        return np.stack(
            [
                0.5 * self.width + self.focal * p[:, 0] / p[:, 2],
                0.5 * self.height + self.focal * p[:, 1] / p[:, 2],
                p[:, 2],
            ],
            1,
        )

    def rays(self) -> np.ndarray:
        """Directions (h, w, 3) of the pixels."""
        u = (np.arange(self.width) + 0.5 - 0.5 * self.width) / self.focal
        v = (np.arange(self.height) + 0.5 - 0.5 * self.height) / self.focal
        return u[None, :, None] * self.axes[0] + v[:, None, None] * self.axes[1] + self.axes[2]


def floor(camera: Camera, spacing: float, middle) -> tuple[np.ndarray, np.ndarray]:
    """(colours (h, w, 3) of a floor z = 0 with lines, where on it (h, w, 2) each pixel is; nan above the horizon)."""
    d = camera.rays()
    with np.errstate(divide="ignore", invalid="ignore"):
        along = np.where(d[..., 2] < -1e-3, -camera.position[2] / d[..., 2], np.nan)
    points_on_floor = camera.position[:2] + along[..., None] * d[..., :2]
    far = np.linalg.norm(points_on_floor - middle, axis=-1)
    wide = np.maximum(along / camera.focal, 1e-4) * 1.2 / np.maximum(-d[..., 2:], 0.15)[..., 0]  # of a line, in metres
    off = np.abs((points_on_floor / spacing + 0.5) % 1.0 - 0.5) * spacing
    line = np.clip(1.5 - off.min(axis=-1) / wide, 0.0, 1.0) * np.clip(2.2 - 1.6 * far, 0.0, 1.0)
    line = np.nan_to_num(line)[..., None]
    return (1.0 - line) * FLOOR + line * LINE, points_on_floor


def shadow(
    camera: Camera, points_on_floor: np.ndarray, triangles: np.ndarray, cell: float = 0.006, size: int = 500
) -> np.ndarray:
    """Shade (h, w) of the floor's pixels under triangles (n, 3, 3) [m]."""
    down = triangles - triangles[..., 2:] / LIGHT[2] * LIGHT
    flat = np.concatenate([down[..., :2] / cell + 0.5 * size, np.ones((*down.shape[:2], 1))], axis=-1)
    depth = np.full((size, size), np.inf)
    _fill(flat.reshape(-1, 3), np.zeros((flat.shape[0] * 3, 3)), depth, np.zeros((size, size, 3)))
    dark = gaussian_filter(np.isfinite(depth).astype(float), 2.5)
    column, row = (np.nan_to_num(points_on_floor[..., k] / cell + 0.5 * size, nan=-1.0).astype(int) for k in (0, 1))
    inside = (column >= 0) & (column < size) & (row >= 0) & (row < size)
    return np.where(inside, SHADE * dark[row.clip(0, size - 1), column.clip(0, size - 1)], 0.0)


def draw(
    camera: Camera, triangles: np.ndarray, normals: np.ndarray, colours: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(depth (h, w), infinite where nothing is; colours (h, w, 3)) of triangles, normals (n, 3, 3) of their corners and
    colours (n, 3) from 0 to 1.
    """
    corners = triangles.reshape(-1, 3)
    n = normals.reshape(-1, 3)
    to_eye = camera.position - corners
    to_eye /= np.linalg.norm(to_eye, axis=1, keepdims=True)
    n = np.where(np.einsum("ij,ij->i", n, to_eye)[:, None] < 0.0, -n, n)
    diffuse = np.clip(n @ LIGHT, 0.0, 1.0)
    half = to_eye + LIGHT
    half /= np.linalg.norm(half, axis=1, keepdims=True)
    shine = np.clip(np.einsum("ij,ij->i", n, half), 0.0, 1.0) ** 40
    light = 0.52 + 0.14 * n[:, 2] + 0.42 * diffuse
    shaded = np.clip(np.repeat(colours, 3, axis=0) * light[:, None] + 0.12 * shine[:, None], 0.0, 1.0)
    depth, image = np.full((camera.height, camera.width), np.inf), np.zeros((camera.height, camera.width, 3))
    _fill(camera.seen(corners), shaded, depth, image)
    return depth, image


def shrunk(image: np.ndarray) -> np.ndarray:
    """Bytes (h, w, 3) of a picture with the requested size."""
    h, w = image.shape[0] // FINE, image.shape[1] // FINE
    return (255.0 * image.reshape(h, FINE, w, FINE, 3).mean(axis=(1, 3)) + 0.5).astype(np.uint8)


def corner_normals(V: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Normals (n, 3, 3) of the triangles' corners: the mean of those that share a vertex, weighted by area."""
    face = np.cross(V[F[:, 1]] - V[F[:, 0]], V[F[:, 2]] - V[F[:, 0]])
    total = np.zeros_like(V)
    for k in range(3):
        np.add.at(total, F[:, k], face)
    total /= np.maximum(np.linalg.norm(total, axis=1, keepdims=True), 1e-12)
    return total[F]


@njit
def _fill(p, shade, depth, image):
    """Triangles of every three corners p (3 n, 3): column, row, depth, with colours (3 n, 3); the nearest in front."""
    height, width = depth.shape
    for i in range(0, p.shape[0], 3):
        ax, ay, bx, by, cx, cy = p[i, 0], p[i, 1], p[i + 1, 0], p[i + 1, 1], p[i + 2, 0], p[i + 2, 1]
        area = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay)
        if area == 0.0 or min(p[i, 2], p[i + 1, 2], p[i + 2, 2]) <= 0.0:
            continue
        for y in range(max(0, int(min(ay, by, cy))), min(height, int(max(ay, by, cy)) + 2)):
            for x in range(max(0, int(min(ax, bx, cx))), min(width, int(max(ax, bx, cx)) + 2)):
                X, Y = x + 0.5, y + 0.5
                a = ((bx - X) * (cy - Y) - (cx - X) * (by - Y)) / area
                b = ((cx - X) * (ay - Y) - (ax - X) * (cy - Y)) / area
                c = 1.0 - a - b
                if a < 0.0 or b < 0.0 or c < 0.0:
                    continue
                z = 1.0 / (a / p[i, 2] + b / p[i + 1, 2] + c / p[i + 2, 2])
                if z < depth[y, x]:
                    depth[y, x] = z
                    for k in range(3):
                        image[y, x, k] = a * shade[i, k] + b * shade[i + 1, k] + c * shade[i + 2, k]
