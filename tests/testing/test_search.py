"""The domain of states, the search in it, and the simplification of its results."""

import itertools

import numpy as np
import pytest
from linear_loops import PD, SLIDER
from oracles import assert_close

import geomctrl as gc
from geomctrl import models, so3, testing
from geomctrl.control.references import Sinusoids
from geomctrl.errors import ArgumentError
from geomctrl.testing.domain import MAX_SPREADS, STATE_KINDS, Domain, Point, State, box
from geomctrl.testing.lyapunov_rate import settled_derivative
from geomctrl.testing.search import _Search, worst
from geomctrl.testing.settings import Region
from geomctrl.testing.shrinking import shrunk

ARM = models.two_link()
TREE = testing.random_robot(np.random.default_rng(3), ["spherical", "revolute", "cylindrical"], [-1, 0, 0])
SO3 = gc.groups.SO3()
Z = np.array([1.0, -2.0, 0.5])


def arm(spread=0.5, times=(0.01, 3.0), **options):
    """States of the two-link arm about a fixed equilibrium, with three parameters."""
    lower, upper = box({"q": 2, "v": 2, "z": 3}, Region(spread), times, np.ones(3))
    return Domain(ARM, lambda t: State(t, np.array([0.25, -0.5]), np.zeros(2), Z), lower, upper, **options)


def tree():
    """States of a tree of joints with several degrees of freedom about a motion, and an attitude that changes, too."""
    reference = Sinusoids(TREE, TREE.neutral(), 0.4, 0.3, np.linspace(0.0, 5.0, TREE.nv))

    def rest(t):
        desired = reference(t)
        return State(t, desired.q, desired.v, so3.exp(np.array([0.3, -0.2, 0.5]) * t))

    lower, upper = box({"q": TREE.nv, "v": TREE.nv, "z": 3}, Region(0.3), (0.1, 2.0), np.ones(3))
    return Domain(TREE, rest, lower, upper, SO3)


@pytest.mark.parametrize("domain", [arm(), tree()], ids=["vectors", "groups"])
@pytest.mark.parametrize("way", STATE_KINDS)
def test_states_are_drawn_within_the_domain_and_have_their_coordinates(domain, way):
    for seed in range(20):
        point = domain.random(np.random.default_rng(seed), way)
        assert (point.x >= domain.lower).all()
        assert (point.x <= domain.upper).all()
        x = domain.state(point)
        assert domain.contains(x)
        assert_close(domain.point(x).x, point.x, 1e-12)
        off = np.count_nonzero(point.x[1:])
        assert {"part": off <= domain.robot.nv + 3, "few": off <= 2}.get(way, off > domain.robot.nv)
        again = domain.moved(x, 0.0, np.zeros(domain.dim - 1))
        assert_close(again.q, x.q, 1e-12)
        far = domain.moved(x, 100.0, np.full(domain.dim - 1, 1.0))
        assert domain.contains(far)
        assert far.t == domain.upper[0]


def test_normal_states_have_the_spread_that_is_asked_for():
    domain = arm({"q": [0.1, 1.0], "v": 2.0, "z": 0.0})
    drawn = np.array([domain.random(np.random.default_rng(k), "about").x for k in range(400)])
    assert_close(drawn[:, 1:5].std(axis=0), [0.1, 1.0, 2.0, 2.0], 0.1)
    assert not drawn[:, 5:].any()
    assert_close(domain.upper[1:], MAX_SPREADS * np.array([0.1, 1.0, 2.0, 2.0, 0.0, 0.0, 0.0]), 1e-15)
    assert domain.names == ["q", "v"]


@pytest.mark.parametrize("domain", [arm(), tree()], ids=["vectors", "groups"])
def test_gradients_are_pulled_back_to_coordinates(domain):
    """Of f(t, q, v, z) along displacements of the state, held against differences over the coordinates."""
    rng = np.random.default_rng(0)
    q0, z0 = domain.robot.random_configuration(rng), SO3.random(rng) if domain.group else rng.normal(size=3)
    weights = rng.normal(size=domain.dim)

    def f(x):
        z = SO3.compose(z0, x.z) if domain.group else x.z - z0
        y = np.concatenate(([x.t], domain.robot.difference(q0, x.q) ** 2, x.v, (z @ np.arange(3.0)).ravel()))
        return float(np.sin(y) @ weights[: len(y)])

    def slope(g, n):
        h = 1e-5
        return np.array([(g(h * e) - g(-h * e)) / (2.0 * h) for e in np.eye(n)])

    n = domain.robot.nv
    for seed in range(5):
        point = domain.random(np.random.default_rng(seed), "about")
        x = domain.state(point)

        def moved(d, x=x):
            q = domain.robot.integrate(x.q, d[1 : 1 + n])
            return State(x.t + d[0], q, x.v + d[1 + n : 1 + 2 * n], domain.moved_z(x.z, d[1 + 2 * n :]))

        of_state = slope(lambda d, moved=moved: f(moved(d)), domain.dim)
        of_x = slope(lambda d, point=point: f(domain.state(Point(point.x + d))), domain.dim)
        assert_close(domain.pulled_back(point, of_state), of_x, 1e-7, max(1.0, np.abs(of_x).max()))


