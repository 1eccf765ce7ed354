"""Flexible joints

Harmonic drives are springs. Computed torque that takes the arm for rigid makes it ring; a law that knows the springs
(Spong 1987) places all four poles of every joint and follows the same motion, from the same start, without. Both were
told to forget errors at 8/s.
"""

import matplotlib.pyplot as plt
import numpy as np

import geomctrl as gc
from geomctrl import actuators, controllers, models
from geomctrl.control import ElasticPlant
from geomctrl.control.smooth_references import Harmonic
from geomctrl.viewing.drawing import show

arm = models.two_link(gravity=(0, 0, 0))  # on a table
stiffness, rotor = 1500.0, 0.2  # N m/rad, kg m^2
home, swing, frequency = np.array([0.3, 1.2]), 0.6, 0.3  # rad, rad, Hz
start = home + [0.2, -0.2]
wanted = Harmonic(home, swing, frequency)

rigid = controllers.ComputedTorque(
    arm.with_armature(rotor), gc.references.Sinusoids(arm, home, swing, frequency), kp=64.0, kd=16.0
)
springs = actuators.SeriesElasticity(stiffness, rotor)
v0 = wanted(0.0)[1]
taken = gc.simulate(gc.Plant(arm, actuators=springs), rigid, start, v0, t_end=3.0, dt=1e-3, monitors=None)

elastic = controllers.ElasticJoint(arm, wanted, stiffness, rotor, bandwidth=8.0)
plant = ElasticPlant(arm, stiffness, rotor)
known = gc.simulate(plant, elastic, np.tile(start, 2), np.tile(v0, 2), t_end=3.0, dt=1e-3)
print(known.monitors["lyapunov"])

t = known.t
motion = np.array([wanted(x)[0] for x in t])
runs = {"taken for rigid": taken.q, "springs known": known.q[:, :2]}
plt.style.use("geomctrl.viewing.gallery")
fig, axes = plt.subplots(2, 1, sharex=True, figsize=(7.2, 4.6))
late = {}
for (name, q), color in zip(runs.items(), ("C1", "C0")):
    late[name] = abs(q - motion)[t > 2.0].max()
    print(f"{name:16s} largest error after 2 s: {late[name]:.1e} rad")
    for ax, joint in zip(axes, (0, 1)):
        ax.plot(t, (q - motion)[:, joint], color=color)
    axes[1].text(3.03, (q - motion)[-1, 1], name, color=color, weight="bold", va="center")
for ax, joint in zip(axes, ("shoulder", "elbow")):
    ax.set(ylabel=f"{joint}'s error [rad]")
axes[1].set(xlabel="time [s]", xlim=(0, 3))
show("out/demos/flexible_joints.png")
