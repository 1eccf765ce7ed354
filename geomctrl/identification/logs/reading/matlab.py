"""MATLAB's .mat files: to v7 by scipy, v7.3, which is HDF5, by h5py; other HDF5 files as well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.identification.errors import DataError

from .recording import Recording, library

V73 = b"MATLAB 7.3"


def read(path: Path, topic: str | None = None) -> Recording:
    """Numeric variables; a struct's fields by "struct.field". Raises DataError, ArgumentError without h5py."""
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
