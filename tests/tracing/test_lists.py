"""numpy's functions of lists: numpy does not ask what is in a list, so that tracing has to see it.

Each expression has the value, and the kind of number or array, that it has in Python, at ordinary states and at nan,
infinity and signs of zero. Where numpy gets a list by a way that tracing does not see, it is refused.
"""

import functools
import math
from collections import deque

import numpy as np
import pytest
import scipy.linalg

from geomctrl.tracing import trace
from geomctrl.tracing.backends.rounding import evaluated, has_result
from geomctrl.tracing.tracer import traced
from geomctrl.tracing.untraceable import UntraceableError

GAINS = np.array([[1.0, 2.0], [3.0, 0.5]])
STATES = [
    *((0.4, 0.7, -0.2), (-0.3, 0.7, 0.2), (2.5, -3.5, 0.1), (1e300, 1e300, 2.0), (-0.0, 0.0, 1.0)),
    *((math.nan, 0.1, 0.2), (-0.5, math.nan, 0.2), (math.inf, 1.0, 2.0)),
]
OF_ONE = [
    "max", "min", "ptp", "sum", "prod", "cumsum", "cumprod", "argmax", "argmin", "sort", "median", "mean", "std",
    "var", "average", "abs", "sign", "sqrt", "floor", "ceil", "square", "isnan", "isfinite", "nan_to_num", "diff",
    "ravel", "atleast_1d", "atleast_2d", "diag", "transpose", "flip", "round", "unwrap", "zeros_like", "ones_like",
    "any", "all", "linalg.norm", "maximum.reduce", "add.accumulate",
]  # fmt: skip
OF_TWO = ["maximum", "minimum", "hypot", "dot", "outer", "inner", "kron", "convolve", "arctan2"]
OF_ROWS = ["stack", "concatenate", "hstack", "vstack", "trace", "max", "cumsum"]
EXPRESSIONS = [
    *(f"np.{name}([t, x[0]])" for name in OF_ONE),
    *(f"np.{name}([t, 1.0], [x[0], 2.0])" for name in OF_TWO),
    *(f"np.{name}([[t, 1.0], [x[0], 2.0]])" for name in OF_ROWS),
    *("np.cross([t, 1.0, 2.0], [0.0, 1.0, x[0]])", "np.clip([t, x[0]], -1.0, 1.0)", "np.power([t, x[0]], 2)"),
    *("np.where([t > 0, True], [t, 1.0], [x[0], 2.0])", "np.where(t > 0, t, x[0])", "np.select([t > 0], [t], 0.5)"),
    *("np.interp([t, x[0]], [0.0, 1.0], [0.0, 2.0])", "np.searchsorted([0.0, 1.0], [t, x[0]])", "(x > 0).sum()"),
    *("np.digitize([t, x[0]], [0.0, 1.0])", "np.linalg.solve([[1.0, t], [0.0, 2.0]], [1.0, x[0]])", "np.zeros(2)[0]"),
    *("np.linalg.inv([[1.0, t], [0.0, 2.0]])", "np.linalg.det([[1.0, t], [0.0, 2.0]])", "np.eye(2)[0]", "x[0].T"),
    *("1.0 / np.zeros(2)[0]", "np.full(2, -2.0)[1] ** 0.5", "list(np.array([0.5, t]))[0]", "np.sum([1.0, 2.0])"),
    *("np.where(t > 0, t, x[0]) + 1.0", "(1.0 if np.where(t > 0, t, x[0]) > 0.3 else 2.0)", "(x > 0).prod()"),
    *("np.allclose([t, 1.0], [x[0], 1.0])", "np.array_equal([t, 1.0], [x[0], 1.0])", "np.add.reduce(x > 0)"),
    *(
        "np.array([0, t])",
        "np.concatenate([np.arange(3), [t]])",
        "np.append([1, 2], t)",
        "np.array([True, 2, int(t > 0)])",
    ),
    *(
        "np.hstack([0, t])",
        "np.vstack([t, x[0]])",
        "np.hstack((x, t))",
        "1.0 / np.array([0, t])[0]",
        "np.array([3, int(t > 0)])",
    ),
    *("np.fromiter((2.0 * y for y in (t, *x)), float)", "np.fromiter([int(t > 0), 2], int)"),
    *(f"math.isclose(t, x[0], {tolerance})" for tolerance in ("", "rel_tol=0.5", "abs_tol=0.31", "rel_tol=abs(t)")),
    *("np.r_[t, x[0]]", "np.r_[t, x, 1]", "np.r_[0:3, t, [x[0], 1.0]]", "np.c_[x, [t, 2.0]]", "np.c_[t, x[0]]"),
    *("np.r_[x > 0, t]", "np.r_[int(t > 0), 2]", "np.c_[GAINS, x]", "np.mean(deque([t, x[0]], 2))"),
    *("np.array(deque([t, x[0]]))", "np.median(deque([1.0, t, x[0]]))", "GAINS @ np.array(deque([t, x[0]]))"),
    *(
        "(GAINS[0] * [t, x[0]])[0]",
        "((t, x[0]) - GAINS)[0, 0]",
        "(GAINS @ [t, x[0]]).argmax()",
        "np.mean(GAINS[0] @ [t, 1])",
    ),
    *(
        "([t, x[0]] < GAINS).any()",
        "GAINS.dot([t, x[0]])[0]",
        "(GAINS * [x, x]).argmax()",
        "1.0 / (GAINS @ [-t, -t])[0]",
    ),
    *("GAINS @ np.array([t, x[0]])", "(GAINS[0] * np.array([t, x[0]])).max()", "GAINS[0] / np.array([t, x[0]])"),
]


