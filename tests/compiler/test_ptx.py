"""GPU kernels: their LLVM code executed on this machine, and their PTX checked by NVIDIA's assembler."""

import math

import mpmath
import numpy as np
import pytest
from cuda_tools import LIBDEVICE, assembled, needs_libdevice, needs_ptxas
from evaluation import evaluate
from kernel_on_host import NONE, HostKernel

from geomctrl import interop, models
from geomctrl.compiler.arithmetic import Sizes
from geomctrl.compiler.catalogue import CATALOGUE
from geomctrl.compiler.kernel_traces import structure, trace
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.testing import random_robot
from geomctrl.tracing.backends import ptx
from geomctrl.tracing.symbols import Graph, binary, invert, unary, where
from geomctrl.tracing.traces import Trace

KINDS = ["free", "revolute", "prismatic", "helical", "cylindrical", "planar", "spherical"]
ROBOTS = [
    models.panda(),
    models.quadruped(),
    models.three_spheres(),
    random_robot(np.random.default_rng(1), KINDS, [-1, 0, 0, 2, 1, 3, 4]),
]
TERMS = ["inverse_dynamics", "forward_dynamics", "terms", "gravity_force", "regressor", "mechanical_state"]
TYPES = {"double": np.float64, "float": np.float32}


class Case:
    """Run a term of a robot as a kernel on this machine."""

    def __init__(self, robot, term, real="double"):
        self.algorithm, options, *_ = CATALOGUE[term]
        self.robot, self.real, sizes = robot, real, Sizes(structure(robot._model))
        self.trace = trace(self.algorithm, structure(robot._model), options, guarded=True)
        self.outputs = [sizes.of(y) for y in self.algorithm.outputs]
        self.text = ptx.module(self.trace, real)
        self.numbers = ptx.Kernel(self.trace, real).numbers
        self.kernel = HostKernel(self.text)

    def states(self, n, seed=0):
        rng, robot = np.random.default_rng(seed), self.robot
        q = np.array([robot.random_configuration(rng) for _ in range(n)])
        return [
            q if x.shape == ("nq",) else rng.normal(size=(n, robot.nv)) for x in self.algorithm.inputs[: self.given]
        ]

    @property
    def given(self):
        return sum(not x.optional for x in self.algorithm.inputs)

    def __call__(self, inputs, robot=None):
        numbers = (robot or self.robot)._model[self.numbers].astype(TYPES[self.real])
        return self.kernel(numbers, [x.astype(TYPES[self.real]) for x in inputs], self.outputs)


def python(f, term, inputs):
    """Compute the same with the CPU's compiled function, state by state; rows contain all outputs."""
    rows = []
    for state in zip(*inputs):
        created = getattr(f._code, term)(*(x.copy() for x in state))
        rows.append(np.concatenate([y.ravel() for y in (created if isinstance(created, tuple) else (created,))]))
    return np.array(rows)


@pytest.mark.quick(5)
@pytest.mark.parametrize("robot", ROBOTS, ids=lambda r: r.name)
@pytest.mark.parametrize("term", TERMS)
def test_kernels_compute_what_the_cpu_does(robot, term):
    for real, tolerance in (("double", 1e-12), ("float", 1e-4)):
        case = Case(robot, term, real)
        inputs = case.states(13)
        outputs, report = case(inputs)
        expected = python(robot, term, inputs)
        assert report == NONE
        scale = np.abs(expected).max(axis=0)
        assert (np.abs(np.hstack(outputs) - expected) <= tolerance * (1.0 + scale)).all()


@pytest.mark.quick(1)
@pytest.mark.parametrize("registers", [4, 12, 40])
def test_numbers_in_memory_are_the_numbers(registers, monkeypatch):
    monkeypatch.setitem(ptx.REGISTERS, "double", registers)
    for robot in ROBOTS[:2]:
        case = Case(robot, "forward_dynamics")
        assert case.text.count("store volatile") > 10  # memory is used
        inputs = case.states(3)
        np.testing.assert_allclose(case(inputs)[0][0], python(robot, "forward_dynamics", inputs), rtol=1e-12)


def test_numbers_of_the_robot_are_arguments():
    """One kernel for a robot with any load."""
    case = Case(models.panda(), "inverse_dynamics")
    loaded = models.panda().with_payload(2.0, (0.01, 0.0, 0.1), 0.004 * np.eye(3))
    inputs = case.states(5)
    assert Case(loaded, "inverse_dynamics").text == case.text
    np.testing.assert_allclose(case(inputs, loaded)[0][0], loaded.inverse_dynamics(*inputs), rtol=1e-12)


