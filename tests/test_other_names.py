"""Unknown names raise an error with the equivalent name in geomctrl, and that name exists."""

import importlib
import inspect
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

import geomctrl as gc
from geomctrl import models
from geomctrl.other_names import (
    OF_PLANT,
    OF_SIMULATE,
    OF_SIMULATION_OPTIONS,
    OF_SWEEP,
    ON_MODULE,
    ON_PACKAGE,
    ON_ROBOT,
    ON_RUN,
)

ROBOT = models.two_link()
CODE = re.compile(r"(?:geomctrl|robot)\.[\w.]+")


def resolved(path):
    """The object of "robot.mass_matrix" or "geomctrl.papers.curvature"."""
    first, *names = path.rstrip(".").split(".")
    value = ROBOT if first == "robot" else gc
    for name in names:
        value = getattr(value, name)
    return value


@pytest.mark.parametrize("name", sorted(ON_ROBOT))
def test_of_a_robot(name):
    assert not hasattr(ROBOT, name), "it is a name here: take it off the table"
    for owner in (ROBOT, gc.Robot):
        with pytest.raises(AttributeError) as caught:
            getattr(owner, name)
    message = str(caught.value)
    assert message.startswith(f"Robot has no attribute {name!r}; use ")
    paths = CODE.findall(message)
    assert paths
    assert all(resolved(path) is not None for path in paths)
    assert not re.search(r"[{}](?!\"frame\": T)", message.replace('{"frame": T}', ""))


def test_drakes_bias_has_no_gravity_and_its_gravity_the_other_sign():
    q, v = np.array([0.3, -0.8]), np.array([1.0, 2.0])
    names = "CalcGravityGeneralizedForces", "CalcBiasTerm"
    gravity, bias = (eval(ON_ROBOT[name].partition(", w")[0], {"robot": ROBOT, "q": q, "v": v}) for name in names)
    a = np.linalg.solve(ROBOT.mass_matrix(q), gravity - bias)  # Drake's equation of motion
    np.testing.assert_allclose(a, ROBOT.forward_dynamics(q, v, np.zeros(2)), rtol=1e-12)


@pytest.mark.parametrize("name", sorted(ON_PACKAGE))
def test_of_the_package(name):
    with pytest.raises(AttributeError) as caught:
        getattr(gc, name)
    message = str(caught.value)
    assert message.startswith(f"module 'geomctrl' has no attribute {name!r}; use ")
    paths = CODE.findall(message.partition("; use ")[2])
    assert paths
    for path in paths:
        assert path.startswith("run.") or resolved(path) is not None


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, table in sorted(ON_MODULE.items()) for name in sorted(table)]
)
def test_of_a_module(module, name):
    with pytest.raises(AttributeError) as caught:
        getattr(getattr(gc, module), name)
    message = str(caught.value)
    assert message.startswith(f"module 'geomctrl.{module}' has no attribute {name!r}; use ")
    paths = CODE.findall(message.partition("; use ")[2])
    assert paths
    assert all(resolved(path) is not None for path in paths)


@pytest.mark.parametrize(
    ("module", "name", "home"),
    [
        ("", "Saturation", "actuators"),
        ("", "Passivity", "controllers"),
        ("", "assert_lyapunov", "testing"),
        ("", "Dataset", "identification"),
        ("", "curvature", "papers"),
        ("controllers", "Sinusoids", "references"),
        ("actuators", "Plant", ""),
        ("monitors", "PeakTorque", "measures"),
        ("friction", "Encoder", "sensors"),
        ("testing", "identify", "identification"),
        ("measures", "panda", "models"),
    ],
)
def test_a_name_of_another_module_is_found_there(module, name, home):
    with pytest.raises(AttributeError) as caught:
        getattr(getattr(gc, module) if module else gc, name)
    path = ".".join(x for x in ("geomctrl", home, name) if x)
    assert str(caught.value).endswith(f" has no attribute {name!r}; use {path}")
    assert resolved(path) is not None
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # as from another process


def test_asking_whether_a_module_has_a_name_imports_nothing():
    """`from package import file` asks the package first, while other modules may be half imported."""
    code = "import sys, geomctrl; before = set(sys.modules); assert not hasattr(geomctrl, 'zzz')\n"
    code += "assert {m for m in set(sys.modules) - before if m.startswith('geomctrl')} <= {'geomctrl.other_names'}"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr == ""
    assert importlib.import_module("geomctrl.control.actuators.limits")
    with pytest.raises(AttributeError, match=r"^module 'geomctrl.actuators' has no attribute '_private'$"):
        _ = gc.actuators._private


@pytest.mark.parametrize("name", sorted(ON_RUN))
def test_of_a_run(name):
    run = gc.simulate(ROBOT, gc.controllers.PDGravity(ROBOT, [0.1, 0.2], kp=20.0, kd=5.0), [0, 0], [0, 0], 0.01, 1e-3)
    with pytest.raises(AttributeError) as caught:
        getattr(run, name)
    message = str(caught.value)
    assert message.startswith(f"Run has no attribute {name!r}; use ")
    attributes = re.findall(r"\brun\.(\w+)", message)
    assert all(getattr(run, attribute) is not None for attribute in attributes)
    assert attributes or "geomctrl.Run.load" in message


