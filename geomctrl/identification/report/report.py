"""`Result` of an identification: its report as text, HTML page, pictures and files."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import flag, path_of
from geomctrl.files import write_each, write_text
from geomctrl.identification.estimators import named
from geomctrl.identification.estimators.conditioning import autocorrelation
from geomctrl.models.io.model_file import save_model
from geomctrl.models.io.writing import gravity_elsewhere, save_mjcf, save_or_why, save_urdf
from geomctrl.robot import Robot
from geomctrl.terms.base_parameters import SYMBOLS

from . import identifiability as findings
from . import tables
from .numbers import ReportNumbers, first_line
from .provenance import installed_version
from .rendering import DEFINITIONS, GLOSSARY, LABELS, TEMPLATES, Report, plain, rendered, shortened


@dataclass(frozen=True, eq=False)
class Pictures:
    """Data of the pictures: joints, torques of training and unseen data, autocorrelations of training residuals,
    intervals.
    """

    joints: list[Any]
    parts: list[Any]
    autocorrelations: list[np.ndarray]
    parameters: tuple[Any, np.ndarray, tuple[str, np.ndarray] | None] | None

    @classmethod
    def of(cls, report: ReportNumbers) -> Pictures:
        from geomctrl.viewing import fits

        e, reference = report.estimate, report.reference
        speeds = {"N m": "rad/s", "N": "m/s"}
        joints = [fits.Joint(name, unit, speeds[unit]) for name, unit in zip(e.model.robot.dof_names, report.units)]
        logs = {"training": report.training} | ({"unseen": report.test} if report.test is not None else {})
        parts = []
        for (title, data), errors in zip(logs.items(), report.errors.values()):
            heading = f"{title}: relative error {100 * errors['relative_error']:.2f} %"
            t, tau, predicted, used = e.model._predict(e.x, data)
            assert data.v is not None
            parts.append(fits.Torques(heading, t, tau, predicted, used, data.v[e.model._rows(data)]))
        residuals = [parts[0].residual(k) for k in range(len(joints))]
        rho = [autocorrelation(r) if len(r) else r for r in residuals]
        box = None if reference is None else reference.intervals()
        if reference is None or reference.std is None or box is None:
            return cls(joints, parts, rho, None)
        owners = dict(zip(e.model.names, e.model.owners))
        names = [f"{n}  ({owners[n]})" if owners.get(n, n) != n else n for n in e.model.base_names]
        crosses = (e.method, e.values) if reference is not e else None
        half = 0.5 * (box[:, 1] - box[:, 0])
        intervals = fits.Intervals(names, reference.method, reference.values, reference.std, half)
        return cls(joints, parts, rho, (intervals, e.base.projection @ e.model.prior, crosses))

    def writers(self, folder: Path) -> list[Callable[[], Path]]:
        """Functions that write torques.png, residuals.png and, if there are standard deviations, parameters.png."""
        from geomctrl.viewing import identification as view

        out = [
            lambda: view.torques(self.joints, self.parts, folder / "torques.png"),
            lambda: view.residuals(self.joints, self.parts, self.autocorrelations, folder / "residuals.png"),
        ]
        if (parameters := self.parameters) is not None:
            out.append(lambda: view.parameters(*parameters, folder / "parameters.png"))
        return out

    def joint_by_joint(self) -> list[list[tuple[str, str]]]:
        """For each joint, (title, SVG) of its pictures; see `viewing.identification.joint_pictures`."""
        from geomctrl.viewing import identification as view

        return [
            view.joint_pictures(joint, k, self.parts, rho)
            for k, (joint, rho) in enumerate(zip(self.joints, self.autocorrelations))
        ]

    def of_parameters(self) -> str | None:
        """SVG of base parameters with their intervals; None without standard deviations."""
        from geomctrl.viewing import identification as view

        return None if self.parameters is None else view.parameter_picture(*self.parameters)


# --- the page: one HTML file that works offline, in light and dark mode, on a phone and on paper ---------------------


MAX_NAME = 64  # characters of a base parameter's name; the page folds longer ones
STATUS = {
    "trust": "Trust: nothing that was checked speaks against this result",
    "doubts": "Doubts: look at these before you use the result",
    "distrust": "Do not trust this result",
}
SECTIONS = {
    "errors": "Errors", "joints": "Joint by joint", "parameters": "Base parameters", "excitation": "Not determined",
    "bodies": "Bodies", "friction": "Friction", "settings": "Settings and source",
}  # fmt: skip


def page(report: ReportNumbers, pictures: Pictures | None) -> str:
    """Return the whole HTML page; pictures=None: without pictures."""
    e = report.estimate
    return rendered(
        "page.html",
        **_heading(report),
        css=(TEMPLATES / "page.css").read_text(encoding="utf-8"),
        script=(TEMPLATES / "page.js").read_text(encoding="utf-8"),
        sections=SECTIONS, labels=LABELS, glossary=GLOSSARY, split_by_prior=_split_by_prior(report), max_name=MAX_NAME,
        shortened=shortened, tables=tables, estimator=named(e.method),
        joint_pictures=None if pictures is None else pictures.joint_by_joint(),
        parameter_picture=None if pictures is None else pictures.of_parameters(),
        unfelt=_without_effect(report),
        hold_zero=[row["name"] for row in report._parameter_table() if row.get("low", 1) <= 0 <= row.get("high", 0)],
        masses=[sum(pair[k].mass for pair in findings.bodies(e)) for k in (0, 1)],
        version=dict(report.provenance.versions)["geomctrl"] if report.provenance else installed_version("geomctrl"),
    )  # fmt: skip


def summary(report: ReportNumbers) -> str:
    """Return a few lines for notebooks: assessment, errors by joint."""
    return rendered("summary.html", **_heading(report), errors=tables.errors(report))


def _heading(report: ReportNumbers) -> dict[str, Any]:
    kinds = dict.fromkeys(finding.kind for finding in report.assessment.ignored)
    but = f", but for what was ignored ({', '.join(kinds)})" if kinds else ""
    return {
        "report": report, "e": report.estimate, "model": report.estimate.model,
        "log": (report.training if report.raw is None else report.raw).label,
        "status": STATUS[report.assessment.status] + but,
    }  # fmt: skip


def _without_effect(report: ReportNumbers) -> list[str]:
    """Names of the parameters that do not affect any torque."""
    model, base = report.estimate.model, report.estimate.base
    symbols = [s.format(i + 1) for i in range(model.robot.nbodies) for s in SYMBOLS]
    symbols += model.names[model.inertial :]
    return [name for name, column in zip(symbols, base.projection.T) if not column.any()]


def _split_by_prior(report: ReportNumbers) -> list[tuple[findings.NonInertialParameter, list[str]]]:
    """Parameters that only affect torques as part of sums, and the names of these base parameters."""
    model, projection = report.estimate.model, report.estimate.base.projection
    return [
        (row, [name for name, c in zip(model.base_names, projection[:, model.names.index(row.name)]) if c])
        for row in report.non_inertial
        if row.remark == findings.BY_PRIOR
    ]


# --- the report ------------------------------------------------------------------------------------------------------


class Result(ReportNumbers, Report):
    """The result of an identification, and how far to trust it.

    Use `text()` to read it, `tables()` for numbers, `save(folder)` for files, `robot` for the identified model and
    `assessment` for the findings.

    Attributes
    ----------
    estimate : Estimate
        The estimated parameters; `unconstrained` is the estimate without constraints, if it differs.
    training, test, raw : Dataset or None
        The filtered logs for the fit and the test, and the log before filtering.
    robot : Robot
        The identified robot.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> from geomctrl.identification import Dataset, RegressorModel, Result, fit
    >>> arm, rng = gc.models.two_link(), np.random.default_rng(0)
    >>> q, v, a = rng.normal(size=(3, 400, 2))
    >>> tau = arm.inverse_dynamics(q, v, a) + 0.01 * rng.normal(size=(400, 2))
    >>> log = Dataset(np.arange(400) / 100.0, q, tau, v=v, a=a)
    >>> result = Result(fit(RegressorModel(arm), log), log)  # `identify` returns one
    >>> "base parameters" in result.text(parameters=False)
    True
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print("robot.urdf" in [path.name for path in result.save(folder, plots=False)])
    True
    """

    @property
    def robot(self) -> Robot:
        """The identified robot."""
        return self.estimate.robot

    @cached_property
    def drawn(self) -> Pictures:
        """The data of the pictures."""
        return Pictures.of(self)

    def text(self, parameters: bool = True) -> str:
        """Return the report as plain text.

        Parameters
        ----------
        parameters : bool
            Whether to include the table of base parameters. Default: True.

        Returns
        -------
        str
        """
        return rendered(
            "report.txt", report=self, e=self.estimate, model=self.estimate.model, tables=tables,
            first_line=first_line(self.errors), labels=LABELS, gravity=gravity_elsewhere(self.estimate.model.robot),
            definitions=DEFINITIONS, parameters=flag("parameters", parameters),
        )  # fmt: skip

    def _tables(self) -> dict[str, Any]:
        """Return all numbers, strings and lists, for JSON.

        Returns
        -------
        dict
            Results by name, built from dicts, lists, strings and numbers only.
        """
        e = self.estimate
        return plain({
            "robot": e.model.robot.name,
            "log": self.training.label,
            "assessment": self.assessment.tables(),
            "method": e.method,
            "processing": self.training.history,
            "condition": e.condition,
            "errors": self.errors,
            "whiteness": self.whiteness,
            "noise_floor": self.noise_floor,
            "verdicts": e.verdicts,
            "is_physical": e.is_physical,
            "parameters": dict(zip(e.model.names, e.x)),
            "base_parameters": self._parameter_table(),
            "notes": {
                key: value if isinstance(value, (int, float, str, bool, type(None))) else str(value)
                for key, value in self.all_notes.items()
            },
        })  # fmt: skip

    def _extra(self) -> dict[str, Any]:
        """Data for the model file that a Robot does not hold: parameters other than inertial ones, and their
        columns.
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
        """Write the report and the identified robot to a folder.

        Parameters
        ----------
        folder : str or Path
            Created if it does not exist.
        plots : bool
            Also write the plots. Default True.

        Returns
        -------
        list of Path
            report.txt, report.html, report.json, parameters.csv, robot.json (exact), robot.urdf, robot.xml (MJCF) and
            the plots. If a format can not represent the robot, a .txt file says why.

        Raises
        ------
        WriteError
            If files can not be written; all others are.
        """
        folder, plots = path_of("folder", folder), flag("plots", plots)
        return write_each(
            [
                *self._writers(folder),
                lambda: write_text(folder / "report.html", page(self, self.drawn if plots else None)),
                lambda: write_text(folder / "parameters.csv", _comma_separated(self._parameter_table())),
                lambda: save_model(self.robot, folder / "robot.json", self._extra()),
                lambda: save_or_why(save_urdf, self.robot, folder / "robot.urdf"),
                lambda: save_or_why(save_mjcf, self.robot, folder / "robot.xml"),
                *(self.drawn.writers(folder) if plots else ()),
            ]
        )

    def _repr_html_(self) -> str:
        """Summary for notebooks: assessment and errors of each joint."""
        return summary(self)


def _comma_separated(table: list[dict[str, Any]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(table[0]))
    writer.writeheader()
    writer.writerows(table)
    return text.getvalue()
