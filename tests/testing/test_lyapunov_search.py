"""Subtly wrong laws are caught for any seed with the simplest state; correct ones never fail."""

import numpy as np
import pytest
import scipy.linalg

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.control.elastic_joints import ElasticPlant
from geomctrl.control.references import Harmonic, Sinusoids
from geomctrl.errors import ArgumentError
from geomctrl.testing import evidence
from geomctrl.testing.lyapunov_zeros import Zeros

ARM = models.two_link()
Q_D = np.array([0.4, -0.7])
SEEDS = range(10)


def sway(robot):
    n = robot.nv
    return Sinusoids(robot, robot.neutral(), 0.3, np.linspace(0.2, 0.5, n), np.linspace(0.0, 5.0, n))


class PD:
    """tau = g - 20 e - 5 v + a mistake, V = T + 10 e . e, V' = -5 v . v."""

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
    """V' <= 0 except in a ball that has one per cent of the volume of the domain, +-1.5 in four coordinates."""

    centre, width = np.array([0.9, -0.8, 0.7, 0.9]), 0.475

    def wrong(self, t, q, v):
        x = np.concatenate((q - Q_D, v)) - self.centre
        return 30.0 * np.exp(-x @ x / self.width**2) * v

    def lyapunov(self, t, q, v, z, plant):
        V, rate = super().lyapunov(t, q, v, z, plant)
        return V, 0.0 * rate


class FarOut(PD):
    """Wrong where |v|^2 is close to its maximum in the domain, 4.5."""

    def wrong(self, t, q, v):
        return np.array([v[1], 0.0]) / (1.0 + np.exp(10.0 * (4.0 - v @ v)))


class InAWindow(PD):
    """Wrong for a tenth of a second out of three."""

    def wrong(self, t, q, v):
        return v * np.exp(-(((t - 1.55) / 0.03) ** 2))


class Growing(PD):
    """Claims its true rate, which is positive in a small part of the domain."""

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
    """PD with an integrator z of v that is fed back: V' = -5 v . v, except for z with z_0 > 2, two of three units
    away.
    """

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
    """Energy shaping: V = (E - E_d)^2 / 2 is zero at all states with the energy of the upright position."""

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


LONG = ("zero on an orbit", "zero on a line")  # the simulation of the loop shows it


@pytest.mark.parametrize("name", [pytest.param(x, marks=pytest.mark.slow if x in LONG else ()) for x in WRONG])
def test_a_law_that_is_subtly_wrong_is_caught_whatever_the_seed(name):
    law, options, promise = WRONG[name]
    for seed in SEEDS[:5] if name in LONG else SEEDS:
        with pytest.raises(testing.Counterexample) as caught:
            testing.assert_lyapunov(law, ARM, states=1, runs=0, seed=seed, **options)
        assert caught.value.promise == promise


# --- what is printed -----------------------------------------------------------------------------------------------


def significant(x):
    """Number of digits of each number, none for zero."""
    return [
        0 if x == 0.0 else len(f"{abs(x)!r}".split("e")[0].replace(".", "").strip("0")) for x in np.ravel(x).tolist()
    ]


SIMPLE = {  # numbers that are not zero in q, v, z; maximum of digits of each
    "bump": (4, 2),
    "far out": (2, 2),
    "in a window": (1, 1),
    "growing": (3, 2),
    "in z only": (1, 2),
}


@pytest.mark.parametrize("name", SIMPLE)
def test_the_state_that_is_printed_is_simple(name):
    law, options, _ = WRONG[name]
    few, digits = SIMPLE[name]
    for seed in SEEDS:
        with pytest.raises(testing.Counterexample) as caught:
            testing.assert_lyapunov(law, ARM, states=1, runs=0, seed=seed, **options)
        x = caught.value.state
        numbers = np.concatenate((x.q - (0.0 if np.count_nonzero(x.q) < 2 else Q_D), x.v, [] if x.z is None else x.z))
        assert max(significant(x.q) + significant(x.v)) <= digits, x
        assert significant(x.t)[0] <= 2, x
        assert np.count_nonzero(np.abs(numbers) > 1e-12) <= few, x
        assert str(x) in str(caught.value)


