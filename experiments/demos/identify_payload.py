"""Identify a load from two logs

A Panda moves for ten seconds with a load and ten seconds without; joint torques are noisy and there is friction. The
two logs determine mass, centre of mass and inertia of the load with 95 % intervals, and the result is always physically
possible. Of the robot only the geometry is used.
"""

import matplotlib.pyplot as plt
import numpy as np

from geomctrl import models
from geomctrl.identification import Dataset, Filtering, identify_load

robot, frame = models.panda(), "panda_link8"
mass, centre = 2.0, np.array([0.03, -0.02, 0.07])  # kg, m
loaded = robot.with_payload(mass, centre, 0.006 * np.eye(3), frame)


def record(robot, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, 10.0, 0.005)  # s
    w, phase = 2.0 * np.pi * rng.uniform(0.1, 0.9, (4, 7)), rng.uniform(0.0, 6.28, (4, 7))
    x = t[:, None, None] * w + phase
    q = np.array([0.0, -0.6, 0.2, -1.8, 0.1, 1.6, 0.4]) + 0.25 * np.sin(x).sum(1)
    v, a = 0.25 * (w * np.cos(x)).sum(1), -0.25 * (w**2 * np.sin(x)).sum(1)
    friction = 2.0 * v + 1.5 * np.tanh(v / 0.01)
    return Dataset(t, q, robot.inverse_dynamics(q, v, a) + friction + 0.2 * rng.normal(size=v.shape))


with_load, without = record(loaded, 0), record(robot, 1)
identified = identify_load(robot, with_load, without, frame=frame, filtering=Filtering(cutoff=12.0))
print(f"mass {identified.mass:.3f} kg in {np.round(identified.intervals['mass'], 3)}, true {mass}")
print(f"centre {np.round(1e3 * identified.centre, 1)} mm, true {1e3 * centre}")

plt.style.use("geomctrl.viewing.gallery")
fig, axes = plt.subplot_mosaic([["log", "mass"], ["log", "centre"]], figsize=(8.6, 3.9), height_ratios=[1, 2.4])
for log, color, name in ((without, "C0", "empty"), (with_load, "C1", "with its load")):
    axes["log"].plot(log.t, log.tau[:, 3], color=color, lw=0.7)
    axes["log"].text(10.1, log.tau[-1, 3], name, color=color, weight="bold", va="center")
axes["log"].set(xlabel="time [s]", ylabel="elbow's torque, logged [N m]", xlim=(0, 10))
values = {"mass": ([identified.mass], [mass], identified.intervals["mass"][None], 1e3, ["mass"], "g")}
values["centre"] = (identified.centre, centre, identified.intervals["centre"], 1e3, list("xyz"), "mm")
for place, (value, true, interval, scale, names, unit) in values.items():
    ax, rows = axes[place], np.arange(len(names))
    ax.axvline(0.0, color="k", lw=1.0, ls=(0, (3, 2)))
    ax.hlines(rows, *(scale * (interval - np.array(true)[:, None])).T, color="C2", lw=5, alpha=0.5)
    ax.plot(scale * (np.array(value) - true), rows, "o", color="C2", ms=7)
    ax.set(yticks=rows, yticklabels=names, xlabel=f"found less true [{unit}]", ylim=(len(names) - 0.5, -0.5))
plt.show()
