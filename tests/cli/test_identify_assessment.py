"""The exit status of `geomctrl identify`, and the findings that it can ignore."""

import errno
import json
import os
from contextlib import redirect_stdout

import pytest
from cli.identify_logs import run, simulated, write

from geomctrl.cli import identify_options
from geomctrl.cli.main import run as run_command


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    t, q, tau, _, _ = simulated()
    return {
        "good": write(folder / "good.csv", t, q, tau),
        "sign": write(folder / "sign.csv", t, q, tau * [1.0, -1.0]),
        "mN m": write(folder / "milli.csv", t, q, 1e3 * tau),
    }


def identified(log, out, *arguments, status):
    options = (
        "--robot", "two_link", "--rotor", "yes", "--cutoff", 15, "--prior-weight", 1e-6, "--noise-weights",
        "--no-plots", "--out", out,
    )  # fmt: skip
    return run(log, *options, *arguments, status=status)


def test_a_good_log_ends_with_0(logs, tmp_path):
    assert identified(logs["good"], tmp_path, status=0).lstrip().startswith("assessment: TRUST")


def test_a_turned_sign_ends_with_1_and_files_are_written(logs, tmp_path):
    said = identified(logs["sign"], tmp_path, status=1)
    assert "assessment: NOT TO BE TRUSTED" in said
    assert "FATAL, sign: " in said
    assert "'joint2' has the other sign" in " ".join(said.split())
    tables = json.loads((tmp_path / "report.json").read_text())["assessment"]
    assert (tables["status"], tables["exit_status"]) == ("distrust", 1)
    assert (tmp_path / "robot.json").exists()


def test_torques_in_other_units_that_are_let_pass_end_with_1(logs, tmp_path):
    assert "wrong units suspected" in " ".join(identified(logs["mN m"], tmp_path, status=2).split())
    said = identified(logs["mN m"], tmp_path, "--no-check-units", status=1)
    assert "times those of the model's own bodies" in " ".join(said.split())


def test_doubts_alone_end_with_3(logs, tmp_path):
    """Least squares give a physically impossible robot, and the report says so."""
    said = run(logs["good"], "--robot", "two_link", "--rotor", "yes", "--cutoff", 15, "--method", "ols", "--no-plots",
               "--out", tmp_path, status=3)  # fmt: skip
    assert "assessment: DOUBTS" in said
    assert "doubt, bodies: no body can have the parameters of " in said


def test_what_is_ignored_is_said(logs, tmp_path):
    said = identified(logs["sign"], tmp_path, "--ignore", "all", status=0)
    assert "assessment: TRUST: nothing was found that speaks against it (ignored: sign" in said
    assert "ignored, sign: " in said
    assert "(ignored: sign" in (tmp_path / "report.txt").read_text()
    identified(logs["sign"], tmp_path, "--ignore", "bodies", "--ignore", "drift", status=1)


def test_kinds_that_there_are_not_are_refused_before_the_fit(logs, tmp_path):
    said = identified(logs["good"], tmp_path / "out", "--ignore", "sings", status=2)
    assert "--ignore: expected some of sign, swap, scale, coupling" in " ".join(said.split())
    assert not (tmp_path / "out").exists()


def test_a_setup_file_can_ignore_as_well(logs, tmp_path):
    (tmp_path / "s.toml").write_text('[assessment]\nignore = ["sign", "bodies", "prior"]\n')
    # the finding that torques are unexplained
    said = identified(logs["sign"], tmp_path, "--setup", tmp_path / "s.toml", status=1)
    assert "ignored, sign: " in said


def test_files_that_can_not_be_written_end_with_2_and_all_others_are_written(logs, tmp_path):
    """A folder with the name of an output file, which no operating system replaces by a file."""
    whole, out = tmp_path / "whole", tmp_path / "out"
    identified(logs["good"], whole, status=0)
    for name in ("report.json", "robot.urdf"):
        (out / name / "inside").mkdir(parents=True)
    for log in ("good", "sign"):  # whether the result is trusted or not
        said = " ".join(identified(logs[log], out, status=2).split())
        for name in ("report.json", "robot.urdf"):
            assert f"{out / name}: " in said
        assert "assessment: " in said
        assert {path.name for path in out.iterdir()} == {path.name for path in whole.iterdir()}
    assert "NOT TO BE TRUSTED" in (out / "report.txt").read_text()


def test_a_folder_that_can_not_be_made_ends_with_2_after_the_report(logs, tmp_path):
    (tmp_path / "out").write_text("a file")
    said = identified(logs["good"], tmp_path / "out" / "deeper", status=2)
    assert said.lstrip().startswith("assessment: TRUST")
    last = said.strip().splitlines()[-1]
    assert str(tmp_path / "out") in last
    assert last.startswith("geomctrl: not written: ")
    assert "wrote" not in said


def test_an_export_that_can_not_be_written_does_not_stop_another(logs, tmp_path, monkeypatch):
    def full(robot, path, extra):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    save = identify_options.save_c_header
    monkeypatch.setattr(identify_options, "save_c_header", lambda *a: full(*a) if a[1].name == "full.h" else save(*a))
    exports = ("--export", tmp_path / "full.h", "--export", tmp_path / "good.h")
    said = identified(logs["good"], tmp_path / "out", *exports, status=2)
    assert f"{tmp_path / 'full.h'}: No space left on device" in " ".join(said.split())
    assert (tmp_path / "good.h").exists()
    assert (tmp_path / "out" / "report.txt").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_output_that_can_not_be_printed_does_not_look_like_distrust(logs, tmp_path):
    with open("/dev/full", "w") as full, redirect_stdout(full):
        status = run_command([
            "identify", str(logs["good"]), "--robot", "two_link", "--rotor", "yes", "--cutoff", "15", "--prior-weight",
            "1e-6", "--noise-weights", "--no-plots", "--out", str(tmp_path),
        ])  # fmt: skip
    assert status == 2
    assert (tmp_path / "report.txt").exists()


def test_the_help_says_what_statuses_mean():
    said = " ".join(run("--help", status=0).split())
    for words in ("1 written, but not trustworthy", "3 written, with doubts to check", "--ignore"):
        assert words in said
