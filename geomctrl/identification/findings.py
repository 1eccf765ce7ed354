"""Reasons not to trust an identification, or not wholly."""

from __future__ import annotations

from dataclasses import dataclass


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
