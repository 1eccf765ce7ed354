"""`geomctrl identify` from LeRobot datasets in versions 2.1 and 3.0, as LeRobot's documentation describes their files.

Version 2.1 has one parquet file for each episode, data/chunk-000/episode_000000.parquet, and lists of JSON in meta/.
Version 3.0 has several episodes in one file, data/chunk-000/file-000.parquet, and parquet files in meta/. Numbers are
32-bit floats, times begin at zero in each episode, and images are videos in other files.
"""

import json

import numpy as np
import pytest
from cli.identify_logs import run, simulated

from geomctrl import models

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
NAMES = ["shoulder.pos", "elbow.pos"]


def feature(names, dtype="float32"):
    return {"dtype": dtype, "shape": [len(names) if names else 1], "names": names}


def write(folder, version, episodes, fps):
    """episodes: (t, q, tau) of each, t from zero."""
    rows, first = [], 0
    for number, (t, q, tau) in enumerate(episodes):
        n = len(t)
        vectors = {"action": q, "observation.state": q, "observation.effort": tau}
        columns = {
            name: pyarrow.array(x.astype(np.float32).tolist(), pyarrow.list_(pyarrow.float32(), 2))
            for name, x in vectors.items()
        }
        columns["timestamp"] = pyarrow.array(t.astype(np.float32))
        numbers = {"frame_index": np.arange(n), "episode_index": np.full(n, number), "index": first + np.arange(n)}
        columns |= {name: pyarrow.array(x) for name, x in {**numbers, "task_index": np.zeros(n, int)}.items()}
        rows.append(pyarrow.table(columns))
        first += n
    single = version == "v2.1"
    names = "episode_{:06d}" if single else "file-{:03d}"
    (folder / "data/chunk-000").mkdir(parents=True)
    for k, table in enumerate(rows if single else [pyarrow.concat_tables(rows)]):
        parquet.write_table(table, folder / f"data/chunk-000/{names.format(k)}.parquet")
    path = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
    info = {
        "codebase_version": version, "robot_type": "two_link", "fps": fps, "total_episodes": len(episodes),
        "total_frames": first, "total_tasks": 1, "chunks_size": 1000, "splits": {"train": f"0:{len(episodes)}"},
        "data_path": path if single else "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "features": {
            **{name: feature(NAMES) for name in ("action", "observation.state", "observation.effort")},
            "observation.images.front": {"dtype": "video", "shape": [480, 640, 3], "names": ["height", "width", "c"]},
            "timestamp": feature(None),
            **{name: feature(None, "int64") for name in ("frame_index", "episode_index", "index", "task_index")},
        },
    }  # fmt: skip
    (folder / "meta").mkdir()
    (folder / "meta/info.json").write_text(json.dumps(info))
    lengths = [{"episode_index": k, "tasks": ["move"], "length": len(t)} for k, (t, *_) in enumerate(episodes)]
    if single:
        (folder / "meta/episodes.jsonl").write_text("\n".join(map(json.dumps, lengths)))
        (folder / "meta/tasks.jsonl").write_text(json.dumps({"task_index": 0, "task": "move"}))
    else:
        (folder / "meta/episodes/chunk-000").mkdir(parents=True)
        parquet.write_table(pyarrow.Table.from_pylist(lengths), folder / "meta/episodes/chunk-000/file-000.parquet")
        parquet.write_table(pyarrow.table({"task_index": [0]}), folder / "meta/tasks.parquet")
    return folder


@pytest.mark.quick(1)
@pytest.mark.parametrize("version", ["v3.0", "v2.1"])
def test_a_dataset_becomes_the_robot_it_came_from(version, tmp_path):
    t, q, tau, model, x = simulated()
    parts = [slice(0, len(t) // 3), slice(len(t) // 3, 2 * len(t) // 3), slice(2 * len(t) // 3, len(t))]
    episodes = [(t[part] - t[part][0], q[part], tau[part]) for part in parts]
    folder = write(tmp_path / "set", version, episodes, round(1.0 / (t[1] - t[0])))
    said = run(
        folder, "--robot", "two_link", "--rotor", "yes", "--smoothing", 0.02, "--friction", "viscous,coulomb",
        "--cutoff", 15, "--torque-cutoff", 12, "--no-plots", "--out", tmp_path / "out",
    )  # fmt: skip
    assert "episodes 0 to 2 of 3" in said
    robot = models.load(tmp_path / "out/robot.json")
    state = np.random.default_rng(1).normal(size=(10, 2))
    true = model.robot.with_parameters(x[:20]).gravity_force(state)
    np.testing.assert_allclose(robot.gravity_force(state), true, atol=0.02 * np.abs(true).max())
