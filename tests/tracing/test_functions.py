"""Each function that traces, in each form of its arguments, is what numpy, math and Python compute, over a grid.

Both sides are computed apart: numpy and Python call their own functions on floats; the other side is LLVM's code of the
trace, for one state and for as many as the processor has lanes. Values agree to 2 ulp, nan is nan, and zeros have the
same sign. Where Python raises, compiled code has no result.
"""

import itertools
import math
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from compiled_functions import in_numpy, outputs, require_same
from grids import BOOLEAN, CONSTANTS, FEW, GRID, ONE, OPERATORS, PAIRS, SIGNLESS, TWO, numbers

from geomctrl.tracing import trace, tracer
from geomctrl.tracing.elementwise import BINARY, UNARY
from geomctrl.tracing.patched_math import MATH, OF_SEQUENCES
from geomctrl.tracing.requirements import requirements
from geomctrl.tracing.symbols import Graph, div, mul, relation, sub, unary, where
from geomctrl.tracing.untraceable import UntraceableError


def forms_of(function, arguments):
    """Return f(x) with the function's results for all forms of its arguments, one after the other."""
    if arguments == 1:
        forms = [lambda x: function(x[0]), lambda x: function(x), lambda x: function(x.reshape(1, 1))]
    else:
        forms = [lambda x: function(x[0], x[1]), lambda x: function(x[:1], x[1:]), lambda x: function(x[0], x[1:])]
        forms += [lambda x: function(x[:1].reshape(1, 1), x[1])]
        forms += [lambda x, c=c: function(x[:1], c) for c in CONSTANTS]
        forms += [lambda x, c=c: function(c, x[1]) for c in CONSTANTS]
        forms += [lambda x, c=c: function(np.array([c, 1.0]), x[1:]) for c in CONSTANTS[:2]]
    return lambda x: np.concatenate([np.ravel(numbers(form(x))) for form in forms])


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_elementwise_functions(name):
    ufunc, arguments = getattr(np, name), 1 if name in UNARY else 2
    rows = np.array(GRID)[:, None] if arguments == 1 else np.array(PAIRS)
    function = (lambda *xs: ufunc(*(np.greater(x, 0.5) for x in xs))) if name in BOOLEAN else ufunc
    f = forms_of(function, arguments)
    found, good = outputs(f, rows)
    assert good.all()  # numpy raises for none of them
    require_same(name, rows, found, in_numpy(f, rows), signs=name not in SIGNLESS)


def test_clip_takes_its_bounds_in_every_form():
    def f(x):
        return np.array([
            *np.clip(x[:1], x[1], x[2]), np.clip(x[0], a_min=x[1], a_max=x[2]), np.clip(x[0], None, x[2]),
            *x[:1].clip(x[1], x[2]), *x[:1].clip(min=x[1]), *np.clip(x[:1], x[1:2], None),
        ])  # fmt: skip

    rows = np.array(list(itertools.product(FEW, repeat=3)))
    require_same("clip", rows, outputs(f, rows)[0], in_numpy(f, rows), signs=False)


def test_every_row_of_math_is_tested():
    assert {*ONE, *TWO, *OF_SEQUENCES, "modf"} == {name for name in MATH if hasattr(math, name)}


@pytest.mark.parametrize("part", [0, 1])
def test_modf(part):
    rows = np.array(GRID)[:, None]
    require_as_python("modf", lambda x: math.modf(x[0])[part], rows)
    require_same("modf", rows, outputs(lambda x: np.modf(x)[part], rows)[0], in_numpy(lambda x: np.modf(x)[part], rows))


@pytest.mark.parametrize("name", sorted(OF_SEQUENCES))
def test_functions_of_sequences(name):
    rows = np.array([[a, b, 0.1 * a] for a, b in PAIRS])
    f = (lambda x: math.dist(x[:1], x[1:2])) if name == "dist" else lambda x: getattr(math, name)(list(x))
    require_as_python(name, f, rows, signs=False)


@pytest.mark.parametrize(("name", "arguments"), [*((name, 1) for name in ONE), *((name, 2) for name in TWO)])
def test_functions_of_math(name, arguments):
    rows = np.array(GRID)[:, None] if arguments == 1 else np.array(PAIRS)
    require_as_python(name, lambda x: getattr(math, name)(*(x[k] for k in range(arguments))), rows)


