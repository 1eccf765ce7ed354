"""Spong's robust law: its bound with the constant of `allowance`, and that this constant can not be smaller."""

import numpy as np
import pytest
from simulation_options import run_both_ways

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.control.references import Sinusoids, hold
from geomctrl.errors import ArgumentError

ARM = models.two_link()
MOTION = Sinusoids(ARM, np.array([0.3, 0.5]), [0.5, 0.7], [0.7, 1.1], start_at_rest=0.5)
LOADED = ARM.with_payload(0.1, (0.05, 0, 0), 1e-4 * np.eye(3))


def law(**options):
    return controllers.Robust(ARM, MOTION, **{"rho": 0.2, **options})


def test_it_ends_in_a_ball():
    """V' <= W + c + s . d, and s . d <= s . K s / 2 + d . K^-1 d / 2."""
    c = law()
    assert 0.0 < c._distance(gc.Plant(LOADED)) < c.rho
    weakest = float(np.linalg.eigvalsh(c.K)[0])
    testing.assert_input_to_state_stable(
        c,
        LOADED,
        lambda d: c.allowance(None) + 0.5 * d**2 / weakest,
        share=0.5,
        search=1500,
        runs=testing.Runs(duration=0.5),
    )


def worst_excess(c, plant):
    """The largest V' - W over velocities at a posture, from M, Mdot and the plant's acceleration."""
    result, q = -np.inf, np.array([0.3, 0.5])
    for size in np.geomspace(1e-3, 3.0, 400):
        for direction in ([1.0, 0.0], [1.0, -1.0], [-1.0, 0.3], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]):
            v = size * np.array(direction)
            x, command = c.sliding(0.0, q, v), c(0.0, q, v, None)
            a = plant.forward_dynamics(q, v, command.tau)
            rate = x.s @ plant.mass_matrix(q) @ (a - x.a_ref) + 0.5 * x.s @ plant.mass_matrix_rate(q, v) @ x.s
            result = max(result, rate + x.s @ c.K @ x.s)
    return result


def test_the_allowance_is_reached_by_the_worst_parameters():
    """With p_true - p_0 of length rho against w, V' = W + c at the worst |w|: the constant is sharp."""
    q = np.array([0.3, 0.5])
    c = controllers.Robust(ARM, hold(ARM, q), rho=0.05, eps=0.1)
    g = c.robot.regressor(q, np.zeros(2), np.zeros(2)).T @ np.array([1.0, 0.0])  # Y^T s for slow s along joint 1
    off = -c.rho * c.D * g / np.sqrt(g @ (c.D * g))
    plant = ARM.with_parameters(ARM.parameters.ravel() + off)
    assert c._distance(gc.Plant(plant)) == pytest.approx(c.rho, rel=1e-9)
    excess = worst_excess(c, plant)
    assert 0.9 * c.allowance(None) < excess <= c.allowance(None) * (1.0 + 1e-9)


def test_without_the_correction_the_bound_does_not_hold():
    c = law(eps=1e-3)
    c.rho = 1e-9
    with pytest.raises(AssertionError, match="share W"):
        testing.assert_input_to_state_stable(c, LOADED, lambda d: 1e-4 + d**2, share=0.5, search=500, runs=0)


def test_a_mass_in_closed_form():
    """One prismatic joint on a horizontal axis: tau = (m_0 + u) a_ref - K s, u = - rho a_ref s / |(a_ref s, eps)|."""
    inertia = gc.inertia.from_com(2.0, np.zeros(3), np.eye(3))
    mass = gc.Robot.build([gc.Body("cart", None, gc.Joint.prismatic((1, 0, 0)), None, inertia)])
    motion = Sinusoids(mass, [0.0], [0.3], [0.5])
    c = controllers.Robust(mass, motion, 4.0, 10.0, rho=0.5, eps=0.2)
    t, q, v = 0.3, np.array([0.2]), np.array([0.4])
    q_d, v_d, a_d = motion(t)
    s, a_ref = v - v_d + 4.0 * (q - q_d), a_d - 4.0 * (v - v_d)
    u = -0.5 * a_ref * s / np.sqrt((a_ref * s) ** 2 + 0.2**2)
    np.testing.assert_allclose(c(t, q, v, None).tau, (2.0 + u) * a_ref - 10.0 * s, rtol=1e-12)


def test_it_beats_the_law_without_correction():
    q0, v0, _ = MOTION(0.0)
    plain = controllers.Passivity(ARM, MOTION)
    runs = [gc.simulate(LOADED, c, q0, v0, 2.0, 1e-3, control_dt=1e-3, monitors=None) for c in (law(eps=0.3), plain)]
    robust, passive = (np.linalg.norm(run.tracking_rms(after=1.0)) for run in runs)
    assert robust < 0.5 * passive


def test_it_runs_compiled_as_in_python():
    q0, v0, _ = MOTION(0.0)
    run = run_both_ways(LOADED, law(), q0 + 0.2, v0, 0.1, 1e-3)
    assert run.ok, run.summary()


@pytest.mark.parametrize("name", ["rho", "eps"])
def test_bad_options_are_named(name):
    with pytest.raises(ArgumentError, match=rf"{name}: expected a positive number .*got -1"):
        law(**{name: -1.0})
