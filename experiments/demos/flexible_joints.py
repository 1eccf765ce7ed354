"""Flexible joints

Harmonic drives are elastic. Computed torque for a rigid arm controls the motors well but leaves the links swinging on
their springs. A control law that models the springs (Spong 1987) places all four poles of every joint and follows the
same motion from the same initial state. Both are designed for errors that decay at 8/s.
"""

import matplotlib.pyplot as plt
import numpy as np

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control import ElasticPlant
from geomctrl.control.references import Harmonic

arm = models.two_link(gravity=(0, 0, 0))  # on a table
stiffness, rotor = 150.0, 0.3  # N m/rad, kg m^2
home, swing, frequency = np.array([0.3, 1.2]), 0.6, 0.3  # rad, rad, Hz
start = home + np.array([0.2, -0.2])
wanted = Harmonic(home, swing, frequency)

motion = gc.references.Sinusoids(arm, home, swing, frequency)


class Rigid:
    """Computed torque of what the motors measure: q is (links, motors), and so is the command."""

    law = controllers.ComputedTorque(arm.with_armature(rotor), motion, kp=64.0, kd=16.0)

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(np.concatenate((np.zeros(2), self.law(t, q[2:], v[2:], z).tau)))


laws = {"taken for rigid": Rigid(), "springs known": controllers.ElasticJoint(arm, wanted, stiffness, rotor, 8.0)}
plt.style.use("geomctrl.viewing.gallery")
fig, axes = plt.subplots(2, 1, sharex=True, figsize=(7.2, 4.6))
late = {}
for (name, law), color in zip(laws.items(), ("C1", "C0")):
    plant = ElasticPlant(arm, stiffness, rotor)
    run = gc.simulate(plant, law, np.tile(start, 2), np.tile(motion(0).v, 2), t_end=3.0, dt=1e-3, monitors=None)
    error = run.q[:, :2] - [motion(t).q for t in run.t]
    late[name] = abs(error[run.t > 2.0]).max()
    print(f"{name:16s} largest error after 2 s: {late[name]:.1e} rad")
    for ax, joint in zip(axes, (0, 1)):
        ax.plot(run.t, error[:, joint], color=color)
    axes[1].text(3.03, error[-1, 1] + (-0.05 if color == "C1" else 0.03), name, color=color, weight="bold", va="center")
for ax, joint in zip(axes, ("shoulder", "elbow")):
    ax.set(ylabel=f"{joint}'s error [rad]")
axes[1].set(xlabel="time [s]", xlim=(0, 3))
plt.show()
