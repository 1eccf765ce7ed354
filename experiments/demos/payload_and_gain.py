"""A sweep: payload and adaptation gain

How heavy can the unknown load of an adaptive Panda be, and how fast should it adapt? A map of 576 closed loops,
simulated side by side in compiled code, answers this. In the hatched part a joint is at its torque limit, which the
proof does not include: there no gain helps.
"""

import matplotlib.pyplot as plt
import numpy as np

import geomctrl as gc
from geomctrl import actuators, controllers, models

robot = models.panda()
home = np.array([0.0, 0.3, 0.0, -1.6, 0.0, 1.9, 0.8])  # rad, stretched forward
motion = gc.references.Sinusoids(robot, home, 0.3, [0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5], start_at_rest=1.0)


def make(point):
    law = controllers.SlotineLi(robot, motion, 4.0, 5.0, adapt=[robot.body_names[-1]], rate=point["rate"])
    loaded = robot.with_payload(point["payload"], (0.0, 0.0, 0.1))
    return gc.Plant(loaded, actuators=actuators.Saturation(robot.limits.effort)), law, home, np.zeros(7)


space = {
    "payload": ("payload", np.linspace(0.25, 11.0, 24), {"units": "kg"}),
    "rate": ("rate", np.geomspace(0.02, 20.0, 24)),
}
measures = [gc.measures.TrackingRMS(after=2.0), gc.measures.PeakTorque(joints=True)]
table = gc.sweep(make, space, measures, t_end=4.0, dt=2e-3, monitors=None)
error = table.tracking_rms.transpose("rate", "payload")
limited = (table.peak_torque >= 0.999 * robot.limits.effort).any("joint").transpose("rate", "payload")
print(f"{table.run.size} loops; torque limits reached from {float(table.payload[limited.any('rate')].min()):.1f} kg on")
slow, fast = (float(error.sel(payload=2.0, rate=r, method="nearest")) for r in (0.02, 20.0))
print(f"with 2 kg: RMS error {1e3 * slow:.1f} mrad at the lowest gain, {1e3 * fast:.2f} mrad at the highest")

plt.style.use("geomctrl.viewing.gallery")
fig, ax = plt.subplots(figsize=(6.8, 4.4))
ax.grid(False)
levels = np.logspace(-3.0, 0.0, 13)
image = ax.contourf(table.payload, table.rate, error, levels=levels, norm="log", cmap="viridis", extend="both")
lines = ax.contour(table.payload, table.rate, error, levels=[0.003, 0.01, 0.03, 0.1], colors="w", linewidths=0.8)
ax.clabel(lines, fmt="%g rad", fontsize=8)
plt.rcParams["hatch.color"] = "0.9"
ax.contourf(table.payload, table.rate, limited, levels=[0.5, 1.5], colors="none", hatches=["///"])
bar = fig.colorbar(image, ax=ax, ticks=[1e-3, 1e-2, 1e-1, 1.0])
bar.set_label("tracking error after 2 s, RMS [rad]")
ax.set(yscale="log", xlabel="payload [kg]", ylabel="adaptation gain, times the default")
plt.show()
