"""Every check of `geomctrl check` fails on a robot with exactly that defect, and on no other."""

import dataclasses
import functools

import numpy as np
import pytest
from cli.command_line import invoke

from geomctrl import models, testing
from geomctrl.errors import ArgumentError
from geomctrl.papers import factored
from geomctrl.robot import Robot
from geomctrl.testing.robot_terms import check_robot, derivative

SKEW, SKEW_C, SKEW_A = (f"Mdot - 2C skew, {form} C" for form in ("Ploen's", "Christoffel's", "the adjoint"))
BIAS, BIAS_C, BIAS_A = (f"C v + g is the bias force, {form} C" for form in ("Ploen's", "Christoffel's", "the adjoint"))
RATE = "Mdot is the derivative of M"
REFERENCE = "M a + C v_ref + g is inverse dynamics"
REGRESSOR = "regressor times parameters, and armature a, is inverse dynamics"
FACTORED_M, FACTORED_C = "recursions equal the factored form: M", "recursions equal the factored form: C"
FORWARD = "forward dynamics inverts inverse dynamics"
POWER = "d(energy)/dt = v . tau"
SYMMETRIC, DEFINITE = "M = M^T", "M > 0: 1 / smallest eigenvalue, scaled"


def corner(n, value=1.0):
    A = np.zeros((n, n))
    A[0, -1] = value
    return A


def term(name, change):
    """`Robot.terms` with one of M, Mdot, C, g changed by change(value, q, v)."""
    return {"terms": lambda out, r, q, v, *a: out._replace(**{name: change(getattr(out, name), q, v)})}


def scaled(name, factor):
    return {name: lambda out, *_: factor * out}


# what is broken: ({method of Robot: wrong(its result, its arguments)}, the checks that must fail, no others)
BROKEN = {
    "M not symmetric": (term("M", lambda M, q, v: M + corner(len(M), 1e-12)), {SYMMETRIC}),
    "M not definite": (
        term("M", lambda M, q, v: M - 2.0 * np.linalg.eigvalsh(M)[0] * np.eye(len(M))),
        {DEFINITE, REFERENCE, FACTORED_M},
    ),
    "M nan": (term("M", lambda M, q, v: np.nan * M), {SYMMETRIC, DEFINITE, REFERENCE, FACTORED_M}),
    "Mdot": (term("Mdot", lambda Mdot, q, v: Mdot * (1.0 + 1e-6)), {SKEW, SKEW_C, SKEW_A, RATE}),
    "Mdot nan": (term("Mdot", lambda Mdot, q, v: np.nan * Mdot), {SKEW, SKEW_C, SKEW_A, RATE, FACTORED_C}),
    "Mdot nan at some states": (
        term("Mdot", lambda Mdot, q, v: Mdot if v[0] > 0.0 else np.nan * Mdot),
        {SKEW, SKEW_C, SKEW_A, RATE, FACTORED_C},
    ),
    "M moves otherwise": (
        {"mass_matrix": lambda M, r, q: M * (1.0 + 1e-3 * np.sin(q[..., -1]))},
        {RATE},
    ),
    "C not skew, C v right": (
        term("C", lambda C, q, v: C + 1e-6 * np.outer(np.ones(len(v)), np.array([v[1], -v[0], *(0.0 * v[2:])]))),
        {SKEW, REFERENCE, FACTORED_C},
    ),
    "C skew, C v wrong": (
        term("C", lambda C, q, v: C + corner(len(v), 1e-5) - corner(len(v), 1e-5).T),
        {BIAS, REFERENCE, FACTORED_C},
    ),
    "Christoffel's C not skew": (
        {"coriolis_matrix": lambda C, r, q, v, form="ploen": C * (1.0 + 1e-6 * (form == "christoffel"))},
        {SKEW_C, BIAS_C},
    ),
    "the adjoint C not skew": (
        {"coriolis_matrix": lambda C, r, q, v, form="ploen": C * (1.0 + 1e-6 * (form == "adjoint"))},
        {SKEW_A, BIAS_A},
    ),
    "g": (term("g", lambda g, q, v: g * (1.0 + 1e-6)), {BIAS, BIAS_C, BIAS_A, REFERENCE}),
    "regressor": (scaled("regressor", 1.0 + 1e-6), {REGRESSOR}),
    "forward dynamics": (scaled("forward_dynamics", 1.0 + 1e-6), {FORWARD}),
    "energy": (scaled("energy", 1.0 + 1e-5), {POWER}),
    "inverse dynamics with friction": (
        {"inverse_dynamics": lambda tau, r, q, v, *a: tau + 1e-3 * v},
        {BIAS, BIAS_C, BIAS_A, REFERENCE, REGRESSOR, FORWARD, POWER},
    ),
}


