"""FMUs of laws and plants, run in FMPy: in a loop they do what `simulate` does; what they can not have is refused."""

import platform
import shutil
import subprocess
import tempfile
import zipfile
from functools import partial

import laws_with_state
import numpy as np
import pytest
from laws_with_state import OnGroup, Starting

import geomctrl as gc
from geomctrl import actuators, controllers, friction, models, references, testing
from geomctrl.control.compiled.law import CompiledLaw
from geomctrl.errors import ArgumentError, GeomctrlError
from geomctrl.interop import fmu as fmus

fmpy = pytest.importorskip("fmpy", reason="fmpy is not installed")
FMU3Slave = pytest.importorskip("fmpy.fmi3", reason="fmpy is too old").FMU3Slave
validate_fmu = pytest.importorskip("fmpy.validation", reason="fmpy is too old").validate_fmu
GCC = shutil.which("gcc")
pytestmark = pytest.mark.skipif(GCC is None, reason="no C compiler on this machine")


class Instance:
    """An FMU in FMPy. set: values before the first step."""

    def __init__(self, path, folder, **values):
        self.description = fmpy.read_model_description(str(path))
        self.variables = {x.name: x for x in self.description.modelVariables}
        self.fmu = FMU3Slave(
            guid=self.description.instantiationToken,
            unzipDirectory=fmpy.extract(str(path), unzipdir=tempfile.mkdtemp(dir=folder)),
            instanceName="one",
            modelIdentifier=self.description.coSimulation.modelIdentifier,
        )
        self.fmu.instantiate()
        self.begin(**values)

    def begin(self, **values):
        self.fmu.enterInitializationMode()
        for name, x in values.items():
            self[name] = x
        self.fmu.exitInitializationMode()

    def __getitem__(self, name):
        shape = tuple(map(int, self.variables[name].shape or ()))
        size = int(np.prod(shape))
        return np.reshape(self.fmu.getFloat64([self.variables[name].valueReference], nValues=size), shape)

    def __setitem__(self, name, x):
        self.fmu.setFloat64([self.variables[name].valueReference], np.ravel(x).tolist())

    def step(self, t, h):
        self.fmu.doStep(t, h)


# --- laws --------------------------------------------------------------------------------------------------------


class Sampled(laws_with_state.Sampled):
    def signals(self, t, q, v, z):
        return {"e [rad]": q - 0.3, "half <\n&>": 2.0 * z[0], "M": np.outer(q, v), "no": np.zeros(0)}


class Partial(gc.Controller):
    """No result where q[0] is zero."""

    robot = models.two_link()

    def start(self):
        return np.array([1.0, 2.0])

    def __call__(self, t, q, v, z):
        return gc.Command(np.linalg.inv(np.diag(q)) @ v, z)


def swinging(robot, home, kind=controllers.SlotineLi):
    return kind(robot, references.Sinusoids(robot, home, 0.2, 0.4))


# --- plants ------------------------------------------------------------------------------------------------------


def coupled():
    link = gc.inertia.from_com(1.0, (0.1, -0.05, 0.02), 0.02 * np.eye(3))
    turn = gc.Joint.revolute
    bodies = [
        gc.Body("a", None, turn((0, 1, 0), name="q1", armature=0.3), np.eye(4), link),
        gc.Body("b", "a", turn((0, 1, 0), name="follower", armature=0.2), np.eye(4), link),
        gc.Body("c", "b", turn((1, 0, 0), name="q3"), np.eye(4), link),
    ]
    return gc.Robot.build(bodies, couplings=[gc.Coupling("follower", {"q1": -0.5}, 0.1)])


class Tank(gc.Plant):
    """A plant with a state of its own, which leaks into a joint."""

    def start(self, q0, v0):
        return np.array([0.5 + q0[0]])

    def state_rate(self, t, q, v, tau, x):
        return np.array([-x[0] + np.sin(t) * q[1]])

    def net_torque(self, t, q, v, tau, x):
        return super().net_torque(t, q, v, tau, x) + np.array([x[0], 0.0])


ARM = models.two_link()
HOME = [0.3, 0.6]
TURNING = testing.random_robot(np.random.default_rng(3), ["free", "spherical", "revolute"], [-1, 0, 1])


def with_limits():
    """Position limits within reach, springs, friction of the model."""
    link = gc.inertia.from_com(1.0, (0.1, -0.05, 0.02), 0.02 * np.eye(3))
    joint = gc.Joint.revolute((0, 1, 0), name="one", lower=-0.1, upper=0.1, damping=0.1, friction=0.05, stiffness=2.0)
    return gc.Robot.build([gc.Body("a", None, joint, np.eye(4), link)])


