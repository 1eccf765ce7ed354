"""A robot in viser's scene: bodies, the desired robot, frames, a path, arrows of forces.

The scene shows poses and does not depend on a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from geomctrl.mechanism.mechanism import WORLD, Mechanism
from geomctrl.terms.kinematics import poses

from .shapes import Mesh, arrow, reach
from .visuals import meshes

COLOURS = {"link": (205, 209, 216), "joint": (60, 64, 72)}
Colour = tuple[int, int, int]
BASE, GHOST, TRAIL, FORCE, MOMENT = (96, 100, 108), (0, 158, 115), (0, 114, 178), (213, 94, 0), (204, 121, 167)
DESIRED_OPACITY = 0.25  # opacity of the desired robot
MAX_ARROW_LENGTH = 0.35  # length of the longest arrow, relative to the robot's reach
MIN_ARROW_LENGTH = 0.01  # length relative to the longest arrow below which arrows are not drawn
VIEW, FIELD = np.array([1.0, -1.1, 0.5]), np.radians(40.0)  # direction of the camera, field of view

RAISED = 0.8  # vertical shift on a narrow screen, as a share of the free space


class Arrow(NamedTuple):
    """Arrows at one place in each frame: from start (k, 3) [m] along vector (k, 3), in world axes."""

    colour: Colour
    start: np.ndarray
    vector: np.ndarray


class Scene:
    """A robot in a server's scene.

    frames: names of frames whose axes are drawn. ghost: colour of a second, transparent robot. arrows: their number and
    colours. Raises NameNotFoundError for unknown frames.
    """

    def __init__(
        self,
        server: Any,
        robot: Mechanism,
        frames: Iterable[str] | None = None,
        ghost: Colour | None = None,
        arrows: Sequence[Colour] = (),
    ):
        self.server, self.robot, self.size = server, robot, reach(robot)
        shown = [robot.frame(name) for name in ([WORLD, end_effector(robot)] if frames is None else frames)]
        drawn = meshes(robot)
        self.corners = [(m.body, _box(m.vertices)) for m in drawn if m.body >= 0]
        self.bodies = self._robot("robot", drawn, None)
        self.ghost = self._robot("ghost", drawn, ghost) if ghost else []
        for frame in shown:
            on = f"/robot/{frame.body}/" if frame.body >= 0 else "/"
            place(
                server.scene.add_frame(
                    f"{on}frame {frame.name}", axes_length=0.12 * self.size, axes_radius=0.004 * self.size
                ),
                frame.placement,
            )
        vertices, faces = arrow()
        self.arrows = [
            server.scene.add_mesh_simple(f"/arrow{k}", vertices, faces, color=colour, visible=False)
            for k, colour in enumerate(arrows)
        ]

    def surroundings(self, T: np.ndarray, others: np.ndarray | None = None) -> None:
        """Draw the floor, and define what cameras look at: bodies at T (k, nbodies, 4, 4) and points `others` (n, 3)
        [m].
        """
        R, p = T[:, :, None, :3, :3], T[:, :, None, :3, 3:]
        placed = [R[:, body] @ vertices[:, :, None] + p[:, body] for body, vertices in self.corners]
        points = np.concatenate([*(x.reshape(-1, 3) for x in placed), T[..., :3, 3].reshape(-1, 3)])
        ground = [] if self.robot.joints[0].S.shape[1] == 6 else [np.zeros((1, 3))]
        points = np.concatenate([points, *ground, *([] if others is None else [others])])
        low, high = points.min(axis=0), points.max(axis=0)
        middle, radius = 0.5 * (low + high), max(0.5 * float(np.linalg.norm(high - low)), 0.3 * self.size)
        self.server.scene.add_grid(
            "/floor", width=8 * radius, height=8 * radius, cell_size=radius / 4, section_size=radius,
            position=(middle[0], middle[1], min(0.0, float(low[2]))),
        )  # fmt: skip
        self.middle, self.radius = middle, radius

    def aim_first(self) -> None:
        """Set the initial camera of new pages; for open pages it would undo `aim`."""
        self._place(self.server.initial_camera, 1.0)

    def aim(self, client: Any) -> None:
        """Turn the camera of an open browser to everything that `surroundings` defined, on narrow screens too."""
        with client.atomic():
            self._place(client.camera, client.camera.aspect)

    def _place(self, camera: Any, aspect: float) -> None:
        narrow, back = min(aspect, 1.0), VIEW / np.linalg.norm(VIEW)
        half = np.arctan(narrow * np.tan(0.5 * FIELD))  # half of the field of view along the shorter side
        up = np.array([0.0, 0.0, 1.0]) - back[2] * back
        margin = (1.0 / narrow - 1.0) * self.radius  # free space above and below; on phones viser's panel is below
        target = self.middle - RAISED * margin * up / np.linalg.norm(up)
        camera.fov = FIELD
        camera.position = tuple(target + self.radius / np.sin(half) * back)
        camera.look_at = tuple(target)  # last, because moving the camera changes its target

    def trail(self, points: np.ndarray) -> None:
        """Draw a line through points (k, 3) [m]."""
        self.server.scene.add_line_segments(
            "/trail", np.stack([points[:-1], points[1:]], 1), TRAIL, thickness=2.0, thickness_units="screen"
        )

    def show(
        self, T: np.ndarray, desired: np.ndarray | None = None, arrows: Iterable[tuple[np.ndarray, np.ndarray]] = ()
    ) -> None:
        """Move the bodies to T (nbodies, 4, 4), the desired robot's to `desired`; arrows: (start, vector) each."""
        for handle, pose in zip(self.bodies, T):
            place(handle, pose)
        for handle, pose in zip(self.ghost, T if desired is None else desired):
            place(handle, pose)
        for handle, (start, vector) in zip(self.arrows, arrows):
            length = float(np.linalg.norm(vector))
            seen = length > MIN_ARROW_LENGTH * MAX_ARROW_LENGTH * self.size
            if seen:
                handle.position, handle.scale = tuple(start), length
                handle.wxyz = _from_z_to(vector / length)
            if handle.visible is not seen:
                handle.visible = seen

    def _robot(self, name: str, drawn: list[Mesh], ghost: Colour | None) -> list[Any]:
        """A frame for each body, with its meshes."""
        add = self.server.scene
        frames = [add.add_frame(f"/{name}/{i}", show_axes=False) for i in range(self.robot.nbodies)]
        for n, mesh in enumerate(drawn):
            if mesh.body < 0 and ghost:
                continue
            own = mesh.colour or (BASE if mesh.body < 0 else COLOURS[mesh.part])
            clear = mesh.opacity if mesh.opacity < 1.0 else None
            add.add_mesh_simple(
                f"/{name}/{mesh.body}/{n}" if mesh.body >= 0 else f"/{name}/base{n}", mesh.vertices, mesh.faces,
                color=ghost or own, opacity=DESIRED_OPACITY if ghost else clear,
                side="double" if mesh.colour else "front", cast_shadow=not ghost,
            )  # fmt: skip
        return frames


