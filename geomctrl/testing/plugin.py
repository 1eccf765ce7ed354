"""The pytest plugin: fixtures and markers for robots and closed loops, and evidence. See docs/how-to/testing.md.

pytest loads this file in every project, so that it imports no numerical part of geomctrl until a fixture or marker is
used or a counterexample is stored.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import secrets
from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Generator, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from geomctrl.errors import GeomctrlError

from . import evidence

if TYPE_CHECKING:
    import numpy as np

    from geomctrl.robot import Robot

    from .closed_loop import ClosedLoop
    from .counterexample import Examples

FOLDER = ".geomctrl"  # folder of counterexamples in pytest's rootdir
MAX_TESTS = 40  # number of tests whose evidence is listed without -v

_EVIDENCE = pytest.StashKey[list[evidence.Evidence]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("geomctrl").addoption(
        "--geomctrl-seed",
        type=_seed,
        default=0,
        metavar="N",
        help="seed of the fixture `rng` and of the marker `lyapunov`: a whole number (default 0), or 'random'",
    )


def _seed(word: str) -> int | None:
    if not (word == "random" or word.isdecimal()):
        raise ArgumentTypeError(f"expected a whole number, not negative, or 'random', got {word!r}")
    return None if word == "random" else int(word)


def pytest_configure(config: pytest.Config) -> None:
    if config.option.geomctrl_seed is None:  # processes of pytest-xdist use that of the main process
        drawn = getattr(config, "workerinput", {}).get("geomctrl_seed")
        config.option.geomctrl_seed = secrets.randbits(32) if drawn is None else drawn
    for name, marker in MARKERS.items():
        config.addinivalue_line("markers", f"{name}{inspect.signature(marker)}: {MEANINGS[name]}")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["geomctrl_seed"] = node.config.option.geomctrl_seed


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.option.geomctrl_seed
    return f"geomctrl: --geomctrl-seed={seed}" if seed else None


# --- fixtures ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def _geomctrl_robot(request: pytest.FixtureRequest) -> str | Robot | None:
    """The parameter that `pytest_generate_tests` chose for the fixture `robot` of this plugin."""
    return getattr(request, "param", None)


@pytest.fixture(scope="module")
def _geomctrl_loop_robot(request: pytest.FixtureRequest) -> str | Robot | None:
    """The same parameter for the fixture `closed_loop`."""
    return getattr(request, "param", None)


@pytest.fixture(scope="module")
def robot(_geomctrl_robot: str | Robot | None) -> Robot:
    """Each bundled robot of geomctrl.models in turn, or each robot of the closest marker `robots`."""
    return _loaded("robot", _geomctrl_robot)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A random generator for this test, reproducible with the same --geomctrl-seed."""
    import numpy as np

    digest = hashlib.sha256(request.node.nodeid.encode()).digest()
    return np.random.default_rng([request.config.option.geomctrl_seed, *digest])


@pytest.fixture(scope="module")
def _closed_loops() -> dict[Any, ClosedLoop]:
    """Closed loops of this module by their arguments; they are shared, because controllers have no side effects."""
    return {}


@pytest.fixture
def closed_loop(
    request: pytest.FixtureRequest, _closed_loops: dict[Any, ClosedLoop], _geomctrl_loop_robot: str | Robot | None
) -> ClosedLoop:
    """The controller and plant of the closest marker `closed_loop` or `lyapunov`, as geomctrl.testing.ClosedLoop.

    Functions that create them receive the fixture `robot` if the test uses it, otherwise each robot in turn.
    """
    from .closed_loop import closed_loop

    controller, plant = _loop(request.node)
    model = None
    if "robot" in request.fixturenames:
        model = request.getfixturevalue("robot")
    elif _needs_robot(controller, plant):
        model = _loaded("closed_loop", _geomctrl_loop_robot)
    key = id(controller), id(plant), id(model)
    if key not in _closed_loops:
        _closed_loops[key] = closed_loop(controller, plant, model)
    return _closed_loops[key]


def _loaded(fixture: str, x: str | Robot | None) -> Robot:
    if x is None:
        _refuse(f"{fixture}: expected this fixture as an argument of the test, which then runs for each robot")
    return _bundled(x) if isinstance(x, str) else x


@cache
def _bundled(name: str) -> Robot:
    from geomctrl import models

    return models.load(name)


# --- markers -----------------------------------------------------------------------------------------------------


def _robots(*robots):
    return robots


def _closed_loop(controller, plant=None):
    return controller, plant, {}


