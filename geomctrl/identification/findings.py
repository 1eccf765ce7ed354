"""Reasons not to trust an identification, or not wholly, and the kinds that there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from geomctrl.errors import ArgumentError

KINDS = {
    "sign": "a joint's torque, position or both of the other sign",
    "swap": "two joints of the log in each other's place",
    "scale": "torques of a joint, or of all, in other units than N m; positions in degrees",
    "coupling": "a joint that another one moves or loads, and the model does not say so",
    "silent": "a joint that moves while its torque is the same all the time",
    "unexplained": "torques that the model does not explain",
    "unseen": "unseen data predicted much worse than the training data, or motion that was trained on",
    "convergence": "an optimiser that stopped before its end",
    "prior": "prior or constraints against the log",
    "bodies": "bodies that hardly exist, or where their link is not",
    "excitation": "parameters or joints of which the log tells little",
    "drift": "friction or offsets that change while the log lasts: temperature",
    "delay": "torques, or measured velocities, that lag the positions",
    "gravity": "gravity in another direction than the model's: a tilted base",
    "samples": "samples lost or repeated, and time stamps that do not show it",
    "resolution": "torques in steps that are coarse for the joint",
    "cutoff": "a cut-off that is a guess",
    "mass": "a load that is not there, or pulls up",
    "centre": "a load far from the frame it is given in",
    "logs": "logs with and without a load that are not of the same robot",
    "model": "a robot's model that does not explain a log",
    "gain": "drives whose gain the logs do not determine",
}
ALL = "all"


@dataclass(frozen=True)
class Finding:
    """One reason: what was seen, with its numbers, and what to do about it.

    kind: its name, by which it can be ignored, such as "cutoff". fatal: the result can not be trusted at all; else it
    may be right, and should be looked at.
    """

    kind: str
    seen: str
    advice: str
    fatal: bool = False

    def __str__(self) -> str:
        return f"{self.seen}. {self.advice}"


def ignorable(name: str, kinds: Any) -> tuple[str, ...]:
    """The kinds to ignore, checked: names in KINDS, or "all". Raises ArgumentError."""
    if isinstance(kinds, str) or not isinstance(kinds, Sequence):
        raise ArgumentError(f"{name}: expected kinds of findings, a list of names, got {kinds!r:.60}")
    for kind in kinds:
        if not isinstance(kind, str) or (kind != ALL and kind not in KINDS):
            raise ArgumentError(f"{name}: expected {', '.join(KINDS)} or {ALL}, got {kind!r:.60}")
    return tuple(kinds)