def test_a_parameter_that_is_adapted_the_wrong_way_is_the_only_one_off():
    law = WRONG["one wrong sign"][0]
    for seed in SEEDS:
        with pytest.raises(testing.Counterexample) as caught:
            testing.assert_lyapunov(law, ARM, states=1, runs=0, seed=seed)
        z = caught.value.state.z
        assert z is not None
        off = np.flatnonzero(z), np.flatnonzero(z - law.true_parameters(gc.Plant(ARM)))
        assert 13 in off[0] or 13 in off[1]
        assert min(map(len, off)) == 1


@pytest.mark.parametrize("name", WRONG)
def test_what_is_to_be_pasted_reproduces_the_numbers(name, capsys):
    law, options, promise = WRONG[name]
    with pytest.raises(testing.Counterexample) as caught:
        testing.assert_lyapunov(law, ARM, states=1, runs=0, **options)
    error = caught.value
    assert all(line.strip() in str(error) for line in error.paste.splitlines())
    scope = {"controller": law}
    exec(error.paste, scope)
    t, q, v, z = (scope[name] for name in "tqvz")
    for x, y in zip(error.state, (t, q, v, z)):
        np.testing.assert_array_equal(x, y)
    result = testing.lyapunov_at(law, ARM, t, q, v, z)
    assert str(result) in capsys.readouterr().out
    if promise == "derivative":
        assert f"dV/dt = {result.actual:.6g}"[:14] in str(error)
        assert abs(result.actual - result.promised) > 1e-7 * (abs(result.promised) + result.value) + result.error
    elif promise == "rate":
        assert result.promised > 0.0
    else:
        assert result.value < 1e-8
        assert np.linalg.norm(np.concatenate((q - law.q_d, v))) > 0.01


def test_a_robot_that_is_no_bundled_one_is_the_tests_own(capsys):
    robot = ARM.with_payload(0.1, (0, 0, 0), 1e-4 * np.eye(3))
    with pytest.raises(testing.Counterexample) as caught:
        testing.assert_lyapunov(FarOut(), robot, states=1, runs=0)
    assert "models.load" not in caught.value.paste
    exec(caught.value.paste, {"controller": FarOut(), "plant": gc.Plant(robot)})
    assert "actual=" in capsys.readouterr().out


def test_a_run_that_fails_is_pasted_too(capsys):
    class Kicked(PD):
        def wrong(self, t, q, v):
            return 30.0 * v if t < 0.005 else 0.0

    with pytest.raises(
        testing.Counterexample, match=r"V grows along a run: by .* the run started at t = 0, q = "
    ) as caught:
        testing.assert_lyapunov(Kicked(), ARM, states=1)
    assert caught.value.promise == "decrease"
    exec(caught.value.paste, {"controller": Kicked()})
    assert "VIOLATED" in capsys.readouterr().out


# --- right laws ----------------------------------------------------------------------------------------------------

RIGHT = {
    "two_link": ARM,
    "chain": testing.random_robot(np.random.default_rng(4), ["revolute", "prismatic", "helical"], [-1, 0, 1]),
    "ball": testing.random_robot(np.random.default_rng(6), ["spherical", "revolute"], [-1, 0]),
}


def right_laws(robot):
    reference = sway(robot)
    K = 5.0 * np.diag(robot.mass_matrix(robot.neutral()))
    other = robot.with_parameters(1.2 * robot.parameters)
    friction = gc.Friction(0.3, 0.4, smoothing=0.05)
    estimated = {"friction": gc.Friction(0.1, 0.1, smoothing=0.05)}
    bounded = {"minimum_mass": 0.3 * float(robot.parameters[:, 0].min())}
    rough = gc.Plant(robot, friction=friction)
    return {
        "pd": (controllers.PDGravity(robot, robot.neutral(), K, K), robot),
        "computed torque": (controllers.ComputedTorque(robot, reference, 9.0, 6.0), robot),
        "passivity": (controllers.Passivity(robot, reference, 3.0, K, friction=friction), rough),
        "adaptive": (controllers.SlotineLi(other, reference, 3.0, K), robot),
        "adaptive, friction": (controllers.SlotineLi(other, reference, 3.0, K, **estimated), rough),
        "adaptive, bounded": (controllers.SlotineLi(other, reference, 3.0, K, **bounded), robot),
    }


