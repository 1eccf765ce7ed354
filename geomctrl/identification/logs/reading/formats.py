"""Formats of logs: a row each, told by a file's first bytes, else by its suffix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from geomctrl.identification.errors import DataError

from . import archive, matlab, parquet, ros, text
from .recording import Recording


@dataclass(frozen=True)
class Format:
    """read(path, topic): the recording; topic: of the messages to read, where a file holds messages; wrenches(path,
    topic): that, and a recording of each sensor's wrenches, where these are messages of their own."""

    name: str
    suffixes: tuple[str, ...]
    signatures: tuple[tuple[int, bytes], ...]  # (place, bytes)
    read: Callable[[Path, str | None], Recording]
    wrenches: Callable[[Path, str | None], list[Recording]] | None = None

    def signed(self, head: bytes) -> bool:
        return any(head[offset : offset + len(sign)] == sign for offset, sign in self.signatures)


HEAD = 520  # bytes, which hold every signature
HDF5 = b"\x89HDF\r\n\x1a\n"
FORMATS = {
    f.name: f
    for f in (
        Format("npz", (".npz", ".npy"), ((0, b"PK\x03\x04"), (0, b"PK\x05\x06"), (0, b"\x93NUMPY")), archive.read),
        Format("csv", (".csv", ".txt", ".tsv"), (), text.read),
        Format("matlab", (".mat",), ((0, b"MATLAB 5.0"), (0, b"MATLAB 7.3")), matlab.read),
        Format("hdf5", (".h5", ".hdf5"), ((0, HDF5), (512, HDF5)), matlab.read_hdf5),
        Format("parquet", (".parquet", ".pq"), ((0, b"PAR1"),), parquet.read),
        Format("lerobot", (), (), parquet.read_lerobot),
        Format(
            "ros2", (".db3", ".mcap"), ((0, b"SQLite format 3\0"), (0, b"\x89MCAP0\r\n")), ros.read, ros.read_wrenches
        ),
        Format("ros1", (".bag",), ((0, b"#ROSBAG V2.0"),), ros.read_ros1, ros.read_ros1_wrenches),
    )
}
COMPRESSED = {b"\x28\xb5\x2f\xfd": "zstd", b"\x1f\x8b": "gzip", b"\x04\x22\x4d\x18": "lz4", b"BZh": "bzip2"}


def recorded(path: Path, topic: str | None = None, form: str | None = None) -> Recording:
    """What the file, or the folder of a ROS 2 bag or a LeRobot dataset, holds; form: a key of FORMATS [default: by
    looking at it].

    Raises DataError for what is not there, empty, damaged or of no known format.
    """
    return _format(path, form).read(path, topic)


def with_wrenches(path: Path, topic: str | None = None) -> list[Recording]:
    """[What the file holds, and each sensor's wrenches where these are messages of their own]; raises as `recorded`."""
    form = _format(path)
    return [form.read(path, topic)] if form.wrenches is None else form.wrenches(path, topic)


def _format(path: Path, form: str | None = None) -> Format:
    if path.is_dir():
        if (path / parquet.INFO).is_file():
            return FORMATS["lerobot"]
        if not (path / "metadata.yaml").is_file():
            raise DataError(
                f"path: log {str(path)!r}: a folder without metadata.yaml or {parquet.INFO}: expected a ROS 2 bag's, a"
                " LeRobot dataset's, or a file"
            )
        return FORMATS["ros2"]
    if not path.is_file():
        raise DataError(f"path: log {str(path)!r}: no such file")
    with path.open("rb") as file:
        head = file.read(HEAD)
    if not head:
        raise DataError(f"log {str(path)!r}: an empty file (0 bytes)")
    return FORMATS[form] if form is not None else told(path, head)


def told(path: Path, head: bytes) -> Format:
    """By the first bytes, else by the suffix, else a table of text."""
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
