"""`Plant.to_c`: NAME_start, NAME_rate and NAME_step with friction, springs, stops, actuators and joints on a group."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import actuators, friction, models
from geomctrl.errors import ArgumentError

GCC = shutil.which("gcc") or shutil.which("cc")
FLAGS = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic"]
ARM = models.two_link()
pytestmark = pytest.mark.skipif(GCC is None, reason="no C compiler on this machine")


def with_springs():
    link = gc.inertia.from_com(1.0, (0.3, 0.0, 0.02), 0.02 * np.eye(3))
    joint = gc.Joint.revolute((0, 1, 0), name="j", lower=-0.5, upper=0.5, stiffness=20.0, rest=0.3)
    return gc.Robot.build([gc.Body("bar", None, joint, np.eye(4), link)])


PLANTS = {
    "friction": lambda: gc.Plant(ARM, gc.Friction(0.3, 0.2)),
    "LuGre": lambda: gc.Plant(ARM, friction.LuGre(20.0, 0.2, 0.3, 0.05, 1.0, 0.1)),
    "springs and stops": lambda: gc.Plant(with_springs(), gc.Friction(0.1, 0.0), stops=gc.JointStops(500.0)),
    "actuators": lambda: gc.Plant(ARM, actuators=[actuators.Saturation(2.0), actuators.Lag(0.02)]),
    "on a group": lambda: gc.Plant(models.quadrotor(), gc.Friction(0.05, 0.0)),
    "contact": lambda: gc.Plant(ARM, None, gc.Contact(["tip"], 1e3, 0.5)),
}


def pointers(*arrays):
    return [a.ctypes.data_as(ctypes.c_void_p) for a in arrays]


@pytest.mark.quick(3)
@pytest.mark.parametrize("name", PLANTS)
def test_steps_in_c_are_a_simulation(name, tmp_path):
    """A plant under a constant command, from a random state."""
    plant, h = PLANTS[name](), 1e-3
    robot, rng = plant.robot, np.random.default_rng(1)
    tau = 3.0 * rng.normal(size=plant.inputs)
    q0, v0 = robot.integrate(robot.neutral(), 0.3 * rng.normal(size=robot.nv)), rng.normal(size=robot.nv)
    options = gc.SimulationOptions(method="MK4", compiled=False)
    run = gc.simulate(plant, lambda t, q, v, z: gc.Command(tau), q0, v0, 0.1, h, monitors=None, options=options)
    header, source, test = plant.to_c(tmp_path, "body")
    assert header.name == "body.h"
    subprocess.run([GCC, *FLAGS, "-o", tmp_path / "test", source, test, "-lm"], check=True)
    assert subprocess.run([tmp_path / "test"]).returncode == 0
    subprocess.run([GCC, *FLAGS, "-fPIC", "-shared", "-o", tmp_path / "body.so", source, "-lm"], check=True)
    library, double = ctypes.CDLL(str(tmp_path / "body.so")), ctypes.c_double
    x = np.zeros(0 if run.x is None else run.x.shape[1])
    if x.size:
        assert library.body_start(*pointers(q0, v0, x)) == 1
    y = np.concatenate((q0, v0, x))
    for k, t in enumerate(run.t):
        expected = np.concatenate((run.q[k], run.v[k], [] if run.x is None else run.x[k]))
        np.testing.assert_allclose(y, expected, rtol=1e-10, atol=1e-10)
        assert library.body_step(double(t), double(h), *pointers(tau, y)) == 1


def test_bad_arguments(tmp_path):
    plant = gc.Plant(ARM)
    for path in (3, None, ""):
        with pytest.raises(ArgumentError, match="path: expected a path, got"):
            plant.to_c(path)
    for name in ("math", "3r", 7):
        with pytest.raises(ArgumentError, match="name: expected"):
            plant.to_c(tmp_path, name)
    sensing = gc.Plant(ARM, sensors=gc.sensors.Encoder(12))
    with pytest.raises(
        ArgumentError, match="plant: expected one without sensors, which C code of a plant does not have"
    ):
        sensing.to_c(tmp_path)
    with pytest.raises(ArgumentError, match="precision"):
        plant.to_c(tmp_path, precision="float")
    assert list(tmp_path.iterdir()) == []