@pytest.mark.slow
@pytest.mark.parametrize("law", right_laws(ARM))
@pytest.mark.parametrize("robot", RIGHT)
def test_right_laws_are_never_accused(robot, law):
    controller, plant = right_laws(RIGHT[robot])[law]
    for seed in SEEDS if robot == "two_link" else SEEDS[:4]:  # the others take three times as long for each seed
        testing.assert_lyapunov(controller, plant, states=3, runs=0, search=2000, seed=seed)


def test_zeros_from_which_the_loop_returns_are_none(monkeypatch):
    """V of a sliding law vanishes where s = 0, also off the equilibrium; the motion on s = 0 leads to the
    equilibrium.
    """
    followed = []
    returns = Zeros._does_return
    monkeypatch.setattr(Zeros, "_does_return", lambda self, x: followed.append(x) or returns(self, x))
    law = controllers.Passivity(ARM, sway(ARM), 3.0, 4.0)
    for seed in range(3):
        testing.assert_lyapunov(law, ARM, states=1, runs=0, seed=seed)
    assert len(followed) >= 3
    for x in followed:
        assert np.abs(law.sliding(x.t, x.q, x.v).s).max() < 1e-4
        assert np.linalg.norm(ARM.difference(law.reference(x.t).q, x.q)) > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("stiffness", [200.0, 500.0, 20000.0])
