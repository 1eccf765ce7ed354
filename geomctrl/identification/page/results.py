"""The parts of the page that say what was found, each with the words it uses."""

from __future__ import annotations

from typing import Any

import numpy as np

from geomctrl.identification import findings, pictures
from geomctrl.identification.base_parameters import SYMBOLS
from geomctrl.identification.estimators import named

from .glossary import some
from .markup import Markup, number, percent, section, table, tag, terms, words

LONG = 64  # letters of a base parameter's name, above which it is folded
SAID = {"": "yes", findings.BY_PRIOR: "by the prior only", findings.OPEN: "not by this log"}
THIN = 1e-3  # of the next moment: a least one below makes a body a rod


def errors(report: Any, definitions: dict[str, str]) -> Markup:
    """Per joint: RMS and relative errors, how white residuals are, the noise floor."""
    parts, floor = report.errors, report.noise_floor
    said = {"RMS": definitions.get("RMS"), "relative": definitions.get("relative error")}
    lag = definitions.get("lag 1, not white")
    head: list[Any] = ["joint"]
    for part in parts:
        name = "unseen" if part == "test" else part
        head += [(f"{name} RMS", said["RMS"]), (f"{name} relative", said["relative"])]
    head += [("lag 1", lag), ("correl.", definitions.get("correl(ation)")), ("not white", lag)]
    head += [("noise floor", definitions.get("noise floor"))] if floor is not None else []
    rows = []
    for k, name in enumerate(report.estimate.model.robot.dof_names):
        row = [words(tag("a", name, href=f"#joint-{k + 1}"))]
        row += [cell for p in parts.values() for cell in (number(p["rms"][k]), percent(p["relative"][k]))]
        white = report.whiteness[k]
        row += [number(white["lag1"], 3), number(white["correlation"], 3), percent(white["outside"], 0)]
        rows.append(row + ([number(floor[k], 3)] if floor is not None else []))
    last = [words("all"), *(c for p in parts.values() for c in (number(p["rmse"]), percent(p["relative_error"])))]
    last += [words(), words(), words()]
    rows.append(last + ([number(float(np.sqrt(np.mean(floor**2))), 3)] if floor is not None else []))
    beside = None
    if report.unconstrained is not None:
        u = report.unconstrained
        text = f"Least squares without prior and constraints: training {100 * u.relative_error():.2f} %"
        text += (
            f", unseen {100 * u.relative_error(report.test_factors):.2f} %" if report.test_factors is not None else ""
        )
        beside = tag("p", text + ".")
    return section("errors", "Errors", table(head, rows), tag("p", _units(report), class_="soft"), beside,
                   terms({**definitions, **some("unseen", "residual", "rows")}))  # fmt: skip


def _units(report: Any) -> str:
    sliding = [n for n, unit in zip(report.estimate.model.robot.dof_names, report.units) if unit == "N"]
    return "RMS and noise floor in N m" + (f"; in N for {', '.join(sliding)}" if sliding else "") + "."


def joints(report: Any, plots: bool) -> Markup:
    """Torques over time, training and unseen apart, residuals over velocity and their distribution, per joint."""
    if not plots:
        return section("joints", "Joint by joint", tag("p", "Drawn where pictures are asked for."))
    said = tag("p", "Measured and predicted torque, and below on an axis of its own their difference; dashed: its RMS."
                    " Axes fit all rows that were used. Over velocity, dots are rows and lines their means:"
                    " what friction's model lacks shows there.", class_="soft")  # fmt: skip
    body = []
    for k, drawn in enumerate(pictures.joint_by_joint(report)):
        figures = [tag("figure", tag("figcaption", what), Markup(svg)) for what, svg in drawn]
        name = report.estimate.model.robot.dof_names[k]
        body.append(tag("h3", name, ": ", _relative(report, k), id=f"joint-{k + 1}"))
        body.append(tag("div", figures, class_="pictures"))
    return section("joints", "Joint by joint", said, body)


def _relative(report: Any, k: int) -> str:
    shares = [(part, 100 * e["relative"][k]) for part, e in report.errors.items()]
    return ", ".join(f"{'unseen' if part == 'test' else part} {share:.2f} %" for part, share in shares)