def require_as_python(name, f, rows, signs=True):
    """A result, and the same, where Python has one; none where Python raises. For numbers that are not finite, and
    results that are not, Python may be asked."""
    found, good = outputs(lambda x: [numbers(f(x))], rows)
    kept, expected = [], []
    for k, x in enumerate(rows):
        with np.errstate(all="ignore"):
            try:
                value = f(x)
            except (ValueError, OverflowError, ZeroDivisionError):
                value = None
        if value is None or isinstance(value, complex):
            assert not good[k], f"{name}{x.tolist()}: Python raises, compiled code says {found[k]}"
        elif good[k]:
            kept.append(k)
            expected.append([float(value)])
        else:
            assert not (np.isfinite(x).all() and math.isfinite(value)), f"{name}{x.tolist()} has no result"
    require_same(name, rows[kept], found[kept], expected, signs=signs)


@pytest.mark.quick(36)
@pytest.mark.parametrize("kind", ["numpy", "python"])
@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name, kind):
    operation, python = OPERATORS[name], kind == "python"
    f = (lambda x: operation(x[0].item(), x[1].item())) if python else (lambda x: operation(x[0], x[1]))
    require_as_python(name, f, np.array(PAIRS), signs=name != "0 a")  # 0 a leaves no sign


def test_rounding_to_digits():
    def f(x):
        return np.concatenate([np.round(x, k) for k in (0, 2, 5, -2)] + [x.round(3), [round(x[0], 2)], np.around(x, 1)])

    rows = np.array([*GRID, 0.125, 0.375, 2.675, 1.005, -1e-3])[:, None]
    rows = rows[np.abs(np.nan_to_num(rows[:, 0], posinf=0, neginf=0)) < 1e290]
    require_same("round", rows, outputs(f, rows)[0], in_numpy(f, rows))


@pytest.mark.quick(22)
@pytest.mark.parametrize("axis", [{}, {"axis": None}, {"axis": 0}, {"axis": 1}, {"axis": -1, "keepdims": True}])
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "min", "std", "var", "any", "all", "cumsum", "ptp"])
def test_reductions_of_matrices(name, axis):
    """As methods, which numpy passes to ufuncs with all keywords, and as functions; along all axes or one."""
    if name == "cumsum" and "keepdims" in axis:
        axis = {"axis": -1}
    rows = np.random.default_rng(3).normal(size=(7, 6))

    def both_forms(x):
        x = x.reshape(2, 3)
        forms = [getattr(np, name)(x, **axis)]
        if hasattr(x, name):
            forms.append(getattr(x, name)(**axis))
        return [np.asarray(numbers(y)) for y in forms]

    expected = [both_forms(x) for x in rows]
    try:
        traced_shapes = tracer.traced(lambda x: tuple(both_forms(x)), (6,)).shapes
    except UntraceableError:
        assert name in ("any", "all", "cumsum", "ptp", "std", "var")  # refused, and not evaluated as something else
        return
    assert [y.shape for y in expected[0]] == list(traced_shapes)

    def f(x):
        return np.concatenate([np.ravel(y) for y in both_forms(x)])

    found, good = outputs(f, rows)
    assert good.all()
    require_same(name, rows, found, np.array([f(x) for x in rows]), ulps=8.0)


WHOLE_NUMBERS = {  # a truth or whole number of numpy's beside an int of Python's, which may have no room in 64 bits
    "remainder": lambda x: (x[0] > 0.5) % round(x[1]),
    "whole quotient": lambda x: (x[0] > 0.5) // math.ceil(x[1]),
    "sum": lambda x: (x[0] > 0.5) + math.floor(x[1]),
    "reflected": lambda x: math.floor(x[1]) * (x[0] > 0.5),
    "smaller": lambda x: np.minimum(np.int64(3) * (x[0] > 0.5), round(float(x[1]))),
    "float": lambda x: x[0] * round(x[1]),  # has room for every int that a float is rounded to
}


