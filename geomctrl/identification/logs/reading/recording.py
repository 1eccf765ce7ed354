"""`Recording`: the numbers of a log file of any format, with helpers to report unreadable files and choose a topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import checked, is_masked, shown
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import DataError

MAX_SHOWN = 40  # names in a message


@dataclass(frozen=True, eq=False)
class Recording:
    """Numbers by name, in the file's order: (N,) a column, (N, k) an array.

    label: name of the file in messages; kind: "array" or "column", in messages; notes: the reader's notes for
    `Dataset.history`; transposed: arrays (k, N) are also common, and recognised by the number of time stamps; frame:
    the frame of wrenches, if the file names it.
    """

    label: str
    arrays: Mapping[str, Any]
    kind: str = "column"
    notes: tuple[str, ...] = ()
    transposed: bool = False
    frame: str = ""

    def available_names(self) -> str:
        """The names as text."""
        names = list(self.arrays) if self.kind == "column" else sorted(self.arrays)
        more = f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else ""
        return f"there are {', '.join(names[:MAX_SHOWN])}{more}" if names else "there are none"


@contextmanager
def library(path: Path, file_kind: str) -> Iterator[None]:
    """Context for calls of a library that reads a file: its errors, of any class, become a DataError that names the
    file; a missing library becomes an ArgumentError that names the extra.
    """
    try:
        yield
    except (DataError, ArgumentError, KeyboardInterrupt):
        raise
    except ImportError as error:
        missing = (error.name or "a package").partition(".")[0]
        raise ArgumentError(
            f"log {str(path)!r}: {file_kind} needs the optional package {missing}: pip install 'geomctrl[logs]'"
        ) from error
    except Exception as error:  # sqlite's, zstd's, HDF5's, struct's: whatever damage makes them raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"log {str(path)!r}: not a readable {file_kind}, or a damaged one: {reason:.200}") from None


def require_samples(label: str, arrays: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """Return the arrays. Raises DataError if there are no samples."""
    if not any(len(x) for x in arrays.values()):
        raise DataError(f"{label}: expected samples, got none")
    return arrays


def real(label: str, name: str, value: Any) -> np.ndarray:
    """Return a copy as floats. Raises DataError unless the value is an array of real numbers."""
    try:
        return np.array(checked(name, value, (), finite=False))
    except ArgumentError:
        raise DataError(f"{label}: {name}: expected real numbers, got {shown(value)}") from None


def booleans(name: str, value: Any) -> np.ndarray:
    """Return an array of bools. Raises ArgumentError."""
    try:
        x = np.asarray(value)
    except Exception:  # rows of different lengths, or an object whose own conversion fails
        x = np.empty(0)
    if x.dtype != bool or is_masked(value):
        raise ArgumentError(f"{name}: expected booleans, got {shown(value)}")
    return x


USUAL_TOPIC = "joint_states"


def chosen(label: str, topics: Mapping[str, str], wanted: str | None) -> str:
    """Choose a topic of joint states: `wanted`, otherwise the only one, or /joint_states."""
    listing = ", ".join(f"{name or 'without a name'} ({remark})" if remark else name for name, remark in topics.items())
    if wanted is not None:
        matching = [name for name in topics if name.strip("/") == wanted.strip("/")]
        if not matching:
            raise DataError(f"{label}: topic: no joint states on {wanted!r}; there are {listing}")
        return matching[0]
    if len(topics) == 1:
        return next(iter(topics))
    usual = [name for name in topics if name.strip("/") == USUAL_TOPIC]
    if len(usual) == 1:
        return usual[0]
    raise DataError(
        f"{label}: topic: expected one of joint states, got {len(topics)}: {listing}; choose by topic=..."
        f" (identify: --topic {next(iter(topics))})"
    )
