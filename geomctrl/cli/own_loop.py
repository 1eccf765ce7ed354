"""A closed loop of the user's own: a Python file that sets the arguments of `simulate`."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from rich.console import Console

from geomctrl.control.loop import simulate
from geomctrl.errors import ArgumentError

from .study import arguments_of
from .track_options import RunOptions, ScenarioOptions
from .tracking import Stop, save, watched


def own_loop(study: Path, scenario: ScenarioOptions, options: RunOptions, console: Console) -> Stop | None:
    """Run it, print and save what came of it; why it stopped early, or None. Raises ArgumentError for options that
    say of the loop what the file says.
    """
    given = [f.name for f in fields(scenario) if getattr(scenario, f.name) != f.default]
    if given:
        raise ArgumentError(f"{given[0].replace('_', '-')}: not with {study.name}, which says itself what the loop is")
    arguments = arguments_of(study, simulate, {"progress"})
    if options.method != RunOptions.method:
        arguments["method"] = options.method
    arguments["strict"] = options.strict or arguments.get("strict", False)
    options.out.mkdir(parents=True, exist_ok=True)
    run, stop = watched(console, study.stem, arguments)
    text = f"{study.name}: {run!r}\n{run.summary()}"
    return save(console, f"{text}\n", lambda target: target.print(text, soft_wrap=True), run, {}, options, stop)
