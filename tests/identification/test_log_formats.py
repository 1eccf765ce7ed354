"""Log formats: ROS bags, MATLAB files, parquet, CSV of PlotJuggler, currents; and what is refused."""

from pathlib import Path

import numpy as np
import pytest
import scipy.io
from identification.bags import JOINTS, RATE, START, motion, states, write_bag

from geomctrl import models
from geomctrl.errors import ArgumentError
from geomctrl.identification import DataError, Dataset, Filtering, Reading, identify
from geomctrl.identification.logs.dataset import read_log
from geomctrl.identification.logs.reading import formats
from geomctrl.identification.logs.reading.formats import FORMATS

ARM = models.two_link()
pytest.importorskip("rosbags", reason="the extra 'logs' is not installed")
h5py = pytest.importorskip("h5py", reason="the extra 'logs' is not installed")
pyarrow = pytest.importorskip("pyarrow", reason="the extra 'logs' is not installed")


def table(m, topic="/joint_states"):
    """Columns with PlotJuggler's names, with joints in another order than the robot's."""
    columns = {"__time": m.t}
    for joint, k in (("joint2", 1), ("joint1", 0)):
        for word, x in (("effort", m.tau), ("position", m.q), ("velocity", m.v)):
            columns[f"{topic}/{joint}/{word}"] = x[:, k]
    return columns


def write_csv(path, columns, empty=()):
    """`empty` are (row, column) of empty cells."""
    rows = [[f"{x:.17g}" for x in row] for row in zip(*columns.values())]
    for k, name in empty:
        rows[k][list(columns).index(name)] = ""
    path.write_text("\n".join(",".join(row) for row in [list(columns), *rows]) + "\n")
    return path


