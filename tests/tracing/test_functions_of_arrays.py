"""Functions of arrays as traces: machine code, C, enclosures, derivatives, without a robot."""

import ctypes
import doctest
import functools
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from geomctrl.errors import ArgumentError
from geomctrl.tracing import UntraceableError, function, trace

COMPILER = shutil.which("gcc") or shutil.which("cc")


def pendulum(x, u):
    return np.array([x[1], u - 9.81 * np.sin(x[0])])


def several(A, b, c):
    """A solution, a number, a matrix of what was given."""
    x = np.linalg.solve(A @ A.T + 4.0 * np.eye(3), b)
    return x, math.exp(-c * c) + x @ x, np.outer(b, x) + A, [b[0], c]


def rotation(x):
    theta = np.sqrt(x @ x) + 1e-9
    axis = x / theta
    K = np.array([[0.0, -axis[2], axis[1]], [axis[2], 0.0, -axis[0]], [-axis[1], axis[0], 0.0]])
    return np.eye(3) + np.sin(theta) * K + (1.0 - np.cos(theta)) * K @ K


def cube(x):
    return np.sum(x**3, axis=(0, 2)) + x[0, 0, 0]


CASES = {
    "pendulum": (pendulum, [(2,), ()]),
    "several": (several, [(3, 3), (3,), ()]),
    "rotation": (rotation, [(3,)]),
    "cube": (cube, [(2, 2, 3)]),
    "number": (lambda x: math.sin(x) + 1.0, [()]),
    "constant": (lambda x: np.array([1.0, x]), [()]),
}


def tupled(x):
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.parametrize("name", CASES)
def test_one_state_is_what_python_returns(name):
    f, shapes = CASES[name]
    call, rng = trace(f, *shapes).to_llvm(), np.random.default_rng(1)
    for _ in range(5):
        arguments = [rng.normal(size=shape) if shape else float(rng.normal()) for shape in shapes]
        outcome, expected = call(*arguments), f(*arguments)
        assert isinstance(outcome, tuple) == isinstance(expected, tuple)
        for x, y in zip(tupled(outcome), tupled(expected), strict=True):
            assert np.shape(x) == np.shape(y)
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("lead", [(1,), (13,), (3, 4), (0,)])
@pytest.mark.parametrize("name", CASES)
def test_many_states(name, lead):
    f, shapes = CASES[name]
    call, rng = trace(f, *shapes).to_llvm(), np.random.default_rng(2)
    arguments = [rng.normal(size=(*lead, *shape)) for shape in shapes]
    outcome = tupled(call(*arguments))
    for x in np.ndindex(*lead):
        one = tupled(f(*(a[x] if shape else float(a[x]) for a, shape in zip(arguments, shapes))))
        for y, expected in zip(outcome, one, strict=True):
            np.testing.assert_allclose(y[x], expected, rtol=1e-12, atol=1e-13)
    assert all(y.shape[: len(lead)] == lead for y in outcome)


def of_a_domain(x):
    return math.acos(x[0]) + x[1]


def test_where_there_is_no_result_python_answers():
    call = trace(of_a_domain, 2).to_llvm()
    with pytest.raises(ValueError, match="domain"):
        call(np.array([1.5, 0.0]))
    with pytest.raises(ValueError, match="domain"):
        call(np.array([[0.5, 0.0], [1.5, 0.0]]))
    assert np.isnan(call(np.array([0.5, np.nan])))
    rows = np.array([[0.5, 1.0], [0.5, np.inf], [0.5, np.nan]])
    np.testing.assert_array_equal(call(rows), [of_a_domain(x) for x in rows])


def test_derivatives_are_those_of_differences_in_python():
    rng, h = np.random.default_rng(3), 1e-6
    for f, shapes in CASES.values():
        for k, shape in enumerate(shapes):
            created = trace(f, *shapes).derivative(k)
            point = [rng.normal(size=own) if own else float(rng.normal()) for own in shapes]
            outcome = tupled(created.to_llvm()(*point))
            values = tupled(f(*point))
            for j in np.ndindex(*shape):
                sides = []
                for sign in (1.0, -1.0):
                    moved = [np.array(x, float) for x in point]
                    moved[k][j] += sign * h
                    sides.append(tupled(f(*(x if own else float(x) for x, own in zip(moved, shapes)))))
                for y, value, up, down in zip(outcome, values, *sides, strict=True):
                    assert np.shape(y) == (*np.shape(value), *shape)
                    slope = (np.asarray(up) - np.asarray(down)) / (2.0 * h)
                    np.testing.assert_allclose(np.asarray(y)[(..., *j)], slope, rtol=1e-7, atol=1e-7)


