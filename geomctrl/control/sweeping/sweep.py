"""`sweep` simulates a closed loop at every point of a parameter space; `replay` repeats one of its runs."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from geomctrl.arguments import function, has_attributes, instance, is_a, listed, mapped, path_of, shown
from geomctrl.control.closed_loop import hold_count
from geomctrl.control.many import run_of
from geomctrl.control.monitors import Monitor
from geomctrl.control.monitors.chosen import monitor_list
from geomctrl.control.options import SimulationOptions
from geomctrl.control.progress import counted
from geomctrl.control.run import Run
from geomctrl.errors import ArgumentError, GeomctrlError, SweepError
from geomctrl.integrators.step_control import Adaptive
from geomctrl.motion.trajectory import step_count
from geomctrl.other_names import OF_SWEEP, named_arguments

from .columns import RESERVED, Memory, Record, axes
from .executors import SweepExecution, computed
from .fingerprint import fingerprint, versions
from .job import Columns, Job, case_of, needed_for
from .space import Point, Space, checked_space
from .store import DIGEST, FORMAT, differences, opened, read

Measures = Mapping[str, Callable[[Run], Any]] | Iterable[Callable[[Run], Any]]
MIN_BLOCK, MAX_BLOCK, TARGET_BLOCKS = 8, 256, 64  # runs per block; blocks of a sweep of medium size
GPU_BLOCK = 32_768  # runs per block on a GPU: as many as 128 multiprocessors execute at a time
ENDS = {
    "success": "reached the end, and all measures were computed",
    "t_reached": "last time reached",
    "reason": "why it ended",
    "run": "number of the run, for replay",
}
RECORDED_OPTIONS = "every", "strict", "compiled", "device", "precision"  # besides the method


@named_arguments(OF_SWEEP)
def sweep(
    make: Callable[[Point], Any],
    space: Any,
    measures: Measures,
    t_end: float,
    dt: float,
    control_dt: float | None = None,
    monitors: str | Iterable[Monitor] | None = "default",
    options: SimulationOptions = SimulationOptions(),
    store: str | os.PathLike | None = None,
    execution: SweepExecution = SweepExecution(),
) -> Any:
    """Simulate a closed loop at every point of a parameter space and compute measures of each run.

    Parameters
    ----------
    make : callable
        make(point) returns (plant, controller, q0, v0). `point` is a mapping of parameters by name; `point.number` is
        the number of the run and `point.rng` its random generator. If `make` raises, if `simulate` refuses the case, or
        if the run fails, that run is marked as failed and the others continue.
    space : dict or xarray.Dataset
        Values by parameter name. A list of values is a dimension of its own. Parameters that share a dimension use the
        notation of xarray: {"kp": ("sample", values, {"units": "N m / rad"})}. All combinations of the dimensions are
        simulated.
    measures : dict or iterable of callables
        Functions of a `Run`, by name or with an attribute `name`: those of `gc.measures`, or your own, which return a
        number or an array of constant shape. Measures of `gc.measures` see every sample while the loop runs; other
        functions see the samples stored according to `options.every`.
    t_end : float
        Duration of each run [s].
    dt : float
        Time between samples [s].
    control_dt : float or None
        Period of a zero-order hold [s], a multiple of dt; None, the default, evaluates the law in continuous time.
    monitors : "default", iterable of Monitor or None
        The properties to check at every sample, as for `simulate`.
    options : SimulationOptions
        Integration method (by name), storage of samples, compilation and device.
    store : path or None
        Folder of a Zarr store for the results; None, the default, keeps them in memory only. A sweep started again with
        the same arguments computes missing and damaged blocks only and reports how many runs exist; another sweep is
        refused. Read it with xarray.open_zarr(store, consolidated=False).
    execution : SweepExecution
        Executor, block size, seed and progress bar.

    Returns
    -------
    xarray.Dataset
        Over the dimensions of the space: the measures with their units, `success`, `t_reached` [s], `reason`, and
        `run`, the number that `replay` takes.

    Raises
    ------
    ArgumentError
        If an argument is invalid, or if the store contains another sweep; the message says what differs.
    SweepError
        If a block fails twice, workers stop or the disk is full. Finished blocks remain, also after Ctrl-C.

    Notes
    -----
    Results do not depend on the executor, to the last bit, on machines with the same processor and versions. Runs whose
    objects differ only in numbers share one compilation and run side by side. Loops that can not be traced run one by
    one in Python, and a RuntimeWarning gives the reason.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> def make(point):
    ...     law = gc.controllers.PDGravity(robot, [0.5, 0.2], kp=point["kp"])
    ...     return robot.with_payload(point["payload"]), law, 0.1 * point.rng.standard_normal(2), np.zeros(2)
    >>> space = {"payload": [0.0, 1.0], "kp": [50.0, 100.0]}
    >>> table = gc.sweep(make, space, [gc.measures.PeakTorque()], t_end=0.2, dt=1e-3)
    >>> table.peak_torque.shape
    (2, 2)
    """
    space, measures = checked_space(space), checked_measures(measures)
    function("make", make, "of a point", 1)
    for name in (*space.sizes, *space.parameters):
        if name in measures or name in RESERVED:
            raise ArgumentError(f"space: {name!r} occurs twice: in the space and in the results")
    instance("execution", execution, SweepExecution, "gc.SweepExecution")
    store = None if store is None else path_of("store", store)
    arguments = checked_arguments(t_end, dt, control_dt, monitors, options)
    job = Job(make, measures, arguments, execution.seed, versions())
    block = _block_size(execution.block, len(space), options.gpu is not None)
    record = record_of(job, space, block)
    with contextlib.ExitStack() as stack:
        kept = Memory(len(space)) if store is None else stack.enter_context(opened(store, record, space))
        missing, n = kept.missing(block), len(space)
        there = n - sum(min(block, n - first) for first in missing)
        if there:
            print(f"geomctrl: resumed: {there} of {n} runs were there", file=sys.stderr, flush=True)
        report = stack.enter_context(counted(execution.progress, n, there))
        blocks = ((first, space.rows(first, min(first + block, n))) for first in missing)
        with contextlib.closing(computed(job, blocks, len(missing), execution.executor)) as answers:
            for first, columns in answers:
                kept.write(first, columns)
                report(len(columns["success"]))
        done, columns = kept.columns()
    if not done.all():
        raise SweepError(
            f"store: {os.fspath(store or '')!r}: {int((~done).sum())} of {n} runs that were computed are not there any"
            " more: something else changes the store; start the sweep again"
        )
    return _warned(table(record, space, columns))


def _warned(results: Any) -> Any:
    """The results; warns if `make` failed at every point, because all measures are then nan."""
    if not results["success"].values.any():
        reasons = [str(reason) for reason in results["reason"].values.ravel()]
        if all(reason.startswith("make: ") for reason in reasons):
            warnings.warn(f"sweep: no point has a run; at the first, {reasons[0]}", UserWarning, stacklevel=4)
    return results


def load(store: str | os.PathLike) -> Any:
    """Load the result of a `sweep` from its store; runs that are still missing are nan."""
    try:
        return table(*read(store))
    except GeomctrlError:
        raise
    except Exception as error:  # a stranger's record, whose digest may be right, may contain anything
        reason = f"{type(error).__name__}: {error!s:.200}"
        raise ArgumentError(f"store: {os.fspath(store)!r} is damaged: its description: {reason}") from error


def table(record: Record, space: Space, columns: Columns) -> Any:
    """The xarray.Dataset over the dimensions: parameters as coordinates, measures, and the end of each run.

    Missing runs are nan, with an empty reason; attrs["sweep"] is the record as JSON.
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


