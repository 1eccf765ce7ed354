"""Trajectories as files: other readers of the format get the same motion; files are complete or absent."""

import json
import shutil
import subprocess

import numpy as np
import pytest

from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.identification.excitation import Capsule, Surroundings, Trajectory, load_surroundings, save_trajectory
from geomctrl.models import panda

NAMES = ["shoulder", 'el"bow']
MOTION = Trajectory(1.9, np.random.default_rng(0).normal(size=(5, 2)))
TIMES = np.linspace(0.0, 1.9, 191)


def states():
    return np.concatenate(MOTION.at(TIMES), axis=1)


def test_csv(tmp_path):
    path = save_trajectory(MOTION, tmp_path / "deep" / "m.csv", NAMES)
    assert path.read_text().splitlines()[0] == "t,q1,q2,v1,v2,a1,a2"
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    np.testing.assert_allclose(table[:, 0], TIMES, atol=1e-15)
    np.testing.assert_allclose(table[:, 1:], states(), atol=1e-12)


@pytest.mark.parametrize("suffix", ["json", "yaml", "yml"])
def test_ros_messages(suffix, tmp_path):
    path = save_trajectory(MOTION, tmp_path / f"m.{suffix}", NAMES)
    if suffix == "json":
        message = json.loads(path.read_text())
    else:
        message = pytest.importorskip("yaml").safe_load(path.read_text())
    assert set(message) == {"header", "joint_names", "points"}
    assert message["joint_names"] == NAMES
    points = message["points"]
    keys = {"positions", "velocities", "accelerations", "effort", "time_from_start"}
    assert all(set(p) == keys and p["effort"] == [] for p in points)
    t = [p["time_from_start"]["sec"] + 1e-9 * p["time_from_start"]["nanosec"] for p in points]
    np.testing.assert_allclose(t, TIMES, atol=1e-9)
    assert all(0 <= p["time_from_start"]["nanosec"] < 10**9 for p in points)
    result = [p["positions"] + p["velocities"] + p["accelerations"] for p in points]
    np.testing.assert_allclose(np.array(result, dtype=float), states(), atol=1e-12)


def test_small_numbers_are_numbers_in_yaml(tmp_path):
    yaml = pytest.importorskip("yaml")
    still = Trajectory(1.0, np.array([[1e-7, -2e-9], [0, 0], [0, 0], [0, 0], [0, 0.0]]))
    message = yaml.safe_load(save_trajectory(still, tmp_path / "m.yaml", NAMES).read_text())
    assert message["points"][3]["positions"] == [1e-7, -2e-9]


PROGRAM = """
#include <stdio.h>
#include "m.h"
int main(void) {
    printf("%a %d %d\\n", MOVE_PERIOD, MOVE_SAMPLES, MOVE_JOINTS);
    for (int i = 0; i < MOVE_SAMPLES; i++)
        for (int k = 0; k < MOVE_JOINTS; k++) printf("%a %a %a\\n", move_q[i][k], move_v[i][k], move_a[i][k]);
    return 0;
}
"""


def test_a_c_program_has_the_motion(tmp_path):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    save_trajectory(MOTION, tmp_path / "m.h", NAMES, name="move")
    (tmp_path / "main.c").write_text(PROGRAM)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    subprocess.run([compiler, *flags, str(tmp_path / "main.c"), "-o", str(tmp_path / "main")], check=True)
    out = subprocess.run([str(tmp_path / "main")], check=True, capture_output=True, text=True).stdout.split()
    assert float.fromhex(out[0]) == pytest.approx(0.01)
    assert out[1:3] == ["191", "2"]
    result = np.array([float.fromhex(x) for x in out[3:]]).reshape(191, 2, 3)
    np.testing.assert_allclose(result.transpose(0, 2, 1).reshape(191, 6), states(), atol=1e-12)


