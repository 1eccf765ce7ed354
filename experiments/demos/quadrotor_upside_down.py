"""A quadrotor thrown upside down

Geometric tracking on SE(3) (Lee, Leok and McClamroch 2010) uses no angles that could be singular. The quadrotor starts
on its back, turns over, loses some height, and joins its path.
"""

import matplotlib.pyplot as plt
import numpy as np

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control import FlatOutputs
from geomctrl.control.references import RestToRest

body = models.quadrotor()
path = FlatOutputs(body, RestToRest((0, 0, 0, 0), (3, 0.5, 1, 0.5), 4.0))  # x, y, z [m], heading [rad]
law = controllers.QuadrotorTracking(body, path)
start = body.integrate(path(0.0).q, np.array([np.radians(170.0), 0, 0, 0, 0, 0]))
run = gc.simulate(body, law, start, np.zeros(6), t_end=5.0, dt=1e-2, monitors=None)

pose, wanted = run.q.reshape(-1, 3, 4), run.desired.q.reshape(-1, 3, 4)
R, x = pose[:, :, :3], pose[:, :, 3]
tilt = np.degrees(np.arccos(np.clip(R[:, 2, 2], -1.0, 1.0)))
off = np.linalg.norm(x - wanted[:, :, 3], axis=1)
print(f"on its back for {1e-2 * (tilt > 90).sum():.2f} s, {1e3 * off[-1]:.1g} mm off its path after {run.t[-1]:g} s")

plt.style.use("geomctrl.viewing.gallery")
fig = plt.figure(figsize=(8.6, 4.2), layout="none")
ax = fig.add_axes([0.0, 0.0, 0.7, 1.0], projection="3d")
ax.plot(*wanted[:, :, 3].T, color="k", ls=(0, (3, 2)), lw=1.0)
ax.plot(*x.T, color="C0", lw=1.2)
angle = np.linspace(0.0, 2.0 * np.pi, 40)
ring = 0.13 * np.stack([np.cos(angle), np.sin(angle), 0.0 * angle])
for t in (0.0, 0.65, 0.8, 1.0, 1.4, 1.8, 2.3, 2.9, 5.0):
    k = round(t / 1e-2)
    color = plt.cm.viridis(0.75 * t / 5.0)
    arms = 0.315 * np.array([[1, 0, 0], [0, -1, 0], [-1, 0, 0], [0, 1, 0]]).T
    for arm in arms.T:
        ax.plot(*np.stack([x[k], x[k] + R[k] @ arm]).T, color=color, lw=2.0)
        ax.plot(*(x[k][:, None] + R[k] @ (arm[:, None] + ring)), color=color, lw=1.5)
    ax.plot(*np.stack([x[k], x[k] + 0.25 * R[k][:, 2]]).T, color="C1", lw=1.8)
ax.set(xlim=(-0.5, 3.2), ylim=(-0.5, 0.9), zlim=(-0.8, 1.0))
ax.set_box_aspect((3.7, 1.4, 1.8), zoom=1.25)
ax.view_init(14, -72)
ax.set_axis_off()
for line in ax.lines:
    line.set_clip_on(False)  # the flight is wider than the square of the axes

for place, y, name in (
    ([0.74, 0.6, 0.24, 0.33], tilt, "tilt [°]"),
    ([0.74, 0.14, 0.24, 0.33], off, "off its path [m]"),
):
    ax = fig.add_axes(place)
    ax.plot(run.t, y)
    ax.set(ylabel=name, xlim=(0, 5), ylim=(0, None))
ax.set_xlabel("time [s]")
plt.show()