def described(y):
    """The numbers of a result, and its type."""
    first = (y.ravel() if isinstance(y, np.ndarray) and y.ndim else [y])[0]
    kinds = [isinstance(y, np.ndarray), isinstance(y, int), isinstance(y, bool), isinstance(y, float)]
    kinds += [type(first + 0.0) is float, np.ndim(y) == 0]
    return np.concatenate([np.ravel(np.asarray(y) * 1.0), [1.0 if kind else 0.0 for kind in kinds]])


@pytest.mark.quick(43)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_functions_of_lists_are_numpys(expression):
    space = {"np": np, "described": described, "GAINS": GAINS, "deque": deque, "math": math, "__name__": "users_module"}
    exec(f"def f(t, x):\n    return described({expression})", space)
    f, compared = space["f"], 0
    trace = traced(f, (), (2,)).trace
    for t, *x in STATES:
        arguments = [np.array([t]), np.array(x)]
        if not has_result(trace, arguments):
            continue
        with np.errstate(all="ignore"):
            expected = f(t, np.array(x))
        actual = np.array(evaluated(trace, arguments)[0], float)
        np.testing.assert_allclose(actual, expected, rtol=1e-12, err_msg=str(t))
        compared += 1
    assert compared >= 3


OPERATIONS = {
    "expm": scipy.linalg.expm,
    "max": np.max,
    "argmax": np.argmax,
    "dot": np.dot,
    "array": np.asarray,
    "largest": np.maximum.reduce,
}
LARGEST = functools.partial(np.max, axis=0)


class Kept:
    largest = staticmethod(np.max)


def by_default(t, x, largest=np.max):
    return largest([t, x[0]])


def by_own_import(t, x):
    import numpy

    return numpy.max([t, x[0]])


HIDDEN = [
    lambda t, x: OPERATIONS["max"]([t, x[0]]),
    lambda t, x: LARGEST([t, x[0]]),
    lambda t, x: Kept.largest([t, x[0]]),
    by_default,
    by_own_import,
    lambda t, x: (OPERATIONS["expm"](GAINS) * [t, x[0]])[0, 0],
    lambda t, x: (np.float32([1.0, 2.0]) * [t, x[0]])[0],
    lambda t, x: (OPERATIONS["expm"](GAINS) * [x, x]).argmax() * 1.0,
    lambda t, x: (OPERATIONS["expm"](GAINS) @ [x, x]).max(),
    lambda t, x: ([x > 0, x < t] & (OPERATIONS["expm"](GAINS) > 1.0)).any() * 1.0,
    lambda t, x: (OPERATIONS["expm"](GAINS) < [x, x]).any() * 1.0,
    lambda t, x: OPERATIONS["argmax"]([x, x]) * 1.0,
    lambda t, x: OPERATIONS["dot"](OPERATIONS["expm"](GAINS), [x, x]).max(),
    lambda t, x: (-OPERATIONS["array"]([x, x]))[0, 0],
    lambda t, x: (~OPERATIONS["array"]([x > 0, x > 0]))[0, 0] * 1.0,
    lambda t, x: OPERATIONS["array"]([x, x]).any() * 1.0,
    lambda t, x: OPERATIONS["array"]([x > 0, x > 0]).any() * 1.0,
    lambda t, x: (OPERATIONS["array"]([x, x]) == 0.0).any() * 1.0,
    lambda t, x: (OPERATIONS["array"]([x, x]) != 0.0).any() * 1.0,
    lambda t, x: OPERATIONS["largest"](OPERATIONS["array"]([x, x]), axis=None, initial=t),  # compares t with entries
    lambda t, x: t * OPERATIONS["array"]([x, x])[0, 0],
    lambda t, x: ((t > 0) & OPERATIONS["array"]([x > 0, x > 0])[0, 0]) * 1.0,
    lambda t, x: GAINS[0, 0] + [t, x[0]],
    lambda t, x: np.r_["0,2", t, x[0]][0, 0],
]


