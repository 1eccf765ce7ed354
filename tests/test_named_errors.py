"""Unusual bad input is refused by name: no raw Python error, no broadcasting, nothing taken for empty."""

import functools
import io
import itertools
import json
import multiprocessing
import os
import pickle
import weakref
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
import scipy.sparse
from cli.command_line import run
from hostile.values import Raising

import geomctrl as gc
from geomctrl import arguments, controllers, identification, models, papers, references, testing
from geomctrl.errors import ArgumentError, GeomctrlError, ModelError
from geomctrl.identification.excitation.trajectory import Trajectory, save_trajectory
from geomctrl.models import load_extra
from geomctrl.models.io.model_file import load_model
from geomctrl.tracing.backends.ptx import processor
from geomctrl.viewing.plots import plot_run
from geomctrl.viewing.sweeps import plot_sweep

ROBOT = models.two_link()
MOTION = references.Sinusoids(ROBOT, [0.0, 0.0], 0.1, 0.5)
LAW = controllers.SlotineLi(ROBOT, MOTION)
PASSIVITY = controllers.Passivity(ROBOT, references.hold(ROBOT, [0.5, 1.0]))
TASK = controllers.OperationalSpace(ROBOT, MOTION, "tip", axes="xz")
HOUR = np.timedelta64(0, "h")
ZERO, MANY = np.zeros(2), np.zeros((3, 2))
BAR = papers.constrained.ConstrainedBody("bar", gc.inertia.from_com(1.0, (0, 0, 0), np.eye(3)), np.eye(4))


@pytest.mark.parametrize("read", [load_model, load_extra])
@pytest.mark.parametrize("text", ["[" * 10**5 + "]" * 10**5, '{"a":' * 10**5 + "1" + "}" * 10**5, "", "\ufffe", "1"])
def test_json_that_no_model_is(read, text, tmp_path):
    path = tmp_path / "robot.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ModelError, match=r"path: .*robot\.json"):
        read(path)
    assert "robot.json" in run("info", path, status=2).output


def deep():
    """A list whose repr Python refuses."""
    return functools.reduce(lambda inner, _: [inner], range(5000), 1.0)


class Unprintable:
    def __repr__(self):
        raise RuntimeError("it has no repr")