def test_repeats_go_on_without_a_pause(tmp_path):
    c = np.zeros((5, 2))
    # 1 - 4/3 cos + 1/3 cos 2: at rest and without acceleration at the ends
    c[0], c[3], c[4] = 1.0, -4.0 / 3.0, 1.0 / 3.0
    motion = Trajectory(2.0, c)
    table = np.loadtxt(
        save_trajectory(motion, tmp_path / "m.csv", NAMES, rate=50.0, repeats=3), delimiter=",", skiprows=1
    )
    assert len(table) == 301
    np.testing.assert_allclose(np.diff(table[:, 0]), 0.02, atol=1e-12)
    np.testing.assert_allclose(table[100:201, 1:], table[:101, 1:], atol=1e-12)
    np.testing.assert_allclose(np.gradient(table[:, 1], table[:, 0])[5:-5], table[5:-5, 3], atol=2e-2)
    np.testing.assert_allclose(table[[0, 100, 300], 3:], 0.0, atol=1e-12)


def test_bad_requests_leave_no_file(tmp_path):
    for match, path, names, options in [
        (r"path: expected a file that ends in \.csv", "m.txt", NAMES, {}),
        ("names: expected 2, one per joint, got 1", "m.csv", ["a"], {}),
        ("rate: expected", "m.csv", NAMES, {"rate": 0.0}),
        ("repeats: expected a whole number from 1", "m.csv", NAMES, {"repeats": 0}),
        ("name: expected a name in C", "m.h", NAMES, {"name": "2x"}),
    ]:
        with pytest.raises(ArgumentError, match=match):
            save_trajectory(MOTION, tmp_path / path, names, **options)
    assert list(tmp_path.iterdir()) == []


# --- surroundings ------------------------------------------------------------------------------------------------

CELL = """
floor = -0.01
clearance = 0.03
radius = 0.055
keep_out = [[0.5, -1, 0, 0.7, 1, 0.8]]

[[capsule]]
frame = "panda_link8"
start = [0, 0, 0]
end = [0, 0, 0.15]
radius = 0.04
"""


def test_surroundings_from_a_file(tmp_path):
    (tmp_path / "cell.toml").write_text(CELL)
    result = load_surroundings(tmp_path / "cell.toml", panda())
    assert (result.floor, result.clearance, result.radius, result.self_collision) == (-0.01, 0.03, 0.055, True)
    np.testing.assert_array_equal(result.keep_out, [[0.5, -1, 0, 0.7, 1, 0.8]])
    (hand,) = [c for c in result.of(panda()) if c.body == 6]
    np.testing.assert_allclose((hand.start[2], hand.end[2], hand.radius), (0.107, 0.257, 0.04))
    assert {c.radius for c in result.of(panda()) if c.body < 6} == {0.055}
    (tmp_path / "open.toml").write_text("floor = false")
    assert load_surroundings(tmp_path / "open.toml", panda()).floor is None


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("flor = 0.0", ArgumentError, r"cell.toml: flor: no such key; known: floor"),
        ("keep_out = [[1, 0, 0, 0, 1, 1]]", ArgumentError, r"keep_out: expected x0 < x1"),
        ("floor = true", ArgumentError, r"floor: expected a finite number"),
        ("clearance = -1", ArgumentError, r"clearance: expected a length >= 0"),
        ("[[capsule]]\nframe = 'panda_link7'", ArgumentError, r"capsule: expected the keys frame, start"),
        (CELL.replace("panda_link8", "link8"), NameNotFoundError, r"cell.toml: no frame named 'link8'"),
        ("floor = [", ArgumentError, r"cell.toml: not a TOML file"),
    ],
)
def test_bad_surroundings_are_named(text, error, match, tmp_path):
    (tmp_path / "cell.toml").write_text(text)
    with pytest.raises(error, match=match):
        load_surroundings(tmp_path / "cell.toml", panda())


def test_bad_surroundings_in_scripts_are_named():
    with pytest.raises(ArgumentError, match="keep_out: expected shape"):
        Surroundings(keep_out=[(0, 0, 0, 1, 1)])
    with pytest.raises(ArgumentError, match="radius: expected a length > 0"):
        Surroundings(radius=0.0)
    with pytest.raises(ArgumentError, match="capsules: expected Capsules"):
        Surroundings(capsules=[1.0])
    with pytest.raises(ArgumentError, match="capsules: expected Capsules on bodies -1 to 6"):
        Surroundings(capsules=[Capsule(9, np.zeros(3), np.zeros(3), 0.1)]).of(panda())
