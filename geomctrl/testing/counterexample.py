"""`Counterexample`: the exception of assertions, with the violating state and code to reproduce it.

The pytest plugin stores counterexamples in files until the test passes: NAME.npz with the state, the robot's numbers
and a description of the controller, and NAME.py, which repeats the test. A failed write leaves no partial file.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl import models
from geomctrl.control.plant import Plant
from geomctrl.errors import ArgumentError, GeomctrlError, IntegrationError, SimulationError
from geomctrl.files import read_arrays, whole, write_text
from geomctrl.robot import Robot

from .closed_loop import ClosedLoop
from .domain import State
from .evidence import KnownState

MEASURED = "print(testing.lyapunov_at(controller, plant, t, q, v, z))"


class Counterexample(AssertionError):
    """A violated property, raised by assertions.

    Attributes
    ----------
    state : State
        The violating state.
    promise : str
        The violated property, such as "definite", "rate" or "decrease".
    paste : str
        Code that prints the contradicting numbers. Comments name objects that it can not create.
    source : str
        How the state was found: "sampled", "searched", "simulated" or "known".
    hint : str
        What else may explain the violation, such as friction of the plant.
    """

    def __init__(
        self, message: str, state: State, promise: str, paste: str = "", source: str = "sampled", hint: str = ""
    ):
        super().__init__(message, state, promise, paste, source, hint)  # all arguments, which pickling needs
        self.message, self.state, self.promise, self.paste, self.source = message, state, promise, paste, source
        self.hint = hint

    def __str__(self):
        code = textwrap.indent(self.paste, "    ")
        reproduced = f"\n\nTo reproduce it:\n\n{code}" if self.paste else ""
        hint = f"\n\n{self.hint}" if self.hint else ""
        return f"{self.message} {self.state}{hint}{reproduced}"


def unresolved(error: SimulationError) -> str:
    """The reason why a run that the integrator could not complete is inconclusive; "" if it proves a violation.

    It proves a violation if V is confirmed to grow, or if the run ended for another reason than integration.
    """
    if error.run is None or not isinstance(error.__cause__, IntegrationError):
        return ""
    results = error.run.monitors.values()
    reasons = [x.explanation for x in results if x.explanation]
    return "" if any(x.ok is False for x in results) else next(iter(reasons), str(error))


def paste(plant: Plant, code: str, measured: str = MEASURED) -> str:
    """A script: imports, plant and robot, the state that `code` creates, and the `measured` numbers there.

    A bundled robot is loaded by name. Other plants and the controller come from the test.
    """
    name = _bundled(plant)
    imports = ["import numpy as np", "", "from geomctrl import testing"]
    if name is None:
        setup = ["# controller, plant: as in the test", "robot = plant.robot"]
    else:
        imports[-1] = "from geomctrl import Plant, models, testing"
        setup = ["# controller: as in the test", f"robot = models.load({name!r})", "plant = Plant(robot)"]
    return "\n".join([*imports, "", *setup, code, measured, ""])


def _bundled(plant: Plant) -> str | None:
    """The name of a bundled robot, if the plant consists of it alone."""
    robot = plant.robot
    bare = plant.friction is None and plant.f_ext is None and plant.stops is None
    if type(plant) is not Plant or not bare or plant.changes or plant.actuators:
        return None
    if robot.name not in models.names():
        return None
    try:
        same = models.load(robot.name)
    except (GeomctrlError, ImportError, OSError):
        return None
    return robot.name if _described(same) == _described(robot) else None


def _described(robot: Robot) -> list[Any]:
    """All numbers of a robot that affect closed loops."""
    joints = [(joint.kind, joint.S.tolist(), joint.stiffness, joint.rest) for joint in robot.joints]
    numbers = robot.placements.tolist(), robot.parameters.tolist(), robot.gravity.tolist()
    couplings = [(c.joint, dict(c.follows), c.offset) for c in robot.couplings]
    return [robot.parents, joints, couplings, *numbers]


SCRIPT = '''"""{test} failed:

{words}

    python {script}

