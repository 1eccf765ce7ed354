"""The first calls of long chains run in Python until compiling pays, with the results of Pinocchio."""

import subprocess
import sys

import numpy as np
import pytest
from oracles import force_scale, pinocchio, rate_scale

from geomctrl.kernels import algorithms, composite_bodies, newton_euler
from geomctrl.kernels.algorithms import LONG_CHAIN
from geomctrl.testing import random_robot

TERMS = {
    "mass_matrix": ("q",),
    "inverse_dynamics": ("q", "v", "a"),
    "coriolis_matrix": ("q", "v"),
    "forward_dynamics": ("q", "v", "a"),
    "gravity_force": ("q",),
}
FIRST_CALLS = f"""
import numpy as np
from geomctrl.kernels.jit import watch_compiling
from geomctrl.testing import random_robot

rng, names = np.random.default_rng(0), []
robot = random_robot(rng, ["revolute"] * 300, range(-1, 299))
state = dict(zip("qva", rng.normal(size=(3, 300))))
with watch_compiling(names.append):
    for term, arguments in {TERMS}.items():
        getattr(robot, term)(*(state[x] for x in arguments))
    for _ in range(20):
        robot.mass_matrix(state["q"])
print(names)
"""


def chain(bodies, kind="revolute"):
    rng = np.random.default_rng(bodies)
    return random_robot(rng, [kind] * bodies, range(-1, bodies - 1), driven=kind == "revolute")


@pytest.fixture
def nothing_compiled(monkeypatch):
    """As in a process that starts with an empty cache. Names of the entries that ran in Python are in the list."""
    python, names = algorithms.in_python, []

    def in_python(function, signature):
        names.append(function.__name__)
        return python(function, signature)

    monkeypatch.setattr(algorithms, "is_compiled", lambda call: False)
    monkeypatch.setattr(algorithms, "in_python", in_python)
    for algorithm in (composite_bodies.mass_matrix, newton_euler.gravity_force):
        monkeypatch.setattr(algorithm, "_python_time", {})
    return names


@pytest.mark.parametrize("term", TERMS)
@pytest.mark.parametrize("bodies", [LONG_CHAIN + 1, 100, pytest.param(300, marks=pytest.mark.slow)])
def test_the_first_calls_are_pinocchios(bodies, term, monkeypatch):
    monkeypatch.setattr(algorithms, "is_compiled", lambda call: False)
    monkeypatch.setattr(algorithms, "PYTHON_TIME", np.inf)
    robot, theirs = chain(bodies), pinocchio.__wrapped__(chain(bodies))
    rng = np.random.default_rng(1)
    q, v, a = rng.uniform(-1.0, 1.0, (3, bodies))
    if term == "forward_dynamics":  # M is badly conditioned: a, from the torques that give it
        ours = robot.inverse_dynamics(q, v, robot.forward_dynamics(q, v, tau := theirs.inverse_dynamics(q, v, a)))
        np.testing.assert_allclose(ours, tau, rtol=0, atol=1e-10 * np.abs(tau).max())
        return
    state = {"q": q, "v": v, "a": a}
    arguments = [state[x] for x in TERMS[term]]
    if term == "coriolis_matrix":
        ours, expected = robot.coriolis_matrix(q, v, "christoffel"), theirs.coriolis_matrix(q, v)
        scale = rate_scale(robot, q, v)
    else:
        ours, expected = getattr(robot, term)(*arguments), getattr(theirs, term)(*arguments)
        scale = 0.0 if term == "mass_matrix" else force_scale(robot, q, v, a)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-12 * max(np.abs(expected).max(), scale))


def test_calls_run_in_python_until_they_would_have_taken_some_seconds(nothing_compiled, monkeypatch):
    robot, algorithm = chain(LONG_CHAIN + 1), composite_bodies.mass_matrix
    robot.mass_matrix(np.linspace(-1.0, 1.0, robot.nq))
    assert nothing_compiled == ["mass_matrix_one"]
    assert algorithm.entry("one", robot._model) is not algorithm.one
    monkeypatch.setattr(algorithms, "PYTHON_TIME", 0.0)
    assert algorithm.entry("one", robot._model) is algorithm.one


def test_batches_count_by_their_states(nothing_compiled):
    robot = chain(LONG_CHAIN + 1)
    few = robot.gravity_force(np.full((2, robot.nq), 0.1))
    assert nothing_compiled[-1] == "gravity_force_many"  # after the entry for one state refused it
    np.testing.assert_allclose(few[1], robot.gravity_force(np.full(robot.nq, 0.1)), rtol=1e-12)
    del nothing_compiled[:]
    states = int(algorithms.PYTHON_TIME / (algorithms.BODY_TIME * robot.nbodies))
    assert newton_euler.gravity_force.entry("many", robot._model, states) is newton_euler.gravity_force.many
    assert nothing_compiled == []  # a batch that would take all the time in Python does not begin there
    newton_euler.gravity_force.entry("many", robot._model, states // 2)
    assert nothing_compiled == ["gravity_force_many"]
    assert newton_euler.gravity_force.entry("many", robot._model, states // 2) is newton_euler.gravity_force.many
    assert nothing_compiled == ["gravity_force_many"]  # both together would take too long


def test_short_chains_are_compiled_at_once(nothing_compiled):
    robot = chain(LONG_CHAIN)
    assert newton_euler.gravity_force.entry("one", robot._model) is newton_euler.gravity_force.one
    assert nothing_compiled == []


def test_states_without_a_result_are_explained_in_python_as_well(nothing_compiled):
    robot = chain(LONG_CHAIN + 1)
    with pytest.raises(ValueError, match="q: expected finite numbers, got nan"):
        robot.mass_matrix(np.full(robot.nq, np.nan))


@pytest.mark.slow
def test_a_process_with_an_empty_cache_compiles_after_two_seconds_of_calls(tmp_path):
    environment = {"GEOMCTRL_CACHE": str(tmp_path), "GEOMCTRL_COMPILER": "on", "PATH": "", "OMP_NUM_THREADS": "1"}
    for compiled in (["mass_matrix_one"], []):  # the second process finds it in the cache
        run = subprocess.run([sys.executable, "-c", FIRST_CALLS], env=environment, capture_output=True, text=True)
        assert run.stdout.strip() == str(compiled), run
