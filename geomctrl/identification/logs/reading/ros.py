"""Read ROS bags with rosbags: joint states of one topic, and wrenches, as the columns that PlotJuggler writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from geomctrl.identification.errors import DataError

from .recording import Recording, chosen, library

JOINT_STATE = "sensor_msgs/msg/JointState"
WRENCH = "geometry_msgs/msg/WrenchStamped"
ZSTD = b"\x28\xb5\x2f\xfd"
ARRAYS = ("position", "velocity", "effort")
MAX_LISTED = 30  # topics in a message


def read_ros2(path: Path, topic: str | None, wrenches: bool = False) -> list[Recording]:
    """[/topic/joint/position, velocity and effort of a ROS 2 bag, a folder or one of its files, and __time [s]; with
    `wrenches`, for each topic of wrenches a recording of /topic/wrench/force/x, ... with its own times on the same
    clock and its `frame`].

    Each message is a row, but messages with other joints and the same stamp share one; missing values are nan. Times
    are the messages' stamps, from the first on, or those of the bag if there are none. Raises DataError, and
    ArgumentError without rosbags.
    """
    with library(path, "ROS 2 bag"):
        from rosbags.rosbag2 import Reader
        from rosbags.typesys import Stores, get_typestore

        store = get_typestore(Stores.LATEST)  # joint states and wrenches are the same in all of them
        return _read(path, Reader(path), topic, store.deserialize_cdr, wrenches)


def read_ros1(path: Path, topic: str | None, wrenches: bool = False) -> list[Recording]:
    """The same for a ROS 1 bag."""
    with library(path, "ROS 1 bag"):
        from rosbags.rosbag1 import Reader
        from rosbags.typesys import Stores, get_typestore

        return _read(path, Reader(path), topic, get_typestore(Stores.ROS1_NOETIC).deserialize_ros1, wrenches)


class _Topic(NamedTuple):
    """All messages of one topic, their own stamps and the bag's times [ns]."""

    name: str
    messages: list[Any]
    stamps: np.ndarray
    received: np.ndarray


def _read(path: Path, reader: Any, topic: str | None, decode: Any, wrenches: bool) -> list[Recording]:
    label = f"log {str(path)!r}"
    with reader:
        name = chosen(label, _topics(label, reader, JOINT_STATE, "joint states"), topic)
        states = _taken(label, reader, decode, name, JOINT_STATE)
        names = _topics(label, reader, WRENCH, "wrenches") if wrenches else {}
        sensors = [_taken(label, reader, decode, x, WRENCH) for x in names]
    stamped = all(x.stamps.any() for x in (states, *sensors))
    notes = () if stamped else ("the bag's times, as messages have none",)
    columns, first = _joint_states(label, states, stamped)
    out = [Recording(label, columns, notes=(f"joint states of {name}", *notes))]
    return out + [_wrenches(label, x, stamped, first) for x in sensors]


def _topics(label: str, reader: Any, kind: str, content: str) -> dict[str, str]:
    """The number of messages of each topic of a kind, as text. Raises DataError if there is no topic."""
    topics = {c.topic: f"{c.msgcount} messages" for c in reader.connections if c.msgtype == kind}
    if not topics:
        others = sorted({f"{c.topic} ({c.msgtype})" for c in reader.connections})
        more = f" and {len(others) - MAX_LISTED} more" if len(others) > MAX_LISTED else ""
        there = f"it has {', '.join(others[:MAX_LISTED])}{more}" if others else "it has no topics"
        raise DataError(f"{label}: no {content}: expected a topic of type {kind}; {there}")
    return topics


def _taken(label: str, reader: Any, decode: Any, name: str, kind: str) -> _Topic:
    here = [c for c in reader.connections if c.topic == name and c.msgtype == kind]
    received, messages = [], []
    for _, received_at, raw in reader.messages(connections=here):
        if raw[:4] == ZSTD:
            raise DataError(
                f"{label}: its messages are compressed: give the bag's folder, whose metadata.yaml says how"
            )
        received.append(received_at)
        messages.append(decode(raw, kind))
    if not messages:
        raise DataError(f"{label}: topic {name!r}: no messages")
    stamps = [1_000_000_000 * x.header.stamp.sec + x.header.stamp.nanosec for x in messages]
    return _Topic(name, messages, np.array(stamps, np.int64), np.array(received, np.int64))


def _joint_states(label: str, states: _Topic, stamped: bool) -> tuple[dict[str, np.ndarray], int]:
    """(columns by name, the first time [ns])."""
    joints: dict[str, int] = {}
    rows = [  # (numbers of joints, {array: values})
        ([joints.setdefault(n, len(joints)) for n in x.name], _arrays(label, states.name, k, x))
        for k, x in enumerate(states.messages)
    ]
    ticks = states.stamps if stamped else states.received
    first = np.array(list(_first_of_stamp(ticks, rows)))
    row_of = np.cumsum(first) - 1
    table = {name: np.full((row_of[-1] + 1, len(joints)), np.nan) for name in ARRAYS}
    for k, (numbers, values) in zip(row_of, rows):
        for name, x in values.items():
            table[name][k, numbers] = x
    columns = {"__time": (ticks[first] - ticks[0]) * 1e-9}
    for joint, k in joints.items():
        columns |= {
            f"{states.name}/{joint}/{name}": x[:, k] for name, x in table.items() if not np.isnan(x[:, k]).all()
        }
    return columns, int(ticks[0])


def _wrenches(label: str, sensor: _Topic, stamped: bool, first: int) -> Recording:
    """The recording of a sensor, with times from `first` [ns] on."""
    frames = sorted({x.header.frame_id.strip("/") for x in sensor.messages})
    if len(frames) > 1:
        raise DataError(f"{label}: topic {sensor.name!r}: wrenches in several frames: {', '.join(map(repr, frames))}")
    ticks = sensor.stamps if stamped else sensor.received
    columns = {"__time": (ticks - first) * 1e-9}
    for part in ("force", "torque"):
        for axis in "xyz":
            values = [getattr(getattr(x.wrench, part), axis) for x in sensor.messages]
            columns[f"{sensor.name}/wrench/{part}/{axis}"] = np.array(values, float)
    return Recording(label, columns, frame=frames[0])


def _arrays(label: str, topic: str, k: int, message: Any) -> Mapping[str, np.ndarray]:
    """The non-empty arrays of message number k."""
    n = len(message.name)
    if len(set(message.name)) != n:
        raise DataError(f"{label}: topic {topic!r}: message {k}: two joints of one name in {list(message.name)}")
    arrays = {name: getattr(message, name) for name in ARRAYS}
    for name, x in arrays.items():
        if len(x) not in (0, n):
            raise DataError(
                f"{label}: topic {topic!r}: message {k}: {name}: expected {n} numbers, as names, got {len(x)}"
            )
    return {name: x for name, x in arrays.items() if len(x)}


def _first_of_stamp(ticks: np.ndarray, rows: list[tuple[list[int], Any]]) -> Iterator[bool]:
    """Whether a message begins a row: not if it adds other joints to the stamp of the previous message."""
    there: set[int] = set()
    for k, (numbers, _) in enumerate(rows):
        joins = k > 0 and ticks[k] == ticks[k - 1] and there.isdisjoint(numbers)
        there = there | set(numbers) if joins else set(numbers)
        yield not joins
