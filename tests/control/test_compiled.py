"""Compiled controllers: the bundled ones, user-defined ones, refusals and C export."""

import math
import shutil
import subprocess

import numpy as np
import pytest
from scipy.optimize import nnls
from simulation_options import COMPILED

import geomctrl as gc
from geomctrl import controllers, models, so3
from geomctrl.control.elastic_joints import with_rotors
from geomctrl.control.references import Harmonic, Quintic, RestToRest, Sinusoids, Spline
from geomctrl.tracing.symbols import UntraceableError

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
ROBOTS = [models.panda(), models.quadruped(), models.three_spheres()]
LOG = []


def references(robot):
    q0, rng = robot.neutral(), np.random.default_rng(0)
    q1, q2 = (robot.integrate(q0, 0.3 * rng.normal(size=robot.nv)) for _ in range(2))
    return {
        "sinusoids": Sinusoids(robot, q0, [[0.3], [0.1]], [[0.4], [1.1]], start_at_rest=1.0),
        "quintic": Quintic(robot, q0, q1, 2.0, 0.5),
        "spline": Spline(robot, [0.0, 1.0, 1.7, 3.0], np.array([q0, q1, q2, q0])),
    }


def laws(robot, reference):
    friction, q_d = gc.Friction(0.1, 0.2), robot.neutral()
    last = [robot.body_names[-1]]
    return {
        "pd": controllers.PDGravity(robot, q_d),
        "computed torque": controllers.ComputedTorque(robot, reference, friction=friction),
        "passivity": controllers.Passivity(robot, reference, form="christoffel"),
        "passivity, adjoint": controllers.Passivity(robot, reference, form="adjoint"),
        "slotine-li": controllers.SlotineLi(robot, reference),
        "slotine-li, adjoint": controllers.SlotineLi(robot, reference, form="adjoint"),
        "slotine-li, a load": controllers.SlotineLi(
            robot, reference, adapt=last, friction=friction, minimum_mass=1e-3 * robot.parameters[-1, 0]
        ),
        "slotine-li, base": controllers.SlotineLi(robot, reference, adapt="base"),
    }


def equal(x, y, scale=1.0):
    np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-11 * (scale + np.abs(y).max()))


@pytest.mark.quick(1)
@pytest.mark.parametrize("robot", ROBOTS, ids=lambda r: r.name)
@pytest.mark.parametrize("name", ["sinusoids", "quintic", "spline"])
def test_bundled_controllers_and_references(robot, name, kernels):
    rng = np.random.default_rng(1)
    for law in laws(robot, references(robot)[name]).values():
        created = gc.compile(law)
        for t in (0.0, 0.4, 1.9, 5.0):
            q, v, z = robot.random_configuration(rng), rng.normal(size=robot.nv), law.start()
            z = None if z is None else z * rng.uniform(0.2, 1.5, z.shape)
            found, expected = created(t, q, v, z), law(t, q, v, z)
            equal(found.tau, expected.tau)
            assert (found.z_rate is None) == (expected.z_rate is None)
            if z is not None:
                equal(found.z_rate, expected.z_rate)
            assert list(found.signals) == list(expected.signals)
            for key, x in expected.signals.items():
                equal(found.signals[key], x)


@pytest.mark.quick(1)
@pytest.mark.parametrize("smooth", [Harmonic(np.zeros(7), 0.3, 0.5), RestToRest(np.zeros(7), 0.4 * np.ones(7), 2.0)])
def test_elastic_joints(smooth):
    robot = models.panda()
    law = controllers.ElasticJoint(robot, smooth, 800.0, 0.1)
    created, rng = gc.compile(law, with_rotors(robot, 0.1)), np.random.default_rng(0)
    q, v = rng.normal(size=(2, 14))
    equal(created(0.7, q, v, None).tau, law(0.7, q, v, None).tau)


