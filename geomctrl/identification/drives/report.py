"""Gains of a robot's drives, and how far to trust them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import path_of
from geomctrl.files import write_text
from geomctrl.identification.doubts import Doubt
from geomctrl.robot import Robot

# Printed with every report.
DEFINITIONS = """\
    gain            torque at the joint per current of its motor [N m/A; N/A for joints that slide], gears included
    95 % low, high  from the noise of the currents and its correlation in time; errors of the model are not in it
    known           RMS of the torque of what is known, the load or CAD's bodies, at the joint [N m], and of its weight
    RMS             sqrt(mean of residual^2) of the currents [A], relative: beside that of the currents
""".rstrip()


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
    doubts: tuple[Doubt, ...] = ()
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
        lines = [f"Drive gains of {self.robot.name!r}, {self.way}", *map("  {}".format, self.history)]
        lines += [f"  {key}: {value}" for key, value in self.notes.items()]
        lines += ["", *(f"{'Not to be trusted' if d.fatal else 'Doubt'}: {d.kind}: {d}" for d in self.doubts)]
        lines += [] if self.doubts else ["No doubts."]
        head = f"{'joint':24}{'gain':>11}{'95 % low':>11}{'high':>11}{'known':>9}{'weight':>9}"
        lines += ["", head + "".join(f"{'RMS':>10}{'relative':>10}" for _ in self.logs)]
        for k, name in enumerate(self.robot.dof_names):
            low, high = self.intervals[k]
            row = f"{name[:24]:24}{self.estimates[k]:11.5g}{low:11.5g}{high:11.5g}"
            row += "".join(f"{x:9.3g}" for x in self.known_torques[k])
            lines.append(row + "".join(f"{r[k]:10.3g}{100.0 * e[k]:9.2f}%" for r, e in zip(self.rms, self.relative)))
        lines += ["", *(f"REFUSED {name}: {why}" for name, why in self.refused.items())]
        if not self.refused:
            gains = ",".join(f"{g:.6g}" for g in self.gains)
            lines.append(f"geomctrl identify LOG --robot ... --current-gains {gains}")
        lines += ["", *DEFINITIONS.splitlines()]
        return "\n".join(lines) + "\n"

    def tables(self) -> dict[str, Any]:
        """Everything as plain numbers, texts and lists, for JSON; null for what is refused or open."""
        return {
            "robot": self.robot.name,
            "way": self.way,
            "processing": list(self.history),
            "notes": {k: str(v) for k, v in self.notes.items()},
            "doubts": [vars(d) for d in self.doubts],
            "joints": list(self.robot.dof_names),
            "gains": _finite(self.gains),
            "estimates": _finite(self.estimates),
            "intervals": [_finite(x) for x in self.intervals],
            "refused": self.refused,
            "known_torques": self.known_torques.tolist(),
            "logs": list(self.logs),
            "rms": self.rms.tolist(),
            "relative": self.relative.tolist(),
            "load": None if self.load is None else self.load.tolist(),
        }

    def save(self, folder: str | Path) -> list[Path]:
        """Write report.txt and report.json; returns the paths."""
        folder = path_of("folder", folder)
        return [
            write_text(folder / "report.txt", self.text()),
            write_text(folder / "report.json", json.dumps(self.tables(), indent=1, allow_nan=False) + "\n"),
        ]


def _finite(x: np.ndarray) -> list[float | None]:
    return [float(y) if np.isfinite(y) else None for y in x]