@pytest.mark.parametrize("name", WHOLE_NUMBERS)
def test_ints_of_python_beside_numpys(name):
    ends = (1.0, -3.0, 2.6, 2.0**52, -(2.0**52), 1e19, -1e19, 1e300, -1e300)
    rows = np.array([(x, y) for x in (0.2, 0.7) for y in ends])
    require_as_python(name, WHOLE_NUMBERS[name], rows, signs=False)


class Pair(NamedTuple):
    first: Any
    second: Any


def test_choices_between_truths_numbers_and_tuples():
    def f(x):
        c, d = x[0] > 0.0, x[1] > 0.0
        pair = where(c, Pair(x[1], True), Pair(1.0, d))
        single = [where(c, True, d), where(c, d, np.False_), where(c, True, False), where(c, d, True)]
        mixed = [where(c, True, x[1]), where(c, x[1], d), where(c, np.True_, 2.0), where(d, -0.0, c)]
        return np.array(
            [1.0 * y for y in (*single, *mixed, pair.first, pair.second, *where(c, (x[0], d), (2.0, True)))]
        )

    rows = np.array(list(itertools.product((-2.0, 0.0, 0.5), repeat=2)))
    found, good = outputs(f, rows)
    assert good.all()
    require_same("where", rows, found, in_numpy(f, rows))


NEAR_LIMIT = {  # 2^53 + 1 is no float
    "parity": lambda x: (int(x[0]) + 2**53) % 2,
    "equal": lambda x: 1.0 * (int(x[0]) + 2**53 == 2**53),
    "product": lambda x: (int(x[0]) * (2**53 - 1)) % 10,
    "quotient": lambda x: (2**53 + int(x[0])) / 3,
    "array": lambda x: np.sum(np.array([int(x[0]), 2**53 - 1, -(2**53)])),
}


@pytest.mark.parametrize("name", NEAR_LIMIT)
def test_integers_are_exact_or_have_no_result(name):
    f, rows = NEAR_LIMIT[name], np.array([[k] for k in (-2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 2.0**53 - 2.0)])
    found, good = outputs(lambda x: [numbers(f(x))], rows)
    np.testing.assert_array_equal(found[good, 0], np.array([float(f(x)) for x in rows])[good])
    assert good[1]


@pytest.mark.parametrize("k", [np.uint8(5), np.uint64(5), np.int8(-128), np.int16(-(2**15))], ids=lambda k: f"{k!r}")
def test_negative_values_of_small_integer_types_do_not_wrap_around(k):
    rows = np.array([[0.1], [-0.25], [3.0]])
    found, good = outputs(lambda x: numbers([x[0] - k, k - x[0], x[0] * k, -x[0] * k, k * -x[0]]), rows)
    assert good.all()
    x, number = rows, float(k)
    np.testing.assert_array_equal(found, np.hstack([x - number, number - x, x * number, -x * number, -x * number]))


ODD = 2**53 + 1
INEXACT = {
    "difference": lambda x: int(x[0]) - ODD,
    "product": lambda x: -int(x[0]) * ODD,
    "smaller": lambda x: 1.0 * (int(x[0]) < ODD),
    "equal": lambda x: 1.0 * (x[0] == ODD),
    "maximum": lambda x: max(int(x[0]), ODD) - 1,
    "numpy's": lambda x: np.int64(ODD) - x.astype(int)[0],
    "array": lambda x: (x.astype(int) + np.array([ODD]))[0],
}


@pytest.mark.parametrize("name", INEXACT)
def test_integers_that_no_float_equals_are_refused(name):
    with pytest.raises(UntraceableError, match=f"no float is equal to the integer -?{ODD}, in .*: write float"):
        tracer.traced(INEXACT[name], (1,))


def test_functions_of_other_libraries_are_not_numpys_of_the_same_name():
    @numba.vectorize(["float64(float64)"])
    def floor(x):
        return 7.0 if x > 1e6 else np.floor(x)

    @numba.vectorize(["float64(float64)"])
    def expit(x):
        return 0.5 if x > 1e6 else 1.0 / (1.0 + np.exp(-x))

    for ufunc in (floor, expit):
        with pytest.raises(UntraceableError, match=f"{ufunc.__name__} of another library than numpy can not be traced"):
            trace(lambda x, ufunc=ufunc: ufunc(x), 2)


