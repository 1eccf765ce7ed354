"""The pytest plugin, tested in separate runs of pytest."""

import contextvars
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import controllers, models, testing
from geomctrl.errors import ArgumentError
from geomctrl.testing import evidence
from geomctrl.testing.counterexample import Examples

# modules that runs within this process import: they are loaded once, and not for each run
LOADED = (*(getattr(testing, name) for name in testing.__all__), controllers.PDGravity, models.names, evidence.record)

HEAD = """
import numpy as np
import pytest

import geomctrl as gc
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


@pytest.fixture(autouse=True)
def no_plugins_of_others(monkeypatch):
    """Disable the plugins of hypothesis, zarr and anyio: importing them takes longer than most of these tests."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def run(pytester):
    """Run pytest on a source in `pytester`'s folder; `alone`: in a separate process, as tests that compute need."""

    def run(source, *options, alone=False):
        if source is not None:
            pytester.makepyfile(test_it=HEAD + LAWS + source)
        options = ("-p", "geomctrl.testing.plugin", "-p", "no:cacheprovider", "--strict-markers", *options)
        if "-n" in options:
            options = ("-p", "xdist.plugin", *options)
        if alone or "-n" in options:
            return pytester.runpytest_subprocess(*options)
        # without listeners: evidence of the inner tests is not evidence of this test
        return contextvars.Context().run(pytester.runpytest_inprocess, *options)

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
    collected = run(source, "--collect-only", "-q").outlines
    assert sorted(line.split("::", 1)[1] for line in collected if "::" in line) == sorted(
        [
            *(f"test_all[{name}]" for name in models.names()),
            *("TestSome::test_these[panda]", "TestSome::test_these[two_link]", "TestSome::test_this[scara]"),
        ]
    )
    run(source, "-k", "TestSome or two_link", alone=True).assert_outcomes(passed=4, deselected=len(models.names()) - 1)


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


@pytest.mark.slow
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
    assert words(result).count("random numbers: reproduce with --geomctrl-seed=0 and this test") == 1
    assert drawn("--geomctrl-seed=0", "-n", "2")[0] == first
    other, result = drawn("--geomctrl-seed=7")
    assert not set(other) & set(first)
    result.stdout.fnmatch_lines(
        ["geomctrl: --geomctrl-seed=7", "random numbers: reproduce with --geomctrl-seed=7 and*"]
    )
    other, result = drawn("--geomctrl-seed=random", "-n", "2")
    seed = re.search(r"^geomctrl: --geomctrl-seed=(\d+)$", words(result), re.MULTILINE)[1]
    assert drawn(f"--geomctrl-seed={seed}")[0] == other
    assert not set(other) & set(first)


@pytest.mark.parametrize("seed", ["-1", "1.5", "some"])
def test_a_seed_that_is_none_is_refused(run, seed):
    result = run(None, f"--geomctrl-seed={seed}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--geomctrl-seed: expected a whole number, not negative, or 'random', got '{seed}'"])


@pytest.mark.slow
def test_a_closed_loop_is_made_once_of_what_the_marker_says(run):
    result = run(
        """
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
    run = closed_loop.simulate(0.01, 1e-4, q0=[0.3, 0.0], options=gc.SimulationOptions(compiled=False, strict=True))
    assert run.ok
    assert np.allclose(closed_loop.simulate(0.01, options=gc.SimulationOptions(compiled=False, strict=True)).q, 0.0)

@pytest.mark.closed_loop(Pushed(robot_of_mine, [0.0, 0.0], kd=0.1), robot_of_mine)
def test_a_violation_ends_a_run(closed_loop):
    from geomctrl import SimulationError
    with pytest.raises(SimulationError):
        strict = gc.SimulationOptions(compiled=False, strict=True)
        closed_loop.simulate(0.1, q0=[0.3, 0.0], v0=[3.0, 3.0], options=strict)
    closed_loop.simulate(0.1, q0=[0.3, 0.0], v0=[3.0, 3.0], options=gc.SimulationOptions(compiled=False))
""",
        alone=True,
    )
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


@pytest.mark.slow
def test_the_marker_is_the_assertion(run):
    result = run(RIGHT_AND_WRONG, alone=True)
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["E*V does not change as promised*q = *v = *"])
    assert "NotImplementedError" not in words(result)
    assert "tests::pytest_pyfunc_call" not in words(result)


