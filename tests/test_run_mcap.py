"""A run as an MCAP file: what readers of ROS 2 messages find in it is the run."""

import json

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import controllers, models, references
from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.identification import Dataset

mcap_reader = pytest.importorskip("mcap.reader", reason="mcap is not installed")
typesys = pytest.importorskip("rosbags.typesys", reason="rosbags is not installed")
ARM = models.two_link()
LAW = controllers.ComputedTorque(ARM, references.Sinusoids(ARM, [0.3, -0.2], 0.3, 0.5), kp=100.0, kd=20.0)


@pytest.fixture(scope="module")
def run():
    return gc.simulate(gc.Plant(ARM, gc.Friction(0.1)), LAW, [0.4, 0.0], [0.0, 0.1], t_end=0.1, dt=1e-3)


def read(path):
    """({topic: (times [s], messages)}, metadata)."""
    store, topics = typesys.get_typestore(typesys.Stores.LATEST), {}
    with open(path, "rb") as file:
        reader = mcap_reader.make_reader(file, validate_crcs=True)
        for schema, channel, message in reader.iter_messages():
            assert (schema.encoding, channel.message_encoding) == ("ros2msg", "cdr")
            times, messages = topics.setdefault(channel.topic, ([], []))
            times.append(1e-9 * message.log_time)
            messages.append(store.deserialize_cdr(message.data, schema.name))
        return topics, {x.name: x.metadata for x in reader.iter_metadata()}


def test_the_messages_are_the_run(run, tmp_path):
    topics, metadata = read(run.to_mcap(tmp_path / "run.mcap"))
    for times, _ in topics.values():
        np.testing.assert_allclose(times, run.t, rtol=0, atol=1e-9)

    def column(topic, field):
        return np.array([getattr(x, field) for x in topics[topic][1]])

    states = topics["/joint_states"][1]
    assert states[0].name == list(ARM.dof_names)
    stamps = [x.header.stamp.sec + 1e-9 * x.header.stamp.nanosec for x in states]
    np.testing.assert_allclose(stamps, run.t, rtol=0, atol=1e-9)
    for topic, field, expected in (
        ("/joint_states", "position", run.q),
        ("/joint_states", "velocity", run.v),
        ("/joint_states", "effort", run.applied),
        ("/command", "effort", run.tau),
        ("/reference/joint_states", "position", run.desired.q),
        ("/reference/joint_states", "velocity", run.desired.v),
        ("/signals/lyapunov", "data", run.signals["lyapunov"]),
        ("/signals/e", "data", run.signals["e"]),
        *((f"/monitors/{name}", "data", m.values) for name, m in run.monitors.items()),
    ):
        np.testing.assert_array_equal(column(topic, field), expected, err_msg=f"{topic} {field}")
    assert json.loads(metadata["geomctrl.monitors"]["energy"])["verdict"] == run.monitors["energy"].verdict


def test_transforms_are_the_poses_of_bodies(tmp_path):
    robot = models.quadrotor()
    tau = np.array([0.01, -0.02, 0.03, 0.0, 0.0, 5.0])
    flight = gc.simulate(robot, lambda t, q, v, z: gc.Command(tau), robot.neutral(), np.ones(6), 0.05, 1e-3)
    topics, _ = read(flight.to_mcap(tmp_path / "flight.mcap"))
    assert topics["/joint_states"][1][0].name == []
    for k in (0, 50):
        body = topics["/tf"][1][k].transforms[0]
        assert (body.header.frame_id, body.child_frame_id) == ("world", robot.body_names[0])
        x = body.transform.rotation
        a = np.array([x.x, x.y, x.z])
        R = np.eye(3) + 2.0 * x.w * gc.so3.hat(a) + 2.0 * gc.so3.hat(a) @ gc.so3.hat(a)  # of a quaternion
        place = body.transform.translation
        T = flight.q[k].reshape(3, 4)  # of a floating base, row by row
        np.testing.assert_allclose(R, T[:, :3], rtol=0, atol=1e-12)
        np.testing.assert_allclose([place.x, place.y, place.z], T[:, 3], rtol=0, atol=1e-12)


def test_identification_reads_it(run, tmp_path):
    data = Dataset.read(run.to_mcap(tmp_path / "run.mcap"), topic="/joint_states", names=list(ARM.dof_names))
    np.testing.assert_array_equal(data.q, run.q)
    np.testing.assert_array_equal(data.tau, run.applied)
    np.testing.assert_allclose(data.t - data.t[0], run.t, rtol=0, atol=1e-9)


def test_bad_calls(run, tmp_path, monkeypatch):
    with pytest.raises(ArgumentError, match=r"path: expected a file name that ends with .mcap, got 'run.bag'"):
        run.to_mcap("run.bag")
    loaded = gc.Run.load(run.save(tmp_path / "run.npz"))
    with pytest.raises(ArgumentError, match="run: was loaded without a plant"):
        loaded.to_mcap(tmp_path / "run.mcap")
    monkeypatch.setitem(__import__("sys").modules, "mcap", None)
    with pytest.raises(GeomctrlError, match=r"needs the optional package mcap: pip install 'geomctrl\[mcap\]'"):
        run.to_mcap(tmp_path / "run.mcap")
