"""A run as one HTML file: the robot in three dimensions, and beside it curves whose cursor follows the same time.

The scene, its player and its time slider are viser's, alone imported here; the curves are matplotlib's, as SVG.
"""

from __future__ import annotations

import contextlib
import html
import io
import tempfile
import webbrowser
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from geomctrl.errors import ArgumentError
from geomctrl.files import write_text
from geomctrl.terms.kinematics import poses

from .curves import curves
from .samples import Samples
from .shapes import meshes, reach

COLOURS = {"link": (205, 209, 216), "joint": (60, 64, 72)}
BASE, GHOST, TRAIL, PUSH = (96, 100, 108), (0, 158, 115), (0, 114, 178), (213, 94, 0)
FPS, FRAMES = 30.0, 1200  # pictures a second, and how many at most


def save_html(run: Samples, path: Path, title: str) -> Path:
    """Write the page, whole or not at all."""
    return write_text(path, page(run, title))


class Page:
    """An HTML page that a notebook shows in a frame."""

    def __init__(self, text: str):
        self.text = text

    def open(self) -> None:
        """Show it in a browser, from a temporary file."""
        with tempfile.NamedTemporaryFile("w", suffix=".html", delete=False, encoding="utf-8") as file:
            file.write(self.text)
        webbrowser.open(Path(file.name).as_uri())

    def _repr_html_(self) -> str:
        look = 'width="100%" height="640" style="border:1px solid #ddd"'
        return f'<iframe srcdoc="{html.escape(self.text, quote=True)}" {look}></iframe>'


def page(run: Samples, title: str) -> str:
    """A page that needs no network: `title` is escaped."""
    if run.plant is None:
        raise ArgumentError("run: was loaded from a file, which has no robot: give it one, load(path, plant)")
    if len(run.t) < 2:
        raise ArgumentError(f"run: nothing to draw, it has {len(run.t)} samples")
    scene = html.escape(recorded(run), quote=True)
    drawn, cursors = curves(run)
    template = (Path(__file__).parent / "animation.html").read_text(encoding="utf-8")
    words = {"title": html.escape(title), "scene": scene, "curves": drawn, "cursors": cursors}
    for name, text in words.items():
        template = template.replace("{{" + name + "}}", text)
    return template


def recorded(run: Samples) -> str:
    """The scene as a page of its own: robot, desired motion, the trail of the last body, what pushes, over the time."""
    server = _server()
    try:
        scene = Scene(server, run)
        recording = server.get_scene_serializer()
        for k, (_, pause) in enumerate(scene.frames):
            scene.show(k)
            recording.insert_sleep(pause)
        return recording.as_html()
    finally:
        with contextlib.redirect_stdout(io.StringIO()):
            server.stop()


class Scene:
    """What is drawn of a run, and where it is at a sample. robot: with `poses` of its bodies."""

    def __init__(self, server: Any, run: Samples):
        self.server, self.run, self.robot = server, run, run.plant.robot
        self.frames = frames(run.t)
        size = reach(self.robot)
        at = np.array([k for k, _ in self.frames])
        self.bodies = self._robot("robot", run.q, at, None)
        if run.desired is not None:
            self.bodies += self._robot("desired", run.desired.q, at, 0.25)
        tip = poses(self.robot, run.q[at], self.robot.body_names[self._tip()])[:, :3, 3]
        if np.ptp(tip, axis=0).max() > 1e-3 * size:
            server.scene.add_line_segments(
                "/trail", np.stack([tip[:-1], tip[1:]], 1), TRAIL, thickness=2.0, thickness_units="screen"
            )
        lowest = (
            min(0.0, float(min(T[:, 2, 3].min() for _, T in self.bodies)))
            if self.robot.joints[0].S.shape[1] == 6
            else 0.0
        )
        server.scene.add_grid("/floor", width=6 * size, height=6 * size, cell_size=size / 4, position=(0, 0, lowest))
        server.initial_camera.position = tuple(np.array([1.1, -1.2, 0.9]) * size)
        server.initial_camera.look_at = (0.0, 0.0, 0.3 * size)

    def show(self, k: int) -> None:
        """Move everything to where it is at the k-th of the pictures."""
        for handle, T in self.bodies:
            handle.position = tuple(T[k, :3, 3])
            handle.wxyz = tuple(np.roll(Rotation.from_matrix(T[k, :3, :3]).as_quat(), 1))

    def _tip(self) -> int:
        """The body that is farthest along the longest chain."""
        depth = [0] * self.robot.nbodies
        for i, p in enumerate(self.robot.parents):
            depth[i] = depth[p] + 1 if p >= 0 else 0
        return int(np.argmax(depth))

    def _robot(self, name: str, q: np.ndarray, at: np.ndarray, opacity: float | None) -> list[tuple[Any, np.ndarray]]:
        """A robot's bodies with their poses (k, 4, 4) at the pictures."""
        moving = []
        for i, body in enumerate(self.robot.body_names):
            T = poses(self.robot, q[at], body)
            moving.append((self.server.scene.add_frame(f"/{name}/{i}", show_axes=False), T))
        for n, mesh in enumerate(meshes(self.robot)):
            if mesh.body < 0 and opacity is not None:
                continue
            colour = BASE if mesh.body < 0 else COLOURS[mesh.part] if opacity is None else GHOST
            self.server.scene.add_mesh_simple(
                f"/{name}/{mesh.body}/{mesh.part}{n}" if mesh.body >= 0 else f"/{name}/base{n}",
                mesh.vertices, mesh.faces, color=colour, opacity=opacity, flat_shading=False,
            )  # fmt: skip
        return moving


def frames(t: np.ndarray) -> list[tuple[int, float]]:
    """(sample, seconds until the next picture) of the pictures that are shown."""
    count = int(np.clip(np.ceil((t[-1] - t[0]) * FPS), 1, FRAMES)) + 1
    at = np.unique(np.searchsorted(t, np.linspace(t[0], t[-1], count)).clip(0, len(t) - 1))
    return list(zip(at.tolist(), [*np.diff(t[at]).tolist(), 0.0]))


def _server() -> Any:
    """viser's, that listens on this machine alone."""
    try:
        import viser
    except ImportError as error:
        raise ImportError("robots in three dimensions need viser: pip install 'geomctrl[view]'") from error
    with contextlib.redirect_stdout(io.StringIO()):
        return viser.ViserServer(host="127.0.0.1", port=0, verbose=False)