@pytest.mark.parametrize(
    ("theirs", "ours"), [("LOCAL", "body"), ("WORLD", "spatial"), ("LOCAL_WORLD_ALIGNED", "hybrid")]
)
def test_pinocchios_frames_of_a_jacobian(theirs, ours):
    with pytest.raises(gc.ArgumentError, match=f"Pinocchio's {theirs} is '{ours}' here$"):
        ROBOT.jacobian([0.1, 0.2], "tip", theirs)


@pytest.mark.parametrize(
    ("typed", "here"),
    [
        (lambda q, v: ROBOT.crba(q), lambda q, v: ROBOT.mass_matrix(q)),
        (lambda q, v: ROBOT.rnea(q, v, v), lambda q, v: ROBOT.inverse_dynamics(q, v, v)),
        (lambda q, v: ROBOT.aba(q, v, v), lambda q, v: ROBOT.forward_dynamics(q, v, v)),
    ],
)
def test_messages_can_be_followed(typed, here):
    q, v = np.array([0.1, 0.2]), np.array([0.3, -0.4])
    with pytest.raises(AttributeError) as caught:
        typed(q, v)
    call = str(caught.value).partition("use ")[2].replace("robot.", "")
    expected = here(q, v)
    result = eval(f"robot.{call}", {"robot": ROBOT, "q": q, "v": v, "a": v, "tau": v})
    np.testing.assert_array_equal(result, expected)


def test_a_slip_of_the_keyboard_is_answered_with_near_names():
    with pytest.raises(AttributeError, match=r"did you mean mass_matrix, "):
        _ = ROBOT.mass_matrx
    with pytest.raises(AttributeError, match=r"did you mean simulate, "):
        _ = gc.simulat
    with pytest.raises(AttributeError, match=r"has no attribute 'zzzz'$"):
        _ = ROBOT.zzzz


def test_calling_gravity_names_the_method():
    with pytest.raises(TypeError, match=r"robot\.gravity_force\(q\)"):
        ROBOT.gravity([0.0, 0.0])
    assert type(2.0 * ROBOT.gravity) is np.ndarray
    assert type(ROBOT.gravity + ROBOT.gravity) is np.ndarray
    assert not ROBOT.gravity.flags.writeable
    np.testing.assert_array_equal(ROBOT.with_gravity(ROBOT.gravity).gravity, ROBOT.gravity)


@pytest.mark.parametrize(
    "term", ["mass_matrix", "terms", "jacobian", "to_c", "with_gravity", "neutral", "regressor", "bounds"]
)
@pytest.mark.parametrize("owner", [gc.Robot, type("Own", (gc.Robot,), {})])
def test_terms_called_on_the_class_say_what_they_need(owner, term):
    with pytest.raises(gc.ArgumentError, match=rf"^robot: expected a Robot, got 3; call it as robot\.{term}\("):
        getattr(owner, term)(3, [0.0, 0.0])


def test_terms_of_the_class_are_those_of_its_robots():
    q = np.array([0.1, 0.2])
    np.testing.assert_array_equal(gc.Robot.mass_matrix(ROBOT, q), ROBOT.mass_matrix(q))
    assert gc.Robot.mass_matrix is gc.Robot.mass_matrix
    assert gc.Robot.mass_matrix.__doc__ == ROBOT.mass_matrix.__doc__


def test_robots_of_urdf_files(tmp_path):
    path = models.save(ROBOT, tmp_path / "two_link.urdf")
    q = np.array([0.3, -0.2])
    for robot in (gc.load_urdf(path), models.load_urdf(path)):
        np.testing.assert_allclose(robot.mass_matrix(q), ROBOT.mass_matrix(q), rtol=1e-12)
        assert set(robot.frame_names) >= {"world", *robot.body_names}
        assert all(robot.frame(name).name == name for name in robot.frame_names)


ARGUMENT_TABLES = {"simulate": OF_SIMULATE, "simulate_many": OF_SIMULATE, "Plant": OF_PLANT}
ARGUMENT_TABLES |= {"SimulationOptions": OF_SIMULATION_OPTIONS, "sweep": OF_SWEEP}


@pytest.mark.parametrize(
    ("function", "name"), [(function, name) for function, table in ARGUMENT_TABLES.items() for name in table]
)
def test_of_an_argument(function, name):
    parameters = inspect.signature(getattr(gc, function)).parameters
    assert name not in parameters, "it is an argument: take it off the table"
    with pytest.raises(gc.ArgumentError) as caught:
        getattr(gc, function)(ROBOT, **{name: 1.0})
    message = str(caught.value)
    assert message.startswith(f"{name}: geomctrl.{function} has no such argument; use ")
    hint = message.partition("; use ")[2]
    for path in CODE.findall(hint):
        assert resolved(path) is not None
    own = re.match(r"(\w+)=", hint)
    assert own is None or own[1] in parameters or function == "simulate_many"
    of_options = re.search(r"SimulationOptions\((\w+)=", hint)
    assert of_options is None or of_options[1] in inspect.signature(gc.SimulationOptions).parameters


