"""`geomctrl sweep`: a study's closed loops over a space of parameters."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from .terminal import FAILED, complain, interrupted_status, reported, stdout_console


@reported
def sweep(
    study: Annotated[
        Path, typer.Argument(metavar="STUDY.py", help="A Python file with make, space, measures, t_end and dt.")
    ],
    out: Annotated[Path, typer.Option(help="The folder for report and pictures.")] = Path("out/sweep"),
    store: Annotated[Path | None, typer.Option(help="Where the runs are kept; sweep.zarr in --out.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the store that is there.")] = False,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Of a dask cluster, as tcp://host:8786; else this machine.")
    ] = None,
    plots: Annotated[bool, typer.Option(help="Draw each measure.")] = True,
) -> None:
    """Run a closed loop at every point of a space, measure each run, draw the measures.

    STUDY.py sets the arguments of `geomctrl.sweep` by their names: `make`, `space`, `measures`, `t_end`, `dt`, and
    any others it wants. Blocks of runs are kept as they are done: after a crash, a kill or Ctrl-C `--resume` does the
    missing ones, with the same numbers. A store of another study is refused, with what differs.

    Ends with a table, report.txt and a heat map a measure in --out.

    **Exit status**: 0 all was run, whether each run went well or not; 1 workers were lost or the disk is full; 2 bad
    arguments; 130 Ctrl-C, 143 SIGTERM.

    **Examples**

    - `geomctrl sweep gains.py --out out/gains`

    - `geomctrl sweep gains.py --out out/gains --resume --scheduler tcp://head:8786`
    """
    from geomctrl.control.sweeping.sweep import sweep as swept
    from geomctrl.errors import ArgumentError, SweepError

    from .study import arguments_of
    from .sweep_tables import write_report

    arguments = arguments_of(study, swept, {"store", "executor", "progress"})
    store = out / "sweep.zarr" if store is None else store
    if store.exists() and not resume:
        raise ArgumentError(f"--store: {str(store)!r} is there already; --resume goes on with it")
    console = stdout_console()
    with ExitStack() as stack:
        executor = None if scheduler is None else stack.enter_context(_client(scheduler))
        try:
            table = swept(**arguments, store=store, executor=executor, progress=console.is_terminal)
        except SweepError as error:
            complain(f"{error}; --resume goes on")
            raise typer.Exit(FAILED) from None
        except (KeyboardInterrupt, SystemExit) as error:
            complain("interrupted; what is done is kept, --resume goes on")
            raise typer.Exit(interrupted_status(error)) from None
    written = [write_report(console, table, out / "report.txt")]
    if plots:
        with console.status("drawing"):
            from geomctrl.viewing.sweeps import plot_sweep  # here: matplotlib is slow to import

            written += plot_sweep(table, out)
    console.print(f"wrote {', '.join(p.name for p in written)} in {out}; the runs are in {store}", soft_wrap=True)


def _client(address: str) -> Any:
    """The dask cluster at an address. Raises ArgumentError where there is none."""
    from geomctrl.control.sweeping.optional import needed_for
    from geomctrl.errors import ArgumentError

    with needed_for("--scheduler"):
        from distributed import Client
    try:
        return Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise ArgumentError(f"--scheduler: no dask scheduler answers at {address!r}: {error}") from None
