"""A satellite turns to its target

Three reaction wheels rotate a satellite of 750 kg by almost half a turn, and then along a moving attitude. The control
law works on SO(3): no angles, no quaternion with two signs. Its error decreases exponentially from every attitude
except rotations by pi. The three lines are the paths of the body's axes on the unit sphere.
"""

import matplotlib.pyplot as plt
import numpy as np

import geomctrl as gc
from geomctrl import controllers, models

satellite = models.satellite(wheels=True)
rest = satellite.neutral()
motion = gc.references.Sinusoids(satellite, rest, [0.4, 0.3, 0.5, 0, 0, 0], [8e-4, 6e-4, 4e-4, 0, 0, 0])  # rad, Hz
law = controllers.AttitudeTracking(satellite, motion, kR=0.12, kOmega=18.0)  # N m, N m s: for wheels of 0.2 N m
start = satellite.integrate(rest, np.array([1.6, 1.4, -2.1, 0, 0, 0]))
run = gc.simulate(satellite, law, start, np.zeros(6), t_end=2400.0, dt=1.0)
minutes = run.t / 60.0

body = satellite.body_names[0]
R, R_d = (satellite.pose(q, body)[:, :3, :3] for q in (run.q, run.desired.q))
angle = np.degrees(np.arccos(np.clip((np.einsum("kij,kij->k", R_d, R) - 1.0) / 2.0, -1.0, 1.0)))
print(f"off by {angle[0]:.0f}° at first, {angle[-1]:.1e}° after {minutes[-1]:g} min")
print(f"V fell all the way and the wheels stayed within their limits: {run.ok}")

plt.style.use("geomctrl.viewing.gallery")
fig = plt.figure(figsize=(8.6, 4.0))
ax = fig.add_subplot(1, 2, 1, projection="3d")
u, w = np.meshgrid(np.linspace(0, 2 * np.pi, 49), np.linspace(0, np.pi, 25))
ax.plot_wireframe(np.cos(u) * np.sin(w), np.sin(u) * np.sin(w), np.cos(w), color="0.88", lw=0.5)
for k, color in enumerate(("C0", "C1", "C2")):
    ax.plot(*R_d[:, :, k].T, color="k", lw=1.0, ls=(0, (3, 2)))
    ax.plot(*R[:, :, k].T, color=color, lw=2.0)
    ax.plot(*R[0, :, k], "o", color=color, ms=6)
    ax.text(*(1.15 * R[0, :, k]), "xyz"[k], color=color, weight="bold")
ax.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
ax.set_box_aspect((2, 2, 2), zoom=1.25)
ax.view_init(20, 30)
ax.set_axis_off()

axes = fig.add_gridspec(2, 2)[:, 1].subgridspec(2, 1).subplots(sharex=True)
axes[0].semilogy(minutes, angle)
axes[0].set(ylabel="attitude error [°]")
for k, color in enumerate(("C0", "C1", "C2")):
    axes[1].plot(minutes, run.v[:, 3 + k], color=color)
axes[1].set(xlabel="time [min]", ylabel="wheels [rad/s]", xlim=(0, 40))
plt.show()
