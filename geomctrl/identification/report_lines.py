"""The parts of a report in plain text, as lines; report: an `IdentificationReport`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .estimators import named
from .resting import error_lines


def in_words(value: Any) -> str:
    """A note's value: numbers to six digits."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return f"{value:.6g}" if is_number else str(value)


def error_table(report: Any) -> list[str]:
    parts = report.errors
    head = f"{'joint':24}" + "".join(f"{p + ' RMS':>14}{'relative':>10}" for p in parts)
    floor = report.noise_floor
    head += f"{'lag 1':>8}{'correl.':>9}{'not white':>10}" + (f"{'floor':>9}" if floor is not None else "")
    lines = [head]
    for k, name in enumerate(report.estimate.model.robot.dof_names):
        row = f"{name[:24]:24}" + "".join(
            f"{part['rms'][k]:14.4g}{100 * part['relative'][k]:9.2f}%" for part in parts.values()
        )
        white = report.whiteness[k]
        row += f"{white['lag1']:8.3f}{white['correlation']:9.1f}{100 * white['outside']:9.0f}%"
        lines.append(row + (f"{floor[k]:9.3g}" if floor is not None else ""))
    row = f"{'all':24}" + "".join(f"{p['rmse']:14.4g}{100 * p['relative_error']:9.2f}%" for p in parts.values())
    lines.append(row + (f"{'':27}{np.sqrt(np.mean(floor**2)):9.3g}" if floor is not None else ""))
    return [*lines, *error_lines(parts)]


def physical_lines(report: Any) -> list[str]:
    e = report.estimate
    lines = ["physical consistency (a rigid body with mass in all directions can have these parameters):"]
    for (body, why), pi in zip(e.verdicts.items(), e.x[: e.model.inertial].reshape(-1, 10)):
        lines.append(f"  {body:24} {'yes' if why is None else 'NO: ' + why}, {pi[0]:.4g} kg")
    return lines


def beside_lines(report: Any) -> list[str]:
    """What was identified beside inertial parameters, and whether the robot holds it."""
    e = report.estimate
    if e.model.size == e.model.inertial:
        return []
    rows = [
        (f"{r.name:6} {r.what}{f' of {r.owner}' * bool(r.owner)}", r.value, r.unit,
         r.place + f"; {r.remark}" * bool(r.remark))
        for r in report.beside
    ]  # fmt: skip
    width = max(len(row[0]) for row in rows)
    return [
        "",
        f"{'friction, rotors, springs':{width}}{'value':>12}  {'unit':12}in the exported robot",
        *(f"{name:{width}}{value:12.5g}  {unit:12}{place}" for name, value, unit, place in rows),
        "The robot's M, C, g and inverse dynamics hold inertial parameters and armature: friction, and what says",
        "no, come on top (Estimate.predict adds all of it; rotors that say no add to M, by the transmission). All",
        'values are in robot.json under "extra", which load_extra reads, and in report.json.',
    ]


def open_lines(report: Any) -> list[str]:
    """What the training log can not decide, if anything."""
    if not report.left_open:
        return []
    return [
        "",
        "what this log leaves open (changes as large as a joint's torques, which its noise hides or its motion",
        "does not act on; how many standard deviations of the noise they would show as):",
        *(f"  {x.seen:8.2g}  {x.words}" for x in report.left_open),
    ]


def parameter_lines(report: Any) -> list[str]:
    table = report.parameter_table()
    width = min(70, max(len(r["name"]) for r in table))
    known, borrowed = "std" in table[0], "least_squares" in table[0]
    lines = [
        f"{'base parameter':{width}}{'value':>12}"
        + (f"{'least sq.':>12}" if borrowed else "")
        + (f"{'std':>11}{'95 % low':>12}{'high':>12}{'std %':>8}" if known else "")
    ]
    for r in table:
        name = r["name"] if len(r["name"]) <= width else r["name"][: width - 4] + " ..."
        line = f"{name:{width}}{r['value']:12.5g}"
        if borrowed:
            line += f"{r['least_squares']:12.5g}"
        if known:
            share = f"{r['percent']:8.1f}" if r["percent"] < 1e4 else f"{'> 9999':>8}"
            line += f"{r['std']:11.3g}{r['low']:12.5g}{r['high']:12.5g}{share}"
        lines.append(line)
    remark = named(report.estimate.method).uncertainty
    if borrowed:
        lines.append(f"({report.estimate.method} has no covariance: {remark}; std and intervals are least squares')")
    elif not known:
        lines.append(f"(no covariance: {remark})")
    elif remark:
        lines.append(f"({remark})")
    return lines
