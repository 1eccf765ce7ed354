"""A sweep's answer as an xarray.Dataset."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from .job import Columns
from .optional import needed_for
from .space import Space
from .store import Record, axes

ENDS = {
    "success": "reached its end, and all was measured",
    "t_reached": "the last time reached",
    "reason": "why it ended",
    "run": "number of the run, for replay",
}


def table(record: Record, space: Space, columns: Columns) -> Any:
    """The xarray.Dataset over the space's dimensions: parameters as coordinates, measures, how each run ended.

    Runs that are not there are nan, with "" as their reason; attrs["sweep"] is the record as JSON.
    """
    with needed_for("sweep"):
        import xarray
    missing = {"success": np.zeros(len(space), bool), "t_reached": np.full(len(space), np.nan)}
    missing |= {"reason": np.full(len(space), "", object), "run": np.arange(len(space))}
    measures = {name: np.full(len(space), np.nan) for name in record["measures"]}
    sizes, variables = dict(space.sizes), {}
    for name, blank in (measures | missing).items():
        column = columns.get(name, blank)
        described = record["measures"].get(name, {"dims": [], "attrs": {"long_name": ENDS.get(name)}})
        dims = axes(name, column.ndim - 1, described["dims"])
        if any(sizes.setdefault(dim, n) != n for dim, n in zip(dims, column.shape[1:])):
            dims = axes(name, column.ndim - 1, [])
        attrs = described["attrs"] | ({"units": "s"} if name == "t_reached" else {})
        variables[name] = (*space.sizes, *dims), column.reshape(space.shape + column.shape[1:]), attrs
    coordinates = {name: tuple(parameter) for name, parameter in space.parameters.items()}
    return xarray.Dataset(variables, coordinates, {"sweep": json.dumps(record)})
