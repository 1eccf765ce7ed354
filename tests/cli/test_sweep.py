"""`geomctrl sweep`: a study is run, resumed, refused; output and files."""

import numpy as np
import pytest
from command_line import program, run
from matplotlib.image import imread

from geomctrl.control.sweeping.sweep import load

STUDY = """
from pathlib import Path
import numpy as np
import geomctrl as gc
from geomctrl import controllers, models
import sibling

arm = models.two_link()
space = {"payload": ("payload", [0.0, 1.0], {"units": "kg"}), "kp": np.geomspace(10.0, 1000.0, 4)}
measures = [gc.measures.PeakTorque(), gc.measures.SettlingTime(0.2)]
t_end, dt, block = 0.02, 1e-3, 8

def make(point):
    if point["kp"] == 10.0:
        raise ValueError("too [soft]")
    if Path(__file__).with_name("stop").exists():
        raise KeyboardInterrupt
    return arm.with_payload(point["payload"]), controllers.PDGravity(arm, sibling.goal, kp=point["kp"]), [0, 0], [0, 0]
"""


@pytest.fixture
def study(tmp_path):
    (tmp_path / "sibling.py").write_text("goal = [0.1, 0.2]\n")
    (tmp_path / "study.py").write_text(STUDY)
    return tmp_path / "study.py"


def test_a_study_ends_with_tables_pictures_and_a_store(study, tmp_path):
    out = tmp_path / "deep" / "out"
    said = run("sweep", study, "--out", out).output
    assert {p.name for p in out.iterdir()} == {"sweep.zarr", "report.txt", "peak_torque.png", "settling_time.png"}
    report = (out / "report.txt").read_text(encoding="utf-8")
    for words in ("8 runs: payload 2, kp 4", "peak_torque", "N m", "6 of 8 runs reached their end"):
        assert words in report
        assert words in said
    assert "  2 did not, as run 0: make: ValueError: too [soft]" in report
    table = load(out / "sweep.zarr")
    assert f"{float(table.peak_torque.max()):.4g}" in report
    picture = imread(out / "peak_torque.png")[..., :3]
    assert 0.05 < (picture < 0.9).any(axis=-1).mean() < 0.8
    refused = run("sweep", study, "--out", out, status=2).output
    assert "exists; --resume continues it" in refused
    resumed = run("sweep", study, "--out", out, "--resume", "--no-plots").output
    first, _, rest = resumed.partition("\n")
    assert first == "geomctrl: resumed: 8 of 8 runs were there"
    assert rest.startswith(said.partition("wrote")[0])
    study.write_text(STUDY.replace("0.02, 1e-3", "0.03, 1e-3"))
    assert "t_end is 0.02 there, 0.03 here" in run("sweep", study, "--out", out, "--resume", status=2).output


def test_interrupted_it_says_how_to_go_on(study, tmp_path):
    options = ("sweep", study, "--no-plots", "--out", tmp_path, "--store", tmp_path / "s.zarr")
    (tmp_path / "stop").touch()
    assert "interrupted; finished runs are saved, --resume continues" in run(*options, status=130).output
    (tmp_path / "stop").unlink()
    run(*options, "--resume")
    assert int(load(tmp_path / "s.zarr").success.sum()) == 6


def test_what_is_no_study_is_refused(study, tmp_path):
    assert "no such file" in run("sweep", tmp_path / "none.py", status=2).output
    study.write_text("make = dt = 1\n")
    assert "expected space, measures, t_end in" in run("sweep", study, "--out", tmp_path / "o", status=2).output
    study.write_text(STUDY + "space = {'kp': [1.0, float('nan')]}\n")
    said = run("sweep", study, "--out", tmp_path / "o", status=2).output
    assert "space: 'kp': expected finite numbers, got nan" in said
    assert not (tmp_path / "o").exists()


def test_a_scheduler_that_does_not_answer_is_told(study, tmp_path, monkeypatch):
    def silent(address, **options):
        raise OSError("Timed out")

    monkeypatch.setattr("distributed.Client", silent)
    said = run("sweep", study, "--out", tmp_path / "o", "--scheduler", "tcp://head:1", status=2).output
    assert "--scheduler: no dask scheduler answers at 'tcp://head:1': Timed out" in said


@pytest.mark.slow
def test_on_a_cluster(study, tmp_path):
    from distributed import Client, LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, local_directory=tmp_path / "dask"
    ) as cluster:
        address = f"{cluster.scheduler.address}"
        with Client(cluster):
            run("sweep", study, "--no-plots", "--out", tmp_path / "a", "--scheduler", address)
    run("sweep", study, "--no-plots", "--out", tmp_path / "b")
    a, b = (load(tmp_path / name / "sweep.zarr") for name in "ab")
    np.testing.assert_array_equal(a.peak_torque, b.peak_torque)


@pytest.mark.slow
def test_as_a_program_it_says_no_more_than_that(study, tmp_path):
    ran = program("sweep", "study.py", "--no-plots", "--out", "out", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("8 runs: payload 2, kp 4")