@named_arguments()
def replay(
    store: Any,
    index: int | Mapping[str, Any],
    make: Callable[[Point], Any],
    *,
    monitors: str | Iterable[Monitor] | None = "default",
) -> Run:
    """Repeat one run of a sweep, identical to the last bit, and return the complete Run.

    A run of a sweep on a GPU (experimental: not yet run on one) is repeated on the CPU, in double precision, and
    differs by rounding.

    Parameters
    ----------
    store : path or xarray.Dataset
        The store of the sweep, or the Dataset that it returned.
    index : int or dict
        The number of the run, `run` in the Dataset, or indices by dimension, as `table.peak_torque.argmax(...)`
        returns.
    make : callable
        The function of the sweep; a store contains no code.
    monitors : iterable of Monitor
        The monitors of the sweep, if they were objects.

    Returns
    -------
    Run
        The run with all quantities that the sweep measured, and the samples that `every` selects.

    Raises
    ------
    ArgumentError
        If the index is out of range, or if `make` or versions differ from those of the sweep; the message says what
        differs. Exceptions of `make` and `simulate` at that point propagate.

    Examples
    --------
    >>> import numpy as np
    >>> import geomctrl as gc
    >>> robot = gc.models.two_link()
    >>> def make(point):
    ...     return robot, gc.controllers.PDGravity(robot, [0.5, 0.2], kp=point["kp"]), np.zeros(2), np.zeros(2)
    >>> table = gc.sweep(make, {"kp": [50.0, 100.0]}, [gc.measures.PeakTorque()], t_end=0.1, dt=1e-3)
    >>> gc.replay(table, 1, make).ok
    True
    """
    dataset = store if has_attributes(store, "data_vars") else load(path_of("store", store))
    monitor_list(monitors)
    try:
        record = json.loads(dataset.attrs["sweep"])
    except (KeyError, TypeError, ValueError):
        raise ArgumentError(f"store: expected a sweep's store or its Dataset, got {shown(store)}") from None
    options = record["options"]
    named = {"make": make} | ({"monitors": list(monitors or ())} if "monitors" not in options else {})
    here = _identity_of(**named) | {f"version of {name}": version for name, version in versions().items()}
    there = {k: v for k, v in record["identity"].items() if k.partition(":")[0] in named or k.startswith("version of")}
    if different := differences(there, here):
        raise ArgumentError(f"make: expected the sweep's: {'; '.join(different)}")
    row = _at(dataset, index)
    values = {name: row[name].item() for name in record["parameters"]}
    point = Point(int(row["run"]), values, record["seed"])
    return run_of(case_of(make, point), **_arguments(options, monitors))


