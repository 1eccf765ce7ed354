"""What a log file holds, whatever its format; how readers refuse one, and choose one topic of several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.arguments import checked
from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import DataError

MAX_SHOWN = 40  # names in a message


@dataclass(frozen=True, eq=False)
class Recording:
    """Numbers by name, in the file's order: (N,) a column, (N, k) an array.

    label: what messages call the file; kind: what they call one name's numbers, "array" or "column"; notes: what the
    reader did, for `Dataset.history`; transposed: arrays (k, N) are usual, too, and told by the number of time stamps;
    frame: in which wrenches are, where the file says so.
    """

    label: str
    arrays: Mapping[str, Any]
    kind: str = "column"
    notes: tuple[str, ...] = ()
    transposed: bool = False
    frame: str = ""

    def there_are(self) -> str:
        """The names as text."""
        names = list(self.arrays) if self.kind == "column" else sorted(self.arrays)
        more = f" and {len(names) - MAX_SHOWN} more" if len(names) > MAX_SHOWN else ""
        return f"there are {', '.join(names[:MAX_SHOWN])}{more}" if names else "there are none"


@contextmanager
def library(path: Path, file_kind: str) -> Iterator[None]:
    """Another library at work on a file: its errors, of whatever class, become a DataError that names the file; a
    library that is not there, an ArgumentError that names the extra.
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


def lined_up(label: str, arrays: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    """The same. Raises DataError where there are no samples."""
    if not any(len(x) for x in arrays.values()):
        raise DataError(f"{label}: no samples")
    return arrays


def real(label: str, name: str, value: Any) -> np.ndarray:
    """A copy as floats. Raises DataError for what is no array of real numbers."""
    try:
        return np.array(checked(name, value, (), finite=False))
    except ArgumentError:
        raise DataError(f"{label}: {name}: expected real numbers, got {value!r:.60}") from None


def booleans(name: str, value: Any) -> np.ndarray:
    """As an array of truth values. Raises ArgumentError."""
    try:
        x = np.asarray(value)
    except ValueError:
        x = np.empty(0)
    if x.dtype != bool or np.ma.is_masked(value):
        raise ArgumentError(f"{name}: expected booleans, got {value!r:.60}")
    return x


USUAL_TOPIC = "joint_states"


def chosen(label: str, topics: Mapping[str, str], wanted: str | None) -> str:
    """The one of joint states that is wanted; without a wish the only one, or the one called /joint_states.

    topics: by name, what is said of each. Raises DataError.
    """
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
