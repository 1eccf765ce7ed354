"""Further conditions on V: no other zero, a bound for all times, no jumps, no memory."""

import numpy as np
import pytest
from simulation_options import IN_PYTHON

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.control.references import Sinusoids, hold
from geomctrl.testing import evidence
from geomctrl.testing.lyapunov_zeros import _settled

ARM = models.two_link()
Q_D = np.array([0.4, -0.7])
SEEDS = range(3)


class PD:
    """tau = g - 20 e - 5 v, V = T + 10 e . e + more, V' = -5 v . v."""

    q_d = Q_D

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(ARM.gravity_force(q) - 20.0 * (q - Q_D) - 5.0 * v)

    def lyapunov(self, t, q, v, z, plant):
        e = q - Q_D
        return plant.robot.kinetic_energy(q, v) + 10.0 * e @ e + self.more(t, q, v), -5.0 * v @ v

    def more(self, t, q, v):
        return 0.0 * t


class Periodic(PD):
    """V = T + 20 sum (1 - cos e), which is zero again after a full turn."""

    def __call__(self, t, q, v, z):
        return gc.Command(ARM.gravity_force(q) - 20.0 * np.sin(q - Q_D) - 5.0 * v)

    def lyapunov(self, t, q, v, z, plant):
        return plant.robot.kinetic_energy(q, v) + 20.0 * (1.0 - np.cos(q - Q_D)).sum(), -5.0 * v @ v


class Weighted(PD):
    """tau = g - 20 e, V = w(t) (T + 10 e . e): V' = w' / w V without any damping."""

    def __init__(self, weight, slope):
        self.weight, self.slope = weight, slope

    def __call__(self, t, q, v, z):
        return gc.Command(ARM.gravity_force(q) - 20.0 * (q - Q_D))

    def lyapunov(self, t, q, v, z, plant):
        e = q - Q_D
        energy = plant.robot.kinetic_energy(q, v) + 10.0 * e @ e
        return self.weight(t) * energy, self.slope(t) * energy


def accused(law, promise, robot=ARM, **options):
    for seed in SEEDS:
        with pytest.raises(testing.Counterexample) as error:
            testing.assert_lyapunov(law, robot, seed=seed, **options)
        assert error.value.promise == promise, error.value
    return error.value


# --- zeros and times -----------------------------------------------------------------------------------------------


def test_a_zero_near_the_bounds_of_the_domain_is_found():
    result = accused(Periodic(), "definite", region=testing.Region(domain={"q": (-7.0, 7.0)}))
    turns = (result.state.q - Q_D) / (2.0 * np.pi)
    assert np.abs(turns).max() > 0.9
    np.testing.assert_allclose(turns, np.round(turns), atol=1e-3)
    testing.assert_lyapunov(Periodic(), ARM, region=testing.Region(domain={"q": (-6.0, 6.0)}))


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("weight", "slope"),
    [
        (lambda t: np.exp(-t), lambda t: -np.exp(-t)),
        (lambda t: np.exp(-1e-3 * t), lambda t: -1e-3 * np.exp(-1e-3 * t)),
        (lambda t: 1.0 / (1.0 + t), lambda t: -1.0 / (1.0 + t) ** 2),
    ],
)
def test_a_v_that_fades_with_time_proves_nothing(weight, slope):
    assert "bound below" in str(accused(Weighted(weight, slope), "definite"))


def test_a_v_that_falls_to_a_bound_passes_and_so_does_one_on_given_times():
    testing.assert_lyapunov(Weighted(lambda t: 1.0 + np.exp(-t), lambda t: -np.exp(-t)), ARM)
    low = (  # low, but they do not fall further
        Weighted(lambda t: 1e-4 + np.exp(-0.1 * t), lambda t: -0.1 * np.exp(-0.1 * t)),
        Weighted(lambda t: 1e-4 + 1.0 / (1.0 + t), lambda t: -1.0 / (1.0 + t) ** 2),
    )
    for law in low:
        testing.assert_lyapunov(law, ARM, search=600)
    fading = Weighted(lambda t: np.exp(-t), lambda t: -np.exp(-t))
    with evidence.listening() as heard:
        testing.assert_lyapunov(fading, ARM, region=testing.Region(domain={"t": (0.0, 2.0)}))
    assert heard[0].facts["weakened by"] == "only the times of the domain"


def test_an_orbit_stays_away_and_a_decay_comes_back():
    """The largest distance in the second half of the time over that in the first, of |cos t| and of exp(-t)."""
    t = np.linspace(0.0, 20.0, 2001)
    assert _settled(t.tolist(), np.abs(np.cos(t)).tolist()) == pytest.approx(1.0, abs=1e-4)
    assert _settled(t.tolist(), np.exp(-t).tolist()) == pytest.approx(np.exp(-10.0), rel=0.02)
    assert _settled(t.tolist(), np.where(t > 15.0, np.inf, 1.0).tolist()) == np.inf


