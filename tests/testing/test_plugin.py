"""The pytest plugin, in runs of pytest of its own."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from geomctrl import models
from geomctrl.testing.examples import Examples

HEAD = """
import numpy as np
import pytest

from geomctrl import controllers, models, testing
from geomctrl.testing import evidence
"""
LAWS = """
class Pushed(controllers.PDGravity):
    "It pushes with a torque that its proof knows nothing of."

    push = 0.1

    def __call__(self, t, q, v, z):
        command = super().__call__(t, q, v, z)
        return command._replace(tau=command.tau + self.push * v * v)


def law(robot):
    return controllers.PDGravity(robot, robot.neutral())
"""


@pytest.fixture
def run(pytester):
    """Run pytest on a source in `pytester`'s folder, in a process of its own, as users do."""

    def run(source, *options):
        pytester.makepyfile(test_it=HEAD + LAWS + source)
        return pytester.runpytest_subprocess("-p", "geomctrl.testing.plugin", "-p", "no:cacheprovider", *options)

    return run


def words(result):
    return result.stdout.str()


# --- fixtures ----------------------------------------------------------------------------------------------------


def test_robots_are_the_bundled_ones_or_those_of_the_nearest_marker(run):
    source = """
def test_all(robot):
    assert robot.mass_matrix(robot.neutral()).shape == 2 * (robot.nv,)

floating = models.two_link().with_gravity((0.0, 0.0, 0.0))

@pytest.mark.robots("panda", floating)
class TestSome:
    def test_these(self, robot):
        assert robot is floating or (robot.name == "panda" and robot.nv == 7)

    @pytest.mark.robots("scara")
    def test_this(self, robot):
        assert robot.name == "scara"
"""
    collected = run(source, "--strict-markers", "--collect-only", "-q").outlines
    assert sorted(line.split("::", 1)[1] for line in collected if "::" in line) == sorted([
        *(f"test_all[{name}]" for name in models.names()),
        *("TestSome::test_these[panda]", "TestSome::test_these[two_link]", "TestSome::test_this[scara]"),
    ])
    run(source, "-k", "TestSome or two_link").assert_outcomes(passed=4, deselected=len(models.names()) - 1)


def test_fixtures_and_arguments_of_others_by_the_same_names_are_theirs(run):
    result = run("""
@pytest.fixture
def rng():
    return "mine"

@pytest.fixture(params=[1, 2])
def robot(request):
    return request.param

def test_fixtures(rng, robot):
    assert rng == "mine" and robot in (1, 2)

@pytest.mark.parametrize("closed_loop, rng", [(3, 4)])
def test_arguments(closed_loop, rng):
    assert (closed_loop, rng) == (3, 4)

@pytest.mark.parametrize(["robot"], [[3], [4], [5]])
def test_argument(robot):
    assert robot in (3, 4, 5)

class TestIndirect:
    @pytest.mark.parametrize("robot", ["panda"], indirect=True)
    def test_indirect(self, robot):
        assert robot == "panda"
""")
    result.assert_outcomes(passed=7)


def test_random_numbers_are_a_tests_own_and_the_seeds(run):
    source = """
def test_one(rng):
    print("drawn", rng.integers(2**62))

@pytest.mark.parametrize("k", [0, 1])
def test_two(rng, k):
    print("drawn", rng.integers(2**62))
    assert k == 0
"""

    def drawn(*options):
        result = run(source, "-rA", "--show-capture=all", *options)
        result.assert_outcomes(passed=2, failed=1)
        return sorted(re.findall(r"^drawn (\d+)$", words(result), re.MULTILINE)), result

    first, result = drawn()
    assert len(set(first)) == 3
    assert words(result).count("random numbers: --geomctrl-seed=0 and the test's name repeat them") == 1
    assert drawn("--geomctrl-seed=0", "-n", "2")[0] == first
    other, result = drawn("--geomctrl-seed=7")
    assert not set(other) & set(first)
    result.stdout.fnmatch_lines(["geomctrl: --geomctrl-seed=7", "random numbers: --geomctrl-seed=7 and*"])
    other, result = drawn("--geomctrl-seed=random", "-n", "2")
    seed = re.search(r"^geomctrl: --geomctrl-seed=(\d+)$", words(result), re.MULTILINE)[1]
    assert drawn(f"--geomctrl-seed={seed}")[0] == other
    assert not set(other) & set(first)


