"""Parquet files, and folders of LeRobot datasets, by pyarrow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.identification.errors import DataError

from .recording import Recording, library, lined_up

INFO = "meta/info.json"  # of a LeRobot dataset, whose parquet files are in data/


def read(path: Path, topic: str | None = None) -> Recording:
    """Columns of numbers, nulls as nan; lists of one length as arrays; times as seconds since the first."""
    label = f"log {str(path)!r}"
    return Recording(label, lined_up(label, _columns(path)))


def read_lerobot(path: Path, topic: str | None = None) -> Recording:
    """The same of all parquet files of a LeRobot dataset, one after the other; and FEATURE.NAME, a column each, of
    features whose entries have names.
    """
    label, files = f"log {str(path)!r}", sorted((path / "data").rglob("*.parquet"))
    if not files:
        raise DataError(f"{label}: a LeRobot dataset ({INFO}) without parquet files in data/")
    with library(path / INFO, "LeRobot dataset"):
        features = dict(json.loads((path / INFO).read_text(encoding="utf-8")).get("features", {}))
    parts = [_columns(file) for file in files]
    for file, part in zip(files, parts):
        shapes = [{name: x.shape[1:] for name, x in p.items()} for p in (parts[0], part)]
        if shapes[0] != shapes[1]:
            raise DataError(
                f"{label}: {file.name}: expected the columns of {files[0].name}, {', '.join(parts[0])}, got"
                f" {', '.join(part)}, or of other sizes"
            )
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    for name, feature in features.items():
        entries = _names(feature)
        if name in arrays and arrays[name].ndim == 2 and arrays[name].shape[1] == len(entries):
            arrays |= {f"{name}.{entry}": x for entry, x in zip(entries, arrays[name].T)}
    return Recording(label, lined_up(label, arrays))


def _names(feature: Any) -> list[str]:
    """Of a feature's entries: a list, or a dict of such; [] where there are none."""
    names = feature.get("names") if isinstance(feature, dict) else None
    if isinstance(names, dict):
        names = next(iter(names.values()), None)
    return names if isinstance(names, list) and all(isinstance(name, str) for name in names) else []


def _columns(path: Path) -> dict[str, np.ndarray]:
    with library(path, "parquet file"):
        import pyarrow.parquet

        file = pyarrow.parquet.ParquetFile(path)
        wanted = [field.name for field in file.schema_arrow if not _is_bytes(pyarrow, field.type)]
        table = file.read(columns=wanted).flatten()
        columns = {name: _numbers(pyarrow, column) for name, column in zip(table.column_names, table.columns)}
    return {name: x for name, x in columns.items() if x is not None}


def _is_bytes(pyarrow: Any, kind: Any) -> bool:
    """Whether a column holds bytes, images say, which are not to be loaded."""
    is_ = pyarrow.types
    if is_.is_struct(kind):
        return any(_is_bytes(pyarrow, kind.field(k).type) for k in range(kind.num_fields))
    return is_.is_binary(kind) or is_.is_large_binary(kind)


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