@pytest.mark.parametrize("name", ["two_link", "panda"])
def test_elastic_joints_are_not_accused_however_stiff(name, stiffness):
    robot = models.load(name)
    reference = Harmonic(np.full(robot.nv, 0.3), 0.3, np.linspace(0.2, 0.4, robot.nv))
    law = controllers.ElasticJoint(robot, reference, stiffness, 0.3, 12.0)
    for seed in range(3):
        testing.assert_lyapunov(law, ElasticPlant(robot, stiffness, 0.3), states=10, runs=0, search=1000, seed=seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("robot", ["two_link", pytest.param("panda", marks=pytest.mark.slow)])
def test_differences_settle_on_stiff_loops(robot, seed):
    """V' of the elastic loop at 500 N m/rad is known in closed form; steps of 1 ms have errors of 1e-3 of it and
    more.
    """
    robot = models.load(robot)
    n = robot.nv
    reference = Harmonic(np.full(n, 0.3), 0.3, np.linspace(0.2, 0.4, n))
    law, plant = controllers.ElasticJoint(robot, reference, 500.0, 0.3, 12.0), ElasticPlant(robot, 500.0, 0.3)
    rng = np.random.default_rng(seed)
    desired = law.reference(1.0)
    q, v = desired.q + 0.5 * rng.normal(size=2 * n), desired.v + 0.5 * rng.normal(size=2 * n)
    result = testing.lyapunov_at(law, plant, 1.0, q, v)
    assert result.error <= 1e-6 * (abs(result.promised) + result.value)
    assert abs(result.actual - result.promised) <= 1e-6 * (abs(result.promised) + result.value) + result.error


class Natural(controllers.SlotineLi):
    """Adaptation on the cone of pseudo-inertias P > 0: P' = -P L P / gamma, L . dP = Y^T s . dp for each body.

    V = 1/2 s . M s + gamma sum log(det P / det P_true) + tr(P^-1 P_true) - 4, V' = -s . K s (Lee, Kwon and Park 2018).
    """

    gamma = 2.0

    def pseudo(self, z):
        return gc.inertia.pseudo(z.reshape(-1, 10))

    def __call__(self, t, q, v, z):
        tau, g, _, _ = self._law(t, q, v, z)
        basis = np.eye(16).reshape(16, 4, 4)
        of_entries = gc.inertia.from_pseudo(0.5 * (basis + basis.swapaxes(1, 2)))
        L = (g.reshape(-1, 10) @ of_entries.T).reshape(-1, 4, 4)
        P = self.pseudo(z)
        rate = P @ L @ P
        return gc.Command(tau, -gc.inertia.from_pseudo(0.5 * (rate + rate.swapaxes(1, 2))).ravel() / self.gamma)

    def lyapunov(self, t, q, v, z, plant):
        x, P, true = self.sliding(t, q, v), self.pseudo(z), gc.inertia.pseudo(plant.robot.parameters)
        with np.errstate(invalid="ignore", divide="ignore"):
            divergence = np.log(np.linalg.det(P) / np.linalg.det(true)) - 4.0
        divergence = divergence + np.trace(np.linalg.solve(P, true), axis1=1, axis2=2)
        return 0.5 * x.s @ plant.robot.mass_matrix(q) @ x.s + self.gamma * divergence.sum(), -x.s @ self.K @ x.s

    def sample_state(self, rng, plant):
        root = np.linalg.cholesky(gc.inertia.pseudo(plant.robot.parameters))
        A = 0.3 * rng.normal(size=root.shape)
        return gc.inertia.from_pseudo(root @ scipy.linalg.expm(A + A.swapaxes(1, 2)) @ root.swapaxes(1, 2)).ravel()


def natural(kind=Natural):
    robot = RIGHT["chain"]
    return kind(robot.with_parameters(1.2 * robot.parameters), sway(robot), 3.0, 4.0), robot


def test_adaptation_on_the_cone_of_inertias_is_judged_on_the_cone():
    law, robot = natural()
    testing.assert_lyapunov(law, robot, states=5, runs=1, search=100)

    class Anywhere(Natural):
        sample_state = None

    with pytest.raises(testing.Counterexample, match=r"V is not positive: V = (nan|-)"):
        testing.assert_lyapunov(*natural(Anywhere), runs=0)

    class Steeper(Natural):
        def lyapunov(self, t, q, v, z, plant):
            V, rate = super().lyapunov(t, q, v, z, plant)
            return V, 1.001 * rate

    with pytest.raises(testing.Counterexample, match="V does not change as promised") as caught:
        testing.assert_lyapunov(*natural(Steeper), runs=0)
    np.testing.assert_array_equal(caught.value.state.z, robot.parameters.ravel())


def test_estimates_with_a_bound_are_drawn_above_what_adaptation_can_reach():
    robot = RIGHT["chain"]
    law = controllers.SlotineLi(robot, sway(robot), minimum_mass=0.9 * float(robot.parameters[:, 0].min()))
    drawn = np.array([law.sample_state(np.random.default_rng(k), gc.Plant(robot)) for k in range(200)])
    assert drawn[:, law.masses].min() == 0.5 * law.minimum_mass
    assert (drawn < 0.0).any()
    assert controllers.SlotineLi(robot, sway(robot)).sample_state(np.random.default_rng(0), gc.Plant(robot)) is None


# --- laws that can not be traced ------------------------------------------------------------------------------------


class Untraceable(PD):
    """A branch on the text of a number, which can not be traced; the bump is where the condition is true."""

    def wrong(self, t, q, v):
        return 20.0 * v if len(f"{v @ v:.0f}") > 0 and v @ v >= 3.0 and q[0] > Q_D[0] else 0.0 * v


def test_laws_that_do_not_trace_are_searched_by_differences():
    with evidence.listening() as heard:
        testing.assert_lyapunov(Growing(), ARM, states=1, runs=0, search=0)
        with pytest.raises(testing.Counterexample, match="does not change as promised"):
            testing.assert_lyapunov(Untraceable(), ARM, states=1, runs=0, seed=1)
        with pytest.raises(testing.Counterexample, match="does not change as promised"):
            testing.assert_lyapunov(FarOut(), ARM, states=1, runs=0, seed=1)
    assert [e.facts["gradients"] for e in heard if e.kind == "searched"] == ["differences", "exact"]
    for seed in SEEDS:
        with pytest.raises(testing.Counterexample, match="does not change as promised") as caught:
            testing.assert_lyapunov(Untraceable(), ARM, states=1, runs=0, seed=seed)
        assert np.isin(caught.value.state.q, (*Q_D, 1.0, 0.5, 0.0)).any()


def test_a_law_that_is_something_else_when_it_is_traced_is_judged_as_it_is():
    """The exact value that the wrong law claims is not used."""

    class Disguised(PD):
        def wrong(self, t, q, v):
            return 0.0 * v if type(v) is not np.ndarray else 30.0 * v * (float(v @ v) > 4.0)

    with pytest.raises(testing.Counterexample, match="does not change as promised"):
        testing.assert_lyapunov(Disguised(), ARM, states=1, runs=0, region={"q": 0.5, "v": 1.0})


# --- arguments -----------------------------------------------------------------------------------------------------


def test_without_a_search_only_samples_are_looked_at():
    with evidence.listening() as heard:
        testing.assert_lyapunov(Bump(), ARM, states=1, runs=0, search=0, bound=True)
    assert [e.kind for e in heard] == ["sampled"]


def test_what_was_searched_is_told_and_repeatable():
    facts = []
    for _ in range(2):
        with evidence.listening() as heard:
            testing.assert_lyapunov(PD(), ARM, states=2, runs=1, seed=5)
        facts.append([(e.kind, dict(e.facts)) for e in heard])
    assert facts[0] == facts[1]
    (_, sampled), (_, searched), (_, simulated) = facts[0]
    assert (sampled["states"], sampled["seed"], searched["seed"], simulated["runs"]) == (2, 5, 5, 1)
    assert 1000 < searched["evaluations"] <= 6100
    assert 500 < searched["starts"] < searched["evaluations"]


def test_states_that_have_failed_before_are_looked_at_first():
    state = 1.0, Q_D + Bump.centre[:2], Bump.centre[2:], None
    with evidence.replaying([state]), pytest.raises(testing.Counterexample) as caught:
        testing.assert_lyapunov(Bump(), ARM, runs=0, search=0, bound=True)
    assert caught.value.source == "known"
    with evidence.replaying([state]):
        testing.assert_lyapunov(PD(), ARM, runs=0, search=0)


def test_spreads_and_boxes_say_where_it_is_looked():
    """The bump is half a unit and more away; a domain without it passes, one with a small part of it fails."""
    options = {"bound": True, "runs": 0, "states": 1}
    testing.assert_lyapunov(Bump(), ARM, region=0.1, **options)
    testing.assert_lyapunov(Bump(), ARM, region={"q": 0.1, "v": 0.5, "z": 1.0}, **options)
    testing.assert_lyapunov(Bump(), ARM, region=testing.Region(domain={"q": (-0.2, [0.2, 0.1])}), **options)
    testing.assert_lyapunov(InAWindow(), ARM, region=testing.Region(domain={"t": (2.0, 5.0)}), states=5, runs=0)
    for domain in ({"q": ([0.0, -1.0], [1.0, 0.0]), "v": (0, 1)}, {"t": (0.0, 0.0), "q": (-2, 2)}):
        with pytest.raises(testing.Counterexample) as caught:
            testing.assert_lyapunov(Bump(), ARM, region=testing.Region(domain=domain), **options)
        off = caught.value.state.q - Q_D
        low, high = domain["q"]
        assert (off >= np.asarray(low) - 1e-9).all()
        assert (off <= np.asarray(high) + 1e-9).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"region": {"q": -1.0}}, "spread: expected a number >= 0 or 2 of them for q, got -1.0"),
        ({"region": {"q": [0.1, 0.2, 0.3]}}, r"spread: expected a number >= 0 or 2 of them .* got \[0.1, 0.2, 0.3\]"),
        ({"region": {"x": 1.0}}, r"spread: expected some of 'q', 'v', 'z' by name, got \{'x': 1.0\}"),
        (
            {"region": {"q": 0.0, "v": 0}},
            "domain: expected a domain larger than the equilibrium, got spreads or sides that",
        ),
        ({"region": {"q": np.nan}}, "spread: expected finite numbers, got nan"),
        ({"domain": {"q": (1.0, -1.0)}}, r"domain: expected \(lower, upper\), finite, lower <= upper, .* for q, got"),
        ({"domain": {"q": (-np.inf, 1.0)}}, "domain: expected finite numbers, got -inf"),
        ({"domain": {"q": (0.5, 1.0)}}, r"domain: expected the equilibrium, 0, within q's, got \(0.5, 1.0\)"),
        ({"domain": {"q": 1.0}}, r"domain: expected a pair \(lower, upper\) for q, got 1.0"),
        ({"domain": {"w": (0, 1)}}, "domain: expected some of 't', 'q', 'v', 'z' by name"),
        ({"domain": [0, 1]}, "domain: expected some of 't', 'q', 'v', 'z' by name"),
        ({"domain": {"t": (-1.0, 1.0)}}, "domain: expected times >= 0, got times from -1 s"),
        ({"domain": {"t": (3.0, 1.0)}}, r"domain: expected \(lower, upper\), finite"),
        ({"domain": {"q": (0, 0), "v": (0, 0)}}, "domain: expected a domain larger than the equilibrium"),
        ({"search": -1}, "search: expected a whole number from 0, got -1"),
        ({"search": 1.5}, "search: expected a whole number from 0, got 1.5"),
    ],
)
def test_domains_that_are_none_are_refused(options, message):
    def called():
        arguments = {"region": testing.Region(**options)} if "domain" in options else options
        testing.assert_lyapunov(PD(), ARM, **arguments)

    with pytest.raises(ArgumentError, match=message):
        called()


