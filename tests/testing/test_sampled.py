"""Sampled PD control of a mass: the largest period, known exactly from the eigenvalues of the discrete loop."""

import numpy as np
import pytest
from linear_loops import KP, MASS, PD, SLIDER, P, Untraceable, held
from scipy.linalg import eigh
from scipy.optimize import brentq

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.control.references import Sinusoids
from geomctrl.errors import ArgumentError
from geomctrl.testing import Counterexample
from geomctrl.testing.sampled import held_for


def growth(period, samples=1, P=P):
    """The largest V(after) / V(now)."""
    F = np.linalg.matrix_power(held(period), samples)
    return float(eigh(F.T @ P @ F, P, eigvals_only=True)[-1])


LONGEST = brentq(lambda T: growth(T) - 1.0, 1e-2, 0.5)
ENERGY = PD(np.diag([KP, MASS]))


@pytest.mark.parametrize("law", [PD(), Untraceable()], ids=["traced", "not traced"])
def test_a_law_on_a_mass_can_be_held_for_as_long_as_the_eigenvalues_say(law):
    testing.assert_sampled(law, SLIDER, 0.95 * LONGEST, search=1000)
    with pytest.raises(Counterexample, match="V grows while commands are held for") as caught:
        testing.assert_sampled(law, SLIDER, 1.05 * LONGEST, search=1000)
    printed = []
    code = caught.value.paste.replace("print(", "printed.append(")
    exec(code, {"printed": printed, "controller": law, "plant": gc.Plant(SLIDER)})
    assert printed[0].after > printed[0].before
    x = np.concatenate(caught.value.state[1:3])
    F = held(1.05 * LONGEST)
    assert printed[0].after == pytest.approx(0.5 * (F @ x) @ P @ (F @ x), rel=1e-9)


def test_what_is_looked_at_is_the_discrete_loop():
    x, F = np.array([0.3, -0.4]), np.linalg.matrix_power(held(0.05), 3)
    result = held_for(PD(), SLIDER, 0.05, 0.7, x[:1], x[1:], horizon=0.15)
    np.testing.assert_allclose(result, [0.5 * x @ P @ x, 0.5 * (F @ x) @ P @ (F @ x)], rtol=1e-12)


@pytest.mark.slow
def test_the_longest_period_is_that_of_the_eigenvalues():
    assert testing.largest_control_dt(PD(), SLIDER) == pytest.approx(LONGEST, rel=0.03)


@pytest.mark.slow
def test_a_semidefinite_rate_needs_a_horizon():
    """Starting at a turning point the energy grows slightly within one period of any length; over 0.2 s it falls."""
    for period in (1e-2, 1e-3):
        assert growth(period, P=np.diag([KP, MASS])) > 1.0
        with pytest.raises(Counterexample):
            testing.assert_sampled(ENERGY, SLIDER, period, rtol=1e-13)
    with pytest.raises(ArgumentError, match=r"V does not decrease as promised at 0\.001 s either"):
        testing.largest_control_dt(ENERGY, SLIDER, shortest=1e-3, rtol=1e-13)

    def after(T):
        return growth(T, max(1, int(np.ceil(0.2 / T - 1e-9))), np.diag([KP, MASS]))

    result = testing.largest_control_dt(ENERGY, SLIDER, horizon=0.2, shortest=5e-3, longest=0.5, search=200)
    assert after(result) <= 1.0 + 1e-9
    assert max(after(T) for T in np.linspace(result, 1.05 * result, 50)) > 1.0


@pytest.mark.slow
def test_periods_that_work_again_beyond_one_that_does_not_are_no_answer():
    """A push between 10 and 12.5 ms, which samples every 20 ms miss, and other samples hold for their whole period."""

    class Pushed(PD):
        def __call__(self, t, q, v, z):
            return gc.Command(-self.kp * q - self.kd * v + np.where((t > 0.01) & (t < 0.0125), 100.0, 0.0))

    domain = {"t": (0.0, 0.0), "q": (-0.05, 0.05), "v": (-0.1, 0.1)}
    options = {"level": 0.3, "horizon": 0.02, "region": testing.Region(domain=domain)}
    testing.assert_sampled(Pushed(), SLIDER, 0.02, search=100, **options)
    with pytest.raises(Counterexample):
        testing.assert_sampled(Pushed(), SLIDER, 0.011, search=100, **options)
    result = testing.largest_control_dt(Pushed(), SLIDER, shortest=1e-3, longest=0.02, search=60, **options)
    assert result < 0.011


@pytest.mark.slow
def test_a_law_that_follows_a_motion_keeps_a_level():
    """The motion continues while a command is held: V falls to a level only, which is smaller for shorter periods."""
    robot = models.two_link()
    law = controllers.Passivity(robot, Sinusoids(robot, np.zeros(2), 0.5, 1.0), 5.0, 10.0)
    with pytest.raises(Counterexample):
        testing.assert_sampled(law, robot, 1e-2, search=600)
    levels = [testing.sampled_level(law, robot, period, search=600) for period in (2e-3, 1e-2)]
    desired = law.reference(0.01)
    run = gc.simulate(robot, law, desired.q, desired.v, 2.0, 2e-3, control_dt=1e-2)
    assert levels[1] > 0.2 * run.signals["lyapunov"].max()
    assert 0.0 < levels[0] < 0.2 * levels[1]
    testing.assert_sampled(law, robot, 1e-2, level=1.05 * levels[1], search=600)
    with pytest.raises(Counterexample, match="level"):
        testing.assert_sampled(law, robot, 1e-2, level=0.5 * levels[1], search=600)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: testing.assert_sampled(PD(), SLIDER, 0.0), "control_dt: expected seconds > 0"),
        (lambda: testing.assert_sampled(PD(), SLIDER, 0.1, level=-1.0), "level: expected a number >= 0"),
        (lambda: testing.assert_sampled(PD(), SLIDER, 0.1, horizon=np.nan), "horizon: expected seconds > 0"),
        (lambda: testing.largest_control_dt(PD(), SLIDER, shortest=1.0, longest=0.1), "shortest, longest: expected"),
        (lambda: testing.largest_control_dt(PD(), SLIDER, search=0), "search: expected"),
    ],
)
def test_arguments_are_named(call, message):
    with pytest.raises(ArgumentError, match=message):
        call()
