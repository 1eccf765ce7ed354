"""The error bounds that enclosures use for functions which are not correctly rounded."""

import ctypes
import math
import platform

import mpmath
import numpy as np
import pytest

from geomctrl.tracing.proofs import intervals
from geomctrl.tracing.proofs.enclosure import Enclosure, compiled
from geomctrl.tracing.tracer import traced

RANGES = {
    "sin": [(-4.0, 4.0), (-1e-6, 1e-6), (3.14159265, 3.14159266), (1e3, 1e6), (1e9, 1e15)],
    "cos": [(-4.0, 4.0), (-1e-6, 1e-6), (1.57079632, 1.57079633), (1e3, 1e6), (1e9, 1e15)],
    "tan": [(-1.57, 1.57), (4.0, 100.0)],
    "exp": [(-5.0, 5.0), (-700.0, 700.0), (-1e-9, 1e-9)],
    "log": [(0.1, 5.0), (1.0 - 1e-6, 1.0 + 1e-6), (1e-300, 1e300)],
    "asin": [(-1.0, 1.0), (-1e-6, 1e-6), (0.999999, 1.0)],
    "acos": [(-1.0, 1.0), (0.999999, 1.0), (-1.0, -0.999999)],
    "tanh": [(-3.0, 3.0), (-1e-6, 1e-6), (-20.0, 20.0)],
    "sinh": [(-3.0, 3.0), (-1e-6, 1e-6), (-700.0, 700.0)],
    "cosh": [(-3.0, 3.0), (-1e-6, 1e-6), (-700.0, 700.0)],
    "asinh": [(-3.0, 3.0), (-1e-6, 1e-6), (-1e9, 1e9)],
    "acosh": [(1.0, 1.0 + 1e-6), (1.0, 9.0), (1.0, 1e9)],
    "atanh": [(-1.0, 1.0), (-1e-6, 1e-6), (0.999999, 1.0)],
    "expm1": [(-3.0, 3.0), (-1e-6, 1e-6), (-700.0, 700.0)],
    "log1p": [(-0.99, 3.0), (-1e-6, 1e-6), (0.0, 1e300)],
    "log10": [(0.1, 5.0), (1.0 - 1e-6, 1.0 + 1e-6), (1e-300, 1e300)],
    "cbrt": [(0.0, 3.0), (1e-300, 1e300)],
}
NUMPY = {f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "sinh", "cosh", "tanh")}


@pytest.mark.parametrize("name", RANGES)
def test_functions_are_within_half_of_what_is_allowed_for(name):
    function = NUMPY.get(name) or getattr(np, name)
    run = compiled(traced(lambda x: function(x[0]), (1,)).trace, np.empty(0))
    rng, worst = np.random.default_rng(1), 0.0
    for lo, hi in RANGES[name]:
        x = rng.uniform(lo, hi, (2000, 1))
        result = run(x)[0][:, 0]
        with mpmath.workdps(40):
            exact = [getattr(mpmath, name)(mpmath.mpf(y)) for y in x[:, 0].tolist()]
            errors = [float(abs(mpmath.mpf(y) - z)) for y, z in zip(result.tolist(), exact)]
            sizes = [float(abs(z)) for z in exact]
        if name == "sin":
            allowed = np.minimum(1.0, np.abs(x[:, 0])) * intervals.WAVE
        elif name == "cos":
            allowed = np.full(len(x), intervals.WAVE)
        else:
            allowed = np.array(sizes) * intervals.ULPS[name] * intervals.EPS
        worst = max(worst, float((np.array(errors) / allowed).max()))
    assert 0.01 < worst < 0.5


def test_angles_are_within_half_of_what_is_allowed_for():
    run = compiled(traced(lambda x: np.arctan2(x[0], x[1]), (2,)).trace, np.empty(0))
    rng = np.random.default_rng(2)
    x = rng.normal(size=(4000, 2)) * 10.0 ** rng.integers(-6, 7, (4000, 2))
    result = run(x)[0][:, 0]
    with mpmath.workdps(40):
        exact = [mpmath.atan2(a, b) for a, b in x.tolist()]
        worst = max(float(abs((mpmath.mpf(y) - z) / z)) for y, z in zip(result.tolist(), exact))
    assert worst < 0.5 * intervals.ULPS["atan2"] * intervals.EPS