def _lyapunov(controller=None, plant=None, **options):
    return controller, plant, options


MARKERS = {"robots": _robots, "closed_loop": _closed_loop, "lyapunov": _lyapunov}
MEANINGS = {  # not docstrings, which python -OO removes
    "robots": "names of bundled robots, or Robots, which the fixtures `robot` and `closed_loop` take one by one",
    "closed_loop": "controller and plant of the fixture `closed_loop`, or functions of the robot that create them",
    "lyapunov": "geomctrl.testing.assert_lyapunov of `closed_loop`, with these options, before the test's own lines",
}


def _refuse(message: str) -> NoReturn:
    pytest.fail(message, pytrace=False)


def _marker_value(mark: pytest.Mark) -> Any:
    """The return value of a marker's function for its arguments."""
    try:
        return MARKERS[mark.name](*mark.args, **mark.kwargs)
    except TypeError as error:
        _refuse(f"pytest.mark.{str(error).removeprefix('_')}")


def _loop(node: pytest.Item) -> tuple[Any, Any]:
    """(controller, plant) of the closest marker that has a controller."""
    for mark in (*node.iter_markers("lyapunov"), *node.iter_markers("closed_loop")):
        controller, plant, _ = _marker_value(mark)
        if controller is not None:
            return controller, plant
    _refuse(f"{node.name}: closed_loop: expected a marker closed_loop(controller, plant), or lyapunov with both")


def _needs_robot(controller: Any, plant: Any) -> bool:
    from .closed_loop import is_factory

    return plant is None or is_factory(plant)


