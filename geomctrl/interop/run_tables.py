"""A run as an xarray.Dataset or a pandas.DataFrame, with the names of its joints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from geomctrl.arguments import optional_package
from geomctrl.control.run import Run

if TYPE_CHECKING:
    import pandas
    import xarray

OLDEST_VERSION = "2025.6"  # of xarray, as in pyproject.toml
Variable = tuple[tuple[str, ...], np.ndarray, dict[str, Any]]  # dimensions, values, attributes


def to_xarray(run: Run) -> xarray.Dataset:
    """See `Run.to_xarray`."""
    xarray = optional_package("Run.to_xarray", "xarray", "tables", OLDEST_VERSION)
    labels = _labels(run)
    variables = {name: _variable(name, x, labels, attributes) for name, (x, attributes) in _arrays(run).items()}
    used = {dimension for dims, _, _ in variables.values() for dimension in dims}
    coordinates = {name: values for name, values in labels.items() if name in used}
    time = ("t", run.t, {"units": "s"})
    about = {"reason": run.reason, "success": int(run.success), "steps": run.steps, "wall_time": run.wall_time}
    if run.plant is not None:
        about["robot"] = run.plant.robot.name
    if run.controller is not None:
        about["controller"] = type(run.controller).__name__
    return xarray.Dataset(variables, {"t": time, **coordinates}, about)


def to_dataframe(run: Run) -> pandas.DataFrame:
    """See `Run.to_dataframe`."""
    data = to_xarray(run)
    pandas = optional_package("Run.to_dataframe", "pandas", "tables", "2.1")
    columns = {}
    for name, x in data.data_vars.items():
        labels = [data[d].values.astype(str) if d in data.coords else range(n) for d, n in list(x.sizes.items())[1:]]
        for place in np.ndindex(x.shape[1:]):
            parts = [str(name), *(str(axis[k]) for axis, k in zip(labels, place))]
            columns[".".join(parts)] = x.values[(slice(None), *place)]
    frame = pandas.DataFrame(columns, index=pandas.Index(run.t, name="t"))
    frame.attrs = dict(data.attrs)
    return frame


def _labels(run: Run) -> dict[str, list[str]]:
    """Names along the axes of states and torques; none of a loaded run, whose robot is unknown."""
    if run.plant is None:
        return {}
    names = list(run.plant.robot.dof_names)
    labels = {"dof": names}
    if run.q.shape[1] == len(names):
        labels["coordinate"] = names
    if run.tau.shape[1] == len(names):
        labels["input"] = names
    return labels


def _arrays(run: Run) -> dict[str, tuple[np.ndarray, dict[str, Any]]]:
    """All arrays of a run by the names of variables, and their attributes."""
    optional = {"z": run.z, "x": run.x}
    arrays = {"q": run.q, "v": run.v, "tau": run.tau, "applied": run.applied}
    arrays |= {name: x for name, x in optional.items() if x is not None}
    if run.desired is not None:
        arrays |= {f"{name}_desired": x for name, x in run.desired._asdict().items()}
    arrays |= {f"signal_{name}": x for name, x in run.signals.items()}
    arrays |= {f"measured_{name}": x for name, x in run.measured.items()}
    described: dict[str, tuple[np.ndarray, dict[str, Any]]] = {name: (np.asarray(x), {}) for name, x in arrays.items()}
    for name, monitor in run.monitors.items():
        attributes = {"description": monitor.description, "limit": monitor.limit, "verdict": monitor.verdict}
        described[f"monitor_{name}"] = monitor.values, attributes
    return described


AXES = {"q": "coordinate", "v": "dof", "tau": "input", "applied": "dof"}
AXES |= {"q_desired": "coordinate", "v_desired": "dof", "a_desired": "dof"}
AXES |= {"measured_q": "coordinate", "measured_v": "dof", "measured_torque": "dof"}


def _variable(name: str, x: np.ndarray, labels: dict[str, list[str]], attributes: dict[str, Any]) -> Variable:
    """Dimensions, values and attributes of a variable; an axis that is none of `AXES` is named after the variable."""
    dimensions = [f"{name}_{k}" for k in range(x.ndim - 1)]
    axis = AXES.get(name)
    if axis is not None and (axis not in labels or len(labels[axis]) == x.shape[1]):
        dimensions[0] = axis
    return ("t", *dimensions), x, attributes
