"""The assertions detect the defects that they test for."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from oracles import assert_power_balanced, properties

import geomctrl as gc
from geomctrl import controllers, inertia, models, so3, testing
from geomctrl.control.references import Sinusoids
from geomctrl.errors import ArgumentError
from geomctrl.papers import factored

BUNDLED = st.sampled_from(models.names()).map(models.load)


def test_a_wrong_coriolis_matrix_fails_with_the_state_that_breaks_it():
    robot = models.panda()

    def plain(q, v):
        return factored.coriolis_matrix(robot, q, v, "plain")

    with pytest.raises(AssertionError, match=r"Mdot - 2C is not skew") as caught:
        testing.assert_skew_symmetric(robot, plain)
    texts = str(caught.value)
    numbers = {}
    for name in ("s", "q", "v"):
        tail = texts.split(f"for {name} = " if name == "s" else f"{name} = [", 1)[1].lstrip("[")
        numbers[name] = np.array([float(x) for x in tail.split("]")[0].split(",")])
    N = robot.mass_matrix_rate(numbers["q"], numbers["v"]) - 2 * plain(numbers["q"], numbers["v"])
    assert abs(numbers["s"] @ N @ numbers["s"]) > 0.01


@pytest.mark.parametrize("form", ["ploen", "christoffel"])
def test_a_right_coriolis_matrix_passes(form):
    robot = models.panda()
    testing.assert_skew_symmetric(robot, lambda q, v: factored.coriolis_matrix(robot, q, v, form))


@pytest.mark.parametrize("error", [1e-6, -1e-9])
def test_small_errors_are_seen(error):
    robot = models.panda()
    with pytest.raises(AssertionError, match="is not skew"):
        testing.assert_skew_symmetric(robot, lambda q, v: robot.coriolis_matrix(q, v) + error * np.eye(7))
    with pytest.raises(AssertionError, match="is not skew"):
        testing.assert_skew_symmetric(
            robot, robot.coriolis_matrix, mass_matrix_rate=lambda q, v: robot.mass_matrix_rate(q, v) * (1.0 + 1e-9)
        )


NO_TOLERANCES = [np.nan, np.inf, -1e-9, "1e-9", None, True, [1e-9], 1j]


@pytest.mark.parametrize("rtol", NO_TOLERANCES, ids=repr)
def test_a_tolerance_under_which_nothing_fails_is_refused(rtol):
    robot = models.two_link()
    law = controllers.PDGravity(robot, robot.neutral())
    with pytest.raises(ArgumentError, match=r"^rtol: expected a finite number, not negative, got"):
        testing.assert_skew_symmetric(robot, lambda q, v: np.ones((2, 2)), rtol=rtol)
    with pytest.raises(ArgumentError, match=r"^rtol: "):
        testing.assert_skew_symmetric(robot, rtol=rtol)
    with pytest.raises(ArgumentError, match=r"^rtol: "):
        testing.assert_lyapunov(law, robot, rtol=rtol)
    for spread in (0.0, *NO_TOLERANCES):
        with pytest.raises(
            ArgumentError, match=r"^region: expected a Region .* spread: expected a positive number from .*, got"
        ):
            testing.assert_lyapunov(law, robot, region=spread)


def test_nan_and_wrong_shapes_fail():
    robot = models.two_link()
    with pytest.raises(AssertionError, match="C: expected a finite 2 x 2 matrix"):
        testing.assert_skew_symmetric(robot, lambda q, v: np.full((2, 2), np.nan))
    with pytest.raises(AssertionError, match="C: expected a finite 2 x 2 matrix"):
        testing.assert_skew_symmetric(robot, lambda q, v: np.zeros(2))


WRONG = {
    "friction": lambda robot, q, v, a: robot.inverse_dynamics(q, v, a) + 1e-3 * v,
    "gravity": lambda robot, q, v, a: robot.inverse_dynamics(q, v, a) + 0.001 * robot.gravity_force(q),
    "half a Coriolis force": lambda robot, q, v, a: (
        robot.inverse_dynamics(q, v, a) - robot.coriolis_matrix(q, v) @ v / 2
    ),
    "a wrong mass": lambda robot, q, v, a: robot.with_payload(1e-3).inverse_dynamics(q, v, a),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["panda", "quadruped"])
def test_wrong_dynamics_fail_the_power_balance(name, wrong):
    robot = models.load(name)
    with pytest.raises(AssertionError, match="energy is not balanced"):
        assert_power_balanced(robot, lambda q, v, a: WRONG[wrong](robot, q, v, a))


@properties
@given(testing.robots(floating_base=None))
def test_random_robots_are_physical(robot):
    assert inertia.is_physical(robot.parameters, strict=True).all()
    assert 1 <= robot.nbodies <= 8
    testing.assert_skew_symmetric(robot, states=1)
    assert_power_balanced(robot, states=1)


@properties
@given(testing.robots(kinds=("revolute", "prismatic"), max_bodies=4, chain=True))
def test_options_of_robots(robot):
    assert {j.kind for j in robot.joints} <= {"revolute", "prismatic"}
    assert robot.parents == tuple(range(-1, robot.nbodies - 1))
    assert robot.nbodies <= 4


@properties
@given(testing.robots(floating_base=True).flatmap(lambda r: st.tuples(st.just(r), testing.states(r, 3))))
def test_floating_base_and_motions(case):
    robot, (q, v, a, v_ref) = case
    assert robot.joints[0].kind == "free"
    assert robot.parents.count(-1) == 1
    assert q.shape == (robot.nq,)
    for x in (v, a, v_ref):
        assert x.shape == (robot.nv,)
        assert np.abs(x).max() <= 3.0


@properties
@given(BUNDLED)
def test_bundled_robots_are_those_of_models(robot):
    assert robot.name in models.names()


PHASES = Phase.generate, Phase.shrink  # without explanations of a failure, which take seconds
SHRINKING = settings(derandomize=True, max_examples=200, database=None, phases=PHASES)


def test_bundled_robots_shrink_to_the_two_link_arm():
    assert find(BUNDLED, lambda r: True, settings=SHRINKING).name == "two_link"
    assert find(BUNDLED, lambda r: r.joints[0].kind == "free", settings=SHRINKING).nv > 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kinds": ()}, "kinds: expected some of revolute, .* got none"),
        ({"kinds": ("revolute", "ball")}, r"kinds: expected some of .* got \['ball'\]"),
        ({"kinds": "free"}, "kinds: expected some of .* got 'free'"),
        ({"max_bodies": 0}, "max_bodies: expected a whole number from 1, got 0"),
        ({"max_bodies": 2.5}, "max_bodies: expected a whole number from 1, got 2.5"),
    ],
)
def test_strategies_refuse_what_draws_nothing(options, message):
    with pytest.raises(ArgumentError, match=message):
        testing.robots(**options)


def test_failing_cases_shrink_to_simple_ones():
    robot = find(testing.robots(), lambda r: r.nbodies >= 3, settings=SHRINKING)
    assert robot.nbodies == 3
    assert [j.kind for j in robot.joints] == ["revolute"] * 3
    assert robot.parents == (-1, 0, 1)
    q, v = find(testing.states(robot), lambda s: np.abs(s[1]).max() > 1.0, settings=SHRINKING)
    assert not q.any()
    assert np.count_nonzero(v) == 1


def test_random_robot_takes_a_tree_and_refuses_what_is_none():
    rng = np.random.default_rng(0)
    robot = testing.random_robot(rng, ["free", "planar"], [-1, 0], aligned=True, gravity=(0, 0, 0), name="puck")
    assert (robot.name, robot.nv, robot.parents) == ("puck", 9, (-1, 0))
    for parents in ([0], [-1, 1], [-1, -2], [-1, 0, 0]):
        with pytest.raises(ArgumentError, match="parents: expected for each of 2 bodies a body before it or -1"):
            testing.random_robot(rng, ["free", "planar"], parents)
    with pytest.raises(ArgumentError, match=r"kinds: expected some of revolute, .* got \['ball'\]"):
        testing.random_robot(rng, ["ball"])


def test_no_states_are_refused():
    """Otherwise they would pass without testing anything."""
    robot = models.two_link()
    for check in (
        testing.assert_skew_symmetric,
        lambda robot, **options: testing.assert_lyapunov(PD(), robot, **options),
    ):
        for states in (0, -1, 1.5, True):
            with pytest.raises(ArgumentError, match="states: expected a whole number from 1, got"):
                check(robot, states=states)
    with pytest.raises(
        ArgumentError, match="runs: expected Runs or how many; count: expected a whole number from 0, got -1"
    ):
        testing.assert_lyapunov(PD(), robot, runs=-1)


def test_without_hypothesis_only_the_strategies_are_missing():
    code = """