# --- arguments ---------------------------------------------------------------------------------------------------


def checked_measures(measures: Measures) -> dict[str, Callable[[Run], Any]]:
    """Functions of a run by name. Raises ArgumentError for anything else and for duplicate names."""
    if isinstance(measures, Mapping):
        pairs = list[tuple[Any, Any]](measures.items())
    else:
        chosen = listed("measures", measures, "functions of a Run")
        pairs: list[tuple[Any, Any]] = [(getattr(m, "name", getattr(m, "__name__", None)), m) for m in chosen]
    for name, measure in pairs:
        if not callable(measure) or isinstance(measure, type):
            raise ArgumentError(f"measures: expected a function of a Run, got {shown(measure)}; gc.measures has some")
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentError(
                f"measures: expected a name for {shown(measure)}, got {name!r}; pass a dict, {{name: function}}"
            )
        if sum(name == other for other, _ in pairs) > 1:
            raise ArgumentError(f"measures: {name!r} occurs twice; pass a dict with distinct names")
        if name in RESERVED:
            raise ArgumentError(f"measures: {name!r} is a reserved name of the results")
    if not pairs:
        raise ArgumentError("measures: expected at least one function of a Run, got none")
    return dict(pairs)


def checked_arguments(t_end: float, dt: float, control_dt: Any, monitors: Any, options: Any) -> dict[str, Any]:
    """Arguments of `outcomes` that are the same for all runs."""
    method = instance("options", options, SimulationOptions, "gc.SimulationOptions").method
    if not isinstance(getattr(method, "method", method), str):
        raise ArgumentError(f"method: expected the name of a method, got {shown(method)}")
    step_count(t_end, dt)
    hold_count(control_dt, dt)
    chosen = monitor_list(monitors)
    return {
        "t_end": float(t_end),
        "dt": float(dt),
        "control_dt": None if control_dt is None else float(control_dt),
        "monitors": monitors if isinstance(monitors, str) or monitors is None else chosen,
        "options": options,
    }


