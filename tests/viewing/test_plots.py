"""Pictures of runs exist, are not blank, and need nothing that a run may lack."""

import io
import os
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.cli.scenario import Scenario, ScenarioOptions
from geomctrl.control.monitors.monitor import MonitorResult
from geomctrl.control.samples import Samples
from geomctrl.errors import ArgumentError, SimulationError
from geomctrl.viewing import curves, overview, plots, tracking
from geomctrl.viewing.samples import coordinates


def simulated(robot, controller="slotine-li", seconds=0.2, plant=None, **options):
    case = Scenario.make(robot, ScenarioOptions(controller=controller, seconds=seconds, dt=2e-3, **options))
    return gc.simulate(plant or case.plant, case.controller, case.q0, case.v0, seconds, 2e-3)


def check_pictures(paths, folder, names):
    assert {p.name for p in paths} == {p.name for p in folder.iterdir()} == {f"{n}.png" for n in names}
    for path in paths:
        image = imread(path)[..., :3]
        assert min(image.shape[:2]) > 300
        assert max(image.shape[:2]) < 6000
        ink = (image < 0.9).any(axis=-1)
        assert 0.002 < ink.mean() < 0.5, path.name  # neither blank nor black
        margin = np.concatenate((ink[0], ink[-1], ink[:, 0], ink[:, -1]))
        assert not margin.any(), f"{path.name}: something is cut off"


ALL = ("overview", "tracking", "torques", "lyapunov", "estimates", "signals", "monitors")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("robot", "options"),
    [
        ("two_link", {"payload": 1.0}),
        ("panda", {"payload": 2.0, "adapt": "links", "friction": True}),
        ("ur10", {"payload": 1.0, "adapt": "base"}),
        ("quadruped", {"payload": 2.0, "payload_at": 0.1}),
    ],
)
def test_an_adaptive_run_has_all_pictures(robot, options, tmp_path):
    run = simulated(models.load(robot), **options)
    check_pictures(run.plot(tmp_path), tmp_path, ALL)


@pytest.mark.slow
def test_thirty_joints_fit(tmp_path):
    inertia = gc.inertia.from_com(0.5, (0.1, 0, 0), 0.002 * np.eye(3))
    step = np.eye(4)
    step[0, 3] = 0.2
    bodies = [
        gc.Body(f"link{i}", f"link{i - 1}" if i else None, gc.Joint.revolute((0, i % 2, 1 - i % 2)), step, inertia)
        for i in range(30)
    ]
    run = simulated(gc.Robot.build(bodies), "passivity", seconds=0.02)
    check_pictures(plots.plot_run(run, tmp_path), tmp_path, set(ALL) - {"estimates"})


@pytest.mark.slow
def test_runs_without_reference_state_and_lyapunov_function_are_drawn(tmp_path):
    class Idle:
        def start(self):
            return None

        def __call__(self, t, q, v, z):
            return gc.Command(np.zeros_like(v))

    robot = models.two_link()
    run = gc.simulate(gc.Plant(robot), Idle(), robot.neutral(), np.zeros(2), 0.1, 1e-3)
    check_pictures(plots.plot_run(run, tmp_path), tmp_path, {"overview", "tracking", "torques", "monitors"})


@pytest.mark.slow
def test_a_run_without_monitors_is_drawn(tmp_path):
    case = Scenario.make(models.two_link(), ScenarioOptions(controller="passivity", seconds=0.1))
    run = gc.simulate(case.plant, case.controller, case.q0, case.v0, 0.1, 1e-3, monitors=None)
    check_pictures(plots.plot_run(run, tmp_path), tmp_path, {"overview", "tracking", "torques", "signals"})


@pytest.mark.slow
def test_a_loaded_run_is_drawn_without_its_plant_and_controller(tmp_path):
    run = gc.Run.load(simulated(models.two_link()).save(tmp_path / "run.npz"))
    check_pictures(plots.plot_run(run, tmp_path / "plots"), tmp_path / "plots", ALL)


