"""Texts of the tuning page: labels, coloured lines, tables and maps in HTML."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

COLOURS = {"held": "#00875A", "VIOLATED": "#C62828", "UNRESOLVED": "#B26A00"}
NEUTRAL = "#555"
ONE_LINE = 'style="white-space:nowrap"'


def label_of(control: Any, settings: Any) -> str:
    value = settings[control.key]
    return f"{control.name} x {value:.4g}" if control.scales else f"{control.name} {value:.4g} {control.unit}"[:34]


def coloured_line(colour: str, title: str, text: str = "") -> str:
    style = f"color:{colour};font-size:0.85em;padding:1px 8px"
    return f'<div style="{style}"><b>{html.escape(title)}</b> {html.escape(text)}</div>'


def power_of_ten(y: np.ndarray) -> int:
    """-3, -6, ... or 3, 6, ... if the numbers of a curve are small or large."""
    largest = float(np.abs(y).max(initial=0.0))
    return 0 if largest == 0.0 or 0.1 < largest < 1e4 else 3 * int(np.floor(np.log10(largest) / 3.0))


def summary_of(outcome: Any) -> str:
    """One line: how many monitors held, or which did not."""
    names = {
        verdict: [v.name for v in outcome.verdicts if v.verdict == verdict] for verdict in COLOURS | {"checking": ""}
    }
    failed = {verdict: names[verdict] for verdict in ("VIOLATED", "UNRESOLVED", "checking") if names[verdict]}
    text = "; ".join(f"{verdict}: {', '.join(x)}" for verdict, x in failed.items())
    colour = COLOURS.get(next(iter(failed), "held"), NEUTRAL)
    return coloured_line(colour, text or f"{len(names['held'])} monitors held")


def measures_table(outcome: Any, pins: Any) -> str:
    """The measures, with the change since the last pinned setting."""
    rows = []
    for name, (value, unit) in outcome.measures.items():
        before = pins[-1].outcome.measures.get(name, (np.nan, ""))[0] if pins else np.nan
        change = f"{100.0 * (value / before - 1.0):+.1f} %" if before and np.isfinite([before, value]).all() else ""
        number = html.escape(f"{value:.4g} {unit}") if np.isfinite(value) else "never"
        rows.append(f"<tr><td>{html.escape(name)}</td><td {ONE_LINE}>{number}</td><td {ONE_LINE}>{change}</td></tr>")
    head = f"<tr><th align=left>measure</th><th align=left>now</th><th align=left {ONE_LINE}>since pin</th></tr>"
    return f'<table style="font-size:0.85em;margin:8px;width:95%">{head}{"".join(rows)}</table>'


def heat_map(region: Any) -> str:
    """A table of coloured cells: all monitors held, one is unresolved, or one is violated."""
    colours = {1.0: COLOURS["held"], 0.0: COLOURS["UNRESOLVED"], -1.0: COLOURS["VIOLATED"]}
    signs = {1.0: "held", 0.0: "?", -1.0: "x"}
    rows = []
    for y, verdicts in zip(region.y_values[::-1], region.verdicts[::-1]):
        cells = "".join(f'<td style="background:{colours[v]};color:white">{signs[v]}</td>' for v in verdicts.tolist())
        rows.append(f"<tr><th>{y:.4g}</th>{cells}</tr>")
    head = "<tr><th></th>" + "".join(f"<th>{x:.4g}</th>" for x in region.x_values) + "</tr>"
    names = html.escape(f"{region.x} to the right, {region.y} upwards; the buttons below go there")
    return f'<div style="font-size:0.7em;padding:4px">{names}<table>{"".join(rows)}{head}</table></div>'


def short_numbers(values: np.ndarray) -> list[str]:
    """Different numbers with as few digits as possible, so that a row of buttons fits."""
    texts = ([f"{float(f'{x:.{digits}g}'):.{max(digits, 6)}g}" for x in values] for digits in range(2, 17))
    return next((names for names in texts if len({*names}) == len(names)), [repr(x) for x in values.tolist()])


def escaped(text: str) -> str:
    """Text for Markdown, because the page would evaluate expressions between braces."""
    return "".join(c if c.isalnum() or c in " ,:;/." else f"\\{c}" for c in text)
