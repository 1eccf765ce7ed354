"""The tables of a report, as columns and rows of numbers and strings that text and page render alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import identifiability as findings
from .numbers import ReportNumbers
from .rendering import GLOSSARY, Column, Table

MIN_MOMENT_RATIO = 1e-3  # of the least principal moment to the next: a body below it is as thin as a rod
IDENTIFIABILITY = {"": "yes", findings.BY_PRIOR: "by the prior only", findings.OPEN: "not by this log"}


def errors(report: ReportNumbers) -> Table:
    """RMS and relative errors by joint, for all rows and for those at which joints move and rest; whiteness of the
    residuals; the noise floor.
    """
    parts, floor = report.errors, report.noise_floor
    lag = GLOSSARY["lag 1, not white"]
    columns = [Column("joint")]
    for part in parts:
        name = "unseen" if part == "test" else part
        columns.append(Column(f"{name} RMS", 4, meaning=GLOSSARY["RMS"]))
        columns.append(Column(f"{name} relative", 2, percent=True, meaning=GLOSSARY["relative error"]))
    columns += [Column("lag 1", 3, meaning=lag), Column("correl.", 3, meaning=GLOSSARY["correl(ation)"])]
    columns += [Column("not white", 0, percent=True, meaning=lag)]
    columns += [Column("noise floor", 3, meaning=GLOSSARY["noise floor"])] if floor is not None else []
    rows: list[list[Any]] = []
    for k, (name, white) in enumerate(zip(report.estimate.model.robot.dof_names, report.whiteness)):
        row = [name, *(x for p in parts.values() for x in (p["rms"][k], p["relative"][k]))]
        row += [white["lag1"], white["correlation"], white["outside"]]
        rows.append(row + ([floor[k]] if floor is not None else []))
    none = [None] * 3
    all_joints = [x for p in parts.values() for x in (p["rmse"], p["relative_error"])]
    rows.append(["all", *all_joints, *none, *([np.sqrt(np.mean(floor**2))] if floor is not None else [])])
    if any(p["resting_share"] > 0.0 for p in parts.values()):
        none += [None] * (floor is not None)
        shares = ", ".join(f"{100 * p['resting_share']:.0f}" for p in parts.values())
        for label, kind in (("moving", "moving"), (f"at rest, {shares} %", "resting")):
            rows.append([label, *(x for p in parts.values() for x in (p[f"{kind}_rmse"], p[f"{kind}_error"])), *none])
        within = [
            x for p in parts.values() for x in (Column("", 0, True).text(p["resting_within"]), p["resting_beyond"])
        ]
        rows.append(["  within friction, left", *within, *none])
    return Table(columns, rows)


def parameters(report: ReportNumbers) -> Table:
    """Base parameters with their intervals, and the values of the given model."""
    rows, e = report._parameter_table(), report.estimate
    keys = [("name", Column("base parameter")), ("value", Column("value", 5))]
    keys += [("least_squares", Column("least squares", 5))] if "least_squares" in rows[0] else []
    if "std" in rows[0]:
        percent = Column("std %", 3, meaning=GLOSSARY["std %"])
        keys += [("std", Column("std", 3)), ("low", Column("95 % from", 5)), ("high", Column("to", 5))]
        keys += [("percent", percent)]
    P, prior = e.base.projection, e.model.prior
    nominal = np.where(np.abs(P @ prior) > 1e-12 * (np.abs(P) @ np.abs(prior)), P @ prior, 0.0)  # 0 without rounding
    return Table(
        [*(column for _, column in keys), Column("model given", 5)],
        [[*(row[key] for key, _ in keys), x] for row, x in zip(rows, nominal)],
    )


def bodies(report: ReportNumbers) -> Table:
    """Mass, centre of mass and principal moments, beside the model's."""
    titles = ("mass [kg]", "centre x [m]", "y [m]", "z [m]", "least moment [kg m^2]", "middle", "greatest")
    columns = [Column("body"), Column(""), *(Column(title, 4) for title in titles), Column("physically consistent")]
    rows = [
        [body.name if source == "identified" else "", source, body.mass, *body.com, *body.moments, _consistency(body)]
        for pair in findings.bodies(report.estimate)
        for body, source in zip(pair, ("identified", "model given"))
    ]
    return Table(columns, rows)


def _consistency(body: findings.BodyProperties) -> str:
    if body.violation is not None:
        return f"NO: {body.violation}"
    return "yes, but hardly: thin as a rod" if body.moments[0] < MIN_MOMENT_RATIO * body.moments[1] else "yes"


def friction(report: ReportNumbers) -> Table:
    """Friction, rotors, springs and user-defined columns, by joint."""
    columns = [Column(""), Column("what"), Column("of"), Column("value", 5), Column("95 % from", 4), Column("to", 4)]
    columns += [Column("unit"), Column("in the exported robot"), Column("determined")]
    owners = list(dict.fromkeys(row.owner for row in report.non_inertial))
    rows = [
        [row.name, row.quantity, row.owner, row.value, *(row.interval or (None, None)), row.unit, row.place,
         IDENTIFIABILITY[row.remark]]
        for row in sorted(report.non_inertial, key=lambda row: owners.index(row.owner))
    ]  # fmt: skip
    return Table(columns, rows)


def left_open(report: ReportNumbers) -> Table:
    """Combinations of parameters that the training log leaves open."""
    columns = [Column("seen [std of the noise]", 2), Column("what can be exchanged")]
    return Table(columns, [[x.seen, x.change] for x in report.left_open])
