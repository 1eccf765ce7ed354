"""Formats of logs, detected by a file's first bytes or its suffix, and their readers, except those of ROS bags."""

from __future__ import annotations

import csv
import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.files import decimal, read_arrays
from geomctrl.identification.errors import DataError

from . import ros
from .recording import Recording, library, require_samples


def read_npz(path: Path, topic: str | None = None) -> Recording:
    """All arrays of an archive. Raises DataError."""
    label = f"log {str(path)!r}"
    try:
        return Recording(label, read_arrays(path), "array")
    except (ValueError, OSError) as error:
        raise DataError(f"{label}: not a readable npz archive: {error}; tables end in .csv, .txt or .tsv") from None


# --- tables of text --------------------------------------------------------------------------------------------------


MAX_COMMENTS = 1000  # lines before a table's header


def read_text(path: Path, topic: str | None = None) -> Recording:
    """The columns; empty cells are nan."""
    label = f"log {str(path)!r}"
    try:
        with path.open(encoding="utf-8-sig") as file:
            lines = [line.rstrip("\n") for line in islice(file, MAX_COMMENTS)]
    except ValueError as error:
        raise DataError(f"{label}: not a text file: {error}") from None
    top = 0
    while top + 1 < len(lines) and lines[top].startswith("#") and not _is_numeric(lines[top + 1]):
        top += 1
    first = lines[top] if lines else ""
    named = not _is_numeric(first)
    delimiter = next((d for d in ";\t," if d in first), None)
    header = next(csv.reader([first], delimiter=delimiter), []) if delimiter else first.split()
    header = [h.strip().lstrip("#").strip() for h in header] if named else [str(k + 1) for k in range(len(header))]
    twice = [h for h in header if header.count(h) > 1]
    if twice:
        raise DataError(f"{label}: two columns are called {twice[0]!r}")
    skip = top + named
    table, commas = _text_numbers(label, path, skip, delimiter)
    if table.size == 0:
        raise DataError(f"{label}: expected samples below the header, got none")
    if table.shape[1] != len(header):
        hint = " (decimal commas? separate the columns by semicolons)" if table.shape[1] == 2 * len(header) else ""
        raise DataError(f"{label}: {len(header)} names in the header, {table.shape[1]} columns below{hint}")
    notes = () if named else ("no header: columns are called by their numbers, from 1",)
    return Recording(label, dict(zip(header, table.T)), notes=(*notes, *commas))


def _text_numbers(label: str, path: Path, skip: int, delimiter: str | None) -> tuple[np.ndarray, tuple[str, ...]]:
    """The table (N, columns) after this many lines, and a note if it has decimal commas."""
    options: dict[str, Any] = {
        "delimiter": delimiter, "ndmin": 2, "quotechar": '"', "skiprows": skip, "encoding": "utf-8-sig",
    }  # fmt: skip
    marks: set[str] = set()

    def number(cell: str) -> float:
        marks.update(mark for mark in ",." if mark in cell)
        return decimal(cell.strip().replace(",", ".") or "nan")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "input contained no data", which the caller reports
        try:
            try:
                return np.loadtxt(path, **options), ()
            except ValueError:  # a slower reader that turns empty cells into nan and reads decimal commas
                table = np.loadtxt(path, converters=number, **options)
        except ValueError as error:
            raise DataError(f"{label}: below the header: {error}") from None
    if marks == {",", "."}:
        raise DataError(f"{label}: expected decimal points or decimal commas, got both")
    return table, ("decimal commas: 0,5 was read as 0.5",) if "," in marks else ()


def _is_numeric(line: str) -> bool:
    """Whether a line of a table begins with a number."""
    cells = line.replace(",", " ").replace(";", " ").split()
    try:
        return bool(cells) and np.isfinite(decimal(cells[0].strip('"')))
    except ValueError:
        return False


# --- MATLAB's .mat: to v7 by scipy, v7.3 by h5py, as other HDF5 files ------------------------------------------------


V73 = b"MATLAB 7.3"


