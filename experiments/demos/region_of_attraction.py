"""A region of attraction, certified

An LQR holds a pendulum upright; its torque is limited to 40 % of what would hold the pendulum level. Interval
arithmetic proves V' < 0 in a large ellipse V <= level, so all motions from there reach the upright position. The colour
of 3721 simulated motions shows how long this takes; those from the blue corners fall first and come back.
"""

import control
import matplotlib.pyplot as plt
import numpy as np

import geomctrl as gc
from geomctrl import testing

rod = gc.inertia.from_com(1.0, (0, 0, 0.5), np.diag([0.0833, 0.0833, 1e-4]))  # 1 kg, 1 m
robot = gc.Robot.build([gc.Body("rod", None, gc.Joint.revolute((0, 1, 0)), None, rod)], name="pendulum")
most = 0.4 * 9.81 * 0.5  # N m
K, S, _ = control.lqr(*gc.derivatives.linearize(robot, [0.0], [0.0], [0.0])[:2], np.eye(2), np.eye(1))


class Limited:
    q_d = np.zeros(1)

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(-most * np.tanh((K[0, 0] * q + K[0, 1] * v) / most))

    def lyapunov(self, t, q, v, z, plant):
        x = np.concatenate((q, v))
        a = plant.robot.forward_dynamics(q, v, self(t, q, v, z).tau)
        return x @ S @ x, 2.0 * (x @ S) @ np.concatenate((v, a))


proof = testing.region_of_attraction(Limited(), robot, (0.6, 2.0), outside=0.01)
print(proof)

reach, speed = np.linspace(-1.0, 1.0, 61), np.linspace(-3.0, 3.0, 61)
q0, v0 = (x.reshape(-1, 1) for x in np.meshgrid(reach, speed))
runs = gc.simulate_many(
    robot, Limited(), q0, v0, t_end=6.0, dt=1e-2, monitors=None, options=gc.SimulationOptions(every=10)
)
off = np.array([np.abs(np.hstack([run.q, run.v])).max(1) for run in runs])
fallen = np.array([np.abs(run.q).max() for run in runs]) > 1.6  # rad
settled = np.where(off[:, -1] < 0.05, 0.1 * (off > 0.05).sum(1), np.nan).reshape(q0.shape[0] // 61, 61)
V = S[0, 0] * q0**2 + 2 * S[0, 1] * q0 * v0 + S[1, 1] * v0**2
inside = V.ravel() < proof.level
upright = np.isfinite(settled).ravel()
print(f"{upright.sum()} of {len(runs)} come upright, {(upright & fallen).sum()} after a fall")
print(f"of the {inside.sum()} that start in the proved set {(upright & ~fallen)[inside].sum()} do, and none falls")

plt.style.use("geomctrl.viewing.gallery")
fig, ax = plt.subplots(figsize=(6.8, 4.8))
image = ax.pcolormesh(reach, speed, settled, cmap="YlGnBu", shading="gouraud", vmin=0)
fig.colorbar(image, ax=ax, label="upright after [s]")
for run in runs[::93]:
    ax.plot(run.q[:, 0], run.v[:, 0], color="0.45", lw=0.5)
ax.contourf(reach, speed, V.reshape(61, 61), levels=[0, proof.level], colors="C1", alpha=0.85)
ax.set(xlabel="angle from upright [rad]", ylabel="rate [rad/s]", xlim=(-1, 1), ylim=(-3, 3))
plt.show()
