"""What engineers write in controllers: expressions of numpy, scipy, math and Python.

At most a tenth of the kinds can not be traced. Those that can have Python's values, at random states, equal numbers,
exact multiples, zeros of both signs, nan and infinity.
"""

import operator
import re
import warnings

import numpy as np
import pytest
from compiled_functions import outputs, traced, values
from expressions import KINDS, REFUSED, function

from geomctrl.tracing.backends.rounding import differing
from geomctrl.tracing.untraceable import UntraceableError

K = np.diag([5.0, 3.0, 2.0, 1.0])
F = np.array([[1.0, 0.2, 0.0, -0.4], [0.0, 2.0, 0.3, 0.1], [0.5, 0.0, 1.5, 0.0]])
TABLE_X, TABLE_Y = [-2.0, -0.5, 0.3, 1.0, 2.5], [0.3, -1.0, 0.2, 2.0, 2.5]

FORMS = {
    "cosh": lambda q, v: np.log(np.cosh(q)),
    "clip by keyword": lambda q, v: np.clip(q, a_min=-0.5, a_max=None),
    "clip by name": lambda q, v: np.clip(q, min=-np.abs(v), max=np.abs(v)),
    "interp ends": lambda q, v: np.interp(v, TABLE_X, TABLE_Y, left=-9.0, right=9.0),
    "isclose": lambda q, v: np.where(np.isclose(q, v, atol=0.5), q, v),
    "std": lambda q, v: [q.std(), np.var(v, ddof=1)],
    "trapezoid of x": lambda q, v: [TRAPEZOID(v, [0.0, 0.5, 0.6, 2.0])],
    "block": lambda q, v: np.block([[K, F.T], [F, np.outer(q[:3], v[:3])]]).ravel(),
    "asarray": lambda q, v: np.asarray(q, float) + np.array([v[0], 1.0, 2.0, 3.0], dtype=float),
    "norms": lambda q, v: [np.linalg.norm(q, 1), np.linalg.norm(v, np.inf)],
    "median": lambda q, v: [np.median(q), np.median(v[:3]), *np.median([q, v, v, 2 * q, q - v], axis=0)],
    "least squares": lambda q, v: np.linalg.lstsq(K, q, rcond=None)[0],
    "a place in a table": lambda q, v: np.append(TABLE_Y, q)[np.searchsorted(TABLE_X, v)],
    "argsort": lambda q, v: q[np.argsort(v, kind="stable")] + np.argsort(-q, stable=True) * v[q.argsort(-1, "stable")],
    "gradient along an axis": lambda q, v: np.gradient(np.outer(q, v), 0.1, axis=1) + np.gradient([q, v, q], axis=0)[1],
    "places": lambda q, v: _places(q > v, q),
    "rows and columns": lambda q, v: [
        np.argwhere(q[:2, None] > v[None, :2]).sum(),
        len((q[:2] * 1.0).nonzero()[0]),
    ],
    "copyto": lambda q, v: _copied(q, v),
    "interp of a period": lambda q, v: np.interp(q, TABLE_X, TABLE_Y, left=-9.0, period=1.3),
    "interp of a negative period": lambda q, v: np.interp([q[0], v[1]], TABLE_X, TABLE_Y, period=-7.0),
    "pad": lambda q, v: np.concatenate(
        [*(np.pad(q, (1, 2), mode=mode) for mode in ("edge", "reflect", "symmetric", "wrap")), np.pad(v, 1)]
    ),
    "pad with a value": lambda q, v: np.pad(np.outer(q, v), ((1, 0), (0, 2)), constant_values=0.5).ravel(),
    "pad of integers and conditions": lambda q, v: np.concatenate(
        [np.pad(np.floor(q).astype(int), 1, constant_values=(2.5, -0.5)), np.pad(q > v, 2, constant_values=0.1)]
    ),
    "fix": lambda q, v: np.fix(3.0 * q),
    "resize": lambda q, v: np.resize(q, (3, 2)).ravel(),
    "apply_along_axis": lambda q, v: [
        *np.apply_along_axis(lambda row: row / np.linalg.norm(row), 1, np.outer(q, v)).ravel(),
        *np.apply_along_axis(np.polyval, 0, np.outer(q, v), 0.5),
    ],
    "apply_over_axes": lambda q, v: np.apply_over_axes(np.sum, np.outer(q, v), [0, 1]).ravel(),
    "ediff1d": lambda q, v: np.ediff1d(np.outer(q, v), to_end=v[:2], to_begin=-1.0),
    "rollaxis": lambda q, v: np.rollaxis(np.outer(q, v), 1) @ q,
    "vander": lambda q, v: np.vander(q, 3).ravel() + np.vander(v, 3, increasing=True).ravel(),
    "matrix_power": lambda q, v: [
        *np.linalg.matrix_power(K + 0.1 * np.outer(q, v), 3)[0],
        *np.linalg.matrix_power(K + 0.1 * np.outer(q, q), -2)[1],
        *np.linalg.matrix_power(np.outer(q, q), 0)[2],
    ],
    "multi_dot": lambda q, v: np.linalg.multi_dot([F, np.outer(q, v), K, q]),
    "getters": lambda q, v: [operator.itemgetter(0)(q), *operator.itemgetter(2, 1)(v), FIRST(q), TOTAL(v)],
}
FIRST, TOTAL = operator.itemgetter(-1), operator.methodcaller("sum")
REFUSED_FORMS = {
    "argsort along two axes": lambda q, v: np.argsort(np.outer(q, v), axis=0).ravel(),
    "percentile": lambda q, v: [np.percentile(q, 50.0, method="nearest")],
    "eigh": lambda q, v: np.linalg.eigh(np.outer(q, q) + K)[1].ravel(),
    "svd": lambda q, v: np.linalg.svd(np.outer(q, v))[0].ravel(),
    "where= without out=": lambda q, v: np.divide(q, v, where=v > 0.0),
    "as single precision": lambda q, v: np.asarray(q, np.float32),
    "interp of a period that depends on the state": lambda q, v: np.interp(q, TABLE_X, TABLE_Y, period=abs(v[0])),
    "pad without values": lambda q, v: np.pad(q, 1, mode="empty"),
    "ediff1d with ends of another type": lambda q, v: np.ediff1d(q, to_end=1j)[:3],
    "ediff1d with a list of another type": lambda q, v: np.ediff1d(np.floor(q).astype(int), to_begin=[1, 0.5])[2:],
    "sum from a float": lambda q, v: [np.sum(np.floor(q).astype(int), initial=0.5)],
    "the largest where": lambda q, v: [np.max(q, where=q > 0.0)],
    "nextafter": lambda q, v: np.nextafter(q, v),
}
TRAPEZOID = getattr(np, "trapezoid" if hasattr(np, "trapezoid") else "trapz")


