"""What `geomctrl sweep` prints: each measure over all runs, and how the runs ended."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from geomctrl.files import write_text
from geomctrl.output import transcript

MOST_REASONS = 5


def write_report(console: Console, table: Any, path: Path) -> Path:
    """Write a sweep's tables to a file, then print them."""
    kept, text = transcript()
    kept.print(measured(table))
    kept.print(ended(table), soft_wrap=True)
    write_text(path, text())
    console.print(measured(table))
    console.print(ended(table), soft_wrap=True)
    return path


def measured(table: Any) -> Table:
    """Each measure: its least value, median and largest, at which run, and how many runs have none."""
    space = ", ".join(f"{name} {n}" for name, n in table["run"].sizes.items())
    title = f"{table['run'].size} runs: {space}"
    out = Table(title=title, title_justify="left", title_style="bold")
    for head in ("measure", "units", "least", "median", "largest", "in run", "without"):
        out.add_column(head, justify="left" if head in ("measure", "units") else "right")
    for name, x in table.data_vars.items():
        if x.dtype.kind == "f" and name != "t_reached":
            out.add_row(str(name), x.attrs.get("units", ""), *_numbers(table, x))
    return out


def _numbers(table: Any, x: Any) -> list[str]:
    rows = x.values.reshape(table["run"].size, -1)  # the runs' dimensions come first
    good = rows[np.isfinite(rows)]
    without = str(int(np.isnan(rows).any(axis=1).sum()))
    if not len(good):
        return ["", "", "", "", without]
    number = int(np.argmax(np.fmax.reduce(np.where(np.isfinite(rows), rows, -np.inf), axis=1)))
    return [*(f"{value:.4g}" for value in (good.min(), np.median(good), good.max())), str(number), without]


def ended(table: Any) -> str:
    """How many runs went well, and of the others the most frequent reasons with the first run of each."""
    success, reasons = table["success"].values.ravel(), table["reason"].values.ravel()
    lines = [f"{int(success.sum())} of {len(success)} runs reached their end"]
    failed = Counter(reasons[~success].tolist())
    for reason, count in failed.most_common(MOST_REASONS):
        first = int(np.flatnonzero((reasons == reason) & ~success)[0])
        lines.append(f"  {count} did not, as run {first}: {reason}")
    if len(failed) > MOST_REASONS:
        lines.append(f"  and {len(failed) - MOST_REASONS} more reasons, in the variable `reason`")
    return "\n".join(lines)
