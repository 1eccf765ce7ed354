"""Counterexamples of tests, in a folder: kept until the test passes, so that it is tried first what failed last.

Each is two files, NAME.npz with the state, the robot's numbers and what the controller is, and NAME.py, which runs the
test again. A file is whole or not there.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np

from geomctrl.errors import ArgumentError
from geomctrl.files import whole, write_text
from geomctrl.robot import Robot

from .closed_loop import ClosedLoop
from .evidence import Known

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
        words = re.sub(r"[^A-Za-z0-9_.]+", "-", test).strip("-.")[-80:].lstrip("-.")
        return self.folder / f"{words}-{hashlib.sha256(test.encode()).hexdigest()[:8]}.npz"

    def known(self, test: str) -> list[Known]:
        """The states at which the test has failed, as `evidence.replaying` takes them.

        Raises ArgumentError where a file is there that is none of these.
        """
        path = self.path(test)
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as found:  # numpy leaves a bad one open
                q, v = (np.asarray(found[name], float) for name in ("q", "v"))
                return [(float(found["t"]), q, v, np.asarray(found["z"], float) if "z" in found else None)]
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
        words = "\n".join(f"    {line}".rstrip() for line in _safe(str(error)).splitlines())
        text = SCRIPT.format(test=_safe(test), name=test, words=words, script=f"{stem}.py", data=f"{stem}.npz")
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


def _safe(words: str) -> str:
    """`words` as they may stand in a docstring."""
    return words.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')


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
