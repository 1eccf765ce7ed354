"""Loads from ROS bags: joint states and the wrenches of a wrist sensor are separate topics with separate times."""

import numpy as np
import pytest
from identification.bags import START, write_bag
from identification.loaded import Load, Oracle, motion

from geomctrl import inertia, models
from geomctrl.errors import ArgumentError
from geomctrl.identification import DataError, Dataset, Filtering, WristSensor, identify_load

ROBOT, LOAD, FRAME = models.panda(), Load(), "panda_link8"
TRUE = inertia.from_com(LOAD.mass, np.array(LOAD.centre), LOAD.inertia)
OFFSET = np.array([3.0, -2.0, 5.0, 0.1, 0.2, -0.3])
LATE = 0.0013  # s, from a joint state to a wrench
FILTER = Filtering(cutoff=10.0)


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """t, q and wrenches at 1 kHz, so that topics sample the same motion at different times."""
    t, q, v, a = motion(ROBOT, seconds=6.0, rate=1000.0)
    _, W = Oracle(ROBOT, LOAD, tmp_path_factory.mktemp("robot"))(q, v, a)
    W = OFFSET - W + 0.02 * np.random.default_rng(0).normal(size=W.shape)
    return t, q, W


def brief(samples):
    """1.5 s of it."""
    return tuple(x[:1500] for x in samples)


def states(samples, step=5, **change):
    """Positions at every fifth sample without efforts, which the log of a sensor does not need."""
    t, q, _ = samples
    at = range(0, len(t), step)
    return [{"stamp": START + round(1e9 * t[k]), "name": list(ROBOT.dof_names), "position": q[k]} | change for k in at]


def wrenches(samples, rows=None, frame="sensor_link", **change):
    """At every second sample, `LATE` after the motion of its time stamp: W is interpolated there."""
    t, _, W = samples
    rows = np.arange(0, len(t) - 2, 2) if rows is None else rows
    values = [np.stack([np.interp(t[rows] + LATE, t, w) for w in W.T], -1)][0]
    stamps = [START + round(1e9 * (t[k] + LATE)) for k in rows]
    return [{"stamp": s, "wrench": w, "frame": frame} | change for s, w in zip(stamps, values)]


def backwards(samples):
    """Wrenches that arrive in order, with time stamps that are not in order."""
    good = wrenches(samples)
    return [x | {"received": y["stamp"]} for x, y in zip(good[::-1], good)]


def off(report):
    return np.abs(report.body.least_squares - TRUE) / (LOAD.mass * np.array([1.0] + [0.1] * 3 + [0.01] * 6))


@pytest.mark.parametrize("form", ["sqlite3", "mcap"])
def test_the_load_is_found_in_a_bag_as_in_arrays(form, samples, tmp_path):
    topics = {"/joint_states": states(samples), "/rosout": [{"data": "hello"}], "/ft": wrenches(samples)}
    bag = write_bag(tmp_path / "bag", topics, form)
    report = identify_load(ROBOT, bag, sensor=FRAME, filtering=FILTER)
    t, q, W = samples
    same = identify_load(ROBOT, Dataset(t, q, 0.0 * q), sensor=WristSensor(FRAME, W), filtering=FILTER)
    assert off(same).max() < 0.1
    assert off(report).max() < 0.1
    assert report.findings == ()
    assert "joint states of /joint_states" in report.text()


def test_wrenches_are_at_their_own_times(samples, tmp_path):
    """If they are treated as sampled with the joints, they are 20 ms late and the load is wrong."""
    right = write_bag(tmp_path / "right", {"/joint_states": states(samples), "/ft": wrenches(samples)})
    late = [x | {"stamp": x["stamp"] + 20_000_000} for x in wrenches(samples)]
    wrong = write_bag(tmp_path / "wrong", {"/joint_states": states(samples), "/ft": late})
    off_right, off_wrong = (off(identify_load(ROBOT, x, sensor=FRAME, filtering=FILTER)) for x in (right, wrong))
    assert off_wrong.max() > 5.0 * off_right.max()