def read_matlab(path: Path, topic: str | None = None) -> Recording:
    """Numeric variables; a struct's fields as "struct.field". Raises DataError, and ArgumentError without h5py."""
    with path.open("rb") as file:
        if file.read(len(V73)) == V73:
            return read_hdf5(path)
    with library(path, "MATLAB file"):
        from scipy.io import loadmat

        variables = {k: x for k, x in loadmat(path, simplify_cells=True).items() if not k.startswith("__")}
    arrays = dict(_flat("", variables))
    return _recording(path, arrays, [k for k in variables if k not in arrays and not isinstance(variables[k], dict)])


def read_hdf5(path: Path, topic: str | None = None) -> Recording:
    """Numeric data sets of an HDF5 file, MATLAB's v7.3 or any other, by "group.name"."""
    arrays, others = {}, []
    with library(path, "HDF5 file (MATLAB v7.3 is one)"):
        import h5py

        def visit(name: str, node: Any) -> None:
            if not isinstance(node, h5py.Dataset) or name.startswith("#") or "MATLAB_empty" in node.attrs:
                return
            if node.dtype.kind in "iuf":
                x = node[()]
                arrays[name.replace("/", ".")] = np.squeeze(x.T if "MATLAB_class" in node.attrs else x)
            else:
                others.append(name)

        with h5py.File(path, "r") as file:
            file.visititems(visit)
    return _recording(path, arrays, others)


def _recording(path: Path, arrays: dict[str, np.ndarray], others: list[str]) -> Recording:
    if not arrays:
        objects = f"; {', '.join(others[:8])} are tables, timeseries or text" if others else ""
        raise DataError(
            f"log {str(path)!r}: no numeric arrays{objects}: expected arrays t, q, tau (in MATLAB: save their numbers,"
            " tau = table2array(T(:, 2:7)), or T.Data)"
        )
    return Recording(f"log {str(path)!r}", arrays, "array", transposed=True)


def _flat(prefix: str, variables: dict[str, Any]) -> Iterator[tuple[str, np.ndarray]]:
    for key, x in variables.items():
        if isinstance(x, dict):
            yield from _flat(f"{prefix}{key}.", x)
        elif isinstance(x, (int, float)) or (isinstance(x, np.ndarray) and x.dtype.kind in "iuf" and x.size):
            yield prefix + key, np.asarray(x)


# --- parquet files, and folders of LeRobot datasets ------------------------------------------------------------------


LEROBOT_INFO = "meta/info.json"  # of a LeRobot dataset, whose parquet files are in data/


def read_parquet(path: Path, topic: str | None = None) -> Recording:
    """Numeric columns, nulls as nan; lists of equal length as arrays; times as seconds since the first."""
    label = f"log {str(path)!r}"
    return Recording(label, require_samples(label, _columns(path)))


def read_lerobot(path: Path, topic: str | None = None) -> Recording:
    """The columns of all parquet files of a LeRobot dataset, one after the other, and a column FEATURE.NAME for each
    named entry of a feature.
    """
    label, files = f"log {str(path)!r}", sorted((path / "data").rglob("*.parquet"))
    if not files:
        raise DataError(f"{label}: a LeRobot dataset ({LEROBOT_INFO}) without parquet files in data/")
    with library(path / LEROBOT_INFO, "LeRobot dataset"):
        features = dict(json.loads((path / LEROBOT_INFO).read_text(encoding="utf-8")).get("features", {}))
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
    return Recording(label, require_samples(label, arrays))


def _names(feature: Any) -> list[str]:
    """Names of a feature's entries from a list, or a dict of one; [] if it has none."""
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
    """Whether a column holds bytes, such as images, which are not loaded."""
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


# --- the formats -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Format:
    """read(path, topic) returns the recording; topic: of the messages to read, if a file holds messages. wrenches(path,
    topic, True) also returns a recording of each sensor's wrenches, if these are separate messages."""

    name: str
    suffixes: tuple[str, ...]
    signatures: tuple[tuple[int, bytes], ...]  # (offset, bytes)
    read: Callable[[Path, str | None], Recording]
    wrenches: Callable[[Path, str | None, bool], list[Recording]] | None = None

    def signed(self, head: bytes) -> bool:
        return any(head[offset : offset + len(sign)] == sign for offset, sign in self.signatures)


