"""Each supported function, exported as C, agrees with numpy, math and Python on the same grid."""

import math

import numpy as np
import pytest
from compiled_functions import COMPILER, in_c, in_numpy, require_same
from grids import BOOLEAN, GRID, ONE, OPERATORS, PAIRS, SIGNLESS, TWO, numbers

from geomctrl.tracing.elementwise import BINARY, UNARY

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler on this machine")


def of_numpy(name):
    ufunc, n = getattr(np, name), 1 if name in UNARY else 2
    if name in BOOLEAN:
        return lambda x: numbers(ufunc(*(np.greater(x[k : k + 1], 0.5) for k in range(n)))), n
    return lambda x: numbers(ufunc(*(x[k : k + 1] for k in range(n)))), n


def of_math(name, n):
    return lambda x: [numbers(getattr(math, name)(*(x[k] for k in range(n))))], n


def of_operator(name):
    return lambda x: [numbers(OPERATORS[name](x[0].item(), x[1].item()))], 2


def rows_of(n):
    return np.array(GRID)[:, None] if n == 1 else np.array(PAIRS)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    functions = {f"numpy {name}": of_numpy(name) for name in (*UNARY, *BINARY)}
    functions |= {f"math {name} {n}": of_math(name, n) for names, n in ((ONE, 1), (TWO, 2)) for name in names}
    functions |= {f"operator {name}": of_operator(name) for name in OPERATORS}
    return in_c(functions, tmp_path_factory.mktemp("c"))


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_numpy(compiled, name):
    f, n = of_numpy(name)
    rows = rows_of(n)
    found, good = compiled[f"numpy {name}"](rows)
    assert good.all()
    require_same(name, rows, found, in_numpy(f, rows), signs=name not in SIGNLESS)


def in_python(f, rows):
    """(values, whether Python has one), row by row."""
    values, made = np.full((len(rows), 1), np.nan), np.zeros(len(rows), bool)
    for k, x in enumerate(rows):
        try:
            (value,) = f(x)
        except (ValueError, OverflowError, ZeroDivisionError):
            continue
        if not isinstance(value, complex):
            values[k], made[k] = float(value), True
    return values, made


def require_as_python(name, f, n, call, signs=True):
    rows = rows_of(n)
    (found, good), (expected, made) = call(rows), in_python(f, rows)
    assert not (good & ~made).any(), f"{name}: C has a result where Python raises: {rows[good & ~made][:5].tolist()}"
    ordinary = np.isfinite(rows).all(axis=1) & np.isfinite(expected).all(axis=1)
    assert not (~good & made & ordinary).any(), f"{name}: no result: {rows[~good & made & ordinary][:5].tolist()}"
    require_same(name, rows[good], found[good], expected[good], signs=signs)


@pytest.mark.parametrize(("name", "n"), [*((name, 1) for name in ONE), *((name, 2) for name in TWO)])
def test_math(compiled, name, n):
    require_as_python(name, *of_math(name, n), compiled[f"math {name} {n}"])


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(compiled, name):
    require_as_python(name, *of_operator(name), compiled[f"operator {name}"], signs=name != "0 a")
