"""Behind encoders: how much to filter

Encoders count, and velocities are differences of counts. A filter makes them smooth but delays them: with a low cut-off
the loop lags, with a high one it shakes. Each curve shows 24 closed loops of a Panda under computed torque at 1 kHz,
simulated side by side. The best cut-off depends on the resolution of the encoder.
"""

import matplotlib.pyplot as plt
import numpy as np

import geomctrl as gc
from geomctrl import controllers, models, sensors

robot = models.panda()
home = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])  # rad
motion = gc.references.Sinusoids(robot, home, 0.3, 0.4)
law = controllers.ComputedTorque(robot, motion, kp=400.0, kd=40.0)
cutoffs = np.geomspace(4.0, 400.0, 24)  # Hz

plt.style.use("geomctrl.viewing.gallery")
fig, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.8), sharex=True)
best = {}
for bits, color in zip((12, 14, 17), ("C1", "C3", "C0")):
    plants = [gc.Plant(robot, sensors=sensors.Encoder(bits, cutoff=f)) for f in cutoffs]
    runs = gc.simulate_many(plants, law, motion(0).q, motion(0).v, t_end=1.5, dt=1e-3, control_dt=1e-3, monitors=None)
    rms = 1e3 * np.array([np.sqrt(np.mean(run.tracking_error()[500:] ** 2)) for run in runs])
    shake = np.array([np.sqrt(np.mean(np.diff(run.tau[500:, 1]) ** 2)) for run in runs])
    best[bits] = cutoffs[np.argmin(rms)]
    print(f"{bits} bits: least error {rms.min():.3f} mrad at {best[bits]:.0f} Hz")
    for ax, y in ((left, rms), (right, shake)):
        ax.loglog(cutoffs, y, color=color)
        ax.text(460, y[-1], f"{bits} bits", color=color, weight="bold", va="center")
    left.plot(best[bits], rms.min(), "o", color=color, ms=7)
left.set(xlabel="cut-off of the velocity's filter [Hz]", ylabel="tracking error, RMS [mrad]")
right.set(xlabel="cut-off of the velocity's filter [Hz]", ylabel="shoulder's torque,\nchange per sample, RMS [N m]")
plt.show()
