"""Arrays of a module beside lists, tuples, arrays and numbers that depend on the state.

Each generated function has the value, and the kind of number or array, that it has in Python, at ordinary states and at
nan, infinity and signs of zero; or it is refused with its line.
"""

import contextlib
import itertools
import math
import random
import threading
import types

import numpy as np
import pytest
import scipy.linalg

from geomctrl.errors import ArgumentError
from geomctrl.tracing import trace
from geomctrl.tracing.backends.rounding import evaluated, has_result
from geomctrl.tracing.tracer import traced
from geomctrl.tracing.untraceable import UntraceableError

K = np.array([[1.0, 2.0], [3.0, 0.5]])
V = np.array([2.0, -0.0])
ZEROS = np.array([[0.0, 1.0], [-1.0, 0.0]])
N = np.array([[1, 2], [0, 3]])
MASK = np.array([True, False])
SPACE = np.array([1.0, -2.0, 0.5])
SORTED = np.array([-1.0, 0.5, 2.0])
LISTED = [K, [V, 1.0]]
NAMED = {"k": K, "inner": {"v": V}}
PAIR = (K, (V, 2.0))


class Gains:
    K = K
    rows = [V]  # noqa: RUF012


CONFIGURATION = types.SimpleNamespace(K=K, n=N)

ARRAYS = [
    *("K", "V", "ZEROS", "N", "MASK", "K[0]", "K.T", "K[None]", "K[:, 1]", "K[..., None]", "K.copy()", "2.0 * K"),
    *(
        "K + K.T",
        "-K",
        "K.reshape(-1)[:2]",
        "K.ravel()[2:]",
        "np.asarray(K)",
        "K.astype(float)",
        "np.diag(V)",
        "K.sum(0)",
    ),
    *("K.sum()", "K[0, 1]", "N[0]", "N.T", "N @ N", "K > 1.0", "np.linalg.inv(K)", "np.abs(ZEROS)", "np.arange(2)"),
    *("np.array([1, 2])", "np.sqrt(N)", "np.linspace(0, 1, 2)", "LISTED[0]", "LISTED[1][0]", "NAMED['k']", "Gains.K"),
    *("NAMED['inner']['v']", "PAIR[0]", "PAIR[1][0]", "Gains.rows[0]", "CONFIGURATION.K", "CONFIGURATION.n", "gain"),
    *("np.linalg.eigvalsh(K)", "np.where(K > 1.0, K, 0.0)", "np.stack([V, V])", "np.maximum(K, N)", "K.diagonal()"),
    *("np.array(K)", "np.zeros((2, 2), int)", "np.eye(2)", "K[int(t > 0.0)]", "K.clip(0.7, 2.0)", "np.triu(K)"),
]
OF_LIBRARIES = ["expm(K)", "expm(K)[0]", "float32(V)", "expm(K).T", "expm(ZEROS)[:, :1]", "expm(K)[0, 1]"]
OPERANDS = [
    *("[t, x[0]]", "(t, x[0])", "[1, t]", "[0, t]", "[t, -0.0]", "x", "t", "x[0]", "[x, x]", "[x[1], x]", "x[:1]"),
    *("[[t, 1.0], [x[0], 2]]", "[t > 0.0, True]", "[int(t > 0.0), 2]", "np.array([t, x[0]])", "int(t > 0.0)"),
    *("[True, t]", "[t]", "2.0", "[1.0, 2.0]", "([t, 2.0], x)", "t > 0.0", "K", "[V[0], t]"),
]
OPERATORS = [
    *(f"({{a}}) {op} {{b}}" for op in ("+", "-", "*", "/", "//", "%", "**", "@", "<", "<=", ">", ">=", "==", "!=")),
    *(f"{{b}} {op} ({{a}})" for op in ("+", "-", "*", "/", "//", "%", "**", "@", "<", "<=", ">", ">=", "==", "!=")),
    *(f"np.{name}({{a}}, {{b}})" for name in ("dot", "matmul", "add", "multiply", "maximum", "outer", "inner", "fmin")),
    *("({a}).dot({b})", "np.dot({b}, {a})", "np.matmul({b}, {a})", "np.einsum('ij,j', {a}, {b})", "np.kron({a}, {b})"),
    *("np.concatenate([{a}, {b}])", "np.stack([{a}, {b}])", "np.linalg.solve({a}, {b})", "np.allclose({a}, {b})"),
    *("{operator}.matmul({a}, {b})", "np.where({a}, {b}, 2.0)", "np.clip({a}, {b}, None)", "np.append({a}, {b})"),
    *("np.cross(SPACE, [t, *V])", "np.cross([t, x[0], 1.0], SPACE)", "SORTED.searchsorted({b})", "({a}).clip({b})"),
    *(
        "np.vstack([{a}, {b}])",
        "np.array([{a}, {b}])",
        "changed({a}, {b})",
        "np.hypot({a}, {b})",
        "divmod({a}, {b})[1]",
    ),
]
AFTER = [
    *("{y}", "{y}", "{y}", "({y}).argmax()", "({y}).max()", "({y})[0]", "({y}).sum()", "np.argmin({y})", "1.0 / ({y})"),
    *("({y}).T", "({y}) * [t, 1.0]", "({y}) > [x[0], t]", "({y}).min(0)", "np.mean({y})", "({y}).ravel()[-1]"),
    *("max(({y}).ravel())", "({y}).prod()", "({y}).any()", "({y}).all()", "[*({y})][0]", "sum(({y}).tolist())"),
    *(
        "type({y}) is np.ndarray",
        "isinstance({y}, np.ndarray)",
        "({y}) @ [t, x[1]]",
        "-({y})",
        "abs({y})",
        "({y}) ** 2",
    ),
]
VALUES = [0.4, -1.5, 0.0, -0.0, 2.0, math.nan, math.inf, -math.inf, 1e100]
STATES = [
    *((0.4, 0.7, -0.2), (-1.5, 2.5, 3.0), (0.4, 0.4, 0.4), (1.0, 0.1, math.nan), (1.0, math.nan, 2.0)),
    *((t, x, y) for k, (t, x, y) in enumerate(itertools.product(VALUES, VALUES, VALUES)) if k % 13 == 0),
]


