"""A robot from its Denavit-Hartenberg table

Six rows, masses and centres of mass, as published by the maker of the UR5, are enough: the example shows the tree drawn
as capsules, its frames, and every term of its dynamics. On the right are the gravity torques of the joints while the
arm moves from upright to stretched out.
"""

import matplotlib.pyplot as plt
import numpy as np

import geomctrl as gc

half = np.pi / 2
a = [0.0, -0.425, -0.39225, 0.0, 0.0, 0.0]  # m
alpha = [half, 0.0, 0.0, half, -half, 0.0]  # rad
d = [0.089159, 0.0, 0.0, 0.10915, 0.09465, 0.0823]  # m
mass = [3.7, 8.393, 2.275, 1.219, 1.219, 0.1879]  # kg
com = [
    (0, -0.02561, 0.00193),
    (0.2125, 0, 0.11336),
    (0.15, 0, 0.0265),
    (0, -0.0018, 0.01634),
    (0, 0.0018, 0.01634),
    (0, 0, -0.001159),
]  # m, in the links' frames
links = [gc.inertia.from_com(m, c, m * 0.003 * np.eye(3)) for m, c in zip(mass, com)]
robot = gc.Robot.from_dh(a, alpha, d, np.zeros(6), convention="standard", inertias=links, name="UR5")
print(robot)

q = np.array([0.4, -1.2, 1.3, -0.9, -half, 0.3])
lowering = np.linspace(0.0, half, 91)
postures = np.zeros((91, 6))
postures[:, 1] = lowering - half  # the shoulder turns, all else is straight
torque = robot.gravity_force(postures)
print(f"stretched out, the shoulder holds {abs(torque[-1, 1]):.1f} N m, the elbow {abs(torque[-1, 2]):.1f} N m")

plt.style.use("geomctrl.viewing.gallery")
fig = plt.figure(figsize=(8.6, 4.4), layout="none")
ax = fig.add_axes([-0.03, 0.0, 0.58, 1.0], projection="3d")
joints = np.array([robot.pose(q, name)[:3, 3] for name in ("world", *robot.body_names)])
ax.plot(*joints.T, "-o", color="0.8", lw=8.0)
for name in ("world", *robot.body_names):
    T = robot.pose(q, name)
    for axis, color in zip(T[:3, :3].T, ("C1", "C2", "C0")):
        ax.plot(*np.stack([T[:3, 3], T[:3, 3] + 0.14 * axis]).T, color=color, lw=2.0, zorder=9)
ax.set(xlim=(-0.6, 0.25), ylim=(-0.45, 0.3), zlim=(0.0, 0.75))
ax.set_box_aspect((0.85, 0.75, 0.75), zoom=1.25)
ax.view_init(18, -60)
ax.set_axis_off()
ax = fig.add_axes([0.62, 0.14, 0.34, 0.78])
for joint, name, color in ((1, "shoulder", "C0"), (2, "elbow", "C1"), (3, "wrist", "C2")):
    ax.plot(np.degrees(lowering), abs(torque[:, joint]), color=color)
    ax.text(88, abs(torque[-1, joint]) + 1.5, name, color=color, weight="bold", ha="right", va="bottom")
ax.set(
    xlabel="from upright [°]",
    ylabel="torque against gravity [N m]",
    xlim=(0, 90),
    ylim=(0, None),
    xticks=[0, 30, 60, 90],
)
plt.show()
