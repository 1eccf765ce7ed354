"""What Python evaluates has to exist on the whole box, also where the forms of V and V' cancel it."""

import numpy as np
import pytest
from linear_loops import PD, SLIDER

import geomctrl as gc
from geomctrl import controllers, testing
from geomctrl.control.friction.model import FrictionModel
from geomctrl.control.references import hold

ARM = gc.models.two_link()
SWING = gc.references.Sinusoids(ARM, [0.3, 0.5], [0.4, 0.3], 0.3, [0.0, 0.5])
HERE = hold(ARM, [0.3, 0.4])
POLE, FAR = 0.123, 30.0  # in the box, and outside of it


def nothing(x, pole):
    """0, but undefined where x is at the pole."""
    return (1.0 / (x - pole)) * (x - pole) - 1.0


class Torques(gc.Plant):
    def net_torque(self, t, q, v, tau, x):
        return super().net_torque(t, q, v, tau, x) + nothing(q, self.pole)


class Accelerations(gc.Plant):
    def acceleration(self, t, q, v, tau, x=None):
        return super().acceleration(t, q, v, tau, x) + nothing(v, self.pole)

    def power(self, t, q, v, tau, x=None):
        return 0.0


class Rubbing(FrictionModel):
    def __init__(self, pole):
        self.pole = pole

    def torque(self, v, load, z):
        return nothing(v, self.pole)


class Wrenches:
    def __init__(self, pole):
        self.pole = pole

    def __call__(self, t, q, v):
        return np.array([[0.0] * 5 + [nothing(q[0], self.pole)]] * 2)


class Rates(controllers.SlotineLi):
    def _rate(self, g, s, z):
        return super()._rate(g, s, z) + nothing(s[:1], POLE)[0]


class RatesElsewhere(controllers.SlotineLi):
    def _rate(self, g, s, z):
        return super()._rate(g, s, z) + nothing(s[:1], FAR)[0]


class AboutReference(controllers.Passivity):
    def __call__(self, t, q, v, z):
        command = super().__call__(t, q, v, z)
        return command._replace(tau=command.tau + nothing(self.reference(t).q, self.pole))


class Value(controllers.Passivity):
    def lyapunov(self, t, q, v, z, plant):
        V, rate = super().lyapunov(t, q, v, z, plant)
        return gc.Lyapunov(V + nothing(q[0], self.pole), rate)


def with_pole(part, pole):
    object.__setattr__(part, "pole", pole)
    return part


def certified(law, plant=ARM, box=(1.0, 2.0), **options):
    return testing.certify_lyapunov(law, plant, box, levels=False, budget=50, **options)


def passivity(kind=controllers.Passivity, motion=HERE):
    return kind(ARM, motion, 5.0, 20.0, strict=True)


def estimating(pole):
    kind = Rates if pole == POLE else RatesElsewhere
    return kind(ARM, SWING, 10.0, 40.0, rate=100.0)


BOX = testing.Box(0.3, 4.0, z=2.0)
PLACES = {
    "torques": lambda pole: certified(passivity(), with_pole(Torques(ARM), pole)),
    "acceleration": lambda pole: certified(passivity(), with_pole(Accelerations(ARM), pole)),
    "acceleration of another law": lambda pole: certified(
        controllers.ComputedTorque(ARM, HERE, 25.0, 10.0), with_pole(Accelerations(ARM), pole)
    ),
    "friction": lambda pole: certified(passivity(), gc.Plant(ARM, friction=Rubbing(pole))),
    "wrenches": lambda pole: certified(passivity(), gc.Plant(ARM, f_ext=Wrenches(pole))),
    "rates of estimates": lambda pole: certified(estimating(pole), box=BOX, parameters=0.05),
    "reference": lambda pole: certified(
        with_pole(passivity(AboutReference, SWING), pole), box=testing.Box(0.3, 2.0)
    ),
    "V": lambda pole: certified(with_pole(passivity(Value), pole)),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_what_cancels_must_exist_on_the_whole_box(place):
    certificate = PLACES[place](POLE)
    assert certificate.status == "undecided", certificate
    assert certificate.claims[-1].statement == "law and plant have a value"
    assert PLACES[place](FAR).status in ("proved", "semidefinite")


class Positive(PD):
    """Raises unless q > -0.99, with the condition by which traces require positive masses."""

    def __call__(self, t, q, v, z):
        if not q[0] + 0.99 > 0.0:
            raise RuntimeError("stop")
        return super().__call__(t, q, v, z)


def test_a_law_that_needs_a_positive_number_is_refuted_where_it_is_not():
    assert certified(Positive(), SLIDER, (0.9, 2.0)).status in ("proved", "semidefinite")
    certificate = certified(Positive(), SLIDER)
    assert certificate.status == "refuted", certificate
    assert certificate.counterexample.q[0] <= -0.99


def test_a_reference_that_raises_at_some_times_is_named():
    def reference(t):
        if t > 1.0:
            raise ValueError("beyond the end")
        return 0.2 * np.sin(t) + np.zeros(2), 0.2 * np.cos(t) + np.zeros(2), -0.2 * np.sin(t) + np.zeros(2)

    law = controllers.Passivity(ARM, reference, Lambda=2.0, K=3.0)
    with pytest.raises(gc.ArgumentError, match=r"reference.*raises.*beyond the end"):
        testing.certify_lyapunov(law, ARM, testing.Box(0.3, 0.6, times=(0.0, 5.0)), rate=1.0, offset=0.1, budget=10)