class Unconvertible:
    """Like a tensor with gradients, which numpy can not read."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("detach it first")


CALLS = {
    "q    ": lambda: ROBOT.mass_matrix(deep()),
    "q   ": lambda: ROBOT.mass_matrix(bytearray(b"ab")),
    "q     ": lambda: ROBOT.mass_matrix(memoryview(b"ab")),
    "q         ": lambda: ROBOT.mass_matrix(dead()),
    "end": lambda: gc.Wrench("tip", np.zeros(6), end=dead()),
    "run": lambda: plot_run(dead(), "out"),
    "table": lambda: plot_sweep(dead(), "out"),
    "prior": lambda: lifted(np.ones((10, 2))),
    "prior ": lambda: ridge(prior=np.ones((10, 2))),
    "rotor": lambda: identification.RegressorModel(ROBOT, rotor=itertools.repeat(True)),
    "columns": lambda: identification.RegressorModel(ROBOT, columns=itertools.repeat(True)),
    "sensors   ": lambda: gc.Plant(ROBOT, sensors=itertools.repeat(None)),
    "measures": lambda: gc.sweep(len, {"a": [1.0]}, itertools.repeat(len), t_end=0.01, dt=1e-3),
    "q0": lambda: gc.simulate_many(ROBOT, LAW, Raising(), ZERO, 0.01, 1e-3),
    "axis": lambda: gc.Joint.revolute(dead()),
    "t   ": lambda: identification.SampledReference([0.0, 1e200, 1.7e308], np.ones((3, 2))),
    "robot": lambda: controllers.ComputedTorque(Unprintable(), MOTION),
    "friction": lambda: gc.Plant(ROBOT, friction=Unprintable()),
    "reference": lambda: controllers.ComputedTorque(ROBOT, lambda: None),
    "reference ": lambda: controllers.ComputedTorque(ROBOT, references.Sinusoids),
    "f_ext": lambda: gc.Plant(ROBOT, f_ext=lambda t: np.zeros((2, 6))),
    "progress": lambda: gc.simulate(ROBOT, LAW, ZERO, ZERO, 0.01, 1e-3, progress=lambda: None),
    "box.q ": lambda: testing.certify_lyapunov(PASSIVITY, gc.Plant(ROBOT), ([10**400] * 2, [1.0, 1.0])),
    "every": lambda: gc.SimulationOptions(every=deep()),
    "strict": lambda: gc.SimulationOptions(strict=deep()),
    "path": lambda: ROBOT.to_c("half a character \ud800"),
    "path ": lambda: ROBOT.to_c(b"bytes"),
    "box": lambda: ROBOT.bounds(box=np.array(0.5)),
    "z": lambda: LAW(0.0, ZERO, ZERO, np.array(1.0)),
    "z ": lambda: LAW(0.0, ZERO, ZERO, np.zeros((len(LAW.p0), 2))),
    "z  ": lambda: LAW.lyapunov(0.0, ZERO, ZERO, np.array(1.0), gc.Plant(ROBOT)),
    "q": lambda: gc.Plant(ROBOT).acceleration(0.0, np.array(1.0), ZERO, ZERO),
    "q ": lambda: gc.Plant(ROBOT).acceleration(0.0, np.zeros((2, 1)), ZERO, ZERO),
    "q  ": lambda: TASK(0.0, MANY, MANY, None),
    "v": lambda: TASK(0.0, ZERO, MANY, None),
    "monitors": lambda: gc.simulate(ROBOT, LAW, ZERO, ZERO, 0.01, 1e-3, monitors={}),
    "changes": lambda: gc.Plant(ROBOT, changes={}),
    "changes ": lambda: gc.Plant(ROBOT, changes=""),
    "amplitude": lambda: references.Sinusoids(ROBOT, ZERO, [0.1], 0.5),
    "frequency": lambda: references.Sinusoids(ROBOT, ZERO, 0.1, [0.5]),
    "phase": lambda: references.Sinusoids(ROBOT, ZERO, 0.1, 0.5, np.zeros((1, 3))),
    "keys: q": lambda: identification.Reading(keys={"q": None}),
    "keys: t": lambda: identification.Reading(keys={"t": []}),
    "units: q": lambda: identification.Reading(units={"q": object()}),
    "coulomb": lambda: identification.RegressorModel(ROBOT, coulomb=[[0, 1]]),
    "t": lambda: Trajectory(1.0, np.ones((3, 2))).at(np.zeros((2, 2))),
    "event 'rise': direction": lambda: gc.integrators.Event(lambda t, y: t, direction=0.5, name="rise"),
    "control_dt": lambda: gc.simulate(ROBOT, LAW, ZERO, ZERO, 1.0, 1e-300, control_dt=1e300),
    "constraints": lambda: papers.constrained.ConstrainedSystem([BAR], np.array(1.0)),
    r"coriolis\(q, v\)": lambda: testing.assert_skew_symmetric(ROBOT, coriolis=lambda q, v: "x"),
    "controller": lambda: testing.certify_lyapunov(controllers.ComputedTorque, ROBOT, (0.1, 0.1)),
    "sensors": lambda: gc.Plant(ROBOT, sensors=""),
    "sensors ": lambda: gc.Plant(ROBOT, sensors={}),
    "sensors  ": lambda: gc.Plant(ROBOT, sensors={gc.sensors.Encoder(12)}),
    "bodies": lambda: gc.Robot.build({gc.Body("a", None, gc.Joint.revolute((0, 0, 1)), None, ROBOT.parameters[0])}),
    "monitors ": lambda: gc.simulate(ROBOT, LAW, ZERO, ZERO, 0.01, 1e-3, monitors={gc.monitors.Skew()}),
    "capability": lambda: processor(b"\x09\x00"),
    "t_span": lambda: gc.integrators.integrate(np.negative, ZERO, {0.0, 1.0}, 0.1, "MK4", gc.groups.Rn(2)),
    "t_span ": lambda: gc.integrators.integrate(np.negative, ZERO, b"\0\1", 0.1, "MK4", gc.groups.Rn(2)),
    "box.q": lambda: testing.certify_lyapunov(PASSIVITY, ROBOT, ("1.0", 1.0)),
    "box.v": lambda: testing.certify_lyapunov(PASSIVITY, ROBOT, (1.0, [1.0, -1.0])),
    r"measure\(rates\)": lambda: robustness(None),
    r"measure\(rates\) ": lambda: robustness([1.0, 2.0]),
    r"storage\(t, q, v, z, plant\)": lambda: passivity(None),
    r"storage\(t, q, v, z, plant\) ": lambda: passivity(np.zeros(9)),
    "model": lambda: identification.fit([1.0], None, "ols"),
    "plants": lambda: gc.simulate_many(scipy.sparse.eye(2), LAW, ZERO, ZERO, 0.01, 1e-3),
    "v ": lambda: ROBOT.inverse_dynamics(ZERO, Unconvertible(), ZERO),
    "base_twist": lambda: papers.factored.body_twists(ROBOT, ZERO, ZERO, Unconvertible()),
    "prismatic": lambda: gc.Robot.from_dh(
        *[[0.0]] * 4, convention="standard", inertias=ROBOT.parameters[:1], prismatic=[HOUR]
    ),
    "events": lambda: gc.integrators.integrate(np.negative, ZERO, (0.0, 1.0), 0.1, "MK4", gc.groups.Rn(2), events={}),
    "resume": lambda: testing.Budget(resume=deep()),
    "plant": lambda: PASSIVITY.lyapunov(0.0, ZERO, ZERO, None, PASSIVITY),
    "path  ": lambda: ROBOT.to_c("x" * 5000),
    "metric": lambda: testing.assert_contracting(PASSIVITY, ROBOT, lambda: np.eye(4), 1.0),
    "rate": lambda: save_trajectory(Trajectory(1.0, np.ones((3, 2))), "motion.csv", ["a", "b"], rate=1e18),
    "tau": lambda: gc.rollout(ROBOT, ZERO, ZERO, lambda: ZERO, 0.1, 0.01, method="variational"),
    "v0": lambda: gc.simulate_many(ROBOT, LAW, ZERO, [[[1.0], [1.0, 2.0]], ZERO], 0.01, 1e-3),
}


def lifted(prior):
    base = identification.base_parameters(ROBOT)
    return base.lift(np.zeros(base.size), prior)


def ridge(**options):
    q, v, a, tau = np.random.default_rng(0).normal(size=(4, 50, 2))
    log = identification.Dataset(0.01 * np.arange(50), q, tau, v=v, a=a)
    return identification.fit(identification.RegressorModel(ROBOT), log, "ridge", **options)


def test_priors_of_bodies_are_rows_or_one_after_the_other():
    prior = np.arange(20.0)
    assert np.array_equal(lifted(prior), lifted(prior.reshape(2, 10)))
    assert np.array_equal(ridge(prior=prior).values, ridge(prior=prior.reshape(2, 10)).values)


def robustness(rate):
    """Search with a measure that returns `rate`."""
    testing.assert_robust(lambda point: (ROBOT, PASSIVITY), {"payload": (0.0, 1.0)}, measure=lambda rates: rate)


def passivity(energy):
    testing.assert_passive_port(PASSIVITY, ROBOT, storage=lambda t, q, v, z, plant: energy)


@pytest.mark.parametrize("name", CALLS)
def test_arguments_of_the_wrong_kind(name):
    with pytest.raises(ArgumentError, match=f"^{name.strip()}: expected"):
        CALLS[name]()


class RaisingText(str):
    """A name that can not be compared."""

    __eq__ = __hash__ = Raising._fail


def dead():
    """A weak proxy of an object that is gone, whose class can not be read."""
    return weakref.proxy(type("Gone", (), {})())


CHECKERS = {
    "checked": lambda x: arguments.checked("it", x, (2,)),
    "vector": lambda x: arguments.vector("it", x, 2),
    "one_or_each": lambda x: arguments.one_or_each("it", x, 2),
    "number": lambda x: arguments.number("it", x),
    "count": lambda x: arguments.count("it", x),
    "flag": lambda x: arguments.flag("it", x),
    "choice": lambda x: arguments.choice("it", x, ("a", "b")),
    "path_of": lambda x: arguments.path_of("it", x),
    "listed": lambda x: arguments.listed("it", x),
    "instance": lambda x: arguments.instance("it", x, dict, "a dict"),
    "mapped": lambda x: arguments.mapped("it", x, "a dict"),
    "pair": lambda x: arguments.pair("it", x, "two numbers"),
    "generator": lambda x: arguments.generator("it", x),
}


@pytest.mark.parametrize("check", CHECKERS.values(), ids=CHECKERS)
@pytest.mark.parametrize("make", [Raising, dead, lambda: None, lambda: np.longdouble("1e4000"), itertools.count])
def test_objects_that_raise_have_no_end_or_overflow(check, make):
    with pytest.raises(ArgumentError, match=r"^it: expected"):
        check(make())


def test_names_that_can_not_be_compared():
    with pytest.raises(ArgumentError, match=r"^form: expected one of"):
        ROBOT.terms(ZERO, ZERO, RaisingText("adjoint"))
    assert gc.integrators.Adaptive(np.str_("MK54")).method == gc.integrators.Adaptive("MK54").method
    with pytest.raises(GeomctrlError, match=r"^method: expected a Tableau or one of"):
        gc.integrators.Adaptive(RaisingText("other"))
    for find in (ROBOT.frame, ROBOT.joint):
        with pytest.raises(GeomctrlError, match="named 'tip'"):
            find(RaisingText("tip"))


def failing():
    yield LAW
    raise FileNotFoundError("no such file")


def test_errors_of_an_iterator_are_in_the_message():
    with pytest.raises(ArgumentError, match=r"^columns: expected .*: no such file$") as error:
        identification.RegressorModel(ROBOT, columns=failing())
    assert error.value.__cause__ is not None


def test_numbers_that_overflow_make_no_motor_and_no_body():
    with pytest.raises(ModelError, match="armature: expected a finite number, got inf"):
        gc.Joint.revolute((0, 0, 1)).with_motor(1e-3, 1e200)
    assert "overflows" in str(gc.inertia.violation(np.full(10, 1e308)))
    huge, solid = np.full(10, 1e308), gc.inertia.from_com(1.0, (0, 0, 0), np.eye(3))
    assert gc.inertia.is_physical([huge, solid]).tolist() == [False, True]


def test_a_frame_that_can_not_move_along_the_axes_of_a_task():
    for law in (TASK, controllers.CartesianImpedance(ROBOT, references.hold(ROBOT, [0.0, 0.5]), "tip", axes="xz")):
        with pytest.raises(ModelError, match="q: expected a configuration where the frame can move"):
            law(0.0, ZERO, ZERO, None)


def test_equations_without_a_solution():
    """Weights whose products overflow."""
    rng, n = np.random.default_rng(0), 200
    t = 0.01 * np.arange(n)
    q, v, a = rng.normal(size=(3, n, 2))
    data = identification.Dataset(t, q, v, a, ROBOT.inverse_dynamics(q, v, a))
    with pytest.raises(identification.SolverError, match="weights: expected numbers of usual sizes"):
        identification.fit(identification.RegressorModel(ROBOT), data, "ridge", weights=[1e308, 1e308])


@pytest.mark.parametrize("extra", [{0: 1}, {"a": [{None: 1}]}, {"a": {"b": {True: 1}}}, {"a": {(1, 2): 3}}])
def test_keys_that_json_would_turn_into_text(extra, tmp_path):
    with pytest.raises(ArgumentError, match=r"extra: .* keys must be str"):
        models.save(ROBOT, tmp_path / "robot.json", extra=extra)
    assert not [*tmp_path.iterdir()]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("read", [load_model, load_extra, gc.Run.load, models.load])
def test_pipes_are_not_read(read, tmp_path):
    """Reading a pipe without a writer, or a device, would never end."""
    for name in ("robot.json", "robot.toml"):
        os.mkfifo(tmp_path / name)
        with pytest.raises(GeomctrlError, match=rf"{name}.*not a regular file"):
            read(tmp_path / name)


def test_one_number_serves_all_joints_only_as_a_number():
    motion = references.Sinusoids(ROBOT, ZERO, 0.1, [0.5, 0.2])
    assert motion.rows.reshape(3, 2)[0].tolist() == [0.1, 0.1]


@pytest.mark.parametrize("how", ["spawn", "forkserver"])
def test_a_compiled_law_in_another_process(how):
    if how not in multiprocessing.get_all_start_methods():
        pytest.skip("this system starts no processes so")
    law = gc.compile(controllers.PDGravity(ROBOT, [0.1, 0.2]))
    q = np.array([0.3, -0.4])
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(how)) as pool:
        there = pool.submit(law, 0.0, q, ZERO, None).result()
    np.testing.assert_array_equal(there.tau, law(0.0, q, ZERO, None).tau)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(law))(0.0, q, ZERO, None).tau, there.tau)


# --- objects and files that can not be read ---------------------------------------------------------------------------


class Unreadable(dict):
    """A mapping whose items raise."""

    keys = items = __iter__ = property(lambda self: 1 / 0)


class Raises(str):
    """A text that raises where it is compared."""

    __hash__ = None

    def __eq__(self, other):
        raise RuntimeError("no comparison")


def empty_robot():
    return object.__new__(gc.Robot)


PROOF = functools.cache(lambda: testing.certify_lyapunov(STRICT, ROBOT, (0.01, 0.1), levels=False))
STRICT = controllers.PDGravity(ROBOT, ZERO, kp=50.0, kd=20.0, strict=True)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("robot", lambda: papers.factored.mass_matrix(empty_robot(), ZERO)),
        ("robot", lambda: gc.Robot.mass_matrix(empty_robot(), ZERO)),
        ("robot", lambda: gc.Plant(empty_robot())),
        ("plant", lambda: gc.simulate(object.__new__(gc.Plant), LAW, ZERO, ZERO, 0.1, 0.01)),
        ("controller", lambda: gc.simulate(ROBOT, object.__new__(controllers.PDGravity), ZERO, ZERO, 0.1, 0.01)),
        ("reference", lambda: controllers.Passivity(ROBOT, object.__new__(references.Quintic))),
        ("actuators", lambda: gc.Plant(ROBOT, actuators=[object.__new__(gc.actuators.Lag)])),
        ("friction", lambda: gc.Plant(ROBOT, object.__new__(gc.Friction))),
        ("kinds", lambda: testing.random_robot(np.random.default_rng(0), [Raises("revolute")])),
        ("kinds", lambda: testing.random_robot(np.random.default_rng(0), {"revolute", "prismatic"})),
        ("kinds", lambda: testing.robots({"revolute", "prismatic"})),
        ("ignore", lambda: identification.Settings(ignore=[Raises("gain")])),
        ("ignore", lambda: gc.load_mjcf("<mujoco/>", ignore=[Raises("armature")])),
        ("source", lambda: identification.Dataset.read(Unreadable(t=0))),
        ("adapt", lambda: controllers.SlotineLi(ROBOT, MOTION, adapt=3)),
        ("reference", lambda: gc.control.desired_at(object.__new__(references.Quintic), 0.0)),
        ("episodes", lambda: identification.Reading(episodes=io.StringIO())),
        ("names", lambda: identification.Dataset.read({"t": ZERO, "q": ZERO, "tau": ZERO}, names=io.StringIO("a\n"))),
        ("domain", lambda: testing.Region(domain={"q": "x"})),
        ("domain", lambda: testing.Region(domain={"q": [0.5]})),
        ("spread", lambda: testing.Region(spread={"q": "x"})),
        ("port", lambda: testing.passivity_index(LAW, ROBOT, port=testing.Port(lambda robot, q: "joints"))),
        ("coriolis", lambda: testing.assert_skew_symmetric(ROBOT, coriolis=lambda q: q)),
        ("controller", lambda: testing.assert_lyapunov(lambda t, q, v, z: None, ROBOT)),
        ("t", lambda: Trajectory(2.0, np.ones((2, 5))).at(1e200)),
    ],
)
def test_arguments_that_can_not_be_used_are_named(name, call):
    with pytest.raises(GeomctrlError, match=rf"(?<!\w){name}(\[0\])?:"):
        call()


class Rest(gc.Reference):
    def __call__(self, t):
        return gc.Desired(ZERO, ZERO, ZERO)


class Free(gc.Controller):
    def __call__(self, t, q, v, z):
        return gc.Command(ZERO)


def test_objects_without_attributes_are_refused_only_if_their_constructor_would_set_some():
    """Unpickling, as in processes of a sweep, calls no constructor."""
    law, reference = Free.__new__(Free), Rest.__new__(Rest)
    assert gc.simulate(ROBOT, law, ZERO, ZERO, 0.02, 0.01, monitors=None).success
    assert controllers.Passivity(ROBOT, reference).reference is reference


def test_parameters_that_are_arrays_belong_to_a_claim_of_their_own():
    with pytest.raises(ArgumentError, match="controller, plant, box: expected those of the proof"):
        testing.recheck_lyapunov(PROOF(), parameters=np.zeros(2))
    assert testing.recheck_lyapunov(PROOF(), rate=np.float64(0.0), offset=0)


# --- commands --------------------------------------------------------------------------------------------------------


def archive(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


FILES = {
    "junk.npz": b"junk",
    "zip.npz": b"PK\x03\x04junk",
    "other.npz": archive(a=1.0),
    "list.npz": archive(about=json.dumps([]), t=[0.0]),
    "cut.npz": archive(about="[1", t=[0.0]),
    "deep.json": b"[" * 10**5,
    "deep.toml": b"a = " + b"[" * 10**4,
    "bytes.toml": b"\xff\xfe\x00",
    "archive.py": archive(a=1.0),
    "half.py": b"def (",
    "null.py": b"x = 1\0",
}
COMMANDS = [
    *(("show", x) for x in ("junk.npz", "zip.npz", "other.npz", "list.npz", "cut.npz", "deep.json", "bytes.toml")),
    ("show", "list.npz", "--robot", "panda"),
    ("sweep", "deep.toml", "--out", "o"),
    *((command, x, "--out", "o") for command in ("sweep", "track") for x in ("archive.py", "half.py", "null.py")),
    ("sweep", "other.npz", "--out", "o"),
    *(("info", x) for x in ("deep.json", "deep.toml", "bytes.toml", "junk.npz", "/", "/dev/null")),
    *(("track", "two_link", "--out", "o", *x) for x in (
        ("--dt", "nan"), ("--dt", "1e-320"), ("--seconds", "inf"), ("--seconds", "-1"), ("--gains", "kp=1e999"),
        ("--gains", "=,="), ("--actuators", "lag=nan"), ("--sensors", "bits=1e9"), ("--payload", "nan"),
        ("--controller", "half.py:Law"), ("--controller", "half.py:"), ("--controller", ":Law"))),
    ("track", "two_link", "--out", "/dev/null/x"),
    *(("excite", "two_link", "--out", "o", *x) for x in (
        ("--seconds", "nan"), ("--q0", "a,b"), ("--lower", "1,1", "--upper", "0,0"), ("--surroundings", "bytes.toml"))),
    *(("identify", x, "--robot", "two_link", "--out", "o") for x in ("junk.npz", "other.npz", "bytes.toml")),
]  # fmt: skip


@pytest.mark.parametrize("message", COMMANDS, ids=" ".join)
def test_commands_say_what_is_wrong(message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    said = run(*message, status=2).output
    assert "geomctrl: " in said or "Error" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("robots", "x", "y"), "unexpected arguments: 'x' 'y'"),
        (("track", "two_link", "z"), "unexpected argument: 'z'"),
        (("identify", "log.csv"), "--robot: required, but not given; see geomctrl identify --help"),
        (("info",), "ROBOT: required, but not given; see geomctrl info --help"),
    ],
)
def test_commands_name_arguments_that_are_missing_or_too_many(command, message):
    assert message in " ".join(run(*command, status=2).output.split())