@pytest.mark.slow
def test_a_failed_run_is_drawn_as_far_as_it_goes(tmp_path):
    robot = models.two_link()
    law = controllers.ComputedTorque(robot, gc.references.hold(robot, [0.5, 0.5]), kp=1e7, kd=1e5)
    with pytest.raises(SimulationError) as caught:
        gc.simulate(gc.Plant(robot), law, robot.neutral(), np.zeros(2), 1.0, 1e-3)
    check_pictures(plots.plot_run(caught.value.run, tmp_path), tmp_path, set(ALL) - {"estimates", "signals"})


def test_the_overview_compares_runs(tmp_path):
    one, other = simulated(models.two_link(), payload=1.0), simulated(models.two_link(), "computed-torque", payload=1.0)
    figure = overview.figure(one, {"ComputedTorque": other})
    labels = figure.axes[1].get_legend_handles_labels()[1]
    assert [label.split(",")[0] for label in labels] == ["SlotineLi", "ComputedTorque"]


def test_a_run_of_one_sample_is_refused(tmp_path):
    run = simulated(models.two_link())
    cut = gc.Run(Samples(run.t[:1], run.q[:1], run.v[:1], run.tau[:1]), {}, "", False, 0, 0.0)
    with pytest.raises(ArgumentError, match="it has 1 samples"):
        plots.plot_run(cut, tmp_path)


