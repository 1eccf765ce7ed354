"""Columns of a sweep: one row per run, in memory or in the arrays of a Zarr store.

Parameters, measures and the ends of runs are arrays along the dimension "run", with one block per chunk. `checksum`
contains a digest of each block of each column; blocks with right digests are valid. `done` is written last and marks
complete blocks. A marked block with wrong digests has changed on disk, and a warning lists it. Without the mark, its
process was killed, unless other blocks have lost their marks too.
"""

from __future__ import annotations

import contextlib
import hashlib
import warnings
from typing import Any

import numpy as np

from geomctrl.errors import ArgumentError, GeomctrlError, SweepError
from geomctrl.files import memory_size

from .job import Columns

FIXED_COLUMNS = "success", "t_reached", "reason"  # columns of every block
RUN = "run"  # dimension of the columns
CHECKSUMS = "checksum"  # array of digests (blocks, columns), and attribute with those of parameters and the record
RESERVED = *FIXED_COLUMNS, RUN, "done", CHECKSUMS  # neither parameters nor measures have these names
MAX_NAMED = 5  # damaged blocks listed in a warning
Record = dict[str, Any]  # JSON description of a sweep: see `sweep.record_of`


class Memory:
    """Columns in memory with n rows."""

    def __init__(self, n: int):
        self.n, self.arrays = n, {}

    def create(self, name: str, like: np.ndarray) -> Any:
        """Create the array of a column; `like` is a part of it."""
        return np.full((self.n, *like.shape[1:]), blank(like), like.dtype)

    def write(self, first: int, columns: Columns) -> None:
        """Write the rows from `first` on. Raises ArgumentError if a measure changes its shape."""
        rows = len(columns["success"])
        for name, column in (columns | {"done": np.ones(rows, bool)}).items():
            if name not in self.arrays:
                self.arrays[name] = self.create(name, column)
            shape = self.arrays[name].shape[1:]
            if shape != column.shape[1:]:
                raise ArgumentError(
                    f"measures: {name!r}: expected one shape in all runs, got {column.shape[1:]} in the block"
                    f" from run {first} on, and {shape} before"
                )
            self.arrays[name][first : first + rows] = column

    def missing(self, block: int) -> list[int]:
        """The first runs of missing blocks."""
        return (np.flatnonzero(~self.done()[::block]) * block).tolist()

    def done(self) -> np.ndarray:
        """Which rows are valid (n,)."""
        return self.arrays["done"][:] if "done" in self.arrays else np.zeros(self.n, bool)

    def columns(self) -> tuple[np.ndarray, Columns]:
        """Which rows are valid (n,), and all columns; rows that are not valid are blank."""
        return self.done(), {name: array[:] for name, array in self.arrays.items()}