def test_second_derivatives():
    hessian = trace(lambda x: x[0] ** 2 * x[1] + np.sin(x[1]), 2).derivative().derivative().to_llvm()
    a, b = 0.7, -0.4
    np.testing.assert_allclose(hessian(np.array([a, b])), [[2 * b, 2 * a], [2 * a, -np.sin(b)]], rtol=1e-14)


@pytest.mark.parametrize("name", CASES)
def test_enclosures_hold_all_values(name):
    f, shapes = CASES[name]
    rng = np.random.default_rng(4)
    middle = [rng.normal(size=shape) for shape in shapes]
    boxes = [(x - 0.1, x + 0.1) for x in middle]
    bounds = trace(f, *shapes).enclose(*boxes)
    bounds = bounds if isinstance(f(*middle), tuple) else (bounds,)
    for _ in range(50):
        point = [rng.uniform(lo, hi) for lo, hi in boxes]
        for (lo, hi), y in zip(bounds, tupled(f(*point)), strict=True):
            assert np.shape(lo) == np.shape(hi) == np.shape(y)
            assert np.all(lo <= y)
            assert np.all(y <= hi)


def test_an_enclosure_is_tight_and_says_where_nothing_is_known():
    created = trace(lambda x: x * x + 1.0, ())
    lo, hi = created.enclose((-1.0, 2.0))
    assert 1.0 - 1e-12 < lo <= 1.0
    assert 5.0 <= hi < 5.0 + 1e-12
    assert trace(lambda x: 1.0 / x, ()).enclose((-1.0, 2.0)) == (-np.inf, np.inf)