@pytest.mark.parametrize("f", HIDDEN)
def test_lists_that_numpy_gets_unseen_are_refused_with_their_line(f):
    with pytest.raises(
        UntraceableError,
        match=r"(gets? a list|combined with a list|np\.r_).*test_lists\.py, line \d+: (call|convert)",
    ):
        traced(f, (), (2,))


def flat_entries(t, x):
    y = x.copy()
    y.flat[0] = 2.0 * t
    return np.array([a * a for a in y.flat])


READS = [
    flat_entries,
    lambda t, x: sum(a * b for a, b in zip(x, x.tolist())) + x.item(0) * x[1:].item(),
    lambda t, x: sum(a * t + k[0] for k, a in np.ndenumerate(x)) * GAINS[0, 0],
    lambda t, x: sum(a * b for (a,), [b] in zip(x[:, None], [*x.reshape(2, 1)])) + (lambda a, b: a / b)(*x),
    lambda t, x: -x.max() * x[np.array([1, 0])][0] + abs(x.sum()) * (1.0 if x[0] else 2.0) * (x[0] != x[1]),
]


@pytest.mark.parametrize("f", READS)
def test_numbers_that_are_read_from_arrays_compute(f):
    x = np.array([0.3, -0.7])
    np.testing.assert_allclose(trace(f, (), 2).to_llvm()(0.4, x), f(0.4, x), rtol=1e-14)


OTHER_ARRAYS = {
    "np": np,
    "SINGLE": np.float32([0.1, 0.7]),
    "BYTES": np.int8([100, 3]),
    "UNSIGNED": np.uint64([3, 4]),
    "LONG": np.longdouble([0.1, 0.2]),
}
OTHER_TYPES = [
    *("SINGLE * t", "SINGLE + (t > 0)", "SINGLE * (x > 0)", "SINGLE @ (x > 0)", "SINGLE[0] * t", "LONG * x"),
    *("np.where(t > 0, SINGLE, 0.5 * SINGLE)", "np.clip(SINGLE, 0.0, t)", "max(SINGLE[0], x[0])", "LONG[0] * x[0]"),
    *("BYTES + int(t * 100.0)", "BYTES + (t > 0)", "BYTES[0] * int(x[0])", "UNSIGNED + x.astype(int)"),
    *(
        "np.maximum(SINGLE, t)",
        "(x[0] > 0) ** SINGLE[0]",
        "SINGLE[0] - (t > 0)",
        "np.clip(x > 0, 0, SINGLE)",
        "np.concatenate([SINGLE, x > 0], 0)",
        "np.dot(x > 0, SINGLE)",
    ),
    *("np.array([BYTES, x > 0])", "np.append(UNSIGNED, x.astype(int))", "np.r_[SINGLE, x > 0]", "np.c_[BYTES, x > 0]"),
    *(
        "np.max([SINGLE, x > 0])",
        "np.tensordot(SINGLE, x > 0, 1)",
        "np.outer(x > 0, BYTES)",
        "np.stack([BYTES, x > 0])",
    ),
]


@pytest.mark.parametrize("expression", OTHER_TYPES)
def test_numbers_of_types_in_which_numpy_would_compute_are_refused(expression):
    with pytest.raises(
        UntraceableError, match=r"combined with (float32|longdouble|float128|int8|uint64) .*: use float64"
    ):
        traced(eval(f"lambda t, x: {expression}", OTHER_ARRAYS), (), (2,))


CONVERTED = ["SINGLE * x", "BYTES + x", "BYTES * t", "SINGLE @ x", "BYTES + x.astype(int)", "np.append(SINGLE, t)"]
CONVERTED += [
    "np.concatenate([BYTES, x], 0)",
    "np.clip(x, 0, SINGLE)",
    "np.array([SINGLE, x > 0], float)",
]


@pytest.mark.parametrize("expression", CONVERTED)
def test_numbers_of_other_types_that_numpy_converts_compute(expression):
    f = eval(f"lambda t, x: {expression}", OTHER_ARRAYS)
    x = np.array([3.3, -0.7])
    np.testing.assert_allclose(trace(f, (), 2).to_llvm()(0.4, x), f(0.4, x), rtol=1e-15)


def stored_in_numbers(t, x):
    y = scipy.linalg.expm(GAINS)
    y[0] = x
    return y


def test_what_is_written_into_an_array_of_numbers_is_refused():
    with pytest.raises(UntraceableError, match=r"written into an array of numbers, in .*, line \d+: create"):
        traced(stored_in_numbers, (), (2,))
