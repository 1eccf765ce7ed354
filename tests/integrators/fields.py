"""Vector fields for the tests of integrators: bodies with forces that depend on pose and time."""

import math
from functools import cache

import numpy as np

from geomctrl.integrators.driver import integrate
from geomctrl.lie.groups import SE3, SO3, Product, Rn, SO3xR3

INERTIA, MASS = np.array([0.4, 0.7, 1.0]), 2.0  # kg m^2, kg


def cross(a, b):
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def torque(t, R):
    gravity = cross((0.1, 0.2, -0.1), R.T @ (0.0, 0.0, -4.0))
    return gravity + R.T @ (math.sin(t), 0.5 * math.cos(2 * t), 0.3) + (0.0, 0.0, 0.4)


def pivoted(t, y):
    """Euler's equations on SO(3) x R^3."""
    R, w = y[:9].reshape(3, 3), y[9:]
    return np.concatenate((w, (torque(t, R) - cross(w, INERTIA * w)) / INERTIA))


def accelerations(t, R, p, w, v):
    """Body-fixed accelerations of a body on a spring, driven in an inertial direction and damped."""
    force = R.T @ (np.array([math.cos(t), 0.0, math.sin(2 * t) - 4.0]) - 3.0 * p) - 0.2 * v
    return (torque(t, R) - cross(w, INERTIA * w)) / INERTIA, force / MASS - cross(w, v)


def flying(t, y):
    """On SE(3) x R^6: the velocity is the body twist."""
    T, w, v = y[:16].reshape(4, 4), y[16:19], y[19:]
    return np.concatenate((w, v, *accelerations(t, T[:3, :3], T[:3, 3], w, v)))


def flying_direct(t, y):
    """The same body on (SO(3) x R^3) x R^6: the velocity is (w, pdot)."""
    T, w, pdot = y[:12].reshape(3, 4), y[12:15], y[15:]
    R = T[:, :3]
    wdot, vdot = accelerations(t, R, T[:, 3], w, R.T @ pdot)
    return np.concatenate((w, pdot, wdot, R @ (vdot + cross(w, R.T @ pdot))))


TURN = np.array([0.3, -0.2, 0.5])
SPIN = np.array([1.5, -1.3, 2.8])
R0 = SO3().exp(TURN)
T0 = np.eye(4)
T0[:3, :3], T0[:3, 3] = R0, (0.1, 0.2, 0.3)
BODIES = {
    "SO3": (Product(SO3(), Rn(3)), pivoted, np.concatenate((R0.ravel(), SPIN))),
    "SE3": (Product(SE3(), Rn(6)), flying, np.concatenate((T0.ravel(), SPIN, R0.T @ (0.2, 0.1, -0.4)))),
    "SO3xR3": (Product(SO3xR3(), Rn(6)), flying_direct, np.concatenate((T0[:3].ravel(), SPIN, (0.2, 0.1, -0.4)))),
}
BODIES["Product"] = (
    Product(SO3(), SO3xR3(), Rn(3), Rn(6)),
    lambda t, y: np.concatenate(
        (y[21:24], y[24:], pivoted(t, y[np.r_[:9, 21:24]])[3:], flying_direct(t, y[np.r_[9:21, 24:30]])[6:])
    ),
    np.concatenate((R0.T.ravel(), T0[:3].ravel(), -SPIN, SPIN, (0.2, 0.1, -0.4))),
)
END = 2.0


@cache
def reference(body):
    group, field, y0 = BODIES[body]
    return integrate(field, y0, (0.0, END), END / 512, "MK8", group).y


def oscillator(t, y):
    return np.array([y[1], math.sin(t) - y[0] - 0.1 * y[1] ** 3])


def turning(t, R):
    return np.array([math.sin(2 * t) + R[0, 1], 1.2 * math.cos(t) - R[2, 2], 0.7 + R[1, 0] * R[0, 2]])
