"""What an assertion raises: the state that breaks a promise, and code that can be pasted to reproduce it."""

from __future__ import annotations

from typing import Any

from geomctrl import models
from geomctrl.control.plant import Plant
from geomctrl.errors import GeomctrlError, IntegrationError, SimulationError
from geomctrl.robot import Robot

from .domain import State

MEASURED = "print(testing.lyapunov_at(controller, plant, t, q, v, z))"


class Counterexample(AssertionError):
    """A promise that does not hold at a state.

    state: a `State`. promise: which one, a word such as "definite", "rate" or "decrease". paste: code that prints the
    numbers that contradict it; what it can not make itself, it says in a comment. found: how the state was found,
    "sampled", "searched", "simulated" or "known".
    """

    def __init__(self, message: str, state: State, promise: str, paste: str = "", found: str = "sampled"):
        super().__init__(message, state, promise, paste, found)  # all of it, so that it can be pickled
        self.message, self.state, self.promise, self.paste, self.found = message, state, promise, paste, found

    def __str__(self):
        reproduced = f"\n\nTo reproduce it:\n\n{_indented(self.paste)}" if self.paste else ""
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


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.splitlines())


def paste(plant: Plant, code: str, measured: str = MEASURED) -> str:
    """A script: imports, plant and robot, the state that `code` makes, and what is `measured` there.

    A robot that is bundled is called by its name; a plant of more than a robot, and the controller, are the test's own.
    """
    name = _bundled(plant)
    imports = ["import numpy as np", "", "from geomctrl import testing"]
    if name is None:
        made = ["# controller, plant: those of the test", "robot = plant.robot"]
    else:
        imports[-1] = "from geomctrl import Plant, models, testing"
        made = ["# controller: that of the test", f"robot = models.load({name!r})", "plant = Plant(robot)"]
    return "\n".join([*imports, "", *made, code, measured, ""])


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
