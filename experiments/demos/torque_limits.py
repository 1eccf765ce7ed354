"""Torque limits and an obstacle, by quadratic programs

A ball blocks the direct path, and only 45 % of the drives' torque is available. At every sample a quadratic program
finds the acceleration nearest to the desired one that torque limits and the ball permit (control barrier functions).
Computed torque with saturated torques runs through the ball.
"""

import matplotlib.pyplot as plt
import numpy as np

import geomctrl as gc
from geomctrl import actuators, controllers, models

robot, tool, share = models.panda(), "panda_hand_tcp", 0.45
q0 = np.array([-0.7, 0.1, 0.0, -2.0, 0.0, 2.1, 0.8])  # rad
q1 = q0 * [-1, 1, 1, 1, 1, 1, 1]
motion = gc.references.Quintic(robot, q0, q1, 0.9)
centre, radius = robot.pose(0.5 * (q0 + q1), tool)[:3, 3] + [0.05, 0.0, 0.0], 0.12  # m
limit = share * robot.limits.effort  # N m
gains = {"kp": 100.0, "kd": 20.0}
laws = {
    "cut off": controllers.ComputedTorque(robot, motion, **gains),
    "quadratic program": controllers.QPInverseDynamics(
        robot, motion, **gains, share=share, clearances=[(tool, centre, radius)]
    ),
}
plant = gc.Plant(robot, actuators=actuators.Saturation(limit))

nearest = {}
plt.style.use("geomctrl.viewing.gallery")
fig = plt.figure(figsize=(8.6, 4.2), layout="none")
space = fig.add_axes([0.0, 0.0, 0.52, 1.0], projection="3d")
axes = [fig.add_axes([0.62, y, 0.36, 0.36]) for y in (0.58, 0.12)]
for (name, law), color in zip(laws.items(), ("C1", "C0")):
    run = gc.simulate(plant, law, q0, np.zeros(7), t_end=1.6, dt=4e-3, control_dt=4e-3, monitors=None)
    p = robot.pose(run.q, tool)[:, :3, 3]
    clear = np.linalg.norm(p - centre, axis=1) - radius
    nearest[name] = clear.min()
    print(f"{name:18s} nearest to the ball {1e3 * nearest[name]:6.1f} mm")
    space.plot(*p.T, color=color, lw=2.2, zorder=9)
    axes[0].plot(run.t, 1e3 * clear, color=color)
    axes[1].plot(run.t, abs(run.tau / limit).max(1), color=color)
    axes[0].text(1.58, 1e3 * clear[-1] - (70 if color == "C1" else 150), name, color=color, weight="bold", ha="right")
joints = np.array([robot.pose(q0, name)[:3, 3] for name in ("world", *robot.body_names, tool)])
space.plot(*joints.T, "-o", color="0.8", lw=8.0)
u, w = np.meshgrid(np.linspace(0, 2 * np.pi, 25), np.linspace(0, np.pi, 13))
ball = centre[:, None, None] + radius * np.array([np.cos(u) * np.sin(w), np.sin(u) * np.sin(w), np.cos(w)])
space.plot_surface(*ball, color="0.6", alpha=0.45, lw=0)
space.set(xlim=(-0.2, 0.75), ylim=(-0.5, 0.5), zlim=(0.0, 0.8))
space.set_box_aspect((0.95, 1.0, 0.8), zoom=1.25)
space.view_init(35, -25)
space.set_axis_off()
axes[0].axhspan(-200, 0, color="0.6", alpha=0.4, lw=0)
axes[0].text(1.58, -150, "ball", ha="right", color="0.35")
axes[0].set(ylabel="tool to ball [mm]", xlim=(0, 1.6))
axes[1].axhline(1.0, color="k", lw=1.0, ls=(0, (3, 2)))
axes[1].set(xlabel="time [s]", ylabel="largest torque,\nof its limit", xlim=(0, 1.6), ylim=(0, 1.6))
plt.show()