@pytest.mark.skipif(COMPILER is None, reason="no C compiler on this machine")
@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("name", CASES)
def test_c(name, precision, tmp_path):
    f, shapes = CASES[name]
    _, source, test = trace(f, *shapes).to_c(tmp_path, "own", precision=precision)
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    subprocess.run([COMPILER, *flags, "-o", tmp_path / "test", source, test, "-lm"], check=True)
    done = subprocess.run([tmp_path / "test"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "own_value, result" in done.stdout


@pytest.mark.skipif(COMPILER is None, reason="no C compiler on this machine")
def test_c_has_the_functions_own_names_but_for_those_of_c(tmp_path):
    def f(int, sin, theta, t1, M_PI):
        return np.sin(int) + np.cos(sin * theta) - t1 * M_PI

    header, source, _ = trace(f, (), (), (), (), ()).to_c(tmp_path, "own")
    assert "int own_value(double int_, double sin_, double theta, double t1_, double M_PI_, " in header.read_text()
    built = tmp_path / "own.so"
    subprocess.run([COMPILER, "-std=c99", "-Werror", "-fPIC", "-shared", "-o", built, source, "-lm"], check=True)
    x, result = [0.3, 0.7, -0.2, 1.5, 0.4], (ctypes.c_double * 1)()
    assert ctypes.CDLL(str(built)).own_value(*map(ctypes.c_double, x), result) == 1
    assert result[0] == pytest.approx(f(*x), rel=1e-15)


def counting():
    calls = [0]

    def f(x):
        calls[0] += 1
        return x * calls[0]

    return f


STATE = {"gain": 1.0}


def test_what_depends_on_more_than_its_arguments_is_refused_at_every_use():
    with pytest.raises(UntraceableError, match=r"calls changes during a call.* has no memory"):
        trace(counting(), ())
    created = trace(lambda x: STATE["gain"] * x[0], 2)
    STATE["gain"] = 2.0
    try:
        with pytest.raises(UntraceableError, match="f: compiled, it differs from Python"):
            created.to_llvm()
        with pytest.raises(UntraceableError, match="outside of the bounds"):
            created.enclose(([1.0, 0.0], [1.5, 0.0]))
    finally:
        STATE["gain"] = 1.0


@pytest.mark.parametrize(
    ("f", "shapes", "error", "words"),
    [
        (lambda x: complex(x[0]).real, [2], UntraceableError, r"used as a complex number, in .*, line \d+"),
        (lambda x: np.linalg.eig(x)[0], [(2, 2)], UntraceableError, "f can not be traced"),
        (lambda x: "text", [2], ArgumentError, "f: expected a function that returns numbers, got 'text'"),
        (lambda x: x > 0.0, [()], ArgumentError, "got a condition"),
        (lambda x: (), [()], ArgumentError, "got none"),
        (
            lambda x: math.acos(2.0 + x * x),
            [()],
            UntraceableError,
            "Python raises at all 64 points of the comparison: ValueError",
        ),
        (3.0, [()], ArgumentError, "f: expected a function"),
        (lambda x: x, [-1], ArgumentError, r"shapes\[0\]: expected a whole number"),
        (lambda x: x, [(2, 0.5)], ArgumentError, r"shapes\[0\]"),
        (lambda x: x, [10**9], ArgumentError, r"shapes\[0\]: expected at most 70000 numbers"),
        (lambda x: x, [2, 2], UntraceableError, "TypeError"),
    ],
)
def test_what_is_refused(f, shapes, error, words):
    with pytest.raises(error, match=words):
        trace(f, *shapes)


def test_bad_arguments():
    created = trace(pendulum, 2, ())
    call = created.to_llvm()
    for arguments, words in (
        ((np.zeros(2),), "arguments: expected 2, got 1"),
        ((np.zeros(3), 0.0), r"x: expected shape"),
        ((np.zeros((4, 2)), np.zeros(3)), "u: expected the leading axes of x"),
        ((np.zeros(2), "1"), "u: expected"),
    ):
        with pytest.raises(ArgumentError, match=words):
            call(*arguments)
    for boxes, words in (
        (([[0.0, 0.0], [1.0, 1.0]],), "boxes: expected 2"),
        (([0.0, 1.0], [0.0, 1.0]), r"boxes\[0\]: expected shape"),
        (([[1.0, 0.0], [0.0, 1.0]], [0.0, 1.0]), r"boxes\[0\]: expected \(lo, hi\) with lo <= hi"),
    ):
        with pytest.raises(ArgumentError, match=words):
            created.enclose(*boxes)
    with pytest.raises(ArgumentError, match="argument: expected a whole number from 0 to 1"):
        created.derivative(2)


class Scaled:
    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return self.k * np.asarray(x)

    def method(self, x):
        return self.k + x


@pytest.mark.parametrize("f", [Scaled(2.0), Scaled(2.0).method, functools.partial(lambda k, x: k * x, 3.0)])
def test_what_can_be_called(f):
    x = np.array([0.5, -1.0])
    np.testing.assert_array_equal(trace(f, 2).to_llvm()(x), f(x))


def test_the_examples_in_docstrings_and_in_the_readme_run(tmp_path, monkeypatch):
    assert doctest.testmod(function) == (0, 8)
    monkeypatch.chdir(tmp_path)
    text = (Path(function.__file__).parent / "README.md").read_text(encoding="utf-8")
    blocks, space = re.findall(r"```python\n(.*?)```", text, re.DOTALL), {}
    for block in blocks:
        exec(compile(block, "geomctrl/tracing/README.md", "exec"), space)
    assert (tmp_path / "out/c/pendulum.h").exists()
    np.testing.assert_allclose(space["jacobian"](np.array([0.3, 0.1]), 0.0), [[0.0, 1.0], [-9.81 * np.cos(0.3), 0.0]])


def test_no_robot_is_imported():
    code = (
        "import sys, numpy as np; from geomctrl.tracing import trace;"
        "trace(lambda x: np.sin(x), 3).to_llvm()(np.ones(3));"
        "own = [m for m in sys.modules if m.startswith('geomctrl.') and m.split('.')[1] not in"
        " ('tracing', 'errors', 'files', 'arguments', 'caches', 'other_names')];"
        "assert not own, own"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("exponent", [-3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 5.0, 0.5, 2.5])
def test_enclosures_of_powers(exponent):
    """A power of positive numbers increases or decreases: its ends are its values at the ends."""
    created = trace(lambda x: np.power(x, exponent), ())
    ends = sorted((0.3**exponent, 1.7**exponent))
    lo, hi = created.enclose((0.3, 1.7))
    assert lo <= ends[0] <= ends[1] <= hi
    np.testing.assert_allclose((lo, hi), ends, rtol=1e-12)
    if exponent == int(exponent) and exponent > 0:
        lo, hi = created.enclose((-0.5, 0.3))
        assert lo <= min((-0.5) ** exponent, 0.0) <= 0.3**exponent <= hi
