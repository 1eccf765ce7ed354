"""`geomctrl excite`: files, messages, exit statuses."""

import csv
import json
import re
import tempfile

import numpy as np
import pytest
from command_line import run
from urdf_arms import ARM

from geomctrl import models

SMALL = ("--starts", 1, "--compare", 5, "--iterations", 6, "--terms", 3)
FILES = {f"excitation{x}" for x in (".csv", ".yaml", ".json", ".h", ".txt", "_parameters.csv")}


def test_a_design_is_written_and_told(tmp_path):
    said = run(
        "excite", "scara", "--velocity", 2, "--seconds", 4, *SMALL, "--floor", "none", "--out", tmp_path, "--rate", 50
    ).output
    assert {p.name for p in tmp_path.iterdir()} == {*FILES, "excitation.png"}
    assert "random ones that are better" in said
    assert "left of each limit" in said
    assert "least certain of" in said
    table = np.loadtxt(tmp_path / "excitation.csv", delimiter=",", skiprows=1)
    assert table.shape == (201, 1 + 3 * 4)
    np.testing.assert_allclose(table[[0, -1], 5:], 0.0, atol=1e-9)
    assert (np.abs(table[:, 5:9]) <= 2.0).all()
    message = json.loads((tmp_path / "excitation.json").read_text())
    assert message["joint_names"] == list(models.scara().dof_names)
    rows = list(csv.DictReader((tmp_path / "excitation_parameters.csv").read_text().splitlines()))
    assert len(rows) >= 10
    assert all(float(row["predicted standard deviation"]) > 0.0 for row in rows)


def test_a_motion_that_its_folder_does_not_take_is_kept_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "arm.urdf").write_text(ARM)
    (tmp_path / "out" / "excitation.json").mkdir(parents=True)
    options = (*SMALL, "--seconds", 4, "--velocity", 2, "--no-plots", "--out", tmp_path / "out")
    said = run("excite", tmp_path / "arm.urdf", *options, status=2).output
    assert "least certain of" in said
    (elsewhere,) = tmp_path.glob("geomctrl-*")
    assert f"in {elsewhere}" in said
    assert {p.name for p in elsewhere.iterdir()} == FILES


@pytest.mark.slow
def test_a_urdf_with_everything_around_it(tmp_path):
    (tmp_path / "arm.urdf").write_text(ARM.replace("1.5707963", "1.2"))
    (tmp_path / "cell.toml").write_text("clearance = 0.01\nkeep_out = [[0.6, 0.5, 0, 0.9, 0.9, 1.0]]")
    around = ("--surroundings", tmp_path / "cell.toml", "--keep-out", "-2,-2,1.2,2,2,2", "--floor", "-0.05")
    label = ("--friction", "viscous", "--noise", "0.1,0.2", "--jerk", "80", "--torque-margin", "0.3", "--no-plots")
    said = run("excite", tmp_path / "arm.urdf", "--seconds", 3, *SMALL, *around, *label, "--out", tmp_path / "o").output
    assert {p.name for p in (tmp_path / "o").iterdir()} == FILES
    assert "closest to keep-out boxes" in said
    assert "torque noise 0.1, 0.2" in re.sub(r"\s+", " ", said)
    assert "jerk" in said


def test_what_does_not_fit_is_refused_and_nothing_is_written(tmp_path):
    said = run("excite", "panda", *SMALL, "--floor", "1.5", "--out", tmp_path / "o", status=1).output
    assert re.search(r"over the floor: -?[\d.]+ cm, asked for 2\.0 cm", re.sub(r"\s+", " ", said))
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (("panda", "--keep-out", "0,0,0,1,1"), "keep_out: expected shape"),
        (("panda", "--keep-out", "-1,-1,0,1,1"), "keep_out: expected shape"),
        (("panda", "--keep-out", "0,0,0,1,1,x"), "Invalid value for --keep-out: expected numbers"),
        (("panda", "--velocity", "1,2"), "velocity: expected a number or 7"),
        (("panda", "--friction", "sticky"), "Invalid value for --friction: expected some of viscous, coulomb, offset"),
        (("panda", "--collisions", "file"), "--collisions file: for URDF files"),
        *((("panda", "--floor", x), "--floor: expected one number or none") for x in ("low", "", "1,2")),
        (("two_link",), "velocity: joint 'joint1' has no limit"),
        (("quadruped",), "revolute and prismatic"),
        (("pander",), "no bundled robot named"),
    ],
)
def test_bad_arguments(options, match, tmp_path):
    said = run("excite", *options, *SMALL, "--out", tmp_path / "o", status=2).output
    assert match in re.sub(r"\s+", " ", said)
    assert not (tmp_path / "o").exists()


@pytest.mark.slow
def test_the_examples_of_the_help_run_as_printed(tmp_path, monkeypatch):
    """The defaults, with fewer starts and iterations to save time."""
    monkeypatch.chdir(tmp_path)
    from geomctrl.cli import excite

    examples = re.findall(r"`geomctrl (excite [^`]+)`", excite.__doc__ or "")
    assert len(examples) >= 4
    for example in examples:
        run(*example.split(), *SMALL, "--no-plots")