# --- the search ------------------------------------------------------------------------------------------------------


def hill(domain, top):
    """-|x - top|^2 in units of the spreads, and with its gradient; the top may be outside."""
    scale = np.where(domain.scale > 0.0, domain.scale, 1.0)

    def value(x):
        return -float((((domain.point(x).x - top) / scale) ** 2).sum())

    def slope(x):
        return value(x), -2.0 * (domain.point(x).x - top) / scale**2

    return value, slope


@pytest.mark.parametrize("exact", [True, False])
def test_the_top_of_a_hill_is_found_in_the_domain_and_on_its_edge(exact):
    domain = arm()
    for top in (0.4 * domain.upper, 1.7 * domain.upper):
        value, slope = hill(domain, top)
        result = worst(value, domain, np.random.default_rng(1), 3000, slope=slope if exact else None)
        best = np.clip(top, domain.lower, domain.upper)
        assert_close(domain.point(result.state).x, best, 1e-4, np.abs(domain.upper).max())
        assert result.value == value(result.state)
        assert result.evaluations <= 3000
        assert result.starts >= 1500 or result.evaluations < 3000


def test_a_search_is_repeatable_and_ends_where_it_has_found_enough():
    domain = arm()
    value, slope = hill(domain, 0.4 * domain.upper)
    runs = [worst(value, domain, np.random.default_rng(seed), 500, slope=slope) for seed in (3, 3)]
    assert [run.value for run in runs] == [runs[0].value] * 2
    assert str(runs[0]) == str(runs[1])
    assert (
        worst(value, domain, np.random.default_rng(4), 7).value
        != worst(value, domain, np.random.default_rng(3), 7).value
    )
    early = worst(value, domain, np.random.default_rng(3), 500, slope=slope, enough=-1.0)
    assert early.value > -1.0
    assert early.evaluations < runs[0].evaluations
    few = worst(value, domain, np.random.default_rng(3), 7, slope=slope)
    assert few.evaluations == 7
    assert not few.cut_short
    late = worst(value, domain, np.random.default_rng(3), 500, seconds=0.0)
    assert (late.evaluations, late.cut_short) == (1, True)


def slow_clock(seconds):
    """A clock of processor time that advances by this amount at every reading."""
    ticks = itertools.count()
    return lambda: seconds * next(ticks)


@pytest.mark.parametrize("exact", [True, False])
def test_what_is_searched_does_not_depend_on_how_fast_the_machine_is(monkeypatch, exact):
    """On a machine a thousand times slower the result is the same; only a search that does not end is stopped, with
    a message.
    """

    class Law(PD):
        def lyapunov(self, t, q, v, z, plant):
            return super().lyapunov(t, *((q, v) if exact else (np.array([float(x[0])]) for x in (q, v))), z, plant)

    def heard():
        with testing.evidence.listening() as facts:
            testing.assert_lyapunov(Law(), SLIDER, search=300, runs=0)
            testing.passivity_index(Law(), SLIDER, search=200)
        return [x.facts for x in facts]

    usual = heard()
    assert not any("cut short" in facts for facts in usual)
    monkeypatch.setattr("time.thread_time", slow_clock(0.05))
    assert heard() == usual
    monkeypatch.setattr("time.thread_time", slow_clock(100.0))
    cut = [facts for facts in heard() if "evaluations" in facts]
    assert [facts["cut short"] for facts in cut] == ["after 600 s of processor time"] * 3


def test_nan_is_the_worst_of_all_and_given_starts_come_first():
    domain = arm()
    seen = []

    def value(x):
        seen.append(x)
        return np.nan if x.q[0] > 1.0 else 0.0

    start = domain.state(Point(0.3 * domain.upper))
    result = worst(value, domain, np.random.default_rng(0), 400, starts=[start])
    assert np.isnan(result.value)
    assert result.state.q[0] > 1.0
    np.testing.assert_allclose(seen[0].q, start.q, atol=1e-15)


