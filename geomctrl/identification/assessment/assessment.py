"""Whether to trust an identification: its doubts, and what they come to."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from geomctrl.arguments import instance, listed
from geomctrl.identification.findings import ALL, Finding, ignorable

TRUST, DOUBTS, DISTRUST = "trust", "doubts", "distrust"
EXIT_STATUS = {TRUST: 0, DISTRUST: 1, DOUBTS: 3}
IN_WORDS = {
    TRUST: "TRUST: nothing was found that speaks against it",
    DOUBTS: "DOUBTS: it may be right; look at this first",
    DISTRUST: "NOT TO BE TRUSTED",
}
WIDTH = 110


@dataclass(frozen=True)
class Assessment:
    """status "trust", "doubts" or "distrust" (one doubt is fatal), from doubts that nobody asked to ignore.

    doubts: those that count, the fatal ones first; ignored: those whose kind is in `ignore`, which says nothing about
    them being wrong; notes: what the log can not tell, which speaks neither for nor against it. exit_status: of
    `geomctrl identify`: 0 trust, 1 distrust, 3 doubts.
    """

    findings: tuple[Finding, ...] = ()
    ignored: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, found: Sequence[Finding], ignore: Sequence[str] = (), notes: Sequence[str] = ()) -> Assessment:
        """From all that was found; ignore: kinds of doubts, or "all". Raises ArgumentError."""
        found, ignore = listed("found", found), ignorable("ignore", ignore)
        for finding in found:
            instance("found", finding, Finding, "Doubts")
        for note in listed("notes", notes):
            instance("notes", note, str, "sentences")
        ordered = sorted(dict.fromkeys(found), key=lambda finding: not finding.fatal)
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
        return IN_WORDS[self.status] + (f" (ignored: {left_out})" if left_out else "")

    def text(self) -> str:
        """Of several lines: the status, each doubt with its numbers and what to do, notes."""
        lines = [f"verdict: {self}"]
        for finding in self.findings:
            lines += _item("FATAL" if finding.fatal else "doubt", finding)
        for finding in self.ignored:
            lines += _item("ignored", finding)
        for note in self.notes:
            lines += textwrap.wrap(f"note: {note}", WIDTH, initial_indent="  ", subsequent_indent="      ")
        return "\n".join(lines)

    def tables(self) -> dict[str, Any]:
        """As plain texts and lists, for JSON."""
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
