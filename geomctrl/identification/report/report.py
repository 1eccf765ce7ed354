"""The report of an identification, and its files."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

from geomctrl.arguments import flag, path_of
from geomctrl.files import write_text
from geomctrl.models.io.model_file import save_model
from geomctrl.models.io.writing import gravity_elsewhere, save_mjcf, save_or_why, save_urdf
from geomctrl.robot import Robot

from . import tables
from .definitions import DEFINITIONS, LABELS
from .numbers import ReportNumbers
from .page import page, summary
from .pictures import Pictures
from .rendering import rendered, save_json
from .stiction_errors import first_line


class Result(ReportNumbers):
    """What an identification found, and how far to trust it: `text()`, `tables()`, `save(folder)`."""

    @property
    def robot(self) -> Robot:
        """The identified robot."""
        return self.estimate.robot

    @cached_property
    def drawn(self) -> Pictures:
        """What pictures show, as arrays."""
        return Pictures.of(self)

    def text(self, parameters: bool = True) -> str:
        """The report as plain text; parameters=False: without the table of base parameters."""
        return rendered(
            "report.txt", report=self, e=self.estimate, model=self.estimate.model, tables=tables,
            first_line=first_line(self.errors), labels=LABELS, gravity=gravity_elsewhere(self.estimate.model.robot),
            definitions=DEFINITIONS, parameters=flag("parameters", parameters),
        )  # fmt: skip

    def tables(self) -> dict[str, Any]:
        """Everything as numbers, texts and lists, for JSON."""
        e = self.estimate
        return {
            "robot": e.model.robot.name,
            "log": self.training.label,
            "verdict": self.assessment.tables(),
            "method": e.method,
            "processing": list(self.training.history),
            "condition": e.condition,
            "errors": {
                part: {key: x if isinstance(x, (int, float)) else x.tolist() for key, x in values.items()}
                for part, values in self.errors.items()
            },
            "whiteness": self.whiteness,
            "noise_floor": None if self.noise_floor is None else self.noise_floor.tolist(),
            "verdicts": e.verdicts,
            "is_physical": e.is_physical,
            "parameters": dict(zip(e.model.names, e.x.tolist())),
            "base_parameters": self.parameter_table(),
            "notes": {
                key: value if isinstance(value, (int, float, str, bool, type(None))) else str(value)
                for key, value in self.all_notes.items()
            },
        }

    def extra(self) -> dict[str, Any]:
        """What a Robot does not hold, for the model file: parameters beside the inertial ones by name, and what their
        columns are made of.
        """
        m = self.estimate.model
        return {
            "identified": dict(zip(m.names[m.inertial :], self.estimate.x[m.inertial :].tolist())),
            "smoothing": m.smoothing,
            "transmission": m.transmission.tolist(),
            "curves": [asdict(c) for c in m.curves],
            "log": self.training.label,
            "method": self.estimate.method,
        }

    def save(self, folder: str | Path, plots: bool = True) -> list[Path]:
        """Write report.txt, report.html, report.json, parameters.csv, robot.json (exact), robot.urdf, robot.xml (MJCF),
        and the plots; where a format can not hold the robot a .txt that says why. Returns the paths."""
        folder, plots = path_of("folder", folder), flag("plots", plots)
        written = [
            write_text(folder / "report.txt", self.text()),
            self.save_html(folder / "report.html", plots),
            save_json(folder / "report.json", self.tables()),
            write_text(folder / "parameters.csv", _comma_separated(self.parameter_table())),
            save_model(self.robot, folder / "robot.json", self.extra()),
            save_or_why(save_urdf, self.robot, folder / "robot.urdf"),
            save_or_why(save_mjcf, self.robot, folder / "robot.xml"),
        ]
        return written + (self.save_plots(folder) if plots else [])

    def save_plots(self, folder: Path) -> list[Path]:
        """Write torques.png, residuals.png and, where there are standard deviations, parameters.png."""
        return self.drawn.save(path_of("folder", folder))

    def save_html(self, path: str | Path, plots: bool = True) -> Path:
        """Write the report as one HTML file for people, with pictures unless plots=False; it needs no network."""
        path, plots = path_of("path", path), flag("plots", plots)
        return write_text(path, page(self, self.drawn if plots else None))

    def _repr_html_(self) -> str:
        """For notebooks: the verdict and the errors per joint."""
        return summary(self)


def _comma_separated(table: list[dict[str, Any]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(table[0]))
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()
