"""Execution of sweeps: blocks of runs in processes of this machine or in any executor with `submit`."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import types
from asyncio import CancelledError
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing.context import SpawnContext, SpawnProcess
from queue import SimpleQueue
from typing import Any

import numpy as np

from geomctrl.arguments import count, shown
from geomctrl.errors import ArgumentError, GeomctrlError, SweepError
from geomctrl.other_names import named_arguments

from .job import Columns, Job, pickled, run_block

MAX_ATTEMPTS = 2  # attempts per block that raises; the second may use another worker
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # the processes share the cores already

Block = tuple[int, Mapping[str, np.ndarray]]  # number of the first run, and the values of the parameters


@named_arguments()
@dataclass(frozen=True, eq=False)
class SweepExecution:
    """Options of `sweep`: where runs are computed, in which blocks and with which random numbers.

    Parameters
    ----------
    executor : object with `submit(function, *args)`, or None
        Any concurrent.futures executor, or a dask.distributed.Client. None starts new processes on this machine (a
        script needs no `if __name__ == "__main__"`); a single block runs in the calling process, and so do all blocks
        on a GPU (experimental: not yet run on one). Each task is one block of runs, and at most two tasks per worker
        are pending.
    block : int or None
        Number of runs in a block, independent of the executor. Default: the number of runs / 64, rounded up to a
        multiple of 8, between 8 and 256; on a GPU all runs, at most 32 768.
    seed : int
        Seed of `point.rng`. The random numbers of a point depend only on the seed and the number of its run.
    progress : bool or callable
        True draws a bar. A function is called with the fraction done.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> import geomctrl as gc
    >>> execution = gc.SweepExecution(executor=ThreadPoolExecutor(4), seed=1, progress=True)
    """

    executor: Any = None
    block: int | None = None
    seed: int = 0
    progress: bool | Callable[[float], Any] = False

    def __post_init__(self):
        check_executor(self.executor)
        if self.block is not None:
            count("block", self.block, 1)
        count("seed", self.seed, largest=2**64 - 1)
        if not isinstance(self.progress, bool) and not callable(self.progress):
            raise ArgumentError(
                f"progress: expected True, False or a function of the fraction done, got {shown(self.progress)}"
            )


def check_executor(executor: Any) -> None:
    """Raise ArgumentError unless it is None or has `submit`."""
    if executor is not None and not callable(getattr(executor, "submit", None)):
        remedy = '; for a GPU use options=geomctrl.SimulationOptions(device="cuda")' * isinstance(executor, str)
        raise ArgumentError(
            f"executor: expected None or an object with submit(function, *args), got {shown(executor)}{remedy}"
        )


def computed(job: Job, blocks: Iterable[Block], n: int, executor: Any) -> Generator[tuple[int, Columns], None, None]:
    """Yield (number of the first run, columns) for each of the n blocks, in order of completion.

    At most two blocks per worker are pending, which bounds memory. Leaving the generator cancels pending blocks. Raises
    SweepError if a block fails twice or the workers are lost; a GeomctrlError of a block is raised at once.
    """
    with ExitStack() as stack:
        if executor is None:
            alone = n <= 1 or job.arguments["options"].gpu is not None  # processes would share the GPU
            executor = _SerialExecutor() if alone else stack.enter_context(processes(min(cores(), n)))
        sent = job if isinstance(executor, (ThreadPoolExecutor, _SerialExecutor)) else pickled(job)
        submit = partial(executor.submit, **_options(executor))
        yield from _as_done(executor, partial(submit, run_block, sent), blocks)


def spread(executor: Any, function: Callable[..., Any], arguments: Iterable[tuple]) -> Iterator[tuple[int, Any]]:
    """Yield (k, function(*arguments[k])) in order of completion, computed by an executor."""
    submit = partial(executor.submit, **_options(executor))
    blocks = ((k, *values) for k, values in enumerate(arguments))
    return _as_done(executor, lambda k, *values: submit(function, *values), blocks)  # pyright: ignore


def _as_done(executor: Any, submit: Callable[..., Any], blocks: Iterable[Block]) -> Iterator[tuple[int, Columns]]:
    waiting, running, done = iter(blocks), {}, SimpleQueue()

    def start(block: Block, attempt: int) -> None:
        try:
            future = submit(*block)
        except Exception as error:  # executor broken, shut down or closed
            raise _gone(error) from error
        running[block[0]] = future, block, attempt
        future.add_done_callback(lambda _: done.put(block[0]))

    try:
        for block in islice(waiting, 2 * _workers(executor)):
            start(block, 1)
        while running:
            future, block, attempt = running.pop(done.get())
            try:
                columns = future.result()
            except GeomctrlError:
                raise
            except BrokenExecutor as error:
                raise _gone(error) from error
            except (Exception, CancelledError) as error:  # of a worker, out of memory, or from the transport
                if attempt == MAX_ATTEMPTS:
                    raise SweepError(
                        f"the block from run {block[0]} on failed {MAX_ATTEMPTS} times: {type(error).__name__}: {error}"
                    ) from error
                start(block, attempt + 1)
                continue
            yield block[0], columns
            for following in islice(waiting, 1):
                start(following, 1)
    finally:
        for future, _, _ in () if isinstance(executor, _Processes) else running.values():
            with suppress(Exception):  # the client may be closed
                future.cancel()


def _gone(error: BaseException) -> SweepError:
    return SweepError(f"executor: its workers have stopped (killed, out of memory, or shut down): {error}")


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _options(executor: Any) -> dict[str, Any]:
    """Options of `submit`: a dask.distributed.Client need not look for existing results."""
    return {"pure": False} if hasattr(executor, "get_executor") else {}


def _workers(executor: Any) -> int:
    if hasattr(executor, "nthreads"):  # a dask.distributed.Client
        return max(sum(executor.nthreads().values()), cores())
    return getattr(executor, "_max_workers", None) or cores()


class _SerialExecutor:
    """An executor that computes immediately in the calling thread."""

    _max_workers = 1

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        future = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:  # `computed` raises it
            future.set_exception(error)
        return future


class _Processes(ProcessPoolExecutor):
    """A pool that cancels its futures when it ends. Its thread prints a traceback if others have cancelled them."""


@contextmanager
def processes(n: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of new processes, because forking a process with threads (numba's, zarr's) may deadlock."""
    pool = _Processes(n, mp_context=_Context(), initializer=_start_worker)
    try:
        yield pool
    except BaseException:
        workers = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:  # otherwise Ctrl-C waits for their blocks
            worker.kill()
        raise
    pool.shutdown()


class _Worker(SpawnProcess):
    """A new process that does not import the calling script and uses one thread for linear algebra.

    Importing the script would start the sweep again. `make` is therefore sent by value.
    """

    def start(self):
        main, inherited = sys.modules["__main__"], set(os.environ)
        sys.modules["__main__"] = types.ModuleType("__main__")
        os.environ.update({name: "1" for name in ONE_THREAD if name not in inherited})
        try:
            super().start()
        finally:
            sys.modules["__main__"] = main
            for name in set(ONE_THREAD) - inherited:
                del os.environ[name]


class _Context(SpawnContext):
    Process = _Worker


def _start_worker() -> None:
    """Initialise a worker: Ctrl-C ends it silently, and it ends if the sweep is killed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
