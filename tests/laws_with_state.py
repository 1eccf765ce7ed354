"""Laws whose states are of different kinds, for the tests of exported code."""

import numpy as np

import geomctrl as gc
from geomctrl import models, so3


class Sampled(gc.Controller):
    """A filter and a counter that are updated at samples, and an integral that changes between them."""

    def __init__(self, parts=("z_rate", "z_next")):
        self.robot, self.parts = models.two_link(), parts

    def start(self):
        return np.array([0.1, 0.0, 0.0])

    def signals(self, t, q, v, z):
        return {}

    def __call__(self, t, q, v, z):
        rate = np.array([0.0, 0.0, q[0] - 0.3]) if "z_rate" in self.parts else None
        after = np.array([0.8 * z[0] + 0.2 * v[1], z[1] + 1.0, z[2]]) if "z_next" in self.parts else None
        tau = -20.0 * (q - 0.3) - 4.0 * v - z[0] - np.array([z[2], 0.01 * z[1]])
        return gc.Command(tau, rate, self.signals(t, q, v, z), after)


class OnGroup(gc.Controller):
    """An estimate of a rotation; its rate is in the algebra of SO(3)."""

    group = gc.groups.SO3()

    def __init__(self):
        self.robot = models.two_link()

    def start(self):
        return so3.exp([0.3, -0.2, 0.5])

    def __call__(self, t, q, v, z):
        e = so3.log(z)
        return gc.Command(-5.0 * q - v + e[:2], np.array([q[0], v[1], np.sin(t)]) - 2.0 * e)


class Starting(gc.Controller):
    """A filter that starts at the robot's configuration."""

    def __init__(self):
        self.robot = models.two_link()

    def start(self, q0, v0):
        return np.concatenate((np.sin(q0), 2.0 * v0))

    def __call__(self, t, q, v, z):
        return gc.Command(-9.0 * z[:2] - z[2:], 5.0 * (np.concatenate((q, v)) - z))
