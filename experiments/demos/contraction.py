"""All motions become one

A torque shakes a pendulum with spring and damper. If neighbouring motions approach each other in some metric, the loop
is contracting: all initial states lead to the same motion, which need not be known. The contraction rate is first
determined over all states; no two of the sixty motions then approach each other more slowly.
"""

import matplotlib.pyplot as plt
import numpy as np

import geomctrl as gc
from geomctrl import testing

bob = gc.inertia.from_com(1.0, (0, 0, -1.0), np.zeros((3, 3)))  # 1 kg at the end of 1 m
robot = gc.Robot.build([gc.Body("bob", None, gc.Joint.revolute((0, 1, 0)), None, bob)], name="pendulum")
k, d = 30.0, 6.0  # N m/rad, N m s/rad


class Shaken:
    q_d = np.zeros(1)

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(25.0 * np.sin(3.0 * t) + 8.0 * np.sin(7.3 * t) - k * q - d * v)


P = np.array([[k + d**2 / 2, d / 2], [d / 2, 1.0]])  # a metric of (dq, dv)
rate = testing.contraction_rate(Shaken(), robot, P, region=3.0, search=1000)

rng = np.random.default_rng(0)
starts = rng.uniform((-3, -12), (3, 12), (60, 2))
runs = gc.simulate_many(robot, Shaken(), starts[:, :1], starts[:, 1:], t_end=6.0, dt=5e-3, monitors=None)
t, x = runs[0].t, np.array([np.hstack([run.q, run.v]) for run in runs])
apart = x - np.roll(x, 1, axis=0)
distance = np.sqrt(np.einsum("kti,ij,ktj->kt", apart, P, apart))
slowest = distance[:, -1] / distance[:, 0] / np.exp(-rate * t[-1])
print(f"rate found {rate:.2f}/s; after {t[-1]:g} s the motions are {distance[:, -1].max():.1e} apart")
print(f"of the distance that the rate allows, at most {slowest.max():.2g} is left")

plt.style.use("geomctrl.viewing.gallery")
fig, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(7.2, 5.0), height_ratios=[1.4, 1])
for motion, color in zip(x, plt.cm.viridis(np.linspace(0.0, 0.9, len(x)))):
    top.plot(t, motion[:, 0], color=color, lw=0.8)
bottom.semilogy(t, distance.T / distance[:, 0], color="C0", lw=0.6, alpha=0.5)
bottom.semilogy(t, np.exp(-rate * t), color="C1", lw=2.2)
bottom.text(6.05, np.exp(-rate * 6.0), f"exp(−{rate:.1f} t)", color="C1", weight="bold", va="center")
top.set(ylabel="angle [rad]")
bottom.set(xlabel="time [s]", ylabel="distance of neighbours,\nof that at the start", xlim=(0, 6))
plt.show()
