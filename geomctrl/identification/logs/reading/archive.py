"""npz: numpy's archives."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from geomctrl.identification.errors import DataError

from .recording import Recording


def read(path: Path, topic: str | None = None) -> Recording:
    """Every array of an archive. Raises DataError."""
    label = f"log {str(path)!r}"
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                raise DataError(f"{label}: one array without a name: expected an npz archive, or CSV")
            with archive:
                return Recording(label, {key: archive[key] for key in archive.files}, "array")
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{label}: not a readable npz archive: {error}; tables end in .csv, .txt or .tsv") from None
