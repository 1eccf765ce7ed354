"""`simulate(progress=LiveView())`: identical runs, frames during the run, and an orderly end of the page."""

import contextlib
import time
import types
import urllib.error
import urllib.request

import numpy as np
import pytest
from simulation_options import grouped

import geomctrl as gc
from geomctrl import controllers, models, references
from geomctrl.control import loop
from geomctrl.viewing import live, scene

pytest.importorskip("viser")

ROBOT = models.two_link()
REFERENCE = references.Sinusoids(ROBOT, [0.3, -0.5], amplitude=0.3, frequency=0.4)


def simulated(t_end=2.0, **options):
    law = controllers.Passivity(ROBOT, REFERENCE)
    return gc.simulate(gc.Plant(ROBOT), law, [0.5, -0.3], [0.0, 0.0], t_end, 1e-3, **grouped(**options))


def page(view):
    with urllib.request.urlopen(view.address, timeout=10) as answer:
        return answer.read()


@pytest.fixture
def view():
    with gc.LiveView(np.inf, port=0) as view:
        yield view


@pytest.fixture
def shown(monkeypatch):
    seen = []
    show = live.LiveView._show
    monkeypatch.setattr(live.LiveView, "_show", lambda self, *a: (seen.append(a), show(self, *a)))
    return seen


@pytest.mark.parametrize("compiled", [True, False])
def test_a_run_that_is_watched_is_the_same_to_the_bit(view, compiled, shown):
    alone, watched = simulated(0.5, compiled=compiled), simulated(0.5, compiled=compiled, progress=view)
    np.testing.assert_array_equal(watched.q, alone.q)
    np.testing.assert_array_equal(watched.signals["lyapunov"], alone.signals["lyapunov"])
    t, q, desired, curves, verdicts = shown[-1]
    assert t == 0.5
    np.testing.assert_array_equal(q, watched.q[-1])
    np.testing.assert_array_equal(desired, watched.desired.q[-1])
    assert curves["V"] == watched.signals["lyapunov"][-1]
    assert curves["|e| [rad, m]"] == pytest.approx(np.linalg.norm(watched.tracking_error()[-1]))
    assert {verdict.split(":")[0] for verdict in verdicts} == set(watched.monitors)
    assert all("held" in verdict for verdict in verdicts)
    assert b"<html" in page(view)  # which stays


@pytest.mark.parametrize("compiled", [True, False])
def test_a_loop_waits_for_the_time_and_shows_what_comes_between(compiled, shown):
    with gc.LiveView(2.0, port=0) as view:
        started = time.monotonic()
        simulated(1.0, progress=view, compiled=compiled)
        assert time.monotonic() - started > 0.5
    times = [x[0] for x in shown]
    assert times == sorted(set(times))
    assert len(times) >= 4  # 15 on a machine that is not busy
    assert times[-1] == 1.0


def test_what_is_beyond_a_limit_is_said_at_once(view, shown):
    wrong = controllers.Passivity(ROBOT.with_payload(5.0), REFERENCE)
    run = gc.simulate(gc.Plant(ROBOT), wrong, [0.5, -0.3], [0.0, 0.0], 0.5, 1e-3, progress=view)
    bad = {name for name, m in run.monitors.items() if not m.ok}
    assert bad
    assert {verdict.split(":")[0] for verdict in shown[-1][-1] if "beyond its limit" in verdict} == bad


def test_the_end_of_a_with_block_ends_the_page(capsys):
    with gc.LiveView(port=0) as view:
        simulated(0.1, progress=view)
        assert b"<html" in page(view)
    assert view._server is None
    assert "geomctrl: live view at http://localhost:" in capsys.readouterr().err


