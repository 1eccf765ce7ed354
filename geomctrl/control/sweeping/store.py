"""Stores of sweeps on disk: which sweep a store belongs to, its parameters, and the lock against other processes.

A store is a Zarr group that xarray can open, with the columns of `columns.py`. The attribute "sweep" identifies the
sweep.

A store may come from a stranger. Its links and special files are not opened. Of its metadata only those in place are
read, since consolidated ones could name a decoder that executes code. Whatever else is wrong is an ArgumentError.
"""

from __future__ import annotations

import contextlib
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

from .columns import CHECKSUMS, RUN, Disk, Record, array_of, create_array, digest
from .job import Columns, needed_for
from .space import Parameter, Space

try:
    import fcntl
except ImportError:  # Windows: two sweeps on one store are not detected
    fcntl = None

FORMAT = 3
RECORD = ""  # name of the record among them
DIGEST = "#"  # prefix of digests in the identity of a record; all other entries are text

_held: set[int] = set()  # file descriptors that lock stores
if hasattr(os, "register_at_fork"):  # a forked worker that outlives a killed sweep must not keep the lock
    os.register_at_fork(after_in_child=lambda: [os.close(descriptor) for descriptor in _held])


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
            is_whole = _is_whole(group, there)
            if is_whole and (different := differences(there["identity"], record["identity"])):
                raise ArgumentError(f"store: {os.fspath(path)!r} has another sweep: {'; '.join(different)}")
            same_but_attributes = json.dumps(there | {"parameters": record["parameters"]}) == json.dumps(record)
            if not (is_whole and same_but_attributes) and _digests(group).get(RECORD) != _record_digest(record):
                raise ArgumentError(f"store: {os.fspath(path)!r} is damaged: its description; give another folder")
        _repair(path, group, there, record, space)
        yield Disk(group, record)


def _repair(path: Path, group: Any, there: Record, record: Record, space: Space) -> None:
    """Write a damaged record and damaged parameters again, with a warning, and new attributes of parameters."""
    attributes, columns = _attributes(record, space), space.rows(0, len(space))
    parameters = [name for name in columns if _parameter(group, name, len(space)) is None]
    damaged = ([] if _is_whole(group, there) else ["its description"]) + parameters
    renewed = json.dumps(there) != json.dumps(record)
    if damaged:
        warnings.warn(
            f"store: {os.fspath(path)!r} is damaged: {', '.join(damaged)}, written again", RuntimeWarning, stacklevel=5
        )
    elif not renewed:
        return
    try:
        group.attrs.update(attributes)
        for name in columns if renewed else parameters:
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
        values = array_of(group, name, (n,), n)[:]
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
        import zarr.storage
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
    create_array(group, name, column.shape, column, max(len(space), 1), (RUN,), attrs)[:] = column


def _read(path: Path, mode: Any) -> tuple[Any, Record]:
    with needed_for("store"):
        import zarr.storage
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
