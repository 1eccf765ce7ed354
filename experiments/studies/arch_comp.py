"""Reachability problems of ARCH-COMP that are loops of geomctrl: docs/how-to/tubes.md.

    python experiments/studies/arch_comp.py [--quick]

- Robot arm: a rod that turns (3 kg, 1 m) and a mass of 1 kg that slides along it, under tau = -2 theta - 2 theta' and
  F = -r - r', from theta, r in [1.3, 1.7] and rates in [-0.2, 0.2], for 10 s. Model: Angeli, Sontag and Wang, A
  characterization of integral input-to-state stability, IEEE TAC 45 (2000). Gains and box are chosen here. Widths are
  compared with those of sampled motions; published ones were not found.
- Quadrotor of 12 states: Geretti et al., ARCH-COMP 2020 category report, nonlinear dynamics, in the form of its
  equations, in `tests/testing/test_published_tubes.py`.

Nothing is tuned but the number of pieces. Prints widths, those of sampled motions, and CPU time.
"""

import sys
import time

import numpy as np

import geomctrl as gc
from geomctrl import testing

START = np.array([1.5, 1.5, 0.0, 0.0]), np.array([0.2, 0.2, 0.2, 0.2])


def robot_arm():
    """(Robot, law, f(t, y)) of the robot arm; f is written by hand."""
    rod = gc.inertia.from_com(3.0, (0.5, 0.0, 0.0), np.diag([1e-3, 0.25, 0.25]))
    mass = gc.inertia.from_com(1.0, (0.0, 0.0, 0.0), 1e-9 * np.eye(3))
    turn, slide = gc.Joint.revolute((0, 0, 1)), gc.Joint.prismatic((1, 0, 0))
    bodies = [gc.Body("rod", None, turn, np.eye(4), rod), gc.Body("mass", "rod", slide, np.eye(4), mass)]
    stiffness, damping = np.array([2.0, 1.0]), np.array([2.0, 1.0])

    def law(t, q, v, z):
        return gc.Command(-stiffness * q - damping * v)

    def f(t, y):
        angle, r, turning, sliding = y
        turning_rate = (-2.0 * r * turning * sliding - 2.0 * angle - 2.0 * turning) / (r**2 + 1.0)
        return np.array([turning, sliding, turning_rate, r * turning**2 - r - sliding])

    return gc.Robot.build(bodies, gravity=(0.0, 0.0, 0.0)), law, f


def main(quick=False):
    robot, law, _ = robot_arm()
    centre, half = START
    testing.reach(robot, law, (centre, centre), 0.1)  # compiles what the others share
    for share in (0.05,) if quick else (0.05, 0.25, 0.5, 1.0):
        started = time.process_time()
        tube = testing.reach(robot, law, (centre - share * half, centre + share * half), 10.0, budget=1024)
        seconds = time.process_time() - started
        lower, upper = tube.box(tube.until)
        x = tube._motions(256)[1][:, -1]
        print(f"{share:g} of the start: until {tube.until:g} s, {len(tube.pieces)} pieces, {seconds:.1f} s")
        print(f"  widths at the end {np.round(upper - lower, 5)}, of 256 motions {np.round(np.ptp(x, 0), 5)}")


if __name__ == "__main__":
    main("--quick" in sys.argv)