repeats the test, which checks this state first; every run of the test does, until it passes. Details of controller and
robot are in {data}.
"""

from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve()
TEST = {name!r}

with np.load(HERE.with_suffix(".npz")) as found:
    t, q, v, z = float(found["t"]), found["q"], found["v"], found["z"] if "z" in found else None

if __name__ == "__main__":
    print(f"{{TEST}} at t = {{t!r}}, q = {{q!r}}, v = {{v!r}}, z = {{z!r}}")
    root = HERE.parent.parent
    raise SystemExit(pytest.main(["-p", "geomctrl.testing.plugin", "--rootdir", str(root), f"{{root / TEST}}"]))
'''


class Examples:
    """The counterexamples in `folder`, by the name of the test."""

    def __init__(self, folder: Path):
        self.folder = folder

    def path(self, test: str) -> Path:
        """The .npz file of a test; its script is next to it. Long names are shortened but remain distinct."""
        stem = re.sub(r"[^A-Za-z0-9_.]+", "-", test).strip("-.")[-80:].lstrip("-.")
        return self.folder / f"{stem}-{hashlib.sha256(test.encode()).hexdigest()[:8]}.npz"

    def known(self, test: str) -> list[KnownState]:
        """The states at which the test has failed, in the form of `evidence.replaying`.

        Raises ArgumentError if the file is no counterexample of this test.
        """
        path = self.path(test)
        try:
            arrays = read_arrays(path)
            t, q, v = (np.asarray(arrays[name], float) for name in "tqv")
            return [(float(t), q, v, np.asarray(arrays["z"], float) if "z" in arrays else None)]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ArgumentError(f"{path}: expected a counterexample of {test}, got {error!r:.120}") from error

    def save(self, test: str, error: AssertionError, loop: object = None) -> Path:
        """Store the state of a failure, `error.state`, and for a ClosedLoop the description of its objects."""
        path, state = self.path(test), error.state  # pyright: ignore[reportAttributeAccessIssue]
        data: dict[str, Any] = {"test": test, "failure": str(error), "t": state.t, "q": state.q, "v": state.v}
        if state.z is not None:
            data["z"] = state.z
        if isinstance(loop, ClosedLoop):
            data |= {"controller": described(loop.controller), **_numbers(loop.robot)}
        if not self.folder.exists():
            write_text(self.folder / ".gitignore", "*\n")
        with whole(path) as file:
            np.savez(file, **data)
        stem = f"{self.folder.name}/{path.stem}"
        message = "\n".join(f"    {line}".rstrip() for line in _safe(str(error)).splitlines())
        text = SCRIPT.format(test=_safe(test), name=test, words=message, script=f"{stem}.py", data=f"{stem}.npz")
        write_text(path.with_suffix(".py"), text)
        return path

    def forget(self, test: str) -> bool:
        """Remove the counterexample of a test; returns whether there was one."""
        path = self.path(test)
        path.with_suffix(".py").unlink(missing_ok=True)
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        return True


def _safe(text: str) -> str:
    """`text` escaped for a docstring."""
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def _numbers(robot: Robot) -> dict[str, Any]:
    """The numbers that define a robot, by name."""
    return {
        "robot": robot.name,
        "bodies": list(robot.body_names),
        "parents": robot.parents,
        "joints": [joint.kind for joint in robot.joints],
        "screws": np.hstack([joint.S for joint in robot.joints]),
        "placements": robot.placements,
        "parameters": robot.parameters,
        "gravity": robot.gravity,
    }


def described(controller: object) -> str:
    """Text about a controller: its class and its numbers, one per line."""
    lines = [f"{type(controller).__module__}.{type(controller).__qualname__}"]
    for name, value in sorted(getattr(controller, "__dict__", {}).items()):
        if name.startswith("_"):
            continue
        if isinstance(value, np.ndarray):
            lines.append(f"    {name} = {np.array2string(value, separator=', ')}")
        elif isinstance(value, (bool, int, float, str)) or value is None:
            lines.append(f"    {name} = {value!r}")
        elif isinstance(value, Robot):
            lines.append(f"    {name}: {value.name}")
        else:
            lines.append(f"    {name}: {type(value).__name__}")
    return "\n".join(lines)
