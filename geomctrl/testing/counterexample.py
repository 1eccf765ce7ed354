"""What an assertion raises: the state that breaks a promise, with code that can be pasted to reproduce it; and the
files in which the pytest plugin keeps such states until the test passes. Each is two files, NAME.npz with the state,
the robot's numbers and what the controller is, and NAME.py, which runs the test again. A file is whole or not there.
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
from geomctrl.files import whole, write_text
from geomctrl.robot import Robot

from .closed_loop import ClosedLoop
from .domain import State
from .evidence import KnownState

MEASURED = "print(testing.lyapunov_at(controller, plant, t, q, v, z))"


class Counterexample(AssertionError):
    """A promise that does not hold at a state.

    state: a `State`. promise: which one, a word such as "definite", "rate" or "decrease". paste: code that prints the
    numbers that contradict it; what it can not make itself, it says in a comment. source: how the state was found,
    "sampled", "searched", "simulated" or "known".
    """

    def __init__(self, message: str, state: State, promise: str, paste: str = "", source: str = "sampled"):
        super().__init__(message, state, promise, paste, source)  # all of it, so that it can be pickled
        self.message, self.state, self.promise, self.paste, self.source = message, state, promise, paste, source

    def __str__(self):
        code = textwrap.indent(self.paste, "    ")
        reproduced = f"\n\nTo reproduce it:\n\n{code}" if self.paste else ""
        return f"{self.message} {self.state}{reproduced}"


def unresolved(error: SimulationError) -> str:
    """Why a run that the integrator could not finish decides nothing; "" where it shows that the promise is broken.

    It shows that where V is confirmed to grow, or where the loop ends for another reason than its integration.
    """
    if error.run is None or not isinstance(error.__cause__, IntegrationError):
        return ""
    results = error.run.monitors.values()
    reasons = [x.explanation for x in results if x.explanation]
    return "" if any(x.ok is False for x in results) else next(iter(reasons), str(error))


def paste(plant: Plant, code: str, measured: str = MEASURED) -> str:
    """A script: imports, plant and robot, the state that `code` makes, and what is `measured` there.

    A robot that is bundled is called by its name; a plant of more than a robot, and the controller, are the test's own.
    """
    name = _bundled(plant)
    imports = ["import numpy as np", "", "from geomctrl import testing"]
    if name is None:
        setup = ["# controller, plant: those of the test", "robot = plant.robot"]
    else:
        imports[-1] = "from geomctrl import Plant, models, testing"
        setup = ["# controller: that of the test", f"robot = models.load({name!r})", "plant = Plant(robot)"]
    return "\n".join([*imports, "", *setup, code, measured, ""])


def _bundled(plant: Plant) -> str | None:
    """The name of the bundled robot that this plant is, and nothing else."""
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
    """All numbers of a robot that its closed loops depend on."""
    joints = [(joint.kind, joint.S.tolist(), joint.stiffness, joint.rest) for joint in robot.joints]
    numbers = robot.placements.tolist(), robot.parameters.tolist(), robot.gravity.tolist()
    couplings = [(c.joint, dict(c.follows), c.offset) for c in robot.couplings]
    return [robot.parents, joints, couplings, *numbers]


SCRIPT = '''"""{test} failed:

{words}

    python {script}

runs it again, which looks at this state first, as every run of the test does until it passes. Of the controller and
the robot {data} says more.
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
    """The counterexamples in `folder`, by the names of their tests."""

    def __init__(self, folder: Path):
        self.folder = folder

    def path(self, test: str) -> Path:
        """Of a test's .npz file; its script lies beside it. Long names of tests are cut, and stay apart."""
        stem = re.sub(r"[^A-Za-z0-9_.]+", "-", test).strip("-.")[-80:].lstrip("-.")
        return self.folder / f"{stem}-{hashlib.sha256(test.encode()).hexdigest()[:8]}.npz"

    def known(self, test: str) -> list[KnownState]:
        """The states at which the test has failed, as `evidence.replaying` takes them.

        Raises ArgumentError where a file is there that is none of these.
        """
        path = self.path(test)
        try:
            with (
                open(path, "rb") as file,
                np.load(file, allow_pickle=False) as file_content,
            ):  # numpy leaves a bad one open
                q, v = (np.asarray(file_content[name], float) for name in ("q", "v"))
                return [
                    (
                        float(file_content["t"]),
                        q,
                        v,
                        np.asarray(file_content["z"], float) if "z" in file_content else None,
                    )
                ]
        except FileNotFoundError:
            return []
        except Exception as error:  # cut off, of another program, ...: numpy has no one name for it
            raise ArgumentError(f"{path}: expected a counterexample of {test}, got {error!r:.120}") from error

    def save(self, test: str, error: AssertionError, loop: object = None) -> Path:
        """Keep the state of a failure, `error.state` with t, q, v, z; of a ClosedLoop also what it is made of."""
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
        """Whether there was one of the test, which is gone now."""
        path = self.path(test)
        path.with_suffix(".py").unlink(missing_ok=True)
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        return True


def _safe(text: str) -> str:
    """`words` as they may stand in a docstring."""
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


def _numbers(robot: Robot) -> dict[str, Any]:
    """What a robot is made of, by name."""
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
    """A controller in words: its class and, a line each, the numbers it holds."""
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
