"""How large a box of initial states can `reach` enclose for a robot with seven joints?

Problem: the Panda 0.05 rad in each joint from its usual pose, at rest, under laws with their default gains, which are
in proportion to the inertia that each joint moves. The box has the same half width in q [rad] and v [rad/s], in one
piece.

Result: the time until which all motions are enclosed, CPU time, and the largest width of the tube at the end relative
to that of sampled motions. docs/how-to/tubes.md has the table.

    python experiments/studies/panda_tubes.py [--law Passivity] [--half-width 0.01] [--t-end 0.5]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from cyclopts import Parameter, validators

from geomctrl import controllers, models, references, testing

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.script import run_script

Q_D = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])  # rad
OFFSET = 0.05  # rad
SAMPLES = 256
CASES = [("Passivity", 0.004), ("Passivity", 0.01), ("Passivity", 0.015), ("PDGravity", 0.01), ("ComputedTorque", 0.1)]

Law = Literal["Passivity", "PDGravity", "ComputedTorque"]
Positive = Annotated[float, Parameter(validator=validators.Number(gt=0))]


def tube_of(law: str, half_width: float, t_end: float) -> testing.Tube:
    robot = models.panda()
    target = Q_D if law == "PDGravity" else references.hold(robot, Q_D)
    start = np.append(Q_D + OFFSET, np.zeros(7))
    controller = getattr(controllers, law)(robot, target)
    return testing.reach(robot, controller, (start - half_width, start + half_width), t_end, budget=1)


def main(*, law: Law | None = None, half_width: Positive = 0.01, t_end: Positive = 0.5) -> None:
    """law: one case instead of the table, with the half width."""
    tube_of("ComputedTorque", 1e-3, 1e-3)  # compiles what the others share
    for name, half in CASES if law is None else [(law, half_width)]:
        started = time.process_time()
        tube = tube_of(name, half, t_end)
        seconds = time.process_time() - started
        steps = sum(len(piece.segments) for piece in tube.pieces)
        line = f"{name} +-{half:g}: until {tube.until:g} s, {steps} steps, {seconds:.0f} s"
        if tube:
            lower, upper = tube.box(tube.until)
            states = tube._motions(SAMPLES)[1]
            ratio = (upper - lower) / np.ptp(states[:, -1], 0)
            line += f", widths {ratio.min():.3g} to {ratio.max():.3g} times those of {SAMPLES} motions"
        print(line, flush=True)


if __name__ == "__main__":
    run_script(main)