import sys
sys.modules["hypothesis"] = None
from geomctrl import models, testing
testing.assert_skew_symmetric(models.two_link(), states=1)
try:
    testing.robots()
except ImportError as error:
    print(error)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "strategies need hypothesis, which is not installed: pip install 'geomctrl[test]'" in out


# --- Lyapunov functions ----------------------------------------------------------------------------------------

ARM = models.two_link()
Q_D = np.array([0.4, -0.7])


class PD:
    """tau = g - 20 e - 5 v, V = T + 10 e . e, V' = -5 v . v; `terms`(T, e . e, v . v) replaces V and V'."""

    def __init__(self, terms=None, torque=None, q_d=Q_D):
        self.terms, self.torque, self.q_d = terms, torque, q_d

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        tau = ARM.gravity_force(q) - 20.0 * (q - Q_D) - 5.0 * v
        return gc.Command(tau if self.torque is None else tau + self.torque(t, v))

    def lyapunov(self, t, q, v, z, plant):
        T, e = plant.robot.kinetic_energy(q, v), q - Q_D
        return (T + 10.0 * e @ e, -5.0 * v @ v) if self.terms is None else self.terms(T, e @ e, v @ v)


def test_a_proof_that_holds_passes():
    testing.assert_lyapunov(PD(), ARM)