# --- sines and cosines -------------------------------------------------------------------------------------------


def waves(real, angle=lambda x: x):
    graph = Graph()
    x = angle(graph.load(1, 0))
    ends = tuple(graph.operand(unary(op, x)) for op in ("sin", "cos"))
    return HostKernel(ptx.module(Trace(graph, (1,), ends, (2,), None), real))


def exact(x):
    with mpmath.workprec(1200):
        return np.array([[float(f(mpmath.mpf(float(a)))) for f in (mpmath.sin, mpmath.cos)] for a in x])


@pytest.mark.parametrize(("real", "tolerance"), [("double", 4e-16), ("float", 1.6e-7)])
def test_sines_and_cosines_of_any_angle(real, tolerance):
    kind, limit = TYPES[real], ptx.WAVES[real][1]
    largest = 0.999 * float(np.finfo(kind).max)
    x = np.concatenate(
        [
            np.linspace(-10.0, 10.0, 401),
            limit * np.random.default_rng(0).uniform(-1.0, 1.0, 2000),
            limit * np.array([0.999, 1.0, np.nextafter(1.0, 2.0), 1.001, 7.0, -1.0, -1.1]),
            np.geomspace(limit, largest, 300) * np.resize([1.0, -1.0], 300),
            0.5 * math.pi * np.round(np.geomspace(1.0, 1e15, 80)),  # as near to the zeros of the sine as possible
            [0.0, 1e-300, 6381956970095103.0 * 2.0**797] if real == "double" else [0.0, 1e-30],
        ]
    ).astype(kind)
    (result,), report = waves(real)(np.zeros(1), [x[:, None]], [2])
    assert report == NONE
    assert np.abs(result - exact(x)).max() <= tolerance
    near = np.abs(x) <= limit
    assert np.abs(result - exact(x))[near].max() <= (2.3e-16 if real == "double" else 9e-8)


def test_one_angle_beyond_among_others():
    """The results of the other states are the same as without these."""
    robot = models.panda()
    case = Case(robot, "mass_matrix")
    q = np.tile(np.linspace(-1.0, 1.0, 7), (3, 1))
    q[1, 2], q[2, 2:4] = 1e7, (-3e15, 100_001.0)
    outputs, report = case([q])
    assert report == NONE
    np.testing.assert_allclose(outputs[0], robot.mass_matrix(q).reshape(3, 49), rtol=1e-12, atol=1e-14)


def test_a_sine_of_a_sine():
    """An angle that is only known inside the straight-line code is reduced there."""
    kernel = waves("double", lambda x: 1e7 * unary("sin", x))
    x = np.linspace(-2.0, 2.0, 9)[:, None]
    (result,), _ = kernel(np.zeros(1), [x], [2])
    np.testing.assert_allclose(result, np.hstack([np.sin(1e7 * np.sin(x)), np.cos(1e7 * np.sin(x))]), atol=1e-8)


@pytest.mark.parametrize("real", ["double", "float"])
def test_an_angle_that_overflows_is_no_number(real):
    """Also where the inputs are finite: what depends on an infinite intermediate result is nan, as with libm's sine."""
    kernel = waves(real, lambda x: 1e30 * (1e30 * x) if real == "float" else 1e200 * (1e200 * x))
    (result,), _ = kernel(np.zeros(1), [np.array([[1.0], [0.0], [-1.0]], TYPES[real])], [2])
    np.testing.assert_array_equal(result, [[np.nan, np.nan], [0.0, 1.0], [np.nan, np.nan]])


# --- states without a result -------------------------------------------------------------------------------------


@pytest.mark.quick(6)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("real", ["double", "float"])
@pytest.mark.parametrize("argument", [0, 1, 2])
def test_a_number_that_is_none_is_reported(bad, real, argument):
    """Also if the first coordinate is nan, on which the torques do not depend."""
    case = Case(models.panda(), "inverse_dynamics", real)
    inputs = case.states(9)
    good, _ = case(inputs)
    inputs[argument][6, 0] = inputs[argument][4, 0] = bad
    (tau,), report = case(inputs)
    assert report == 4
    others = np.arange(9) % 2 == 1
    assert np.isnan(tau[[4, 6]]).all()
    np.testing.assert_array_equal(tau[others], good[0][others])