QUANTILES = {
    "one": lambda x: [np.quantile(x, 0.3), np.percentile(x, 90), np.quantile(x[:2], 0.5), np.percentile(x[:1], 20.0)],
    "several": lambda x: np.quantile(x, [0.0, 0.25, 0.5, 0.51, 0.75, 1.0]),
    "axis": lambda x: np.percentile(x, (10, 60), axis=0, method="linear"),
    "list": lambda x: np.percentile([x[0], x[1], 1.0], [[5.0, 100.0]]).ravel(),
}


@pytest.mark.parametrize("name", QUANTILES)
def test_quantiles(name):
    some = (0.0, 0.3, -2.5, 1e12, 1.0, math.inf, -math.inf, math.nan)
    rows = np.array(list(itertools.product(some, repeat=3)))
    f = QUANTILES[name]
    found, good = outputs(lambda x: np.asarray(f(x)), rows)
    assert good[np.isfinite(rows).all(axis=1)].all()  # Python computes products of infinity and 0
    expected = in_numpy(lambda x: np.asarray(f(x)), rows[good])
    require_same(name, rows[good], found[good], expected, ulps=4.0, signs=False)


def test_quantiles_that_are_refused():
    for f in (
        lambda x: np.quantile(x, x[0]),
        lambda x: np.percentile(x, 50, method="lower"),
        lambda x: np.quantile(x, 2),
    ):
        with pytest.raises(UntraceableError):
            tracer.traced(f, (3,))


def test_sinc():
    rows = np.array([x for x in GRID if abs(x) < 1e6 or not math.isfinite(x)] + [1e-17, 3e-9, 0.25])[:, None]
    f = lambda x: np.array([np.sinc(x[0]), *np.sinc(x), *np.sinc([x[0], 1])])  # noqa: E731
    require_same("sinc", rows, outputs(f, rows)[0], in_numpy(f, rows), ulps=4.0)


def test_signs_of_operands():
    """Traces move signs outwards; (-a) / b, a / (-b) and so on, with functions of them and with constants."""

    def f(x):
        a, b = x
        pairs = [(-a, b), (a, -b), (-a, -b), (-a, 2.0), (2.0, -a), (-a, -2.0), (-2.0, -a), (-a, 0.0), (0.0, -a)]
        results = [y for u, v in pairs for y in (u + v, u - v, u * v, u / v)]
        even_and_odd = [h(-a) for h in (np.sin, np.cos, np.tanh, np.abs, np.floor, np.arctan, np.cbrt, np.square)]
        return np.array([*results, *even_and_odd, -(a - b), np.negative(-a), np.sqrt(a) + 0.0, np.abs(-a) + 0.0])

    rows = np.array(list(itertools.product([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan], repeat=2)))
    require_same("signs", rows, outputs(f, rows)[0], in_numpy(f, rows))


def test_products_are_rounded_before_they_are_added():
    x, y = np.random.default_rng(1).normal(size=(2, 64))
    rows = np.column_stack((x, y, x * y))
    values, good = outputs(lambda x: np.array([x[0] * x[1] - x[2], x[2] - x[1] * x[0], -x[2] + x[0] * x[1]]), rows)
    assert good.all()
    assert not values.any()


def test_zeros_of_a_matrix_times_what_is_not_finite():
    """numpy's result is nan; compiled code, which omits these products, has none."""
    rows = np.array([(np.inf, 1.0), (1.0, -np.inf), (np.nan, 1.0), (2.0, 3.0)])
    for matrix in (np.diag([2.0, 3.0]), np.array([[0.0, 1.0], [-0.0, 2.0]])):
        values, good = outputs(lambda x, matrix=matrix: matrix @ x, rows)
        expected = in_numpy(lambda x, matrix=matrix: matrix @ x, rows)
        np.testing.assert_array_equal(values[good], expected[good])
        assert good.tolist()[-1]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.searchsorted([-1.0, 0.0, 0.0, 2.0], x),
        lambda x: np.searchsorted([-1.0, 0.0, 0.0, 2.0], x, side="right"),
        lambda x: np.digitize(x, [-1.0, 0.0, 2.0]),
        lambda x: np.digitize(x, [2.0, 0.0, -1.0], right=True),
    ],
)
def test_places_in_a_table(f):
    rows = np.array(list(itertools.product([-2.0, -1.0, -0.0, 0.0, 1.0, 2.0, 3.0, np.inf, -np.inf, np.nan], repeat=2)))
    require_same("places", rows, outputs(f, rows)[0], in_numpy(f, rows))