def test_ctrl_c_ends_the_page_and_keeps_the_run(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(live.LiveView, "_show", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught, gc.LiveView(port=0) as view:
        simulated(1.0, progress=view)
    assert len(caught.value.run.t) >= 1
    assert view._server is None


def test_a_page_shows_one_run_after_another_and_another_robot(view):
    simulated(0.1, progress=view)
    arm = models.scara()
    gc.simulate(
        arm, controllers.PDGravity(arm, arm.neutral()), arm.neutral(), np.zeros(arm.nv), 0.1, 1e-3, progress=view
    )
    assert b"<html" in page(view)
    address = view.address
    view.close()
    view.close()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address, timeout=10)
    with pytest.raises(gc.ArgumentError, match="view: is closed"):
        simulated(0.1, progress=view)
    with pytest.raises(gc.ArgumentError, match="view: is closed"):
        view._wait(0.1)
    assert repr(view) == "<LiveView, closed>"


def test_a_second_view_has_the_next_port(view):
    with gc.LiveView(np.inf, port=int(view.address.rpartition(":")[2])) as other:
        assert other.address != view.address
        assert b"<html" in page(other)
    assert b"<html" in page(view)


@pytest.mark.parametrize("bad", ["yes", 1, object()])
def test_what_is_no_view_is_refused(bad):
    with pytest.raises(gc.ArgumentError, match="progress: expected"):
        simulated(progress=bad)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"speed": 0.0}, "speed: expected a number > 0 or infinity"),
        ({"speed": "fast"}, "speed: expected"),
        ({"port": 70000}, "port: expected"),
        ({"frames": "tip"}, "frames: expected a list"),
        ({"browser": "firefox"}, "browser: expected True or False"),
    ],
)
def test_arguments_of_a_view(options, message):
    with pytest.raises(gc.ArgumentError, match=message):
        gc.LiveView(**{"port": 0} | options)


def test_without_the_extra_it_says_which(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "viser", None)
    with pytest.raises(ImportError, match=r"pip install 'geomctrl\[view\]'"):
        gc.LiveView(port=0)


class Browser:
    """The parts of viser's client that a camera uses."""

    def __init__(self, aspect):
        self.camera = types.SimpleNamespace(aspect=aspect)
        self.atomic = contextlib.nullcontext


@pytest.mark.parametrize("aspect", [0.4, 1.0, 1.8])
def test_a_browser_that_is_there_already_sees_the_whole_robot(view, aspect, monkeypatch):
    there = Browser(aspect)
    monkeypatch.setattr(view._server, "get_clients", lambda: {0: there})
    monkeypatch.setattr(scene.Scene, "aim_first", lambda self: pytest.fail("it would undo what follows"))
    view._begin(ROBOT, np.array([0.3, -0.5]), False)
    camera = there.camera
    axis = np.array(camera.look_at) - camera.position
    axis /= np.linalg.norm(axis)
    right = np.cross(axis, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    up = np.cross(right, axis)
    tip = [ROBOT.pose([0.3, -0.5], name)[:3, 3] for name in ("world", *ROBOT.body_names, "tip")]
    for point in tip:
        seen = point - np.array(camera.position)
        share = np.array([seen @ right / aspect, seen @ up]) / (seen @ axis) / np.tan(0.5 * camera.fov)
        assert np.abs(share).max() < 1.0  # what is seen
    camera.position = moved = (9.0, 9.0, 9.0)
    view._begin(ROBOT, np.array([0.3, -0.5]), False)
    assert camera.position == moved  # a client looks from there


def test_curves_keep_few_points(view, monkeypatch):
    view._begin(ROBOT, ROBOT.neutral(), False)
    monkeypatch.setattr(live, "MAX_CURVE_POINTS", 20)
    for k in range(5 * live.MAX_CURVE_POINTS):
        view._show(float(k), ROBOT.neutral(), None, {"V": 1.0 / (k + 1)}, [])
    points, plot = view._curves["V"]
    assert live.MAX_CURVE_POINTS <= len(points) < 2 * live.MAX_CURVE_POINTS
    assert points[0] == (0.0, 1.0)
    assert points[-1][0] == 5 * live.MAX_CURVE_POINTS - 1
    np.testing.assert_array_equal(plot.data[0], [t for t, _ in points])


def test_chunks_follow_the_pictures():
    with gc.LiveView(3.0, port=0) as view:
        assert view._steps(1e-3) == 100
        assert view._steps(1.0) == 1
    assert loop._markdown("a_b {alert(1)} <b> **") == r"a_b \{alert\(1\)\} \<b\> \*\*"
    assert loop._verdict(1.0, 1.0) == "held so far"
    assert loop._verdict(np.nan, 1.0) == "**beyond its limit**"
