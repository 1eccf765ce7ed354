"""The animated picture docs/demo.webp of the README: the simulation of `make demo`.

    python experiments/pictures/panda_demo.py --urdf .../panda_description/urdf/panda.urdf

--urdf: a Panda's URDF whose meshes are drawn, such as that of example-robot-data (`make robots`); without one the arm
is drawn with capsules.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from geomctrl import models, simulate
from geomctrl.cli.scenario import Scenario, ScenarioOptions
from geomctrl.viewing.scene import COLOURS, VIEW, all_poses
from geomctrl.viewing.shapes import Mesh, capsule
from geomctrl.viewing.visuals import meshes

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.rendering import Camera, corner_normals, draw, floor, shadow, shrunk
from lib.script import run_script

LOAD, SECONDS = 2.0, 10.0
RATE, HOLD = 8.0, 1.2  # pictures a second; seconds that the last one stays
WIDTH, HEIGHT, LEFT = 960, 500, 500  # pixels: of a picture, of its half with the robots
BLUE, ORANGE = "#0072B2", "#E69F00"
RIVAL, FAINT = np.array([0.95, 0.65, 0.05]), 0.45  # of the other law
NEAR = 0.004  # m: surfaces nearer than that are one
TARGET = np.array([0.15, 0.0, 0.42])  # m, what the camera looks at
OUT = Path(__file__).parents[2] / "docs" / "demo.webp"


def main(*, urdf: Path | None = None, out: Path = OUT, quality: int = 72, middle: bool = False) -> None:
    """Draw the animated picture of the demo.

    Parameters
    ----------
    urdf
        URDF of a Panda, whose meshes are drawn; default capsules.
    out
        The WebP file.
    quality
        Of the WebP file, from 0 to 100.
    middle
        Also write the picture in the middle as a PNG file.
    """
    case = Scenario.make(models.panda(), ScenarioOptions(payload=LOAD, seconds=SECONDS))
    runs = [simulate(case.plant, law, case.q0, case.v0, SECONDS, 1e-3) for law in (case.controller, case.rival)]
    indices = np.linspace(0, len(runs[0].t) - 1, round(SECONDS * RATE) + 1).astype(int)
    robots = arms(urdf, [run.q[indices] for run in runs])
    plots = curves(runs, indices)
    pictures = [Image.fromarray(np.concatenate([left, right], axis=1)) for left, right in zip(robots, plots)]
    pause = round(1000.0 / RATE)
    if middle:
        pictures[len(pictures) // 2].save(out.with_suffix(".png"))
    pictures[0].save(
        out, save_all=True, append_images=pictures[1:], loop=0, quality=quality, method=4,
        duration=[pause] * (len(pictures) - 1) + [round(1000.0 * HOLD)],
    )  # fmt: skip
    print(f"wrote {out}, {len(pictures)} pictures, {out.stat().st_size / 1e3:.0f} kB")


def arms(urdf: Path | None, motions: list[np.ndarray]) -> list[np.ndarray]:
    """Pictures (HEIGHT, LEFT, 3) of both arms, the second faint, each with the load in its hand."""
    robot = models.panda() if urdf is None else models.load_urdf(urdf)
    fingers = np.full((len(motions[0]), robot.nq - 7), 0.035)  # open, where it has some
    hand = robot.frame("panda_hand_tcp" if urdf is None else "panda_hand")
    centre = hand.placement @ np.array([0.0, 0.0, 0.0 if urdf is None else 0.12, 1.0])
    ball, faces = capsule(np.zeros(3), np.zeros(3), 0.055)
    parts = [*meshes(robot), Mesh(hand.body, "joint", ball + centre[:3], faces)]
    corners = [(m, m.vertices[m.faces], corner_normals(m.vertices, m.faces)) for m in parts]
    camera = Camera(TARGET + 2.45 * VIEW / np.linalg.norm(VIEW), TARGET, np.radians(30.0), HEIGHT, LEFT)
    ground, indices = floor(camera, 0.2, TARGET[:2])

    def placed(T: np.ndarray, base: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        meshes_in_world = []
        for mesh, V, N in corners:
            if mesh.body >= 0 or base:
                pose = T[mesh.body] if mesh.body >= 0 else np.eye(4)
                own = np.array(mesh.colour or COLOURS[mesh.part]) / 255.0
                meshes_in_world.append(
                    (V @ pose[:3, :3].T + pose[:3, 3], N @ pose[:3, :3].T, np.tile(own, (len(V), 1)))
                )
        V, N, colours = (np.concatenate(x) for x in zip(*meshes_in_world))
        return V, N, colours

    pictures = []
    for T, other in zip(*(all_poses(robot, np.hstack([q, fingers])) for q in motions)):
        V, N, colours = placed(T, True)
        image = ground * (1.0 - shadow(camera, indices, V))[..., None]
        depth, drawn = draw(camera, V, N, colours)
        image = np.where(np.isfinite(depth)[..., None], drawn, image)
        V, N, colours = placed(other, False)
        behind, drawn = draw(camera, V, N, np.full_like(colours, 1.0) * RIVAL)
        faint = FAINT * (behind < depth - NEAR)[..., None]
        pictures.append(shrunk((1.0 - faint) * image + faint * drawn))
    return pictures


def curves(runs, indices: np.ndarray) -> list[np.ndarray]:
    """Pictures (HEIGHT, WIDTH - LEFT, 3) of curves up to each of the samples."""
    adaptive = runs[0]
    fig = Figure(figsize=((WIDTH - LEFT) / 100, HEIGHT / 100), dpi=100, layout="constrained", facecolor="white")
    canvas, axes = FigureCanvasAgg(fig), fig.subplots(3, 1, sharex=True)
    t = adaptive.t
    errors = [np.linalg.norm(run.tracking_error(), axis=1) for run in runs]
    law = adaptive.controller
    mass = next(k for k, column in enumerate(law.columns) if column % 10 == 0)
    true = law.true_parameters(adaptive.plant)[mass]
    panels = [
        (axes[0], [(errors[0], BLUE, "adaptive, Slotine and Li"), (errors[1], ORANGE, "computed torque")]),
        (axes[1], [(adaptive.signals["lyapunov"], BLUE, None)]),
        (axes[2], [(adaptive.z[:, mass], BLUE, "estimate")]),
    ]
    axes[0].set(yscale="log", ylim=(1e-3, 2.0), title="tracking error, all joints [rad]")
    axes[1].set(ylim=(0.0, 1.1 * adaptive.signals["lyapunov"].max()), title="Lyapunov function V: never grows")
    axes[2].set(
        ylim=(0.0, 1.6 * true), title=f"mass of the last link with its load of {LOAD:g} kg [kg]", xlabel="time [s]"
    )
    axes[2].axhline(true, color="black", linestyle=(0, (4, 2)), linewidth=1.1, label="true value, unknown to the law")
    lines, dots = [], []
    for ax, shown in panels:
        for y, colour, label in shown:
            lines.append((ax.plot(t, y, color=colour, linewidth=1.6, label=label)[0], y))
            dots.append((ax.plot([], [], "o", color=colour, markersize=4)[0], y))
        ax.set_xlim(0.0, SECONDS)
        ax.title.set_fontsize(10)
        ax.grid(color="0.9", linewidth=0.7)
        ax.tick_params(labelsize=8)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        if len(shown) > 1 or ax is axes[2]:
            ax.legend(loc="upper right", fontsize=8, frameon=False, ncols=2, borderaxespad=0.1)
    canvas.draw()
    fig.set_layout_engine("none")  # or the axes would move from picture to picture
    out = []
    for k in indices:
        for line, y in lines:
            line.set_data(t[: k + 1 : 5], y[: k + 1 : 5])
        for dot, y in dots:
            dot.set_data([t[k]], [y[k]])
        canvas.draw()
        out.append(np.asarray(canvas.buffer_rgba())[..., :3].copy())
    return out


if __name__ == "__main__":
    run_script(main)