def write_v73(path, variables):
    """MATLAB's format v7.3: HDF5 after a header of its own, columns as rows, structs as groups."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, x in variables.items():
            data = file.create_dataset(name, data=np.atleast_2d(x).T if np.ndim(x) > 1 else np.atleast_2d(x))
            data.attrs["MATLAB_class"] = np.bytes_("double")
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\x02IM")
    return path


def write_parquet(path, columns):
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def column(x):
    return x[:, None]


WRITERS = {
    "db3": lambda d, m: write_bag(d / "bag", {"/joint_states": states(m)}),
    "db3 file": lambda d, m: next(write_bag(d / "bag", {"/joint_states": states(m)}).glob("*.db3")),
    "mcap": lambda d, m: write_bag(d / "bag", {"/joint_states": states(m)}, "mcap"),
    "mcap in chunks": lambda d, m: write_bag(d / "bag", {"/joint_states": states(m)}, "mcap", "STORAGE"),
    "db3, messages compressed": lambda d, m: write_bag(d / "bag", {"/joint_states": states(m)}, "sqlite3", "MESSAGE"),
    "mcap, file compressed": lambda d, m: write_bag(d / "bag", {"/joint_states": states(m)}, "mcap", "FILE"),
    "among other topics": lambda d, m: write_bag(
        d / "bag", {"/rosout": [{"data": "hello"}], "/joint_states": states(m), "/left/joint_states": states(m)[:5]}
    ),
    "csv": lambda d, m: write_csv(d / "log.csv", table(m)),
    "mat v7": lambda d, m: _mat(d / "log.mat", {"t": column(m.t), "q": m.q, "dq": m.v, "tau": m.tau}),
    "mat v4": lambda d, m: _mat(d / "log.mat", {"t": m.t, "q": m.q, "dq": m.v, "tau": m.tau}, format="4"),
    "mat, a struct": lambda d, m: _mat(d / "log.mat", {"log": {"t": m.t, "q": m.q.T, "dq": m.v.T, "tau": m.tau.T}}),
    "mat v7.3": lambda d, m: write_v73(
        d / "log.mat", {"log/t": m.t, "log/q": m.q, "log/qd": m.v, "log/torque": m.tau}
    ),
    "hdf5": lambda d, m: _hdf5(d / "log.h5", {"t": m.t, "q": m.q, "qd": m.v, "tau": m.tau}),
    "parquet": lambda d, m: write_parquet(d / "log.parquet", table(m)),
    "parquet of arrays": lambda d, m: write_parquet(
        d / "log.parquet",
        {
            "time": pyarrow.array(START + np.rint(1e9 * m.t).astype(np.int64), pyarrow.timestamp("ns")),
            "q": m.q.tolist(), "velocity": m.v.tolist(), "effort": m.tau.tolist(),
        },
    ),
}  # fmt: skip


def _mat(path, variables, **options):
    scipy.io.savemat(path, variables, **options)
    return path


def _hdf5(path, variables):
    with h5py.File(path, "w") as file:
        for name, x in variables.items():
            file[f"run/{name}"] = x
    return path


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_every_format_gives_the_samples_that_were_written(write, tmp_path):
    m = motion(2.0)
    path = write(tmp_path, m)
    data = Dataset.read(path, joints=JOINTS)
    np.testing.assert_allclose(data.t, m.t, atol=1e-12)
    for got, written in ((data.q, m.q), (data.v, m.v), (data.tau, m.tau)):
        np.testing.assert_array_equal(got, written)
    renamed = tmp_path / "renamed.dat"  # recognised by its first bytes
    # version 4 has no characteristic first bytes
    if path.suffix in (".mat", ".h5", ".parquet") and path.read_bytes()[:4] != bytes(4):
        np.testing.assert_array_equal(Dataset.read(path.rename(renamed), joints=JOINTS).q, m.q)


@pytest.mark.quick(3)
@pytest.mark.parametrize("form", ["db3", "mcap", "csv", "mat v7", "mat v7.3", "parquet"])
def test_identification_from_a_file_gives_the_numbers_of_the_arrays(form, tmp_path):
    m = motion()
    arrays = Dataset(m.t, m.q, m.tau, v=m.v)
    expected, got = (
        identify(ARM, log, method="wls", filtering=Filtering(15.0)) for log in (arrays, WRITERS[form](tmp_path, m))
    )
    np.testing.assert_allclose(got.estimate.x, expected.estimate.x, rtol=1e-9, atol=1e-12)
    assert got.errors["test"]["relative_error"] < 0.01


def test_a_bag_may_hold_other_joints_other_orders_and_messages_of_other_joints(tmp_path):
    m = motion(1.0)
    messages = states(m)
    for k, message in enumerate(messages):  # the order changes, and some messages have no velocities
        if k % 3 == 0:
            order = [2, 0, 1]
            messages[k] = message | {
                key: [message[key][i] for i in order] for key in ("name", "position", "velocity", "effort")
            }
    grippers = [{"stamp": x["stamp"] + 1_000_000, "name": ["finger"], "position": [0.1]} for x in messages[::2]]
    data = Dataset.read(write_bag(tmp_path / "bag", {"/joint_states": _merged(messages, grippers)}), joints=JOINTS)
    np.testing.assert_array_equal(data.q, m.q)
    np.testing.assert_array_equal(data.tau, m.tau)
    assert data.names == JOINTS
    assert data.history == ("joint states of /joint_states", "100 rows of other topics or joints left out")


def _merged(*parts):
    return sorted((x for part in parts for x in part), key=lambda x: x["stamp"])


def test_joints_of_one_stamp_share_a_row_and_those_of_other_stamps_are_refused(tmp_path):
    m = motion(1.0)
    left, right = ([x | {"stamp": x["stamp"] + shift} for x in states(m, (name,))]
                   for name, shift in (("joint1", 0), ("joint2", 0)))  # fmt: skip
    data = Dataset.read(write_bag(tmp_path / "even", {"/joint_states": _merged(left, right)}), joints=JOINTS)
    np.testing.assert_array_equal(data.q, m.q)
    later = [x | {"stamp": x["stamp"] + 1_000_000} for x in right]
    odd = write_bag(tmp_path / "odd", {"/joint_states": _merged(left, later)})
    with pytest.raises(DataError, match=r"rows with all joints, got none: joint1 never come with joint2"):
        Dataset.read(odd, joints=JOINTS)


def test_velocities_that_are_missing_are_left_out_and_times_may_be_the_bags(tmp_path):
    m = motion(1.0)
    bare = [{k: x[k] for k in ("name", "position", "effort")} | {"stamp": 0, "received": x["stamp"]} for x in states(m)]
    data = Dataset.read(write_bag(tmp_path / "bag", {"/a": bare}), joints=JOINTS)
    assert data.v is None
    assert data.history == ("joint states of /a", "the bag's times, as messages have none")
    np.testing.assert_allclose(data.t, m.t, atol=1e-12)


def test_stamps_that_go_back_are_refused_unless_dropped(tmp_path):
    messages = states(motion(1.0))
    received = [x | {"received": START + 10**6 * k} for k, x in enumerate(messages)]
    received[7]["stamp"] = START
    bag = write_bag(tmp_path / "bag", {"/joint_states": received})
    with pytest.raises(DataError, match=r"bag: t: expected increasing time stamps, got .* at sample 7"):
        Dataset.read(bag, joints=JOINTS)
    assert len(Dataset.read(bag, joints=JOINTS, drop_bad_rows=True)) == 199


def test_one_topic_of_several_is_asked_for(tmp_path):
    m = motion(1.0)
    other = [x | {"position": np.zeros(3)} for x in states(m)]
    bag = write_bag(tmp_path / "bag", {"/left/joint_states": states(m), "/right/joint_states": other})
    with pytest.raises(DataError, match=r"topic: .* got 2: /left/joint_states \(200 messages\), .*--topic /left"):
        Dataset.read(bag, joints=JOINTS)
    np.testing.assert_array_equal(Dataset.read(bag, joints=JOINTS, topic="left/joint_states").q, m.q)
    with pytest.raises(DataError, match=r"topic: no joint states on '/middle'; there are /left/joint_states"):
        Dataset.read(bag, joints=JOINTS, topic="/middle")
    two = write_csv(tmp_path / "two.csv", table(m, "/wanted") | table(replace_q(m), "/measured"))
    with pytest.raises(DataError, match=r"topic: .* got 2: /wanted \(6 columns\), /measured \(6 columns\)"):
        Dataset.read(two, joints=JOINTS)
    np.testing.assert_array_equal(Dataset.read(two, joints=JOINTS, topic="/wanted").q, m.q)


def replace_q(m):
    return m._replace(q=np.zeros_like(m.q))


def test_rows_of_other_topics_in_a_table_are_left_out(tmp_path):
    m = motion(1.0)
    columns = {"__time": np.repeat(m.t, 2), "/tf/x": np.zeros(400)}
    columns |= {name: np.repeat(x, 2) for name, x in table(m).items() if name != "__time"}
    empty = [(k, name) for k in range(1, 400, 2) for name in columns if name.startswith("/joint")]
    data = Dataset.read(write_csv(tmp_path / "log.csv", columns, empty), joints=JOINTS)
    np.testing.assert_array_equal(data.q, m.q)
    np.testing.assert_array_equal(data.t, m.t)
    assert data.history == ("200 rows of other topics or joints left out",)


@pytest.mark.parametrize(
    "pattern", ["position/{j}", "{j}.pos", "q_{j}", "{j}_position", "/robot/state.position[{j}]", "/x/{j}/position"]
)
def test_ways_to_call_a_column_after_a_joint(pattern, tmp_path):
    m = motion(1.0)
    names = {"base_pan-joint": 0, "joint": 1}  # one name contains the other
    by_name = {"position": ("tau", m.tau), "pos": ("tau", m.tau), "q": ("tau", m.tau)}
    columns = {"time": m.t}
    for j, k in reversed(names.items()):
        columns[pattern.format(j=j)] = m.q[:, k]
        word = next(w for w in by_name if w in pattern.replace("{j}", ""))
        columns[pattern.replace(word, "effort").format(j=j)] = m.tau[:, k]
    data = Dataset.read(write_csv(tmp_path / "log.csv", columns), joints=list(names))
    np.testing.assert_array_equal(data.q, m.q)
    np.testing.assert_array_equal(data.tau, m.tau)
    assert data.names == tuple(names)


def test_columns_asked_for_by_joints_names(tmp_path):
    m = motion(1.0)
    columns = {name.replace("effort", "load"): x for name, x in table(m).items()}
    path = write_csv(tmp_path / "log.csv", columns | {"i1": m.t, "i2": m.t})
    for key in ("load", "/joint_states/*/load"):
        data = Dataset.read(path, {"tau": key}, joints=JOINTS)
        np.testing.assert_array_equal(data.tau, m.tau)
        np.testing.assert_array_equal(data.q, m.q)
    with pytest.raises(DataError, match=r"tau: no columns 'laod'; .*there are __time, "):
        Dataset.read(path, {"tau": "laod"}, joints=JOINTS)
    with pytest.raises(DataError, match=r"tau: no column '/joint_states/elbow/load'; did you mean"):
        Dataset.read(path, {"tau": "/joint_states/*/load"}, joints=("joint1", "elbow"))


def test_the_robots_joints_may_have_other_names_in_the_log(tmp_path):
    m = motion()
    renamed = {name.replace("joint1", "pan").replace("joint2", "tilt"): x for name, x in table(m).items()}
    path = write_csv(tmp_path / "log.csv", renamed)
    result = read_log(path, ARM, Reading(joints=["pan", "tilt"]))
    np.testing.assert_array_equal(result.q, m.q)
    with pytest.raises(DataError, match=r"joints: expected joint1, joint2, got no column of 'joint1'.*--joints"):
        read_log(path, ARM, Reading())
    near = {name.replace("joint1", "join1"): x for name, x in table(m).items()}
    with pytest.raises(DataError, match=r"no column of 'joint1'; did you mean 'join1'\? the log has joint2, join1"):
        read_log(write_csv(tmp_path / "near.csv", near), ARM, Reading())
    with pytest.raises(ArgumentError, match=r"joints: expected 2 names, one per joint of 'two_link', got 1"):
        read_log(path, ARM, Reading(joints=["pan"]))


def test_joints_of_another_arm_are_not_the_robots(tmp_path):
    """left_joint1 is not joint1, although its name ends so."""
    left = {name.replace("/joint", "/left_joint", 2).replace("left_joint_", "joint_"): x
            for name, x in table(motion(1.0)).items()}  # fmt: skip
    assert "/joint_states/left_joint1/position" in left
    with pytest.raises(DataError, match=r"no column of 'joint1'; did you mean 'left_joint1'\?"):
        Dataset.read(write_csv(tmp_path / "left.csv", left), joints=JOINTS)


def test_arrays_of_matlab_lie_as_in_matlab_without_time_stamps_too(tmp_path):
    m = motion(0.1)
    path = write_v73(tmp_path / "log.mat", {"q": m.q, "tau": m.tau})
    np.testing.assert_array_equal(Dataset.read(path, rate=RATE).tau, m.tau)


def test_a_log_without_a_robot_has_the_joints_of_the_file(tmp_path):
    data = Dataset.read(write_csv(tmp_path / "log.csv", table(motion(1.0))))
    assert data.names == ("joint2", "joint1")


# --- currents ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, "i", "motor_current"])
def test_currents_become_torques_by_their_gains(key, tmp_path):
    m, gains = motion(1.0), np.array([0.5, -0.25])
    arrays = {"t": m.t, "q": m.q, key or "current": 1e3 * m.tau / gains}
    options = {"keys": {"i": key} if key else None, "units": {"i": "mA"}}
    data = Dataset.read(arrays, current_gains=gains, **options)
    np.testing.assert_allclose(data.tau, m.tau, rtol=1e-14)
    with pytest.raises(DataError, match=r"tau: expected torques, got currents; .*N m/A.*--current-gains"):
        Dataset.read(arrays, **options)
    with pytest.raises(DataError, match=r"current_gains: expected one number or 2, one per joint, got 3"):
        Dataset.read(arrays, current_gains=[1.0, 2.0, 3.0], **options)


def test_efforts_that_are_currents_and_logs_of_both(tmp_path):
    m = motion(1.0)
    bag = write_bag(tmp_path / "bag", {"/joint_states": states(m)})
    data = Dataset.read(bag, {"i": "effort"}, joints=JOINTS, current_gains=2.0)
    np.testing.assert_allclose(data.tau, 2.0 * m.tau, rtol=1e-15)
    both = {"t": m.t, "q": m.q, "tau": m.tau, "i": m.tau}
    np.testing.assert_array_equal(Dataset.read(both).tau, m.tau)
    with pytest.raises(DataError, match="the log has torques as well as currents"):
        Dataset.read(both, current_gains=2.0)
    with pytest.raises(DataError, match="i: current_gains are given, expected currents, got none; there are q, t, tau"):
        Dataset.read({"t": m.t, "q": m.q, "tau": m.tau}, current_gains=2.0)
    with pytest.raises(ArgumentError, match="torques tau, or currents i and their current_gains, got both"):
        Dataset.read(both, {"tau": "tau", "i": "i"}, current_gains=2.0)
    with pytest.raises(ArgumentError, match="current_gains: expected N m/A, one or one per joint, not 0"):
        Dataset.read(both, current_gains=[0.0, 1.0])


# --- what can not be read -------------------------------------------------------------------------------------------


def test_bags_without_joint_states_list_what_they_have(tmp_path):
    bag = write_bag(tmp_path / "bag", {"/rosout": [{"data": "hello"}]})
    with pytest.raises(
        DataError, match=r"bag': no joint states: expected .*JointState; it has /rosout \(std_msgs/msg/String\)"
    ):
        Dataset.read(bag)
    with pytest.raises(DataError, match=r"topic '/joint_states': no messages"):
        Dataset.read(write_bag(tmp_path / "none", {"/joint_states": []}))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"effort": []}, r"tau: expected torque or torques or effort on '/joint_states', .*currents.*, got none"),
        ({"position": []}, r"q: expected pos or position or positions .*got none; there are __time, /joint_states/"),
        ({"effort": [1.0]}, r"'/joint_states': message 0: effort: expected 3 numbers, as names, got 1"),
        ({"name": ["joint1", "joint1", "x"]}, r"message 0: two joints of one name in \['joint1', 'joint1', 'x'\]"),
        ({"name": ["j1", "j2", "j3"]}, r"expected joint1, joint2, got no column of 'joint1'.*the log has j1, j2, j3"),
        ({"effort": [np.nan] * 3}, r"tau: expected torque or torques or effort"),
    ],
)
def test_joint_states_that_are_not_what_is_needed(change, words, tmp_path):
    bag = write_bag(tmp_path / "bag", {"/joint_states": [x | change for x in states(motion(0.1))]})
    with pytest.raises(DataError, match=words):
        Dataset.read(bag, joints=JOINTS)


def test_a_nan_among_numbers_is_named_with_file_and_place(tmp_path):
    messages = states(motion(0.1))
    messages[4]["effort"][0] = np.nan
    bag = write_bag(tmp_path / "bag", {"/joint_states": messages})
    with pytest.raises(DataError, match=r"bag: tau: expected finite numbers, got nan at index \[4, 1\]"):
        Dataset.read(bag, joints=JOINTS)
    assert len(Dataset.read(bag, joints=JOINTS, drop_bad_rows=True)) == 19


@pytest.mark.parametrize("form", ["db3 file", "mcap", "mat v7", "mat v7.3", "parquet"])
def test_truncated_and_empty_files_are_refused_by_name(form, tmp_path):
    path = WRITERS[form](tmp_path, motion(2.0))
    path = next(path.glob("*.mcap")) if path.is_dir() else path
    content = path.read_bytes()
    for length in (20, len(content) // 3, len(content) - 2000):
        cut = tmp_path / f"cut{length}{path.suffix}"
        cut.write_bytes(content[:length])
        with pytest.raises(DataError, match=rf"log '.*{cut.name}': not a readable .*, or a damaged one: \w+"):
            Dataset.read(cut, joints=JOINTS)
    empty = tmp_path / f"empty{path.suffix}"
    empty.write_bytes(b"")
    with pytest.raises(DataError, match=rf"log '.*{empty.name}': an empty file \(0 bytes\)"):
        Dataset.read(empty)


def test_folders_compressed_files_and_unknown_bytes_are_answered(tmp_path):
    with pytest.raises(DataError, match=r"a folder without metadata.yaml or meta/info.json: expected a ROS 2"):
        Dataset.read(tmp_path)
    bag = write_bag(tmp_path / "bag", {"/joint_states": states(motion(0.1))}, "sqlite3", "FILE")
    with pytest.raises(DataError, match=r"compressed by zstd: give the bag's folder, whose metadata.yaml says how"):
        Dataset.read(next(bag.glob("*.zstd")))
    bag = write_bag(tmp_path / "bag2", {"/joint_states": states(motion(0.1))}, "sqlite3", "MESSAGE")
    with pytest.raises(DataError, match=r"its messages are compressed: give the bag's folder"):
        Dataset.read(next(bag.glob("*.db3")))
    for name, content, words in (
        ("log.csv.gz", b"\x1f\x8b\x08", "a file compressed by gzip: unpack it"),
        ("log.bin", b"\x01\0\x02\0", r"neither text nor a known format; expected one of \.npz, .*\.db3"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=words):
            Dataset.read(tmp_path / name)


def test_matlab_files_without_arrays_say_what_they_have(tmp_path):
    scipy.io.savemat(tmp_path / "log.mat", {"T": np.array(["a", "b"], dtype=object), "note": "hello"})
    with pytest.raises(DataError, match=r"no numeric arrays; T, note are tables, timeseries or text: .*table2array"):
        Dataset.read(tmp_path / "log.mat")
    m = motion(0.2)
    scipy.io.savemat(tmp_path / "two.mat", {"a": {"q": m.q, "t": m.t}, "b": {"q": m.q, "tau": m.tau}})
    with pytest.raises(DataError, match=r"no q: expected an array called q.*there are a.q, a.t, b.q, b.tau"):
        Dataset.read(tmp_path / "two.mat")
    np.testing.assert_array_equal(Dataset.read(tmp_path / "two.mat", {"q": "b.q"}).q, m.q)


@pytest.mark.parametrize(
    ("package", "form"), [("rosbags.rosbag2", "db3"), ("h5py", "mat v7.3"), ("pyarrow.parquet", "parquet")]
)
def test_packages_that_are_not_there_name_the_extra(package, form, tmp_path, monkeypatch):
    path = WRITERS[form](tmp_path, motion(0.1))
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(
        ArgumentError, match=rf"needs the optional package {package.partition('.')[0]}: pip install 'ge"
    ):
        Dataset.read(path)


def test_wrong_units_in_a_bag_are_suspected(tmp_path):
    m = motion()
    bag = write_bag(tmp_path / "bag", {"/joint_states": states(m._replace(q=np.rad2deg(m.q)))})
    with pytest.raises(DataError, match=r"bag: wrong units suspected: dq/dt is 57.3 times v of joint1 \(q in degrees"):
        read_log(bag, ARM, Reading())
    read = read_log(bag, ARM, Reading(units={"q": "deg"}))
    np.testing.assert_allclose(read.q, m.q, atol=1e-14)
    with pytest.raises(ArgumentError, match=r"units: q: expected one of rad, deg"):
        read_log(bag, ARM, Reading(units={"q": "grad"}))


def test_signatures_and_suffixes_are_each_one_formats():
    suffixes = [suffix for x in FORMATS.values() for suffix in x.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    for x in FORMATS.values():
        for at, sign in x.signatures:
            head = bytes(at) + sign
            assert formats.detected_format(Path("x"), head) is x
            assert len(head) <= formats.HEAD_BYTES
