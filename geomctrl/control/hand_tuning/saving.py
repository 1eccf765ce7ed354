"""A setting as Python code, as files of a study, and as C code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import indent
from typing import Any

import numpy as np

from geomctrl.arguments import number, shown
from geomctrl.control.compiled.law import compile as compiled_law
from geomctrl.control.python_code import PythonCode
from geomctrl.control.rebuilding import arguments, path_of
from geomctrl.errors import ArgumentError
from geomctrl.files import read_toml, write_text

from .controls import Controls, Loop, Settings
from .outcomes import Outcome

SWEEP_POINTS = 9
KINDS = ("run.npz", "settings.toml", "sweep.py", "loop.py", "law.c")


def code_of(controls: Controls, loop: Loop, settings: Mapping[str, float], outcome: Outcome | None = None) -> str:
    """Python code that repeats the run of a setting, with the same numbers; outcome: how it was computed."""
    code = _objects(controls, loop, settings)
    compiled, every = (True, 1) if outcome is None else (outcome.compiled, outcome.every)
    t_end = loop.t_end if outcome is None else outcome.t_end
    call = (
        f"run = gc.simulate(\n    plant, controller, q0, v0, t_end={t_end!r}, dt={loop.dt!r},"
        f" control_dt={loop.control_dt!r},\n    options=gc.SimulationOptions(every={every}, compiled={compiled}),\n)"
    )
    if outcome is not None and not outcome.run.success:
        call = f"try:\n{indent(call, '    ')}\nexcept gc.SimulationError as error:\n    run = error.run"
    code.lines.append(call)
    return code.text


def sweep_of(controls: Controls, loop: Loop, settings: Mapping[str, float], key: str) -> str:
    """A study for `geomctrl sweep`: one control over its range, all others as in the setting."""
    control, name = controls[key], key.replace(".", "_")
    if key == "dt":
        raise ArgumentError("key: expected another control than dt, which is constant in a sweep")
    code = _objects(controls, loop, settings)
    values = [control.at(p) for p in np.linspace(0.0, 1.0, SWEEP_POINTS)]
    if control.scales:  # the code has the present values, which the point multiplies
        values = [value / settings[key] for value in values]
    part, path = key.split(".", 1)
    lines = [f"space = {{{name!r}: {values!r}}}", "measures = [gc.measures.TrackingRMS(), gc.measures.PeakTorque(),"
             " gc.measures.WorstMonitor('energy')]", f"t_end, dt, control_dt = {loop.t_end!r}, {loop.dt!r},"
             f" {loop.control_dt!r}", "", "", "def make(point):"]  # fmt: skip
    value = f"point[{name!r}]"
    if part == "load":
        mass, centre = controls.load({**settings, "load.mass": settings["load.mass"] or 1.0}) or (0.0, ())
        parts = [value if path == "mass" else repr(mass)]
        index = None if path == "mass" else path_of(path)[1][0]
        parts.append("(" + ", ".join(value if k == index else repr(x) for k, x in enumerate(centre)) + ")")
        changes, target = f'{{"robot": robot.with_payload({", ".join(parts)})}}', "plant"
    else:
        target = "controller" if part == "law" else "plant"
        if control.scales:
            present = _value_at(getattr(loop, target), path)
            value = f"{value} * {code.value(path, np.asarray(present, float))}"
        elif control.is_entry and settings.get(key.rpartition("[")[0], 1.0) != 1.0:  # the array is scaled, too
            value = f"{value} * {settings[key.rpartition('[')[0]]!r}"
        changes = f"{{{path!r}: {value}}}"
    lines.append(f"    changed = gc.control.with_arguments({target}, {changes})")
    lines.append(f"    return {'plant, changed' if target == 'controller' else 'changed, controller'}, q0, v0")
    code.lines += lines
    return code.text


def save(
    controls: Controls, outcome: Outcome, settings: Mapping[str, float], kind: str, folder: Path, key: str
) -> Path:
    """Write one of `KINDS` into a folder and return its path; key: the control of a sweep."""
    folder.mkdir(parents=True, exist_ok=True)
    path, loop = folder / kind, outcome.loop
    if kind == "run.npz":
        return outcome.run.save(path)
    if kind == "law.c":
        return next(x for x in compiled_law(loop.controller, loop.plant.robot).to_c(folder / "c") if x.name == kind)
    texts = {
        "settings.toml": lambda: settings_text(controls, settings),
        "sweep.py": lambda: sweep_of(controls, loop, settings, key),
        "loop.py": lambda: code_of(controls, loop, settings, outcome),
    }
    if kind not in texts:
        raise ArgumentError(f"kind: expected one of {', '.join(KINDS)}, got {shown(kind)}")
    return write_text(path, texts[kind]())


def settings_text(controls: Controls, settings: Mapping[str, float]) -> str:
    """TOML of the controls that were moved."""
    lines = [f'"{key}" = {value!r}' for key, value in controls.moved(settings).items()]
    return "\n".join(["# read by: geomctrl tune ... --settings FILE", "[settings]", *lines, ""])


def read_settings(controls: Controls, path: Path) -> Settings:
    """The settings of such a file. Raises GeomctrlError, which names the file and the control."""
    table: Any = read_toml(path).get("settings")
    if not isinstance(table, dict):
        raise ArgumentError(f"{path}: expected a table [settings]")
    for key in table:
        controls[key]
    return {key: number(f"{path}: {key}", value) for key, value in table.items()}


def _objects(controls: Controls, loop: Loop, settings: Mapping[str, float]) -> PythonCode:
    """Code of the controller, the plant and the initial state."""
    code = PythonCode()
    base = code.define("robot", controls.plant.robot)
    load = controls.load(settings)
    if load is not None:
        code.define("loaded_robot", loop.plant.robot, f"{base}.with_payload({load[0]!r}, {load[1]!r})")
    code.define("controller", loop.controller)
    code.define("plant", loop.plant)
    code.lines.append(f"q0, v0 = {code.value('q0', np.asarray(loop.q0))}, {code.value('v0', np.asarray(loop.v0))}")
    return code


def _value_at(x: Any, path: str) -> Any:
    """The argument at a path, or the attribute if the class chose its value."""
    for step in path_of(path):
        if isinstance(step, str):
            value = arguments(x).get(step)
            x = getattr(x, step) if value is None else value
        else:
            x = x[step[0]]
    return x
