"""The exit status of `geomctrl identify`, and the findings that it can ignore."""

import json

import pytest
from cli.identify_logs import run, simulated, write


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
    assert identified(logs["good"], tmp_path, status=0).lstrip().startswith("verdict: TRUST")


def test_a_turned_sign_ends_with_1_and_files_are_written(logs, tmp_path):
    said = identified(logs["sign"], tmp_path, status=1)
    assert "verdict: NOT TO BE TRUSTED" in said
    assert "FATAL, sign: " in said
    assert "'joint2' has the other sign" in " ".join(said.split())
    tables = json.loads((tmp_path / "report.json").read_text())["verdict"]
    assert (tables["status"], tables["exit_status"]) == ("distrust", 1)
    assert (tmp_path / "robot.json").exists()


def test_torques_in_other_units_that_are_let_pass_end_with_1(logs, tmp_path):
    assert "wrong units suspected" in " ".join(identified(logs["mN m"], tmp_path, status=2).split())
    said = identified(logs["mN m"], tmp_path, "--no-check-units", status=1)
    assert "times those of the model's own bodies" in " ".join(said.split())


def test_doubts_alone_end_with_3(logs, tmp_path):
    """Least squares give a robot that can not exist, and say so."""
    said = run(logs["good"], "--robot", "two_link", "--rotor", "yes", "--cutoff", 15, "--method", "ols", "--no-plots",
               "--out", tmp_path, status=3)  # fmt: skip
    assert "verdict: DOUBTS" in said
    assert "doubt, bodies: no body can have the parameters of " in said


def test_what_is_ignored_is_said(logs, tmp_path):
    said = identified(logs["sign"], tmp_path, "--ignore", "all", status=0)
    assert "verdict: TRUST: nothing was found that speaks against it (ignored: sign" in said
    assert "ignored, sign: " in said
    assert "(ignored: sign" in (tmp_path / "report.txt").read_text()
    identified(logs["sign"], tmp_path, "--ignore", "bodies", "--ignore", "drift", status=1)


def test_kinds_that_there_are_not_are_refused_before_the_fit(logs, tmp_path):
    said = identified(logs["good"], tmp_path / "out", "--ignore", "sings", status=2)
    assert "--ignore: expected sign, swap, scale, coupling" in " ".join(said.split())
    assert not (tmp_path / "out").exists()


def test_a_setup_file_can_ignore_as_well(logs, tmp_path):
    (tmp_path / "s.toml").write_text('[verdict]\nignore = ["sign", "bodies", "prior"]\n')
    said = identified(logs["sign"], tmp_path, "--setup", tmp_path / "s.toml", status=1)  # for being unexplained
    assert "ignored, sign: " in said


def test_the_help_says_what_statuses_mean():
    said = " ".join(run("--help", status=0).split())
    for words in ("1 written, but not trustworthy", "3 written, with doubts to check", "--ignore"):
        assert words in said