class Saturated:
    """Inverse dynamics with integral action and saturation, as a user writes it."""

    def __init__(self, robot):
        self.robot, self.n = robot, robot.nv

    def start(self):
        return np.zeros(self.n)

    def __call__(self, t, q, v, z):
        target = np.zeros(self.n)
        for k in range(self.n):
            target[k] = 0.3 * np.sin(2.0 * t + k)
        rate = 0.6 * np.cos(2.0 * t + np.arange(self.n))
        e = q - target
        a = -100.0 * e - 20.0 * (v - rate) - 50.0 * z
        tau = np.clip(self.robot.inverse_dynamics(q, v, a), -87.0, 87.0)
        return gc.Command(
            tau, np.where(np.abs(tau) < 87.0, e, 0.0), {"energy": self.robot.energy(q, v), "far": e.dot(e) > 1.0}
        )


def test_a_law_of_ones_own_in_a_loop():
    robot = models.panda()
    law, plant = Saturated(robot), gc.Plant(robot.with_payload(2.0, (0.0, 0.0, 0.1), 0.005 * np.eye(3)))
    created = gc.compile(law)
    assert 900 < created.operations < 4000
    runs = [gc.simulate(plant, x, np.full(7, 0.1), np.zeros(7), 0.3, 1e-3) for x in (law, created)]
    np.testing.assert_allclose(runs[1].q, runs[0].q, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(runs[1].signals["energy"], runs[0].signals["energy"], rtol=1e-9)
    np.testing.assert_array_equal(runs[1].signals["far"], runs[0].signals["far"])


def test_what_the_compiled_law_is_asked_and_what_it_was_not_made_for():
    robot = models.panda()
    law = controllers.SlotineLi(robot, references(robot)["sinusoids"])
    created = gc.compile(law)
    assert created.robot is robot
    q, z, plant = np.zeros(7), law.start(), gc.Plant(robot)
    assert created.lyapunov(0.3, q, q, z, plant) == law.lyapunov(0.3, q, q, z, plant)
    equal(created(1, q, q, z).tau, law(1, q, q, z).tau)
    equal(created(np.float64(0.5), q, q, z).tau, law(0.5, q, q, z).tau)
    equal(created(0.5, list(q), q, z).tau, law(0.5, q, q, z).tau)
    with pytest.raises(gc.ArgumentError, match="q"):
        created(0.5, q * np.nan, q, z)


def failing(body, start=None):
    """Return a law with `body(self, t, q, v, z)`."""

    class Law:
        def __init__(self):
            self.robot, self.count, self.log = models.two_link(), 0, []
            self.rng = np.random.default_rng(0)

        def start(self):
            return start

        def __call__(self, t, q, v, z):
            return gc.Command(body(self, t, q, v, z))

    return Law()


def of_math(self, t, q, v, z):
    return math.gamma(t) * q


def a_number(self, t, q, v, z):
    return complex(q[0]).real * q


def counting(self, t, q, v, z):
    self.count += 1
    return -q


def logging(self, t, q, v, z):
    self.log.append(1.0)
    return -q


def logging_outside(self, t, q, v, z):
    LOG.append(t)
    return -q


def random(self, t, q, v, z):
    return -q + self.rng.normal(size=2)


def random_of_numpy(self, t, q, v, z):
    return -q + np.random.normal(size=2)  # noqa: NPY002


def of_scipy(self, t, q, v, z):
    return nnls(np.eye(2), q)[0]


def printing(self, t, q, v, z):
    print(t)
    return -q


@pytest.mark.parametrize(
    ("body", "message", "at_a_line"),
    [
        (of_math, "math.gamma of a symbol can not be traced", True),
        (a_number, "a symbol is used as a complex number", True),
        (printing, "compiled code can not print", True),
        (of_scipy, "Law can not be traced", False),
        (counting, "count changes during a call", True),
        (logging, "log changes during a call", True),
        (logging_outside, "LOG changes during a call", True),
        (random, "rng changes during a call", True),
        (random_of_numpy, "the state of random numbers changes during a call", True),
    ],
)
def test_what_does_not_trace_is_named(body, message, at_a_line):
    with pytest.raises(UntraceableError, match=message) as caught:
        gc.compile(failing(body))
    if at_a_line:
        first = body.__code__.co_firstlineno
        assert any(f"test_compiled.py, line {first + k}" in str(caught.value) for k in (1, 2))


def test_the_line_that_is_named_is_the_laws():
    """The message names the line in the law, not the line in the library that it calls."""

    def of_a_term(self, t, q, v, z):
        return self.robot.difference(q, q).item() * q

    with pytest.raises(UntraceableError, match=f"test_compiled.py, line {of_a_term.__code__.co_firstlineno + 1}"):
        gc.compile(failing(of_a_term))


def of_a_frame(self, t, q, v, z):
    return self.robot.inverse_kinematics({"tip": self.robot.pose(q, "tip")}).q


def of_a_moving_point(self, t, q, v, z):
    return self.robot.inverse_kinematics({"tip": np.array([0.3 + 0.1 * t, 0.0, 0.1])}).q


def from_where_it_is(self, t, q, v, z):
    return self.robot.inverse_kinematics({"tip": np.array([0.3, 0.0, 0.1])}, q).q


def of_numbers(self, t, q, v, z):
    return q - self.robot.inverse_kinematics({"tip": [0.3, 0.0, 0.1]}).q


@pytest.mark.parametrize("body", [of_a_frame, of_a_moving_point, from_where_it_is, of_numbers])
def test_a_search_for_a_configuration_does_not_trace(body):
    """The error appears in a loop and for the law alone; a computation on constants only may be outside of the law."""
    at = f"test_compiled.py, line {body.__code__.co_firstlineno + 1}"
    texts = f"Law can not be traced: inverse_kinematics can not be compiled, in .*{at}, because the number of its"
    with pytest.raises(UntraceableError, match=texts):
        gc.compile(failing(body))
    with pytest.raises(UntraceableError, match=texts):
        gc.simulate(models.two_link(), failing(body), [0.1, 0.2], [0.0, 0.0], 0.01, 1e-3, options=COMPILED)


CYCLE = []
CYCLE.append(CYCLE)
for _ in range(3000):  # deeper than Python's stack
    CYCLE = [CYCLE]


def test_globals_may_be_nested_deeply(kernels):
    robot, q = models.two_link(), np.array([0.3, -0.2])
    law = failing(lambda self, t, q, v, z: -2.0 * q)
    np.testing.assert_array_equal(gc.compile(law, robot)(0.0, q, q, None).tau, -2.0 * q)
    with pytest.raises(UntraceableError, match="objects that are nested too deeply"):
        gc.compile(failing(lambda self, t, q, v, z: -2.0 * q if CYCLE else q), robot)


def test_a_task_with_a_constant_reference(kernels):
    """The desired pose depends on numbers only."""
    robot, q, v = models.two_link(), np.array([0.3, 0.8]), np.array([0.2, -0.5])
    for kind in (controllers.OperationalSpace, controllers.CartesianImpedance):
        law = kind(robot, gc.references.hold(robot, [0.5, 0.7]), "tip", axes="xz")
        np.testing.assert_allclose(gc.compile(law)(0.0, q, v, None).tau, law(0.0, q, v, None).tau, rtol=1e-12)


def test_a_law_of_measurements_is_compiled_with_its_loop_alone():
    law = failing(lambda self, t, q, v, z, y: -q)
    law.measurements = True
    with pytest.raises(
        gc.ArgumentError, match=r"controller: expected a law of t, q, v and z, got .* with measurements"
    ):
        gc.compile(law)


def test_differences_of_poses_and_what_is_not_finite():
    robot = models.quadruped()

    class Law:
        def __init__(self):
            self.robot, self.goal = robot, robot.random_configuration(np.random.default_rng(3))

        def start(self):
            return None

        def __call__(self, t, q, v, z):
            ahead = robot.integrate(q, 0.1 * v)
            return gc.Command(robot.difference(ahead, self.goal) + np.sqrt(v))  # nan for half of all velocities

    law, rng = Law(), np.random.default_rng(0)
    created = gc.compile(law)
    q, v = robot.random_configuration(rng), np.abs(rng.normal(size=robot.nv))
    equal(created(0.0, q, v, None).tau, law(0.0, q, v, None).tau)


def test_rotations_and_pythons_own_functions():
    robot = models.quadruped()

    class Law:
        def __init__(self):
            self.robot, self.gain, self.goal = robot, 30.0, so3.exp([0.1, 0.2, 0.3])

        def start(self):
            return None

        def __call__(self, t, q, v, z):
            R = q[:12].reshape(3, 4)[:, :3]
            turn = so3.exp([0.0, 0.0, 0.2 * math.sin(2.0 * t)])
            e = so3.log(so3.inverse(self.goal @ turn) @ R)
            tau = np.zeros(robot.nv)
            tau[:3] = (
                -min(self.gain, 1.0 + abs(v[0])) * so3.dexp_inv(-e).T @ e - max(v[0], v[1], math.hypot(*v[:2])) * e
            )
            return gc.Command(tau, None, {"off": math.sqrt(e @ e), "largest": max(abs(x) for x in e)})

    law, rng = Law(), np.random.default_rng(0)
    created = gc.compile(law)
    for t in (0.0, 1.3):
        q, v = robot.random_configuration(rng), rng.normal(size=robot.nv)
        found, expected = created(t, q, v, None), law(t, q, v, None)
        equal(found.tau, expected.tau)
        assert found.signals == pytest.approx(expected.signals, rel=1e-12)


def test_without_the_compiler(monkeypatch):
    monkeypatch.setenv("GEOMCTRL_COMPILER", "off")
    with pytest.raises(gc.ModelError, match="the compiler is off"):
        gc.compile(failing(counting))


def test_what_is_no_controller():
    with pytest.raises(gc.ArgumentError, match=r"called with \(t, q, v, z\), got .*, called with \(t, q, v\)"):
        gc.compile(lambda t, q, v: gc.Command(q))
    law = failing(lambda self, t, q, v, z: -q)
    del law.robot
    with pytest.raises(gc.ArgumentError, match=r"robot: expected a geomctrl\.Robot"):
        gc.compile(law)
    with pytest.raises(gc.ArgumentError, match=r"expected tau of shape \(2,\), got \(1,\)"):
        gc.compile(failing(lambda self, t, q, v, z: q[:1]))
    with pytest.raises(gc.ArgumentError, match=r"expected Command\(tau, z_rate="):
        gc.compile(failing(lambda self, t, q, v, z: q, np.zeros(3)))


@pytest.mark.slow
@pytest.mark.skipif(COMPILER is None, reason="no C compiler on this machine")
@pytest.mark.parametrize("precision", ["double", "float"])
def test_a_law_in_c(tmp_path, precision):
    robot = models.panda()
    for law in (controllers.SlotineLi(robot, references(robot)["sinusoids"]), Saturated(robot)):
        header, source, test = gc.compile(law).to_c(tmp_path, name="law", precision=precision)
        assert "state of the controller" in header.read_text()
        flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
        subprocess.run([COMPILER, *flags, "-o", tmp_path / "test", source, test, "-lm"], check=True)
        done = subprocess.run([tmp_path / "test"], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


class Declared(gc.Controller):
    """A law with the contract as its base class, and a frozen set as a constant."""

    DAMPED = frozenset({"all"})

    def start(self):
        return None

    def __call__(self, t, q, v, z):
        return gc.Command(-2.0 * v if "all" in self.DAMPED else 0.0 * v)


def test_a_law_may_be_declared_a_controller():
    arm = models.two_link()
    command = gc.compile(Declared(), arm)(0.0, np.zeros(2), np.array([0.5, -1.0]), None)
    np.testing.assert_array_equal(command.tau, [-1.0, 2.0])