# --- jumps ---------------------------------------------------------------------------------------------------------


def stairs(t, q, v):
    return 2.0 * np.floor(np.abs(q[0] - Q_D[0]) / 0.7)


def step(t, q, v):
    return np.where(q[0] > 1.2, 3.0, 0.0)


def small_step_of_a_velocity(t, q, v):
    return np.where(v[1] > 0.3, 1e-3, 0.0)


@pytest.mark.quick(2)
@pytest.mark.parametrize("more", [stairs, step, small_step_of_a_velocity])
def test_a_v_that_jumps_upwards_is_accused(more):
    law = PD()
    law.more = more
    accused(law, "continuous")


@pytest.mark.parametrize(
    "more",
    [
        lambda t, q, v: 0.0 * np.floor(q[0]),
        lambda t, q, v: np.where(q[0] > 1.2, 3.0, 3.0) * (q - Q_D).dot(q - Q_D) * 0.0,
    ],
)
def test_a_v_that_does_not_jump_passes(more):
    law = PD()
    law.more = more
    testing.assert_lyapunov(law, ARM)


def test_a_v_may_jump_in_time_downwards_only():
    up = Weighted(lambda t: np.where(t > 1.7, 1.5, 1.0), lambda t: 0.0)
    down = Weighted(lambda t: np.where(t > 1.7, 1.0, 1.5), lambda t: 0.0)
    accused(up, "continuous")
    testing.assert_lyapunov(down, ARM)


def test_a_v_with_a_steep_slope_does_not_jump():
    class Steep(PD):
        def __call__(self, t, q, v, z):
            e = q - Q_D
            return gc.Command(super().__call__(t, q, v, z).tau - 2.0 * e / np.sqrt(e * e + 1e-8))

        def more(self, t, q, v):
            e = q - Q_D
            return 2.0 * (np.sqrt(e * e + 1e-8) - 1e-4).sum()

    testing.assert_lyapunov(Steep(), ARM)


# --- laws with memory ----------------------------------------------------------------------------------------------


class Differentiating(PD):
    last = None

    def __call__(self, t, q, v, z):
        before, self.last = q if self.last is None else self.last, np.array(q)
        command = super().__call__(t, q, v, z)
        return command._replace(tau=command.tau - 100.0 * (q - before))


class Integrating(PD):
    def __init__(self):
        self.total = np.zeros(2)

    def __call__(self, t, q, v, z):
        self.total = self.total + 1e-9 * (q - Q_D)
        command = super().__call__(t, q, v, z)
        return command._replace(tau=command.tau - self.total)


class Remembering(PD):
    def __init__(self):
        self.largest = 0.0

    def lyapunov(self, t, q, v, z, plant):
        V, rate = super().lyapunov(t, q, v, z, plant)
        self.largest = max(self.largest, V)
        return self.largest, rate


@pytest.mark.parametrize(("law", "name"), [(Differentiating, "last"), (Integrating, "total"), (Remembering, "largest")])
def test_a_law_with_a_memory_is_told_about_z(law, name):
    for assertion in (testing.assert_lyapunov, lambda law, arm: testing.assert_sampled(law, arm, 1e-3, level=1.0)):
        with pytest.raises(
            testing.Counterexample, match=rf"the law depends on earlier calls .*{name}.*keep memory in z"
        ):
            assertion(law(), ARM)


def test_a_law_that_keeps_what_does_not_matter_passes():
    class Counting(PD):
        calls = 0

        def __call__(self, t, q, v, z):
            self.calls += 1
            return super().__call__(t, q, v, z)

    testing.assert_lyapunov(Counting(), ARM)


def test_terms_that_are_compiled_while_a_law_is_asked_are_no_memory():
    class Moved(PD):
        """Its torque changes by rounding at one call, like a robot's terms when compiled code replaces loops."""

        calls = 0

        def __call__(self, t, q, v, z):
            self.calls += 1
            command = super().__call__(t, q, v, z)
            return command if self.calls < 300 else command._replace(tau=command.tau * (1.0 + 4e-16))

    testing.assert_lyapunov(Moved(), ARM)

    class Stepping(Moved):
        """Its results change from one call on."""

        def __call__(self, t, q, v, z):
            command = super().__call__(t, q, v, z)
            return command if self.calls < 4000 else command._replace(tau=command.tau * (1.0 + 1e-8))

    with pytest.raises(testing.Counterexample, match=r"the law depends on earlier calls"):
        testing.assert_lyapunov(Stepping(), ARM)


# --- equilibria of laws with a state of their own ------------------------------------------------------------------


def sway():
    return Sinusoids(ARM, ARM.neutral(), 0.3, np.array([0.2, 0.5]), np.array([0.0, 5.0]))


