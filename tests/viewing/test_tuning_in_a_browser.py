"""The page of `gc.tune` in headless Chromium: curves, a dragged load, its verdict, undo, code that repeats the run."""

import time

import numpy as np
import pytest
from viewing.chromium import chromium

import geomctrl as gc
from geomctrl import controllers, models, references

pytest.importorskip("viser")
pytest.importorskip("websockets")
pytestmark = pytest.mark.slow

TEXT = "(document.body?.innerText ?? '')"


@pytest.fixture(scope="module")
def browser():
    with chromium() as page:
        yield page


@pytest.fixture
def page(tmp_path):
    robot = models.two_link()
    motion = references.Sinusoids(robot, [0.3, 0.5], 0.4, 0.5)
    law = controllers.Passivity(robot, motion, Lambda=5.0, K=20.0)
    page = gc.tune(
        gc.Plant(robot, gc.Friction(0.0, 0.0)), law, t_end=2.0, port=0, out=tmp_path, ranges={"law.K": (2.0, 5e3)}
    )
    try:
        assert page.session.wait(120)
        yield page
    finally:
        page.close()


def box(browser, label):
    """The box of the slider whose label begins with a text: left, top, width, height."""
    script = f"""(() => {{
        const rows = [...document.querySelectorAll('div')].filter(
            x => x.textContent.trim().startsWith({label!r}) && x.querySelectorAll('[role=slider]').length === 1);
        const row = rows[rows.length - 1];
        if (!row) return null;
        row.scrollIntoView({{block: 'center'}});
        const b = row.querySelector('[role=slider]').parentElement.getBoundingClientRect();
        return [b.left, b.top, b.width, b.height];
    }})()"""
    return browser.wait(script)


def drag(browser, label, shares):
    """Move a slider through fractions of its range, with the mouse."""
    left, top, width, height = box(browser, label)
    y = top + 0.5 * height
    send = lambda kind, share: browser.call(  # noqa: E731
        "Input.dispatchMouseEvent", type=kind, x=left + share * width, y=y, button="left", buttons=1, clickCount=1
    )
    send("mousePressed", shares[0])
    for share in shares:
        send("mouseMoved", share)
        time.sleep(0.05)
    send("mouseReleased", shares[-1])


def press(browser, text):
    """Press the button with a text."""
    script = (
        f"(() => {{ const b = [...document.querySelectorAll('button')].filter(x => x.innerText.trim() === {text!r})[0];"
    )
    browser.wait(f"{script} if (!b) return false; b.click(); return true; }})()")


def test_a_load_is_dragged_until_the_proof_breaks_and_the_code_repeats_it(browser, page):
    browser.open(page.address, 1300, 900)
    browser.wait(f"/lyapunov: held/.test({TEXT})")
    first = page.session.settings
    assert page.session.outcome.ok
    charts = "Object.values(window.__viserTestpoints.uplots)"
    browser.wait(f"{charts}.length === 3 && {charts}.every(x => x.chart.scales.y.max > x.chart.scales.y.min)")
    drag(browser, "mass", [0.1, 0.4, 0.7, 1.0])
    browser.wait(f"/lyapunov: VIOLATED/.test({TEXT})")
    assert page.session.wait(60)
    assert page.session.settings["load.mass"] > 0.0
    run = page.session.outcome.run
    assert run.monitors["lyapunov"].verdict == "VIOLATED"
    press(browser, "code")
    code = browser.wait("document.getElementById('code')?.innerText")
    names = {}
    exec(code, names)
    assert names["run"].q.tobytes() == run.q.tobytes()
    assert names["run"].applied.tobytes() == run.applied.tobytes()
    press(browser, "close")
    for _ in range(5):  # on a busy machine a slow drag is several changes
        if page.session.settings != first:
            press(browser, "undo")
            time.sleep(1.0)
    browser.wait(f"/lyapunov: held/.test({TEXT})")
    assert page.session.settings == first
    assert not browser.errors


def test_latency_from_slider_to_curves_is_reported(browser, page, record_property):
    browser.open(page.address, 1300, 900)
    browser.wait(f"/lyapunov: held/.test({TEXT})")
    before = len(page.session.latencies)
    drag(browser, "Lambda", list(np.linspace(0.3, 0.7, 30)))
    assert page.session.wait(60)
    seconds = page.session.latencies[before:]
    assert seconds
    record_property("median_latency_s", float(np.median(seconds)))
    print(f"\nmedian latency {1e3 * np.median(seconds):.0f} ms of {len(seconds)}, {page.session.dropped} dropped")


def test_a_narrow_page_shows_the_robot_and_has_no_errors(browser, page):
    browser.open(page.address, 420, 800)
    browser.wait(f"{TEXT}.length > 10")
    time.sleep(2.0)
    assert browser.run("document.documentElement.scrollWidth") <= 420
    assert not browser.errors


def test_a_page_without_the_token_is_refused(page):
    from urllib.error import HTTPError
    from urllib.request import urlopen

    with pytest.raises(HTTPError, match="403"):
        urlopen(page.address.partition("?")[0], timeout=10)
    assert urlopen(page.address, timeout=10).status == 200
