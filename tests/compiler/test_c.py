"""C export compiles without warnings and agrees with Python."""

import ctypes
import math
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from geomctrl import models
from geomctrl.compiler.arithmetic import Sizes
from geomctrl.compiler.catalogue import CATALOGUE
from geomctrl.compiler.kernel_traces import structure
from geomctrl.errors import ArgumentError, NameNotFoundError
from geomctrl.terms.requested_terms import compiled_term, expected_outputs
from geomctrl.testing import random_robot
from geomctrl.tracing.backends import c_names, entries, host, llvm
from geomctrl.tracing.backends.c import Function, Parameter, definition, literal
from geomctrl.tracing.backends.rounding import evaluated, tolerances
from geomctrl.tracing.symbols import Graph, binary, unary, where
from geomctrl.tracing.traces import Trace

COMPILER = shutil.which("gcc") or shutil.which("cc")
FLAGS = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
TARGETS = [["aarch64-linux-musl"], ["thumb-linux-musleabihf", "-mcpu=cortex_m7"]]
KINDS = ["free", "revolute", "prismatic", "helical", "spherical"]
ROBOTS = [models.two_link(), models.panda(), random_robot(np.random.default_rng(4), KINDS, [-1, 0, 1, 1, 0])]
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler on this machine")


def library(robot, tmp_path, terms, **options):
    header, source, test = robot.to_c(tmp_path, terms=terms, name="arm", **options)
    assert header.name == "arm.h"
    made, built = tmp_path / "arm.o", tmp_path / "arm.so"
    for command in (
        ["-fPIC", "-c", "-o", made, source],
        ["-shared", "-o", built, made, "-lm"],
        ["-o", tmp_path / "test", made, test, "-lm"],
    ):
        subprocess.run([COMPILER, *FLAGS, *command], check=True)
    agreed = subprocess.run([tmp_path / "test"], capture_output=True, text=True)
    assert agreed.returncode == 0, agreed.stdout
    return ctypes.CDLL(str(built))


def called(function, arrays, sizes, kind=np.float64):
    out = [np.full(n, np.nan, kind) for n in sizes]
    raw_inputs = [np.ascontiguousarray(x, kind) for x in arrays]
    good = function(*(ctypes.c_void_p(x.ctypes.data) for x in (*raw_inputs, *out)))
    return good, out


def test_terms_with_external_wrenches_are_compared_with_those_of_the_robot():
    robot, rng = models.two_link(), np.random.default_rng(0)
    q, v, u = rng.normal(size=(3, 2))
    wrenches = rng.normal(size=(2, 6))
    for name, inputs, right in (
        ("inverse_dynamics_external", [q, v, u, v, wrenches], robot.inverse_dynamics(q, v, u, f_ext=wrenches)),
        ("forward_dynamics_external", [q, v, u, wrenches], robot.forward_dynamics(q, v, u, f_ext=wrenches)),
    ):
        term = compiled_term(robot, name, None, "body", "terms")
        np.testing.assert_allclose(expected_outputs(robot, term, inputs)[0], right, rtol=1e-12)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("robot", ROBOTS, ids=lambda r: r.name)
def test_every_term_is_what_python_computes(robot, tmp_path):
    arm, sizes, rng = (
        library(robot, tmp_path, list(CATALOGUE)),
        Sizes(structure(robot._model)),
        np.random.default_rng(0),
    )
    for name, (algorithm, options, _, present) in CATALOGUE.items():
        inputs = [x for x in algorithm.inputs if not x.optional or x.name in present]
        arrays = [robot.random_configuration(rng) if x.name == "q" else rng.normal(size=sizes.of(x)) for x in inputs]
        good, out = called(getattr(arm, f"arm_{name}"), arrays, [sizes.of(y) for y in algorithm.outputs])
        table = dict(zip((x.name for x in inputs), arrays))
        rows = [table[x.name][None] if x.name in table else np.empty((0, 0)) for x in algorithm.inputs]
        expected = algorithm.many(robot._model, *rows, *options.values())
        expected = expected[0] if algorithm.may_fail else expected
        assert good == 1
        for y, z in zip(out, expected if isinstance(expected, tuple) else (expected,)):
            np.testing.assert_allclose(y, z[0].ravel(), rtol=1e-12, atol=1e-13 * max(1.0, np.abs(z).max()))


