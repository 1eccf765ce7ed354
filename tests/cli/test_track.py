"""`geomctrl track`: exit statuses, messages, files."""

import json
from importlib.util import find_spec

import numpy as np
import pytest
from command_line import run, script

import geomctrl as gc
from geomctrl import controllers, models
from geomctrl.cli import motions

SHORT = ("--seconds", "0.2", "--no-plots")


@pytest.mark.slow
def test_track_writes_a_run_a_report_and_plots(tmp_path):
    result = run("track", "two_link", "--seconds", 0.5, "--payload", 0.5, "--out", tmp_path / "deep" / "demo")
    folder = tmp_path / "deep" / "demo"
    plots = {"overview", "tracking", "torques", "lyapunov", "estimates", "signals", "monitors"}
    page = {"run.html"} if find_spec("viser") is not None else set()
    assert {p.name for p in folder.iterdir()} == {"run.npz", "report.txt"} | {f"{name}.png" for name in plots} | page
    report = (folder / "report.txt").read_text(encoding="utf-8")
    for words in (
        "joint1",
        "RMS",
        "skew",
        "held",
        "steps/s",
        "x real time",
        "mass of link2",
        "unknown load of 0.5 kg at tip",
    ):
        assert words in report
        assert words in result.output
    saved = gc.Run.load(folder / "run.npz")
    assert saved.success
    assert saved.t[-1] == 0.5
    assert set(saved.monitors) == {"skew", "energy", "lyapunov", "group"}


def test_track_ends_with_the_comparison_of_adaptive_and_computed_torque(tmp_path):
    result = run("track", "two_link", *SHORT, "--payload", 0.5, "--out", tmp_path)
    assert "tracking RMS, all joints: SlotineLi" in result.output
    assert "ComputedTorque" in result.output
    alone = run("track", "two_link", *SHORT, "--payload", 0.5, "--no-compare", "--out", tmp_path)
    assert "ComputedTorque" not in alone.output


@pytest.mark.quick(17)
@pytest.mark.parametrize("controller", controllers.classes(tuned=True))
@pytest.mark.parametrize("reference", motions.REFERENCES)
def test_track_takes_every_controller_and_reference(controller, reference, tmp_path):
    result = run("track", "scara", *SHORT, "--controller", controller, "--reference", reference, "--out", tmp_path)
    assert f"scara, {controller}, {reference}, 0.2 s" in result.output
    assert "finished: reached t = 0.2 s" in result.output


@pytest.mark.quick(2)
@pytest.mark.parametrize("robot", models.names())
def test_track_takes_every_bundled_robot(robot, tmp_path):
    result = run("track", robot, *SHORT, "--payload", 1, "--friction", "--no-compare", "--out", tmp_path)
    lyapunov = next(line for line in result.output.splitlines() if "lyapunov" in line)
    assert "held" in lyapunov


def test_track_changes_the_load_during_the_run(tmp_path):
    result = run("track", "two_link", *SHORT, "--payload", 0.5, "--payload-at", 0.1, "--no-compare", "--out", tmp_path)
    assert "from 0.1 s on" in result.output
    assert "VIOLATED" not in result.output


def test_track_samples_the_controller_and_judges_it_as_such(tmp_path):
    arguments = ("--controller", "passivity", "--control-dt", 0.02, "--out", tmp_path)
    result = run("track", "two_link", "--seconds", 1.0, "--no-plots", *arguments)
    assert "controller every 0.02 s" in result.output
    assert "gains lowered" in result.output
    assert "VIOLATED" not in result.output
    assert {"lyapunov", "holding"} <= gc.Run.load(tmp_path / "run.npz").monitors.keys()
    loaded = run("track", "two_link", "--seconds", 1.0, "--no-plots", *arguments, "--payload", 1.0).output
    assert "VIOLATED" in next(line for line in loaded.splitlines() if "lyapunov" in line)
    assert "the law's model lacks the load" in loaded


def test_a_loop_that_diverges_ends_with_a_message_and_the_run_so_far(tmp_path):
    gains = ("--controller", "computed-torque", "--gains", "kp=1e6,kd=1e5")
    result = run("track", "two_link", "--seconds", 1.0, "--no-plots", *gains, "--out", tmp_path, status=1)
    assert "Traceback" not in result.output
    assert "STOPPED" in result.output
    partial = gc.Run.load(tmp_path / "run.npz")
    assert not partial.success
    assert 0 < len(partial.t) < 1001
    assert partial.reason.split(";")[0] in " ".join((tmp_path / "report.txt").read_text(encoding="utf-8").split())


