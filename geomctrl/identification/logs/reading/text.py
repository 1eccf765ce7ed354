"""CSV and its like: a line of names, if there is one, and a line of numbers a sample."""

from __future__ import annotations

import csv
import warnings
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.identification.errors import DataError

from .recording import Recording

MOST_COMMENTS = 1000  # lines before a table's header


def read(path: Path, topic: str | None = None) -> Recording:
    """The columns; empty cells are nan. Lines with # before the header are comments. Without a header columns are
    called "1", "2", ... Raises DataError."""
    label = f"log {str(path)!r}"
    try:
        with path.open(encoding="utf-8-sig") as file:
            lines = [line.rstrip("\n") for line in islice(file, MOST_COMMENTS)]
    except ValueError as error:
        raise DataError(f"{label}: not a text file: {error}") from None
    top = 0
    while top + 1 < len(lines) and lines[top].startswith("#") and not _is_numeric(lines[top + 1]):
        top += 1
    first = lines[top] if lines else ""
    named = not _is_numeric(first)
    delimiter = next((d for d in ",;\t" if d in first), None)
    header = next(csv.reader([first], delimiter=delimiter), []) if delimiter else first.split()
    header = [h.strip().lstrip("#").strip() for h in header] if named else [str(k + 1) for k in range(len(header))]
    twice = [h for h in header if header.count(h) > 1]
    if twice:
        raise DataError(f"{label}: two columns are called {twice[0]!r}")
    skip = top + named
    table = _numbers(label, path, skip, delimiter, lines[skip] if skip < len(lines) else "")
    if table.size == 0:
        raise DataError(f"{label}: a header and no samples")
    if table.shape[1] != len(header):
        raise DataError(f"{label}: {len(header)} names in the header, {table.shape[1]} columns below")
    notes = () if named else ("no header: columns are called by their numbers, from 1",)
    return Recording(label, dict(zip(header, table.T)), notes=notes)


def _numbers(label: str, path: Path, skip: int, delimiter: str | None, below: str) -> np.ndarray:
    """The table (N, columns) after so many lines, of which the first is `below`."""
    options: dict[str, Any] = {
        "delimiter": delimiter, "ndmin": 2, "quotechar": '"', "skiprows": skip, "encoding": "utf-8-sig",
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "input contained no data", said by who asked
        try:
            try:
                return np.loadtxt(path, **options)
            except ValueError:  # again, four times as slowly, with empty cells for nan
                return np.loadtxt(path, converters=lambda s: float(s.strip() or "nan"), **options)
        except ValueError as error:
            comma = " (decimal commas? write points)" if delimiter != "," and "," in below else ""
            raise DataError(f"{label}: below the header: {error}{comma}") from None


def _is_numeric(line: str) -> bool:
    """Whether a line of a table begins with a number."""
    cells = line.replace(",", " ").replace(";", " ").split()
    try:
        return bool(cells) and np.isfinite(float(cells[0].strip('"')))
    except ValueError:
        return False