@pytest.mark.quick(1)
@pytest.mark.parametrize("law", [controllers.Composite, controllers.ConcurrentLearning])
@pytest.mark.parametrize("reference", [sway, lambda: hold(ARM, Q_D)])
def test_filters_that_follow_a_motion_are_at_their_equilibrium(law, reference):
    testing.assert_lyapunov(law(ARM, reference()), ARM, states=5, search=600, runs=1)


class LearnsLoad(PD):
    """tau = g - 20 e - 5 v + z, z' = -4 (v + 0.1 sin e); the load z = -load on the joints is unknown to the law."""

    load = np.array([3.0, -1.0])

    def start(self):
        return np.zeros(2)

    def __call__(self, t, q, v, z):
        return gc.Command(super().__call__(t, q, v, z).tau + z - self.load * np.cos(t), -4.0 * v)

    def lyapunov(self, t, q, v, z, plant):
        off = z - self.load * np.cos(t)
        V, rate = super().lyapunov(t, q, v, z, plant)
        return V + off @ off / 8.0, rate + off @ self.load * np.sin(t) / 4.0


def test_the_own_state_is_solved_for_at_each_time():
    law = LearnsLoad()
    domain = {"t": (0.01, 1.0)}
    with pytest.raises(testing.Counterexample, match="promised rate is positive"):  # V = 0 at z = load cos t is found
        testing.assert_lyapunov(law, ARM, region=testing.Region(domain=domain))


class Filtered(PD):
    """A state that goes to 1 by itself and starts slightly off, as `settled` says."""

    def start(self):
        return np.array([1.0 + 1e-5])

    def __call__(self, t, q, v, z):
        return super().__call__(t, q, v, z)._replace(z_rate=1.0 - z)

    def lyapunov(self, t, q, v, z, plant):
        V, rate = super().lyapunov(t, q, v, z, plant)
        return V + 0.5 * (z[0] - 1.0) ** 2, rate - (z[0] - 1.0) ** 2


def test_a_state_that_is_off_by_little_is_solved_for_too():
    """There V is 1e-10 of its value for a state that is off by its own size: more than rounding, 1e-12."""
    testing.assert_lyapunov(Filtered(), ARM, search=600)


def test_a_v_that_is_zero_nowhere_is_still_accused():
    class Lifted(LearnsLoad):
        def lyapunov(self, t, q, v, z, plant):
            V, rate = super().lyapunov(t, q, v, z, plant)
            return V + 0.1, rate

    with pytest.raises(testing.Counterexample, match="V is not zero at the equilibrium"):
        testing.assert_lyapunov(Lifted(), ARM)


# --- evidence ------------------------------------------------------------------------------------------------------


def test_evidence_names_what_was_looked_at_and_what_was_left_out():
    with evidence.listening() as heard:
        testing.assert_lyapunov(PD(), ARM)
    by_kind = {e.kind: str(e) for e in heard}
    for words in ("states 20", "q -1.5 to 1.5", "t 0.01 to 3 s", "spread 0.5", "tolerance 1e-06"):
        assert words in by_kind["sampled"]
    assert "weakened" not in by_kind["sampled"]
    assert "continuity proved" in by_kind["searched"]
    with evidence.listening() as heard:
        testing.assert_lyapunov(PD(), ARM, search=0, bound=True, states=3, rtol=1e-4)
    assert "weakened by states=3, search=0, bound=True" in str(heard[0])
    assert "tolerance 0.0001" in str(heard[0])


def test_gains_too_stiff_for_the_step_of_the_runs_are_not_accused():
    """V is zero where s = 0; the loop returns from there in more steps than a search takes, and diverges with steps
    of 1 ms.
    """
    stiff = controllers.Passivity(ARM, Sinusoids(ARM, [0.0, 0.0], 0.2, 0.4, [0.0, 2.0]), K=600.0)
    with pytest.raises(gc.SimulationError, match=r"or dt = 0\.001 s is too long for it: the state is not finite"):
        gc.simulate(ARM, stiff, [-2.3, 0.15], [0.7, -1.5], 0.3, 1e-3, options=IN_PYTHON)
    with evidence.listening() as heard:
        testing.assert_lyapunov(stiff, ARM, states=10, search=400)
    assert any("UNRESOLVED" in str(e) for e in heard if e.kind == "simulated")


def test_a_law_that_leaves_a_zero_of_v_fast_is_accused():
    """V = s^2 / 2 with s = v - 50 (q - q_d): s = 0 is invariant, and the error there grows by a factor of e in 0.02
    s.
    """

    class Away(controllers.Passivity):
        def __init__(self):
            super().__init__(ARM, hold(ARM, [0.5, 1.0]), Lambda=50.0, K=20.0)
            self.Lambda = -self.Lambda

    with pytest.raises(testing.Counterexample, match="does not return"):
        testing.assert_lyapunov(Away(), ARM, states=3, search=200)
