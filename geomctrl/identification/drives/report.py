"""Gains of a robot's drives, and how far to trust them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import path_of
from geomctrl.files import write_text
from geomctrl.identification.findings import Finding
from geomctrl.identification.report.definitions import GAIN_DEFINITIONS
from geomctrl.identification.report.rendering import Column, Table, plain, rendered, save_json
from geomctrl.robot import Robot


@dataclass(frozen=True, eq=False)
class DriveGains:
    """`gains` (nv,) [N m/A], nan where they are `refused` (why, by joint); `estimates` (nv,): those too, `std` (nv,).

    known_torques (nv, 2): RMS of what is known, and of its weight alone, at the joints [N m]; rms, relative (logs, nv):
    residuals of the currents [A], and beside these; load (10,): what was identified of the load's parameters, or None.
    """

    robot: Robot
    estimates: np.ndarray
    std: np.ndarray
    refused: dict[str, str]
    known_torques: np.ndarray
    logs: tuple[str, ...]
    rms: np.ndarray
    relative: np.ndarray
    way: str
    history: tuple[str, ...] = ()
    notes: dict[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    load: np.ndarray | None = None

    @property
    def gains(self) -> np.ndarray:
        """(nv,) [N m/A], nan where refused: `Reading(current_gains=...)` takes them where none is."""
        kept = [name not in self.refused for name in self.robot.dof_names]
        return np.where(kept, self.estimates, np.nan)

    @property
    def intervals(self) -> np.ndarray:
        """(nv, 2), 95 %; infinite where the logs leave a gain open."""
        half = 1.959963984540054 * self.std
        return np.stack((self.estimates - half, self.estimates + half), -1)

    def text(self) -> str:
        """The report as plain text."""
        columns = [Column("joint"), Column("gain", 5), Column("95 % low", 5), Column("high", 5), Column("known", 3)]
        columns += [Column("weight", 3), *(Column("RMS", 3), Column("relative", 2, percent=True)) * len(self.logs)]
        rows = zip(
            self.robot.dof_names, self.estimates, self.intervals, self.known_torques, self.rms.T, self.relative.T
        )
        table = [
            [name, gain, *interval, *known, *np.stack((rms, relative), -1).ravel()]
            for name, gain, interval, known, rms, relative in rows
        ]
        return rendered("gains.txt", report=self, table=Table(columns, table), definitions=GAIN_DEFINITIONS)

    def tables(self) -> dict[str, Any]:
        """Everything as plain numbers, texts and lists, for JSON; null for what is refused or open."""
        return plain({
            "robot": self.robot.name,
            "way": self.way,
            "processing": self.history,
            "notes": {k: str(v) for k, v in self.notes.items()},
            "doubts": [vars(d) for d in self.findings],
            "joints": self.robot.dof_names,
            **{
                key: getattr(self, key)
                for key in ("gains", "estimates", "intervals", "refused", "known_torques", "logs", "rms", "relative")
            },
            "load": self.load,
        })  # fmt: skip

    def save(self, folder: str | Path) -> list[Path]:
        """Write report.txt and report.json; returns the paths."""
        folder = path_of("folder", folder)
        return [write_text(folder / "report.txt", self.text()), save_json(folder / "report.json", self.tables())]