def test_a_pose_that_is_none_is_reported():
    case = Case(models.quadruped(), "inverse_dynamics")
    inputs = case.states(4)
    inputs[0][2, 0] += 1e-3
    (tau,), report = case(inputs)
    assert report == 2
    assert np.isnan(tau[2]).all()
    assert np.isfinite(tau[[0, 1, 3]]).all()


def test_a_mass_matrix_that_is_not_positive_is_reported():
    robot = models.two_link()
    negative = robot.with_parameters(robot.parameters * [[1.0], [-1.0]], physical=False)
    case = Case(negative, "forward_dynamics")
    _, report = case([np.ones((3, 2))] * 3)
    assert report == 0


# --- operations --------------------------------------------------------------------------------------------------


def operations():
    graph = Graph()
    x, y = (graph.load(1, k) for k in range(2))
    result = [
        binary("min", x, y),
        binary("max", x, y),
        where(x < y, x, 3.0 * y),
        where((x <= y) & invert(x < 0.0), y, x),
        binary("atan2", y, x),
        -x - 2.0,
        abs(x) / (2.0 + y * y),
        *(unary(op, 0.3 * x) for op in ("tan", "asin", "acos", "exp", "tanh")),
        unary("log", 3.0 + x),
        unary("sqrt", 3.0 + y),
        graph.load(1, 1),
        graph.load(1, 1),
    ]
    ends = tuple(graph.operand(z) for z in result)
    return Trace(graph, (2,), ends, (3, len(ends) - 3), None)


@pytest.mark.parametrize("real", ["double", "float"])
def test_operations_are_pythons(real):
    traced = operations()
    points = np.array([(1.0, 2.0), (2.0, 1.0), (-1.0, 2.0), (-1.0, -1.0), (0.5, 0.5)], TYPES[real])
    outputs, _ = HostKernel(ptx.module(traced, real))(np.zeros(1), [points], traced.sizes)
    for result, point in zip(np.hstack(outputs), points):
        expected = evaluate(traced.graph, traced.outputs, [None, point.tolist()])
        np.testing.assert_allclose(result, expected, rtol=1e-15 if real == "double" else 1e-6)


def test_what_needs_libdevice_says_so():
    assert ptx.library_functions(operations()) == ["acos", "asin", "atan2", "exp", "log", "tan", "tanh"]
    with pytest.raises(ArgumentError, match=r"libdevice: expected NVIDIA's bitcode.* for acos, asin, .* got none"):
        ptx.ptx(operations(), (9, 0))


@pytest.mark.quick(1)
@pytest.mark.parametrize("robot", ROBOTS[::-1], ids=lambda r: r.name)
def test_only_poses_of_joints_with_two_freedoms_need_libdevice(robot):
    """The angle of a cylindrical, planar or helical pair, where poses are checked."""
    result = {
        name
        for algorithm, options, _, given in CATALOGUE.values()
        for name in ptx.library_functions(trace(algorithm, structure(robot._model), options, given, guarded=True))
    }
    assert result == ({"atan2"} if robot is ROBOTS[-1] else set())


@needs_ptxas
@needs_libdevice
@pytest.mark.parametrize("real", ["double", "float"])
def test_functions_of_libdevice_are_linked(real, tmp_path):
    traced = operations()
    text = ptx.ptx(traced, (9, 0), real=real, libdevice=LIBDEVICE)
    assert ".extern" not in text
    assert "reflect" not in text
    assert text.count(".func") < 10  # the rest of the library is left out
    assembled(text, "sm_90", "f", tmp_path)


# --- PTX ---------------------------------------------------------------------------------------------------------


def kernel_ptx(robot, term, capability=(9, 0), **options):
    case = CATALOGUE[term]
    traced = trace(case.algorithm, structure(robot._model), case.options, guarded=True)
    return ptx.ptx(traced, capability, name=term, **options)


@pytest.mark.parametrize("real", ["double", "float"])
def test_the_same_operations_in_ptx(real):
    """No approximate division, no flushed subnormal number, no approximate root, and no double precision by mistake."""
    text = kernel_ptx(models.panda(), "forward_dynamics", real=real)
    kernel = text[text.index(".entry") :]
    assert ".ftz" not in text
    assert ".approx" not in text
    assert f"rcp.rn.f{32 if real == 'float' else 64}" in kernel
    if real == "float":
        assert "fma.rn.f64" not in kernel
    assert f".maxntid {ptx.THREADS}" in text
    assert ".minnctapersm" not in text
    assert ".minnctapersm 4" in kernel_ptx(models.panda(), "inverse_dynamics", real=real, blocks=4)