def _box(V: np.ndarray) -> np.ndarray:
    """Corners (8, 3) of the bounding box of all vertices."""
    ends = np.stack([V.min(axis=0), V.max(axis=0)])
    return np.array([[ends[i, 0], ends[j, 1], ends[k, 2]] for i in (0, 1) for j in (0, 1) for k in (0, 1)])


def all_poses(robot: Mechanism, q: np.ndarray) -> np.ndarray:
    """Poses (..., nbodies, 4, 4) of all bodies at configurations q (..., nq)."""
    return np.stack([poses(robot, q, name) for name in robot.body_names], axis=-3)


def movie(robot: Mechanism, run: Any, rate: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Poses (n, nbodies, 4, 4) of a run and of its desired motion, `rate` a second, and the path (n, 3)."""
    times = np.linspace(0.0, run.t[-1], max(2, round(run.t[-1] * rate)))
    rows = np.searchsorted(run.t, times).clip(0, len(run.t) - 1)
    desired = run.q if run.desired is None else run.desired.q
    path = poses(robot, run.q[rows], end_effector(robot))[:, :3, 3]
    return all_poses(robot, run.q[rows]), all_poses(robot, desired[rows]), path


def place(handle: Any, T: np.ndarray) -> None:
    handle.position = tuple(T[:3, 3])
    handle.wxyz = tuple(np.roll(Rotation.from_matrix(T[:3, :3]).as_quat(), 1))


def _from_z_to(n: np.ndarray) -> tuple[float, ...]:
    """The rotation (w, x, y, z) from the z axis to n."""
    w, axis = 1.0 + n[2], np.array([-n[1], n[0], 0.0])  # z x n
    if w < 1e-9:
        return 0.0, 1.0, 0.0, 0.0
    x = np.array([w, *axis])
    return tuple(x / np.linalg.norm(x))


def end_effector(robot: Mechanism) -> str:
    """For a free base its body, otherwise the outermost frame on the body at the end of the longest chain."""
    if robot.joints[0].S.shape[1] == 6:
        return robot.body_names[0]
    depth = [0] * robot.nbodies
    for i, p in enumerate(robot.parents):
        depth[i] = depth[p] + 1 if p >= 0 else 0
    tip = int(np.argmax(depth))
    on = [f for f in robot.frames if f.body == tip]
    return max(on, key=lambda f: round(float(np.linalg.norm(f.placement[:3, 3])), 9)).name
