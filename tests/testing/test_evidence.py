"""Evidence reaches the listeners of its context and no others."""

import contextvars
import functools

import numpy as np
import pytest

from geomctrl import controllers, models, testing
from geomctrl.errors import ArgumentError
from geomctrl.testing import evidence


def where_nobody_listens(test):
    """Run `test` without the plugin's listener, because its evidence is not that of this test."""

    @functools.wraps(test)
    def alone():
        contextvars.Context().run(test)

    return alone


@where_nobody_listens
def test_what_is_recorded_is_heard_in_order_with_its_facts():
    evidence.record("sampled", "before", states=1)
    with evidence.listening() as heard:
        assert heard == []
        evidence.record("sampled", "V of Passivity on panda", states=20, seed=3)
        evidence.record("proved", "skewness")
    evidence.record("sampled", "after", states=1)
    assert [(e.kind, e.subject, dict(e.facts)) for e in heard] == [
        ("sampled", "V of Passivity on panda", {"states": 20, "seed": 3}),
        ("proved", "skewness", {}),
    ]
    assert [str(e) for e in heard] == ["V of Passivity on panda (states 20, seed 3)", "skewness"]


def fails():
    evidence.record("searched", "second")
    raise AssertionError


@where_nobody_listens
def test_who_listens_outside_hears_it_too_and_also_where_something_fails():
    with evidence.listening() as outside:
        evidence.record("sampled", "first")
        with pytest.raises(AssertionError), evidence.listening() as inside:
            fails()
        evidence.record("sampled", "third")
    assert [e.subject for e in inside] == ["second"]
    assert [e.subject for e in outside] == ["first", "second", "third"]


@where_nobody_listens
def test_another_context_hears_nothing():
    with evidence.listening() as heard:
        contextvars.Context().run(evidence.record, "sampled", "elsewhere")
    assert heard == []


@where_nobody_listens
def test_a_kind_that_is_none_is_refused():
    with evidence.listening(), pytest.raises(ArgumentError, match=r"kind: expected one of 'proved', .*, got 'proven'"):
        evidence.record("proven", "something")  # pyright: ignore[reportArgumentType]


@where_nobody_listens
def test_known_counterexamples_are_those_of_a_loop_with_such_a_state():
    q, v, z = np.ones(2), np.zeros(2), np.ones((3, 4))
    alone, with_z, other = (0.0, q, v, None), (1.0, q, v, z), (2.0, np.ones(12), np.zeros(6), None)
    with evidence.replaying([alone, with_z, other]):
        assert evidence.known(2, 2, None) == [alone]
        assert evidence.known(2, 2, (3, 4)) == [with_z]
        assert evidence.known(12, 6, None) == [other]
        assert evidence.known(2, 2, (12,)) == evidence.known(3, 3, None) == []
    assert evidence.known(2, 2, None) == []


@pytest.mark.parametrize(("kd", "dt", "said"), [(150.0, 2e-3, True), (20.0, 1e-3, False)])
def test_runs_that_decide_nothing_are_counted(kd, dt, said):
    """A step that is too long for stiff gains: V grows by truncation, which is neither success nor failure."""
    arm = models.two_link()
    with evidence.listening() as heard:
        law = controllers.PDGravity(arm, [0.5, 1.0], 500.0, kd)
        testing.assert_lyapunov(law, arm, search=0, states=3, runs=testing.Runs(3, dt=dt))
    (run,) = (e for e in heard if e.kind == "simulated")
    assert ("UNRESOLVED" in str(run)) == said
    if said:
        assert "of 3: V grows in the step from t = " in str(run)
        assert "dt = " in str(run).split("UNRESOLVED")[1]
