"""A run as an MCAP file of ROS 2 messages, which Foxglove, Rerun and `identification` read.

Both viewers read messages of ROS 2; of Foxglove's own schemas, Rerun reads those in Protobuf and not those in JSON.
"""

# mcap is not in the environment of `make lint`:
# pyright: reportMissingImports=false

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from geomctrl.arguments import optional_package, path_of
from geomctrl.control.run import Run
from geomctrl.errors import ArgumentError
from geomctrl.files import whole
from geomctrl.mechanism.configuration import joint_coordinates
from geomctrl.mechanism.mechanism import WORLD
from geomctrl.terms.kinematics import poses

OLDEST, OLDEST_ROSBAGS = "1.1", "0.11"
NANOSECONDS = 1_000_000_000
BLOCK = 4096  # samples that are serialised at once
STAMP = np.array([(1_234_567_891, 987_654_321)], [("sec", "<i4"), ("nanosec", "<u4")])  # placeholder of a time


def to_mcap(run: Run, path: Any) -> Path:
    """See `Run.to_mcap`."""
    path = path_of("path", path)
    if path.suffix != ".mcap":
        raise ArgumentError(f"path: expected a file name that ends with .mcap, got {str(path)!r}")
    if run.plant is None:
        raise ArgumentError("run: was loaded without a plant, whose joints the file names: use load(path, plant)")
    for package, oldest in (("mcap", OLDEST), ("rosbags", OLDEST_ROSBAGS)):
        optional_package("Run.to_mcap", package, "mcap", oldest)
    from mcap.writer import CompressionType, Writer

    messages = _Messages(run)
    topics, nanoseconds = messages.topics(), np.round(run.t * NANOSECONDS).astype(np.int64)
    with whole(path) as file:
        writer = Writer(file, compression=CompressionType.NONE)
        writer.start(profile="ros2", library="geomctrl")
        kinds = {topic.kind: None for topic in topics}
        schemas = {x: writer.register_schema(x, "ros2msg", messages.definition(x).encode()) for x in kinds}
        channels = [writer.register_channel(topic.name, "cdr", schemas[topic.kind]) for topic in topics]
        for first in range(0, len(run.t), BLOCK):
            part = slice(first, first + BLOCK)
            rows = zip(*(messages.serialized(topic, nanoseconds[part], part) for topic in topics))
            for k, (time, row) in enumerate(zip(nanoseconds[part].tolist(), rows), first):
                for channel, data in zip(channels, row):
                    writer.add_message(channel, time, data, time, k)
        results = {m.name: {"verdict": m.verdict, "worst": m.worst, "limit": m.limit} for m in run.monitors.values()}
        writer.add_metadata("geomctrl.monitors", {name: json.dumps(x) for name, x in results.items()})
        writer.add_metadata("geomctrl.run", {"reason": run.reason, "robot": run.plant.robot.name})
        writer.finish()
    return path


class _Topic(NamedTuple):
    """Messages of one kind, one for each sample. message: the message with the numbers of a row of `values`."""

    name: str
    kind: str
    values: np.ndarray
    message: Callable[[np.ndarray], Any]


