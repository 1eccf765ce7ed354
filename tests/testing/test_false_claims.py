"""No false claim about a Lyapunov function is proved: earlier failures and generated claims."""

import sys
from pathlib import Path

import numpy as np
import pytest
from linear_loops import KD, KP, MASS, PD, SLIDER, A, form
from scipy.linalg import solve_continuous_lyapunov

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.control.references import hold
from geomctrl.errors import ArgumentError
from geomctrl.testing.certificates import request
from geomctrl.testing.certificates.searching import LargestExcess
from geomctrl.tracing.untraceable import UntraceableError

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments" / "studies"))
from certificate_claims import claims, verdict, violated

ARM, Q_D = models.two_link(), np.array([0.5, 1.0])
BOX = 1.0, 2.0
QUICK = {"budget": 20_000}


class Strict(PD):
    """V of a Lyapunov equation: V' = -5 q^2 - v^2 / 2 for the loop without changes; tau + `more`, V + `less`."""

    def __init__(self, more=lambda t, q, v: 0.0 * v, less=lambda t, q, v: 0.0 * q.dot(q)):
        super().__init__()
        self.P = solve_continuous_lyapunov(A.T, -np.diag([10.0, 1.0]))
        self.more, self.less = more, less

    def __call__(self, t, q, v, z):
        return gc.Command(super().__call__(t, q, v, z).tau + self.more(t, q, v))

    def lyapunov(self, t, q, v, z, plant):
        return gc.Lyapunov(0.5 * form(self.P, q, v) + self.less(t, q, v), -5.0 * q.dot(q) - 0.5 * v.dot(v))


class Late(controllers.Passivity):
    """Damping that has the right sign at t = 1 s only."""

    def __call__(self, t, q, v, z):
        command = super().__call__(t, q, v, z)
        return command._replace(tau=command.tau + 100.0 * (t - 1.0) * v)


class LateWrench:
    def __call__(self, t, q, v):
        return np.array([[0.0 * t] * 5 + [50.0 * (t - 1.0)]] * 2)


# --- time ----------------------------------------------------------------------------------------------------------


def test_what_is_right_at_one_second_only_is_not_proved():
    law = Late(ARM, hold(ARM, Q_D), 5.0, 20.0, strict=True)
    with pytest.raises(
        UntraceableError, match="its V, its V' or the set where it is defined depends on time: expected a Box with"
    ):
        testing.certify_lyapunov(law, ARM, BOX, **QUICK)
    plain = controllers.Passivity(ARM, hold(ARM, Q_D), 5.0, 20.0, strict=True)
    with pytest.raises(UntraceableError, match="depends on time"):
        testing.certify_lyapunov(plain, gc.Plant(ARM, f_ext=LateWrench()), BOX, **QUICK)
    result = testing.certify_lyapunov(law, ARM, testing.Box(*BOX, times=(0.0, 2.0)), **QUICK)
    assert result.status == "refuted"
    assert result.counterexample.t != pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(("push", "status"), [(4.0, "proved"), (20.0, "refuted")])
def test_time_belongs_to_the_box(push, status):
    law = Strict(lambda t, q, v: push * np.exp(-(((t - 3.3) / 0.1) ** 2)) * v)
    result = testing.certify_lyapunov(law, SLIDER, testing.Box(*BOX, times=(0.0, 10.0)), **QUICK)
    assert result.status == status, result
    assert result.region is None
    assert "at times from 0 to 10 s" in str(result)
    if status == "proved":
        pytest.importorskip("flint")
        assert testing.recheck_lyapunov(result).startswith("confirmed")
    else:
        assert result.counterexample.t == pytest.approx(3.3, abs=0.3)


def test_a_branch_of_time_within_the_times_or_not():
    law = Strict(lambda t, q, v: np.where(t > 5.0, 200.0, 0.0) * v)
    assert testing.certify_lyapunov(law, SLIDER, testing.Box(*BOX, times=(0.0, 4.9)), **QUICK).proved
    assert testing.certify_lyapunov(law, SLIDER, testing.Box(*BOX, times=(0.0, 5.1)), **QUICK).status == "refuted"
    with pytest.raises(UntraceableError, match="depends on time"):
        testing.certify_lyapunov(law, SLIDER, BOX, **QUICK)
    for bad in ((1.0, 1.0), (-1.0, 1.0), 3.0, (0.0, np.inf)):
        with pytest.raises(ArgumentError, match="times: expected"):
            testing.certify_lyapunov(law, SLIDER, testing.Box(*BOX, times=bad))


# --- the code that runs --------------------------------------------------------------------------------------------


