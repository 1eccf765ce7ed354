"""Random functions agree compiled and in Python, including nan and exceptions."""

import warnings

import numpy as np
import pytest
from random_functions import function, moved, points

from geomctrl.errors import GeomctrlError
from geomctrl.tracing import trace
from geomctrl.tracing.untraceable import UntraceableError

COUNT, POINTS = 100, 24


def in_python(f, point):
    """f's numbers, or the exception that it raises."""
    try:
        result = np.asarray(f(*(np.copy(x) if np.ndim(x) else x for x in point)))
    except Exception as error:
        return error
    return TypeError("complex") if np.iscomplexobj(result) else result.astype(float)


def agree(a, b):
    if isinstance(a, Exception) or isinstance(b, Exception):
        return isinstance(a, Exception) and isinstance(b, Exception)
    size = np.abs(a[np.isfinite(a)]).max(initial=1e-12)
    with np.errstate(all="ignore"):
        return a.shape == b.shape and bool(
            np.all((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= 1e-9 * size))
        )


def jumps(f, point, value, rng):
    """Whether Python's own value changes where the point moves by rounding, or the sign of a zero changes."""
    t, q, v = point
    unsigned = float(t) + 0.0, q + 0.0, v + 0.0
    others = [*(moved(point, rng) for _ in range(12)), unsigned, tuple(-(0.0 - x) for x in unsigned)]
    return not all(agree(value, in_python(f, other)) for other in others)


def compiled_or_refusal(f):
    try:
        return trace(f, (), (2,), (2,)).to_llvm()
    except GeomctrlError as error:
        return error


def outcome(seed):
    """traced, refused, or raising at most points."""
    f, text = function(seed)
    values = [in_python(f, point) for point in points(seed, POINTS)]
    if sum(isinstance(x, Exception) for x in values) > 0.75 * POINTS:
        return "raises"
    compiled = compiled_or_refusal(f)
    if isinstance(compiled, Exception):
        reference = isinstance(compiled, UntraceableError) or "a function that returns numbers" in str(compiled)
        assert reference, f"{compiled!r}\n{text}"
        assert "differs from Python" not in str(compiled), text
        return "refused"
    rng = np.random.default_rng(seed)
    for point, value in zip(points(seed, POINTS), values):
        result = in_python(compiled, point)
        assert agree(value, result) or jumps(f, point, value, rng), f"{point}: {value!r}, compiled {result!r}\n{text}"
    return "traced"


@pytest.mark.quick(1)
@pytest.mark.parametrize("first", range(0, COUNT, 25))
def test_random_functions_mean_the_same(first):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = [outcome(seed) for seed in range(first, first + 25)]
    assert outcomes.count("traced") >= 10, outcomes