def _in_place(q, v):
    x = q.copy()
    x += v
    x[1:] *= 2.0
    x -= 0.5
    return x


def _copied(q, v):
    x, y = q.copy(), np.zeros((2, 4))
    np.copyto(x, 0.5 * x + v)
    np.copyto(y, x)
    return y - q


def _places(above, q):
    first, (second,) = np.flatnonzero(above), np.where(above)
    x = np.zeros(4)
    x[first] = q[second] * 2.0
    for k in np.nonzero(above)[0]:
        x[k] += k
    return [*x, len(first), second[0] if second.size else -1]


def _masked(q):
    x = 1.0 * q
    x[x > 0.5] = 0.5
    return x


def _filled(q, v):
    x = np.zeros((2, 4))
    x[0], x[1, 2] = q, v[2]
    return x.ravel()


def states():
    """Numbers q and v, with ties, multiples, zeros of both signs, nan and infinity in the last rows."""
    rng, some = np.random.default_rng(5), [0.0, -0.0, 0.3, -0.5, 0.2, 1.0, 2.5, -3.0]
    rows = rng.normal(size=(40, 8)) * rng.choice([1.0, 1e-9, 10.0], size=(40, 1), p=[0.6, 0.1, 0.3])
    rows[0], rows[1], rows[2, :4] = 0.7, -0.0, rows[2, 4:]
    rows[3:8], rows[8] = rng.choice(some, size=(5, 8)), 0.2 * rng.integers(-5, 6, 8)
    special = rng.normal(size=(10, 8))
    for k, x in enumerate([np.nan, np.inf, -np.inf, 1e8, np.nan] * 2):
        special[k, [k % 8, (3 * k) % 8]] = x
    return np.concatenate([rows, special])


STATES = states()
ITERATIVE = {"linear algebra", "polynomials and signals", "angles and rotations"}  # LAPACK may not return for infinity


