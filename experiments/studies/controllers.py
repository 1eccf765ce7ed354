"""Which controller tracks best on a realistic robot? All bundled tracking laws on the Panda, with equal tuning.

Problem: on paper every law converges. A real arm has encoders with finite resolution, velocities from their
differences, a delay, drives with limits, rotors and friction. Each law runs on such a plant at 1 kHz, with gains from
one rule (`control.tuning.design`), so that laws are compared and not stiffnesses.

Result: the root mean square of the tracking error, the largest torque and the error at the end, and the best law by
each. The model of the laws has the rotors but no friction, which adaptive laws may learn.

    python experiments/studies/controllers.py [--seconds 6]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

import geomctrl as gc
from geomctrl import actuators, controllers, models, references, sensors
from geomctrl.control.tuning import Tuning, design

sys.path.insert(0, str(Path(__file__).parents[1]))
from lib.script import run_script

HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])  # rad
TOOL = "panda_hand_tcp"
DT = 1e-3  # s, of the law, the integrator and the encoders
DELAY = 1e-3  # s, from the command to the drive
CUTOFF = 60.0  # Hz, of the filter of differences
BITS = 12  # of the encoders
ARMATURE = np.array([0.6, 0.6, 0.5, 0.5, 0.2, 0.2, 0.2])  # kg m^2, rotors behind gears of 100
FRICTION = gc.Friction([0.5, 0.5, 0.5, 0.5, 0.2, 0.2, 0.2], [0.8, 0.8, 0.8, 0.8, 0.3, 0.3, 0.3], smoothing=0.02)
LATENCY = DT + DELAY + 1.0 / (2.0 * np.pi * CUTOFF)  # s, that the gains must bear
SET_POINT = {"pd-gravity"}  # laws that hold a posture and do not track
WITHOUT_FRICTION = {"drem"}  # laws that do not learn friction here, because they take few parameters only
ON_FRAMES = ("OperationalSpace", "CartesianImpedance", "GeometricImpedance")


class Result(NamedTuple):
    """Result of one law: errors [rad], torques [N m]; ended: why the run stopped early, if it did."""

    law: str
    rms: float
    peak: float
    final: float
    ended: str = ""


CRITERIA = {"tracking RMS": "rms", "peak torque": "peak", "final error": "final"}


def model() -> gc.Robot:
    """The model of the laws."""
    return models.panda().with_armature(ARMATURE)


def plant(robot: gc.Robot) -> gc.Plant:
    """The true arm: with friction, drives and encoders."""
    drives = [actuators.TransportDelay(DELAY), actuators.Saturation(robot.limits.effort)]
    return gc.Plant(robot, FRICTION, actuators=drives, sensors=[sensors.Encoder(BITS, cutoff=CUTOFF)])


def motion(robot: gc.Robot) -> references.Sinusoids:
    phases = 2.0 * np.pi * np.arange(7) / 7.0
    return references.Sinusoids(robot, HOME, 0.3, 0.3, phases, start_at_rest=1.0)


def laws(robot: gc.Robot, seconds: float) -> Iterator[tuple[str, Callable[[], object]]]:
    """(name, function that creates it) for every bundled tracking law, with the gains of the rule."""
    wanted = motion(robot)
    tuning = Tuning(robot, wanted, design(robot, LATENCY, wanted, seconds), seconds, adapt="load",
                    load_body=robot.body_names[-1], friction=gc.Friction(smoothing=0.1))  # fmt: skip
    for name, law in controllers.classes(tuned=True).items():
        if name not in SET_POINT:
            law_tuning = replace(tuning, friction=None) if name in WITHOUT_FRICTION else tuning
            yield law.__name__, lambda law=law, law_tuning=law_tuning: law.tuned(law_tuning)
    for name in ON_FRAMES:
        yield name, lambda name=name: getattr(controllers, name)(robot, wanted, TOOL)


def tracked(name: str, make: Callable[[], object], robot: gc.Robot, seconds: float) -> Result:
    q0, v0, _ = motion(robot)(0.0)
    try:
        run = gc.simulate(plant(robot), make(), q0, v0, seconds, DT, control_dt=DT, monitors=None)
    except gc.SimulationError as error:
        return Result(name, np.inf, np.inf, np.inf, str(error))
    error = np.linalg.norm(run.q - run.desired.q, axis=1)
    rms = float(np.sqrt(np.mean(error**2)))
    return Result(name, rms, float(np.abs(run.applied).max()), float(error[-1]))


def results(seconds: float, only: str | None = None) -> list[Result]:
    robot = model()
    return [tracked(name, make, robot, seconds) for name, make in laws(robot, seconds) if only in (None, name)]


def winners(all_results: list[Result]) -> dict[str, str]:
    """The best law by criterion."""
    return {criterion: min(all_results, key=lambda x: getattr(x, field)).law for criterion, field in CRITERIA.items()}


def main(*, seconds: float = 6.0) -> None:
    start = time.perf_counter()
    all_results = results(seconds)
    print(f"{len(all_results)} laws on the Panda at {1.0 / DT:.0f} Hz, {BITS}-bit encoders, {1e3 * DELAY:g} ms delay,"
          f" torque limits, rotors and friction: {seconds:g} s each, {time.perf_counter() - start:.0f} s")  # fmt: skip
    print(f"{'law':22s} {'RMS error':>12s} {'peak torque':>12s} {'final error':>12s}")
    for x in sorted(all_results, key=lambda x: x.rms):
        numbers = f"{1e3 * x.rms:7.2f} mrad {x.peak:8.1f} N m {1e3 * x.final:7.2f} mrad"
        print(f"{x.law:22s} {numbers if not x.ended else x.ended}")
    for criterion, law in winners(all_results).items():
        print(f"best by {criterion}: {law}")


if __name__ == "__main__":
    run_script(main)
