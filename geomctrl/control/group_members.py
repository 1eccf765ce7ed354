"""Runs of a group that continue alone: after compiled code has stopped, or again in Python if that differs."""

from __future__ import annotations

from collections.abc import Callable

from geomctrl.compiler.code import enabled
from geomctrl.errors import SimulationError
from geomctrl.tracing.untraceable import UntraceableError

from .compiled.choice import FittedTrace, known_trace, say
from .compiled.law_memory import MemoryLengthError
from .loop_runner import LoopRunner, in_a_loop
from .run import Run

MIN_STEPS = 250  # total steps below which compilation does not pay


def trace_of(runner: LoopRunner, choice: bool | str) -> FittedTrace | None:
    """The trace that a runner shares with similar ones; None if it continues alone."""
    if choice is False or not enabled() or runner.n_steps * runner.pieces < MIN_STEPS or runner.loop.plant.switches:
        return None
    try:
        return known_trace(runner.loop, runner.record.watchers, runner.strict)
    except MemoryLengthError:  # alone, it fills its buffers first
        return None
    except UntraceableError as error:
        if choice is True:
            raise
        say(f"these loops run in Python: {error}")
        return None


def alone(runner: LoopRunner, choice: bool | str, report: Callable[[float], None], *, stopped: bool = False) -> Run:
    """The run, continued without others. stopped: compiled code has stopped before its next step."""
    with in_a_loop():
        try:
            runner.compare()  # with the samples it stored in a lane
            here = True if choice == "auto" and trace_of(runner, choice) else choice
            return runner.to_end(here, report, stopped=stopped)
        except SimulationError as error:
            return run_of(error)
        except UntraceableError as error:
            return in_python(runner, choice, report, error)


def in_python(runner: LoopRunner, choice: bool | str, report: Callable[[float], None], error: UntraceableError) -> Run:
    """Repeat the run in Python because compiled code computed another result; raise the error if `choice` is True."""
    if choice is True:
        raise error
    say(f"these loops run in Python: {error}")
    fresh, runner.comparison = runner.again(), None
    with in_a_loop():
        try:
            fresh.begin()
            run = fresh.to_end(False, report)
        except SimulationError as failed:
            run = run_of(failed)
    runner.record = fresh.record  # contains the accumulated measures
    return run


def run_of(error: SimulationError) -> Run:
    """The run up to its failure; raises the error if it has none."""
    if error.run is None:
        raise error
    return error.run


def completed(runner: LoopRunner, choice: bool | str, report: Callable[[float], None]) -> Run:
    """The finished run, after its stored samples have been compared with Python."""
    try:
        with in_a_loop():
            runner.compare()
        return runner.run()
    except UntraceableError as error:
        return in_python(runner, choice, report, error)
    except SimulationError as error:
        return run_of(error)