# --- simple states ---------------------------------------------------------------------------------------------------


def test_what_does_not_matter_becomes_zero_and_what_does_a_round_number():
    domain = arm(sources={"z": "controller.true_parameters(plant)"})
    for seed in range(20):
        rng = np.random.default_rng(seed)

        def fails(x):
            return x.v[1] > 0.33 and x.z[0] > 1.2

        result = next(x for x in (domain.state(domain.random(rng)) for _ in range(10_000)) if fails(x))
        simple = shrunk(fails, result, domain)
        assert fails(simple.state)
        assert domain.contains(simple.state)
        assert simple.state.t in (0.5, 1.0, 2.0)
        np.testing.assert_array_equal(simple.state.q, np.zeros(2))
        assert simple.state.v[0] == 0.0
        assert simple.state.v[1] in (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
        assert simple.state.z is not None
        assert np.count_nonzero(simple.state.z - Z) == 1 or np.count_nonzero(simple.state.z) == 1
        scope = {"np": np, "controller": type("", (), {"true_parameters": lambda self, plant: Z})(), "plant": None}
        exec(simple.code, scope)
        for name, x in zip("tqvz", simple.state):
            np.testing.assert_array_equal(scope[name], x)


def test_states_on_groups_stay_on_them():
    domain = tree()
    rng = np.random.default_rng(0)

    def fails(x):
        assert SO3.residual(x.z) < 1e-12
        return so3.log(x.z)[1] < -0.3 and x.v[2] > 0.2

    result = next(x for x in (domain.state(domain.random(rng)) for _ in range(10_000)) if fails(x))
    simple = shrunk(fails, result, domain)
    np.testing.assert_array_equal(simple.state.q, TREE.neutral())
    scope = {"np": np, "robot": TREE, "controller": type("", (), {"group": SO3})}
    exec(simple.code, scope)
    for name, x in zip("tqvz", simple.state):
        np.testing.assert_allclose(scope[name], x, atol=1e-15)


def test_own_states_that_are_drawn_are_kept_or_given_up_whole():
    domain = arm(draw=lambda rng, t: rng.normal(size=3))
    state = domain.state(domain.random(np.random.default_rng(0), "within"))
    seen = []

    def fails(x):
        seen.append(x.z)
        return True

    simple = shrunk(fails, state, domain)
    assert all(np.array_equal(z, Z) or np.array_equal(z, state.z) for z in seen)
    np.testing.assert_array_equal(simple.state.z, Z)


# --- derivatives -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [1.0, 1e2, 1e4])
@pytest.mark.parametrize("one_sided", [False, True])
def test_steps_of_differences_follow_how_stiff_a_function_is(rate, one_sided):
    """For a rate of 1e4 / s the first step is eighty times too long."""
    seen = []

    def f(s):
        seen.append(s)
        return np.exp(rate * s) + np.cos(3.0 * s)

    slope, error = settled_derivative(f, 8e-3, 1e-9 * rate, one_sided)
    assert abs(slope - rate) <= error <= 1e-6 * rate
    assert len(seen) <= 30
    assert not one_sided or min(seen) == 0.0


def test_noise_is_part_of_the_error():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        slope, error = settled_derivative(lambda s, rng=rng: np.sin(s) + 1e-9 * rng.normal(), 8e-3, 1e-12)
        assert abs(slope - 1.0) <= error < 1e-2


def test_boxes_that_are_upside_down_are_none():
    with pytest.raises(ArgumentError, match="domain: expected lower <= upper, got 1 and 0"):
        Domain(ARM, lambda t: State(t, np.zeros(2), np.zeros(2), None), np.ones(5), np.zeros(5))


class Slope:
    """A linear function of a point, whose gradient in units of the spreads is known."""

    def __init__(self, domain, weights):
        self.domain, self.weights = domain, weights

    def at(self, point):
        return float(self.weights @ point.x)


def test_differences_are_those_of_the_points_that_lie_within_the_bounds():
    """At a bound one side is missing: the difference is over half the distance."""
    domain = arm()
    weights = np.arange(1.0, len(domain.lower) + 1.0)
    active = np.arange(1, len(domain.lower))
    point = domain.random(np.random.default_rng(0), "within")
    for x in (domain.upper, domain.lower, 0.5 * (domain.upper + domain.lower)):
        gradient = _Search._differences(Slope(domain, weights), point._replace(x=x.copy()), active)
        np.testing.assert_allclose(gradient, (weights * domain.scale)[active], rtol=1e-6)