def test_nothing_half_written_stays_when_writing_fails(tmp_path, monkeypatch):
    run = simulated(models.two_link())
    (tmp_path / "overview.png").write_bytes(b"the old one")

    def refuse(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="disk full"):
        plots.plot_run(run, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["overview.png"]
    assert (tmp_path / "overview.png").read_bytes() == b"the old one"


def test_pyplot_is_never_imported():
    import subprocess

    code = "import sys, geomctrl.viewing.plots; assert 'matplotlib.pyplot' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


def test_a_loaded_run_is_drawn_with_its_error_and_units(tmp_path):
    run = simulated(models.two_link())
    path = run.save(tmp_path / "run.npz")
    errors = []
    for plant, unit in ((run.plant, "rad"), (None, "rad, m")):
        loaded = gc.Run.load(path, plant)
        assert len(overview.figure(loaded, {}).axes[1].lines) == 1
        axes = tracking.figure(loaded).axes
        assert axes[0].get_ylabel() == unit
        assert axes[1].get_ylabel() == ("mrad" if plant else "mrad, mm")
        errors.append(axes[1].lines[1].get_ydata())
    np.testing.assert_array_equal(*errors)


def test_poses_of_a_loaded_run_are_drawn_as_they_are(tmp_path):
    t, q, v = np.linspace(0.0, 1.0, 5), np.tile([0, 0, 0, 0, 0, 0, 1.0], (5, 1)), np.zeros((5, 6))
    run = gc.Run(Samples(t, q, v, v, desired=gc.Desired(q, v, v)), {}, "", True, 4, 0.0)
    assert run.real_time_factor == 0.0
    assert not overview.figure(run, {}).axes[1].lines  # no error that needs the robot to be computed
    assert len(tracking.figure(run).axes) == 7
    check_pictures(plots.plot_run(run, tmp_path), tmp_path, {"overview", "tracking", "torques"})


def test_a_free_body_is_drawn_where_it_is_and_turns_without_jumps():
    robot = models.quadrotor()
    t = np.linspace(0.0, 1.0, 41)
    turned = np.outer(9.0 * np.sin(2.0 * t), [0.6, 0.0, 0.8])  # rad, more than a whole turn
    p = np.stack([t, t**2, 1.0 - t], axis=1)
    R0 = gc.so3.exp([0.3, -0.2, 1.0])
    q = np.concatenate([R0 @ gc.so3.exp(turned), p[:, :, None]], axis=2).reshape(-1, 12)
    run = gc.Run(Samples(t, q, np.zeros((41, 6)), np.zeros((41, 6))), {}, "", True, 40, 1.0, gc.Plant(robot))
    _, units, drawn, _, _ = coordinates(run)
    np.testing.assert_allclose(drawn, np.hstack([turned, p]), atol=1e-9)
    assert units == ["rad"] * 3 + ["m"] * 3
    assert len(overview.figure(run, {}).axes) == 3  # no room for more


@pytest.mark.slow
def test_pictures_have_the_same_style_in_every_style_of_the_caller(tmp_path):
    """Titles to the left, white text on black, huge fonts: a user's settings stay, and our pictures do not change."""
    import matplotlib as mpl

    run = simulated(models.two_link(), payload=1.0)

    def drawn(folder):
        pictures = [imread(path) for path in run.plot(folder)]
        return [*pictures, imread(io.BytesIO(run.plot()._repr_png_()))], curves.curves(run)

    plain, page = drawn(tmp_path / "plain")
    assert "tracking error, all joints" in page[0]
    theirs = {"axes.titlelocation": "left", "text.color": "white", "axes.facecolor": "black", "font.size": 30}
    with mpl.rc_context(theirs):
        styled, again = drawn(tmp_path / "styled")
        assert {name: mpl.rcParams[name] for name in theirs} == theirs
    for a, b in zip(plain, styled, strict=True):
        np.testing.assert_array_equal(a, b)
    assert page[1] == again[1]


def test_a_monitor_of_a_distance_has_no_ratio():
    one = MonitorResult("limits", "beyond", 0.0, np.full(3, -0.7), -0.7, 0.0)
    t, x = np.linspace(0.0, 1.0, 3), np.zeros((3, 1))
    run = gc.Run(Samples(t, x, x, x), {"limits": one}, "", True, 2, 1.0)
    panel = overview.figure(run, {}).axes[5]
    assert [text.get_text() for text in panel.texts] == ["limits: worst -0.7, limit 0: held"]
    assert [bar.get_width() for bar in panel.patches] == [0.0]


def test_what_is_watched_without_a_limit_is_drawn(tmp_path):
    one = MonitorResult("speed", "of the tool, m/s", np.inf, np.array([1.0, 3.0, 2.0]), 3.0, 0.5)
    t, x = np.linspace(0.0, 1.0, 3), np.zeros((3, 1))
    run = gc.Run(Samples(t, x, x, x), {"speed": one}, "", True, 2, 1.0)
    check_pictures(plots.plot_run(run, tmp_path), tmp_path, {"overview", "tracking", "torques", "monitors"})
    assert "no monitors" in curves.curves(run)[0]


def test_a_picture_is_no_folder(tmp_path):
    run = simulated(models.two_link())
    with pytest.raises(ArgumentError, match=r"folder: expected one for several PNG files, got .*run\.png"):
        run.plot(tmp_path / "run.png")
    run.plot().savefig(tmp_path / "run.png")
    assert imread(tmp_path / "run.png").shape[0] > 300


def test_anything_with_samples_is_drawn(tmp_path):
    """The pictures need no Run: any object with the same fields works."""
    run = simulated(models.two_link())
    names = (
        "t",
        "q",
        "v",
        "applied",
        "z",
        "signals",
        "monitors",
        "desired",
        "plant",
        "controller",
        "reason",
        "success",
    )
    samples = types.SimpleNamespace(**{n: getattr(run, n) for n in names}, tracking_error=run.tracking_error)
    check_pictures(plots.plot_run(samples, tmp_path), tmp_path, ALL)
    source = "".join(p.read_text(encoding="utf-8") for p in Path(plots.__file__).parent.glob("*.py"))
    assert "geomctrl.control" not in source


def test_signals_and_limits_are_drawn(tmp_path):
    """Numbers and arrays of any shape; monitors whose limit is zero, as those of joints' ranges, held and not."""

    class Talking:
        def start(self):
            return None

        def __call__(self, t, q, v, z):
            return gc.Command(0.0 * v, None, {"power": v @ v, "matrix": np.outer(q, v), "e": q})

    robot = models.panda()
    q0, v0 = robot.neutral(), np.full(7, 3.0)
    run = gc.simulate(gc.Plant(robot), Talking(), q0, v0, 0.02, 1e-3)
    assert run.monitors["effort_limits"].ok
    assert not run.monitors["velocity_limits"].ok
    result = plots.plot_run(run, tmp_path)
    assert {p.stem for p in result} == {"overview", "tracking", "torques", "signals", "monitors"}