def described(y):
    """The numbers of a result, and of what kind it is."""
    y = y if isinstance(y, np.ndarray) or not isinstance(y, (list, tuple)) else np.array(y)
    first = (y.ravel() if isinstance(y, np.ndarray) and y.ndim and y.size else [y])[0]
    kinds = [isinstance(y, np.ndarray), isinstance(y, int), isinstance(y, bool), isinstance(y, float)]
    kinds += [type(first + 0.0) is float, np.ndim(y) == 0]
    return np.concatenate([np.ravel(np.asarray(y) * 1.0), [1.0 if kind else 0.0 for kind in kinds]])


SPACE_OF_USERS = {
    **{
        name: globals()[name] for name in ("np", "math", "described", "K", "V", "ZEROS", "N", "MASK", "SPACE", "LISTED")
    },
    **{name: globals()[name] for name in ("NAMED", "PAIR", "SORTED", "Gains", "CONFIGURATION")},
    "__name__": "users_module",
    "expm": scipy.linalg.expm,
    "float32": np.float32,
}
exec(
    "import operator\ndef changed(a, b):\n    y = np.array(a, float)\n    y += b\n    y[0] = y[0] * b\n    return y\n",
    SPACE_OF_USERS,
)


def written(rng, arrays=ARRAYS):
    array, operand = rng.choice(arrays), rng.choice(OPERANDS)
    y = rng.choice(OPERATORS).format(a=array, b=operand, operator="operator")
    return rng.choice(AFTER).format(y=y)


def outcome(expression):
    """Whether an expression is "refused", "equal", raises in Python, or the states at which its trace differs."""
    exec(f"def f(t, x, gain=K):\n    return described({expression})", SPACE_OF_USERS)
    f = SPACE_OF_USERS["f"]
    with np.errstate(all="ignore"):
        try:
            f(0.4, np.array([0.7, -0.2]))
        except Exception:
            return "raises"
    try:
        trace_of_f = traced(f, (), (2,)).trace
    except (UntraceableError, ArgumentError):
        return "refused"
    different = []
    for t, *x in STATES:
        arguments = [np.array([t]), np.array(x)]
        if not has_result(trace_of_f, arguments):
            continue
        actual = np.array(evaluated(trace_of_f, arguments)[0], float)
        with np.errstate(all="ignore"):
            try:
                expected = f(t, np.array(x))
            except Exception as error:
                different.append((t, x, actual, repr(error)))
                continue
        size = max(map(abs, (t, *x)))  # differences of products cancel, and numpy may fuse them
        rounding = 1e-15 * size * size if size < 1e150 else 1e-300
        if expected.shape != actual.shape or not np.allclose(actual, expected, 1e-12, rounding, equal_nan=True):
            different.append((t, x, actual, expected))
    return different or "equal"


@pytest.mark.quick(0)
@pytest.mark.parametrize("first", range(0, 480, 60))
def test_generated_functions_have_python_values_or_are_refused(first):
    outcomes = {}
    for seed in range(first, first + 60):
        expression = written(random.Random(seed))
        outcomes[expression] = outcome(expression)
    wrong = {key: x for key, x in outcomes.items() if isinstance(x, list)}
    assert not wrong
    counts = [*outcomes.values()]
    assert counts.count("equal") >= 2 * counts.count("refused")


@pytest.mark.quick(2)
@pytest.mark.parametrize("first", range(1000, 1240, 60))
def test_arrays_that_libraries_return(first):
    expressions = {written(random.Random(seed), OF_LIBRARIES) for seed in range(first, first + 60)}
    outcomes = {expression: outcome(expression) for expression in expressions}
    assert not {key: x for key, x in outcomes.items() if isinstance(x, list)}
    assert [*outcomes.values()].count("equal") >= 15


