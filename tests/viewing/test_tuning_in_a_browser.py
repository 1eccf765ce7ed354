"""The page of `gc.tune` in headless Chromium: curves, a dragged load, its verdict, undo, code that repeats the run."""

import time

import numpy as np
import pytest
from viewing.chromium import chromium

import geomctrl as gc
from geomctrl import controllers, models, references
from geomctrl.control.hand_tuning import session

pytest.importorskip("viser")
pytest.importorskip("websockets")
pytestmark = pytest.mark.slow

TEXT = "(document.body?.innerText ?? '')"
CHARTS = "Object.values(window.__viserTestpoints?.uplots ?? {})"


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


def undo(browser, page, first):
    """Return to the first setting."""
    for _ in range(5):  # on a busy machine a slow drag is several changes
        if page.session.settings != first:
            press(browser, "undo")
            time.sleep(1.0)
    browser.wait(f"/lyapunov: held/.test({TEXT})")
    assert page.session.settings == first


def test_a_load_is_dragged_until_the_proof_breaks_and_the_code_repeats_it(browser, page):
    browser.open(page.address, 1300, 900)
    browser.wait(f"/lyapunov: held/.test({TEXT})")
    first = page.session.settings
    assert page.session.outcome.ok
    browser.wait(f"{CHARTS}.length === 4 && {CHARTS}.every(x => x.chart.scales.y.max > x.chart.scales.y.min)")
    built = browser.run(f"{CHARTS}.map(x => x.createCount)")
    press(browser, "pin")
    drag(browser, "mass", [0.1, 0.4, 0.7, 1.0])
    browser.wait(f"/lyapunov: VIOLATED/.test({TEXT})")
    assert page.session.wait(60)
    browser.wait(f"{CHARTS}.every(x => x.chart.scales.x.max > x.chart.scales.x.min)")
    assert browser.run(f"{CHARTS}.map(x => x.createCount)") == built
    assert browser.run(f"{CHARTS}.every(x => x.chart.data[1].length === x.chart.data[5].length)")
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
    undo(browser, page, first)
    assert not browser.errors


SCRIPT = """
window.__rows = [];  // of each movement: when the mouse moved, curves arrived, the last curve was drawn
window.__batches = [];
let moved = null, arrived = null, sent = 0, drawn = new Set();
const now = () => performance.timeOrigin + performance.now();
document.addEventListener('mousemove', () => { moved ??= now(); }, true);
window.__drawn = chart => {
    if (arrived === null || drawn.add(chart).size < sent) return;
    window.__rows.push([moved, arrived, now()]);
    moved = arrived = null;
    drawn = new Set();
};
const Plain = window.Worker;
window.Worker = class extends Plain {
    constructor(...args) {
        super(...args);
        this.addEventListener('message', ({data}) => {
            const curves = (data?.messages ?? []).filter(x => x.updates?.data).length;
            if (!curves) return;
            window.__batches.push(data.messages.map(x => x.type));
            if (moved !== null && arrived === null) [arrived, sent] = [now(), curves];
        });
    }
};
"""
HOOK = f"""(() => {{
    for (const {{chart}} of {CHARTS}) chart.hooks.draw = [...(chart.hooks.draw ?? []), window.__drawn];
    return true;
}})()"""
PARTS = "mouse to session", "simulated", "packed", "to the browser", "parsed and drawn"


def timed(function, times):
    """The function, which notes when it begins and ends [ms], and the CPU time of its thread."""

    def wrapped(*args, **options):
        begin, cpu = 1e3 * time.time(), time.thread_time()
        result = function(*args, **options)
        times.append((begin, 1e3 * time.time(), 1e3 * (time.thread_time() - cpu)))
        return result

    return wrapped


def test_latency_from_slider_to_curves_is_reported(browser, tmp_path, monkeypatch, record_property):
    """Five seconds of a Panda under Slotine-Li: from a movement of the mouse to the drawing of the last curve.

    The movie is paused, because without a graphics card its pictures take all of the browser's time. Messages with
    curves contain nothing of the scene, because viser would keep them until its next picture in three dimensions.
    Browser and server read the same clock, so that the latency is split into its parts.
    """
    robot, runs, shown = models.panda(), [], []
    monkeypatch.setattr(session, "outcome_of", timed(session.outcome_of, runs))
    q = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
    law = controllers.SlotineLi(robot, references.Sinusoids(robot, q, 0.3, 0.3))
    start = q, np.zeros(robot.nv)  # at rest and so not on the reference: every curve changes with the amplitude
    page = gc.tune(robot, law, t_end=5.0, start=start, port=0, out=tmp_path)
    page.session.show = timed(page.session.show, shown)
    try:
        assert page.session.wait(300)
        page._playing.value = False
        script = browser.call("Page.addScriptToEvaluateOnNewDocument", source=SCRIPT)["identifier"]
        browser.open(page.address, 1300, 900)
        browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
        browser.wait(f"/lyapunov: held/.test({TEXT}) && {CHARTS}.length === 4", 300)
        left, top, width, height = box(browser, "amplitude")
        browser.wait(HOOK)
        send = lambda kind, share: browser.call(  # noqa: E731
            "Input.dispatchMouseEvent", type=kind, x=left + share * width, y=top + 0.5 * height, button="left",
            buttons=1, clickCount=1,
        )  # fmt: skip
        send("mousePressed", 0.45)
        for share in np.linspace(0.3, 0.6, 40):
            before = browser.run("window.__rows.length")
            time.sleep(0.2)  # one movement at a time: viser sends at most twenty in a second
            send("mouseMoved", share)
            browser.wait(f"window.__rows.length > {before}")
        send("mouseReleased", 0.6)
        rows, batches = browser.run("window.__rows"), browser.run("window.__batches")
    finally:
        page.close()
    assert len(batches) >= 40
    alone = [all(kind.startswith("Gui") for kind in batch) for batch in batches]
    assert np.mean(alone) > 0.5, batches  # a movement of the robot may join some of them by chance
    parts = []
    for moved, arrived, drawn in rows:
        run, packing = ([x for x in times if moved <= x[0] < drawn] for times in (runs, shown))
        if run and packing:
            parts.append(np.diff([moved, run[0][0], run[0][1], packing[0][1], arrived, drawn]))
    assert len(parts) >= 20
    report = {f"{name} [ms]": x for name, x in zip(PARTS, np.transpose(parts))}
    report["to curves [ms]"] = np.array([drawn - moved for moved, _, drawn in rows])
    report["CPU of simulating [ms]"] = np.array([x[2] for x in runs[1:]])
    report["CPU of packing [ms]"] = np.array([x[2] for x in shown])
    print()
    for name, x in report.items():
        record_property(f"median latency: {name}", float(np.median(x)))
        print(f"{name:24s} median {np.median(x):6.1f}, tenth {np.percentile(x, 10):6.1f}, largest {x.max():6.1f}")


