"""Motions that are linear in their coefficients, and files that drive robots: CSV, ROS messages, C arrays."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from geomctrl.arguments import checked, count, instance, listed, number, path_of, shown
from geomctrl.control.contracts import Desired, time
from geomctrl.errors import ArgumentError
from geomctrl.files import write_text
from geomctrl.tracing.backends.c_files import comment, prefix

MAX_TIME = 1e150  # s, beyond which phases of harmonics may overflow
MAX_SAMPLES = 100_000_000  # in a file: hours at 10 kHz, and gigabytes of text


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A finite Fourier series q(t) = sum_k basis_k(t) coefficients[k] (nk, nv) on [0, duration], whose period is
    `duration`; constant before and after. A `Reference`: call it with a time for Desired(q, v, a).
    """

    duration: float
    coefficients: np.ndarray

    def basis(self, t: ArrayLike) -> np.ndarray:
        """(3, N, nk): the basis and its first two time derivatives."""
        return basis_functions(self.duration, len(self.coefficients), _times(t))

    def at(self, t: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, v, a (N, nv) at times t (N,)."""
        q, v, a = self.basis(t) @ self.coefficients
        return q, v, a

    def derivative(self, order: int, t: ArrayLike) -> np.ndarray:
        """(N, nv): the derivative of this order, from 0 to 5, at times t (N,); the jerk is of order 3."""
        order, t = count("order", order, 0, 5), _times(t)
        return basis_functions(self.duration, len(self.coefficients), t, order + 1)[-1] @ self.coefficients

    def bounds(self, order: int) -> np.ndarray:
        """(nv,) bounds of the absolute derivative of this order, from 1 to 5, at all times: the sum of the harmonics'
        amplitudes.
        """
        order = count("order", order, 1, 5)
        s, c = np.split(self.coefficients[1:], 2)
        w = 2.0 * np.pi * np.arange(1, len(s) + 1) / self.duration
        return (w[:, None] ** order * np.hypot(s, c)).sum(axis=0)

    def __call__(self, t: float) -> Desired:
        t = time(t)
        inside = 0.0 <= t <= self.duration
        q, v, a = (x[0] for x in self.at(min(max(t, 0.0), self.duration)))
        return Desired(q, v, a) if inside else Desired(q, np.zeros_like(q), np.zeros_like(q))


def _times(t: ArrayLike) -> np.ndarray:
    times = np.atleast_1d(checked("t", t, ()))
    if times.ndim > 1:
        raise ArgumentError(f"t: expected a time or shape (N,), got {times.shape}")
    if not np.abs(times).max(initial=0.0) < MAX_TIME:
        raise ArgumentError(f"t: expected times below {MAX_TIME:g} s, got {shown(t)}")
    return times


def basis_functions(duration: float, nk: int, t: np.ndarray, orders: int = 3) -> np.ndarray:
    """(orders, N, nk): basis functions and their time derivatives up to order `orders` - 1."""
    w = 2.0 * np.pi * np.arange(1, (nk - 1) // 2 + 1) / duration
    out = np.zeros((orders, len(t), nk))
    out[0, :, 0] = 1.0
    for k in range(orders):
        phase = np.outer(t, w) + 0.5 * k * np.pi  # a derivative turns sine and cosine by a quarter
        out[k, :, 1:] = np.hstack((w**k * np.sin(phase), w**k * np.cos(phase)))
    return out


# --- files -----------------------------------------------------------------------------------------------------------


Sampled = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
NANO = 1_000_000_000


def save_trajectory(
    trajectory: Trajectory,
    path: str | Path,
    names: Sequence[str],
    *,
    rate: float = 100.0,
    repeats: int = 1,
    name: str = "excitation",
) -> Path:
    """Write the motion, sampled at `rate` [Hz], both ends included, in the format of the file's suffix:

    .csv: columns t, then q, v, a of every joint (q1, q2, ..., v1, ..., a1, ...), a header line; .yaml, .yml, .json: ROS
    2's trajectory_msgs/JointTrajectory; .h: C arrays NAME_q, NAME_v, NAME_a [samples][joints], C99 and C++. SI units,
    all digits. names: joint names, in order. repeats: number of repetitions without a pause. name: of the arrays.
    Raises ArgumentError.
    """
    instance("trajectory", trajectory, Trajectory, "a Trajectory")
    path = path_of("path", path)
    writers: dict[str, Callable[..., str]] = {
        ".csv": _csv, ".yaml": _ros_yaml, ".yml": _ros_yaml, ".json": _ros_json, ".h": _c_header,
    }  # fmt: skip
    if path.suffix.lower() not in writers:
        raise ArgumentError(f"path: expected a file that ends in {', '.join(writers)}, got {str(path)!r}")
    names = [instance("names", n, str, "names of joints") for n in listed("names", names)]
    if len(names) != trajectory.coefficients.shape[1]:
        raise ArgumentError(f"names: expected {trajectory.coefficients.shape[1]}, one per joint, got {len(names)}")
    name = prefix("name", name)
    repeats = count("repeats", repeats, 1)
    enough = MAX_SAMPLES / (trajectory.duration * repeats)
    rate = number("rate", rate, f"a rate > 0, at most {MAX_SAMPLES} samples", lambda x: 0.0 < x <= enough)
    sampled = samples(trajectory, rate, repeats)
    return write_text(path, writers[path.suffix.lower()](sampled, names, name))


def samples(trajectory: Trajectory, rate: float, repeats: int = 1) -> Sampled:
    """t (N,), q, v, a (N, nv), evenly at `rate` [Hz], or at the nearest rate that divides the duration."""
    steps = max(1, round(trajectory.duration * rate))
    k = np.arange(repeats * steps + 1)
    inside = (k % steps) * (trajectory.duration / steps)
    inside[-1] = trajectory.duration
    return (k * (trajectory.duration / steps), *trajectory.at(inside))


def _csv(sampled: Sampled, names: Sequence[str], _name: str) -> str:
    heads = ["t", *(f"{x}{i + 1}" for x in "qva" for i in range(len(names)))]
    rows = np.column_stack(sampled).tolist()
    return "\n".join([",".join(heads), *(",".join(map(repr, row)) for row in rows), ""])


def _points(sampled: Sampled) -> list[dict]:
    points = []
    for t, q, v, a in zip(*(x.tolist() for x in sampled)):
        sec, nanosec = divmod(round(t * NANO), NANO)
        points.append({
            "positions": q, "velocities": v, "accelerations": a, "effort": [],
            "time_from_start": {"sec": sec, "nanosec": nanosec},
        })  # fmt: skip
    return points


HEADER = {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}


def _ros_json(sampled: Sampled, names: Sequence[str], _name: str) -> str:
    points = ",\n  ".join(json.dumps(p) for p in _points(sampled))
    head = f'"header": {json.dumps(HEADER)},\n "joint_names": {json.dumps(list(names))}'
    return f'{{{head},\n "points": [\n  {points}\n ]}}\n'


def _ros_yaml(sampled: Sampled, names: Sequence[str], _name: str) -> str:
    """Block style down to the points, JSON's flow style within, which YAML includes."""
    lines = [f"header: {json.dumps(HEADER)}", f"joint_names: {json.dumps(list(names))}", "points:"]
    for point in _points(sampled):
        (first, value), *rest = ((key, _flow(value)) for key, value in point.items())
        lines += [f"- {first}: {value}", *(f"  {key}: {value}" for key, value in rest)]
    return "\n".join([*lines, ""])


def _flow(value: object) -> str:
    """JSON, except for small numbers: YAML 1.1 reads 1e-05 as a string and 1.0e-05 as a number."""
    return re.sub(r"(?<![\d.\w])(-?\d+)e", r"\1.0e", json.dumps(value))


def _c_header(sampled: Sampled, names: Sequence[str], name: str) -> str:
    t, *states = sampled
    guard, upper = f"{name.upper()}_H", name.upper()
    lines = [
        f"/* {upper}_SAMPLES states of {comment(', '.join(names))}, {upper}_PERIOD seconds apart:",
        " * positions q [rad, m], velocities v and accelerations a, at rest at both ends. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        f"#define {upper}_SAMPLES {len(t)}",
        f"#define {upper}_JOINTS {len(names)}",
        f"#define {upper}_PERIOD {float(t[1] - t[0])!r}",
    ]
    for letter, x in zip("qva", states):
        rows = ("    {" + ", ".join(map(repr, row)) + "}," for row in x.tolist())
        lines += ["", f"static const double {name}_{letter}[{len(t)}][{len(names)}] = {{", *rows, "};"]
    return "\n".join([*lines, "", "#endif", ""])