def test_strict_stops_at_the_first_violation_and_names_the_monitor(tmp_path):
    broken = ("--controller", "computed-torque", "--payload", 2, "--strict")
    result = run("track", "two_link", *SHORT, *broken, "--out", tmp_path, status=1)
    assert "monitor 'lyapunov' at t =" in result.output.replace("\n", " ")
    assert (tmp_path / "run.npz").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pandaa",), "no bundled robot named 'pandaa'; did you mean 'panda'?"),
        (("missing.urdf",), "no such file: 'missing.urdf'"),
        (("two_link", "--floating-base"), "for URDF files"),
        (("two_link", "--gains", "kq=3"), "slotine-li has no gain 'kq'; known: Lambda, kappa, rate"),
        (("two_link", "--gains", "Lambda=x"), "expected Lambda=number, got 'Lambda=x'"),
        (("two_link", "--gains", "Lambda=-1"), "Lambda: expected a positive number"),
        (("two_link", "--dt", "0"), "dt: expected a positive number of seconds, got 0"),
        (("two_link", "--seconds", "nan"), "seconds: expected a positive number of seconds, got nan"),
        (("two_link", "--control-dt", "0.0015"), "control-dt: expected a multiple of dt"),
        (("two_link", "--payload", "-1"), "payload: expected a mass >= 0 in kg, got -1"),
        (("two_link", "--payload", "1", "--payload-frame", "hand"), "no frame named 'hand'"),
        (("two_link", "--payload", "1", "--payload-frame", "world"), "fixed to the world"),
        (("two_link", "--payload-at", "-2"), "payload-at: expected a time >= 0"),
        (("two_link", "--reference", "circle"), "reference: expected one of sinusoids, quintic, spline, got 'circle'"),
        (("two_link", "--controller", "passivity", "--adapt", "all"), "adapt: expected one of load, links, base"),
        (("two_link", "--method", "Euler", "--seconds", "0.01"), "Euler"),
    ],
)
def test_bad_arguments_end_with_status_2_and_a_message(arguments, message, tmp_path):
    result = run("track", *arguments, "--no-plots", "--out", tmp_path, status=2)
    assert message in result.output.replace("\n", " ")
    assert "Traceback" not in result.output


def test_unknown_controllers_are_refused_with_the_list(tmp_path):
    result = run("track", "two_link", "--controller", "lqr", "--out", tmp_path, status=2)
    expected = f"controller: expected one of {', '.join(controllers.classes(tuned=True))}, or FILE.py:CLASS, got 'lqr'"
    assert expected in result.output.replace("\n", " ")


def test_a_folder_that_can_not_be_made_ends_with_status_2(tmp_path):
    (tmp_path / "file").write_text("")
    result = run("track", "two_link", *SHORT, "--out", tmp_path / "file" / "out", status=2)
    assert "Traceback" not in result.output


def test_saved_verdicts_are_in_the_file(tmp_path):
    run("track", "two_link", *SHORT, "--out", tmp_path)
    with np.load(tmp_path / "run.npz") as f:
        assert set(json.loads(str(f["about"]))["monitors"]) == {"skew", "energy", "lyapunov", "group"}


STOPPED = """
import os, signal, sys
import geomctrl.cli.track as tracking
from geomctrl.cli.main import main

simulate, calls = tracking.simulate, []

def until_a_signal(*arguments, progress, **options):
    calls.append(1)
    def reported(fraction):
        progress(fraction)
        if fraction >= 0.5 and len(calls) == {call}:
            os.kill(os.getpid(), signal.{signal})
    return simulate(*arguments, progress=reported, **options)

tracking.simulate = until_a_signal
sys.argv[1:] = ["track", "two_link", "--seconds", "2", "--compare", "--out", {out!r}]
sys.exit(main())
"""


@pytest.mark.quick(1)
@pytest.mark.parametrize(("name", "status"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_a_signal_ends_the_run_and_keeps_it(name, status, tmp_path):
    result = script(STOPPED.format(call=1, signal=name, out=str(tmp_path)))
    assert result.returncode == status, result.stderr
    kept = gc.Run.load(tmp_path / "run.npz")
    assert 0.9 < kept.t[-1] < 2.0
    assert not kept.success
    assert kept.reason.startswith(f"interrupted after t = {kept.t[-1]:.6g} s")
    assert kept.reason in result.stderr
    assert f"wrote run.npz, report.txt in {tmp_path}" in result.stdout
    assert "Traceback" not in result.stderr
    assert {p.name for p in tmp_path.iterdir()} == {"run.npz", "report.txt"}


@pytest.mark.slow
def test_a_signal_during_the_comparison_leaves_the_whole_run(tmp_path):
    result = script(STOPPED.format(call=2, signal="SIGINT", out=str(tmp_path)))
    assert result.returncode == 130, result.stderr
    kept = gc.Run.load(tmp_path / "run.npz")
    assert kept.success
    assert kept.t[-1] == 2.0


FULL = """
import resource, sys
from geomctrl.cli.main import main
import geomctrl.cli.track as tracking

save = tracking.Run.save

def on_a_full_disk(run, path):
    if str(path).startswith({out!r}):
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    try:
        return save(run, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

tracking.Run.save = on_a_full_disk
sys.argv[1:] = ["track", "two_link", "--seconds", "0.2", "--no-compare", "--no-plots", "--out", {out!r}]
sys.exit(main())
"""


def test_where_there_is_no_room_the_run_is_kept_elsewhere(tmp_path):
    result = script(FULL.format(out=str(tmp_path / "out")), TMPDIR=str(tmp_path))
    assert result.returncode == 1, result.stderr
    words, elsewhere = result.stderr.strip().split("; the run is kept in ")
    assert words.endswith(f"File too large: {tmp_path / 'out' / 'run.npz'}")
    assert gc.Run.load(elsewhere).t[-1] == 0.2
    assert not (tmp_path / "out" / "run.npz").exists()