class _Messages:
    """The messages of a run."""

    def __init__(self, run: Run):
        from rosbags.typesys import Stores, get_typestore

        self.run, self.store = run, get_typestore(Stores.ROS2_HUMBLE)
        self.types = self.store.types
        assert run.plant is not None
        self.robot = run.plant.robot
        single = [(q_at.start, v_at.start) for joint, q_at, v_at in joint_coordinates(self.robot) if joint.dof == 1]
        self.q_at, self.v_at = np.array(single, int).reshape(-1, 2).T
        self.names = [self.robot.dof_names[k] for k in self.v_at]

    def definition(self, kind: str) -> str:
        return self.store.generate_msgdef(kind, ros_version=2)[0]

    def serialized(self, topic: _Topic, nanoseconds: np.ndarray, part: slice) -> list[bytes]:
        """The messages of some samples.

        All messages of a topic have the same layout, so the library serialises one message with placeholders, and the
        numbers of all samples replace these at the places where they are.
        """
        values = np.ascontiguousarray(topic.values[part], "<f8")
        placeholders = np.random.default_rng(0).random(values.shape[1])
        data = bytes(self.store.serialize_cdr(topic.message(placeholders), topic.kind))
        stamps = np.zeros(len(values), STAMP.dtype)
        stamps["sec"], stamps["nanosec"] = divmod(nanoseconds, NANOSECONDS)
        table = np.tile(np.frombuffer(data, np.uint8), (len(values), 1))
        for k, placeholder in enumerate(placeholders.astype("<f8")):
            place = data.index(placeholder.tobytes())
            table[:, place : place + 8] = values[:, k : k + 1].view(np.uint8)
        place = data.find(STAMP.tobytes())
        while place >= 0:
            table[:, place : place + 8] = stamps.view(np.uint8).reshape(-1, 8)
            place = data.find(STAMP.tobytes(), place + 8)
        rows, size = table.tobytes(), len(data)
        return [rows[k : k + size] for k in range(0, len(rows), size)]

    def of(self, kind: str, *fields: Any) -> Any:
        return self.types[kind](*fields)

    def header(self, frame: str = "") -> Any:
        return self.of("std_msgs/msg/Header", self.of("builtin_interfaces/msg/Time", *STAMP[0].tolist()), frame)

    def topics(self) -> list[_Topic]:
        run, inputs, empty = self.run, self.run.tau.shape[1], np.zeros((len(self.run.t), 0))
        names = list(self.robot.dof_names) if inputs == self.robot.nv else [f"input{k + 1}" for k in range(inputs)]
        of_joints = run.q[:, self.q_at], run.v[:, self.v_at], run.applied[:, self.v_at]
        out = [self.joints("/joint_states", self.names, *of_joints), *self.poses()]
        out.append(self.joints("/command", names, empty, empty, run.tau))
        if run.desired is not None:
            desired = run.desired.q[:, self.q_at], run.desired.v[:, self.v_at]
            out.append(self.joints("/reference/joint_states", self.names, *desired, empty))
        out += [self.numbers(f"/signals/{_topic(name)}", x) for name, x in run.signals.items()]
        return out + [self.numbers(f"/monitors/{_topic(name)}", m.values) for name, m in run.monitors.items()]

    def joints(self, topic: str, names: list[str], *columns: np.ndarray) -> _Topic:
        """columns: positions, velocities and efforts, each with a column for each joint or without any."""
        kind, ends = "sensor_msgs/msg/JointState", np.cumsum([x.shape[1] for x in columns])[:-1]
        return _Topic(
            topic, kind, np.hstack(columns), lambda x: self.of(kind, self.header(), names, *np.split(x, ends))
        )

    def poses(self) -> Iterator[_Topic]:
        """Transforms of all bodies and frames from the world, and the pose of the last frame."""
        frames = [x for x in dict.fromkeys([*self.robot.body_names, *self.robot.frame_names]) if x != WORLD]
        values = [_pose_rows(poses(self.robot, self.run.q, name)) for name in frames]

        def transforms(x: np.ndarray) -> Any:
            kind = "geometry_msgs/msg/TransformStamped"
            parts = zip(frames, np.split(x, len(frames)))
            return [self.of(kind, self.header(WORLD), name, self.pose("Transform", "Vector3", y)) for name, y in parts]

        kind = "tf2_msgs/msg/TFMessage"
        yield _Topic("/tf", kind, np.hstack(values), lambda x: self.of(kind, transforms(x)))
        yield self.stamped_pose("/end_effector", values[-1])
        if self.run.desired is not None:
            desired = _pose_rows(poses(self.robot, self.run.desired.q, frames[-1]))
            yield self.stamped_pose("/reference/end_effector", desired)

    def stamped_pose(self, topic: str, values: np.ndarray) -> _Topic:
        kind = "geometry_msgs/msg/PoseStamped"
        return _Topic(topic, kind, values, lambda x: self.of(kind, self.header(WORLD), self.pose("Pose", "Point", x)))

    def pose(self, kind: str, position: str, x: np.ndarray) -> Any:
        """A pose from position and quaternion (x, y, z, w)."""
        place, turn = (self.of(f"geometry_msgs/msg/{k}", *y) for k, y in ((position, x[:3]), ("Quaternion", x[3:])))
        return self.of(f"geometry_msgs/msg/{kind}", place, turn)

    def numbers(self, topic: str, values: Any) -> _Topic:
        rows = np.asarray(values, float)
        if rows.ndim == 1:
            kind = "std_msgs/msg/Float64"
            return _Topic(topic, kind, rows[:, None], lambda x: self.of(kind, float(x[0])))
        kind, layout = "std_msgs/msg/Float64MultiArray", self.of("std_msgs/msg/MultiArrayLayout", [], 0)
        return _Topic(topic, kind, rows.reshape(len(rows), -1), lambda x: self.of(kind, layout, x))


def _pose_rows(T: Any) -> np.ndarray:
    """Position and quaternion (x, y, z, w) of each pose (n, 4, 4), (n, 7)."""
    T = np.asarray(T)
    return np.hstack([T[:, :3, 3], Rotation.from_matrix(T[:, :3, :3]).as_quat()])


def _topic(name: str) -> str:
    return "_".join(name.split())