def break_robot(monkeypatch, wrong):
    for name, change in wrong.items():
        right = getattr(Robot, name)

        def method(*args, right=right, change=change, **options):
            return change(right(*args, **options), *args)

        monkeypatch.setattr(Robot, name, functools.wraps(right)(method))


@pytest.mark.parametrize("robot", ["panda", "three_spheres"])
def test_right_robots_hold(robot):
    outcome = check_robot(models.load(robot), states=5)
    assert len(outcome) == 16
    assert all(c.ok for c in outcome), [c for c in outcome if not c.ok]
    assert any(c.worst > 0.0 for c in outcome)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_robot_fails_the_right_checks(name, monkeypatch):
    wrong, expected = BROKEN[name]
    robot = models.panda()
    break_robot(monkeypatch, wrong)
    assert {c.name for c in check_robot(robot, states=10) if not c.ok} == expected


@pytest.mark.parametrize("function", ["mass_matrix", "coriolis_matrix"])
def test_the_factored_form_is_compared(function, monkeypatch):
    right = getattr(factored, function)
    monkeypatch.setattr(factored, function, lambda *args: right(*args) * (1.0 + 1e-9))
    failed = [c.name for c in check_robot(models.panda(), states=2) if not c.ok]
    assert failed == [FACTORED_M if function == "mass_matrix" else FACTORED_C]


def test_a_failed_check_says_at_which_state(monkeypatch):
    third = iter([0.0, 0.0, 1.0, 0.0, 0.0])
    break_robot(monkeypatch, term("g", lambda g, q, v: g + next(third)))
    failed = next(c for c in check_robot(models.two_link(), states=5) if c.name == BIAS)
    assert failed.state == 2
    assert failed.worst > 1e-3


def test_the_command_line_exits_with_the_reason(monkeypatch):
    break_robot(monkeypatch, scaled("regressor", 1.001))
    result = invoke("check", "two_link", "--states", "3", "--seed", "7")
    assert result.exit_code == 1
    text = " ".join(result.output.split())
    assert text.count("FAILS") == 1
    assert f"{REGRESSOR}: 0.000999 exceeds 1e-10 at state" in text
    assert "of seed 7" in text
    assert "properties hold" not in text


def test_an_inertia_that_no_body_has_is_named():
    robot = models.two_link()
    pi = robot.parameters.copy()
    pi[1, 4] = -1.0
    outcome = check_robot(dataclasses.replace(robot, parameters=pi), states=1)[0]
    assert not outcome.ok
    assert f"body {robot.body_names[1]!r}" in outcome.reason


def test_no_states_are_refused():
    with pytest.raises(ArgumentError, match="states: expected a whole number from 1, got 0"):
        check_robot(models.two_link(), states=0)


def test_the_derivative_is_of_sixth_order():
    assert derivative(lambda t: np.array([t**6 + 3.0 * t, 1.0]), 0.1) == pytest.approx([3.0, 0.0], abs=1e-14)
    errors = [abs(derivative(np.exp, h) - 1.0) for h in (0.2, 0.1)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(6.0, abs=0.1)


def test_random_robots_hold():
    rng = np.random.default_rng(1)
    for _ in range(3):
        robot = testing.random_robot(rng)
        assert all(c.ok for c in check_robot(robot, states=2))