def require_pythons_values(text, rows):
    f = function(text)
    trace = traced(f, 8)
    found, good = values(trace, rows)
    compared = 0
    for x, actual in zip(rows[good], found[good]):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = f(x.copy())  # where Python raises there is no result
        assert not np.iscomplexobj(expected), text
        assert differing(trace, [x], [expected], [actual]) is None, f"{text}: {x.tolist()}: {expected}, traced {actual}"
        compared += 1
    assert compared >= 8, f"{text}: {compared} results"


@pytest.mark.quick(1)
@pytest.mark.parametrize("category", KINDS)
def test_kinds_of_expressions_have_pythons_values(category):
    rows = STATES[:40] if category in ITERATIVE else STATES
    for text in set(KINDS[category]) - set(REFUSED):
        require_pythons_values(text, rows)


def test_at_most_a_tenth_of_the_kinds_is_refused():
    texts = [text for category in KINDS.values() for text in category]
    assert len(set(texts)) == len(texts) > 500
    assert set(REFUSED) <= set(texts)
    assert len(REFUSED) <= 0.1 * len(texts)


@pytest.mark.parametrize("text", REFUSED)
def test_refused_kinds_name_the_line(text):
    with pytest.raises(
        UntraceableError, match=rf"in (.*expressions\.py, line \d|<expression {re.escape(text)}>, line 3)"
    ):
        traced(function(text), 8)


@pytest.mark.quick(20)
@pytest.mark.parametrize("name", FORMS)
def test_forms_of_arguments_have_pythons_values(name):
    def f(x):
        return FORMS[name](x[:4], x[4:])

    rows = np.random.default_rng(1).normal(size=(24, 8))
    rows[0] = rows[0, 0]  # equal numbers
    found, good = outputs(f, rows)
    assert good.all()
    expected = np.array([np.ravel(f(x)) for x in rows], float)
    scale = 1.0 + np.abs(expected).max(axis=1, keepdims=True)
    assert np.all(np.abs(found - expected) <= 1e-11 * scale), np.abs((found - expected) / scale).max()


@pytest.mark.parametrize("name", REFUSED_FORMS)
def test_what_is_refused_names_the_line(name):
    with pytest.raises(UntraceableError, match=r"test_expressions\.py, line"):
        outputs(lambda x: REFUSED_FORMS[name](x[:4], x[4:]), np.ones((1, 8)))


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (lambda x: np.linalg.eig(np.outer(x, x))[0], "np.linalg.eigvalsh has the eigenvalues"),
        (lambda x: np.linalg.svd(np.outer(x, x))[0] @ x, "for a damped inverse write"),
        (lambda x: np.linalg.qr(np.outer(x, x))[1].ravel(), "write np.linalg.solve"),
        (lambda x: [np.unique(x).size], "compare with np.isclose"),
        (lambda x: np.add(x, 1.0, where=x > 0), r"add out=, or write np\.where"),
        (lambda x: x.astype(np.float32), r"write np.asarray\(x, float\)"),
        (lambda x: [np.float32(x[0])], r"float\(x\) instead of np.float32"),
        (lambda x: np.multiply(x, 2.0, dtype=np.float32), "double precision"),
    ],
)
def test_refusals_say_what_to_write_instead(function, advice):
    with pytest.raises(UntraceableError, match=advice):
        outputs(function, np.ones((1, 3)))


def test_products_are_rounded_before_they_are_added():
    """x x - y y is 0 where x = y, as in Python; a fused multiplication leaves the rounding of one product."""
    x = np.random.default_rng(0).uniform(0.1, 2.0, (200, 1)).repeat(2, axis=1)
    found, _ = outputs(lambda x: [np.sqrt(x[0] * x[0] - x[1] * x[1]), x[0] * x[1] - x[1] * x[1]], x)
    assert not found.any()


def test_the_order_of_equal_numbers_is_not_guessed():
    """numpy sorts with instructions that differ between processors; without kind="stable" there is no result."""
    rows = np.array([[0.3, -0.2, 1.0], [1.0, 0.3, 1.0], [0.0, -0.0, 1.0], [np.nan, 0.2, 0.1], [np.inf, -np.inf, 0.0]])
    found, good = outputs(lambda x: np.argsort(x) + 0.0, rows)
    np.testing.assert_array_equal(good, [True, False, False, False, True])
    np.testing.assert_array_equal(found[good], np.argsort(rows[good], axis=1))
    found, good = outputs(lambda x: np.argsort(x, kind="stable") + 0.0, rows)
    np.testing.assert_array_equal(good, [True, True, True, False, True])
    np.testing.assert_array_equal(found[good], np.argsort(rows[good], axis=1, kind="stable"))
