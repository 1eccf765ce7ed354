"""Where blocks are computed: processes of this machine, or anything with `submit`, a bounded number at a time."""

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

from geomctrl.arguments import count
from geomctrl.errors import ArgumentError, GeomctrlError, SweepError

from .job import Columns, Job, pickled, run_block

ATTEMPTS = 2  # at a block that raises: the second may come to another worker
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # the processes share the cores already

Block = tuple[int, Mapping[str, np.ndarray]]  # the first run's number, and the parameters' values


@dataclass(frozen=True, eq=False)
class SweepExecution:
    """How `sweep` carries out its runs: where, in which portions, with which random numbers.

    Parameters
    ----------
    executor : object with `submit(function, *args)`, or None
        Any concurrent.futures executor, or a dask.distributed.Client. None computes in new processes of this machine,
        so that no script need guard itself, and one block alone in this process. A task is a block of runs; at most two
        a worker are under way.
    block : int or None
        Runs in a block, the same whatever the executor. By default a 64th of all, rounded up to a multiple of 8, from
        8 to 256.
    seed : int
        Of `point.rng`: the random numbers of a point depend on seed and number of the run alone.
    progress : bool or callable
        True draws a bar; a function is called with the fraction done.

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


def check_executor(executor: Any) -> None:
    """Raise ArgumentError unless it is None or has `submit`."""
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise ArgumentError(f"executor: expected None or an object with submit(function, *args), got {executor!r:.60}")


def computed(job: Job, blocks: Iterable[Block], n: int, executor: Any) -> Generator[tuple[int, Columns], None, None]:
    """(first number, columns) of each of the n blocks, in the order in which they are done.

    At most two blocks a worker are under way: memory stays bounded. What is under way when this is left is cancelled.
    Raises SweepError when a block fails twice or the workers are gone; GeomctrlErrors of a block at once.
    """
    with ExitStack() as stack:
        if executor is None:
            executor = stack.enter_context(processes(min(cores(), n))) if n > 1 else _Here()
        sent = job if isinstance(executor, (ThreadPoolExecutor, _Here)) else pickled(job)
        submit = partial(executor.submit, **_options(executor))
        yield from _as_done(partial(submit, run_block, sent), blocks, 2 * _workers(executor))


def _as_done(submit: Callable[..., Any], blocks: Iterable[Block], max_pending: int) -> Iterator[tuple[int, Columns]]:
    waiting, running, done = iter(blocks), {}, SimpleQueue()

    def start(block: Block, attempt: int) -> None:
        try:
            future = submit(*block)
        except Exception as error:  # broken, shut down, closed
            raise _gone(error) from error
        running[block[0]] = future, block, attempt
        future.add_done_callback(lambda _: done.put(block[0]))

    try:
        for block in islice(waiting, max_pending):
            start(block, 1)
        while running:
            future, block, attempt = running.pop(done.get())
            try:
                columns = future.result()
            except GeomctrlError:
                raise
            except BrokenExecutor as error:
                raise _gone(error) from error
            except (Exception, CancelledError) as error:  # of a worker, of memory, of the way there
                if attempt == ATTEMPTS:
                    raise SweepError(
                        f"the block from run {block[0]} on failed {ATTEMPTS} times: {type(error).__name__}: {error}"
                    ) from error
                start(block, attempt + 1)
                continue
            yield block[0], columns
            for following in islice(waiting, 1):
                start(following, 1)
    finally:
        for future, _, _ in running.values():
            with suppress(Exception):  # of a client that is closed
                future.cancel()


def _gone(error: BaseException) -> SweepError:
    return SweepError(f"executor: its workers are gone (killed, out of memory, or shut down): {error}")


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _options(executor: Any) -> dict[str, Any]:
    """Of `submit`: a dask.distributed.Client need not look for a result that it has already."""
    return {"pure": False} if hasattr(executor, "get_executor") else {}


def _workers(executor: Any) -> int:
    if hasattr(executor, "nthreads"):  # a dask.distributed.Client
        return max(sum(executor.nthreads().values()), cores())
    return getattr(executor, "_max_workers", None) or cores()


class _Here:
    """Computes at once, in this thread."""

    _max_workers = 1

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        future = Future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:  # `computed` asks for it
            future.set_exception(error)
        return future


# --- processes of this machine -----------------------------------------------------------------------------------


@contextmanager
def processes(n: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of new processes: forking one that has threads (numba's, zarr's) may hang."""
    pool = ProcessPoolExecutor(n, mp_context=_Context(), initializer=_start_worker)
    try:
        yield pool
    except BaseException:
        workers = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:  # else Ctrl-C would wait for their blocks
            worker.kill()
        raise
    pool.shutdown()


class _Worker(SpawnProcess):
    """A new process without the `__main__` of this one, and with one thread for linear algebra.

    It would run the script that starts the sweep once more, which then had to guard itself; `make` comes by value.
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
    """In a worker: Ctrl-C ends it without a word, and it does not outlive a sweep that is killed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