@needs_compiler
def test_single_precision(tmp_path):
    robot, rng = models.panda(), np.random.default_rng(1)
    arm = library(robot, tmp_path, ["inverse_dynamics"], precision="float")
    q, v, a = rng.normal(size=(3, 7))
    _, (tau,) = called(arm.arm_inverse_dynamics, (q, v, a), [7], np.float32)
    np.testing.assert_allclose(tau, robot.inverse_dynamics(q, v, a), rtol=1e-4, atol=2e-4)
    assert "double" not in (tmp_path / "arm.c").read_text()


@needs_compiler
def test_a_singular_mass_matrix_returns_zero(tmp_path):
    robot = models.two_link()
    negative = robot.with_parameters(robot.parameters * [[1.0], [-1.0]], physical=False)
    arm = library(negative, tmp_path, ["forward_dynamics", "mass_matrix"])
    assert called(arm.arm_forward_dynamics, np.ones((3, 2)), [2])[0] == 0


@needs_compiler
@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("wrong", ["9.80", "NAN+0.0"])
def test_the_test_program_finds_a_wrong_number(tmp_path, precision, wrong):
    _, source, test = models.two_link().to_c(tmp_path, name="arm", precision=precision)
    text = source.read_text()
    assert "9.81" in text
    source.write_text(text.replace("9.81", wrong))
    subprocess.run([COMPILER, *FLAGS, "-o", tmp_path / "test", source, test, "-lm"], check=True)
    agreed = subprocess.run([tmp_path / "test"], capture_output=True, text=True)
    assert agreed.returncode == 1
    assert "arm_inverse_dynamics, tau: off by" in agreed.stdout


@needs_compiler
def test_operations_of_c_are_pythons(tmp_path):
    graph = Graph()
    x, y = (graph.load(1, k) for k in range(2))
    outputs = [
        binary("min", x, y),
        binary("max", x, y),
        where(x < y, x, 3.0 * y),
        where(x <= y, y, x),
        binary("atan2", y, x),
        -x - 2.0,
        where((x < 0.0) | (y < 0.0), 1.0, 2.0),
    ]
    traced = Trace(graph, (2, 1), tuple(graph.operand(z) for z in outputs), (len(outputs),), None)
    f = Function("f", traced, [Parameter("q", 2, ""), Parameter("unused", 1, "")], [Parameter("y", len(outputs), "")])
    (tmp_path / "f.c").write_text("#include <math.h>\n" + definition(f))
    subprocess.run([COMPILER, *FLAGS, "-fPIC", "-shared", "-o", tmp_path / "f.so",
                    tmp_path / "f.c", "-lm"], check=True)  # fmt: skip
    compiled = ctypes.CDLL(str(tmp_path / "f.so")).f
    for a, b in ((1.0, 2.0), (2.0, 1.0), (-1.0, 2.0), (-1.0, -1.0)):
        good, (found,) = called(compiled, ([a, b], [0.0]), [len(outputs)])
        expected = [
            min(a, b),
            max(a, b),
            a if a < b else 3.0 * b,
            b if a <= b else a,
            math.atan2(b, a),
            -a - 2.0,
            1.0 if a < 0.0 or b < 0.0 else 2.0,
        ]
        assert good == 1
        np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t[-1])