BROKEN = {
    "above zero": (
        lambda T, e, v: (T + 10 * e + 1e-3, -5 * v),
        r"V is not zero at the equilibrium \(set by `Region.equilibrium`\): V = 0.001 at t = ",
    ),
    "far above zero": (
        lambda T, e, v: (T + 10 * e + 100.0, -5 * v),
        r"V is not zero at the equilibrium \(set by `Region.equilibrium`\): V = 100 ",
    ),
    "below zero": (
        lambda T, e, v: (T + 10 * e - 1e-3, -5 * v),
        r"V is not zero at the equilibrium \(set by `Region.equilibrium`\): V = -0.001 ",
    ),
    "no position": (
        lambda T, e, v: (T, -5 * v),
        "V is not positive where only q differs from the equilibrium: V = 0 at t = .* q = .* v = ",
    ),
    "no velocity": (
        lambda T, e, v: (10 * e, -5 * v),
        "V is not positive where only v differs from the equilibrium: V = 0 at t = ",
    ),
    "negative": (lambda T, e, v: (-T - 10 * e, -5 * v), "V is not positive: V = -"),
    "zero": (lambda T, e, v: (0.0, 0.0), "V is not positive: V = 0 at t = "),
    "nan": (lambda T, e, v: (np.nan, -5 * v), "V is not positive: V = nan "),
    "infinite": (lambda T, e, v: (np.inf, -5 * v), "V is not positive: V = inf "),
    "rate nan": (lambda T, e, v: (T + 10 * e, np.nan), "the promised rate is positive: nan "),
    "promises too much": (lambda T, e, v: (T + 10 * e, -6 * v), "V does not change as promised: dV/dt = -"),
    "promises too little": (lambda T, e, v: (T + 10 * e, -4 * v), "V does not change as promised: dV/dt = -"),
    "nothing": (lambda T, e, v: None, "lyapunov: expected two numbers, V and its rate, got None at t = "),
    "V alone": (lambda T, e, v: T, "lyapunov: expected two numbers, V and its rate, got "),
    "three": (lambda T, e, v: (T, e, v), "lyapunov: expected two numbers, V and its rate, got "),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_wrong_lyapunov_function_is_caught(name):
    terms, texts = BROKEN[name]
    with pytest.raises(AssertionError, match=texts):
        testing.assert_lyapunov(PD(terms), ARM, runs=0)


def test_a_bound_on_the_rate_may_be_loose_but_not_wrong():
    testing.assert_lyapunov(PD(BROKEN["promises too little"][0]), ARM, bound=True)
    with pytest.raises(AssertionError, match="does not change as promised"):
        testing.assert_lyapunov(PD(BROKEN["promises too much"][0]), ARM, bound=True)


FASTER = "V falls faster than promised here: if the proof says V' <= rate, pass bound=True."
WITHOUT = "Without the plant's {} the claim holds here"


@pytest.mark.parametrize(
    ("plant", "part"),
    [
        (gc.Plant(ARM, gc.Friction(viscous=1.0)), "friction"),
        (gc.Plant(ARM, actuators=gc.actuators.Saturation([1.0, 1.0])), "actuators"),
        (gc.Plant(ARM.with_payload(1.0), gc.Friction(viscous=1e-3)), None),
    ],
)
def test_a_message_names_the_part_of_the_plant_that_the_proof_leaves_out(plant, part):
    law = gc.controllers.PDGravity(ARM, [0.3, 0.5], kp=20.0, kd=5.0)
    with pytest.raises(testing.Counterexample) as caught:
        testing.assert_lyapunov(law, plant, runs=0)
    rates = testing.lyapunov_at(law, plant, *caught.value.state)
    assert (FASTER in caught.value.hint) == (rates.actual < rates.promised)
    named = [name for name in ("friction", "actuators", "f_ext", "stops") if WITHOUT.format(name) in str(caught.value)]
    assert named == ([] if part is None else [part])


def test_a_bound_is_not_advised_where_it_is_given():
    with pytest.raises(testing.Counterexample) as caught:
        testing.assert_lyapunov(PD(BROKEN["promises too much"][0]), ARM, bound=True)
    assert caught.value.hint == ""


def test_an_honest_promise_to_grow_is_caught():
    law = PD(lambda T, e, v: (T + 10.0 * e, v), lambda t, v: 6.0 * v)
    with pytest.raises(AssertionError, match=r"the promised rate is positive: \d"):
        testing.assert_lyapunov(law, ARM, runs=0)


def test_growth_along_a_run_is_caught_where_no_random_state_shows_it():
    kick = PD(torque=lambda t, v: 30.0 * v if t < 0.02 else 0.0)
    testing.assert_lyapunov(kick, ARM, states=3, runs=0, search=0)
    with pytest.raises(AssertionError, match=r"V grows along a run: by .* the run started at t = 0, q = .*, v = "):
        testing.assert_lyapunov(kick, ARM, states=3, runs=1, search=0)
    blow = PD(torque=lambda t, v: 1e9 * v if t < 0.02 else 0.0)
    with pytest.raises(AssertionError, match=r"V does not change as promised|V grows"):
        testing.assert_lyapunov(blow, ARM, states=3, runs=1, search=0)


def test_no_time_before_zero_is_asked_for():
    """A reference need not be defined for all times."""

    class Punctual(PD):
        def lyapunov(self, t, q, v, z, plant):
            assert t >= 0.0, t
            return super().lyapunov(t, q, v, z, plant)

    testing.assert_lyapunov(Punctual(), ARM, states=1000, runs=0)


def test_a_controller_that_returns_no_command_is_named():
    class Silent(PD):
        def __call__(self, t, q, v, z):
            return None

    with pytest.raises(AssertionError, match=r"controller: expected a geomctrl.Command, got None at t = .* q = "):
        testing.assert_lyapunov(Silent(), ARM)
    with pytest.raises(ArgumentError, match=r"controller: expected a .*, which is called with \(t, q, v, z\), got"):
        testing.assert_lyapunov(object(), ARM)


def test_the_equilibrium_is_q_d_or_given_or_asked_for():
    testing.assert_lyapunov(PD(q_d=None), ARM, region=testing.Region(equilibrium=Q_D), runs=1)
    testing.assert_lyapunov(PD(q_d=None), ARM, region=testing.Region(equilibrium=tuple(Q_D)), runs=1)
    testing.assert_lyapunov(
        PD(q_d=None), ARM, region=testing.Region(equilibrium=lambda t: (Q_D, np.zeros(2), None)), runs=1
    )
    with pytest.raises(AssertionError, match="V is not zero at the equilibrium"):
        testing.assert_lyapunov(PD(), ARM, region=testing.Region(equilibrium=Q_D + 0.01))
    with pytest.raises(ArgumentError, match="controller: PD has neither a reference nor q_d: pass the q"):
        testing.assert_lyapunov(PD(q_d=None), ARM)
    with pytest.raises(ArgumentError, match=r"equilibrium: expected shape \(\.\.\., 2\), got \(3,\)"):
        testing.assert_lyapunov(PD(), ARM, region=testing.Region(equilibrium=np.zeros(3)))
    with pytest.raises(ArgumentError, match=r"equilibrium: expected a z of the shape of .* start\(\), None"):
        testing.assert_lyapunov(PD(), ARM, region=testing.Region(equilibrium=(Q_D, np.zeros(2))))


class Rejecting(PD):
    """PD that rejects an unknown constant torque: z' = 2 v, tau - z, V + z . z / 4; V' is still -5 v . v."""

    def __init__(self, weight=0.25, z0=(0.0, 0.0)):
        super().__init__()
        self.weight, self.z0 = weight, np.array(z0)

    def start(self):
        return self.z0

    def __call__(self, t, q, v, z):
        return gc.Command(super().__call__(t, q, v, z).tau - z, 2.0 * v)

    def lyapunov(self, t, q, v, z, plant):
        V, rate = super().lyapunov(t, q, v, z, plant)
        return V + self.weight * z @ z, rate


def test_a_state_that_starts_at_zero_is_tested_too():
    testing.assert_lyapunov(Rejecting(), ARM)
    with pytest.raises(
        AssertionError, match=r"V is not positive where only z differs from the equilibrium: V = 0 .*, z = \["
    ):
        testing.assert_lyapunov(Rejecting(weight=0.0), ARM, runs=0)
    with pytest.raises(AssertionError, match="does not change as promised"):
        testing.assert_lyapunov(Rejecting(weight=0.2), ARM, runs=0)


@pytest.mark.slow
def test_an_equilibrium_where_the_controller_does_not_start():
    law = Rejecting(z0=(1.0, -2.0))
    testing.assert_lyapunov(law, ARM)  # z = 0, where V vanishes, is computed
    testing.assert_lyapunov(law, ARM, region=testing.Region(equilibrium=(Q_D, np.zeros(2))))
    with pytest.raises(
        AssertionError,
        match=r"V is not zero at the equilibrium \(set by `Region.equilibrium`\): .* z = \[ 1., -2.\]",
    ):
        testing.assert_lyapunov(law, ARM, region=testing.Region(equilibrium=(Q_D, np.array([1.0, -2.0]))))
    with pytest.raises(
        ArgumentError, match=r"equilibrium: expected a z of the shape of .*, \[ 1. -2.\], got \[0. 0. 0.\]"
    ):
        testing.assert_lyapunov(law, ARM, region=testing.Region(equilibrium=(Q_D, np.zeros(3))))


def test_a_controller_state_without_a_rate_is_named():
    class Stuck(Rejecting):
        def __call__(self, t, q, v, z):
            return super().__call__(t, q, v, z)._replace(z_rate=None)

    with pytest.raises(AssertionError, match="controller: expected a z_rate if and only if it has a state z, got None"):
        testing.assert_lyapunov(Stuck(), ARM)


def test_estimates_are_displaced_at_their_own_scale():
    """Errors are relative to each term, also for terms that are zero."""
    seen, truth = [], np.array([0.0, 100.0, 1e-3, 2e-3, 0.0])

    class Watching(PD):
        def start(self):
            return truth

        def __call__(self, t, q, v, z):
            return super().__call__(t, q, v, z)._replace(z_rate=truth - z)

        def lyapunov(self, t, q, v, z, plant):
            seen.append(z)
            V, rate = super().lyapunov(t, q, v, z, plant)
            return V + 0.5 * (z - truth) @ (z - truth), rate - (z - truth) @ (z - truth)

    testing.assert_lyapunov(Watching(), ARM, runs=0)
    typical = np.abs(np.array(seen) - truth).max(axis=0) / [2e-3, 100.0, 1e-3, 2e-3, 2e-3]
    assert (typical > 0.1).all()
    assert (typical < 3.0).all()


class Observing(PD):
    """PD beside an observer z on SO(3) of the tip's attitude R: z' = z hat(A omega + phi), A = z^T R, phi = log A.

    Then A' = -hat(phi) A, and of V = T + 10 e . e + phi . phi / 2 the rate is -5 v . v - phi . phi.
    """

    group = gc.groups.SO3()

    def start(self):
        return np.eye(3)

    def attitude(self, q):
        return ARM.pose(q, "tip")[:3, :3]

    def __call__(self, t, q, v, z):
        A = z.T @ self.attitude(q)
        omega = (ARM.jacobian(q, "tip") @ v)[:3]
        return super().__call__(t, q, v, z)._replace(z_rate=A @ omega + so3.log(A))

    def lyapunov(self, t, q, v, z, plant):
        np.testing.assert_allclose(z.T @ z, np.eye(3), atol=1e-12)
        V, rate = super().lyapunov(t, q, v, z, plant)
        phi = so3.log(z.T @ self.attitude(q))
        return V + 0.5 * phi @ phi, rate - phi @ phi


@pytest.mark.slow
def test_a_controller_state_on_a_group_stays_on_it():
    law = Observing()
    testing.assert_lyapunov(law, ARM, region=testing.Region(equilibrium=(Q_D, law.attitude(Q_D))))


def test_an_observer_that_ignores_the_motion_is_caught():
    class Deaf(Observing):
        def __call__(self, t, q, v, z):
            return super().__call__(t, q, v, z)._replace(z_rate=so3.log(z.T @ self.attitude(q)))

    with pytest.raises(AssertionError, match="does not change as promised"):
        testing.assert_lyapunov(Deaf(), ARM, region=testing.Region(equilibrium=(Q_D, Deaf().attitude(Q_D))), runs=0)


@pytest.mark.slow
def test_a_load_that_is_gripped_on_the_way():
    """V is that of the plant at the time; a plant that changes is tested, however late the change is."""
    loaded = ARM.with_payload(0.5, (0.0, 0.0, 0.0), 1e-3 * np.eye(3))
    reference = Sinusoids(ARM, Q_D, 0.3, 0.4)
    for t in (0.1, 30.0):
        plant = gc.Plant(ARM, changes=[(t, loaded)])
        testing.assert_lyapunov(controllers.SlotineLi(ARM, reference, 3.0, 4.0), plant, states=10, runs=1)
        with pytest.raises(AssertionError, match="does not change as promised"):
            testing.assert_lyapunov(controllers.Passivity(ARM, reference, 3.0, 4.0), plant, runs=0)
