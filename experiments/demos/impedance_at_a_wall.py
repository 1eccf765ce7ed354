"""Touching a wall with a Cartesian impedance

The desired position of a Panda's tool is 4 cm inside a stiff wall. With an impedance controller it presses with
stiffness times distance, and lands without bouncing: the controller is passive at the tool, and so is the wall. Softer
springs press less.
"""

import matplotlib.pyplot as plt
import numpy as np

import geomctrl as gc
from geomctrl import controllers, models, operational_space

robot, tool = models.panda(), "panda_hand_tcp"
q0 = np.array([0.0, -0.4, 0.0, -2.2, 0.0, 1.8, 0.8])  # rad
start = robot.pose(q0, tool)
wall, inside = start[0, 3] + 0.06, start[0, 3] + 0.10  # m, along x
goal = start.copy()
goal[0, 3] = inside
end = robot.inverse_kinematics({tool: goal}, q0)
motion = gc.references.Quintic(robot, q0, end.q, 1.0)
touch = gc.Contact([tool], 3e5, dissipation=5.0, surface=gc.HalfSpace(normal=(-1, 0, 0), point=(wall, 0, 0)))
plant = gc.Plant(robot, f_ext=touch)

stiffnesses = 250.0, 500.0, 1000.0  # N/m
inertia = np.diag(operational_space.inertia(robot, q0, tool))
laws = []
for k in stiffnesses:
    K = np.array([50.0] * 3 + [k] * 3)  # N m/rad, N/m
    laws.append(controllers.CartesianImpedance(robot, motion, tool, K, damping=2.0 * np.sqrt(K * inertia)))
runs = gc.simulate_many(plant, laws, q0, np.zeros(7), t_end=2.0, dt=1e-3, monitors=None)

plt.style.use("geomctrl.viewing.gallery")
fig, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(7.2, 4.8))
force = {}
for stiffness, run, color in zip(stiffnesses, runs, ("C2", "C0", "C1")):
    x = robot.pose(run.q, tool)[:, 0, 3]
    force[stiffness] = np.linalg.norm(touch.state(robot, run.q, run.v).force, axis=-1).ravel()
    print(f"{stiffness:5.0f} N/m: at rest {force[stiffness][-1]:5.2f} N, spring {stiffness * (inside - x[-1]):5.2f} N")
    top.plot(run.t, 1e3 * (x - wall), color=color)
    bottom.plot(run.t, force[stiffness], color=color)
    bottom.text(2.03, force[stiffness][-1], f"{stiffness:g} N/m", color=color, va="center", weight="bold")
top.axhspan(0, 45, color="0.88")
top.text(0.05, 5, "wall", color="0.35")
wanted = robot.pose(run.desired.q, tool)[:, 0, 3]
top.plot(run.t, 1e3 * (wanted - wall), color="k", ls=(0, (3, 2)), lw=1.2)
top.text(2.03, 40, "wanted", va="center")
top.set(ylabel="tool into the wall [mm]", ylim=(-65, 45))
bottom.set(xlabel="time [s]", ylabel="force on the wall [N]", xlim=(0, 2), ylim=(0, None))
plt.show()