def test_an_argument_that_is_written_wrong():
    with pytest.raises(
        gc.ArgumentError, match=r"^actuator_: geomctrl.Plant has no such argument; did you mean actuators\? It takes"
    ):
        gc.Plant(ROBOT, actuator_=None)  # pyright: ignore[reportCallIssue]
    with pytest.raises(gc.ArgumentError, match=r"^zzz: .*; expected method, every, .*, device, precision$"):
        gc.SimulationOptions(zzz=1)  # pyright: ignore[reportCallIssue]
    with pytest.raises(gc.ArgumentError, match=r"^tol: geomctrl.sweep has no such argument; use options="):
        gc.sweep(None, {}, [], 1.0, 1e-3, tol=1e-9)  # pyright: ignore[reportCallIssue]
    with pytest.raises(gc.ArgumentError, match=r"^v0, t_end, dt: missing in the call of geomctrl.simulate; expected "):
        gc.simulate(ROBOT, controller=None, q0=[0.0, 0.0])  # pyright: ignore[reportCallIssue]
    with pytest.raises(
        gc.ArgumentError, match=r"^geomctrl.Friction: expected at most 3 arguments by position, .* got 4"
    ):
        gc.Friction(0.1, 0.2, 0.3, 0.4)  # pyright: ignore[reportCallIssue]
    with pytest.raises(gc.ArgumentError, match=r"^geomctrl.testing.lyapunov_at: multiple values for argument 'plant'"):
        gc.testing.lyapunov_at(None, ROBOT, 0.0, [0, 0], [0, 0], plant=ROBOT)  # pyright: ignore[reportCallIssue]


CLASSES = {f"controllers.{law.__name__}": law for law in gc.controllers.classes().values()}
CLASSES |= {f"actuators.{name}": getattr(gc.actuators, name) for name in ("Saturation", "Lag", "DCMotor")}
CLASSES |= {"sensors.Encoder": gc.sensors.Encoder, "references.Sinusoids": gc.references.Sinusoids, "Body": gc.Body}


@pytest.mark.parametrize("name", CLASSES)
def test_of_a_constructor(name):
    kind = CLASSES[name]
    parameters = inspect.signature(kind).parameters
    required = [x for x, p in parameters.items() if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    with pytest.raises(gc.ArgumentError, match=rf"^qzzz: geomctrl.{name} has no such argument; expected \w+"):
        kind(**dict.fromkeys(required), qzzz=1)
    if required:
        missing = ", ".join(required)
        with pytest.raises(gc.ArgumentError, match=rf"^{missing}: missing in the call of geomctrl.{name}; expected"):
            kind()


def test_of_methods():
    with pytest.raises(
        gc.ArgumentError, match=r"^frames: geomctrl.Robot.to_c has .* did you mean frame\? It takes path"
    ):
        ROBOT.to_c("x", frames="tip")  # pyright: ignore[reportCallIssue]
    with pytest.raises(gc.ArgumentError, match=r"^model: missing .* of geomctrl.Robot.from_mujoco; expected model$"):
        gc.Robot.from_mujoco()  # pyright: ignore[reportCallIssue]
    with pytest.raises(gc.ArgumentError, match=r"^Robot: expected .*, got 'panda.urdf'; use geomctrl.load_urdf"):
        gc.Robot("panda.urdf")  # pyright: ignore[reportCallIssue]
    run = gc.simulate(ROBOT, gc.controllers.PDGravity(ROBOT, [0.1, 0.2]), [0, 0], [0, 0], 0.01, 1e-3)
    with pytest.raises(gc.ArgumentError, match=r"^geomctrl.Run.to_mcap: expected at most 1 .*, path, got 2$"):
        run.to_mcap("x.mcap", 3)  # pyright: ignore[reportCallIssue]


def test_constructors_of_users_and_their_errors():
    class Mine(gc.controllers.PDGravity):
        def __init__(self, robot, stiffness):
            super().__init__(robot, [0.1, 0.2], stif=stiffness)

    with pytest.raises(gc.ArgumentError, match=r"stiff: .*Mine has no such argument; did you mean stiffness\?"):
        Mine(ROBOT, stiff=1.0)  # pyright: ignore[reportCallIssue]
    with pytest.raises(gc.ArgumentError, match=r"^stif: geomctrl.controllers.PDGravity has no such argument"):
        Mine(ROBOT, 1.0)

    class Fails(gc.controllers.PDGravity):
        def __init__(self, robot):
            raise TypeError("of the user")

    with pytest.raises(TypeError, match=r"^of the user$"):
        Fails(ROBOT)


def test_a_lyapunov_function_without_the_plant():
    law = gc.controllers.PDGravity(ROBOT, [0.1, 0.2])
    with pytest.raises(
        gc.ArgumentError, match=r"^plant: missing in the call of geomctrl.controllers.PDGravity.lyapunov;"
    ):
        law.lyapunov(0.0, np.zeros(2), np.zeros(2), None)