def _recorded(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `outcomes` in the form that a store keeps; monitors given as objects are omitted."""
    options = arguments["options"]
    flat = {name: x for name, x in arguments.items() if name != "options" and not isinstance(x, list)}
    flat |= {name: getattr(options, name) for name in RECORDED_OPTIONS}
    if isinstance(options.method, str):
        return flat | {"method": options.method}
    return flat | {"method": options.method.method, "rtol": options.method.rtol, "atol": options.method.atol.tolist()}


def _arguments(recorded: Mapping[str, Any], monitors: Any) -> dict[str, Any]:
    """Arguments of `outcomes`, restored from a store."""
    rest = dict(recorded)
    method = rest.pop("method")
    if "rtol" in rest:
        method = Adaptive(method, rest.pop("rtol"), rest.pop("atol"))
    options = SimulationOptions(method, **{name: rest.pop(name) for name in RECORDED_OPTIONS})
    return {"monitors": monitors} | rest | {"options": options}


def _block_size(block: int | None, runs: int, on_gpu: bool) -> int:
    """Runs per block: the user's value, or the default."""
    if block is not None:
        return block
    if on_gpu:
        return min(runs, GPU_BLOCK)
    return min(max(MIN_BLOCK, MIN_BLOCK * -(-runs // (MIN_BLOCK * TARGET_BLOCKS))), MAX_BLOCK)


def _at(dataset: Any, index: Any) -> Any:
    """The Dataset of one run."""
    if is_a(index, Mapping):
        index = mapped("index", index, "positions by dimension")
    else:
        zero_d = isinstance(index, int) or getattr(index, "shape", None) == ()
        is_number = zero_d and np.asarray(index).dtype.kind in "iu"
        where = np.argwhere(dataset["run"].values == np.asarray(index)) if is_number else np.zeros((0, 0), int)
        if len(where) != 1:
            raise ArgumentError(
                f"index: expected a run's number, from 0 to {dataset['run'].size - 1}, got {shown(index)}"
            )
        index = dict(zip(dataset["run"].dims, where[0].tolist()))
    try:
        row = dataset[["run"]].isel({dim: int(k) for dim, k in index.items()})
        if row["run"].ndim:
            raise ValueError
    except (ValueError, IndexError, TypeError):
        sizes = dict(dataset["run"].sizes)
        raise ArgumentError(f"index: expected a run's number, or positions along {sizes}, got {shown(index)}") from None
    return row


# --- which sweep it is -------------------------------------------------------------------------------------------


def record_of(job: Job, space: Space, block: int) -> Record:
    """The description of a sweep in its store.

    identity: entries that must agree to continue it, as text and digests. options: from `_recorded`. Also the sizes of
    the dimensions, dimensions of the parameters, axis names and attributes of the measures.
    """
    options, named = _recorded(job.arguments), {"make": job.make}
    if "monitors" not in options:
        named["monitors"] = job.arguments["monitors"]
    identity = {name: repr(x) for name, x in {**options, "seed": job.seed, "block": block}.items()}
    identity |= {f"space: {name}": _described(*parameter[:2]) for name, parameter in space.parameters.items()}
    identity |= {"space": ", ".join(f"{name} {n}" for name, n in space.sizes.items())}
    identity |= _identity_of(**named, measures=list(job.measures.items()))
    identity |= {f"version of {name}": version for name, version in job.versions.items()}
    return {
        "format": FORMAT,
        "identity": identity,
        "options": options,
        "seed": job.seed,
        "block": block,
        "runs": len(space),
        "sizes": space.sizes,
        "parameters": {name: [list(x.dims), x.attrs] for name, x in space.parameters.items()},
        "measures": {name: _description(measure, space) for name, measure in job.measures.items()},
    }


def _identity_of(**named: Any) -> dict[str, str]:
    """Digests of functions and objects: "make" is the function itself, "make: f" a function that it uses."""
    digests = {name: fingerprint(x) for name, x in named.items()}
    return {
        f"{name}: {part}" if part else name: DIGEST + x for name, parts in digests.items() for part, x in parts.items()
    }


def _described(dims: tuple[str, ...], values: np.ndarray) -> str:
    flat = values.ravel().tolist()
    text = ", ".join(map(repr, flat)) if len(flat) < 5 else f"{flat[0]!r}, {flat[1]!r} ... {flat[-1]!r}"
    return f"{text} ({values.size} along {', '.join(dims) or 'nothing'}, {fingerprint(values)[''][:6]})"


def _description(measure: Any, space: Space) -> dict[str, Any]:
    """Axis names of a measure, unless they are dimensions of the space, and the attributes that xarray shows."""
    attrs = {"long_name": getattr(measure, "description", None), "units": getattr(measure, "units", None)}
    attrs = {name: x for name, x in attrs.items() if isinstance(x, str)}
    dims = list(getattr(measure, "dims", ()))
    clash = any(dim in (*space.sizes, *space.parameters) for dim in dims)
    return {"dims": [] if clash else dims, "attrs": attrs}
