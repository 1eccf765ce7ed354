"""Cart and pole: swing-up and balance

The control law of Lozano, Fantoni and Block increases the energy until the pole moves on the orbit through the upright
position, where an LQR takes over in a region in which it is proved to work. The phase plane spirals outwards to that
orbit; the star marks the switch.
"""

import matplotlib.pyplot as plt
import numpy as np

import geomctrl as gc
from geomctrl import controllers, models

cart = models.cart_pole()
law = controllers.SwingUp(cart, np.zeros(2), actuated=[0])  # upright; the cart alone is driven
run = gc.simulate(cart, law, [0.0, np.pi - 0.05], np.zeros(2), t_end=20.0, dt=2e-3, monitors=None)
caught = np.argmax(run.signals["caught"] > 0)
angle, speed = run.q[:, 1], run.v[:, 1]
print(f"caught after {run.t[caught]:.1f} s; at the end {abs(run.q[-1]).max():.1e} m and rad from rest")

plt.style.use("geomctrl.viewing.gallery")
fig, axes = plt.subplots(2, 2, figsize=(8.6, 4.8), width_ratios=[1.1, 1], sharex="col")
plane = plt.subplot(axes[0, 0].get_gridspec()[:, 0])
axes[0, 0].remove(), axes[1, 0].remove()
grid = np.linspace(-0.3, 2 * np.pi + 0.3, 300)
orbit = np.sqrt(np.maximum(1.5 * 9.81 * 2 * (1 - np.cos(grid)), 0.0))  # of a cart at rest: E = 0
for sign in (-1, 1):
    plane.plot(grid, sign * orbit, color="0.7", lw=1.0, ls=(0, (3, 2)))
plane.scatter(angle[: caught + 1], speed[: caught + 1], c=run.t[: caught + 1], s=1.5, cmap="viridis")
plane.plot(angle[caught:], speed[caught:], color="C1")
plane.plot(angle[caught], speed[caught], "*", color="C1", ms=14)
plane.set(xlabel="pole's angle [rad]", ylabel="its rate [rad/s]", xticks=[0, np.pi, 2 * np.pi])
plane.set_xticklabels(["0\nupright", "π\nhanging", "2π\nupright"])
for ax, y, name in ((axes[0, 1], run.q[:, 0], "cart [m]"), (axes[1, 1], run.tau[:, 0], "force [N]")):
    ax.plot(run.t, y)
    ax.axvline(run.t[caught], color="C1", lw=1.2)
    ax.set(ylabel=name, xlim=(0, 20))
axes[0, 1].text(run.t[caught] + 0.3, axes[0, 1].get_ylim()[1], "caught", color="C1", weight="bold", va="top")
axes[1, 1].set_xlabel("time [s]")
plt.show()
