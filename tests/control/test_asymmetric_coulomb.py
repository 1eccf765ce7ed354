"""Coulomb friction that depends on the direction: limits, symmetry and dissipation, in all places that use friction."""

import numpy as np
import pytest
from friction_checks import check_model

import geomctrl as gc
from geomctrl import ArgumentError, Body, Joint, Robot
from geomctrl.control.friction.coulomb import AsymmetricCoulomb
from geomctrl.mechanism import inertia


@pytest.mark.slow
def test_it_works_wherever_friction_does():
    check_model(lambda n: AsymmetricCoulomb(np.resize([0.5, 0.3], n), np.resize([0.2, 0.6], n), 0.2))


def test_a_cart_decelerates_by_the_friction_of_its_direction():
    """v = v0 -+ f t / m while the cart is fast compared with the smoothing."""
    mass, forward, backward = 2.0, 3.0, 1.0
    body = Body("cart", None, Joint.prismatic((1, 0, 0)), None, inertia.from_com(mass, (0, 0, 0), np.eye(3)))
    plant = gc.Plant(Robot.build([body]), AsymmetricCoulomb(forward, backward, 1e-3))
    for v0, friction in ((1.0, -forward), (-1.0, backward)):
        run = gc.simulate(plant, Free(), [0.0], [v0], 0.4, 1e-3)
        np.testing.assert_allclose(run.v[:, 0], v0 + friction / mass * run.t, rtol=1e-12)


def test_equal_torques_are_plain_coulomb_friction():
    v = np.random.default_rng(0).normal(scale=0.1, size=(20, 2))
    expected = gc.Friction(0.0, [0.4, 0.7], 0.05).torque(v)
    np.testing.assert_allclose(AsymmetricCoulomb([0.4, 0.7], [0.4, 0.7], 0.05).torque(v), expected, rtol=1e-14)


def test_it_opposes_every_velocity():
    model = AsymmetricCoulomb(0.9, 0.0, 0.05)
    for v in np.linspace(-0.3, 0.3, 61):
        assert model.dissipation(np.array([v])) >= 0.0


@pytest.mark.parametrize("name", ["forward", "backward"])
def test_negative_torques_are_refused(name):
    with pytest.raises(ArgumentError, match=f"{name}: expected a friction coefficient >= 0"):
        AsymmetricCoulomb(**({"forward": 0.1, "backward": 0.1} | {name: -0.1}))


class Free:
    """A law without torque."""

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(np.zeros(1))