@pytest.mark.parametrize(
    "V",
    [np.array([1.0, 2.0]), 1j, "1.0", None, True, np.array("x"), [1.0, 2.0], Ellipsis],
    ids=repr,
)
@pytest.mark.parametrize("where", ["value", "rate"])
def test_a_v_that_is_no_number_is_named_with_the_state(V, where):
    class Odd(PD):
        def lyapunov(self, t, q, v, z, plant):
            value, rate = super().lyapunov(t, q, v, z, plant)
            return (V, rate) if where == "value" else (value, V)

    with pytest.raises(
        testing.Counterexample, match=r"lyapunov: expected two numbers, .*got .* at t = .*, q = .*, v = "
    ):
        testing.assert_lyapunov(Odd(), ARM)


class Drawing(Integrating):
    def __init__(self, drawn):
        self.drawn = drawn

    def wrong_rate(self, z):
        return 0.0 * z

    def sample_state(self, rng, plant):
        return self.drawn


@pytest.mark.parametrize(
    "drawn", [np.zeros(3), np.zeros(0), np.array([np.nan, 0.0]), [1.0, 2.0], "z", 1.0, np.array([1j, 0])], ids=repr
)
def test_states_that_are_none_are_not_drawn(drawn):
    text = (
        r"controller.sample_state\(rng, plant\): expected finite numbers of shape \(2,\) as returned by start\(\), got"
    )
    with pytest.raises(ArgumentError, match=text):
        testing.assert_lyapunov(Drawing(drawn), ARM)


