"""Reports from Jinja2 templates: text that stands in HTML is escaped, and a name that a template misspells raises."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.files import write_text

TEMPLATES = Path(__file__).parent / "templates"
WIDTH = 120  # characters of a line of text


def rendered(template: str, **values: Any) -> str:
    """A file of templates/ with the values in it."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=lambda name: name is not None and name.endswith(".html"),
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters |= {"exact": exact, "percent": percent, "note": note}
    environment.globals |= {"definition_lines": definition_lines, "zip": zip}
    return environment


# --- tables --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """`digits` of numbers; None: texts; `percent`: numbers are shares; `meaning`: of the title."""

    title: str
    digits: int | None = None
    percent: bool = False
    meaning: str | None = None

    def text(self, x: Any) -> str:
        """A cell; nothing for None, a dash for nan."""
        if x is None or self.digits is None or isinstance(x, str):
            return "" if x is None else str(x)
        if x != x:
            return "-"
        if self.percent:
            return f"{100.0 * x:.{self.digits}f} %"
        return f"{x:.{self.digits}g}" if not 10.0**self.digits <= abs(x) < 1e7 else f"{x:.0f}"


@dataclass(frozen=True)
class Table:
    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]

    def text(self, widest: int = 70) -> str:
        """Aligned columns, cells cut after `widest` characters."""
        cells = [[column.title for column in self.columns]]
        cells += [[column.text(x) for column, x in zip(self.columns, row)] for row in self.rows]
        cells = [[shortened(x, widest) for x in row] for row in cells]
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = []
        for row in cells:
            aligned = [
                x.ljust(n) if column.digits is None else x.rjust(n) for column, x, n in zip(self.columns, row, widths)
            ]
            lines.append("  ".join(aligned).rstrip())
        return "\n".join(lines)


def shortened(name: str, letters: int) -> str:
    return name if len(name) <= letters else name[: letters - 4].rstrip(" +-") + " ..."


# --- numbers as text -------------------------------------------------------------------------------------------------


def exact(x: float | None) -> str:
    """A number as JavaScript reads it back; nothing for None and nan."""
    return "" if x is None or x != x else repr(float(x)).replace("inf", "Infinity")


def percent(share: float) -> str:
    return f"{100.0 * share:.2f} %"


def note(value: Any) -> str:
    """The value of a report's note: numbers to six digits."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return f"{value:.6g}" if is_number else str(value)


def definition_lines(definitions: Mapping[str, str]) -> str:
    """Terms and what they mean, in two columns."""
    column = 6 + max(map(len, definitions))
    lines = []
    for term, meaning in definitions.items():
        first = f"    {term}".ljust(column)
        lines += textwrap.wrap(meaning, WIDTH, initial_indent=first, subsequent_indent=" " * column)
    return "\n".join(lines)


# --- files ---------------------------------------------------------------------------------------------------------


def plain(x: Any) -> Any:
    """Numbers, texts, lists and dicts that JSON holds; None for what is not finite."""
    if isinstance(x, Mapping):
        return {key: plain(value) for key, value in x.items()}
    if isinstance(x, (list, tuple, np.ndarray)):
        return [plain(value) for value in x]
    if isinstance(x, (float, np.floating)):
        return float(x) if np.isfinite(x) else None
    return x.item() if isinstance(x, np.generic) else x


def save_json(path: Path, tables: Mapping[str, Any]) -> Path:
    return write_text(path, json.dumps(plain(tables), indent=1, allow_nan=False) + "\n")
