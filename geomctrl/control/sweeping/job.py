"""`Job`: what a worker needs to compute a block of runs of a sweep."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomctrl.arguments import shown
from geomctrl.control.loop_runner import Case
from geomctrl.control.many import Outcome, error_text, outcomes
from geomctrl.control.run import Run
from geomctrl.errors import ArgumentError, GeomctrlError

from .fingerprint import versions
from .space import Point, points

Columns = dict[str, np.ndarray]  # one row per run


@dataclass(frozen=True, eq=False)
class Job:
    """The computation of a sweep: `make`, measures by name, arguments of `outcomes`, seed and versions."""

    make: Callable[[Point], Any]
    measures: dict[str, Callable[[Run], Any]]
    arguments: dict[str, Any]  # t_end, dt, control_dt, monitors, options
    seed: int
    versions: dict[str, str]

    def block(self, first: int, rows: Mapping[str, np.ndarray]) -> Columns:
        """Compute the runs from number `first` on; rows: values (n,) of each parameter.

        Returns success (n,), t_reached (n,) [s], reason (n,) and the measures (n, ...), nan for a run without result. A
        measure without any result is omitted. Raises ArgumentError for measures that are no numbers or change shape.
        """
        results: list[Outcome | None] = []
        cases: list[Case] = []
        for point in points(first, rows, self.seed):
            try:
                cases.append(case_of(self.make, point))
                results.append(None)
            except MemoryError:
                raise
            except Exception as error:  # raised by the user's `make`: this run fails, the others continue
                results.append(Outcome({}, f"make: {error_text(error)}", False, np.nan, 0))
        computed = iter(outcomes(cases, self.measures, **self.arguments))
        return _columns(first, [next(computed) if x is None else x for x in results], self.measures)


def case_of(make: Callable[[Point], Any], point: Point) -> Case:
    """The result of `make` as a Case. Raises ArgumentError unless it has the four parts."""
    case = make(point)
    if isinstance(case, Case):
        return case
    if not isinstance(case, tuple) or len(case) != 4:
        got = f"a tuple of {len(case)}" if isinstance(case, tuple) else f"{shown(case)}"
        raise ArgumentError(f"expected (plant, controller, q0, v0), got {got}")
    return Case(*case)


def run_block(job: bytes | Job, first: int, rows: Mapping[str, np.ndarray]) -> Columns:
    """`Job.block` of a job, pickled or not; the function that executors receive."""
    here: Job = job if isinstance(job, Job) else unpickled(job)
    if here.versions != versions():
        raise GeomctrlError(
            f"executor: its workers have {_words(versions())}; this process has {_words(here.versions)}"
        )
    return here.block(first, rows)


def pickled(job: Any) -> bytes:
    """The job as bytes, with functions of a script by value. Raises ArgumentError if that is not possible."""
    with needed_for("sweep"):
        import cloudpickle
    try:
        return cloudpickle.dumps(job)
    except Exception as error:  # user objects may raise anything
        raise ArgumentError(
            "make, measures, monitors: expected objects that can be pickled for other processes, got"
            f" {error_text(error)};"
            " executor=concurrent.futures.ThreadPoolExecutor() needs no pickling"
        ) from error


@functools.lru_cache(maxsize=1)  # all blocks of a sweep share the job and its compiled code
def unpickled(job: bytes) -> Any:
    import cloudpickle

    return cloudpickle.loads(job)


def _columns(first: int, outcomes: list[Outcome], measures: Iterable[str]) -> Columns:
    columns: Columns = {
        "success": np.array([x.success for x in outcomes]),
        "t_reached": np.array([x.t for x in outcomes], float),
        # messages of exceptions may contain lone surrogates, of names of files for example, which no file can hold
        "reason": np.array([x.reason.encode(errors="backslashreplace").decode() for x in outcomes], object),
    }
    for name in measures:
        values = {k: _numbers(name, first + k, x.values[name]) for k, x in enumerate(outcomes) if name in x.values}
        shapes: dict[tuple[int, ...], int] = {}
        for k, value in values.items():
            shapes.setdefault(value.shape, first + k)
        if len(shapes) > 1:
            listed = " and ".join(f"{shape} in run {number}" for shape, number in shapes.items())
            raise ArgumentError(f"measures: {name!r}: expected one shape in all runs, got {listed}")
        for shape in shapes:
            columns[name] = np.full((len(outcomes), *shape), np.nan)
            columns[name][list(values)] = list(values.values())
    return columns


def _numbers(name: str, number: int, value: Any) -> np.ndarray:
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise TypeError
        return array.astype(float)
    except (TypeError, ValueError):
        raise ArgumentError(f"measures: {name!r}: expected numbers, got {shown(value)} in run {number}") from None


def _words(named: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in named.items())


@contextmanager
def needed_for(feature: str) -> Iterator[None]:
    """Context in which a failing import raises ArgumentError with the name of the optional package."""
    try:
        yield
    except ImportError as error:
        missing = error.name or "a package"
        raise ArgumentError(f"{feature} needs the optional package {missing}: pip install 'geomctrl[sweep]'") from error
