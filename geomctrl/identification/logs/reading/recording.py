"""What a log file holds, whatever its format, and how its readers refuse one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.errors import ArgumentError
from geomctrl.identification.errors import DataError

SHOWN = 40  # names in a message


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
        """The names, in words."""
        names = list(self.arrays) if self.kind == "column" else sorted(self.arrays)
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        return f"there are {', '.join(names[:SHOWN])}{more}" if names else "there are none"


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
