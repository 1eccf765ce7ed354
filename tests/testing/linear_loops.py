"""Loops whose constants are known in closed form: a mass on a slider under PD control, x = (q, v), x' = A x."""

import numpy as np

import geomctrl as gc
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint

MASS, KP, KD = 2.0, 50.0, 8.0  # kg, N/m, N s/m
A = np.array([[0.0, 1.0], [-KP / MASS, -KD / MASS]])
P = np.array([[KP + KD * 2.0, MASS * 2.0], [MASS * 2.0, MASS]])  # P of V = 1/2 x . P x, which is not the energy


def sliders(n):
    """n masses, each on its own slider along x."""
    mass = inertia.from_com(MASS, np.zeros(3), np.eye(3))
    bodies = [Body(f"m{k}", None, Joint.prismatic([1.0, 0.0, 0.0], name=f"x{k}"), np.eye(4), mass) for k in range(n)]
    return gc.Robot.build(bodies, gravity=(0.0, 0.0, 0.0), name="sliders")


SLIDER = sliders(1)


class PD:
    """tau = -kp q - kd v on sliders; V = 1/2 sum x . P x with the given P, and its exact rate for the given gains."""

    def __init__(self, P=P, kp=KP, kd=KD, n=1):
        self.P, self.kp, self.kd, self.q_d = np.asarray(P, float), kp, kd, np.zeros(n)
        A = np.array([[0.0, 1.0], [-kp / MASS, -kd / MASS]])
        self.Q = 0.5 * (A.T @ self.P + self.P @ A)

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(-self.kp * q - self.kd * v)

    def lyapunov(self, t, q, v, z, plant):
        return gc.Lyapunov(0.5 * form(self.P, q, v), form(self.Q, q, v))


class Untraceable(PD):
    """The same with a branch on the state, which can not be evaluated on symbols."""

    def lyapunov(self, t, q, v, z, plant):
        return super().lyapunov(t, q, v, z, plant) if q[0] > -1e9 else None


def form(P, q, v):
    return P[0, 0] * q.dot(q) + 2.0 * P[0, 1] * q.dot(v) + P[1, 1] * v.dot(v)


def held(period, A=A):
    """The exact map x -> x one period later, with the command held."""
    kp, kd = -A[1] * MASS
    return np.array(
        [
            [1.0 - 0.5 * period**2 * kp / MASS, period - 0.5 * period**2 * kd / MASS],
            [-period * kp / MASS, 1.0 - period * kd / MASS],
        ]
    )


def largest_value(P, dt, points=400):
    """The largest x.P x during a sample from x.P x <= 1, of q'' = -4 q - 2 v with a held command: q is a parabola."""
    angles = np.linspace(0.0, 2.0 * np.pi, points)
    boundary = np.linalg.solve(np.linalg.cholesky(P).T, [np.cos(angles), np.sin(angles)]).T
    worst = 0.0
    for radius in np.linspace(0.05, 1.0, 20):
        x = radius * boundary
        a = -4.0 * x[:, 0] - 2.0 * x[:, 1]
        for s in np.linspace(0.0, dt, 21)[1:]:
            y = np.column_stack([x[:, 0] + s * x[:, 1] + 0.5 * s**2 * a, x[:, 1] + s * a])
            worst = max(worst, float(np.einsum("ni,ij,nj->n", y, P, y).max()))
    return worst
