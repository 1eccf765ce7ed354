"""Logs of a two-link arm, and ROS bags written by rosbags."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from geomctrl import models
from geomctrl.identification import RegressorModel

RATE = 200.0
JOINTS = ("joint1", "joint2")
START = 1_700_000_000_123_456_789  # ns since 1970


class Motion(NamedTuple):
    """Times from zero on [s], positions, velocities and torques of the bundled two-link arm, and their origin."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    model: RegressorModel
    x: np.ndarray


def motion(seconds: float = 15.0) -> Motion:
    model = RegressorModel(models.two_link(), smoothing=0.02)
    x = model.prior
    x[: model.inertial] *= 1.3
    x[model.by_kind["viscous"]], x[model.by_kind["coulomb"]] = [0.4, 0.3], [0.5, 0.2]
    ticks = np.arange(int(seconds * RATE)) * round(1e9 / RATE)
    t = ticks * 1e-9
    w = 2 * np.pi * np.array([[0.23, 0.31], [0.77, 0.59], [1.1, 1.4]])
    A, angle = np.array([[0.8, 0.7], [0.4, 0.5], [0.2, 0.2]]), t[:, None, None] * w + np.array([[0, 1], [2, 3], [4, 5]])
    q, v, a = (A * np.sin(angle)).sum(1), (A * w * np.cos(angle)).sum(1), -(A * w**2 * np.sin(angle)).sum(1)
    noise = 0.02 * np.random.default_rng(0).normal(size=q.shape)
    return Motion(t, q, v, model.torque(x, q, v, a) + noise, model, x)


def states(m: Motion, names: tuple[str, ...] = ("joint2", "gripper", "joint1")) -> list[dict[str, Any]]:
    """Joint states of the arm among other joints, in another order."""
    columns = {"joint1": 0, "joint2": 1}
    out = []
    for k, t in enumerate(m.t):
        values = {
            key: np.array([x[k, columns[n]] if n in columns else 0.5 for n in names])
            for key, x in (("position", m.q), ("velocity", m.v), ("effort", m.tau))
        }
        out.append({"stamp": START + round(1e9 * t), "name": list(names), **values})
    return out


def write_bag(
    path: Path, topics: dict[str, list[dict[str, Any]]], storage: str = "sqlite3", compression: str | None = None
) -> Path:
    """A ROS 2 bag: by topic, joint states with stamps [ns], or wrenches (6,), forces first; strings where a topic is
    called /rosout."""
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    types, joint_state = store.types, "sensor_msgs/msg/JointState"
    plugin = {"sqlite3": StoragePlugin.SQLITE3, "mcap": StoragePlugin.MCAP}[storage]
    writer = Writer(path, version=9, storage_plugin=plugin)
    if compression is not None:
        writer.set_compression(CompressionMode[compression], CompressionFormat.ZSTD)
    with writer:
        for topic, messages in topics.items():
            text = topic == "/rosout"
            wrenches = bool(messages) and "wrench" in messages[0]
            kind = "std_msgs/msg/String" if text else "geometry_msgs/msg/WrenchStamped" if wrenches else joint_state
            connection = writer.add_connection(topic, kind, typestore=store)
            for k, x in enumerate(messages):
                if text:
                    message = types[kind](data=x["data"])
                else:
                    stamp = types["builtin_interfaces/msg/Time"](*divmod(x["stamp"], 1_000_000_000))
                    header = types["std_msgs/msg/Header"](stamp, x.get("frame", ""))
                    arrays = [np.asarray(x.get(key, ()), float) for key in ("position", "velocity", "effort")]
                    if wrenches:
                        parts = [types["geometry_msgs/msg/Vector3"](*x["wrench"][k : k + 3]) for k in (0, 3)]
                        message = types[kind](header, types["geometry_msgs/msg/Wrench"](*parts))
                    else:
                        message = types[kind](header, x["name"], *arrays)
                received = x.get("received", x.get("stamp", START + k)) + 500_000 * (not text)
                writer.write(connection, received, store.serialize_cdr(message, kind))
    return path