PLANTS = {  # law and plant
    "both kinds of state": lambda: (Sampled(), gc.Plant(ARM)),
    "z_next": lambda: (Sampled(("z_next",)), gc.Plant(ARM)),
    "z on a group": lambda: (OnGroup(), gc.Plant(ARM)),
    "start(q0, v0)": lambda: (Starting(), gc.Plant(ARM)),
    "friction": lambda: (swinging(ARM, HOME), gc.Plant(ARM, gc.Friction(0.3, 0.2))),
    "LuGre": lambda: (swinging(ARM, HOME), gc.Plant(ARM, friction.LuGre(300.0, 0.2, 0.3, 0.05, 1.0, 0.1))),
    "lag and saturation": lambda: (
        swinging(ARM, HOME),
        gc.Plant(ARM, actuators=[actuators.Saturation(8.0), actuators.Lag(0.02)]),
    ),
    "springs in the drives": lambda: (
        swinging(ARM, HOME, controllers.ComputedTorque),
        gc.Plant(ARM, actuators=actuators.SeriesElasticity(8000.0, 0.1, 4.0)),
    ),
    "limits": lambda: (
        controllers.PDGravity(with_limits(), [0.5]),
        gc.Plant(with_limits(), stops=gc.JointStops(500.0)),
    ),
    "contact": lambda: (controllers.PDGravity(ARM, HOME), gc.Plant(ARM, None, gc.Contact(["tip"], 1e3, 0.5))),
    "own state": lambda: (Partial(), Tank(ARM)),
    "coupled": lambda: (swinging(coupled(), [0.1, -0.4], controllers.ComputedTorque), gc.Plant(coupled())),
    "flying": lambda: (
        swinging(models.quadrotor(), models.quadrotor().neutral(), controllers.Passivity),
        gc.Plant(models.quadrotor()),
    ),
    "ball joint": lambda: (swinging(TURNING, TURNING.neutral(), controllers.Passivity), gc.Plant(TURNING)),
}


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", ["springs in the drives", *sorted(PLANTS.keys() - {"springs in the drives"})])
def test_a_loop_of_two_fmus_is_a_simulation(name, tmp_path):
    law, plant = PLANTS[name]()
    robot, h, dt = plant.robot, 2e-3, 1e-3
    rng = np.random.default_rng(2)
    q0, v0 = robot.integrate(robot.neutral(), 0.2 + 0.1 * rng.normal(size=robot.nv)), rng.normal(size=robot.nv)
    options = gc.SimulationOptions(compiled=False, method="MK4")
    run = gc.simulate(plant, law, q0, v0, 0.1, dt, control_dt=h, monitors=None, options=options)
    files = gc.compile(law, robot).to_fmu(tmp_path / "law.fmu"), plant.to_fmu(tmp_path / "plant.fmu", dt=dt)
    for file in files:
        assert validate_fmu(str(file)) == []
    controller, body = Instance(files[0], tmp_path, q=q0, v=v0), Instance(files[1], tmp_path, q=q0, v=v0)
    close = partial(np.testing.assert_allclose, rtol=1e-11, atol=1e-11)
    for k in range(50):
        close(body["q"], run.q[2 * k])
        close(body["v"], run.v[2 * k])
        if run.x is not None:
            close(body["x"], run.x[2 * k])
        if run.z is not None:
            close(controller["z"], run.z[2 * k])
        controller["q"], controller["v"] = body["q"], body["v"]
        controller.step(k * h, h)
        close(controller["tau"], run.tau[2 * k])
        for signal, x in run.signals.items():
            if f"signal.{' '.join(signal.split())}" in controller.variables:
                close(controller[f"signal.{' '.join(signal.split())}"], x[2 * k])
        body["tau"] = controller["tau"]
        body.step(k * h, h)


@pytest.mark.slow
def test_a_step_that_is_longer_than_dt(tmp_path):
    """It is divided into equal steps, not longer than dt."""
    file = gc.Plant(ARM).to_fmu(tmp_path / "arm.fmu", HOME, dt=1e-2)
    coarse, fine = (Instance(file, tmp_path) for _ in range(2))
    coarse.step(0.0, 0.025)
    for k in range(3):
        fine.step(k * 0.025 / 3, 0.025 / 3)
    np.testing.assert_allclose(coarse["v"], fine["v"], rtol=1e-12)
    exact = gc.rollout(ARM, HOME, np.zeros(2), np.zeros(2), 0.025, 1e-4)
    np.testing.assert_allclose(coarse["q"], exact.q[-1], rtol=1e-7)


# --- the interface -----------------------------------------------------------------------------------------------


