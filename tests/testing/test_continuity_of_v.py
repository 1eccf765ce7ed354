"""Continuity of V in certificates: a V that jumps is refuted with the jump, others are proved continuous."""

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.control.compiled.proving import trace_closed_loop
from geomctrl.control.contracts import Command, Lyapunov
from geomctrl.control.references import Sinusoids, hold
from geomctrl.mechanism import inertia
from geomctrl.mechanism.building import Body
from geomctrl.mechanism.joint import Joint
from geomctrl.testing import evidence
from geomctrl.testing.certificates.validity import is_continuous_everywhere

ARM = models.two_link()
Q_D = np.array([0.5, 1.0])
QUICK = {"levels": False, "budget": 20_000}


def slider():
    mass = inertia.from_com(1.0, np.zeros(3), np.eye(3))
    body = Body("mass", None, Joint.prismatic((1, 0, 0), name="x"), None, mass)
    return gc.Robot.build([body], gravity=(0, 0, 0), name="slider")


SLIDER = slider()


class Spring:
    """tau = - 2 q - 3 v + more, V = 2.5 q^2 + q v + v^2 + less: V' = - 2 q^2 - 2 q v - 5 v^2 + ..., half promised."""

    def __init__(self, less=lambda t, q, v: 0.0, more=lambda t, q, v: 0.0 * v):
        self.less, self.more, self.q_d = less, more, np.zeros(1)

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return Command(-2.0 * q - 3.0 * v + self.more(t, q, v))

    def lyapunov(self, t, q, v, z, plant):
        V = 2.5 * q.dot(q) + q.dot(v) + v.dot(v)
        return Lyapunov(V + self.less(t, q, v), -q.dot(q) - q.dot(v) - 2.5 * v.dot(v))


JUMPS = {
    "rint": lambda t, q, v: 0.05 * np.rint(np.abs(q[0])),
    "round": lambda t, q, v: 0.05 * np.round(q[0] * q[0]),
    "copysign": lambda t, q, v: 0.05 * np.copysign(1.0, np.abs(q[0]) - 0.3) + 0.05,
    "sign": lambda t, q, v: 0.05 * np.sign(np.abs(q[0]) - 0.3) + 0.05,
    "fmod": lambda t, q, v: -0.05 * np.fmod(q[0] * q[0], 0.3),
    "floor": lambda t, q, v: 0.05 * np.floor(np.abs(q[0]) / 0.4),
    "step": lambda t, q, v: np.where(q[0] > 0.4, 0.1, 0.0),
    "branch": lambda t, q, v: 0.1 if q[0] > 0.4 else 0.0,
    "at one end of two": lambda t, q, v: np.where(np.abs(q[0]) < 0.4, 0.0, 0.1 * (q[0] - 0.4)) ** 2,
    "angle": lambda t, q, v: 1e-3 * q[0] * q[0] * np.arctan2(v[0], 0.5 - q[0]),
}


@pytest.mark.parametrize("name", JUMPS)
def test_a_v_that_jumps_is_refuted_where_it_jumps(name):
    """At the reported state V differs from V at a close state by the reported jump, computed here explicitly."""
    law = Spring(JUMPS[name])
    result = testing.certify_lyapunov(law, SLIDER, (1.0, 2.0), **QUICK)
    assert result.status == "refuted", result
    claim = next(c for c in result.claims if "continuous" in c.statement)
    x, h = claim.counterexample, 1e-6
    around = [law.lyapunov(0.0, x.q + a, x.v + b, None, None).value for a in (-h, h) for b in (-h, h)]
    assert max(around) - min(around) > 0.99 * x.excess > 1e-4
    assert "jumps from" in claim.statement


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", ["mod", "remainder"])
def test_a_jump_that_is_not_found_is_not_proved_either(name):
    law = Spring(lambda t, q, v: -0.05 * getattr(np, name)(q[0] * q[0], 0.3))
    assert not testing.certify_lyapunov(law, SLIDER, (1.0, 2.0), **QUICK).proved


def test_a_v_that_jumps_in_time_is_refuted_within_the_times_and_proved_before():
    law = Spring(lambda t, q, v: np.where(t > 5.0, 0.1, 0.0) * q.dot(q))
    result = testing.certify_lyapunov(law, SLIDER, testing.Box(1.0, 2.0, times=(0.0, 9.0)), **QUICK)
    assert result.status == "refuted", result
    assert result.counterexample.t == pytest.approx(5.0, abs=1e-6)
    assert testing.certify_lyapunov(law, SLIDER, testing.Box(1.0, 2.0, times=(0.0, 4.9)), **QUICK).proved


