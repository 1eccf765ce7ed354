"""Least energy: geodesics of the mass matrix

The mass matrix is a metric on the joint angles. Its geodesics are the paths of least kinetic energy, and the free
motions of an arm. From one posture they fan out. Where the curvature is positive (red) they meet again, where it is
negative (blue) they separate. The thick one reaches a goal and costs less than the straight line.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import root

import geomctrl as gc
from geomctrl import models
from geomctrl.papers.curvature import sectional_curvature

arm = models.two_link(gravity=(0, 0, 0))
q0, q1 = np.array([0.0, 2.2]), np.array([1.7, 0.6])  # rad


def thrown(v):
    return gc.rollout(arm, q0, v, None, 1.0, 5e-3)


shooting = root(lambda v: thrown(v).q[-1] - q1, q1 - q0, tol=1e-12)
path = thrown(shooting.x)
least = arm.kinetic_energy(path.q, path.v)
line = q0 + np.linspace(0, 1, 201)[:, None] * (q1 - q0)
straight = arm.kinetic_energy(line, np.tile(q1 - q0, (201, 1)))
print(f"kinetic energy: straight line {straight.mean():.4f} J on average, geodesic {least.mean():.4f} J")
print(f"the geodesic's is constant to {np.ptp(least):.1e} J, and it arrives {abs(path.q[-1] - q1).max():.1e} rad off")

plt.style.use("geomctrl.viewing.gallery")
fig, (left, right) = plt.subplots(1, 2, figsize=(8.6, 4.2), width_ratios=[1.5, 1])
a, b = np.meshgrid(np.linspace(-2.2, 2.6, 80), np.linspace(-0.6, 4.0, 80))
grid = np.stack([a, b], -1)
bend = sectional_curvature(arm, grid, np.broadcast_to([1.0, 0.0], grid.shape), np.broadcast_to([0.0, 1.0], grid.shape))
around = {"extent": (-2.2, 2.6, -0.6, 4.0), "origin": "lower", "aspect": "auto", "interpolation": "bilinear"}
image = left.imshow(bend, cmap="RdBu_r", vmin=-1.5, vmax=1.5, alpha=0.6, **around)
for angle in np.linspace(0, 2 * np.pi, 49)[:-1]:
    v = np.linalg.cholesky(np.linalg.inv(arm.mass_matrix(q0))) @ [np.cos(angle), np.sin(angle)]
    ray = gc.rollout(arm, q0, 2.8 * v, None, 1.0, 1e-2).q
    left.plot(*ray.T, color="0.25", lw=0.6)
left.plot(*path.q.T, color="k", lw=3.0)
left.plot(*line.T, color="k", lw=1.2, ls=(0, (3, 2)))
left.plot(*np.stack([q0, q1]).T, "o", color="k", ms=6)
left.grid(False)
left.set(xlabel="shoulder [rad]", ylabel="elbow [rad]", xlim=(-2.2, 2.6), ylim=(-0.6, 4.0))
fig.colorbar(image, ax=left, label="curvature [1/(kg m²)]")
right.plot(path.t, straight, color="k", ls=(0, (3, 2)), lw=1.2)
right.plot(path.t, least, color="k", lw=3.0)
right.text(0.02, least[0] * 0.93, "geodesic", va="top", weight="bold")
right.text(0.98, straight[-1] + 0.03, "straight line", va="bottom", ha="right")
right.set(xlabel="time [s]", ylabel="kinetic energy [J]", xlim=(0, 1), ylim=(0, 2.3))
plt.show()
