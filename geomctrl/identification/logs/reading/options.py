"""How the numbers of a log are to be understood, as options with their help texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from geomctrl.arguments import checked, count, flag, instance, listed, number
from geomctrl.errors import ArgumentError

from .mapping import JointMapping
from .units import FIELDS


def option(default: Any, text: str) -> Any:
    """A field of a dataclass of options; `text` is its help for documentation and command lines."""
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class FileOptions:
    """Names of a log's columns, units, joints, gears. Raises ArgumentError."""

    keys: Mapping[str, Any] | None = option(
        None,
        'Which arrays or columns are t, q, v, a, tau, or currents i: {"q": "A_q"} an array, {"q": ["base", "elbow"]}'
        ' columns, {"tau": "effort"} the stem that numbers follow, "axis*_effort" with * for the joint\'s number or'
        " name. Default: the usual names, numbered or with the joints' names, in any order.",
    )
    units: Mapping[str, str | Sequence[str]] | None = option(
        None, 'Units by field, {"q": "deg", "v": "rpm", "t": "ms"}; a list has one a joint. Default: SI.'
    )
    mapping: JointMapping | None = option(None, "From motor to joint coordinates. Default: the log is at the joints.")
    rate: float | None = option(None, "Sampling rate [Hz], where there are no time stamps.")
    drop_bad_rows: bool = option(False, "Leave out rows with missing numbers or repeated time stamps.")
    joints: Sequence[str] | None = option(
        None, "What the log calls the robot's joints, in the robot's order. Default: as the robot does."
    )
    topic: str | None = option(
        None, "Of which joint states, where a log has several. Default: /joint_states, or the only one."
    )
    current_gains: Any = option(None, "Torque per current [N m/A] for logs of currents, one number or one a joint.")
    episodes: Sequence[int] | None = option(
        None, "Which episodes of a log that has several. Default: all; nothing is filtered across them."
    )

    def __post_init__(self):
        for option_name in ("keys", "units"):
            value = getattr(self, option_name)
            for name in () if value is None else instance(option_name, value, Mapping, "a dict by field"):
                if name not in FIELDS:
                    raise ArgumentError(f"{option_name}: expected {', '.join(FIELDS)}, got {name!r}")
        if self.mapping is not None:
            instance("mapping", self.mapping, JointMapping, "a JointMapping")
        if self.rate is not None:
            number("rate", self.rate, "a positive number of hertz", lambda x: x > 0.0)
        flag("drop_bad_rows", self.drop_bad_rows)
        if self.joints is not None:
            for name in (names := listed("joints", self.joints)):
                instance("joints", name, str, "names")
            if len(set(names)) != len(names) or not names:
                raise ArgumentError(f"joints: expected different names, one a joint, got {names!r:.80}")
        if self.topic is not None:
            instance("topic", self.topic, str, "a name")
        if self.current_gains is not None:
            gains = checked("current_gains", self.current_gains, ())
            if gains.ndim > 1 or not gains.size or not gains.all():
                raise ArgumentError(f"current_gains: expected N m/A, one or one a joint, not 0, got {gains!r:.80}")
        for episode in () if self.episodes is None else listed("episodes", self.episodes):
            count("episodes", episode)
        if self.episodes is not None and not len(self.episodes):
            raise ArgumentError("episodes: expected numbers of episodes, got none")
        keys = self.keys or {}
        if "tau" in keys and ("i" in keys or self.current_gains is not None):
            raise ArgumentError("keys: expected torques tau, or currents i and their current_gains, got both")


@dataclass(frozen=True)
class Reading(FileOptions):
    """How to read a log of a robot: names of its columns, units, joints, gears, time stamps.

    The field `metadata["help"]` of each option says what it means. Raises ArgumentError.
    """

    resample: float | None = option(
        None, "Interpolate to this rate [Hz]. Default: where time stamps are not even, to their median rate."
    )
    check_units: bool = option(True, "Stop if numbers look like degrees, milliseconds, currents, ...")

    def __post_init__(self):
        super().__post_init__()
        if self.resample is not None:
            number("resample", self.resample, "a positive number of hertz", lambda x: x > 0.0)
        flag("check_units", self.check_units)
