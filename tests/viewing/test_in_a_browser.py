"""Pages in headless Chromium: something is drawn, the slider moves it, the console has no errors."""

import threading
import time

import numpy as np
import pytest
from viewing.chromium import chromium

import geomctrl as gc
from geomctrl import controllers, models, references
from geomctrl.viewing.live import show_robot
from geomctrl.viewing.server import stop

pytest.importorskip("viser")
pytest.importorskip("websockets")
trimesh = pytest.importorskip("trimesh")
pytestmark = pytest.mark.slow

SLIDER = "document.getElementById('scene')?.contentDocument?.querySelector('[role=slider]')"
RED = (220, 30, 30)
MESH = """<robot name="swing"><material name="red"><color rgba="0.86 0.12 0.12 1"/></material>
<link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><origin xyz="0.5 0 0"/><geometry><mesh filename="bar.stl"/></geometry><material name="red"/></visual></link>
<link name="foot"/><joint name="turn" type="continuous">
<parent link="foot"/><child link="arm"/><axis xyz="0 0 1"/></joint>
</robot>"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as page:
        yield page


@pytest.fixture(scope="module")
def swing(tmp_path_factory):
    """A run of a red bar, a mesh on a vertical axis, that rotates by a right angle."""
    folder = tmp_path_factory.mktemp("swing")
    trimesh.creation.box(extents=(1.0, 0.2, 0.2)).export(folder / "bar.stl")
    (folder / "swing.urdf").write_text(MESH, encoding="utf-8")
    robot = models.load_urdf(folder / "swing.urdf")
    reference = references.Quintic(robot, [0.0], [np.pi / 2], 1.0)
    law = controllers.ComputedTorque(robot, reference, kp=100.0, kd=20.0)
    push = gc.Wrench("arm", [0, 0, 0, 0, 0, 5.0], representation="hybrid")
    run = gc.simulate(gc.Plant(robot, f_ext=push), law, [0.0], [0.0], 1.0, 1e-3)
    return run, run.save_html(folder / "run.html")


def red(picture):
    """Return where the picture is red (h, w)."""
    r, g, b = np.moveaxis(picture, 2, 0)
    return (r > 90) & (r > 2.0 * g) & (r > 2.0 * b)


def steady(browser, seen, change=0.05):
    """Return a picture in which something is `seen` and that equals the one before: viser shows things gradually."""
    end, last = time.monotonic() + 90.0, None
    while True:
        picture = browser.picture()
        if last is not None and seen(picture) and np.abs(picture - last).mean() < change:
            return picture
        assert time.monotonic() < end, "nothing steady is drawn"
        last = picture
        time.sleep(0.5)


def test_the_slider_moves_the_mesh_and_the_curves_cursor(browser, swing):
    run, path = swing
    browser.open(path.as_uri(), 1000, 700)
    browser.wait(f"!!({SLIDER})")
    browser.wait(f"+{SLIDER}.ariaValueNow >= 0")
    pause = "document.getElementById('scene').contentDocument.querySelector('button.mantine-ActionIcon-root')"
    browser.wait(f"!!({pause})")
    browser.run(f"{pause}.click()")  # it plays from the start
    box = browser.run(
        "(() => { const b = document.querySelector('#curves svg').getBoundingClientRect(),"
        " v = document.querySelector('#curves svg').viewBox.baseVal; return [b.left, b.top, b.width / v.width]; })()"
    )
    first = browser.run("panels[0]")

    def at(share):
        """Return a picture at a fraction of the time, which is clicked in the curves."""
        x = box[0] + box[2] * (first["left"] + share * (first["right"] - first["left"]))
        browser.press(x, box[1] + box[2] * 0.5 * (first["top"] + first["bottom"]))
        browser.wait(f"Math.abs(document.body.dataset.share - {share}) < 0.1")
        return steady(browser, lambda picture: red(picture).sum() > 500)

    start, end = at(0.02), at(0.98)
    for picture in (start, end):
        assert 500 < red(picture).sum() < 0.3 * picture[..., 0].size
    both = red(start) & red(end)
    assert both.sum() < 0.5 * min(red(start).sum(), red(end).sum())  # it has turned away
    share = float(browser.run("document.body.dataset.share"))
    cursor = float(browser.run("document.querySelector('line.cursor').getAttribute('x1')"))
    assert cursor == pytest.approx(first["left"] + share * (first["right"] - first["left"]), abs=1e-6)
    orange = (np.abs(end[:, :600] - np.array([213, 94, 0])) < 60).all(axis=2) & ~red(end)[:, :600]
    assert orange.sum() > 20  # the arrow of the force
    assert not browser.errors
    assert not browser.fetched
    assert run.external_forces()[0].force[0, 2] == 5.0


def test_a_robot_of_capsules_is_drawn_on_a_narrow_screen(browser, tmp_path):
    robot = models.two_link()
    law = controllers.PDGravity(robot, [1.0, 0.5])
    run = gc.simulate(robot, law, [0.0, 0.0], [0.0, 0.0], 0.2, 1e-3)
    path = run.save_html(tmp_path / "run.html")
    browser.open(path.as_uri(), 420, 800)
    browser.wait(f"!!({SLIDER})")
    grey = lambda picture: ((picture.max(axis=2) < 235) & (np.ptp(picture, axis=2) < 30)).sum()  # noqa: E731
    steady(browser, lambda picture: grey(picture) > 3000, 1e9)  # it plays all the time
    assert browser.run("document.documentElement.scrollWidth") <= 420
    assert not browser.errors


def test_sliders_of_a_robots_page_move_its_joints(browser, swing):
    robot = swing[0].plant.robot
    server = show_robot(robot, port=0)
    try:
        browser.open(f"http://localhost:{server.get_port()}", 1000, 700)
        before = steady(browser, lambda picture: red(picture).sum() > 500)
        x, y = browser.run(
            "(() => { const b = document.querySelector('[role=slider]').parentElement.getBoundingClientRect();"
            " return [b.left + 0.85 * b.width, b.top + 0.5 * b.height]; })()"
        )
        browser.press(x, y)
        end = time.monotonic() + 60.0
        while (red(after := browser.picture()) & red(before)).sum() > 0.6 * red(before).sum():
            assert time.monotonic() < end, "the robot did not move"
            time.sleep(0.5)
        assert red(after).sum() > 300
        assert not browser.errors
    finally:
        stop(server)


def test_a_loop_is_watched_while_it_runs(browser, swing):
    robot = swing[0].plant.robot
    law = controllers.ComputedTorque(robot, references.Quintic(robot, [0.0], [np.pi / 2], 1.0), kp=100.0, kd=20.0)
    with gc.LiveView(0.2, port=0) as view:
        browser.open(view.address, 1000, 700)
        assert view._wait(60.0)
        loop = threading.Thread(
            target=lambda: gc.simulate(robot, law, [0.0], [0.0], 4.0, 1e-3, progress=view), daemon=True
        )
        loop.start()
        times = []
        while loop.is_alive():
            times.append(browser.run("/t = ([0-9.]+) s/.exec(document.body.innerText)?.[1] ?? ''"))
            time.sleep(0.2)
        loop.join()
        seen = sorted({float(x) for x in times if x})
        assert len(seen) > 1  # updated while it ran
        browser.wait("/t = 4.00 s/.test(document.body.innerText)")
        steady(browser, lambda picture: red(picture).sum() > 500)
        assert "lyapunov" in browser.run("document.body.innerText") or "energy: held" in browser.run(
            "document.body.innerText"
        )
        assert not browser.errors