@pytest.mark.parametrize(
    "fold",
    [lambda a: mul(a, 0.0), lambda a: sub(a, a), lambda a: div(0.0, a), lambda a: relation("eq", a, a)],
    ids=["0 a", "a - a", "0 / a", "a == a"],
)
def test_what_a_fold_omits_is_required_where_it_is_watched(fold):
    graph = Graph(watched=True)
    with requirements() as required:
        fold(unary("log", graph.load(0, 0)))
    assert len(required) == 1


def test_signs_of_zero_in_products_of_arrays():
    def f(x):
        one, both, matrix = x[:1], x[:2], x[:1].reshape(1, 1)
        of_one = [np.dot(one, 5.0), np.dot(5, one), np.inner(one, [2.0]), np.tensordot(one, [1.0], 1), matrix.dot(one)]
        of_both = [np.dot(2.0, both), np.inner(3, both), np.vdot(both, [1.0, 2.0]), np.dot(both, [1.0, 0.5])]
        sums = [np.einsum("i,i", one, [1.0]), np.einsum("i,j->ij", both, [1.0]), np.convolve(one, [1.0]), np.sum(one)]
        return np.concatenate(
            [np.ravel(y) for y in (*of_one, *of_both, *sums, np.einsum("ij->ji", matrix), one @ [1.0])]
        )

    rows = np.array([(0.0, 0.0), (-0.0, -0.0), (-0.0, 0.0), (0.5, -0.0), (-0.0, -2.0)])
    require_same("products", rows, outputs(f, rows)[0], in_numpy(f, rows))


TRUTHS = np.array([True, False, True])
WHOLE = {  # a truth beside an integer is an integer
    "clip": lambda x: np.clip(x > 0.5, 0, 5),
    "method": lambda x: (x > 0.5).clip(None, 3),
    "scalar": lambda x: np.clip(x[0] > 0.5, 0, 5),
    "bound": lambda x: np.clip(np.round(x).astype(int), x > 0.5, 3),
    "maximum": lambda x: np.maximum(x > 0.5, 1),
    "quotient": lambda x: int(x[0] > 0.5) // TRUTHS[::2],
    "remainder": lambda x: np.round(x[:2]).astype(int) % TRUTHS[::2],
}


@pytest.mark.parametrize("name", WHOLE)
def test_integers_beside_truth_values(name):
    def f(x):
        y = np.ravel(WHOLE[name](x))
        return np.concatenate([y * 1.0, (y[:1] + y[:1]) * 1.0, [isinstance(y[0], np.floating)]])

    rows = np.array([(0.4, 0.7, -0.2), (1.2, -3.0, 0.5), (7.0, 0.6, 2.0)])
    found, good = outputs(f, rows)
    assert good.all()
    require_same(name, rows, found, in_numpy(f, rows))


def test_quotients_of_integers_by_zero_are_refused():  # numpy says 0 and warns
    with pytest.raises(UntraceableError, match="never returns a result"):
        tracer.traced(lambda x: int(x[0] > 0.5) // TRUTHS, (1,))


def test_divmod_and_extremes_of_truth_values():
    def f(x):
        above = np.array([x[0] > x[1], x[1] > 0.0, True])
        truths = [above.max(), above.min(), np.maximum(above, x[0] < 0.0), np.max(x > 0.5)]
        places = [np.argmax(above), np.argmin(x < 0.3), np.maximum(above[:1], x[:1])[0]]
        return np.concatenate(
            [*np.divmod(x[:1], x[1]), *divmod(x[:1], [x[1]]), *map(np.ravel, map(numbers, truths)), places]
        )

    rows = np.array(PAIRS)
    require_same("divmod", rows, outputs(f, rows)[0], in_numpy(f, rows), signs=False)
