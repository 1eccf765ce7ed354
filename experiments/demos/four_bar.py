"""A four-bar linkage and the force in its bearing

Crank, coupler and rocker are a chain; a constraint closes the loop. The crank starts at 9 rad/s and keeps turning under
gravity, while a point of the coupler draws its curve. The force in the closed bearing is computed with the motion: its
tip draws the green curve, 250 N per metre.
"""

import matplotlib.pyplot as plt
import numpy as np

import geomctrl as gc
from geomctrl.papers.constrained import ClosedLoops, Constraint, integrate_index1


def bar(name, parent, length, mass, at):
    place = np.eye(4)
    place[0, 3] = at
    inertia = gc.inertia.from_com(mass, (length / 2, 0, 0), mass * length**2 / 12 * np.diag([0.01, 1, 1]))
    return gc.Body(name, parent, gc.Joint.revolute((0, -1, 0)), place, inertia)


pen = np.eye(4)
pen[:3, 3] = 0.6, 0.0, 0.5  # on the coupler, m
crank, coupler, rocker, ground = 0.5, 1.2, 0.9, 1.3  # m
bars = [
    bar("crank", None, crank, 2.0, 0.0),
    bar("coupler", "crank", coupler, 1.0, crank),
    bar("rocker", "coupler", rocker, 1.0, coupler),
]
robot = gc.Robot.build(bars, name="four-bar", frames=[("pen", "coupler", pen)])
pin = Constraint(
    "revolute",
    "bearing",
    ("world", "rocker"),
    point=(ground, 0, 0),
    point_b=(rocker, 0, 0),
    axis=(0, 1, 0),
    axis_b=(0, 1, 0),
)
loop = ClosedLoops(robot, [pin])
y0 = loop.consistent((1.6, -1.2, -1.2), (9.0, 0.0, 0.0), free=[False, True, True])
path = integrate_index1(loop, y0, (0.0, 2.0), 2e-3, project=True)
q, v = path.y[:, :3], path.y[:, 3:]
energy = robot.energy(q, v)
gap = robot.pose(q, "rocker") @ [rocker, 0, 0, 1] - [ground, 0, 0, 1]
force = np.array([loop.reactions(t, y)["bearing"][3:] for t, y in zip(path.t, path.y)])  # in the rocker's axes, N
force = np.einsum("kij,kj->ki", robot.pose(q, "rocker")[:, :3, :3], force)
size = np.linalg.norm(force, axis=1)
print(f"the loop is open by {abs(gap).max():.1e} m, the energy off by {np.ptp(energy):.1e} J of {energy[0]:.0f} J")
print(f"the bearing bears {size.min():.0f} to {size.max():.0f} N")

plt.style.use("geomctrl.viewing.gallery")
fig, (left, right) = plt.subplots(1, 2, figsize=(8.6, 4.0), width_ratios=[1.5, 1])
points = np.stack(
    [0.0 * gap[:, :3], *(robot.pose(q, n)[:, :3, 3] for n in ("coupler", "rocker")), gap[:, :3] + [ground, 0, 0]], 1
)
for k in range(0, len(q), 60):
    left.plot(points[k, :, 0], points[k, :, 2], color=plt.cm.Blues(0.25 + 0.6 * k / len(q)), lw=1.6)
left.plot(*robot.pose(q, "pen")[:, [0, 2], 3].T, color="C1", lw=2.0)
tips = np.array([ground, 0.0]) + 0.004 * force[:, [0, 2]]  # 1 m is 250 N
left.plot(*tips.T, color="C2", lw=1.6)
left.text(*tips[size.argmax()], f"{size.max():.0f} N", color="C2", weight="bold")
left.plot([0, ground], [0, 0], "o", color="k", ms=6, zorder=5)
left.set(xlabel="x [m]", ylabel="z [m]", aspect="equal")
right.plot(path.t, size, color="C2")
right.set(xlabel="time [s]", ylabel="force in the bearing [N]", xlim=(0, path.t[-1]), ylim=(0, None))
plt.show()