SAY_NOTHING = {
    "@pytest.mark.lyapunov(controller=law, state=2)\ndef test_it(closed_loop): pass": (
        "test_it: lyapunov: no option 'state' of assert_lyapunov; known: *states, *"
    ),
    "@pytest.mark.lyapunov(controller=law)\ndef test_it(): pass": (
        "test_it: expected an argument closed_loop, because the test is marked lyapunov"
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
        "given: is marked 'lyapunov', but is not a test; a marker with one argument needs its name:"
        " pytest.mark.lyapunov(controller=given)"
    ),
}


def test_markers_that_are_of_no_use_are_refused_when_tests_are_collected(run, pytester):
    pytester.makepyfile(**{f"test_{k}": HEAD + LAWS + source for k, source in enumerate(SAY_NOTHING)})
    result = run(None)
    result.assert_outcomes(errors=len(SAY_NOTHING))
    for said in SAY_NOTHING.values():
        result.stdout.fnmatch_lines_random([f"*{said}"])


# --- what tests rest on ------------------------------------------------------------------------------------------

EVIDENCE = """
def test_proved():
    evidence.record("sampled", "V of a law", states=20, seed=3)
    evidence.record("proved", "V' < 0 of a law", boxes=5120)

def test_sampled():
    for n in (4, 2, 5):
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
    "  searched   V' of a law (3 times, evaluations 200 to 500, seed 4)",
]


@pytest.mark.parametrize(
    "options", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)], ids=["one", "two processes"]
)
def test_what_was_found_is_listed_by_test_with_seeds_and_counts(run, options):
    result = run(EVIDENCE, *options)
    result.assert_outcomes(passed=3, failed=1, xfailed=1)
    lines = words(result).splitlines()
    start = next(
        k for k, line in enumerate(lines) if re.fullmatch("=+ geomctrl: 1 proved, 1 searched, 1 sampled =+", line)
    )
    assert lines[start + 1 : start + 1 + len(LISTED)] == LISTED
    assert lines[start + 1 + len(LISTED)].startswith("=")  # no evidence of tests that failed


def test_long_lists_are_cut_and_short_output_has_totals_alone(run):
    source = """
@pytest.mark.parametrize("k", range(45))
def test_many(k):
    evidence.record("sampled", "V of a law", states=k)
"""
    result = run(source)
    result.stdout.fnmatch_lines(["=* geomctrl: 45 sampled =*", "and 5 more tests (all: -v)"])
    assert words(result).count("V of a law") == 40
    assert words(run(source, "-v")).count("V of a law") == 45
    quiet = run(source, "-q")
    assert [line for line in words(quiet).splitlines() if "geomctrl" in line] == ["geomctrl: 45 sampled (by test: -v)"]
    assert "V of a law" not in words(quiet)
    assert "geomctrl:" not in words(run("def test_nothing(): pass"))


@pytest.mark.parametrize("options", [(), ("-q",), ("-v",), ("-ra",)])
def test_failures_come_last(run, options):
    lines = words(run(EVIDENCE, *options)).splitlines()
    listed = max(k for k, line in enumerate(lines) if "geomctrl:" in line)
    assert listed < next(k for k, line in enumerate(lines) if "= FAILURES =" in line)
    assert any(line.startswith("FAILED test_it.py::test_failed") for line in lines[-3:])


@pytest.mark.slow
def test_a_failing_property_shrinks_to_the_simplest_robot_and_state(run):
    result = run(
        """
from hypothesis import Phase, given, settings, strategies as st

shrinking = settings(derandomize=True, database=None, deadline=None, phases=[Phase.generate, Phase.shrink])

@shrinking
@given(st.sampled_from(models.names()).map(models.load).flatmap(lambda r: st.tuples(st.just(r), testing.states(r))))
def test_of_bundled_robots(case):
    robot, (q, v) = case
    evidence.record("sampled", "a property of bundled robots", states=1)
    print("looked at", robot.name, q.tolist(), v.tolist())
    assert robot.nv > 100

@shrinking
@given(testing.robots(kinds=("prismatic", "revolute")).flatmap(lambda r: st.tuples(st.just(r), testing.states(r))))
def test_of_random_robots(case):
    robot, (q, v) = case
    print("looked at", [j.kind for j in robot.joints], v.tolist())
    assert v[0] < 0.003
