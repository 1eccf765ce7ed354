"""A collision, detected without a sensor

Somebody bumps into the forearm of a moving Panda. A momentum observer (De Luca and others 2006) compares the momentum
that the commanded torques explain with the actual momentum. The difference is the external torque of each joint, a few
milliseconds late. Neither accelerations nor force sensors are needed.
"""

import matplotlib.pyplot as plt
import numpy as np

import geomctrl as gc
from geomctrl import controllers, models

robot = models.panda()
home = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])  # rad
motion = gc.references.Sinusoids(robot, home, 0.4, 0.4)
start, length, strength = 1.0, 0.15, 40.0  # s, s, N


def push(t):
    return np.array([0, 0, 0, 0, strength * np.sin(np.pi * np.clip((t - start) / length, 0.0, 1.0)), 0.0])


hit = gc.Wrench("panda_link5", push, start, start + length, "hybrid")
law = controllers.MomentumObserver(controllers.Passivity(robot, motion), gain=200.0, threshold=1.0)
run = gc.simulate(gc.Plant(robot, f_ext=hit), law, motion(0).q, motion(0).v, 1.6, dt=1e-3, control_dt=1e-3)

J = robot.jacobian(run.q, "panda_link5", "hybrid")
true = np.array([j.T @ push(t) for j, t in zip(J, run.t)])
felt = run.signals["residual"]
late = run.t[np.argmax(run.signals["contact"] > 0)] - start
print(
    f"felt {1e3 * late:.0f} ms after it began; largest error {abs(felt - true).max():.2f} N m of {abs(true).max():.1f}"
)

plt.style.use("geomctrl.viewing.gallery")
fig, ax = plt.subplots()
ax.axvspan(start, start + length, color="0.93")
for joint, color in zip((0, 1, 2, 3), ("C0", "C1", "C2", "C3")):
    ax.plot(run.t, felt[:, joint], color=color)
    ax.plot(run.t, true[:, joint], color="k", ls=(0, (3, 2)), lw=1.0)
    top = felt[np.argmax(abs(felt[:, joint])), joint]
    ax.text(start + length + 0.005, top, f"joint {joint + 1}", color=color, weight="bold", va="center")
ax.axvline(start + late, color="k", lw=1.0)
ax.text(start + late - 0.01, 0.95, f"noticed after {1e3 * late:.0f} ms", ha="right", transform=ax.get_xaxis_transform())
ax.text(start + length, 0.8, " true: dashed", transform=ax.get_xaxis_transform())
ax.set(xlabel="time [s]", ylabel="external torque [N m]", xlim=(0.8, 1.4))
plt.show()
