"""What was found of a load, and how far to trust it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import path_of
from geomctrl.files import write_text
from geomctrl.identification.findings import Finding
from geomctrl.identification.report.definitions import LOAD_DEFINITIONS
from geomctrl.identification.report.rendering import Column, Table, plain, rendered, save_json
from geomctrl.mechanism import inertia
from geomctrl.models.io.model_file import save_model
from geomctrl.models.io.writing import save_or_why, save_urdf
from geomctrl.robot import Robot

from .body import Body
from .stacked import Solved

NAMES = ("m", "hx", "hy", "hz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
MOMENTS = (("xx", 0, 0), ("yy", 1, 1), ("zz", 2, 2), ("xy", 0, 1), ("xz", 0, 2), ("yz", 1, 2))
SMALL = 0.05  # m: no load is judged by a length below


@dataclass(frozen=True, eq=False)
class LoadReport:
    """A load in the frame `frame`, with the data it came from.

    `robot`: the one given, with the load attached; `way`: how it was found, in words; `extra`: what the robot's file
    holds beside it; `friction`: of the joints with the load on, "fv1" [N m s/rad], "fc1" [N m], ..., none of a sensor.
    """

    robot: Robot
    frame: str
    body: Body
    solved: Solved
    way: str
    history: tuple[str, ...] = ()
    notes: dict[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    friction: Mapping[str, float] = field(default_factory=dict)

    @property
    def parameters(self) -> np.ndarray:
        """(10,), in the frame: m, m c, inertia about its origin."""
        return self.body.parameters

    @property
    def mass(self) -> float:
        """[kg]"""
        return float(self.parameters[0])

    @property
    def centre(self) -> np.ndarray:
        """Centre of mass (3,) [m] in the frame."""
        return inertia.com(self.parameters)

    @property
    def inertia(self) -> np.ndarray:
        """(3, 3) [kg m^2] about the centre of mass, in the frame's axes."""
        return inertia.com_tensor(self.parameters)

    @cached_property
    def intervals(self) -> dict[str, np.ndarray]:
        """95 %: "mass" (2,), "centre" (3, 2), "inertia" (3, 3, 2), "parameters" (10, 2); infinite where the motion
        says nothing.
        """
        return self.body.quantities()

    @cached_property
    def not_excited(self) -> dict[str, str]:
        """Which of the ten parameters the motion leaves open, or all but open, and why one says so."""
        length = max(float(np.sqrt(np.trace(inertia.pseudo(self.parameters)[:3, :3]) / self.mass)), SMALL)
        scale = self.mass * np.array([1.0] + [length] * 3 + [length**2] * 6)
        half = 0.5 * np.diff(self.intervals["parameters"]).ravel()
        words = {}
        for name, h, s in zip(NAMES, half, scale):
            if not np.isfinite(h):
                words[name] = "the motion says nothing of it"
            elif h > s:
                words[name] = f"known to +-{h:.2g}, where {s:.2g} is a load's of this mass and size"
        return words

    @property
    def errors(self) -> list[dict[str, Any]]:
        """Per log and channel (joint or axis of the sensor): rms, and rms without a load [N m, N]."""
        with_, without = self.solved.residuals(), self.solved.residuals(np.zeros(10))
        logs = [(s.label, c) for s in self.solved.factored.sources for c in s.channels]
        return [
            {"log": log, "channel": c, "rms": float(a), "rms_without_load": float(b)}
            for (log, c), a, b in zip(logs, with_, without)
        ]

    def text(self) -> str:
        """The report as plain text."""
        columns = [Column("log"), Column(""), Column("RMS", 4), Column("with no load", 4)]
        errors = Table(columns, [list(error.values()) for error in self.errors])
        return rendered("load.txt", report=self, values=self._values(), errors=errors, definitions=LOAD_DEFINITIONS)

    def _values(self) -> Table:
        free, box = self.body.least_squares, self.intervals
        with np.errstate(invalid="ignore", divide="ignore"):
            centre, moments = inertia.com(free), inertia.com_tensor(free)
        rows = [["mass [kg]", self.mass, free[0], *box["mass"]]]
        rows += [[f"centre {'xyz'[k]} [m]", self.centre[k], centre[k], *box["centre"][k]] for k in range(3)]
        rows += [
            [f"inertia {name} [kg m^2]", self.inertia[i, j], moments[i, j], *box["inertia"][i, j]]
            for name, i, j in MOMENTS
        ]
        columns = [Column(title, 5) for title in ("value", "least sq.", "95 % low", "high")]
        return Table([Column(""), *columns], rows)

    def tables(self) -> dict[str, Any]:
        """Everything as plain numbers, texts and lists, for JSON; open intervals hold null."""
        return plain({
            "robot": self.robot.name,
            "frame": self.frame,
            "way": self.way,
            "processing": self.history,
            "notes": {k: v if isinstance(v, (int, float, str, list)) else str(v) for k, v in self.notes.items()},
            "doubts": [vars(d) for d in self.findings],
            "mass": self.mass,
            "centre": self.centre,
            "inertia": self.inertia,
            "parameters": dict(zip(NAMES, self.parameters)),
            "least_squares": dict(zip(NAMES, self.body.least_squares)),
            "intervals": self.intervals,
            "not_excited": self.not_excited,
            "friction": self.friction,
            "errors": self.errors,
        })  # fmt: skip

    def save(self, folder: str | Path) -> list[Path]:
        """Write report.txt, report.json, robot.json (the robot with its load, exact, and the load beside it), and
        robot.urdf (or, where URDF can not hold the robot, robot.urdf.txt, why); returns the paths.
        """
        folder = path_of("folder", folder)
        load = {"frame": self.frame, "parameters": self.parameters.tolist()}
        return [
            write_text(folder / "report.txt", self.text()),
            save_json(folder / "report.json", self.tables()),
            save_model(self.robot, folder / "robot.json", {**self.extra, "load": load}),
            save_or_why(save_urdf, self.robot, folder / "robot.urdf"),
        ]