@pytest.mark.parametrize("precision", ["double", "float"])
def test_other_processors(target, precision, tmp_path):
    pytest.importorskip("ziglang", reason="the cross-compiler ziglang is not installed (make cross)")
    _, source, test = models.panda().to_c(
        tmp_path, ["inverse_dynamics", "forward_dynamics", "terms"], precision=precision
    )
    for file in (source, test):
        command = [sys.executable, "-m", "ziglang", "cc", "-target", *target, *FLAGS, "-c", "-o", tmp_path / "o", file]
        subprocess.run(command, check=True, env=os.environ | {"ZIG_GLOBAL_CACHE_DIR": str(tmp_path / "cache")})


def test_the_header_says_what_is_what(tmp_path):
    header, *_ = models.panda().to_c(tmp_path, terms=["mass_matrix", "forward_dynamics"])
    text = header.read_text()
    for words in (
        "panda: 7 bodies, nq = 7, nv = 7",
        " 0: panda_joint1\n",
        "M[49]: mass matrix",
        "Returns 0 where the mass matrix is not positive definite",
        "int panda_mass_matrix(const double q[7], double M[49]);",
    ):
        assert words in text


@needs_compiler
def test_names_are_no_code(tmp_path):
    arm = models.two_link()
    names = dict(zip(arm.body_names, ("a */", "b; int y;")))
    frames = [f._replace(name=names.get(f.name, f.name)) for f in arm.frames]
    odd = replace(arm, name="*/ int x; /*", body_names=tuple(names.values()), frames=frames)
    library(odd, tmp_path, ["gravity_force"])


@needs_compiler
def test_one_file_writes_the_same_twice(tmp_path):
    first, second = (models.panda().to_c(tmp_path / k)[1].read_bytes() for k in "ab")
    assert first == second


def test_bad_input(tmp_path):
    robot = models.two_link()
    with pytest.raises(NameNotFoundError, match=r"terms: expected one of inverse_dynamics.* got 'inverse'"):
        robot.to_c(tmp_path, terms=["inverse"])
    with pytest.raises(ArgumentError, match="name: expected a name in C, got '3r'"):
        robot.to_c(tmp_path, name="3r")
    with pytest.raises(ArgumentError, match="precision"):
        robot.to_c(tmp_path, precision="half")
    with pytest.raises(ArgumentError, match="terms: expected at least one"):
        robot.to_c(tmp_path, terms=[])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.quick(1)
@needs_compiler
@pytest.mark.parametrize("precision", ["double", "float"])
def test_terms_of_bundled_robots_agree_with_python(tmp_path, precision):
    """Tolerances for each number: Mdot of a satellite with wheels is a small difference of large numbers."""
    for robot in (models.satellite(wheels=True), models.quadrotor(), models.cart_pole()):
        files = robot.to_c(tmp_path, ["terms", "terms_christoffel", "forward_dynamics"], name="r", precision=precision)
        for flags in (FLAGS, ["-x", "c++", "-Wall", "-Wextra", "-Werror", "-pedantic"]):
            subprocess.run([COMPILER, *flags, "-o", tmp_path / "test", *files[1:], "-lm"], check=True)
            agreed = subprocess.run([tmp_path / "test"], capture_output=True, text=True)
            assert agreed.returncode == 0, agreed.stdout


def test_a_robots_name_becomes_a_prefix(tmp_path):
    for name, prefix in (
        ("3 arms", "robot_3_arms"),
        ("Bras-robot é", "Bras_robot"),
        ("_", "robot"),
        ("math", "robot_math"),
    ):
        files = replace(models.two_link(), name=name).to_c(tmp_path, ["gravity_force"])
        assert files[0].name == f"{prefix}.h"
        assert f"int {prefix}_gravity_force(" in files[0].read_text()