def _joint_states(read: Callable[[Path, str | None], list[Recording]]) -> Callable[[Path, str | None], Recording]:
    return lambda path, topic: read(path, topic)[0]


HEAD_BYTES = 520  # bytes, which hold every signature
ROS2 = ((0, b"SQLite format 3\0"), (0, b"\x89MCAP0\r\n"))
HDF5 = b"\x89HDF\r\n\x1a\n"
FORMATS = {
    f.name: f
    for f in (
        Format("npz", (".npz", ".npy"), ((0, b"PK\x03\x04"), (0, b"PK\x05\x06"), (0, b"\x93NUMPY")), read_npz),
        Format("csv", (".csv", ".txt", ".tsv"), (), read_text),
        Format("matlab", (".mat",), ((0, b"MATLAB 5.0"), (0, b"MATLAB 7.3")), read_matlab),
        Format("hdf5", (".h5", ".hdf5"), ((0, HDF5), (512, HDF5)), read_hdf5),
        Format("parquet", (".parquet", ".pq"), ((0, b"PAR1"),), read_parquet),
        Format("lerobot", (), (), read_lerobot),
        Format("ros2", (".db3", ".mcap"), ROS2, _joint_states(ros.read_ros2), ros.read_ros2),
        Format("ros1", (".bag",), ((0, b"#ROSBAG V2.0"),), _joint_states(ros.read_ros1), ros.read_ros1),
    )
}
COMPRESSED = {b"\x28\xb5\x2f\xfd": "zstd", b"\x1f\x8b": "gzip", b"\x04\x22\x4d\x18": "lz4", b"BZh": "bzip2"}


def recorded(path: Path, topic: str | None = None) -> Recording:
    """The contents of a file, or of the folder of a ROS 2 bag or a LeRobot dataset."""
    return _format(path).read(path, topic)


def with_wrenches(path: Path, topic: str | None = None) -> list[Recording]:
    """[the contents, and each sensor's wrenches if these are separate messages]; raises the same as `recorded`."""
    form = _format(path)
    return [form.read(path, topic)] if form.wrenches is None else form.wrenches(path, topic, True)


def _format(path: Path) -> Format:
    if path.is_dir():
        if (path / LEROBOT_INFO).is_file():
            return FORMATS["lerobot"]
        if not (path / "metadata.yaml").is_file():
            raise DataError(
                f"path: log {str(path)!r}: a folder without metadata.yaml or {LEROBOT_INFO}: expected a ROS 2 bag's, a"
                " LeRobot dataset's, or a file"
            )
        return FORMATS["ros2"]
    if not path.is_file():
        raise DataError(f"path: log {str(path)!r}: no such file")
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise DataError(f"path: log {str(path)!r}: not readable: {error.strerror}") from None
    if not head:
        raise DataError(f"log {str(path)!r}: an empty file (0 bytes)")
    return detected_format(path, head)


def detected_format(path: Path, head: bytes) -> Format:
    """Detect the format by the first bytes, otherwise by the suffix, otherwise a table of text."""
    for x in FORMATS.values():
        if x.signed(head):
            return x
    for sign, name in COMPRESSED.items():
        if head.startswith(sign):
            bag = (
                ": give the bag's folder, whose metadata.yaml says how"
                if Path(path.stem).suffix in (".db3", ".mcap")
                else ""
            )
            raise DataError(f"log {str(path)!r}: a file compressed by {name}{bag or ': unpack it'}")
    for x in FORMATS.values():
        if path.suffix.lower() in x.suffixes:
            return x
    if b"\0" in head:
        suffixes = ", ".join(suffix for x in FORMATS.values() for suffix in x.suffixes)
        raise DataError(f"log {str(path)!r}: neither text nor a known format; expected one of {suffixes}")
    return FORMATS["csv"]