class Disk(Memory):
    """Columns in the Zarr group of a store."""

    def __init__(self, group: Any, record: Record):
        super().__init__(record["runs"])
        self.group, self.record, self.block = group, record, record["block"]
        self.names = [*FIXED_COLUMNS, *record["measures"]]  # second axis of the checksums
        self.digests = -(-self.n // self.block), len(self.names)  # shape of the checksums
        dtypes = {"done": bool} | dict.fromkeys(self.names)  # "done" first: once it is there, all others are
        arrays = {name: array_of(group, name, (self.n,), self.block, dtype) for name, dtype in dtypes.items()}
        self.arrays = {name: x for name, x in arrays.items() if x is not None}
        self.checksums = array_of(group, CHECKSUMS, self.digests, 1, np.uint64)

    def create(self, name: str, like: np.ndarray) -> Any:
        measure = self.record["measures"].get(name, {"dims": [], "attrs": {}})
        shape = (self.n, *like.shape[1:])
        dims = (RUN, *axes(name, like.ndim - 1, measure["dims"]))
        return create_array(self.group, name, shape, like, self.record["block"], dims, measure["attrs"])

    def write(self, first: int, columns: Columns) -> None:
        """Like `Memory.write`. Raises SweepError if writing fails; earlier blocks remain."""
        try:
            if self.checksums is None:
                dims = f"{CHECKSUMS}_block", f"{CHECKSUMS}_array"
                self.checksums = create_array(self.group, CHECKSUMS, self.digests, np.zeros(0, np.uint64), 1, dims, {})
            self.checksums[first // self.block] = [
                digest(name, first, columns[name]) if name in columns else 0 for name in self.names
            ]
            super().write(first, columns)
        except GeomctrlError:
            raise
        except (OSError, ValueError) as error:  # ValueError: a file where Zarr expects a folder
            raise SweepError(
                f"store: the block from run {first} on could not be written: {error}; the blocks before it are kept"
            ) from error

    def done(self) -> np.ndarray:
        return self._checked()[0]

    def missing(self, block: int) -> list[int]:
        done = self.done()
        there = self.arrays.get("done")
        marks, unreadable = (np.zeros_like(done), set()) if there is None else self._read("done", there)
        for first in unreadable:
            marks[first : first + self.block] = True
        if unreadable or (done & ~marks).any():  # damaged, or killed before it marked a complete block
            with contextlib.suppress(OSError):  # results do not depend on marks
                self.arrays["done"] = self.create("done", done)
                self.arrays["done"][:] = done | marks  # a damaged block is named until it is written again
        return (np.flatnonzero(~done[::block]) * block).tolist()

    def columns(self) -> tuple[np.ndarray, Columns]:
        done, columns = self._checked()
        for column in columns.values():
            column[~done] = blank(column)
        return done, columns

    def _checked(self) -> tuple[np.ndarray, Columns]:
        """Valid rows, and all columns; warns of damaged blocks.

        An array without any right block is dropped, because its description may be damaged; it is created again.
        """
        arrays = dict(self.arrays)  # read in the order opposite to that of `write`, as another process may be writing
        done = arrays.pop("done", None)
        marks, unreadable = (np.zeros(self.n, bool), set()) if done is None else self._read("done", done)
        there = None if self.checksums is None else self._read(CHECKSUMS, self.checksums, 1)[0]
        read = {name: self._read(name, array)[0] for name, array in arrays.items()}
        columns = {name: x.astype(object) if x.dtype.kind in "TU" else x for name, x in read.items()}
        valid, wrong, is_right = np.zeros(self.n, bool), [], dict.fromkeys(columns, False)
        for k, first in enumerate(range(0, self.n, self.block)):
            rows, bad = slice(first, first + self.block), []
            expected = np.zeros(len(self.names), np.uint64) if there is None else there[k]
            for name, number in zip(self.names, expected):
                column = columns.get(name)
                if number and column is not None and digest(name, first, column[rows]) == number:
                    is_right[name] = True
                elif number or name in FIXED_COLUMNS:
                    bad.append(name)
                elif column is not None:  # a measure without any result in the block is not written
                    column[rows] = blank(column)
            valid[rows] = not bad
            if bad:
                marked = marks[rows].any() or first in unreadable
                wrong.append((_shown_block(first, self.n, self.block, bad), marked, expected.any()))
        marks_lost = (valid & ~marks)[:: self.block].sum() > 1  # a process that is killed leaves one block unmarked
        damaged = [block for block, marked, written in wrong if marked or (written and marks_lost)]
        for name in [name for name, right in is_right.items() if not right]:
            del self.arrays[name], columns[name]
        if damaged:
            more = f"; and {len(damaged) - MAX_NAMED} more" if len(damaged) > MAX_NAMED else ""
            warnings.warn(
                f"store: {str(self.group.store_path.store.root)!r} is damaged: {'; '.join(damaged[:MAX_NAMED])}{more}."
                " These runs count as missing; the same sweep, started again, computes them again",
                RuntimeWarning,
                stacklevel=5,
            )
        return valid, columns

    def _read(self, name: str, array: Any, block: int = 0) -> tuple[np.ndarray, set[int]]:
        """The rows of an array, and the first rows of unreadable blocks, which are blank."""
        try:
            return array[:], set()
        except Exception:  # decoders of chunks may raise anything
            rows, unreadable = np.full(array.shape, blank(np.zeros(0, array.dtype)), array.dtype), set()
        for first in range(0, len(rows), block := block or self.block):
            try:
                rows[first : first + block] = array[first : first + block]
            except Exception:
                unreadable.add(first)
        return rows, unreadable


def digest(name: str, first: int, column: np.ndarray) -> int:
    """A digest of a block of a column: of its name, position, shape and content."""
    if column.dtype.kind in "OUT":
        content = repr([str(x) for x in column]).encode()
    else:  # Zarr does not preserve the sign of nan
        content = np.where(np.isnan(column), np.nan, column).tobytes() if column.dtype.kind == "f" else column.tobytes()
    head = repr((name, first, column.shape, column.dtype.kind in "OUT" or column.dtype.str)).encode()
    return int.from_bytes(hashlib.blake2b(head + content, digest_size=8).digest(), "little") | 1  # 0 means not written


def _shown_block(first: int, n: int, block: int, names: list[str]) -> str:
    return f"block {first // block} (runs {first} to {min(first + block, n) - 1}) of {', '.join(names)}"


def array_of(group: Any, name: str, shape: tuple, block: int, dtype: Any = None) -> Any:
    """An array of a group, or None if it is missing, or its description is damaged: its shape begins with `shape`."""
    try:
        array = group[name]
        fits = array.dtype.kind in "biufTUO" and array.shape[: len(shape)] == shape and dtype in (None, array.dtype)
        chunks = min(block, *shape[:1]), *array.shape[1:]
        fits = fits and array.chunks == chunks and array.nbytes < memory_size()
    except Exception:  # a truncated JSON file may raise anything
        return None
    return array if fits else None


def axes(name: str, count: int, names: list[str]) -> list[str]:
    """Names of the axes of an array-valued measure."""
    return names if len(names) == count else [f"{name}_{k}" for k in range(count)]


def create_array(group: Any, name: str, shape: tuple, like: np.ndarray, chunk: int, dims: tuple, attrs: dict) -> Any:
    return group.create_array(
        name,
        shape=shape,
        chunks=(min(chunk, shape[0]), *shape[1:]),
        dtype=str if like.dtype.kind in "OUT" else like.dtype,
        fill_value=blank(like),
        dimension_names=dims,
        attributes=attrs,
        overwrite=True,
    )


def blank(like: np.ndarray) -> Any:
    """Placeholder for a missing value."""
    return "" if like.dtype.kind in "OUT" else like.dtype.type(np.nan if like.dtype.kind == "f" else 0)