def show_tab(browser, text):
    box = f"""(() => {{
        const b = document.querySelector('[role=tab][title={text}]')?.getBoundingClientRect();
        return b ? [b.left + b.width / 2, b.top + b.height / 2] : null;
    }})()"""
    browser.press(*browser.wait(box))


def choose(browser, label, option):
    """Choose an option of a dropdown, as a user does."""
    browser.wait(f"""(() => {{
        const name = [...document.querySelectorAll('label')].filter(x => x.innerText.trim() === {label!r})[0];
        const input = name && document.getElementById(name.htmlFor);
        input?.click();
        return Boolean(input);
    }})()""")
    browser.wait(f"""(() => {{
        const options = [...document.querySelectorAll('[role=option]')].filter(
            x => x.innerText.trim() === {option!r} && x.offsetParent);
        if (!options.length) return false;
        options[0].click();
        return true;
    }})()""")


def test_a_range_is_set_and_a_map_leads_to_its_settings(browser, page):
    session = page.session
    browser.open(page.address, 1300, 900)
    browser.wait(f"/lyapunov: held/.test({TEXT})")
    show_tab(browser, "edges")
    choose(browser, "control", "load.mass")
    choose(browser, "and", "law.Lambda")
    browser.wait("[...document.querySelectorAll('input')].some(x => x.value === '0:0.5')")
    browser.wait("""(() => {
        const input = [...document.querySelectorAll('input')].filter(x => x.value === '0:0.5')[0];
        input.focus();
        input.select();
        return true;
    })()""")
    browser.call("Input.insertText", text="0:0.6")
    time.sleep(1.0)  # until the text has arrived
    press(browser, "set range")
    browser.wait(f"/load.mass ranges from 0 to 0.6/.test({TEXT})")
    assert session.controls["load.mass"].high == 0.6
    press(browser, "map")
    browser.wait(f"/load.mass to the right/.test({TEXT})", 120)
    row = f"{session.region.y_values[5]:.4g}"
    for column, verdict in (("0.2", "VIOLATED"), ("0", "held")):
        browser.wait(f"""(() => {{
            const rows = [...document.querySelectorAll('div')].filter(
                x => x.innerText.trim().startsWith({row!r}) && x.querySelectorAll('button').length === 7);
            const row = rows[rows.length - 1];
            if (!row) return false;
            [...row.querySelectorAll('button')].filter(x => x.innerText.trim() === {column!r})[0].click();
            return true;
        }})()""")
        browser.wait(f"/mass {column} kg/.test({TEXT})", 20)
        assert session.wait(60)
        assert session.settings["load.mass"] == float(column)
        assert session.settings["law.Lambda"] == session.region.y_values[5]
        show_tab(browser, "run")
        browser.wait(f"/lyapunov: {verdict}/.test({TEXT})")
        show_tab(browser, "edges")
    assert not browser.errors


def test_two_tabs_show_one_setting_and_closing_one_ends_nothing(browser, page):
    browser.open(page.address, 1300, 900)
    browser.wait(f"/lyapunov: held/.test({TEXT})")
    first = page.session.settings
    with browser.another_tab() as tab:
        tab.open(page.address, 900, 700)
        tab.wait(f"/lyapunov: held/.test({TEXT})")
        drag(tab, "mass", [0.1, 0.5, 1.0])
        for x in (tab, browser):
            x.wait(f"/lyapunov: VIOLATED/.test({TEXT})")
        assert not tab.errors
    undo(browser, page, first)
    assert not browser.errors


def test_a_narrow_page_shows_the_robot_and_has_no_errors(browser, page):
    browser.open(page.address, 420, 800)
    browser.wait(f"/monitors held/.test({TEXT})")
    browser.wait(f"{CHARTS}.length === 4 && {CHARTS}.every(x => x.chart.width > 200)")  # their section is open
    time.sleep(2.0)
    assert browser.run("document.documentElement.scrollWidth") <= 420
    assert not browser.errors


def test_a_page_without_the_token_is_refused(page):
    from urllib.error import HTTPError
    from urllib.request import urlopen

    with pytest.raises(HTTPError, match="403"):
        urlopen(page.address.partition("?")[0], timeout=10)
    assert urlopen(page.address, timeout=10).status == 200
