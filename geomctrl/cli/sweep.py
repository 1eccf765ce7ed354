"""Simulate a closed loop at every point of a parameter space, measure each run, and draw the measures.

STUDY.py defines the arguments of `geomctrl.sweep` by name: `make`, `space`, `measures`, `t_end`, `dt`, and any
others. Blocks of runs are saved as they finish. After a crash, a kill or Ctrl-C `--resume` computes the missing ones,
with identical numbers. A store of another study is refused, with the differences.

Prints a table and writes report.txt and one heat map per measure to --out.

**Exit status**: 0 all runs were made, whether each succeeded or not; 1 workers were lost or the disk is full; 2 invalid
arguments; 130 Ctrl-C, 143 SIGTERM.

**Examples**

- `geomctrl sweep gains.py --out out/gains`

- `geomctrl sweep gains.py --out out/gains --resume --scheduler tcp://head:8786`
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from geomctrl.errors import ArgumentError, SweepError
from geomctrl.files import write_text
from geomctrl.output import transcript

from .options import flag
from .terminal import FAILED, interrupted_status, print_error, report_written, stdout_console
from .user_files import arguments_of

MAX_REASONS = 5  # reasons for failure that are listed


def sweep(
    study: Annotated[Path, Parameter(name="STUDY.py", help="A Python file with make, space, measures, t_end and dt.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder for report and pictures.")] = Path("out/sweep"),
    store: Annotated[Path | None, Parameter(help="Store of the runs [default: sweep.zarr in --out].")] = None,
    resume: Annotated[bool, flag("Continue with an existing store.")] = False,
    scheduler: Annotated[
        str | None,
        Parameter(metavar="ADDRESS", help="Address of a dask cluster, tcp://host:8786 [default: this machine]."),
    ] = None,
    plots: Annotated[bool, Parameter(help="Draw each measure.")] = True,
) -> int | None:
    from geomctrl.control.sweeping.executors import SweepExecution
    from geomctrl.control.sweeping.sweep import sweep as run_sweep

    arguments = arguments_of(study, run_sweep, {"store"}, "STUDY.py")
    store = out / "sweep.zarr" if store is None else store
    if store.exists() and not resume:
        raise ArgumentError(f"--store: {str(store)!r} exists; --resume continues it")
    console = stdout_console()
    with ExitStack() as stack:
        executor = None if scheduler is None else stack.enter_context(_client(scheduler))
        try:
            chosen = arguments.pop("execution", SweepExecution())
            execution = replace(chosen, executor=executor, progress=console.is_terminal)
            table = run_sweep(**arguments, store=store, execution=execution)
        except SweepError as error:
            print_error(f"{error}; --resume continues")
            return FAILED
        except (KeyboardInterrupt, SystemExit) as error:
            print_error("interrupted; finished runs are saved, --resume continues")
            return interrupted_status(error)
    written = [_write_report(console, table, out / "report.txt")]
    if plots:
        with console.status("drawing"):
            from geomctrl.viewing.sweeps import plot_sweep  # imported here because matplotlib is slow to import

            written += plot_sweep(table, out)
    report_written(console, written, out, f"; the runs are in {store}")
    return None


def _client(address: str) -> Any:
    """The client of the dask cluster at an address. Raises ArgumentError if there is none."""
    from geomctrl.control.sweeping.job import needed_for

    with needed_for("--scheduler"):
        from distributed import Client
    try:
        return Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise ArgumentError(f"--scheduler: no dask scheduler answers at {address!r}: {error}") from None


def _write_report(console: Console, table: Any, path: Path) -> Path:
    """Write a sweep's tables to a file, then print them."""
    kept, text = transcript()
    kept.print(_measure_table(table))
    kept.print(_endings(table), soft_wrap=True)
    try:
        return write_text(path, text())
    finally:  # a report that can not be written is printed
        console.print(_measure_table(table))
        console.print(_endings(table), soft_wrap=True)


def _measure_table(table: Any) -> Table:
    """For each measure its smallest, median and largest value, the run of each, and the number of runs without a
    value.
    """
    space = ", ".join(f"{name} {n}" for name, n in table["run"].sizes.items())
    title = f"{table['run'].size} runs: {space}"
    out = Table(title=title, title_justify="left", title_style="bold")
    for head in ("measure", "units", "least", "median", "largest", "in run", "without"):
        out.add_column(head, justify="left" if head in ("measure", "units") else "right")
    for name, x in table.data_vars.items():
        if x.dtype.kind == "f" and name != "t_reached":
            out.add_row(str(name), x.attrs.get("units", ""), *_numbers(table, x))
    return out


def _numbers(table: Any, x: Any) -> list[str]:
    rows = x.values.reshape(table["run"].size, -1)  # the dimensions of the runs come first
    good = rows[np.isfinite(rows)]
    without = str(int(np.isnan(rows).any(axis=1).sum()))
    if not len(good):
        return ["", "", "", "", without]
    number = int(np.argmax(np.fmax.reduce(np.where(np.isfinite(rows), rows, -np.inf), axis=1)))
    return [*(f"{value:.4g}" for value in (good.min(), np.median(good), good.max())), str(number), without]


def _endings(table: Any) -> str:
    """Number of successful runs, and the most frequent reasons for failure with the first run of each."""
    success, reasons = table["success"].values.ravel(), table["reason"].values.ravel()
    lines = [f"{int(success.sum())} of {len(success)} runs reached their end"]
    failed = Counter(reasons[~success].tolist())
    for reason, count in failed.most_common(MAX_REASONS):
        first = int(np.flatnonzero((reasons == reason) & ~success)[0])
        lines.append(f"  {count} did not, as run {first}: {reason}")
    if len(failed) > MAX_REASONS:
        lines.append(f"  and {len(failed) - MAX_REASONS} more reasons, in the variable `reason`")
    return "\n".join(lines)
