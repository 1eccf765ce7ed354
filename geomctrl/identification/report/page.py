"""An identification report as one HTML file for people: no network, no fonts or scripts from elsewhere, light and dark,
on a phone and on paper.
"""

from __future__ import annotations

from importlib import metadata
from typing import Any

from geomctrl.identification.estimators import named
from geomctrl.terms.base_parameters import SYMBOLS

from . import parameter_rows as findings
from . import tables
from .definitions import GLOSSARY, LABELS
from .numbers import ReportNumbers
from .pictures import Pictures
from .rendering import TEMPLATES, rendered, shortened

MAX_NAME = 64  # letters of a base parameter's name, above which the page folds it
STATUS = {
    "trust": "Trust: nothing that was checked speaks against this result",
    "doubts": "Doubts: look at these before you use the result",
    "distrust": "Do not trust this result",
}
SECTIONS = {
    "errors": "Errors", "joints": "Joint by joint", "parameters": "Base parameters", "excitation": "Told apart",
    "bodies": "Bodies", "friction": "Friction", "settings": "Settings and source",
}  # fmt: skip


def page(report: ReportNumbers, pictures: Pictures | None) -> str:
    """The whole page; pictures=None: without pictures."""
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
        unfelt=_unfelt(report),
        hold_zero=[row["name"] for row in report.parameter_table() if row.get("low", 1) <= 0 <= row.get("high", 0)],
        masses=[sum(pair[k].mass for pair in findings.bodies(e)) for k in (0, 1)],
        version=_version(report),
    )  # fmt: skip


def summary(report: ReportNumbers) -> str:
    """A few lines for notebooks: verdict, errors by joint."""
    return rendered("summary.html", **_heading(report), errors=tables.errors(report))


def _heading(report: ReportNumbers) -> dict[str, Any]:
    kinds = dict.fromkeys(finding.kind for finding in report.assessment.ignored)
    but = f", but for what was ignored ({', '.join(kinds)})" if kinds else ""
    return {
        "report": report, "e": report.estimate, "model": report.estimate.model,
        "log": (report.training if report.raw is None else report.raw).label,
        "status": STATUS[report.assessment.status] + but,
    }  # fmt: skip


def _unfelt(report: ReportNumbers) -> list[str]:
    """Names of the parameters that no torque depends on."""
    model, base = report.estimate.model, report.estimate.base
    symbols = [s.format(i + 1) for i in range(model.robot.nbodies) for s in SYMBOLS]
    symbols += model.names[model.inertial :]
    return [name for name, column in zip(symbols, base.projection.T) if not column.any()]


def _split_by_prior(report: ReportNumbers) -> list[tuple[findings.NonInertialParameter, list[str]]]:
    """Parameters that torques depend on as a part of sums only, and the names of these base parameters."""
    model, projection = report.estimate.model, report.estimate.base.projection
    return [
        (row, [name for name, c in zip(model.base_names, projection[:, model.names.index(row.name)]) if c])
        for row in report.beside
        if row.remark == findings.BY_PRIOR
    ]


def _version(report: ReportNumbers) -> str:
    if report.provenance is not None:
        return dict(report.provenance.versions)["geomctrl"]
    try:
        return metadata.version("geomctrl")
    except metadata.PackageNotFoundError:
        return "(not installed)"