@pytest.mark.parametrize("seed", ["-1", "1.5", "some"])
def test_a_seed_that_is_none_is_refused(pytester, seed):
    result = pytester.runpytest_subprocess("-p", "geomctrl.testing.plugin", f"--geomctrl-seed={seed}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--geomctrl-seed: expected a whole number, not negative, or 'random', got '{seed}'"])


def test_a_closed_loop_is_made_once_of_what_the_marker_says(run):
    result = run("""
made = []

def counted(robot):
    made.append(robot.name)
    return law(robot)

def loaded(robot):
    return robot.with_payload(1.0)

robot_of_mine = models.two_link()
law_of_mine = law(robot_of_mine)

@pytest.mark.robots("two_link", "panda")
@pytest.mark.closed_loop(counted, plant=loaded)
class TestOfEachRobot:
    def test_made(self, closed_loop):
        controller, plant = closed_loop
        assert controller.robot.name == plant.robot.name == closed_loop.robot.name
        assert plant.robot.parameters[-1, 0] == controller.robot.parameters[-1, 0] + 1.0

    def test_once(self, closed_loop, robot):
        assert closed_loop.controller.robot is robot
        assert made == ["two_link", "panda"][: len(made)]

@pytest.mark.closed_loop(law_of_mine, robot_of_mine)
def test_as_it_is(closed_loop):
    assert closed_loop.controller is law_of_mine
    assert closed_loop.robot is robot_of_mine

@pytest.mark.closed_loop(controller=counted, plant=robot_of_mine)
def test_of_the_plants_robot(closed_loop):
    assert closed_loop.controller.robot is robot_of_mine
    run = closed_loop.simulate(0.01, 1e-4, start=([0.3, 0.0], [0.0, 0.0]), compiled=False)
    assert run.ok
    assert np.allclose(closed_loop.simulate(0.01, compiled=False).q, 0.0)

@pytest.mark.closed_loop(Pushed(robot_of_mine, [0.0, 0.0], kd=0.1), robot_of_mine)
def test_a_violation_ends_a_run(closed_loop):
    from geomctrl import SimulationError
    with pytest.raises(SimulationError):
        closed_loop.simulate(0.1, start=([0.3, 0.0], [3.0, 3.0]), compiled=False)
    closed_loop.simulate(0.1, start=([0.3, 0.0], [3.0, 3.0]), compiled=False, strict=False)
""")
    result.assert_outcomes(passed=7)


# --- the marker --------------------------------------------------------------------------------------------------

RIGHT_AND_WRONG = """
ran = []

@pytest.mark.robots("two_link", "scara")
@pytest.mark.lyapunov(controller=law, states=2, runs=0)
def test_right(closed_loop):
    ran.append(closed_loop.robot.name)

@pytest.mark.lyapunov(Pushed(models.two_link(), np.zeros(2)), models.two_link(), runs=0)
def test_wrong(closed_loop):
    raise NotImplementedError("the assertion comes first")

def test_the_lines_of_the_tests_were_run():
    assert ran == ["two_link", "scara"]
"""


def test_the_marker_is_the_assertion(run):
    result = run(RIGHT_AND_WRONG, "--strict-markers")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["E*V does not change as promised*q = *v = *"])
    assert "NotImplementedError" not in words(result)
    assert "tests::pytest_pyfunc_call" not in words(result)