MEETING = {
    "largest": lambda t, q, v: 0.1 * np.maximum(q[0] - 0.4, 0.0) ** 2,
    "where": lambda t, q, v: np.where(q[0] > 0.4, 0.1 * (q[0] - 0.4) ** 2, 0.0),
    "branch": lambda t, q, v: 0.1 * (q[0] - 0.4) ** 2 if q[0] > 0.4 else 0.0,
    "rint beyond the box": lambda t, q, v: 0.05 * np.rint(0.4 * q[0]),
}


@pytest.mark.parametrize("name", MEETING)
def test_branches_that_meet_are_proved(name):
    result = testing.certify_lyapunov(Spring(MEETING[name]), SLIDER, (1.0, 2.0), **QUICK)
    assert result.proved, result


# --- everywhere ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [
    lambda: controllers.PDGravity(ARM, Q_D, strict=True),
    lambda: controllers.Passivity(ARM, hold(ARM, Q_D), strict=True),
    lambda: controllers.ComputedTorque(ARM, Sinusoids(ARM, Q_D, [0.1, 0.1], [1.0, 1.0])),
    lambda: controllers.SlotineLi(ARM, hold(ARM, Q_D)),
])  # fmt: skip
def test_v_of_bundled_laws_is_proved_to_be_continuous(make):
    assert is_continuous_everywhere(trace_closed_loop(gc.Plant(ARM), make()))


@pytest.mark.parametrize(("name", "less"), [*JUMPS.items(), ("pole", lambda t, q, v: 1e-9 / (q[0] - 0.3)),
    ("pole of one sign", lambda t, q, v: 1e-9 / np.abs(q[0])),
    ("root", lambda t, q, v: 1e-9 * np.sqrt(q[0])), ("time", lambda t, q, v: np.where(t > 2.0, 0.1, 0.0))])  # fmt: skip
def test_what_may_jump_somewhere_is_not(name, less):
    assert not is_continuous_everywhere(trace_closed_loop(gc.Plant(SLIDER), Spring(less)))


@pytest.mark.parametrize(("less", "proved"), [
    (lambda t, q, v: 0.0, True), (MEETING["where"], True), (JUMPS["step"], False),
])  # fmt: skip
def test_assertions_say_whether_continuity_is_proved_or_searched(less, proved):
    """A V that falls at a jump passes the search along lines, which is then counted as evidence."""
    law = Spring(lambda t, q, v: -less(t, q, v) if not proved else less(t, q, v))
    with evidence.listening() as heard:
        try:
            testing.assert_lyapunov(law, SLIDER, states=2, search=200, runs=0, bound=True)
        except AssertionError:
            assert not proved
    said = [str(e) for e in heard if e.kind == "searched"]
    assert any("continuity proved" in x for x in said) == proved


# --- values that folding leaves out --------------------------------------------------------------------------------


LEFT_OUT = {
    "0 log": lambda t, q, v: 0.0 * np.log(np.abs(q - 0.123)),
    "x - x": lambda t, q, v: np.sqrt(np.abs(1.0 / (q - 0.123))) - np.sqrt(np.abs(1.0 / (q - 0.123))),
    "0 / x": lambda t, q, v: 0.0 / (q - 0.123),
    "x == x": lambda t, q, v: np.where(1.0 / (q - 0.123) == 1.0 / (q - 0.123), 0.0, 30.0) * v,
    "small": lambda t, q, v: 0.0 * np.sqrt((q - 0.3) ** 2 - 1e-6),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_does_not_exist_somewhere_in_the_box_is_not_proved(name):
    """The law has values at all states where the trace is compared with Python."""
    result = testing.certify_lyapunov(Spring(more=LEFT_OUT[name]), SLIDER, (1.0, 2.0), **QUICK)
    assert not result.proved, result
    assert "have a value" in str(result)


def test_what_does_not_exist_on_part_of_the_box_is_refuted():
    law = Spring(more=lambda t, q, v: 0.0 * np.sqrt(np.abs(q[0] - 0.3) - 0.003) * v)
    result = testing.certify_lyapunov(law, SLIDER, (1.0, 2.0), **QUICK)
    assert result.status == "refuted", result
    assert abs(result.counterexample.q[0] - 0.3) < 0.003


@pytest.mark.parametrize("more", [
    lambda t, q, v: 0.0 * np.log(q + 1.1), lambda t, q, v: 0.0 / (q * q + 1.0), lambda t, q, v: 0.0 * np.exp(q),
])  # fmt: skip
def test_what_is_left_out_and_exists_hinders_no_proof(more):
    result = testing.certify_lyapunov(Spring(more=more), SLIDER, (1.0, 2.0), **QUICK)
    assert result.proved, result