# --- parameters ----------------------------------------------------------------------------------------------------


def parameters(report: Any, plots: bool) -> Markup:
    """All base parameters by name with their intervals, sortable."""
    rows, e = report.parameter_table(), report.estimate
    known, borrowed = "std" in rows[0], "least_squares" in rows[0]
    head: list[Any] = ["base parameter", "value"]
    head += ["least squares"] * borrowed
    head += ["std", "95 % from", "to", ("std %", some("std %")["std %"])] * known
    head += ["model given"]
    cells = []
    for row, given in zip(rows, e.base.projection @ e.model.prior):
        cells.append([_name(row["name"]), number(row["value"], 5)])
        if borrowed:
            cells[-1].append(number(row["least_squares"], 5))
        if known:
            cells[-1] += [number(row[key], 5 if key != "std" else 3) for key in ("std", "low", "high")]
            cells[-1].append(number(row["percent"], 3))
        cells[-1].append(number(float(given), 5))
    remark = named(e.method).uncertainty
    if borrowed:
        remark = f"{e.method} has no covariance: {remark}; std and intervals are those of least squares."
    elif not known:
        remark = f"No covariance: {remark}."
    svg = pictures.of_parameters(report) if plots else None
    picture = None
    if svg is not None:
        caption = ("Each in its own size, so that every interval fits. What lies outside is an arrow at the edge with"
                   " its number, in sizes.")  # fmt: skip
        picture = tag("figure", tag("figcaption", caption), Markup(svg), class_="tall")
        picture = tag("details", tag("summary", "The same as a picture"), picture, open=True)
    return section(
        "parameters", "Base parameters",
        tag("p", "Click a heading to sort. m1 c1x: mass times centre of mass of body 1 [kg m]; Ixx1, Ixy1, ...: inertia"
                 " about its frame's origin [kg m^2]; fv, fc, fo, Ir, ks, k0, fs, fb: see friction.", class_="soft"),
        table(head, cells, sortable=True, id="base-parameters"),
        tag("p", remark, class_="soft") if remark else None,
        terms(some("base parameter", "95 % interval", "std %", "size", "model given")),
        picture,
    )  # fmt: skip


def _name(name: str) -> Markup:
    return words(_folded(name), class_="name")


def _folded(name: str) -> Markup:
    """All of it, of which the end is to unfold where it is long."""
    if len(name) <= LONG:
        return tag("span", name, class_="sum")
    return tag("details", tag("summary", _start(name)), tag("span", name, class_="sum"))


def _start(name: str) -> str:
    return name if len(name) <= LONG else name[: name.rfind(" ", 0, LONG - 4)].rstrip(" +-") + " ..."


def told_apart(report: Any) -> Markup:
    """What torques depend on in sums only, what this log leaves open, which intervals hold zero."""
    e = report.estimate
    symbols = [s.format(i + 1) for i in range(e.model.robot.nbodies) for s in SYMBOLS]
    symbols += e.model.names[e.model.inertial :]
    unfelt = [name for name, column in zip(symbols, e.base.projection.T) if not column.any()]
    by_prior = [row for row in report.beside if row.remark == findings.BY_PRIOR]
    facts = [tag("li", f"Of {e.model.size} parameters, torques depend on {e.base.size} combinations: the base"
                       " parameters above. No motion of this robot tells more.")]  # fmt: skip
    if unfelt:
        facts.append(tag("li", f"No torque depends on these {len(unfelt)}, they stay as the model has them: ",
                         tag("span", ", ".join(unfelt), class_="soft"), "."))  # fmt: skip
    for row in by_prior:
        sums = [name for name, c in zip(e.model.base_names, e.base.projection[:, e.model.names.index(row.name)]) if c]
        facts.append(tag("li", tag("b", row.name), f", {row.what} of {row.owner}: only as a part of ",
                         [(", " * bool(k), tag("i", _start(name), title=name)) for k, name in enumerate(sums)],
                         "; its own value is split off by the prior."))  # fmt: skip
    if report.left_open:
        rows = [[words(tag("span", x.words, class_="sum")), number(x.seen, 2)] for x in report.left_open]
        left: list[Markup] = [tag("p", "The log leaves these changes of base parameters open:"),
                table(["what can be exchanged", "seen [std of the noise]"], rows)]  # fmt: skip
    else:
        left = [tag("p", "Nothing: every change of base parameters that brings torques as large as a joint's would show"
                         " above the noise.")]  # fmt: skip
    zero = [row["name"] for row in report.parameter_table() if "low" in row and row["low"] <= 0.0 <= row["high"]]
    bad = tag("p", f"Intervals that hold zero, so that not even the sign is sure: {len(zero)} of {e.base.size}.")
    names = tag("details", tag("summary", "Which"), tag("ul", [tag("li", name) for name in zero])) if zero else None
    return section(
        "excitation", "What could not be told apart",
        tag("h3", "By any motion"), tag("ul", facts),
        tag("h3", "By this log"), left,
        (bad, names) if report.reference is not None else None,
        terms(some("what the log leaves open", "prior", "condition number", "base parameter")),
    )  # fmt: skip


