"""Robots that start at rest or nearly so: no monitor reports rounding as a violation."""

import numpy as np
import pytest
from oracles import without_limits

import geomctrl as gc
from geomctrl import models


class Nothing:
    """No torque: the robot falls."""

    def __init__(self, n):
        self.n = n

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(np.zeros(self.n))


@pytest.mark.parametrize("speed", [0.0, 1e-12, 1e-6])
@pytest.mark.parametrize("name", models.names())
def test_no_monitor_stops_a_fall_from_rest(name, speed):
    robot = without_limits(models.load(name))  # the neutral configuration is outside the limits of some robots
    start = robot.neutral(), np.full(robot.nv, speed)
    run = gc.simulate(
        robot, Nothing(robot.nv), *start, 0.02, 1e-3, options=gc.SimulationOptions(strict=True, compiled=False)
    )
    assert run.ok
    assert run.monitors["skew"].worst < 1e-13
