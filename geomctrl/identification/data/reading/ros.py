"""ROS bags: the joint states of one topic, by rosbags, as the columns that PlotJuggler makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.identification.errors import DataError

from .recording import Recording, library
from .topics import chosen

JOINT_STATE = "sensor_msgs/msg/JointState"
ZSTD = b"\x28\xb5\x2f\xfd"
ARRAYS = ("position", "velocity", "effort")
LISTED = 30  # topics in a message


def read(path: Path, topic: str | None = None) -> Recording:
    """/topic/joint/position, velocity and effort of a ROS 2 bag, a folder or one of its files, and __time [s].

    A message has a row, but that joints of one stamp share theirs; what it does not hold is nan. Times are the
    messages' own stamps, from the first on, or the bag's where they have none. Raises DataError, and ArgumentError
    without rosbags.
    """
    with library(path, "ROS 2 bag"):
        from rosbags.rosbag2 import Reader
        from rosbags.typesys import Stores, get_typestore

        store = get_typestore(Stores.LATEST)  # a joint state looks the same in all of them
        return _read(path, Reader(path), topic, store.deserialize_cdr)


def read_ros1(path: Path, topic: str | None = None) -> Recording:
    """The same of a ROS 1 bag."""
    with library(path, "ROS 1 bag"):
        from rosbags.rosbag1 import Reader
        from rosbags.typesys import Stores, get_typestore

        return _read(path, Reader(path), topic, get_typestore(Stores.ROS1_NOETIC).deserialize_ros1)


def _read(path: Path, reader: Any, topic: str | None, decode: Any) -> Recording:
    label = f"log {str(path)!r}"
    with reader:
        states = {c.topic: c.msgcount for c in reader.connections if c.msgtype == JOINT_STATE}
        if not states:
            others = sorted({f"{c.topic} ({c.msgtype})" for c in reader.connections})
            more = f" and {len(others) - LISTED} more" if len(others) > LISTED else ""
            there = f"it has {', '.join(others[:LISTED])}{more}" if others else "it has no topics"
            raise DataError(f"{label}: no joint states: expected a topic of type {JOINT_STATE}; {there}")
        name = chosen(label, {k: f"{n} messages" for k, n in states.items()}, topic)
        here = [c for c in reader.connections if c.topic == name and c.msgtype == JOINT_STATE]
        messages = reader.messages(connections=here)
        columns, notes = _columns(label, name, ((at, _decoded(label, decode, raw)) for _, at, raw in messages))
    return Recording(label, columns, notes=(f"joint states of {name}", *notes))


def _decoded(label: str, decode: Any, raw: bytes) -> Any:
    if raw[:4] == ZSTD:
        raise DataError(f"{label}: its messages are compressed: give the bag's folder, whose metadata.yaml says how")
    return decode(raw, JOINT_STATE)


def _columns(label: str, topic: str, messages: Iterable[tuple[int, Any]]) -> tuple[dict[str, np.ndarray], list[str]]:
    """(columns by name, notes) of joint states, each with the bag's time [ns]."""
    joints: dict[str, int] = {}
    stamps, received, rows = [], [], []  # rows: (numbers of joints, {array: values})
    for k, (at, message) in enumerate(messages):
        stamps.append(1_000_000_000 * message.header.stamp.sec + message.header.stamp.nanosec)
        received.append(at)
        rows.append(([joints.setdefault(n, len(joints)) for n in message.name], _arrays(label, topic, k, message)))
    if not rows:
        raise DataError(f"{label}: topic {topic!r}: no messages")
    notes = [] if any(stamps) else ["the bag's times, as messages have none"]
    ticks = np.array(stamps if any(stamps) else received, dtype=np.int64)
    first = np.array(list(_first_of_stamp(ticks, rows)))
    at = np.cumsum(first) - 1
    table = {name: np.full((at[-1] + 1, len(joints)), np.nan) for name in ARRAYS}
    for k, (numbers, values) in zip(at, rows):
        for name, x in values.items():
            table[name][k, numbers] = x
    columns = {"__time": (ticks[first] - ticks[0]) * 1e-9}
    for joint, k in joints.items():
        columns |= {f"{topic}/{joint}/{name}": x[:, k] for name, x in table.items() if not np.isnan(x[:, k]).all()}
    return columns, notes


def _arrays(label: str, topic: str, k: int, message: Any) -> Mapping[str, np.ndarray]:
    """The arrays that message number k has; an empty one is none."""
    n = len(message.name)
    if len(set(message.name)) != n:
        raise DataError(f"{label}: topic {topic!r}: message {k}: two joints of one name in {list(message.name)}")
    given = {name: getattr(message, name) for name in ARRAYS}
    for name, x in given.items():
        if len(x) not in (0, n):
            raise DataError(
                f"{label}: topic {topic!r}: message {k}: {name}: expected {n} numbers, as names, got {len(x)}"
            )
    return {name: x for name, x in given.items() if len(x)}


def _first_of_stamp(ticks: np.ndarray, rows: list[tuple[list[int], Any]]) -> Iterator[bool]:
    """Whether a message begins a row: not if it adds other joints to the stamp of the one before."""
    there: set[int] = set()
    for k, (numbers, _) in enumerate(rows):
        joins = k > 0 and ticks[k] == ticks[k - 1] and there.isdisjoint(numbers)
        there = there | set(numbers) if joins else set(numbers)
        yield not joins
