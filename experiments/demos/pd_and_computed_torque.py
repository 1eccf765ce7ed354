"""PD against computed torque

The tool of a Panda follows a fast motion. PD with gravity compensation always lags, even if it is well damped, because
it does not compensate inertia. Computed torque with the same gains has an error that decays as exp(-5 t), down to
rounding.
"""

import matplotlib.pyplot as plt
import numpy as np

import geomctrl as gc
from geomctrl import controllers, models

robot, tool = models.panda(), "panda_hand_tcp"
home = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])  # rad
motion = gc.references.Sinusoids(
    robot, home, amplitude=[0.6, 0.25, 0.3, 0.35, 0.0, 0.3, 0.0], frequency=[0.5, 1.0, 0.5, 1.0, 0.5, 1.0, 0.5]
)
inertia = np.diag(robot.mass_matrix(home))


class PD:
    reference = motion

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        e, w = q - motion(t).q, v - motion(t).v
        return gc.Command(robot.gravity_force(q) - inertia * (25.0 * e + 10.0 * w))


laws = {"PD": PD(), "computed torque": controllers.ComputedTorque(robot, motion, kp=25.0, kd=10.0)}
runs, off = {}, {}
for name, law in laws.items():
    run = runs[name] = gc.simulate(robot, law, home + 0.1, motion(0.0).v, t_end=6.0, dt=1e-3, monitors=None)
    wanted = robot.pose(run.desired.q, tool)[:, :3, 3]
    off[name] = 1e3 * np.linalg.norm(robot.pose(run.q, tool)[:, :3, 3] - wanted, axis=1)
    print(f"{name:16s} the tool is {off[name][-1]:8.2g} mm off after {run.t[-1]:g} s")

plt.style.use("geomctrl.viewing.gallery")
fig = plt.figure(figsize=(8.6, 4.2), layout="none")
ax = fig.add_axes([-0.04, 0.0, 0.58, 1.0], projection="3d")
joints = np.array([robot.pose(run.q[-1], name)[:3, 3] for name in ("world", *robot.body_names, tool)])
ax.plot(*joints.T, "-o", color="0.8", lw=8.0)
ax.plot(*wanted[:2001].T, color="k", ls=(0, (3, 2)), lw=1.2)
for name, color in zip(laws, ("C1", "C0")):
    ax.plot(*robot.pose(runs[name].q[-2001:], tool)[:, :3, 3].T, color=color, lw=2.0)
ax.set(xlim=(-0.15, 0.7), ylim=(-0.45, 0.45), zlim=(0.1, 0.8))
ax.set_box_aspect((0.85, 0.9, 0.7), zoom=1.25)
ax.view_init(22, -50)
ax.set_axis_off()

ax = fig.add_axes([0.6, 0.14, 0.38, 0.8])
for name, color, where in zip(laws, ("C1", "C0"), (500.0, 0.3)):
    ax.semilogy(run.t, off[name], color=color)
    ax.text(5.9, where, name, color=color, ha="right", weight="bold")
ax.set(xlabel="time [s]", ylabel="tool off its motion [mm]", xlim=(0, 6), ylim=(1e-8, 2e3))
plt.show()
