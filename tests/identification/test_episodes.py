"""Logs of several episodes, as LeRobot keeps them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from geomctrl import models
from geomctrl.cli.options import as_ranges
from geomctrl.errors import ArgumentError
from geomctrl.identification import Dataset, Reading
from geomctrl.identification.errors import DataError
from geomctrl.identification.logs.dataset import read_log

RATE, N = 50.0, 120


def motion(episode):
    """Return (t, q, tau) of an episode that begins where no other one ends."""
    t = np.arange(N) / RATE
    q = np.stack((10.0 * episode + np.sin(t), np.cos(2.0 * t)), -1)
    return t, q, np.stack((np.cos(t) + episode, np.sin(3.0 * t)), -1)


def write_episode(path, episodes, first=0):
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    path.parent.mkdir(parents=True, exist_ok=True)
    parts = [motion(k) for k in episodes]
    t, q, tau = (np.concatenate(x) for x in zip(*parts))
    columns = {
        "timestamp": pyarrow.array(t, pyarrow.float32()),
        "episode_index": np.repeat(list(episodes), N),
        "index": first + np.arange(len(t)),
        "observation.state": pyarrow.array(q.tolist(), pyarrow.list_(pyarrow.float64(), 2)),
        "observation.effort": pyarrow.array(tau.tolist(), pyarrow.list_(pyarrow.float64(), 2)),
        "observation.image": pyarrow.array([{"bytes": b"png", "path": "x"}] * len(t)),
    }
    parquet.write_table(pyarrow.table(columns), path)


@pytest.fixture(params=["a file an episode", "several episodes a file"])
def folder(request, tmp_path):
    if request.param == "a file an episode":
        for k in range(4):
            write_episode(tmp_path / f"data/chunk-000/episode_{k:06d}.parquet", [k])
    else:
        write_episode(tmp_path / "data/chunk-000/file-000.parquet", [0, 1, 2])
        write_episode(tmp_path / "data/chunk-000/file-001.parquet", [3])
    named = {"names": {"motors": ["base", "elbow"]}}
    features = {"observation.state": named, "observation.effort": {"names": ["base", "elbow"]}, "action": {}}
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta/info.json").write_text(json.dumps({"fps": RATE, "features": features}))
    return tmp_path


def test_episodes_follow_each_other_with_a_hole_between(folder):
    log = Dataset.read(folder)
    assert (len(log), log.gaps) == (4 * N, (N, 2 * N, 3 * N))
    steps = np.diff(log.t)
    np.testing.assert_allclose(np.delete(steps, [N - 1, 2 * N - 1, 3 * N - 1]), 1.0 / RATE, rtol=1e-3)
    np.testing.assert_array_equal(log.q, np.concatenate([motion(k)[1] for k in range(4)]))
    assert "episodes 0 to 3 of 4, nothing filtered across" in log.history


def test_chosen_episodes_are_read_alone(folder):
    log = Dataset.read(folder, episodes=[3, 1])
    assert log.gaps == (N,)
    np.testing.assert_array_equal(log.tau, np.concatenate([motion(k)[2] for k in (1, 3)]))


def test_entries_of_features_are_columns(folder):
    keys = {"q": ["observation.state.elbow", "observation.state.base"], "tau": "observation.effort"}
    np.testing.assert_array_equal(Dataset.read(folder, keys, episodes=[0]).q, motion(0)[1][:, ::-1])


def test_nothing_is_differentiated_across_episodes(folder):
    """A jump of ten radians between episodes would give velocities of hundreds of rad/s."""
    robot = models.two_link()
    both = read_log(folder, robot, Reading(check_units=False)).filtered(5.0)
    assert np.abs(both.v).max() < 2.1
    alone = read_log(folder, robot, Reading(check_units=False, episodes=[2])).filtered(5.0)
    np.testing.assert_allclose(both.a[2 * N : 3 * N], alone.a, atol=1e-6)
    closed = replace(both, t=np.arange(len(both)) / RATE, gaps=(), v=None, a=None)
    assert np.abs(closed.filtered(5.0).v).max() > 10.0  # velocities if the jump were differentiated


def test_rows_left_out_keep_the_gaps_where_they_are(folder):
    arrays = {"t": np.tile(motion(0)[0], 2), "episode_index": np.repeat([4, 5], N)}
    q, tau = (np.concatenate([motion(k)[i] for k in (4, 5)]) for i in (1, 2))
    q[7] = np.nan
    log = Dataset.read({**arrays, "q": q, "tau": tau}, drop_bad_rows=True)
    assert (len(log), log.gaps) == (2 * N - 1, (N - 1,))


def test_what_can_not_be_read_is_said(folder):
    with pytest.raises(DataError, match="episodes: no episode 7; there are 0 to 3"):
        Dataset.read(folder, episodes=[0, 7])
    t, q, tau = motion(0)
    with pytest.raises(DataError, match="no column 'episode_index'"):
        Dataset.read({"t": t, "q": q, "tau": tau}, episodes=[0])
    with pytest.raises(DataError, match="rows of an episode together"):
        Dataset.read({"t": t, "q": q, "tau": tau, "episode_index": np.arange(N) % 2})
    for bad in ([], [-1], ["a"], [0.5]):
        with pytest.raises(ArgumentError, match="episodes"):
            Reading(episodes=bad)
    (folder / "data").rename(folder / "elsewhere")
    with pytest.raises(DataError, match="without parquet files"):
        Dataset.read(folder)


def test_ranges_of_episodes_on_the_command_line():
    assert as_ranges("0,2-4") == [0, 2, 3, 4]
    for bad in ("x", "3-1", "1-", "-2", "0-99999999999"):
        with pytest.raises(ValueError, match="expected numbers and ranges"):
            as_ranges(bad)