SAY_NOTHING = {
    "@pytest.mark.lyapunov(controller=law, state=2)\ndef test_it(closed_loop): pass": (
        "test_it: lyapunov: no option 'state' of assert_lyapunov; known: *states, *"
    ),
    "@pytest.mark.lyapunov(controller=law)\ndef test_it(): pass": (
        "test_it: expected an argument closed_loop, as the test is marked lyapunov"
    ),
    "@pytest.mark.lyapunov(law, models.two_link(), 3, states=2)\ndef test_it(closed_loop): pass": (
        "pytest.mark.lyapunov() takes from 0 to 2 positional arguments but 3 were given"
    ),
    "@pytest.mark.closed_loop(law, plan=1)\ndef test_it(closed_loop): pass": (
        "pytest.mark.closed_loop() got an unexpected keyword argument 'plan'"
    ),
    "@pytest.mark.lyapunov(states=2)\ndef test_it(closed_loop): pass": (
        "test_it: closed_loop: expected a marker closed_loop(controller, plant), or lyapunov with both"
    ),
    "@pytest.mark.robots('panda', 'pnda')\ndef test_it(robot): pass": (
        "test_it: robots: expected Robots, or some of 'two_link', *, got 'pnda'"
    ),
    "@pytest.mark.robots()\ndef test_it(robot): pass": "test_it: robots: expected Robots, *, got 'none'",
    "def given(robot): return lambda: None\n@pytest.mark.lyapunov(given)\ndef test_it(closed_loop): pass": (
        "given: is marked 'lyapunov', and is no test; what is a marker's only argument needs its name:"
        " pytest.mark.lyapunov(controller=given)"
    ),
}


def test_markers_that_are_of_no_use_are_refused_when_tests_are_collected(pytester):
    files = {f"test_{k}": HEAD + LAWS + source for k, source in enumerate(SAY_NOTHING)}
    pytester.makepyfile(**files)
    result = pytester.runpytest_subprocess("-p", "geomctrl.testing.plugin", "--strict-markers")
    result.assert_outcomes(errors=len(SAY_NOTHING))
    for said in SAY_NOTHING.values():
        result.stdout.fnmatch_lines_random([f"*{said}"])


# --- what tests rest on ------------------------------------------------------------------------------------------

EVIDENCE = """
from hypothesis import given, settings

def test_proved():
    evidence.record("sampled", "V of a law", states=20, seed=3)
    evidence.record("proved", "V' < 0 of a law", boxes=5120)

@settings(max_examples=5, derandomize=True, database=None, deadline=None)
@given(testing.bundled_robots())
def test_sampled(robot):
    for n in (2, 5):
        evidence.record("searched", "V' of a law", evaluations=100 * n, seed=4)

def test_failed():
    evidence.record("proved", "something else")
    assert False

@pytest.mark.xfail
def test_expected_to_fail():
    evidence.record("proved", "something else")
    assert False

def test_nothing():
    pass
"""
LISTED = [
    "test_it.py::test_proved",
    "  proved     V' < 0 of a law (boxes 5120)",
    "  sampled    V of a law (states 20, seed 3)",
    "test_it.py::test_sampled",
    r"  searched   V' of a law \(\d+ times, evaluations 200 to 500, seed 4\)",
]


@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["alone", "in two processes"])
def test_what_was_found_is_listed_by_test_with_seeds_and_counts(run, options):
    result = run(EVIDENCE, *options)
    result.assert_outcomes(passed=3, failed=1, xfailed=1)
    lines = words(result).splitlines()
    start = next(k for k, line in enumerate(lines) if re.fullmatch("=+ geomctrl: 1 proved, 1 searched, 1 sampled =+", line))
    for line, expected in zip(lines[start + 1 :], LISTED):
        assert re.fullmatch(expected if "times" in expected else re.escape(expected), line), line
    assert lines[start + 1 + len(LISTED)].startswith("=")  # nothing of tests that failed
