"""A run as one HTML file: the robot in three dimensions, and curves with a cursor at the same time.

viser provides the scene, its player and its time slider; matplotlib provides the curves, as SVG.
"""

from __future__ import annotations

import html
import re
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from geomctrl.errors import ArgumentError
from geomctrl.files import write_text
from geomctrl.mechanism.mechanism import Mechanism
from geomctrl.terms.kinematics import poses

from .curves import curves
from .joints import joint_tour
from .samples import Samples
from .scene import FORCE, GHOST, MAX_ARROW_LENGTH, MOMENT, TRAIL, Arrow, Colour, Scene, all_poses, end_effector
from .server import serve, stop
from .shapes import reach

FPS, FRAMES = 30.0, 1200  # frames per second, and largest number of frames
ROUNDING = 1e-9  # forces and moments below this share of each other are rounding errors


def save_html(run: Samples, path: Path, title: str, frames: Iterable[str] | None = None) -> Path:
    """Write the page to a file atomically."""
    return write_text(path, page(run, title, frames))


class Page:
    """An HTML page that notebooks display."""

    def __init__(self, text: str):
        self.text = text

    def open(self) -> None:
        """Show the page in a browser, from a temporary file; without a browser, print where that file is."""
        with tempfile.NamedTemporaryFile("w", suffix=".html", delete=False, encoding="utf-8") as file:
            file.write(self.text)
        address = Path(file.name).as_uri()
        if not webbrowser.open(address):
            print(f"geomctrl: no browser here; the page is {address}", file=sys.stderr)

    def _repr_html_(self) -> str:
        look = 'width="100%" height="640" style="border:1px solid #ddd"'
        return f'<iframe srcdoc="{html.escape(self.text, quote=True)}" {look}></iframe>'


def page(run: Samples, title: str, frames: Iterable[str] | None = None) -> str:
    """Return a page that works offline. `title` is escaped; frames: as for `Scene`."""
    if run.plant is None:
        raise ArgumentError("run: was loaded without a plant, which this animation needs: use load(path, plant)")
    if len(run.t) < 2:
        raise ArgumentError(f"run: nothing to draw, it has {len(run.t)} samples")
    scene, legend = recorded(run, frames)
    drawn, cursors = curves(run)
    return _filled(title, scene, legend, drawn, cursors)


def robot_page(robot: Mechanism, title: str, frames: Iterable[str] | None = None) -> str:
    """Return a page with a robot whose joints move through their ranges, one after another."""
    t, q = joint_tour(robot)
    scene = _recording(robot, frames, _pictures(t), lambda row: (all_poses(robot, q[row]), None, []), None)
    return _filled(title, scene, [], "", "[]")


def _filled(title: str, scene: str, legend: Sequence[tuple[Colour, str]], drawn: str, cursors: str) -> str:
    template = (Path(__file__).parent / "animation.html").read_text(encoding="utf-8")
    keys = "".join(f'<span><i style="background:rgb{colour}"></i>{html.escape(text)}</span>' for colour, text in legend)
    fields = {"title": html.escape(title), "legend": keys, "kind": "run" if drawn else "robot"}
    fields |= {"scene": html.escape(scene, quote=True), "curves": drawn, "cursors": cursors}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: fields[match[1]], template)


def recorded(run: Samples, frames: Iterable[str] | None = None) -> tuple[str, list[tuple[Colour, str]]]:
    """Return (the scene as a page, the meaning of its colours): robot, desired motion, path of the end effector,
    forces.
    """
    robot, tip = run.plant.robot, end_effector(run.plant.robot)
    legend: list[tuple[Colour, str]] = [(TRAIL, f"path of {tip}")]
    if run.desired is not None:
        legend.append((GHOST, "desired"))
    pictures = _pictures(run.t)
    arrows, scales = _arrows(run, np.array([k for k, _ in pictures]))
    legend += scales

    def at(k: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, list[Arrow]]:
        desired = None if run.desired is None else all_poses(robot, run.desired.q[k])
        return all_poses(robot, run.q[k]), desired, arrows

    return _recording(robot, frames, pictures, at, lambda k: poses(robot, run.q[k], tip)[:, :3, 3]), legend


def _recording(
    robot: Mechanism,
    frames: Iterable[str] | None,
    pictures: list[tuple[int, float]],
    moving: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray | None, list[Arrow]]],
    trail: Callable[[np.ndarray], np.ndarray] | None,
) -> str:
    """viser's page for the frames; moving: poses of the bodies, of the desired robot, and arrows, at the samples
    shown.
    """
    shown = np.array([k for k, _ in pictures])
    T, desired, arrows = moving(shown)
    server = serve()
    try:
        scene = Scene(server, robot, frames, None if desired is None else GHOST, [a.colour for a in arrows])
        path = None if trail is None else trail(shown)
        if path is not None and np.ptp(path, axis=0).max() > 1e-3 * scene.size:
            scene.trail(path)
        scene.surroundings(T if desired is None else np.concatenate([T, desired]), path)
        scene.aim_first()
        recording = server.get_scene_serializer()
        for k, (_, pause) in enumerate(pictures):
            pushed = [(a.start[k], a.vector[k]) for a in arrows]
            scene.show(T[k], None if desired is None else desired[k], pushed)
            recording.insert_sleep(pause)
        return recording.as_html()
    finally:
        stop(server)


def _arrows(run: Samples, samples: np.ndarray) -> tuple[list[Arrow], list[tuple[Colour, str]]]:
    """(arrows of forces and moments at the samples, their scales)."""
    acting = run.external_forces(samples)
    length = MAX_ARROW_LENGTH * reach(run.plant.robot)
    kinds = ((FORCE, "force", "N", "external force"), (MOMENT, "moment", "N m", "moment"))
    sizes = {kind[1]: [float(np.linalg.norm(getattr(a, kind[1]), axis=1).max()) for a in acting] for kind in kinds}
    force, moment = (max(x, default=0.0) for x in sizes.values())
    least = {"force": ROUNDING * moment / length, "moment": ROUNDING * force * length}  # of the other kind, rounded
    drawn, scales = [], []
    for colour, field, unit, label in kinds:
        largest = max(sizes[field], default=0.0)
        if largest > least[field]:
            arrows = [a for a, size in zip(acting, sizes[field]) if size > 0.0]
            drawn += [Arrow(colour, a.point, length / largest * getattr(a, field)) for a in arrows]
            scales.append((colour, f"{label}: {largest:.3g} {unit} is {length:.2g} m long"))
    return drawn, scales


def _pictures(t: np.ndarray) -> list[tuple[int, float]]:
    """(sample, seconds until the next frame) of the frames that are shown."""
    count = int(np.clip(np.ceil((t[-1] - t[0]) * FPS), 1, FRAMES)) + 1
    shown = np.unique(np.searchsorted(t, np.linspace(t[0], t[-1], count)).clip(0, len(t) - 1))
    return list(zip(shown.tolist(), [*np.diff(t[shown]).tolist(), 0.0]))
