"""The wrong Coriolis matrix breaks the proof

Many matrices C give the same torque C v. Only those with skew-symmetric Mdot - 2C let V = s.Ms/2 decrease at the rate
-s.Ks that the proof of passivity-based control promises. Here the same control law uses the C that the Newton-Euler
recursion yields: the arm tracks almost as well, but the proof is void, and V increases at times. The red areas show
where.
"""

import matplotlib.pyplot as plt
import numpy as np

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.papers import factored

robot = models.panda()
home = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])  # rad
motion = gc.references.Sinusoids(robot, home, 0.5, [0.6, 0.5, 0.7, 0.8, 0.6, 0.9, 1.0])


class Plain(controllers.Passivity):
    def __call__(self, t, q, v, z):
        x = self.sliding(t, q, v)  # v_ref, a_ref, s
        C = factored.coriolis_matrix(self.robot, q, v, form="plain")
        M, g = self.robot.mass_matrix(q), self.robot.gravity_force(q)
        return gc.Command(M @ x.a_ref + C @ x.v_ref + g - self.K @ x.s)


plt.style.use("geomctrl.viewing.gallery")
fig, axes = plt.subplots(2, 1, sharex=True, sharey=True, figsize=(7.2, 4.4))
off, names = {}, ("Mdot - 2C is skew", "C from the Newton-Euler recursion")
for ax, Law, name in zip(axes, (controllers.Passivity, Plain), names):
    law = Law(robot, motion, Lambda=3.0, K=3.0 * np.diag(robot.mass_matrix(home)))
    run = gc.simulate(robot, law, home + 0.5, motion(0.0).v, t_end=2.0, dt=5e-3)
    V = run.signals["lyapunov"]
    measured = np.gradient(V, run.t)
    promised = run.signals["lyapunov_rate"]
    off[name] = abs(measured - promised)[3:-3].max()
    print(f"{name:35s} V' > 0 for {5 * (measured > 0.0).sum():3d} ms, off the promise by up to {off[name]:.2g} W")
    ax.plot(run.t, measured, color="C0")
    ax.plot(run.t, promised, color="k", ls=(0, (3, 2)), lw=1.2)
    ax.fill_between(run.t, promised, measured, where=measured > promised + 1e-2, color="C1", alpha=0.5, lw=0)
    ax.set(ylabel="V'  [W]", title=name)
axes[1].text(0.14, -22, "promised")
axes[1].text(0.60, 29, "V' of the loop", color="C0", weight="bold")
axes[1].set(xlabel="time [s]", xlim=(0, 2))
plt.show()