class Moody(Strict):
    """Another law for symbols than for numbers."""

    def __call__(self, t, q, v, z):
        command = super().__call__(t, q, v, z)
        return command._replace(tau=command.tau + (20.0 * v if getattr(v[0], "graph", None) is None else 0.0 * v))


def test_a_law_that_is_another_one_where_it_is_traced_is_refused():
    with pytest.raises(
        UntraceableError,
        match=r"the traced loop differs from the law in Python: vdot\[0\] is .* in the trace, where Python has",
    ):
        testing.certify_lyapunov(Moody(), SLIDER, BOX, **QUICK)


class Stopping(Strict):
    """A safety stop within the box."""

    def __call__(self, t, q, v, z):
        if q[0] > 0.9:
            raise RuntimeError("stop")
        return super().__call__(t, q, v, z)


def test_a_law_that_raises_within_the_box_is_refuted_there():
    certificate = testing.certify_lyapunov(Stopping(), SLIDER, BOX, **QUICK)
    assert certificate.status == "refuted"
    assert certificate.counterexample.q[0] > 0.9


class StoppingLate(Strict):
    """A safety stop after five seconds, which V and V' do not contain."""

    def __call__(self, t, q, v, z):
        if t > 5.0:
            raise RuntimeError("stop")
        return super().__call__(t, q, v, z)


def test_a_law_that_raises_at_some_time_is_not_proved():
    with pytest.raises(UntraceableError, match="the set where it is defined depends on time"):
        testing.certify_lyapunov(StoppingLate(), SLIDER, BOX, **QUICK)
    assert testing.certify_lyapunov(StoppingLate(), SLIDER, testing.Box(*BOX, times=(0.0, 4.9)), **QUICK).proved
    assert not testing.certify_lyapunov(StoppingLate(), SLIDER, testing.Box(*BOX, times=(0.0, 5.1)), **QUICK).proved


@pytest.mark.parametrize("force", [0.5, 1e-9])
def test_a_set_point_that_is_no_equilibrium_is_refuted_and_named(force):
    law = Strict(lambda t, q, v: force + 0.0 * v)
    certificate = testing.certify_lyapunov(law, SLIDER, BOX, **QUICK)
    assert certificate.status == "refuted"
    assert f"the set point is no equilibrium, vdot[0] = {force / MASS:g}" in str(certificate)
    assert testing.region_of_attraction(law, SLIDER, BOX, budget=QUICK["budget"]).status == "refuted"


def test_a_constant_force_is_no_matter_outside_a_ball():
    law = Strict(lambda t, q, v: 1e-3 + 0.0 * v)
    assert testing.certify_lyapunov(law, SLIDER, BOX, outside=0.05, **QUICK).proved


def test_a_v_without_a_value_at_the_equilibrium_is_not_proved():
    law = Strict(less=lambda t, q, v: q[0] * np.sin(q[0]) / q[0] - np.sin(q[0]))
    assert not testing.certify_lyapunov(law, SLIDER, BOX, **QUICK).proved


# --- offsets, balls, boxes -----------------------------------------------------------------------------------------


def test_a_ball_that_the_box_lies_in_is_refused():
    wrong = Strict(lambda t, q, v: 100.0 * v)
    with pytest.raises(ArgumentError, match="outside: expected an ellipsoid smaller than the box"):
        testing.certify_lyapunov(wrong, SLIDER, BOX, outside=(1.5, 3.0), **QUICK)
    assert testing.certify_lyapunov(wrong, SLIDER, BOX, outside=(1.4, 2.8), **QUICK).status == "refuted"


def test_an_offset_where_v_dot_is_indefinite_is_not_enough_far_out():
    # V' grows with v^2: the offset is sufficient in the ball, but not in the box
    wrong = Strict(lambda t, q, v: 9.0 * v)
    for offset in (0.01, 0.1, 1.0):
        result = testing.certify_lyapunov(wrong, SLIDER, BOX, outside=(0.01, 0.02), offset=offset, **QUICK)
        assert not result.proved, result


def test_the_region_of_attraction_ends_where_the_offset_lets_it():
    law, ball = Strict(), (0.01, 0.02)
    without = testing.certify_lyapunov(law, SLIDER, BOX, outside=ball, **QUICK)
    assert 0.0 < without.ends_in < without.region
    with_offset = testing.certify_lyapunov(law, SLIDER, BOX, outside=ball, offset=20.0, **QUICK)
    assert with_offset.proved
    assert with_offset.region is None  # V' < 20 does not determine the level at which V ends
    both = testing.certify_lyapunov(law, SLIDER, BOX, outside=ball, offset=0.1, rate=1.0, **QUICK)
    assert both.proved
    assert both.ends_in == pytest.approx(0.1)
    result = testing.region_of_attraction(law, SLIDER, BOX, outside=ball, offset=20.0, **QUICK)
    assert result.region is None


