"""Super-twisting sliding mode: V' for s != 0 as an identity, finite convergence time, rejection of disturbances."""

import numpy as np
import pytest
from simulation_options import run_both_ways

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.control.references import Sinusoids
from geomctrl.controllers import super_twisting
from geomctrl.errors import ArgumentError

ARM = models.two_link()
MOTION = Sinusoids(ARM, np.array([0.3, 0.5]), [0.5, 0.7], [0.7, 1.1], start_at_rest=0.5)
RNG = np.random.default_rng(6)


def test_p_solves_its_lyapunov_equation():
    A = np.array([[-0.5, 0.5], [-super_twisting.K2 / super_twisting.K1**2, 0.0]])
    P = super_twisting.P
    np.testing.assert_allclose(A.T @ P + P @ A, -np.eye(2), atol=1e-14)
    assert np.linalg.eigvalsh(P)[0] > 0.0


def test_v_falls_as_told_wherever_it_has_a_gradient():
    """Compare dV/dt along the plant's acceleration, with the gradient by complex step, with - k1 |s|^-1/2 x . x."""
    law, plant = controllers.SuperTwisting(ARM, MOTION, rate=[30.0, 80.0]), gc.Plant(ARM)
    top = np.linalg.eigvalsh(super_twisting.P)[1]
    for _ in range(20):
        t = RNG.uniform(0.0, 2.0)
        q, v, _ = MOTION(t)
        q, v, z = q + 0.3 * RNG.normal(size=2), v + RNG.normal(size=2), 10.0 * RNG.normal(size=2)
        command, x = law(t, q, v, z), law.sliding(t, q, v)
        s_rate = plant.acceleration(t, q, v, command.tau) - x.a_ref

        def energy(k, s, z, law=law):
            a, b = np.sqrt(abs(s.real)) * np.sign(s.real) * np.sqrt(s / s.real), z / law.k1[k]
            return (
                super_twisting.P[0, 0] * a * a + 2.0 * super_twisting.P[0, 1] * a * b + super_twisting.P[1, 1] * b * b
            )

        for k in range(2):
            moved = energy(k, x.s[k] + 1e-30j * s_rate[k], z[k] + 1e-30j * command.z_rate[k])
            value, rate = moved.real, moved.imag / 1e-30
            root = np.sqrt(abs(x.s[k]))
            assert value == pytest.approx(law._strict_energy(x.s, z)[k], rel=1e-12)
            expected = -law.k1[k] / root * (abs(x.s[k]) + (z[k] / law.k1[k]) ** 2)
            assert rate == pytest.approx(expected, rel=1e-9)
            assert rate <= -law.k1[k] * np.sqrt(value / top) * (1.0 - 1e-12)


def test_the_time_is_that_of_the_slowest_fall():
    """V' = - k1 (V / top)^1/2 gives V^1/2 = V_0^1/2 - k1 t / (2 top^1/2): zero for the last joint at
    `_convergence_time`.
    """
    law = controllers.SuperTwisting(ARM, MOTION, rate=[30.0, 80.0])
    top = np.linalg.eigvalsh(super_twisting.P)[1]
    for s, z in RNG.normal(size=(5, 2, 2)):
        left = np.sqrt(law._strict_energy(s, 9.0 * z)) - law.k1 * law._convergence_time(s, 9.0 * z) / (
            2.0 * np.sqrt(top)
        )
        assert left.max() == pytest.approx(0.0, abs=1e-12)
        assert left.min() < -1e-3


def test_s_is_zero_within_the_time_that_v_bounds():
    law = controllers.SuperTwisting(ARM, MOTION, rate=20.0)
    q0, v0 = MOTION(0.0).q, np.array([0.4, -0.8])
    end = law._convergence_time(law.sliding(0.0, q0, v0).s, law.start())
    run = gc.simulate(ARM, law, q0, v0, end, end / 8000.0, monitors=None, options=gc.SimulationOptions(every=8))
    s = np.abs(run.signals["s"])
    assert 0.1 < end < 3.0
    assert s[-1].max() < 1e-5 * s[0].max()
    assert s[len(s) // 20].max() > 1e-2 * s[0].max()


class Disturbed(gc.Plant):
    """A torque that no model contains."""

    @staticmethod
    def push(t):
        return np.array([2.0 + np.sin(3.0 * t), -1.0 + 0.5 * np.sin(5.0 * t)])

    def net_torque(self, t, q, v, tau, x):
        return super().net_torque(t, q, v, tau, x) + self.push(t)


def test_a_torque_that_nobody_models_is_learnt_and_undone():
    """z converges to minus the unknown acceleration; a law with the same gains without z keeps an error."""
    q0, v0, _ = MOTION(0.0)
    law, linear = controllers.SuperTwisting(ARM, MOTION, rate=60.0), controllers.ComputedTorque(ARM, MOTION)
    run, other = (gc.simulate(Disturbed(ARM), c, q0, v0, 2.0, 5e-4, monitors=None) for c in (law, linear))
    M = ARM.mass_matrix(run.q[-1])
    np.testing.assert_allclose(run.z[-1], -np.linalg.solve(M, Disturbed.push(run.t[-1])), atol=0.3)
    assert np.abs(run.signals["s"][-500:]).max() < 2e-3
    assert np.abs(run.signals["e"][-500:]).max() < 0.02 * np.abs(other.signals["e"][-500:]).max()


def test_it_runs_compiled_as_in_python():
    q0, v0, _ = MOTION(0.0)
    run_both_ways(ARM, controllers.SuperTwisting(ARM, MOTION), q0 + 0.2, v0, 0.05, 1e-3)


def test_bad_options_are_named():
    with pytest.raises(ArgumentError, match="rate: expected a positive definite gain"):
        controllers.SuperTwisting(ARM, MOTION, rate=[1.0, 0.0])
    with pytest.raises(ArgumentError, match=r"rate: expected a number or one per joint \(2,\), got a matrix"):
        controllers.SuperTwisting(ARM, MOTION, rate=[[2.0, 0.5], [0.5, 2.0]])
    with pytest.raises(ArgumentError, match="z: expected"):
        controllers.SuperTwisting(ARM, MOTION)._strict_energy(np.zeros(2), np.zeros(3))