""",
        alone=True,
    )
    result.assert_outcomes(failed=2)
    looked_at = re.findall(r"^looked at (.*)$", words(result), re.MULTILINE)
    bundled = [line for line in looked_at if not line.startswith("[")]
    assert bundled[-1] == "two_link [0.0, 0.0] [0.0, 0.0]"
    assert looked_at[-1] == "['prismatic'] [0.003]"


# --- counterexamples ---------------------------------------------------------------------------------------------

SMALL = """
from geomctrl.testing.domain import State

class Broken(AssertionError):
    def __init__(self, t, q, v, z=None):
        super().__init__(f"too large at q = {q}")
        self.state = State(t, np.array(q), np.array(v), z)

def assert_small(limit, tries, z=None):
    "That q[0] is within `limit`, at states known and at such as tried."
    for t, q, v, z in evidence.known(1, 1, None if z is None else z.shape):
        print("known", t, q, v, z)
        if abs(q[0]) > limit:
            raise Broken(t, q, v, z)
    for x in tries:
        if abs(x) > limit:
            raise Broken(0.25, [x], [1.0], z)
"""


@pytest.mark.parametrize(
    "options", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)], ids=["one", "two processes"]
)
def test_a_counterexample_is_kept_and_looked_at_first_until_the_test_passes(run, pytester, options):
    def source(limit, tries):
        return (
            SMALL
            + f"""
@pytest.mark.parametrize("name", ["one", 'long "name", with/all\\\\n\\\\t' * 9, "ä"])
def test_small(name):
    assert_small({limit}, {tries} if name != "ä" else [])

def test_of_another():
    assert_small(5.0, [])
"""
        )

    folder = pytester.path / ".geomctrl"
    if not options:
        run(source(1.0, [0.5, 0.75])).assert_outcomes(passed=4)
        assert not folder.exists()
    result = run(source(0.6, [0.5, 0.75]), *options)
    result.assert_outcomes(failed=2, passed=2)
    kept = sorted(path.name for path in folder.iterdir())
    assert len(kept) == 5  # a state and a script each, and .gitignore
    assert (folder / ".gitignore").read_text() == "*\n"
    result.stdout.fnmatch_lines(
        ["counterexample stored; the next run tests it first: .geomctrl/test_it.py-test_small-one-*.npz"]
    )
    for path in folder.glob("*.npz"):
        with np.load(path, allow_pickle=False) as found:
            assert (found["t"], found["q"].tolist(), found["v"].tolist()) == (0.25, [0.75], [1.0])
            assert "z" not in found
            assert str(found["failure"]) == "too large at q = [0.75]"
    # no random state fails now, but the stored one does
    result = run(source(0.6, []), *options)
    result.assert_outcomes(failed=2, passed=2)
    assert words(result).count("known 0.25 [0.75] [1.] None") == 2
    assert sorted(path.name for path in folder.iterdir()) == kept
    for script in sorted(folder.glob("*-one-*.py" if options else "*long*.py")):
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 1, done.stdout
        assert "known 0.25 [0.75] [1.] None" in done.stdout
        assert re.search(r"^=+ 1 failed in", done.stdout, re.MULTILINE)
    result = run(source(0.8, []), *options)
    result.assert_outcomes(passed=4)
    assert [path.name for path in folder.iterdir()] == [".gitignore"]


def test_only_failures_at_a_state_are_kept_and_files_that_are_none_do_no_harm(run, pytester):
    source = (
        SMALL
        + """
@pytest.mark.xfail(strict=True)
def test_expected():
    assert_small(1.0, [2.0])

def test_caught():
    with pytest.raises(AssertionError):
        assert_small(1.0, [2.0])

def test_plain():
    assert False

def test_with_z():
    try:
        assert_small(1.0, [3.0], np.ones((2, 3)))
    except AssertionError as error:
        raise RuntimeError("what comes of it") from error

def test_in_a_group():
    try:
        assert_small(1.0, [4.0])
    except AssertionError as error:
        raise ExceptionGroup("several", [ValueError(), error])
