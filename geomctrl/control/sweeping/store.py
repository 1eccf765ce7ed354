"""Storage of a sweep: one row per run, in memory or in a Zarr store on disk.

A store is a Zarr group that xarray can open. Parameters, measures and the ends of runs are arrays along the dimension
"run", with one block per chunk. `checksum` contains a digest of each block of each column; blocks with right digests
are valid. `done` is written last and marks complete blocks. A marked block with wrong digests has changed on disk, and
a warning lists it; without the mark, its process was killed. The attribute "sweep" identifies the sweep.

A store may come from a stranger. Its links and special files are not opened. Of its metadata only those in place are
read, since consolidated ones could name a decoder that executes code. Whatever else is wrong is an ArgumentError.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import uuid
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.errors import ArgumentError, GeomctrlError, SweepError
from geomctrl.files import memory_size

from .job import Columns, needed_for
from .space import Parameter, Space

try:
    import fcntl
except ImportError:  # Windows: two sweeps on one store are not detected
    fcntl = None

FIXED_COLUMNS = "success", "t_reached", "reason"  # columns of every block
RUN = "run"  # dimension of the columns
FORMAT = 3
CHECKSUMS = "checksum"  # array of digests (blocks, columns), and attribute with those of parameters and the record
RECORD = ""  # name of the record among them
RESERVED = *FIXED_COLUMNS, RUN, "done", CHECKSUMS  # neither parameters nor measures have these names
MAX_NAMED = 5  # damaged blocks listed in a warning
DIGEST = "#"  # prefix of digests in the identity of a record; all other entries are text
Record = dict[str, Any]  # JSON description of a sweep: see `sweep.record_of`

_held: set[int] = set()  # file descriptors that lock stores
if hasattr(os, "register_at_fork"):  # a forked worker that outlives a killed sweep must not keep the lock
    os.register_at_fork(after_in_child=lambda: [os.close(descriptor) for descriptor in _held])


class Memory:
    """Columns in memory with n rows."""

    def __init__(self, n: int):
        self.n, self.arrays = n, {}

    def create(self, name: str, like: np.ndarray) -> Any:
        """Create the array of a column; `like` is a part of it."""
        return np.full((self.n, *like.shape[1:]), _blank(like), like.dtype)

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
        dtypes = dict.fromkeys(self.names) | {"done": bool}
        arrays = {name: _array_of(group, name, (self.n,), self.block, dtype) for name, dtype in dtypes.items()}
        self.arrays = {name: x for name, x in arrays.items() if x is not None}
        self.checksums = _array_of(group, CHECKSUMS, self.digests, 1, np.uint64)

    def create(self, name: str, like: np.ndarray) -> Any:
        measure = self.record["measures"].get(name, {"dims": [], "attrs": {}})
        shape = (self.n, *like.shape[1:])
        dims = (RUN, *axes(name, like.ndim - 1, measure["dims"]))
        return _array(self.group, name, shape, like, self.record["block"], dims, measure["attrs"])

    def write(self, first: int, columns: Columns) -> None:
        """Like `Memory.write`. Raises SweepError if writing fails; earlier blocks remain."""
        try:
            if self.checksums is None:
                dims = f"{CHECKSUMS}_block", f"{CHECKSUMS}_array"
                self.checksums = _array(self.group, CHECKSUMS, self.digests, np.zeros(0, np.uint64), 1, dims, {})
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
        marks = self._read("done", self.arrays["done"])[0] if "done" in self.arrays else np.zeros_like(done)
        if (marks != done).any():  # damaged, or the process was killed before it marked a complete block
            with contextlib.suppress(OSError):  # results do not depend on marks
                self.arrays["done"] = self.create("done", done)
                self.arrays["done"][:] = done
        return (np.flatnonzero(~done[::block]) * block).tolist()

    def columns(self) -> tuple[np.ndarray, Columns]:
        done, columns = self._checked()
        for column in columns.values():
            column[~done] = _blank(column)
        return done, columns

    def _checked(self) -> tuple[np.ndarray, Columns]:
        """Valid rows, and all columns; warns of damaged blocks.

        An array without any right block is dropped, because its description may be damaged; it is created again.
        """
        read = {name: self._read(name, array) for name, array in self.arrays.items()}
        marks, unreadable = read.pop("done", (np.zeros(self.n, bool), set()))
        columns = {name: x.astype(object) if x.dtype.kind in "TU" else x for name, (x, _) in read.items()}
        there = None if self.checksums is None else self._read(CHECKSUMS, self.checksums, 1)[0]
        valid, damaged, is_right = np.zeros(self.n, bool), [], dict.fromkeys(columns, False)
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
                    column[rows] = _blank(column)
            valid[rows] = not bad
            if bad and (marks[rows].any() or first in unreadable):
                damaged.append(_shown_block(first, self.n, self.block, bad))
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
            rows, unreadable = np.full(array.shape, _blank(np.zeros(0, array.dtype)), array.dtype), set()
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


def _array_of(group: Any, name: str, shape: tuple, block: int, dtype: Any = None) -> Any:
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


# --- stores on disk ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def opened(path: str | os.PathLike, record: Record, space: Space) -> Iterator[Disk]:
    """Open or create the store of the sweep that `record` describes, and lock it.

    Raises ArgumentError if the folder contains something else or another sweep (the message says what differs), or if
    another process uses it.
    """
    path = Path(path)
    if not (path.exists() or path.is_symlink()):
        _create(path, record, space)
    with _alone(path):
        group, there = _read(path, "r+")
        if json.dumps(there) != json.dumps(record):
            if _is_whole(group, there) and (different := differences(there["identity"], record["identity"])):
                raise ArgumentError(f"store: {os.fspath(path)!r} has another sweep: {'; '.join(different)}")
            if _digests(group).get(RECORD) != _record_digest(record):
                raise ArgumentError(f"store: {os.fspath(path)!r} is damaged: its description; give another folder")
        _repair(path, group, record, space)
        yield Disk(group, record)


def _repair(path: Path, group: Any, record: Record, space: Space) -> None:
    """Write a damaged record and damaged parameters again, with a warning."""
    attributes, columns = _attributes(record, space), space.rows(0, len(space))
    parameters = [name for name in columns if _parameter(group, name, len(space)) is None]
    damaged = ([] if _is_whole(group, record) else ["its description"]) + parameters
    if not damaged:
        return
    warnings.warn(
        f"store: {os.fspath(path)!r} is damaged: {', '.join(damaged)}, written again", RuntimeWarning, stacklevel=5
    )
    try:
        group.attrs.update(attributes)
        for name in parameters:
            _write_parameter(group, space, name, columns[name])
    except (OSError, ValueError) as error:
        raise SweepError(f"store: {os.fspath(path)!r} could not be written: {error}") from error


def read(path: str | os.PathLike) -> tuple[Record, Space, Columns]:
    """The contents of a store, complete or not. Raises ArgumentError if there is no store, and anything for a record
    that was forged.
    """
    group, record = _read(Path(path), "r")
    damaged, again = f"store: {os.fspath(path)!r} is damaged", "the same sweep, started again, writes it again"
    if not _is_whole(group, record):
        raise ArgumentError(f"{damaged}: its description; {again}")
    parameters = {}
    for name, (dims, attrs) in record["parameters"].items():
        values = _parameter(group, name, record["runs"])
        if values is None:
            raise ArgumentError(f"{damaged}: the parameter {name!r}; {again}")
        values = np.array(values.tolist()) if values.dtype.kind in "TO" else values
        own = tuple(slice(None) if dim in dims else 0 for dim in record["sizes"])
        order = [dim for dim in record["sizes"] if dim in dims]
        values = values.reshape(*record["sizes"].values())[own].transpose([order.index(dim) for dim in dims])
        parameters[name] = Parameter(tuple(dims), values, dict(attrs))
    return record, Space(record["sizes"], parameters), Disk(group, record).columns()[1]


def _parameter(group: Any, name: str, n: int) -> np.ndarray | None:
    """The n values of a parameter, or None if they have changed on disk."""
    with contextlib.suppress(Exception):  # decoders of chunks may raise anything
        values = _array_of(group, name, (n,), n)[:]
        return values if _digests(group)[name] == digest(name, 0, values) else None
    return None


def _attributes(record: Record, space: Space) -> dict[str, Any]:
    """The attributes of a store: the record, and digests of it and of the parameters."""
    checksums = {name: digest(name, 0, column) for name, column in space.rows(0, len(space)).items()}
    return {"sweep": record, CHECKSUMS: {RECORD: _record_digest(record), **checksums}}


def _record_digest(record: Record) -> int:
    return digest(RECORD, 0, np.array([json.dumps(record)]))


def _digests(group: Any) -> dict[str, int]:
    digests = group.attrs.get(CHECKSUMS)
    return digests if isinstance(digests, dict) else {}


def _is_whole(group: Any, record: Record) -> bool:
    """Whether the record in the store is this one, and has its digest."""
    text, identity = json.dumps(record), record.get("identity")
    return (
        json.dumps(group.attrs["sweep"]) == text
        and _digests(group).get(RECORD) == _record_digest(record)
        and isinstance(identity, dict)
        and all(isinstance(x, str) for x in identity.values())
    )


def differences(there: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """Messages about differences between a stored sweep and this one."""
    messages = []
    for name in {**there, **here}:
        old, new = there.get(name, "nothing"), here.get(name, "nothing")
        if old != new and old.startswith(DIGEST) and new.startswith(DIGEST):
            messages.append(f"{name} differs")
        elif old != new:
            messages.append(f"{name} is {_shown(old)} there, {_shown(new)} here")
    return messages


def _shown(value: str) -> str:
    return "something" if value.startswith(DIGEST) else value


def _create(path: Path, record: Record, space: Space) -> None:
    """Create a store without runs; a failure leaves nothing."""
    with needed_for("store"):
        import zarr
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = zarr.storage.LocalStore(temporary)  # a path that ends in ".zip" would be another kind of store
        group = zarr.create_group(folder, attributes=_attributes(record, space))
        for name, column in space.rows(0, len(space)).items():
            _write_parameter(group, space, name, column)
        with contextlib.suppress(FileExistsError, NotADirectoryError):  # another process was faster: open its store
            if not path.exists():
                os.rename(temporary, path)
    except OSError as error:
        raise SweepError(f"store: {os.fspath(path)!r} could not be made: {error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_parameter(group: Any, space: Space, name: str, column: np.ndarray) -> None:
    attrs = space.parameters[name].attrs
    _array(group, name, column.shape, column, max(len(space), 1), (RUN,), attrs)[:] = column


def _array(group: Any, name: str, shape: tuple, like: np.ndarray, chunk: int, dims: tuple, attrs: dict) -> Any:
    return group.create_array(
        name,
        shape=shape,
        chunks=(min(chunk, shape[0]), *shape[1:]),
        dtype=str if like.dtype.kind in "OUT" else like.dtype,
        fill_value=_blank(like),
        dimension_names=dims,
        attributes=attrs,
        overwrite=True,
    )


def _blank(like: np.ndarray) -> Any:
    """Placeholder for a missing value."""
    return "" if like.dtype.kind in "OUT" else like.dtype.type(np.nan if like.dtype.kind == "f" else 0)


def _read(path: Path, mode: Any) -> tuple[Any, Record]:
    with needed_for("store"):
        import zarr
    where = f"store: {os.fspath(path)!r}"
    try:
        if special := _special_file(path):
            raise ArgumentError(f"{where} has {special}, a link, pipe or device: remove it")
        folder = zarr.storage.LocalStore(path, read_only=mode == "r")
        group = zarr.open_group(folder, mode=mode, use_consolidated=False)
        record: Any = group.attrs.get("sweep")
    except GeomctrlError:
        raise
    except Exception as error:  # Zarr's reader of JSON may raise anything
        message = f"{type(error).__name__}: {error!s:.200}"
        raise ArgumentError(f"store: expected a sweep's store, got {os.fspath(path)!r}: {message}") from error
    if group.metadata.zarr_format != 3:
        raise ArgumentError(
            f"{where} is in Zarr's format {group.metadata.zarr_format}, sweeps are kept in format 3:"
            " give another folder"
        )
    if not isinstance(record, dict) or "format" not in record:
        raise ArgumentError(f"store: expected a sweep's store, got {os.fspath(path)!r}, which is something else")
    if record["format"] != FORMAT:
        raise ArgumentError(
            f"{where} is in version {record['format']!r} of the sweeps' format, expected {FORMAT}: give another folder"
        )
    return group, record


def _special_file(folder: str | os.PathLike) -> str:
    """A link, pipe or device in a folder, whose reading may never end, or an empty string. Raises OSError."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if special := _special_file(entry.path):
                    return special
            elif not entry.is_file(follow_symlinks=False):
                return repr(entry.path)
    return ""


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Lock the folder against other sweeps; the lock ends with the process in any case."""
    if fcntl is None:
        yield
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)  # opening a pipe would wait for a writer
    except OSError as error:
        reason = error.strerror or error
        raise ArgumentError(f"store: expected a sweep's store, got {os.fspath(path)!r}: {reason}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise GeomctrlError(f"store: {os.fspath(path)!r} is in use by another sweep") from None
        _held.add(descriptor)
        yield
    finally:
        _held.discard(descriptor)
        os.close(descriptor)