def test_states_that_are_drawn_need_a_function():
    law = Drawing(None)
    testing.assert_lyapunov(law, ARM, states=2, runs=0, search=500)
    law.sample_state = 3.0
    with pytest.raises(
        ArgumentError, match=r"controller.sample_state: expected a function \(rng, plant\) -> z, got 3.0"
    ):
        testing.assert_lyapunov(law, ARM)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"t": -0.1}, "t: expected a time >= 0, got -0.1"),
        ({"q": np.zeros(3)}, r"q: expected shape \(..., 2\)"),
        ({"v": np.zeros((1, 2))}, r"v: expected shape \(2,\), got \(1, 2\)"),
        ({"z": None}, r"z: expected a z of the shape of the controller's start\(\), \[0. 0.\], got None"),
        ({"z": np.zeros(3)}, r"z: expected shape"),
        ({"controller": PD}, "controller: expected"),
    ],
)
def test_one_state_is_looked_at_as_it_is(change, message):
    state = {"controller": Integrating(), "plant": ARM, "t": 0.0, "q": Q_D, "v": np.ones(2), "z": np.array([3.0, 0.0])}
    result = testing.lyapunov_at(**state)
    assert result.value == pytest.approx(ARM.kinetic_energy(Q_D, np.ones(2)) + 2.25, rel=1e-12)
    assert result.promised == -10.0
    assert result.actual == pytest.approx(-10.0 + 0.5 * 3.0 * 1e-3, rel=1e-9)
    with pytest.raises(ArgumentError, match=message):
        testing.lyapunov_at(**(state | change))
