"""PD control with constant gravity compensation: Kp > k_g makes q_d the only equilibrium, smaller Kp may not."""

import functools

import numpy as np
import pytest
import scipy.optimize

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.errors import ArgumentError

ARM = models.two_link()
# the configuration where gravity pulls away most strongly: dg/dq has the eigenvalue -k_g
UPRIGHT = np.array([np.pi / 2.0, 0.0])


@functools.cache
def bounds():
    return ARM.bounds()


def law_of(share, q_d, **options):
    """A law with Kp = share k_g."""
    return controllers.PDGravity(ARM, q_d, kp=share * bounds().k_g.value, kd=5.0, constant=True, **options)


def equilibria(law, q_d, starts=100):
    """Configurations at which the closed loop is at rest, found from random starts about q_d."""
    found, rng = [], np.random.default_rng(0)

    def force(q):
        return ARM.gravity_force(q) - law(0.0, q, np.zeros(2), None).tau

    for start in q_d + rng.uniform(-4.0, 4.0, (starts, 2)):
        solution = scipy.optimize.root(force, start)
        if solution.success and not any(np.allclose(solution.x, x, atol=1e-5) for x in found):
            found.append(solution.x)
    return found


@pytest.mark.quick(1)
@pytest.mark.parametrize("q_d", [UPRIGHT, np.array([0.3, -1.0]), np.array([-2.0, 2.5])])
def test_above_k_g_the_goal_is_the_only_equilibrium_and_v_is_a_lyapunov_function(q_d):
    law = law_of(1.02, q_d)
    assert law.gravity_margin(bounds()) > 0.0
    assert np.allclose(equilibria(law, q_d), [q_d], atol=1e-5)
    testing.assert_lyapunov(law, ARM, region=testing.Region(2.0, equilibrium=q_d))


def test_the_condition_is_sharp():
    """Just below k_g the upright goal is no longer the only equilibrium: the bound is sharp here."""
    law = law_of(0.98, UPRIGHT)
    assert law.gravity_margin(bounds()) < 0.0
    assert len(equilibria(law, UPRIGHT)) > 1


def test_far_below_k_g_the_robot_comes_to_rest_elsewhere():
    q_d = np.array([np.pi / 2.0, 0.3])
    law = law_of(0.1, q_d)
    others = [q for q in equilibria(law, q_d) if np.abs(q - q_d).max() > 0.1]
    assert len(others) >= 2
    with pytest.raises(AssertionError, match="V is not positive"):
        testing.assert_lyapunov(law, ARM, region=3.0, states=200)
    ends = [gc.simulate(ARM, law, q + 1e-3, [0.0, 0.0], 20.0, 1e-3) for q in others]
    resting = [run for run in ends if np.abs(run.v[-1]).max() < 1e-4 and np.abs(run.q[-1] - q_d).max() > 0.5]
    assert resting, "no other equilibrium attracts"


def test_with_gravity_compensated_itself_any_gain_will_do():
    law = controllers.PDGravity(ARM, UPRIGHT, kp=0.1 * bounds().k_g.value, kd=5.0)
    assert law.gravity_margin() == pytest.approx(0.1 * bounds().k_g.value)
    testing.assert_lyapunov(law, ARM, region=2.0)


def test_the_margin_takes_the_smallest_gain_and_the_robot_s_own_bounds():
    law = controllers.PDGravity(ARM, UPRIGHT, kp=[30.0, 25.0], kd=5.0, constant=True)
    assert law.gravity_margin() == pytest.approx(25.0 - bounds().k_g.value)


def test_what_is_no_margin_is_refused():
    with pytest.raises(ArgumentError, match="bounds: expected what robot"):
        law_of(1.0, UPRIGHT).gravity_margin(3.0)  # pyright: ignore[reportArgumentType]
    quadruped = models.load("quadruped")
    with pytest.raises(ArgumentError, match="constant: expected joints with one degree of freedom, got"):
        controllers.PDGravity(quadruped, quadruped.neutral(), constant=True)