def test_rounding_of_the_search_refutes_nothing_that_an_offset_allows(monkeypatch):
    """V' is between 0 and the offset at the state that the search returns."""
    law, x = Strict(lambda t, q, v: 9.0 * v), np.array([0.0, 0.5])
    V_dot = testing.lyapunov_at(law, SLIDER, 1.0, x[:1], x[1:]).actual
    assert 0.0 < V_dot < 2.0
    monkeypatch.setattr(request, "search", lambda e, *_, **__: LargestExcess(1e-9, x, e.model))
    for offset, refuted in ((2.0, False), (1.001 * V_dot, False), (0.999 * V_dot, True)):
        result = testing.certify_lyapunov(law, SLIDER, (0.01, 0.6), outside=(0.005, 0.1), offset=offset, budget=100)
        assert (result.claims[1].status == "refuted") == refuted, result


# --- where V is zero ---------------------------------------------------------------------------------------------


class Leaving(PD):
    """Damping of the wrong sign: x = 0 is unstable. V = 20 - x . W x / 2 is positive on the box, and falls."""

    def __init__(self):
        super().__init__(kd=-KD)
        self.W = solve_continuous_lyapunov(np.array([[0.0, 1.0], [-KP / MASS, KD / MASS]]).T, np.eye(2))

    def lyapunov(self, t, q, v, z, plant):
        return gc.Lyapunov(20.0 - 0.5 * form(self.W, q, v), -0.5 * (q.dot(q) + v.dot(v)))


def test_a_v_that_is_largest_at_the_equilibrium_proves_nothing():
    law = Leaving()
    assert np.linalg.eigvalsh(law.W)[0] > 0.0
    assert 0.5 * form(law.W, np.ones(1), np.full(1, 2.0)) < 20.0
    for outside in (None, 0.1):
        result = testing.certify_lyapunov(law, SLIDER, BOX, outside=outside, **QUICK)
        assert result.status == "refuted", result
        assert "V is zero at the equilibrium: it is 20" in str(result)
        assert result.region is None
        assert not result.counterexample.q.any()
    assert not testing.region_of_attraction(law, SLIDER, BOX, **QUICK).proved


@pytest.mark.parametrize(("off", "status"), [(1e-3, "refuted"), (-1e-3, "refuted"), (1e-18, "undecided")])
def test_a_v_that_is_not_zero_at_the_equilibrium_is_no_lyapunov_function(off, status):
    assert testing.certify_lyapunov(Strict(), SLIDER, BOX, **QUICK).proved
    result = testing.certify_lyapunov(Strict(less=lambda t, q, v: off), SLIDER, BOX, **QUICK)
    assert result.status == status, result


def test_a_file_does_not_prove_that_another_v_is_zero_at_the_equilibrium(tmp_path):
    pytest.importorskip("flint")
    path = testing.certify_lyapunov(Strict(), SLIDER, BOX, **QUICK).save(tmp_path / "proof.npz")
    assert testing.recheck_lyapunov(path, Strict(), SLIDER, BOX).startswith("confirmed")
    with pytest.raises(testing.CheckError, match="V is not shown to be zero at the equilibrium"):
        testing.recheck_lyapunov(path, Strict(less=lambda t, q, v: 1e-3), SLIDER, BOX)


def test_a_level_that_leaves_the_box_is_not_confirmed(tmp_path):
    """V = x . P x / 2 is least on a face x_i = h_i, with h_i^2 / (2 (P^-1)_ii); V' < 0 outside does not help."""
    pytest.importorskip("flint")
    law, path = Strict(), tmp_path / "proof.npz"
    testing.certify_lyapunov(law, SLIDER, BOX, **QUICK).save(path)
    with np.load(path) as file:
        saved = dict(file)
    least = (np.square(BOX) / (2.0 * np.diag(np.linalg.inv(law.P)))).min()
    for share, inside in ((0.9, True), (1.01, False), (1e3, False)):
        text = saved["words"].tolist()
        text[1] += f" where V <= {float(share * least)!r}"
        np.savez(path, **{**saved, "words": np.array(text)})
        if inside:
            assert testing.recheck_lyapunov(path, law, SLIDER, BOX, level=share * least).startswith("confirmed")
            continue
        with pytest.raises(testing.CheckError, match="is not shown to be inside the box"):
            testing.recheck_lyapunov(path, law, SLIDER, BOX, level=share * least)