@needs_compiler
def test_no_parameter_is_a_keyword_or_macro(tmp_path):
    """All keywords of C and C++ and all names of this machine's headers: each becomes a parameter of a function
    that calls libm.
    """
    headers = "".join(f"#include <{x}.h>\n" for x in ("math", "string", "stdio", "stdlib", "errno", "limits"))
    defined = subprocess.run([COMPILER, "-dM", "-E", "-"], input=headers, capture_output=True, text=True, check=True)
    macros = re.findall(r"#define ([A-Za-z]\w*) ", defined.stdout)  # keywords without arguments
    assert {"NAN", "errno", "linux", "stdin"} & set(macros)
    for name in (*c_names.KEYWORDS.split(), *macros, "t0", "t17", "sin", "sinf", "memcpy"):
        result = c_names.parameter(name)
        assert result not in {*c_names.KEYWORDS.split(), *macros}
        assert c_names.is_name(result.rstrip("_"))
    names = [c_names.parameter(x) for x in ("int", "sin", "sqrt", "t1", "NAN", "errno", "class", "linux", "a b", "7")]
    graph = Graph()
    ends = [binary("atan2", graph.load(k + 1, 0), unary("sin", graph.load(1, 0))) for k in range(len(names))]
    traced = Trace(graph, (1,) * len(names), tuple(graph.operand(x) for x in ends), (len(ends),), None)
    f = Function("f", traced, [Parameter(x, 1, "", True) for x in names], [Parameter("y", len(ends), "")])
    for file, flags in (("f.c", FLAGS), ("f.cpp", ["-Wall", "-Wextra", "-Werror"])):
        (tmp_path / file).write_text(headers + definition(f))
        subprocess.run(
            [COMPILER, *flags, "-Wno-missing-declarations", "-c", "-o", tmp_path / "f.o", tmp_path / file], check=True
        )


def test_parameters_have_names_of_their_own():
    taken = []
    for name in ("a b", "a-b", "a_b", "int", "int_"):
        taken.append(c_names.parameter(name, taken))
    assert taken == ["a_b", "a_b_2", "a_b_3", "int_", "int_2"]


def test_numbers_that_float_can_not_hold():
    assert literal(1e-300, "float") == "1.1754943508222875e-38f"
    assert literal(-1e300, "float") == "(-3.4028234663852886e+38f)"
    assert literal(1e-300, "double") == "1e-300"
    assert literal(-0.0, "float") == "(-0.0f)"
    assert literal(math.inf, "float") == "INFINITY"


def test_tolerances_grow_with_cancellation_alone():
    graph = Graph()
    x = graph.load(1, 0)
    small, plain = (x + 1e8) - x * 1.0 - 1e8 + x, 3.0 * x
    traced = Trace(graph, (1,), (graph.operand(small), graph.operand(plain)), (1, 1), None)
    raw_inputs = [np.array([0.3])]
    bad, good = tolerances(traced, raw_inputs, [np.array([0.3]), np.array([0.9])], "double")
    assert 1e-9 < bad[0] < 1e-5
    assert good[0] < 1e-12
    assert tolerances(traced, raw_inputs, [np.array([0.3]), np.array([0.9])], "float")[1][0] < 1e-5


def test_scratch_memory_that_is_too_large_for_a_stack_is_allocated(monkeypatch):
    """The code gives the same results with memory from the stack and from the heap."""
    graph = Graph()
    x = [graph.load(1, k) for k in range(50)]
    for k in range(200):
        x.append(unary("sin", x[-50]) * x[-1 - k % 49] + 0.5)
    traced = Trace(graph, (50,), tuple(graph.operand(y) for y in x[-90:]), (90,), None)
    given, found = np.random.default_rng(0).normal(size=50), []
    for most in (10**6, 0):
        monkeypatch.setattr(llvm, "STACK", most)
        text = llvm.module(traced, [1])
        assert (" alloca double" in text.partition("@f_one")[2]) == (most > 0) == ("geomctrl_allocate" not in text)
        call = entries.entry(host.load(host.object_code(text), ["f_one"])[0], np.zeros(1), [(50,)], [(90,)])
        found.append(call(given))
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_allclose(found[0], evaluated(traced, [given])[0], rtol=1e-12)
