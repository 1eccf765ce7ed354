"""The elbow moves, the hand does not

A hand has six coordinates and the Panda seven joints, so one motion is left over. Torques that are projected into the
dynamically consistent null space (Khatib 1987) swing the elbow while the hand stays in place. Without the projection,
the same torques push the hand around.
"""

import matplotlib.pyplot as plt
import numpy as np

import geomctrl as gc
from geomctrl import controllers, models, operational_space

robot, tool = models.panda(), "panda_hand_tcp"
q0 = np.array([0.0, -0.4, 0.0, -2.1, 0.0, 1.8, 0.8])  # rad
hold = controllers.OperationalSpace(robot, gc.references.hold(robot, q0), tool, posture=(0.5, 3.0))


class Swing:
    def __init__(self, projected):
        self.projected = projected

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        push = np.array([16.0, 0.0, 16.0, 0.0, 0.0, 0.0, 0.0]) * np.sin(2.0 * np.pi * 0.25 * t)  # N m
        N = operational_space.null_space_projector(robot, q, robot.jacobian(q, tool))
        return gc.Command(hold(t, q, v, None).tau + (N.T @ push if self.projected else push))


off, runs = {}, {}
for name, projected in {"not projected": False, "in the null space": True}.items():
    run = runs[name] = gc.simulate(robot, Swing(projected), q0, np.zeros(7), t_end=4.0, dt=4e-3, monitors=None)
    off[name] = 1e3 * np.linalg.norm(robot.pose(run.q, tool)[:, :3, 3] - robot.pose(q0, tool)[:3, 3], axis=1)
    elbow = robot.pose(run.q, "panda_link4")[:, :3, 3]
    print(f"{name:18s} the elbow moves {1e3 * np.ptp(elbow[:, 1]):4.0f} mm, the hand {off[name].max():.1e} mm")

plt.style.use("geomctrl.viewing.gallery")
fig = plt.figure(figsize=(8.6, 4.4), layout="none")
ax = fig.add_axes([0.0, 0.0, 0.5, 1.0], projection="3d")
order = np.argsort(elbow[:, 1])
shown = order[np.searchsorted(elbow[order, 1], np.linspace(elbow[:, 1].min(), elbow[:, 1].max() - 1e-6, 3))]
for q, color in zip(run.q[shown], ("#b9d6ea", "#8fbcdb", "#d9e8f3")):
    joints = np.array([robot.pose(q, name)[:3, 3] for name in ("world", *robot.body_names, tool)])
    ax.plot(*joints.T, "-o", color=color, lw=8.0)
ax.set(xlim=(-0.1, 0.6), ylim=(-0.3, 0.3), zlim=(0.1, 0.85))
ax.set_box_aspect((0.7, 0.6, 0.75), zoom=1.25)
ax.view_init(16, -35)
ax.set_axis_off()
ax = fig.add_axes([0.6, 0.14, 0.38, 0.78])
for name, color in zip(off, ("C1", "C0")):
    ax.semilogy(run.t[1:], off[name][1:], color=color)
    ax.text(2.0, off[name].max() * 3, name, color=color, weight="bold", ha="center")
ax.set(xlabel="time [s]", ylabel="hand off its place [mm]", xlim=(0, 4), ylim=(1e-9, 1e3))
plt.show()