@pytest.mark.parametrize(("name", "shift"), [("sin", 0.0), ("cos", math.pi / 2)])
def test_a_wave_reaches_its_extrema_between_the_ends(name, shift):
    """Every quadrant of both ends, over four turns, against the extrema counted by hand."""
    ends = np.arange(-12.5, 13.0, 0.7)
    a, b = np.meshgrid(ends, ends)
    lo, hi = a[a <= b], b[a <= b]
    result = Enclosure(traced(lambda x: getattr(np, name)(x[0]), (1,)).trace)(lo[:, None], hi[:, None])
    turns_lo, turns_hi = ((x + shift) / (2 * math.pi) for x in (lo, hi))
    has_top = np.floor(turns_hi - 0.25) > np.floor(turns_lo - 0.25)
    has_bottom = np.floor(turns_hi + 0.25) > np.floor(turns_lo + 0.25)
    f = getattr(np, name)
    least = np.where(has_bottom, -1.0, np.minimum(f(lo), f(hi)))
    most = np.where(has_top, 1.0, np.maximum(f(lo), f(hi)))
    assert (result[0][:, 0] <= least).all()
    assert (most <= result[1][:, 0]).all()
    short = hi - lo < 3.0
    assert np.allclose(result[0][short, 0], least[short], rtol=0.0, atol=1e-15)
    assert np.allclose(result[1][short, 0], most[short], rtol=0.0, atol=1e-15)


def test_powers_know_that_their_factors_move_together():
    enclosure = Enclosure(traced(lambda x: [x[0] ** k for k in range(2, 8)], (1,)).trace)
    lo, hi = enclosure([[-2.0], [-3.0], [1.0]], [[1.0], [-1.0], [2.0]])
    powers = np.arange(2, 8)
    even = powers % 2 == 0
    expected_lo = [np.where(even, 0.0, (-2.0) ** powers), np.where(even, 1.0, (-3.0) ** powers), np.ones(6)]
    expected_hi = [np.where(even, 2.0**powers, 1.0), np.where(even, 3.0**powers, -1.0), 2.0**powers]
    assert np.allclose(lo, expected_lo, rtol=1e-14, atol=0.0)
    assert np.allclose(hi, expected_hi, rtol=1e-14, atol=0.0)


def test_what_is_not_defined_somewhere_is_not_bounded():
    def f(x):
        return [
            np.tanh(1.0 / x[0]),
            np.minimum(np.sqrt(x[0]), -1.0),
            np.exp(-np.abs(np.log(x[0]))),
            np.where(x[0] > 5.0, 1.0 / x[0], 0.0),
            np.where(x[1] > 0.0, 1.0, 1.0 / x[0]),
        ]

    lo, hi = Enclosure(traced(f, (2,)).trace)([[-1.0, 1.0], [0.0, 1.0]], [[1.0, 2.0], [1.0, 2.0]])
    assert np.isinf(lo[:, :1]).all()
    assert np.isinf(hi[:, :1]).all()
    assert np.isinf(lo[0, :3]).all()
    assert np.isinf(hi[0, :3]).all()
    assert lo[:, 3:].tolist() == hi[:, 3:].tolist() == [[0.0, 1.0]] * 2


@pytest.mark.parametrize("direction", [0x400, 0x800, 0xC00])  # of x86's and glibc's <fenv.h>: down, up, to zero
def test_a_process_that_rounds_otherwise_proves_nothing(direction):
    libm = ctypes.CDLL(None)
    if platform.machine() != "x86_64" or not hasattr(libm, "fesetround"):
        pytest.skip("other numbers for other processors")
    trace = traced(lambda x: x[0] + 1.0, (1,)).trace
    libm.fesetround(direction)
    try:
        with pytest.raises(RuntimeError, match="does not compute as IEEE 754"):
            compiled(trace, np.empty(0))
    finally:
        libm.fesetround(0)
    compiled(trace, np.empty(0))
