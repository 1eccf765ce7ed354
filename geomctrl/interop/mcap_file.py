"""A run as an MCAP file of ROS 2 messages, which Foxglove, Rerun and `identification` read.

Both viewers read messages of ROS 2; of Foxglove's own schemas, Rerun reads those in Protobuf and not those in JSON.
"""

# mcap is not in the environment of `make lint`:
# pyright: reportMissingImports=false

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
Messages = Iterator[tuple[str, int, Any]]  # topic, sample, message


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

    messages, stamps = _Messages(run), np.round(run.t * NANOSECONDS).astype(np.int64).tolist()
    schemas: dict[str, int] = {}
    channels: dict[str, int] = {}
    with whole(path) as file:
        writer = Writer(file, compression=CompressionType.NONE)
        writer.start(profile="ros2", library="geomctrl")
        for topic, k, message in heapq.merge(*messages.topics(), key=lambda x: x[1]):
            kind = message.__msgtype__
            if kind not in schemas:
                schemas[kind] = writer.register_schema(kind, "ros2msg", messages.definition(kind).encode())
            if topic not in channels:
                channels[topic] = writer.register_channel(topic, "cdr", schemas[kind])
            data = bytes(messages.store.serialize_cdr(message, kind))
            writer.add_message(channels[topic], stamps[k], data, stamps[k], k)
        results = {m.name: {"verdict": m.verdict, "worst": m.worst, "limit": m.limit} for m in run.monitors.values()}
        writer.add_metadata("geomctrl.monitors", {name: json.dumps(x) for name, x in results.items()})
        writer.add_metadata("geomctrl.run", {"reason": run.reason, "robot": run.plant.robot.name})
        writer.finish()
    return path


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

    def of(self, kind: str, *fields: Any) -> Any:
        return self.types[kind](*fields)

    def header(self, k: int, frame: str = "") -> Any:
        seconds, rest = divmod(round(float(self.run.t[k]) * NANOSECONDS), NANOSECONDS)
        return self.of("std_msgs/msg/Header", self.of("builtin_interfaces/msg/Time", seconds, rest), frame)

    def topics(self) -> list[Messages]:
        run, inputs, empty = self.run, self.run.tau.shape[1], np.zeros((len(self.run.t), 0))
        names = list(self.robot.dof_names) if inputs == self.robot.nv else [f"input{k + 1}" for k in range(inputs)]
        of_joints = run.q[:, self.q_at], run.v[:, self.v_at], run.applied[:, self.v_at]
        out = [self.joints("/joint_states", self.names, *of_joints), self.poses()]
        out.append(self.joints("/command", names, empty, empty, run.tau))
        if run.desired is not None:
            desired = run.desired.q[:, self.q_at], run.desired.v[:, self.v_at]
            out.append(self.joints("/reference/joint_states", self.names, *desired, empty))
        out += [self.numbers(f"/signals/{_topic(name)}", x) for name, x in run.signals.items()]
        return out + [self.numbers(f"/monitors/{_topic(name)}", m.values) for name, m in run.monitors.items()]

    def joints(self, topic: str, names: list[str], q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Messages:
        for k in range(len(self.run.t)):
            arrays = (np.ascontiguousarray(x[k], float) for x in (q, v, tau))
            yield topic, k, self.of("sensor_msgs/msg/JointState", self.header(k), list(names), *arrays)

    def poses(self) -> Messages:
        """Transforms of all bodies and frames from the world, and the pose of the last frame."""
        frames = [x for x in dict.fromkeys([*self.robot.body_names, *self.robot.frame_names]) if x != WORLD]
        T = {name: np.asarray(poses(self.robot, self.run.q, name)) for name in frames}
        turned = {name: Rotation.from_matrix(x[:, :3, :3]).as_quat() for name, x in T.items()}
        desired = None if self.run.desired is None else np.asarray(poses(self.robot, self.run.desired.q, frames[-1]))
        for k in range(len(self.run.t)):
            header, stamped = self.header(k, WORLD), []
            for name in frames:
                place = self.of("geometry_msgs/msg/Vector3", *map(float, T[name][k, :3, 3]))
                turn = self.of("geometry_msgs/msg/Quaternion", *map(float, turned[name][k]))
                transform = self.of("geometry_msgs/msg/Transform", place, turn)
                stamped.append(self.of("geometry_msgs/msg/TransformStamped", header, name, transform))
            yield "/tf", k, self.of("tf2_msgs/msg/TFMessage", stamped)
            for topic, x in (("/end_effector", T[frames[-1]]), ("/reference/end_effector", desired)):
                if x is not None:
                    point = self.of("geometry_msgs/msg/Point", *map(float, x[k, :3, 3]))
                    turn = Rotation.from_matrix(x[k, :3, :3]).as_quat()
                    pose = self.of(
                        "geometry_msgs/msg/Pose", point, self.of("geometry_msgs/msg/Quaternion", *map(float, turn))
                    )
                    yield topic, k, self.of("geometry_msgs/msg/PoseStamped", header, pose)

    def numbers(self, topic: str, values: np.ndarray) -> Messages:
        layout = self.of("std_msgs/msg/MultiArrayLayout", [], 0)
        for k, x in enumerate(np.asarray(values, float)):
            if x.ndim == 0:
                yield topic, k, self.of("std_msgs/msg/Float64", float(x))
            else:
                yield topic, k, self.of("std_msgs/msg/Float64MultiArray", layout, x.ravel())


def _topic(name: str) -> str:
    return "_".join(name.split())