# --- the robot -----------------------------------------------------------------------------------------------------


def bodies(report: Any) -> Markup:
    """Mass, centre of mass, principal moments, beside the model's."""
    head = ["body", "", "mass [kg]", "centre x [m]", "y [m]", "z [m]", "least moment [kg m^2]", "middle", "greatest",
            "physically consistent"]  # fmt: skip
    rows = []
    for found, given in findings.bodies(report.estimate):
        for body, whose in ((found, "identified"), (given, "model given")):
            rows.append([words(body.name if whose == "identified" else ""), words(whose, class_="soft tight"),
                         number(body.mass), *(number(x) for x in body.com), *(number(x) for x in body.moments),
                         _consistent(body)])  # fmt: skip
    total = [sum(pair[k].mass for pair in findings.bodies(report.estimate)) for k in (0, 1)]
    return section(
        "bodies", "Bodies",
        tag("p", "In each body's own frame. Torques determine the base parameters only: how these are shared among"
                 " bodies is the prior's and the constraints' choice, and single masses may be far from a scale's.",
            class_="soft"),
        table(head, rows),
        tag("p", f"Sum of masses: identified {total[0]:.4g} kg, model given {total[1]:.4g} kg."),
        terms(some("physically consistent", "principal moments", "model given", "prior")),
    )  # fmt: skip


def _consistent(body: findings.BodyFound) -> Markup:
    if body.violation is not None:
        return words(f"NO: {body.violation}", class_="bad")
    if body.moments[0] < THIN * body.moments[1]:
        return words("yes, but hardly: thin as a rod", class_="doubt")
    return words("yes", class_="good")


def friction(report: Any) -> Markup:
    """Friction, rotors, springs and columns of one's own, per joint."""
    if not report.beside:
        return section("friction", "Friction, rotors, springs", tag("p", "None was asked for."))
    rows = []
    owners = list(dict.fromkeys(row.owner for row in report.beside))
    for row in sorted(report.beside, key=lambda row: owners.index(row.owner)):
        low, high = row.interval or (None, None)
        rows.append([words(row.owner), words(row.name), words(row.what, class_="tight"), number(row.value, 5),
                     number(low), number(high), words(row.unit, class_="tight"), words(row.place),
                     words(SAID[row.remark], class_="doubt tight" if row.remark else None)])  # fmt: skip
    whose = report.reference.method if report.reference not in (None, report.estimate) else None
    head = ["of", "", "what", "value", "95 % from", "to", "unit", "in the exported robot", "told apart"]
    return section(
        "friction", "Friction, rotors, springs",
        table(head, rows, sortable=True, id="friction-table"),
        tag("p", f"Intervals are those of {whose}, without prior and constraints.", class_="soft") if whose else None,
        tag("p", "M, C, g and inverse dynamics of the exported robot hold inertial parameters and armature. Friction,"
                 " and what says no, come on top.", class_="soft"),
        terms(some("viscous friction", "Coulomb friction", "sigmoid friction", "Stribeck friction", "rotor inertia",
                   "torque offset", "95 % interval")),
    )  # fmt: skip
