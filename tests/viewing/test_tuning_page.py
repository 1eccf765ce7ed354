"""The page of `gc.tune` without a browser: bad arguments, what its handles show, closing."""

import time

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import controllers, models, references
from geomctrl.viewing.tuning_html import short_numbers

pytest.importorskip("viser")

ROBOT = models.two_link()
LAW = controllers.Passivity(ROBOT, references.Sinusoids(ROBOT, [0.3, 0.5], 0.4, 0.5), Lambda=5.0, K=20.0)


@pytest.mark.parametrize(
    ("argument", "options"),
    [
        ("plant", {"plant": 3}),
        ("controller", {"controller": controllers.Passivity}),
        ("t_end", {"t_end": -1.0}),
        ("dt", {"dt": 0.0}),
        ("start", {"start": 3.0}),
        ("start", {"start": ([0.0], [0.0, 0.0])}),
        ("ranges", {"ranges": {"law.Lambda": (3.0, 1.0)}}),
        ("port", {"port": -1}),
        ("token", {"token": "short"}),
    ],
)
def test_bad_arguments_are_refused_before_a_server_starts(argument, options):
    with pytest.raises(gc.GeomctrlError, match=argument):
        gc.tune(**{"plant": ROBOT, "controller": LAW, **options})


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.1, 0.607, 135.6, 824.2, 5000.0], ["0.1", "0.61", "140", "820", "5000"]),
        ([1.001, 1.002], ["1.001", "1.002"]),
        ([2e-7, 3e7], ["2e-07", "3e+07"]),
    ],
)
def test_the_buttons_of_a_map_have_short_numbers(values, texts):
    assert short_numbers(np.array(values)) == texts


def test_sliders_drive_the_session_and_the_page_shows_its_results(tmp_path):
    page = gc.tune(ROBOT, LAW, t_end=0.2, port=0, out=tmp_path)
    try:
        session = page.session
        assert session.wait(120)
        assert "lyapunov: held" in page._verdicts.content
        control = session.controls["load.mass"]
        page._sliders["load.mass"].value = 0.5
        while session.settings["load.mass"] == 0.0:  # until viser's event loop has called back
            time.sleep(0.01)
        assert session.wait(60)
        assert session.settings["load.mass"] == control.at(0.5)
        assert "lyapunov: VIOLATED" in page._verdicts.content
        page._pin()
        page._undo()
        assert session.wait(60)
        assert session.settings["load.mass"] == 0.0
        assert page._sliders["load.mass"].value == 0.0
        assert "lyapunov: held" in page._verdicts.content
        assert " %" in page._measures.content
        page._x.value = "load.mass"
        page._find("edge")
        assert session.wait(120)
        assert "load.mass" in page._message.content.replace("\\", "")
        page._y.value = "load.mass"
        page._find("map")
        assert "another control" in page._message.content
        assert page._range.value == f"{control.low:.6g}:{control.high:.6g}"
        for text in ("3:1", "a:b", "1:2:3", "", "1e999:2"):
            page._range.value = text
            page._set_range()
            assert "range" in page._message.content
            assert session.controls["load.mass"] == control
        page._range.value = "-1:2"
        page._set_range()
        assert (session.controls["load.mass"].low, session.controls["load.mass"].high) == (-1.0, 2.0)
        assert page._sliders["load.mass"].value == pytest.approx(1.0 / 3.0)
        page._save("settings.toml")
        assert (tmp_path / "settings.toml").exists()
    finally:
        page.close()
    assert repr(page) == "<TuningPage, closed>"


def test_the_robot_is_drawn_at_the_time_of_the_slider_with_its_path(tmp_path):
    page = gc.tune(ROBOT, LAW, t_end=0.2, port=0, out=tmp_path)
    try:
        assert page.session.wait(120)
        page._playing.value, run = False, page.session.outcome.run
        while page._run is not None:  # until the thread has drawn it
            time.sleep(0.02)
        shown, paths = [], []
        page._scene.show = lambda actual, desired: shown.append((actual, desired))
        page._scene.trail = paths.append
        page._draw(page.session.outcome)
        page._time.value = 1.0
        last = [[ROBOT.pose(q, name) for name in ROBOT.body_names] for q in (run.q[-1], run.desired.q[-1])]
        end = time.monotonic() + 60.0
        while not (paths and shown and np.allclose(shown[-1], last)) and time.monotonic() < end:
            time.sleep(0.02)  # the page may draw the new run before the slider has moved
        np.testing.assert_allclose(shown[-1], last, atol=1e-12)
        for end, q in zip(paths[0][[0, -1]], run.q[[0, -1]]):
            angles = np.cumsum(q)  # of links of 1 m
            np.testing.assert_allclose(end, [np.cos(angles).sum(), 0.0, np.sin(angles).sum()], atol=1e-12)
    finally:
        page.close()
