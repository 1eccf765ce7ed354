"""Constants of stability theorems for seven robots: the table of docs/how-to/bounds.md.

    python experiments/studies/bounds.py

Prints each constant as proved and as found by the search, and the CPU time of the call.
"""

import time

import numpy as np

import geomctrl as gc
from geomctrl import models


def arm_in_space() -> gc.Robot:
    """A turret, an upper arm of 0.5 m and a forearm of 0.4 m, with revolute joints."""

    def rod(m, length, radius):
        across = m * (length**2 / 12 + radius**2 / 4)
        return gc.inertia.from_com(m, (length / 2, 0.0, 0.0), np.diag([m * radius**2 / 2, across, across]))

    turret = gc.inertia.from_com(4.0, (0.0, 0.0, -0.1), np.diag([0.05, 0.05, 0.04]))
    base, shoulder, elbow = (gc.se3.exp([0, 0, 0, *x]) for x in ((0.0, 0.0, 0.4), (0.0, 0.1, 0.05), (0.5, -0.05, 0.0)))
    pitch = gc.Joint.revolute((0, -1, 0))
    return gc.Robot.build(
        [
            gc.Body("turret", None, gc.Joint.revolute((0, 0, 1)), base, turret),
            gc.Body("upper", "turret", pitch, shoulder, rod(3.0, 0.5, 0.05)),
            gc.Body("fore", "upper", pitch, elbow, rod(2.0, 0.4, 0.04)),
        ]
    )


def main() -> None:
    for name, robot, error in (
        ("two links", models.two_link(), None),
        ("two links, every parameter off by 10 %", models.two_link(), 0.1),
        ("arm with three revolute joints in space", arm_in_space(), None),
        ("Panda", models.panda(), None),
        ("Panda, every parameter off by 5 %", models.panda(), 0.05),
        ("UR10", models.ur10(), None),
        ("quadruped with its free base", models.quadruped(), None),
    ):
        started = time.process_time()
        bounds = robot.bounds(parameters=error)
        seconds = time.process_time() - started
        constants = (f"{x.value:.4g}, {x.sampled:.4g}" for x in (bounds.m1, bounds.m2, bounds.k_C, bounds.k_g))
        print(f"| {name} | {' | '.join(constants)} | {seconds:.0f} s |", flush=True)


if __name__ == "__main__":
    main()
