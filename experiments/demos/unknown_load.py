"""A load that the controller does not model

A Panda picks up 2 kg that its controller does not model. Passivity-based control with the model of the empty hand keeps
a constant error; Slotine and Li's law starts from the same model and adapts. V, the sum of kinetic error and parameter
error, never increases: that is the statement of its proof, and the simulation shows it.
"""

import matplotlib.pyplot as plt
import numpy as np

import geomctrl as gc
from geomctrl import controllers, models

robot = models.panda()
true = robot.with_payload(2.0, (0.0, 0.0, 0.1), 0.005 * np.eye(3))  # kg, m, kg m^2
home = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])  # rad
motion = gc.references.Sinusoids(robot, home, 0.3, [0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5], start_at_rest=1.0)
gains = {"Lambda": 5.0, "K": 40.0 * np.diag(robot.mass_matrix(home))}
laws = {
    "fixed model": controllers.Passivity(robot, motion, **gains),
    "adaptive": controllers.SlotineLi(robot, motion, **gains, adapt=[robot.body_names[-1]], rate=10.0),
}
runs = {name: gc.simulate(true, law, home, np.zeros(7), t_end=10.0, dt=1e-3) for name, law in laws.items()}

plt.style.use("geomctrl.viewing.gallery")
fig, axes = plt.subplots(3, 1, figsize=(7.2, 5.6), sharex=True, height_ratios=[2, 1.3, 1.3])
for (name, run), color in zip(runs.items(), ("C1", "C0")):
    error = np.linalg.norm(run.tracking_error(), axis=1)
    axes[0].semilogy(run.t[1:], error[1:], color=color)
    axes[0].text(10.1, error[-1], name, color=color, va="center", weight="bold")
    print(f"{name:12s} error after 10 s: {error[-1]:.1e} rad")
run = runs["adaptive"]
mass = run.z[:, 0] - robot.parameters[-1, 0]
print(f"the load is taken for {mass[-1]:.2f} kg; V never grows: {run.monitors['lyapunov'].ok}")
axes[1].plot(run.t, mass, color="C0")
axes[1].axhline(2.0, color="k", ls=(0, (3, 2)), lw=1.0)
axes[1].text(10.1, 2.0, "true", va="center")
axes[2].plot(run.t, run.signals["lyapunov"], color="C2")
axes[0].set(ylabel="tracking error [rad]", ylim=(1e-5, 1))
axes[1].set(ylabel="load, estimated [kg]")
axes[2].set(xlabel="time [s]", ylabel="V [J]", xlim=(0, 10), ylim=(0, None))
plt.show()