@pytest.mark.quick(2)
@needs_ptxas
@pytest.mark.parametrize("capability", [(7, 0), (8, 0), (9, 0)])
@pytest.mark.parametrize(("real", "most"), [("double", 168), ("float", 80)])
def test_inverse_dynamics_of_the_panda_stays_in_registers(capability, real, most, tmp_path):
    """Also if four blocks share a multiprocessor; then up to six doubles are spilled."""
    text = kernel_ptx(models.panda(), "inverse_dynamics", capability, real=real)
    registers, stack, spilled = assembled(text, ptx.processor(capability), "inverse_dynamics", tmp_path)
    assert registers <= most
    assert stack == spilled == 0
    text = kernel_ptx(models.panda(), "inverse_dynamics", capability, real=real, blocks=4)
    registers, stack, spilled = assembled(text, ptx.processor(capability), "inverse_dynamics", tmp_path)
    assert registers <= 128
    assert stack <= 24
    assert spilled <= 48


@pytest.mark.quick(1)
@needs_ptxas
@pytest.mark.parametrize(
    ("robot", "term", "real", "most"),
    [
        (models.panda(), "forward_dynamics", "double", 700),
        (models.panda(), "forward_dynamics", "float", 0),
        (models.quadruped(), "inverse_dynamics", "double", 200),
        (models.quadruped(), "forward_dynamics", "double", 2950),
        (models.quadruped(), "forward_dynamics", "float", 850),
        (models.quadruped(), "terms", "double", 3100),
        (models.quadruped(), "terms", "float", 1000),
    ],
    ids=lambda x: getattr(x, "name", x),
)
def test_long_functions_use_memory_as_planned(robot, term, real, most, tmp_path):
    """The assembler hardly reorders instructions by itself."""
    _, stack, spilled = assembled(kernel_ptx(robot, term, real=real), "sm_90", term, tmp_path)
    assert stack <= most
    assert spilled <= 128


def test_a_processor_for_every_capability():
    result = [ptx.processor(c) for c in ((7, 0), (7, 2), (7, 5), (8, 7), (9, 0), (10, 0), (12, 1))]
    assert result == ["sm_70", "sm_70", "sm_75", "sm_86", "sm_90", "sm_90", "sm_90"]
    with pytest.raises(ArgumentError, match=r"capability: expected 7\.0 or more, got 6\.1"):
        ptx.processor((6, 1))


def test_a_kernel_has_no_room_for_any_number_of_arguments():
    graph = Graph()
    total = sum((graph.load(0, k) * graph.load(1, 0) for k in range(5000)), 0.0)
    traced = Trace(graph, (1,), (graph.operand(total),), (1,), None)
    with pytest.raises(ArgumentError, match="too many numbers for a kernel's arguments: 40032 of 32764 bytes"):
        ptx.module(traced)
    assert len(ptx.Kernel(traced, "float").numbers) == 5000


# --- a file of it ------------------------------------------------------------------------------------------------


def test_to_ptx_has_the_robot_in_it(tmp_path):
    arm = models.panda()
    path = interop.to_ptx(arm, tmp_path / "arm.ptx", "forward_dynamics", capability=(8, 0))
    text = path.read_text()
    assert "forward_dynamics(int64 states, const double q[states][7]," in text
    assert ".target sm_80" in text
    assert text.count(".param .u64") + text.count(".param .b64") >= 6
    assert ".param .f64" not in text
    assert interop.to_ptx(arm, tmp_path / "again.ptx", "forward_dynamics", capability=(8, 0)).read_text() == text
    heavier = arm.with_payload(1.0, (0.0, 0.0, 0.1), 0.01 * np.eye(3))
    assert interop.to_ptx(heavier, tmp_path / "other.ptx", "forward_dynamics", capability=(8, 0)).read_text() != text


@needs_ptxas
def test_the_assembler_reads_the_file(tmp_path):
    path = interop.to_ptx(
        models.quadruped(), tmp_path / "dog.ptx", "gravity_force", precision="float", capability=(8, 0)
    )
    assembled(path.read_text(), "sm_80", "gravity_force", tmp_path)


def test_bad_input(tmp_path):
    robot = models.two_link()
    with pytest.raises(NameNotFoundError, match=r"term: expected one of inverse_dynamics.* got 'inverse'"):
        interop.to_ptx(robot, tmp_path / "x.ptx", "inverse")
    with pytest.raises(ArgumentError, match="precision: expected 'double' or 'float', got 'half'"):
        interop.to_ptx(robot, tmp_path / "x.ptx", precision="half")
    assert list(tmp_path.iterdir()) == []
