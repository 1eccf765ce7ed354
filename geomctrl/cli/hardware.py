"""Create actuators and sensors from the values of `--actuators` and `--sensors`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from geomctrl.control.actuators import Actuator, Lag, RateLimit, Saturation, Selection, TransportDelay
from geomctrl.control.sensors import Encoder
from geomctrl.errors import ArgumentError
from geomctrl.robot import Robot

UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
TIMES = {"lag", "delay", "dt"}  # options that accept units of time
ACTUATORS: dict[str, Callable[[Robot, float | None], Actuator]] = {
    "limits": lambda robot, x: Saturation(robot.limits.effort) if x is None else Saturation(x),
    "lag": lambda robot, x: Lag(_required("lag", x)),
    "delay": lambda robot, x: TransportDelay(_required("delay", x)),
    "rate": lambda robot, x: RateLimit(_required("rate", x)),
    "joints": lambda robot, x: _joints_alone(robot, x),
}
ENCODER = ("bits", "resolution", "offset", "noise", "cutoff", "dt", "delay")


def actuators(text: str | None, robot: Robot) -> list[Actuator]:
    """Parse for example "delay=1ms,lag=5ms,limits": actuators in order, starting at the command."""
    chain = []
    for name, x in _parts("actuators", text, list(ACTUATORS)):
        if name == "limits" and x is None and not (robot.limits.effort < float("inf")).any():
            raise ArgumentError(f"actuators: limits: {robot.name} has no limits: expected limits=NUMBER")
        chain.append(ACTUATORS[name](robot, x))
    return chain


def driven(robot: Robot, chain: list[Actuator]) -> str:
    """Describe which coordinates of a robot with a free base are driven; empty for other robots."""
    base = [name for name, joint in zip(robot.joint_names, robot.joints) if joint.kind == "free"]
    if not base:
        return ""
    name = ", ".join(map(repr, base))
    if any(isinstance(x, Selection) for x in chain):
        return f"driven: all joints but the free {name}, which moves freely"
    hint = "" if len(base) == len(robot.joints) else "; the other joints alone: --actuators joints"
    return f"driven: all {robot.nv} coordinates, those of the free {name} too, by a wrench on its body{hint}"


def _joints_alone(robot: Robot, x: float | None) -> Selection:
    """Torques of all coordinates except those of free joints."""
    if x is not None:
        raise ArgumentError(f"actuators: joints: expected no number, got {x:g}")
    if all(joint.kind == "free" for joint in robot.joints):
        raise ArgumentError(f"actuators: joints: {robot.name} has only free joints, which can not be driven")
    B = np.eye(robot.nv)
    for joint, own in zip(robot.joints, robot.v_slices):
        B[own] *= joint.kind != "free"
    return Selection(B)


def sensors(text: str | None, seed: int) -> list[Encoder]:
    """Parse for example "bits=17,noise=1e-4,cutoff=50": an encoder at each joint."""
    options: dict[str, Any] = {name: _required(name, x) for name, x in _parts("sensors", text, ENCODER)}
    if "bits" in options:
        if options["bits"] != int(options["bits"]):
            raise ArgumentError(f"sensors: bits: expected a whole number, got {options['bits']:g}")
        options["bits"] = int(options["bits"])
    return [Encoder(**options, seed=seed)] if options else []


def _parts(option: str, text: str | None, names: Any) -> Iterator[tuple[str, float | None]]:
    for part in filter(None, (text or "").replace(" ", "").split(",")):
        name, equals, number = part.partition("=")
        if name not in names:
            raise ArgumentError(f"{option}: expected {', '.join(names)}, got {name!r}")
        yield name, _number(option, name, number) if equals else None


def _number(option: str, name: str, text: str) -> float:
    match = re.fullmatch(r"([-+.\deE]+?)(us|ms|s)?", text)
    try:
        if match is None or (match[2] and name not in TIMES):
            raise ValueError
        return float(match[1]) * UNITS[match[2] or "s"]
    except ValueError:
        unit = ", in s, ms or us" if name in TIMES else ""
        raise ArgumentError(f"{option}: {name}: expected a number{unit}, got {text!r}") from None


def _required(name: str, x: float | None) -> float:
    if x is None:
        raise ArgumentError(f"{name}: expected {name}=NUMBER")
    return x