def test_variables_of_a_law(tmp_path):
    path = gc.compile(Sampled()).to_fmu(tmp_path / "a law.fmu", HOME)
    law = Instance(path, tmp_path)
    assert law.description.coSimulation.modelIdentifier == "a_law"
    assert law.description.modelName == "Sampled of two_link"
    kinds = {name: (x.causality, x.variability) for name, x in law.variables.items()}
    assert kinds == {
        "time": ("independent", "continuous"),
        **dict.fromkeys(("q", "v"), ("input", "continuous")),
        **dict.fromkeys(("z", "z_rate", "z_next"), ("local", "discrete")),
        **dict.fromkeys(("tau", "signal.e [rad]", "signal.half < &>", "signal.M"), ("output", "discrete")),
    }
    assert law["signal.M"].shape == (2, 2)
    np.testing.assert_array_equal(law["q"], HOME)
    np.testing.assert_allclose(law["tau"], Sampled()(0.0, np.array(HOME), np.zeros(2), np.array([0.1, 0, 0])).tau)


def test_outputs_during_the_initialization(tmp_path):
    """They follow the start values that have just been set."""
    law = Instance(gc.compile(Starting()).to_fmu(tmp_path / "law.fmu"), tmp_path)
    law.fmu.reset()
    law.fmu.enterInitializationMode(startTime=2.0)
    law["q"] = HOME
    np.testing.assert_allclose(law["z"], [*np.sin(HOME), 0.0, 0.0])
    np.testing.assert_allclose(law["tau"], -9.0 * np.sin(HOME))
    assert law["time"] == 2.0


def test_a_step_without_a_result_changes_nothing(tmp_path):
    law = Instance(gc.compile(Partial()).to_fmu(tmp_path / "law.fmu", [1.0, 2.0], [3.0, 4.0]), tmp_path)
    law.step(0.0, 0.1)
    before = {name: law[name] for name in ("time", "z", "tau")}
    np.testing.assert_allclose(before["z"], [1.1, 2.2])
    law["q"] = [0.0, 1.0]
    with pytest.raises(fmpy.fmi1.FMICallException, match=r"fmi3DoStep failed with status 2 \(discard\)"):
        law.step(0.1, 0.1)
    law["q"] = [np.nan, 1.0]
    with pytest.raises(fmpy.fmi1.FMICallException):
        law.step(0.1, 0.1)
    for name, x in before.items():
        np.testing.assert_array_equal(law[name], x)
    law["q"] = [1.0, 2.0]
    law.step(0.1, 0.1)
    np.testing.assert_allclose(law["z"], [1.21, 2.42])


@pytest.mark.slow
def test_states_are_kept_and_put_back(tmp_path):
    plant = Instance(Tank(ARM).to_fmu(tmp_path / "tank.fmu", HOME), tmp_path)
    plant["tau"] = [1.0, -2.0]
    plant.step(0.0, 0.1)
    kept = plant.fmu.getFMUState()
    stored = plant.fmu.serializeFMUState(kept)
    plant.step(0.1, 0.1)
    expected = [plant[name] for name in ("time", "q", "v", "x")]
    plant.fmu.reset()
    plant.begin()
    np.testing.assert_array_equal(plant["q"], HOME)
    for state in (kept, plant.fmu.deserializeFMUState(stored)):
        plant.fmu.setFMUState(state)
        plant.step(0.1, 0.1)
        for name, x in zip(("time", "q", "v", "x"), expected):
            np.testing.assert_array_equal(plant[name], x)
    plant.fmu.freeFMUState(kept)
    plant.fmu.terminate()
    plant.fmu.freeInstance()


def test_calls_that_are_not_allowed(tmp_path):
    plant = Instance(gc.Plant(ARM).to_fmu(tmp_path / "arm.fmu"), tmp_path)
    reference = plant.variables["tau"].valueReference
    for call in (
        lambda: plant.__setitem__("q", HOME),
        lambda: plant.__setitem__("time", 1.0),
        lambda: plant.fmu.setFloat64([reference], [1.0]),
        lambda: plant.fmu.getFloat64([99], nValues=1),
        lambda: plant.step(0.0, -0.1),
        lambda: plant.fmu.enterInitializationMode(),
        lambda: plant.fmu.getFloat32([reference], nValues=2),
    ):
        with pytest.raises(fmpy.fmi1.FMICallException):
            call()
    plant.step(0.0, 0.1)
    wrong = FMU3Slave(
        guid="another",
        unzipDirectory=fmpy.extract(str(tmp_path / "arm.fmu")),
        instanceName="two",
        modelIdentifier="arm",
    )
    with pytest.raises(Exception, match="instantiate"):
        wrong.instantiate()