"""
    )
    run(source).assert_outcomes(failed=3, passed=1, xfailed=1)
    examples = Examples(pytester.path / ".geomctrl")
    assert len(list(examples.folder.glob("*.npz"))) == 2
    ((t, q, v, z),) = examples.known("test_it.py::test_with_z")
    assert (t, q.tolist(), v.tolist(), z.tolist()) == (0.25, [3.0], [1.0], np.ones((2, 3)).tolist())
    assert examples.known("test_it.py::test_in_a_group")[0][1].tolist() == [4.0]
    path = examples.path("test_it.py::test_with_z")
    for content in (b"", path.read_bytes()[:200], b"PK nothing"):
        path.write_bytes(content)
        with pytest.raises(ArgumentError, match=r"expected a counterexample of .*::test_with_z, got"):
            examples.known("test_it.py::test_with_z")
    run(source, "-k", "with_z").assert_outcomes(failed=1, deselected=4)
    assert examples.known("test_it.py::test_with_z")[0][1].tolist() == [3.0]


def test_a_folder_that_can_not_be_made_costs_a_line(run, pytester):
    (pytester.path / ".geomctrl").write_text("a file")
    result = run(SMALL + "def test_small(): assert_small(1.0, [2.0])\ndef test_pass(): pass\n")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["counterexample not stored: *.geomctrl*"])


# --- what it costs those who do not use it -----------------------------------------------------------------------


def test_a_run_without_it_loads_nothing_that_calculates(pytester):
    pytester.makepyfile(
        test_plain="""
import sys

def test_plain():
    assert "geomctrl.testing.plugin" in sys.modules
    assert not {"numpy", "numba", "scipy", "geomctrl.robot", "geomctrl.testing.counterexample"} & set(sys.modules)
"""
    )
    options = ("-p", "geomctrl.testing.plugin", "-W", "error")
    pytester.runpytest_subprocess(*options, "--strict-markers").assert_outcomes(passed=1)


@pytest.mark.slow
def test_a_state_that_breaks_a_promise_is_kept_with_what_it_breaks_and_looked_at_first(run, pytester):
    def source(push, options):
        return f"""
class MyLaw(Pushed):
    push = {push}

@pytest.mark.lyapunov(MyLaw(models.two_link(), [0.1, 0.2], 100.0, 20.0), models.two_link(), runs=0, {options})
def test_my_law(closed_loop):
    pass
"""

    result = run(source(0.1, "states=5, search=0"), alone=True)
    result.assert_outcomes(failed=1)
    (path,) = (pytester.path / ".geomctrl").glob("*.npz")
    with np.load(path, allow_pickle=False) as found:
        q, v, state = found["q"], found["v"], set(found.files)
        assert str(found["robot"]) == "two_link"
        assert np.array_equal(found["parameters"], models.two_link().parameters)
        assert "MyLaw" in str(found["controller"])
        assert "kd = [[20.,  0.]" in str(found["controller"])
    assert {"t", "parents", "screws", "placements", "gravity", "failure", "test"} <= state
    law = controllers.PDGravity(models.two_link(), [0.1, 0.2], 100.0, 20.0)
    rate = law.lyapunov(0.0, q, v, None, testing.ClosedLoop(law, gc.Plant(models.two_link())).plant).rate
    assert abs(v @ (0.1 * v * v)) > 1e-6 * abs(rate)  # error of the claim there
    # other states, of which one might pass: the stored state comes first
    message = f"{np.array2string(q, separator=', ')}, v = {np.array2string(v, separator=', ')}"
    result = run(
        source(0.1, "states=1, search=0, seed=5, region=testing.Region(domain={'q': (-1.5, 1.5), 'v': (-1.5, 1.5)})"),
        alone=True,
    )
    result.assert_outcomes(failed=1)
    assert message in words(result)
    result = run(source(0.0, "states=1, search=0"), alone=True)
    result.assert_outcomes(passed=1)
    assert "V and V' of MyLaw on two_link, at earlier counterexamples (states 1)" in words(result)
    assert not path.exists()


@pytest.mark.slow
def test_the_documented_example_passes_as_written(pytester):
    text = (Path(__file__).parents[2] / "docs" / "how-to" / "testing.md").read_text(encoding="utf-8")
    example, *_ = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    pytester.makepyfile(test_law=example)
    result = pytester.runpytest_subprocess("-p", "geomctrl.testing.plugin", "--strict-markers", "-W", "error")
    robots = len(models.names())
    result.assert_outcomes(passed=2 * 3 + robots)  # three tests of the law on two robots, one of the matrix on each
    result.stdout.fnmatch_lines([f"=* geomctrl: 2 searched, {2 + robots} sampled, 2 simulated =*"])
