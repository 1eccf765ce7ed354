"""Parquet: by pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .recording import Recording, library, lined_up


def read(path: Path, topic: str | None = None) -> Recording:
    """Columns of numbers, nulls as nan; lists of one length as arrays; times as seconds since the first."""
    label = f"log {str(path)!r}"
    with library(path, "parquet file"):
        import pyarrow.parquet

        table = pyarrow.parquet.ParquetFile(path).read().flatten()
        found = {name: _numbers(pyarrow, column) for name, column in zip(table.column_names, table.columns)}
    return Recording(label, lined_up(label, {name: x for name, x in found.items() if x is not None}))


def _numbers(pyarrow: Any, column: Any) -> np.ndarray | None:
    kind = column.type
    is_ = pyarrow.types
    if is_.is_timestamp(kind) or is_.is_duration(kind):
        ticks = column.cast(pyarrow.int64()).to_numpy()
        per_second = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
        if column.null_count or not len(ticks):
            return np.full(len(ticks), np.nan)
        return (ticks - ticks[0]) / per_second
    if is_.is_integer(kind) or is_.is_floating(kind) or is_.is_decimal(kind):
        return column.cast(pyarrow.float64()).to_numpy()
    if is_.is_list(kind) or is_.is_large_list(kind) or is_.is_fixed_size_list(kind):
        rows = column.to_pylist()
        if rows and all(isinstance(row, list) and len(row) == len(rows[0]) for row in rows):
            return np.array([[np.nan if x is None else x for x in row] for row in rows], dtype=float)
    return None
