"""Laws that are subtly wrong are caught, whatever the seed, with the simplest state; right ones are never accused."""

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.control.references import Sinusoids

ARM = models.two_link()
Q_D = np.array([0.4, -0.7])
SEEDS = range(10)


def sway(robot):
    n = robot.nv
    return Sinusoids(robot, robot.neutral(), 0.3, np.linspace(0.2, 0.5, n), np.linspace(0.0, 5.0, n))


class PD:
    """tau = g - 20 e - 5 v + what is wrong, V = T + 10 e . e, V' = -5 v . v."""

    q_d = Q_D

    def start(self):
        return None

    def wrong(self, t, q, v):
        return 0.0 * v

    def __call__(self, t, q, v, z):
        return gc.Command(ARM.gravity_force(q) - 20.0 * (q - Q_D) - 5.0 * v + self.wrong(t, q, v))

    def lyapunov(self, t, q, v, z, plant):
        e = q - Q_D
        return plant.robot.kinetic_energy(q, v) + 10.0 * e @ e, -5.0 * v @ v


class Bump(PD):
    """V' <= 0 but in a ball that has one per cent of the volume of the domain, +-1.5 in four coordinates."""

    centre, width = np.array([0.9, -0.8, 0.7, 0.9]), 0.475

    def wrong(self, t, q, v):
        x = np.concatenate((q - Q_D, v)) - self.centre
        return 30.0 * np.exp(-x @ x / self.width**2) * v

    def lyapunov(self, t, q, v, z, plant):
        V, rate = super().lyapunov(t, q, v, z, plant)
        return V, 0.0 * rate


class FarOut(PD):
    """Wrong where |v|^2 is near the most that the domain has, 4.5."""

    def wrong(self, t, q, v):
        return np.array([v[1], 0.0]) / (1.0 + np.exp(10.0 * (4.0 - v @ v)))


class InAWindow(PD):
    """Wrong for a tenth of a second out of three."""

    def wrong(self, t, q, v):
        return v * np.exp(-(((t - 1.55) / 0.03) ** 2))


class Growing(PD):
    """Honest about a rate that is positive in a small part of the domain."""

    def wrong(self, t, q, v):
        return 8.0 * v * np.exp(-4.0 * ((q - Q_D - np.array([1.0, -1.0])) ** 2).sum())

    def lyapunov(self, t, q, v, z, plant):
        V, rate = super().lyapunov(t, q, v, z, plant)
        return V, rate + v @ self.wrong(t, q, v)


class SigmaModification(controllers.SlotineLi):
    """p' = -Gamma (Y^T s + sigma p): V' = -s K s - sigma (p - p_true) . p, positive for p between 0 and p_true."""

    sigma = 0.05

    def __call__(self, t, q, v, z):
        command = super().__call__(t, q, v, z)
        return command._replace(z_rate=command.z_rate - self.sigma * self.Gamma @ z)

    def lyapunov(self, t, q, v, z, plant):
        V, rate = super().lyapunov(t, q, v, z, plant)
        return V, rate - self.sigma * (z - self.true_parameters(plant)) @ z


class WrongSign(controllers.SlotineLi):
    """One parameter of twenty is adapted the wrong way."""

    def __call__(self, t, q, v, z):
        command = super().__call__(t, q, v, z)
        return command._replace(z_rate=command.z_rate * np.where(np.arange(len(z)) == 13, -1.0, 1.0))


class Integrating(PD):
    """PD with an integrator z of v that is fed back: V' = -5 v . v, but for z with z_0 > 2, two of three units off."""

    def start(self):
        return np.zeros(2)

    def wrong_rate(self, z):
        return np.array([1e-3 / (1.0 + np.exp(-30.0 * (z[0] - 1.3))), 0.0])

    def __call__(self, t, q, v, z):
        return gc.Command(super().__call__(t, q, v, z).tau - z, 2.0 * v + self.wrong_rate(z))

    def lyapunov(self, t, q, v, z, plant):
        V, rate = super().lyapunov(t, q, v, z, plant)
        return V + 0.25 * z @ z, rate


class Orbit(PD):
    """Energy shaping: V = (E - E_d)^2 / 2 is zero on all states with the energy that the arm has upright."""

    q_d = np.array([np.pi, 0.0])

    def __call__(self, t, q, v, z):
        return gc.Command(-(ARM.energy(q, v) - ARM.energy(self.q_d, 0.0 * v)) * v)

    def lyapunov(self, t, q, v, z, plant):
        off = plant.robot.energy(q, v) - plant.robot.energy(self.q_d, np.zeros(2))
        return 0.5 * off**2, -((off * np.linalg.norm(v)) ** 2)


class Line(PD):
    """V and the law know the sum of the joints' errors and the velocities only... and q_1's, a little."""

    def __call__(self, t, q, v, z):
        return gc.Command(ARM.gravity_force(q) - 20.0 * np.sum(q - Q_D) * np.ones(2) - 5.0 * v)

    def lyapunov(self, t, q, v, z, plant):
        e = np.sum(q - Q_D)
        return plant.robot.kinetic_energy(q, v) + 10.0 * e**2, -5.0 * v @ v


WRONG = {
    "bump": (Bump(), {"bound": True}, "derivative"),
    "far out": (FarOut(), {}, "derivative"),
    "in a window": (InAWindow(), {}, "derivative"),
    "growing": (Growing(), {}, "rate"),
    "sigma modification": (SigmaModification(ARM, sway(ARM), 3.0, 4.0), {}, "rate"),
    "one wrong sign": (WrongSign(ARM, sway(ARM), 3.0, 4.0), {}, "derivative"),
    "in z only": (Integrating(), {}, "derivative"),
    "zero on an orbit": (Orbit(), {}, "definite"),
    "zero on a line": (Line(), {}, "definite"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_law_that_is_subtly_wrong_is_caught_whatever_the_seed(name):
    law, options, promise = WRONG[name]
    for seed in SEEDS:
        with pytest.raises(testing.Counterexample) as caught:
            testing.assert_lyapunov(law, ARM, states=1, runs=0, seed=seed, **options)
        assert caught.value.promise == promise