# --- jumps and kinks -----------------------------------------------------------------------------------------------

JUMPS = {
    "a step": lambda t, q, v: np.where(q[0] > 0.5, 3.0, 0.0),
    "a step down": lambda t, q, v: np.where(v[0] > 0.5, 0.0, 0.3) * q.dot(q),
    "stairs": lambda t, q, v: np.floor(np.abs(q[0]) / 0.7),
    "an angle": lambda t, q, v: 0.01 * np.arctan2(q[0], -1.0 + 0.1 * v[0]) ** 3,
    "a point": lambda t, q, v: np.where(q[0] == 0.5, 3.0, 0.0),
}


@pytest.mark.parametrize("name", JUMPS)
def test_a_v_that_jumps_is_not_proved(name):
    result = testing.certify_lyapunov(Strict(less=JUMPS[name]), SLIDER, BOX, **QUICK)
    assert not result.proved, result


def test_branches_that_meet_are_continuous():
    huber = Strict(less=lambda t, q, v: np.where(np.abs(q[0]) < 0.9, 0.0, 1e-3 * (np.abs(q[0]) - 0.9)))
    claims = testing.certify_lyapunov(huber, SLIDER, BOX, **QUICK).claims
    assert not any("continuous" in claim.statement for claim in claims)


def test_branches_that_meet_on_one_side_only_jump_on_the_other():
    """At q = 0.9 both are 0, at q = -0.9 they are 0 and -1.8e-3."""
    one_sided = Strict(less=lambda t, q, v: np.where(np.abs(q[0]) < 0.9, 0.0, 1e-3 * (q[0] - 0.9)))
    result = testing.certify_lyapunov(one_sided, SLIDER, BOX, **QUICK)
    assert not result.proved, result
    (claim,) = (claim for claim in result.claims if "continuous" in claim.statement)
    assert claim.status == "refuted"
    assert claim.counterexample.q[0] == pytest.approx(-0.9, abs=1e-6)


KINKS = {  # V' > 0 in a corner of the open branch, which quadratic forms about zero alone do not show
    "absolute value": lambda t, q, v: 60.0 * np.maximum(np.abs(v) - 1.5, 0.0),
    "branch": lambda t, q, v: np.where(v > 1.5, 60.0 * (v - 1.5), 0.0),
    "whole number": lambda t, q, v: 6.0 * np.floor(np.abs(v) / 1.9),
    "one speed": lambda t, q, v: np.where(v == 1.0, 600.0, 0.0),
}


@pytest.mark.parametrize("name", KINKS)
def test_kinks_and_branches_of_the_law_are_seen(name):
    result = testing.certify_lyapunov(Strict(KINKS[name]), SLIDER, BOX, **QUICK)
    assert not result.proved, result


def test_a_kink_that_bends_v_below_zero_is_seen_without_the_search(monkeypatch):
    monkeypatch.setattr(request, "search", lambda e, *_, **__: LargestExcess(-1e3, np.zeros(2), e.model))
    for less in (
        lambda t, q, v: -200.0 * np.maximum(np.abs(q[0]) - 0.8, 0.0),
        lambda t, q, v: -np.where(q[0] > 0.8, 200.0 * (q[0] - 0.8), 0.0),
        lambda t, q, v: 80.0 * np.minimum(0.5 - np.abs(q[0]), 0.0),
    ):
        result = testing.certify_lyapunov(Strict(less=less), SLIDER, BOX, **QUICK)
        assert result.claims[0].status == "undecided", result


# --- generated -----------------------------------------------------------------------------------------------------


@pytest.mark.quick(1)
@pytest.mark.parametrize("seed", range(2))
def test_no_wrong_claim_is_proved(seed):
    for claim in claims(right=False, count=10, seed=seed):
        assert verdict(claim, testing.Budget(5000)) != "proved", claim


@pytest.mark.slow
def test_right_claims_are_proved_one_in_two():
    result = [verdict(claim, testing.Budget(5000)) for claim in claims(right=True, count=16, seed=1)]
    assert result.count("proved") >= 8
    assert "refuted" not in result


def test_what_is_wrong_by_construction_is_seen_to_be():
    rng = np.random.default_rng(0)
    claim = next(claims(right=True, count=1, seed=0))
    assert not violated(claim, rng, 4000)
    wrong = claim._replace(law=Strict(lambda t, q, v: 100.0 * v))
    wrong.law.n, wrong.law.numbers = 1, type(claim.law).numbers.__get__(wrong.law)
    type(wrong.law)._V = type(claim.law)._V
    assert violated(wrong, rng, 4000) or claim.law.n == 2
