"""Findings: reasons to doubt an identification, their kinds, and the overall assessment."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from geomctrl.arguments import choices, instance, listed

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
    "velocity": "measured velocities that are not those of the positions",
    "zero": "a joint whose positions count from another zero than the model's",
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
    """One reason to doubt a result: the observation with its numbers, and what to do about it.

    Attributes
    ----------
    kind : str
        A key of KINDS, for example "cutoff"; `ignore` refers to findings by this name.
    seen : str
        The observation.
    advice : str
        What to do.
    fatal : bool
        True: the result must not be trusted. False: it may be right, but should be checked.
    """

    kind: str
    seen: str
    advice: str
    fatal: bool = False

    def __str__(self) -> str:
        return f"{self.seen}. {self.advice}"


def listing(kind: str, seen: str, items: Sequence[str], advice: str, fatal: bool = False) -> list[Finding]:
    """Return one finding that lists the items after the observation, or no finding if there are none."""
    return [Finding(kind, f"{seen}: {', '.join(items)}", advice, fatal)] if items else []


def ignorable(name: str, kinds: Any) -> tuple[str, ...]:
    """Return the kinds of findings to ignore after checking that they are keys of KINDS, or "all"."""
    return tuple(choices(name, kinds, (*KINDS, ALL)))


TRUST, DOUBTS, DISTRUST = "trust", "doubts", "distrust"
EXIT_STATUS = {TRUST: 0, DISTRUST: 1, DOUBTS: 3}
STATUS_TEXT = {
    TRUST: "TRUST: nothing was found that speaks against it",
    DOUBTS: "DOUBTS: it may be right; look at this first",
    DISTRUST: "NOT TO BE TRUSTED",
}
WIDTH = 110


@dataclass(frozen=True)
class Assessment:
    """The overall status of an identification, from the findings that are not ignored.

    Attributes
    ----------
    status : str
        "trust", "doubts", or "distrust" if one finding is fatal.
    doubts : tuple of Finding
        The findings that count, fatal ones first.
    ignored : tuple of Finding
        Findings whose kind is in `ignore`.
    notes : tuple of str
        What the log does not determine; this does not affect the status.
    exit_status : int
        Exit status of `geomctrl identify`: 0 trust, 1 distrust, 3 doubts.
    """

    findings: tuple[Finding, ...] = ()
    ignored: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, findings: Sequence[Finding], ignore: Sequence[str] = (), notes: Sequence[str] = ()) -> Assessment:
        """Create an assessment from all findings; ignore: kinds of findings, or "all". Raises ArgumentError."""
        findings, ignore = listed("findings", findings), ignorable("ignore", ignore)
        for finding in findings:
            instance("findings", finding, Finding, "Findings")
        for note in listed("notes", notes):
            instance("notes", note, str, "sentences")
        ordered = sorted(dict.fromkeys(findings), key=lambda finding: not finding.fatal)
        out = [d for d in ordered if ALL in ignore or d.kind in ignore]
        return cls(tuple(d for d in ordered if d not in out), tuple(out), tuple(notes))

    @property
    def status(self) -> str:
        if any(finding.fatal for finding in self.findings):
            return DISTRUST
        return DOUBTS if self.findings else TRUST

    @property
    def exit_status(self) -> int:
        return EXIT_STATUS[self.status]

    def __str__(self) -> str:
        left_out = ", ".join(dict.fromkeys(finding.kind for finding in self.ignored))
        return STATUS_TEXT[self.status] + (f" (ignored: {left_out})" if left_out else "")

    def text(self) -> str:
        """Return several lines of text: the status, each doubt with its numbers and advice, notes."""
        lines = [f"assessment: {self}"]
        for finding in self.findings:
            lines += _item("FATAL" if finding.fatal else "doubt", finding)
        for finding in self.ignored:
            lines += _item("ignored", finding)
        for note in self.notes:
            lines += textwrap.wrap(f"note: {note}", WIDTH, initial_indent="  ", subsequent_indent="      ")
        return "\n".join(lines)

    def tables(self) -> dict[str, Any]:
        """Return the assessment as strings and lists, for JSON."""
        rows = [
            {"kind": d.kind, "fatal": bool(d.fatal), "seen": d.seen, "advice": d.advice, "ignored": out}
            for findings, out in ((self.findings, False), (self.ignored, True))
            for d in findings
        ]
        return {"status": self.status, "exit_status": self.exit_status, "doubts": rows, "notes": list(self.notes)}


def _item(mark: str, finding: Finding) -> list[str]:
    text = f"{mark}, {finding.kind}: {finding.seen}"
    return [
        *textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="      "),
        *textwrap.wrap(finding.advice, WIDTH, initial_indent="      -> ", subsequent_indent="         "),
    ]