COUNTS = np.zeros(2)


def by_default(x, gain=K, *, offset=V):
    return gain @ [x[0], 1.0] + offset * [x[1], 1.0]


def in_a_closure(gain):
    def f(x):
        return gain @ [x[0], x[1]]

    return f


class Regulator:
    gain = K

    def __call__(self, x):
        return self.gain @ [x[0], -x[1]]


@pytest.mark.parametrize(
    "f", [by_default, in_a_closure(np.array([[1.0, -2.0]])), Regulator(), lambda x: PAIR[1][0] * [x]]
)
def test_arrays_that_functions_and_classes_hold(f):
    x = np.array([0.3, -0.7])
    np.testing.assert_allclose(trace(f, 2).to_llvm()(x), f(x), rtol=1e-15)


def test_nothing_is_replaced_after_tracing():
    held = [K, LISTED[0], NAMED["inner"]["v"], PAIR, PAIR[1][0], Gains.K, Gains.rows[0], CONFIGURATION.K]
    defaults, seen = by_default.__defaults__, []

    def f(x):
        seen.append(type(K))
        raise RuntimeError("stop")

    for function in (by_default, lambda x: x, f):
        with contextlib.suppress(UntraceableError):
            traced(function, (2,))
    assert seen == [np.ndarray]
    now = [K, LISTED[0], NAMED["inner"]["v"], PAIR, PAIR[1][0], Gains.K, Gains.rows[0], CONFIGURATION.K]
    assert all(a is b for a, b in zip(held, now, strict=True))
    assert {type(K), type(LISTED[0]), type(PAIR[0]), type(Gains.K)} == {np.ndarray}
    assert by_default.__defaults__ is defaults


def test_identity_and_types_are_pythons():
    def f(x):
        tests = [K is LISTED[0], K is Gains.K, PAIR[0] is K, V is K, np.asarray(K) is K, type(K) is np.ndarray]
        tests += [
            isinstance(K, np.ndarray),
            K.dtype == float,
            type(x) is np.ndarray,
            repr(K) == "x",
            type(K @ x) is type(K),
        ]
        return np.array(tests) * 1.0 + 0.0 * x[0]

    call, x = trace(f, 2), np.array([0.3, 0.7])
    np.testing.assert_array_equal(call.to_llvm()(x), f(x))
    assert f(x).tolist() == [1, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1]


def test_other_threads_compute_with_the_numbers():
    results = []

    def f(x):
        worker = threading.Thread(target=lambda: results.append((K @ [1.0, 2.0]).tolist()))
        worker.start()
        worker.join()
        return K @ [x[0], 1.0]

    traced(f, (2,))
    assert results
    assert {tuple(x) for x in results} == {(5.0, 4.0)}


def counting(x):
    COUNTS[0] += 1.0
    return COUNTS[0] * x


def storing(x):
    COUNTS[:] = x
    return x + 1.0


def adding(x):
    y = COUNTS
    y += [x[0], 1.0]
    return x


def reshaping(x):
    K.shape = (4,)
    return x * K[2]


@pytest.mark.parametrize("f", [counting, storing, adding, reshaping])
def test_writing_into_a_global_array_is_refused(f):
    before = COUNTS.copy()
    try:
        with pytest.raises(UntraceableError):
            trace(f, 2)
    finally:
        COUNTS[:] = before
        K.shape = (2, 2)


FUNCTIONS = {"sine": math.sin, "others": [(np.cosh, max), {"largest": min}]}
KINDS = {math.sin: 1.0, np.cosh: 2.0, max: 3.0}


class Neuron:
    activation = math.tanh
    smallest = staticmethod(min)


def by_functions(x):
    sine, (cosh, largest) = FUNCTIONS["sine"], FUNCTIONS["others"][0]
    asked = [sine is math.sin, cosh == np.cosh, largest in KINDS, sine == math.cos, np.sinh in KINDS]
    values = [sine(x[0]), cosh(x[1]), largest(x[0], x[1]), FUNCTIONS["others"][1]["largest"](*x)]
    values += [Neuron.activation(x[0]), Neuron().activation(x[1]), Neuron.smallest(x[0], 0.1)]
    return [*values, KINDS[sine] * x[0], KINDS[cosh] * x[1], *(1.0 if answer else 0.0 for answer in asked)]


def test_functions_in_containers_and_classes_are_those_of_the_module():
    rows = np.array([(0.3, -1.2), (-0.5, 0.4), (2.0, 2.0)])
    run = trace(by_functions, 2).to_llvm()
    for row in rows:
        np.testing.assert_allclose(run(row), by_functions(row.tolist()), rtol=1e-14)
    assert FUNCTIONS["sine"] is math.sin
    assert FUNCTIONS["others"][0][1] is max
    assert vars(Neuron)["activation"] is math.tanh