def test_where_stamps_are_missing_all_times_are_the_bags(samples, tmp_path):
    """The wrenches have no time stamps, and those of the joints are hours off the clock of the bag."""
    hours = [x | {"received": x["stamp"], "stamp": x["stamp"] - 10**13} for x in states(samples)]
    none = [x | {"received": x["stamp"], "stamp": 0} for x in wrenches(samples)]
    bag = write_bag(tmp_path / "bag", {"/joint_states": hours, "/ft": none})
    report = identify_load(ROBOT, bag, sensor=FRAME, filtering=FILTER)
    assert off(report).max() < 0.1
    assert "the bag's times, as messages have none" in report.text()


def test_nothing_is_made_up_where_wrenches_are_missing(samples, tmp_path):
    """A second without wrenches, where interpolation would invent values."""
    t = samples[0]
    rows = np.arange(0, len(t) - 2, 2)
    holes = rows[(t[rows] < 2.0) | (t[rows] > 3.0)]
    bag = write_bag(tmp_path / "bag", {"/joint_states": states(samples), "/ft": wrenches(samples, holes)})
    report = identify_load(ROBOT, bag, sensor=FRAME, filtering=FILTER)
    assert off(report).max() < 0.15
    assert report.findings == ()
    assert "samples left out: no wrenches there" in report.text()


def test_one_topic_of_several_is_asked_for_and_its_frame_must_be_the_sensors(samples, tmp_path):
    samples = brief(samples)
    other = wrenches(samples, frame="panda_hand_tcp")
    bag = write_bag(tmp_path / "bag", {"/joint_states": states(samples), "/ft": wrenches(samples), "/hand": other})
    with pytest.raises(DataError, match=r"expected one topic of wrenches, got 2: /ft, /hand; name one .*--wrench /ft"):
        identify_load(ROBOT, bag, sensor=FRAME)
    report = identify_load(ROBOT, bag, sensor=WristSensor(FRAME, "ft"), filtering=FILTER)
    columns = [f"/ft/wrench/{part}/{axis}" for part in ("force", "torque") for axis in "xyz"]
    named = identify_load(ROBOT, bag, sensor=WristSensor(FRAME, columns), filtering=FILTER)
    np.testing.assert_array_equal(report.parameters, named.parameters)
    with pytest.raises(
        DataError, match="wrenches are in frame 'panda_hand_tcp', got 'panda_link8', which is elsewhere"
    ):
        identify_load(ROBOT, bag, sensor=WristSensor(FRAME, "/hand"))
    with pytest.raises(DataError, match="wrench: no topic 'wrist' of wrenches; there are /ft, /hand"):
        identify_load(ROBOT, bag, sensor=WristSensor(FRAME, "wrist"))
    with pytest.raises(DataError, match="wrench: expected the name of a topic, /ft, /hand, or columns"):
        identify_load(ROBOT, bag, sensor=WristSensor(FRAME, ["fx", "fy", "fz", "tx", "ty", "tz"]))
    with pytest.raises(ArgumentError, match="wrench: expected"):
        identify_load(ROBOT, bag, sensor=WristSensor(FRAME, [3]))


@pytest.mark.parametrize(
    ("topics", "words"),
    [
        (lambda s: {"/joint_states": states(s)}, r"no wrenches: expected a topic of type geometry_msgs.*/joint_states"),
        (lambda s: {"/joint_states": states(s), "/ft": wrenches(s)[:300]}, "expected wrenches over the whole motion"),
        (lambda s: {"/ft": wrenches(s)}, "no joint states: .*it has /ft"),
        (lambda s: {"/joint_states": states(s), "/ft": backwards(s)}, "wrench: expected increasing time stamps"),
        (lambda s: {"/joint_states": states(s), "/ft": wrenches(s)[:100] + wrenches(s, frame="b")[100:]},
         "'/ft': wrenches in several frames: 'b', 'sensor_link'"),
    ],
)  # fmt: skip
def test_bags_without_what_is_needed_are_refused(topics, words, samples, tmp_path):
    with pytest.raises(DataError, match=words):
        identify_load(ROBOT, write_bag(tmp_path / "bag", topics(brief(samples))), sensor=FRAME)


def test_nan_in_a_wrench_is_a_missing_one(samples, tmp_path):
    broken = wrenches(samples)
    broken[500]["wrench"] = np.full(6, np.nan)
    bag = write_bag(tmp_path / "bag", {"/joint_states": states(samples), "/ft": broken})
    assert off(identify_load(ROBOT, bag, sensor=FRAME, filtering=FILTER)).max() < 0.1