def _options(node: pytest.Item, mark: pytest.Mark) -> dict[str, Any]:
    """The options that the marker `lyapunov` passes to assert_lyapunov."""
    from geomctrl.testing import assert_lyapunov

    options = _marker_value(mark)[2]
    names = [p.name for p in inspect.signature(assert_lyapunov).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for name in options:
        if name not in names:
            _refuse(f"{node.name}: lyapunov: no option {name!r} of assert_lyapunov; known: {', '.join(names)}")
    return {"seed": node.config.option.geomctrl_seed, **options}


def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> None:
    """Refuse a marked function that should be the marker's argument: pytest decorates a single callable argument."""
    marks = getattr(obj, "pytestmark", None) if callable(obj) else None
    named = {getattr(mark, "name", "") for mark in marks} if isinstance(marks, list) else set()
    for marker in ("closed_loop", "lyapunov"):
        if marker in named and not (collector.funcnamefilter(name) or collector.classnamefilter(name)):
            _refuse(
                f"{name}: is marked {marker!r}, but is not a test; a marker with one argument needs its name:"
                f" pytest.mark.{marker}(controller={name})"
            )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise tests that use `robot`, or a `closed_loop` created from one; check the markers."""
    node, mark = metafunc.definition, metafunc.definition.get_closest_marker("lyapunov")
    taken = {"_geomctrl_robot", "_geomctrl_loop_robot"} & set(metafunc.fixturenames)
    if "_geomctrl_loop_robot" in taken and ("robot" in metafunc.fixturenames or not _needs_robot(*_loop(node))):
        taken.remove("_geomctrl_loop_robot")
    if mark is not None:
        _options(node, mark)
        if "closed_loop" not in metafunc.fixturenames:
            _refuse(f"{node.name}: expected an argument closed_loop, because the test is marked lyapunov")
    for name in sorted(taken):
        robots = _chosen(node)
        metafunc.parametrize(name, robots, indirect=True, ids=[x if isinstance(x, str) else x.name for x in robots])


def _chosen(node: pytest.Item) -> list[Any]:
    """The robots of the closest marker, or the names of all bundled ones."""
    from geomctrl import models
    from geomctrl.arguments import shown
    from geomctrl.robot import Robot

    mark = node.get_closest_marker("robots")
    robots = models.names() if mark is None else _marker_value(mark)
    for x in robots or ("none",):
        if not isinstance(x, Robot) and x not in models.names():
            names = ", ".join(map(repr, models.names()))
            _refuse(f"{node.name}: robots: expected Robots, or some of {names}, got {shown(x)}")
    return list(robots)


# --- running -----------------------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    __tracebackhide__ = True
    with evidence.listening() as recorded_evidence, evidence.replaying(_failed_states(item)):
        item.stash[_EVIDENCE] = recorded_evidence
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    """Run the assertion of the marker `lyapunov`, then the test."""
    __tracebackhide__ = True
    if (mark := pyfuncitem.get_closest_marker("lyapunov")) is not None:
        from geomctrl.testing import assert_lyapunov

        loop: Any = pyfuncitem.funcargs["closed_loop"]
        assert_lyapunov(*loop, **_options(pyfuncitem, mark))
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # outermost, because an expected failure stores no counterexample
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Generator[None, Any, pytest.TestReport]:
    report = yield
    if report.when == "call" and report.passed:
        evidence_lines = evidence.summary(item.stash.get(_EVIDENCE, []))
        report.user_properties += [(f"geomctrl.{kind}", text) for kind, text in evidence_lines]
        _forget(item)
    elif report.when == "call" and report.failed and (lines := [*_stored_counterexample(item, call), *_seeded(item)]):
        report.sections.append(("geomctrl", "\n".join(lines)))
    return report


def _examples(item: pytest.Item) -> Examples:
    from .counterexample import Examples

    return Examples(item.config.rootpath / FOLDER)


def _failed_states(item: pytest.Item) -> list[evidence.KnownState]:
    """The states at which the test failed before. An invalid file is ignored and replaced or removed later."""
    if not (item.config.rootpath / FOLDER).is_dir():
        return []
    try:
        return _examples(item).known(item.nodeid)
    except GeomctrlError:
        return []


def _forget(item: pytest.Item) -> None:
    if (item.config.rootpath / FOLDER).is_dir():
        with contextlib.suppress(OSError):  # the folder may be read-only
            _examples(item).forget(item.nodeid)


def _stored_counterexample(item: pytest.Item, call: pytest.CallInfo) -> Iterator[str]:
    """Store the counterexample that ended the test, if any, and report its file."""
    error = None if call.excinfo is None else _counterexample(call.excinfo.value)
    if error is not None:
        loop = getattr(item, "funcargs", {}).get("closed_loop")
        try:
            path = _examples(item).save(item.nodeid, error, loop)
            yield f"counterexample stored; the next run tests it first: {path.relative_to(item.config.rootpath)}"
        except OSError as problem:
            yield f"counterexample not stored: {problem}"


def _counterexample(error: BaseException | None) -> AssertionError | None:
    """The exception itself, an exception in its group, or one of its causes, if it has a state."""
    waiting, seen = [error], set()  # a chain of causes may branch and contain cycles
    while waiting:
        cause = waiting.pop(0)
        if cause is None or id(cause) in seen:
            continue
        if isinstance(cause, AssertionError) and hasattr(cause, "state"):
            return cause
        seen.add(id(cause))
        held = cause.exceptions if isinstance(cause, BaseExceptionGroup) else ()
        waiting = [*held, cause.__cause__, cause.__context__, *waiting]
    return None


def _seeded(item: pytest.Item) -> Iterator[str]:
    if "rng" in getattr(item, "fixturenames", ()) or item.get_closest_marker("lyapunov") is not None:
        yield f"random numbers: reproduce with --geomctrl-seed={item.config.option.geomctrl_seed} and this test"


# --- list of the evidence ----------------------------------------------------------------------------------------


@pytest.hookimpl(wrapper=True, tryfirst=True)  # outermost, so that pytest's failures and summary come last
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None, Any, Any]:
    _list_evidence(terminalreporter)
    return (yield)


def _list_evidence(terminal: pytest.TerminalReporter) -> None:
    """List by test what was proved, searched, sampled and simulated, including tests in other processes."""
    tests: dict[str, list[tuple[str, str]]] = {}
    for report in terminal.getreports("passed"):
        for name, text in report.user_properties:
            if name.startswith("geomctrl."):
                tests.setdefault(report.nodeid, []).append((name.removeprefix("geomctrl."), text))
    if not tests:
        return
    counts = Counter(kind for lines in tests.values() for kind, _ in lines)
    totals = "geomctrl: " + ", ".join(f"{counts[kind]} {kind}" for kind in evidence.KINDS if counts[kind])
    if terminal.verbosity < 0:
        terminal.write_line(f"{totals} (by test: -v)")
        return
    terminal.ensure_newline()
    terminal.section(totals)
    listed = sorted(tests)[: None if terminal.verbosity else MAX_TESTS]
    for test in listed:
        terminal.write_line(test)
        for kind, text in tests[test]:
            terminal.write_line(f"  {kind:{max(map(len, evidence.KINDS))}}  {text}")
    if len(listed) < len(tests):
        terminal.write_line(f"and {len(tests) - len(listed)} more tests (all: -v)")