@pytest.mark.slow
def test_the_archive(tmp_path):
    first, second = (
        gc.compile(OnGroup()).to_fmu(tmp_path / folder / "law.fmu")
        for folder in ("a", "b")
        if _folder(tmp_path, folder)
    )
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        archive.extractall(tmp_path / "c")
    sources = tmp_path / "c" / "sources"
    warnings = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-Wno-unused-function"]
    for file in ("law.c", "law_fmu.c"):
        extra = ["-Wno-unused-parameter"] if file == "law_fmu.c" else []
        subprocess.run([GCC, "-std=c99", *warnings, *extra, "-c", "-o", tmp_path / "o", sources / file], check=True)


def _folder(path, name):
    (path / name).mkdir()
    return True


# --- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "plant"),
    [
        ("changes", lambda: gc.Plant(ARM, changes=[(0.1, ARM.with_payload(0.1, (0, 0, 0)))])),
        ("f_ext that switches", lambda: gc.Plant(ARM, None, gc.Wrench("tip", np.ones(6), 0.1, 0.2))),
        ("sensors", lambda: gc.Plant(ARM, sensors=gc.sensors.Encoder(12))),
        ("actuators that act at samples", lambda: gc.Plant(ARM, actuators=actuators.TransportDelay(0.01))),
    ],
)
def test_plants_that_are_refused_by_name(name, plant, tmp_path):
    with pytest.raises(ArgumentError, match=f"plant: expected one without {name}, which"):
        plant().to_fmu(tmp_path / "plant.fmu")
    assert list(tmp_path.iterdir()) == []


def test_plants_whose_code_would_not_be_theirs(tmp_path):
    class Random(gc.Plant):
        def net_torque(self, t, q, v, tau, x):
            return tau + drawn.normal(size=2)

    class Reading(gc.Plant):
        def net_torque(self, t, q, v, tau, x):
            return tau + (1.0 if gains.append(0.0) is None and len(gains) % 2 else 2.0)

    class Printing(gc.Plant):
        def net_torque(self, t, q, v, tau, x):
            return tau + float(f"{q[0]}")

    class Raising(gc.Plant):
        def net_torque(self, t, q, v, tau, x):
            raise RuntimeError("stop")

    drawn, gains = np.random.default_rng(0), []
    for kind in (Random, Reading, Printing, Raising):
        with pytest.raises(GeomctrlError):
            kind(ARM).to_fmu(tmp_path / "plant.fmu")
    assert list(tmp_path.iterdir()) == []


def test_arguments(tmp_path):
    law, plant = gc.compile(Sampled()), gc.Plant(ARM)
    for path in ("law", "law.zip", tmp_path):
        with pytest.raises(ArgumentError, match=r"path: expected a file name that ends with \.fmu"):
            law.to_fmu(path)
    with pytest.raises(ArgumentError, match="path"):
        law.to_fmu(3)
    for name in ("", "3r", "a b", "math", 7):
        with pytest.raises(ArgumentError, match="name: expected"):
            law.to_fmu(tmp_path / "x.fmu", name=name)
    for target in (law, plant):
        with pytest.raises(ArgumentError, match="q0"):
            target.to_fmu(tmp_path / "x.fmu", np.zeros(3))
        with pytest.raises(ArgumentError, match="v0"):
            target.to_fmu(tmp_path / "x.fmu", None, [np.nan, 0.0])
    for dt in (0.0, -1.0, np.inf, "1"):
        with pytest.raises(ArgumentError, match="dt: expected a positive number"):
            plant.to_fmu(tmp_path / "x.fmu", dt=dt)
    assert list(tmp_path.iterdir()) == []


def test_what_the_machine_does_not_have(tmp_path, monkeypatch):
    plant = gc.Plant(ARM)
    with monkeypatch.context() as patch:
        patch.setattr(platform, "machine", lambda: "riscv64")
        with pytest.raises(
            GeomctrlError, match=r"compiles for Linux, Darwin, Windows on aarch64, x86_64, got .*riscv64"
        ):
            plant.to_fmu(tmp_path / "x.fmu")
    with monkeypatch.context() as patch:
        patch.setattr(fmus, "COMPILERS", ("no_compiler",))
        with pytest.raises(GeomctrlError, match="needs a C compiler: none of no_compiler is on the path"):
            plant.to_fmu(tmp_path / "x.fmu")
    monkeypatch.setitem(__import__("sys").modules, "fmpy", None)
    with pytest.raises(GeomctrlError, match=r"to_fmu needs the optional package fmpy: pip install 'geomctrl\[fmu\]'"):
        plant.to_fmu(tmp_path / "x.fmu")
    assert list(tmp_path.iterdir()) == []
    assert not hasattr(CompiledLaw, "to_fmi")
