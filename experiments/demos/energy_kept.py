"""Conservation of energy

Three spheres connected by joints tumble without external forces, so their energy is constant. An explicit method of
order four loses energy slowly and steadily. The energy error of a variational method oscillates within a band that
depends on the step. The energy-momentum method conserves energy up to rounding. All use the same step, on the group.
"""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np

import geomctrl as gc
from geomctrl import models

robot = models.three_spheres()
q0 = robot.neutral()
P = np.array([robot.momentum(q0, e)[3:] for e in np.eye(robot.nv)]).T  # linear momentum (3, nv)
v0 = np.array([0.3, 0.3, 0.3, 0.1, 0.1, 0.1, 0.4, 0.4])
v0[3:6] -= np.linalg.solve(P[:, 3:6], P @ v0)  # its mass centre at rest
E0 = robot.energy(q0, v0)
methods = {
    "Munthe-Kaas, order 4": (gc.rollout, "C1"),
    "variational, order 2": (partial(gc.rollout, method="variational"), "C0"),
    "energy-momentum, order 2": (partial(gc.rollout, method="energy_momentum"), "C2"),
}

plt.style.use("geomctrl.viewing.gallery")
fig, ax = plt.subplots(figsize=(7.6, 4.0))
worst = {}
for name, (method, color) in methods.items():
    path = method(robot, q0, v0, None, 100.0, 0.05, every=1)
    error = np.abs(robot.energy(path.q, path.v) / E0 - 1.0) + 1e-17
    worst[name] = error[: len(error) // 10].max(), error.max()
    print(f"{name:25s} largest error of energy {worst[name][0]:.1e} at first, {worst[name][1]:.1e} in the end")
    ax.loglog(path.t[1:], error[1:], color=color, lw=0.9)
    ax.text(110, error[-400:].max(), name, color=color, weight="bold", va="center")
ax.set(xlabel="time [s]", ylabel="error of the energy, relative", xlim=(0.1, 100))
plt.show()
